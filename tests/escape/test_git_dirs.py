"""Attacks by way of a git directory, which a box must write into, and which git trusts.

The verdict is taken on the host: the user's own git is run after the box, and what it wrote or
ran is looked for. The control does the same where carrel was not.
"""

import json
import os
import pathlib
import signal
import stat
import subprocess

import lib
import pytest

pytestmark = pytest.mark.usefixtures("home")


def report(script, **how):
    """What carrel says about a run in which a shell script did its worst."""
    lib.settle()
    done = lib.box("sh", "-c", script, **how)
    lib.succeeded(done)
    return done.stderr.decode()


def naked(script, cwd):
    """The same script without a box."""
    lib.succeeded(lib.execute(["sh", "-c", script], cwd=cwd))


def git_try(*args, cwd):
    return lib.execute(["git", *args], cwd=cwd)


# ---- links that git writes through --------------------------------------------------------

COMMIT = ["commit", "-q", "--allow-empty", "--no-edit", "-m", "touch ran"]
THROUGH = {
    "COMMIT_EDITMSG": ("ln -sf {rc} .git/COMMIT_EDITMSG", COMMIT),
    "logs/HEAD": ("ln -sf {rc} .git/logs/HEAD", COMMIT),
    "logs/HEAD, checkout": ("ln -sf {rc} .git/logs/HEAD", ["checkout", "-q", "-b", "next"]),
    "logs as a whole": (
        "mkdir -p l && ln -s {rc} l/HEAD && rm -rf .git/logs && mv l .git/logs",
        COMMIT,
    ),
    "a branch's log": ("ln -sf {rc} .git/logs/refs/heads/main", COMMIT),
    "a directory of logs": (
        "rm -rf .git/logs/refs/heads && ln -s {home} .git/logs/refs/heads && touch .git/x",
        ["branch", "-q", "rc.d/one"],
    ),
}


@pytest.mark.parametrize("script, command", THROUGH.values(), ids=THROUGH)
def test_git_on_the_host_writes_through_no_link(project, home, script, command):
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    lib.make_dir(home / "rc.d")
    script = script.format(rc=bash, home=home)

    def damage():
        return bash.read_text() != "# mine\n" or os.listdir(home / "rc.d") != []

    said = report(script)
    assert "removed" in said and str(home) in said
    git_try(*command, cwd=project)
    assert not damage()
    # The control: without carrel's look at the end the same command does write there.
    naked("rm -rf .git/logs && mkdir -p .git/logs/refs/heads && touch .git/logs/HEAD", project)
    naked(script, project)
    git_try(*COMMIT, cwd=project)
    git_try("checkout", "-q", "-b", "again", cwd=project)
    git_try("branch", "-q", "rc.d/two", cwd=project)
    assert damage()


IN_PLACE = """gc.pid gc.log rebased-patches lost-found addp-hunk-edit.diff index.stash.1
sharedindex.x fsmonitor--daemon packed-refs COMMIT_EDITMSG""".split()


def test_links_in_a_bare_repository_below(project, home):
    """Others of its names may be a project's, so here each name that git writes counts."""
    lib.git("init", "-q", "--bare", "x.git", cwd=project)
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    script = "cd x.git && " + " && ".join(f"ln -sf {bash} {name}" for name in IN_PLACE)
    said = report(script + f" && ln -s {bash} mine && mkdir tree && ln -s x tree/mine")
    left = os.listdir(project / "x.git")
    assert f"x.git  ({len(IN_PLACE)} files; of each: a link to {bash}" in said
    assert "mine" in left and not set(left) & set(IN_PLACE)
    assert os.path.islink(project / "x.git/tree/mine")
    git_try("gc", cwd=project / "x.git")
    assert bash.read_text() == "# mine\n"
    naked(script, project)
    git_try("gc", cwd=project / "x.git")
    assert bash.read_text() != "# mine\n"


def test_links_made_ready_in_an_earlier_run(project, home):
    """A link in the working tree is no alarm. Moved into .git with its directory it is one."""
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    assert "removed" not in report(f"mkdir ready && ln -s {bash} ready/HEAD")
    said = report("rm -rf .git/logs/refs && mv ready .git/logs/refs")
    assert "removed" in said
    assert not os.path.lexists(project / ".git/logs/refs/HEAD")


ODD = {
    "fifo": ("mkfifo .git/MERGE_MSG", "a FIFO"),
    "socket": (
        "python3 -c 'import socket as s; s.socket(s.AF_UNIX).bind(\".git/MERGE_MSG\")'",
        "a socket",
    ),
    "dangling link": ("ln -s nowhere .git/MERGE_MSG", "a link to nowhere"),
    "link inside": ("ln -s config .git/MERGE_MSG", "a link to config"),
}


@pytest.mark.parametrize("script, what", ODD.values(), ids=ODD)
def test_nothing_but_files_and_directories_is_left(project, script, what):
    said = report(script)
    assert f".git/MERGE_MSG  ({what}, which git never makes there: removed)" in said
    assert not os.path.lexists(project / ".git/MERGE_MSG")
    naked(script, project)
    assert os.path.lexists(project / ".git/MERGE_MSG")


def test_links_of_the_user_stay(project, home):
    """Also those that git reads or writes through, as people who have dotfiles make them."""
    lib.make_file(home / "exclude", "*.o\n")
    lib.make_dir(home / "cache")
    info = project / ".git/info"
    (info / "exclude").unlink(missing_ok=True)
    os.symlink(home / "exclude", info / "exclude")
    os.symlink(home / "cache", project / ".git/rr-cache")
    os.symlink("nowhere", project / ".git/mine")
    said = report("git status && touch .git/info/x && git commit -q --allow-empty -m two")
    assert "carrel" not in said, said
    assert os.readlink(info / "exclude") == str(home / "exclude")
    assert os.readlink(project / ".git/rr-cache") == str(home / "cache")
    assert os.readlink(project / ".git/mine") == "nowhere"
    # The control: the same link, made anew by the box, is another one.
    said = report("rm .git/mine && ln -s nowhere .git/mine")
    assert ".git/mine" in said and not os.path.lexists(project / ".git/mine")


def killed_box(project, script, janitor=False):
    """A box whose supervisor is killed when the script is done; with janitor, that first."""
    process = lib.start_box("sh", "-c", f"{script}; touch ready; sleep 1000")
    lib.wait_for((project / "ready").exists, "the box")
    (project / "ready").unlink()
    if janitor:
        os.kill(janitor_of(process.pid), signal.SIGKILL)
    process.kill()
    process.wait()


def janitor_of(supervisor):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = pathlib.Path("/proc", pid, "stat").read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1 :].rsplit(")", 1)
        if name == "carrel-janitor" and int(rest.split()[1]) == supervisor:
            return int(pid)
    raise AssertionError("there is no janitor")


def test_end_of_a_box_whose_supervisor_was_killed(project, home):
    """The janitor looks at it: nothing is left to the user's next command, or to the next start."""
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    log = project / ".git/logs/HEAD"
    killed_box(project, f"ln -sf {bash} {log}; rm .git/HEAD; mkdir sub; echo evil >sub/.envrc")
    lib.wait_for(lambda: not os.path.lexists(log), "the janitor")
    lib.wait_for((project / ".git/HEAD").exists, "the janitor")
    lib.wait_for(lambda: not (project / ".git/commondir").exists(), "the janitor's end")
    name = f"carrel-{project.name}"
    found = lib.succeeded(lib.carrel("found", name)).decode()
    assert ".git/logs/HEAD" in found and ".git/HEAD" in found and "sub/.envrc" in found
    git_try(*COMMIT, cwd=project)
    assert bash.read_text() == "# mine\n"
    assert f"carrel found {name}" in report("true")
    assert not report("true"), "it is said once"


def test_next_start_after_a_power_cut(project, home):
    """Nobody looked at the end: the next start removes what was made since the box began."""
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    mine, log = project / ".git/ORIG_HEAD", project / ".git/logs/HEAD"
    os.symlink(home / "own", mine)
    lib.settle()
    killed_box(project, f"ln -sf {bash} {log}", janitor=True)
    shown = " ".join(lib.succeeded(lib.carrel("plan", "--", "true")).decode().split())
    assert f".git/logs/HEAD to {bash}" in shown and "next start removes it" in shown
    assert os.path.islink(log)
    said = report("true")
    assert f".git/logs/HEAD to {bash}" in said and "is removed" in said
    assert not os.path.lexists(log)
    assert os.readlink(mine) == str(home / "own"), "an older one may be the user's"
    assert f".git/ORIG_HEAD to {home}/own: if you did not make it" in said
    mine.unlink()
    assert not report("true")


def test_link_to_another_place_in_another_repository(project, place):
    """Working trees may share refs and logs by links to the same in another repository."""
    other = lib.make_dir(place / "other")
    lib.git("init", "-q", cwd=other)
    lib.make_dir(other / ".git/logs")
    log = project / ".git/logs/HEAD"
    log.unlink(missing_ok=True)
    os.symlink(other / ".git/logs/HEAD", log)
    assert not report("true")
    log.unlink()
    os.symlink(other / ".git/hooks/post-commit", log)
    assert ".git/logs/HEAD to" in report("true")


def test_configuration_of_a_repository_below_that_cannot_be_read(project):
    """What git would find there cannot be known, so no box starts; git's own refusal is no reason."""
    nested = lib.make_dir(project / "nested")
    lib.git("init", "-q", cwd=nested)
    config = nested / ".git/config"
    config.chmod(0)
    lib.failed_clearly(lib.box("true"), "nested/.git/config", "Permission denied")
    config.chmod(0o644)
    config.write_text("[broken\n")
    assert "nested/.git is not followed: git's configuration" in report("true")


# ---- a repository that git does not find --------------------------------------------------

CONFIG = (
    "[core]\n\trepositoryformatversion = 0\n\tworktree = .\n"
    "\tfsmonitor = touch ran-on-the-host\n"
)
BARE = (
    "cp -r .git/objects .git/refs .git/index . && echo 'ref: refs/heads/main' >HEAD && "
    f"printf '%s' '{CONFIG}' >config"
)
BREAK = {
    "HEAD removed": "rm .git/HEAD",
    "HEAD empty": ": >.git/HEAD",
    "HEAD unreadable": "chmod 0 .git/HEAD",
    "HEAD a directory": "rm .git/HEAD && mkdir -p .git/HEAD/x",
    "HEAD a FIFO": "rm -rf .git/HEAD && mkfifo .git/HEAD",
    "HEAD a link": "ln -sf /etc/hostname .git/HEAD",
    "objects moved": "mv .git/objects .git/o",
    "objects removed": "rm -rf .git/objects",
    "refs moved": "mv .git/refs .git/r",
    "refs closed": "chmod 0 .git/refs",
    "objects closed": "chmod 0 .git/objects",
    "all closed": "chmod 0 .git",
    "a closed HEAD, nothing writable": "rm .git/HEAD; mkdir .git/HEAD; chmod 0 .git/HEAD; chmod 500 .git",
}


def finds_itself(project):
    done = git_try("rev-parse", "--git-dir", cwd=project)
    return done.stdout.strip() == b".git"


@pytest.mark.parametrize("attack", BREAK.values(), ids=BREAK)
def test_workspace_is_not_taken_for_a_bare_repository(project, attack):
    said = report(f"{BARE}; {attack}; true")
    assert "  .  (git takes it for a repository" in said
    assert finds_itself(project)
    git_try("status", cwd=project)
    assert not (project / "ran-on-the-host").exists()
    assert said.index("  .  (") < said.index("  config  ("), "it does not come first"
    # The control: without carrel git passes over .git. (It would wait for the FIFO.)
    naked(f"{attack}; true", project)
    assert "mkfifo" in attack or not finds_itself(project)
    done = lib.box("true")
    assert done.returncode == 125 and b".git" in done.stderr


def test_planted_config_runs_without_carrel(project):
    """The control of the one above, to the end: git runs what the planted config names."""
    naked(f"{BARE}; rm .git/HEAD", project)
    git_try("status", cwd=project)
    assert (project / "ran-on-the-host").exists()


def test_broken_repository_is_not_started_in(project):
    """As a killed supervisor could leave it: the start says what to do and makes no box."""
    naked(f"{BARE}; rm .git/HEAD", project)
    done = lib.box("touch", "ran")
    assert done.returncode == 125 and b"takes the workspace itself for a" in done.stderr
    assert not (project / "ran").exists()
    (project / "HEAD").unlink()
    lib.succeeded(lib.box("touch", "ran"))


@pytest.mark.parametrize("where", ["docs", "a/b/c"])
def test_bare_repository_is_reported_however_old(project, where):
    """Its files are from an earlier run in which they were nothing; only a name is new."""
    report(f"mkdir -p {where}/o {where}/refs && echo 'ref: refs/heads/x' >{where}/HEAD")
    said = report(f"mv {where}/o {where}/objects")
    assert f"{where}  (git takes it for a repository" in said
    # Known from now on.
    assert "takes it for" not in report("true")


def test_link_in_a_repository_behind_a_link(project, home):
    """nested/.git leads to another name, and the link that git writes through is there."""
    lib.git("init", "-q", "nested", cwd=project)
    mine = home / "mine"
    said = report(f"cd nested; mv .git g; ln -s g .git; ln -s {mine} g/COMMIT_EDITMSG")
    assert "nested/.git" in said and "nested/g/COMMIT_EDITMSG" in said
    git_try("-c", "user.name=x", "-c", "user.email=x@example.org", *COMMIT, cwd=project / "nested")
    assert not mine.exists()
    naked(f"rm -f g/COMMIT_EDITMSG; ln -s {mine} g/COMMIT_EDITMSG", project / "nested")
    git_try("-c", "user.name=x", "-c", "user.email=x@example.org", *COMMIT, cwd=project / "nested")
    assert mine.exists()


def test_links_of_a_project_that_looks_bare_stay(project):
    """Only what git would write is touched in a directory that also holds a project."""
    said = report(f"{BARE}; ln -s x src/mine; mkdir docs; ln -s x docs/mine; ln -s x ORIG_HEAD")
    assert "ORIG_HEAD" in said and not os.path.lexists(project / "ORIG_HEAD")
    assert os.readlink(project / "src/mine") == os.readlink(project / "docs/mine") == "x"


def test_known_directory_under_another_name(project):
    """The inode of a known .git, moved to where it was not: it is reported."""
    lib.git("init", "-q", "one", cwd=project)
    said = report("mkdir nested && mv one/.git nested/.git")
    assert "nested/.git  (a repository" in said
    assert "nested/.git" not in report("true")


# ---- directories that cannot be looked into -----------------------------------------------


def test_closed_worktrees_are_opened_again(project):
    """Else the look into it fails, and in a second run commondir can be rewritten."""
    lib.git("worktree", "add", "-q", "../tree", cwd=project)
    said = report("chmod 311 .git/worktrees")
    assert ".git/worktrees  (you could not use it" in said
    assert stat.S_IMODE(os.stat(project / ".git/worktrees").st_mode) & 0o700 == 0o700
    common = project / ".git/worktrees/tree/commondir"
    before = common.read_text()
    report("echo ../../../evil >.git/worktrees/tree/commondir || true")
    assert common.read_text() == before


def test_other_users_gain_no_way_in(project):
    """Who may write a directory can exchange what is protected in it. The user's own wish stays."""
    shared, new = project / ".git/objects/info", project / ".git/refs/heads/a"
    os.chmod(shared, 0o775)
    script = "chmod 777 .git .git/logs; mkdir -p .git/refs/heads/a; chmod 2770 .git/refs/heads/a"
    said = report(f"{script}; touch .git/objects/info/x")
    for name in (".git", ".git/logs", ".git/refs/heads/a"):
        assert f"  {name}  (other users could write there: they cannot any more)" in said
        assert not os.stat(project / name).st_mode & 0o022
    assert stat.S_IMODE(os.stat(shared).st_mode) == 0o775 and "objects/info" not in said
    # The control: a project that is the group's stays so, and what is made in it is, too.
    naked(f"chmod -R g+w .git; {script}", project)
    assert stat.S_IMODE(os.stat(project / ".git").st_mode) == 0o777
    os.chmod(project / ".git", 0o775)
    os.chmod(project / ".git/logs", 0o775)
    assert not report("mkdir .git/refs/heads/b; chmod 775 .git/refs/heads/b")
    assert os.stat(new).st_mode & 0o020 and os.stat(new.parent / "b").st_mode & 0o020


def test_what_lies_too_deep_is_said(project):
    """Deeper than the walk goes: reported, and the next start stops there."""
    script = "d=.git/logs; for i in $(seq 120); do d=$d/a; mkdir $d; done; ln -s /x $d/x"
    assert "it could not be looked into" in report(script)
    done = lib.box("true")
    assert done.returncode == 125 and b"Remove it" in done.stderr
    subprocess.run(["rm", "-rf", project / ".git/logs/a"], check=True)
    lib.succeeded(lib.box("true"))


def test_start_stops_at_what_it_cannot_look_into(project):
    lib.git("worktree", "add", "-q", "../tree", cwd=project)
    os.chmod(project / ".git/worktrees", 0o311)
    done = lib.box("touch", "ran")
    assert done.returncode == 125
    assert b".git/worktrees': Permission denied" in done.stderr
    assert not (project / "ran").exists()
    os.chmod(project / ".git/worktrees", 0o755)
    lib.succeeded(lib.box("touch", "ran"))
    assert (project / "ran").exists()


# ---- the repository of a linked worktree, elsewhere ---------------------------------------


@pytest.fixture
def tree(project, place):
    """A linked worktree: its repository is in `project`, outside of the workspace."""
    lib.git("worktree", "add", "-q", "../tree", cwd=project)
    lib.current.cwd = place / "tree"
    lib.settle()
    return place / "tree"


PLANTED = {
    "hook of a module": ("modules/sub/hooks/post-checkout", "git runs it"),
    "config of a module": ("modules/sub/config", "git obeys it"),
    "config of a worktree": ("worktrees/new/config.worktree", "git obeys it"),
    "commondir of a worktree": ("worktrees/new/commondir", "git takes its configuration"),
    "unfinished rebase": ("worktrees/tree/rebase-merge/git-rebase-todo", "git goes on with it"),
    "remote": ("remotes/origin", "git takes the address of a remote"),
    "alternates": ("objects/info/alternates", "git reads objects"),
}


@pytest.mark.parametrize("name, why", PLANTED.values(), ids=PLANTED)
def test_common_directory_outside_is_looked_at(project, tree, name, why):
    path = project / ".git" / name
    made = os.path.dirname(path)
    said = report(f"mkdir -p {made} && echo x >{path}")
    assert path.exists(), "the box could not write it, and the test proves nothing"
    assert f"{path}  ({why}" in said
    assert "appeared" not in report("git status")


def test_submodule_of_a_linked_worktree(project, tree, template):
    """Its git directory is in that of the worktree, and as protected as one in modules/."""
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    lib.git(*local, "add", str(template), "sub", cwd=tree)
    module = project / ".git/worktrees/tree/modules/sub"
    plant = "cd sub && d=$(git rev-parse --git-dir) && touch $d/x &&"
    report(f"{plant} echo evil >$d/hooks/post-checkout; mv $d/refs $d/r; true")
    assert (module / "x").exists(), "the box could not write there, and the test proves nothing"
    assert not (module / "hooks/post-checkout").exists() and (module / "refs").is_dir()
    naked(f"{plant} echo evil >$d/hooks/post-checkout", tree)
    assert (module / "hooks/post-checkout").exists()


def test_links_in_the_common_directory_outside(project, tree, home):
    bash = lib.make_file(home / ".bashrc", "# mine\n")
    logs = project / ".git/worktrees/tree/logs/HEAD"
    said = report(f"ln -sf {bash} {logs}; ln -sf {bash} {project}/.git/COMMIT_EDITMSG")
    assert said.count("removed") == 2
    git_try(*COMMIT, cwd=tree)
    git_try(*COMMIT, cwd=project)
    assert bash.read_text() == "# mine\n"
    naked(f"ln -sf {bash} {logs}", tree)
    git_try(*COMMIT, cwd=tree)
    assert bash.read_text() != "# mine\n"


def test_head_of_the_main_worktree_is_put_back(project, tree):
    git_dir = project / ".git"
    before = (git_dir / "HEAD").read_text()
    said = report(f"rm {git_dir}/HEAD {git_dir}/worktrees/tree/HEAD; mv {git_dir}/refs {git_dir}/r || true")
    assert (git_dir / "HEAD").read_text() == before
    assert f"{git_dir}/HEAD  (git did not accept it" in said
    for cwd in (project, tree):
        assert git_try("status", cwd=cwd).returncode == 0


# ---- identity -----------------------------------------------------------------------------


def project_of(cwd):
    """The root whose state a box there would use."""
    done = lib.carrel("plan", "--json", "--", "true", cwd=cwd)
    return json.loads(lib.succeeded(done))["instance"]["root"]


def test_broken_nested_repository_is_not_the_outer_project(project):
    nested = lib.make_dir(project / "nested")
    lib.git("init", "-q", cwd=nested)
    assert project_of(nested) == str(nested)
    (nested / ".git/HEAD").unlink()
    assert git_try("rev-parse", "--show-toplevel", cwd=nested).stdout.strip() == bytes(project)
    assert project_of(nested) == str(nested)
    # The control: without any .git it does belong to the outer one.
    subprocess.run(["rm", "-rf", nested / ".git"], check=True)
    assert project_of(nested) == str(project)


def test_box_of_a_nested_repository_cannot_break_it(project):
    nested = lib.make_dir(project / "nested")
    lib.git("init", "-q", cwd=nested)
    said = report("rm .git/HEAD; rm -rf .git/refs .git/objects || true", cwd=nested)
    assert ".git/HEAD" in said
    done = git_try("rev-parse", "--show-toplevel", cwd=nested)
    assert done.stdout.strip() == bytes(nested)


# ---- what is no attack --------------------------------------------------------------------

ORDINARY = """
set -e
git config user.name >/dev/null
echo 1 >>src/main.c && git commit -qam two
git checkout -q -b topic && echo t >t && git add t && git commit -qm topic
git checkout -q main && echo m >m && git add m && git commit -qm main
git rebase -q main topic && git checkout -q main && git merge -q --no-edit topic
echo s >>src/main.c && git stash -q && git stash pop -q && git checkout -q -- src/main.c
git tag v1 && git tag -a -m note v2 && git notes add -m hello
git checkout -q -b left HEAD~1 && echo l >c && git add c && git commit -qm left
git checkout -q -b right HEAD~1 && echo r >c && git add c && git commit -qm right
git merge -q left >/dev/null 2>&1 || git merge --abort
git bisect start HEAD HEAD~2 >/dev/null 2>&1 && git bisect reset >/dev/null 2>&1
git cherry-pick left >/dev/null 2>&1 || git cherry-pick --abort
git rebase -q left >/dev/null 2>&1 || git rebase --abort
git branch -q -D left 2>/dev/null || true # its config is protected
git branch -q -M right other 2>/dev/null || true
git reflog expire --all --expire=now
git pack-refs --all && git gc -q && git repack -adq && git fsck >/dev/null 2>&1
git update-index --split-index && git update-index --no-split-index
git checkout -q main && git reset -q --hard HEAD~1 && git checkout -q --detach && git checkout -q main
"""


def test_ordinary_use_is_no_alarm(project):
    said = report(ORDINARY)
    assert "carrel" not in said, said
    assert git_try("fsck", cwd=project).returncode == 0
    assert lib.git("rev-parse", "--abbrev-ref", "HEAD", cwd=project).strip() in (b"main", "main")


def test_worktree_and_submodule_made_in_a_box(project, place):
    """Said as what they are: a new repository, and its config. Nothing is removed."""
    lib.git("init", "-q", "--bare", "inner.git", cwd=project)
    said = report(
        "set -e; git worktree add -q wt; cd wt; echo w >w; git add w; git commit -qm w; cd ..; "
        "git -c protocol.file.allow=always submodule add -q ./inner.git sub 2>/dev/null || true; "
        "git worktree list >list"
    )
    assert "removed" not in said and "put back" not in said
    assert "worktrees/wt" not in said and "wt/.git" in said
    assert git_try("status", cwd=project / "wt").returncode == 0
