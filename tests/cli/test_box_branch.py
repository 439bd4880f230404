"""carrel apply --as-branch: commits of a box come to the repository, and nothing else does."""

import os

import lib
import pytest

OVERLAY = ("--overlay", "--name", "copy")


def boxes():
    return lib.current.home / ".local/state/carrel/boxes/copy"


def edit(project, script):
    done = lib.box("sh", "-euc", script, opts=OVERLAY, cwd=project)
    assert done.returncode == 0, done.stderr


def branch(project, name="agent/one", code=0):
    done = lib.carrel("apply", "copy", "--as-branch", name, cwd=project)
    assert done.returncode == code, done.stderr
    return done.stderr.decode()


def log(project, name):
    return lib.git("log", "--format=%s", name, cwd=project).splitlines()


COMMITS = """
git checkout -qb topic; echo 1 >one; git add one; git commit -qm one
git mv src lib; git commit -qm moved; echo rest >rest; rm .gitignore; touch x.o
"""


def outside(project):
    """All of it but what a fetch adds: objects, and the new branch."""
    seen = lib.snapshot(project)
    return {path: what for path, what in seen.items() if not path.startswith((
        b".git/objects", b".git/refs/heads", b".git/logs", b".git/packed-refs"))}  # fmt: skip


@pytest.fixture
def work(project):
    with open(project / ".gitignore", "a") as file:
        file.write("*.o\n")
    lib.git("commit", "-qam", "ignore", cwd=project)
    lib.settle()
    return project


@pytest.mark.parametrize("gc", ["", "git gc -q"])
def test_commits_and_the_rest(work, gc):
    before, refs = outside(work), lib.git("for-each-ref", cwd=work)
    edit(work, COMMITS + gc)
    assert "3 commits" in branch(work)
    assert log(work, "agent/one") == [
        "what the box copy had not committed", "moved", "one", "ignore", "one"]  # fmt: skip
    names = lib.git("ls-tree", "-r", "--name-only", "agent/one", cwd=work).split()
    assert names == ["lib/main.c", "one", "rest"]
    assert outside(work) == before
    left = [line for line in lib.git("for-each-ref", cwd=work).splitlines() if "agent/one" not in line]
    assert left == refs.splitlines()
    lib.git("fsck", "--strict", cwd=work)
    assert not (boxes() / "branch.git").exists()


def test_all_was_committed(work):
    edit(work, "echo 1 >one; git add one; git commit -qm one")
    told = branch(work)
    assert "1 commit " in told and "not committed" not in told
    assert log(work, "agent/one")[0] == "one"


def test_nothing_was_committed(work):
    edit(work, "echo 1 >one; chmod +x src/main.c; ln -s one link; printf 'a\\0b' >bin")
    assert "1 commit " in branch(work)
    tree = lib.git("ls-tree", "-r", "agent/one", cwd=work)
    assert "100755 blob" in tree and "120000 blob" in tree
    assert lib.git("cat-file", "blob", "agent/one:bin", cwd=work) == "a\0b"


def test_a_detached_head_and_odd_names(work):
    edit(work, "git checkout -q --detach; echo 1 >'a \"b\\c'; git add .; git commit -qm odd;"
               "printf x >'tab\tnew\nline'")  # fmt: skip
    branch(work)
    names = lib.git("ls-tree", "-rz", "--name-only", "agent/one", cwd=work).split("\0")
    assert 'a "b\\c' in names and "tab\tnew\nline" in names


def test_nothing_of_the_boxs_configuration_is_obeyed(work, place):
    """Every program that git could be told to run leaves a mark outside: none may."""
    mark = place / "mark"
    evil = f"#!/bin/sh\ntouch {mark}\n"
    edit(work, COMMITS)
    upper = boxes() / "layers/0/upper/.git"
    for hook in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-index-change"):
        lib.make_file(upper / "hooks" / hook, evil, mode=0o755)
    run = lib.make_file(place / "run", evil, mode=0o755)
    config = f"""
[core]
	fsmonitor = {run}
	sshCommand = {run}
	pager = {run}
	hooksPath = hooks
[uploadpack]
	packObjectsHook = {run}
[filter "x"]
	clean = {run}
	smudge = {run}
[alias]
	fast-import = !{run}
"""
    lib.make_file(upper / "config", config)
    lib.make_file(upper / "objects/info/alternates", f"{place}/elsewhere\n")
    lib.make_file(upper / "info/attributes", "* filter=x\n")
    branch(work)
    assert not mark.exists()


def test_objects_that_are_no_files(work, place):
    edit(work, COMMITS)
    objects = boxes() / "layers/0/upper/.git/objects"
    lib.make_dir(objects / "ee") if not (objects / "ee").exists() else None
    os.symlink("/etc/passwd", objects / "ee" / ("0" * 38))
    os.mkfifo(objects / "ee" / ("1" * 38))
    lib.make_file(objects / "ee/evil", "x")
    for path in (objects / "ee").iterdir():
        lib.give(path)
    branch(work)
    assert not (work / ".git/objects/ee" / ("0" * 38)).exists()


@pytest.mark.parametrize("head", ["garbage", "ref: ../../../etc/passwd", "ref: refs/heads/none", "f" * 40])
def test_a_head_that_leads_nowhere(work, head):
    edit(work, COMMITS)
    lib.make_file(boxes() / "layers/0/upper/.git/HEAD", head + "\n")
    before = lib.snapshot(work)
    branch(work, code=125)
    assert lib.snapshot(work) == before


def test_a_tree_that_git_must_not_check_out(work):
    """A commit with .git in a tree, which only a hostile program makes."""
    script = """
    blob=$(echo evil | git hash-object -w --stdin)
    inner=$(printf "100755 blob $blob\\tpost-checkout\\n" | git mktree)
    tree=$(printf "040000 tree $inner\\t.git\\n" | git mktree)
    git reset -q --soft $(git commit-tree -m evil -p HEAD $tree)
    """
    edit(work, script)
    assert "git says" in branch(work, code=125)
    assert "agent" not in lib.git("branch", cwd=work)


def test_names_of_branches(work):
    edit(work, COMMITS)
    for name in ("-x", "a..b", "", "a b"):
        branch(work, name, code=125)
    branch(work, "main", code=125)
    branch(work, "good")
    assert "File exists" in branch(work, "good", code=125)


def test_no_repository(place):
    plain = lib.make_dir(place / "plain")
    edit(plain, "echo 1 >f")
    assert "not the top of a git repository" in branch(plain, code=125)


def test_a_worktree(work, place):
    lib.git("worktree", "add", "-q", "-b", "side", str(place / "side"), cwd=work)
    lib.settle()
    edit(place / "side", "echo 1 >one; git add one; git commit -qm one; echo 2 >two")
    branch(place / "side", "from-worktree")
    assert log(work, "from-worktree")[:2] == ["what the box copy had not committed", "one"]
    assert log(work, "side")[0] == "ignore"
