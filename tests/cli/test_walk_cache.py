"""A walk that remembers finds what a walk that reads everything finds

Two equal projects see the same edits, between boxes and in them. In one carrel remembers
directories, in the other it reads all of them: the plans and the reports must be the same.
"""

import json
import os
import random
import re
import shlex
import subprocess
import time

import pytest

import lib

EAGER = {"CARREL_TEST_WALK": "eager"}
UNCACHED = {"CARREL_TEST_WALK": "uncached"}

NAMES = [
    ".env", ".env.local", ".env.example", ".envrc", ".git", "HEAD", "config", "hooks", "objects",
    "refs", "commondir", ".vscode", "settings.json", ".husky", "pre-commit", ".claude", ".mcp.json",
    "CLAUDE.md", "AGENTS.md", "node_modules", "a", "b", "c", "key.pem", "main.c", "secrets", "x y",
]  # fmt: skip


def caches(home):
    return sorted((home / ".local/state/carrel/walks").glob("*"))


def any_path(dice, depth=3):
    return "/".join(dice.choice(NAMES) for _ in range(dice.randint(1, depth)))


def edit(dice):
    """One edit of a tree, for a shell; it may come to nothing."""
    one, other = shlex.quote(any_path(dice)), shlex.quote(any_path(dice))
    return dice.choice([
        f"mkdir -p {one}",
        f"mkdir -p $(dirname {one}) && echo x >{one}",
        f"mkdir -p {one} && echo x >{one}/{shlex.quote(dice.choice(NAMES))}",
        f"echo y >>{one}",
        f"mkdir -p $(dirname {other}) && mv {one} {other}",
        f"mkdir -p $(dirname {other}) && ln -s $PWD/{one} {other}",
        f"mv {one} {other}.old && ln -s $(basename {other}).old {one}",
        f"rm -rf {one}",
        f"touch -d '2001-01-01' {one}",
        f"touch -hd '2001-01-01' $(dirname {one}) {one}",
        f"chmod u=rwx,go= {one}",
        f"ln {one} {other}",
        f"mv {one} {one}.1 && cp -a {one}.1 {one} && rm -rf {one}.1",
    ])  # fmt: skip


def edits(dice, n):
    # Not in the top of the project: what is protected there differs in nothing else.
    return "mkdir -p t; cd t; " + "; ".join(f"{{ {edit(dice)}; }} 2>/dev/null" for _ in range(n))


def plan_of(project, env):
    opts = ["--hide", "*.pem", "--hide", "t/secrets/**", "--protect", "**/c", "--protect", "*s"]
    done = lib.carrel("plan", "--json", *opts, "--", "true", cwd=project, env=env)
    if done.returncode:
        return done.stderr.decode().replace(str(project), "@")
    plan = json.loads(done.stdout)
    rows = [json.dumps(p) for p in plan["places"] if p["kind"] in ("hide", "protect", "stub", "pin")]
    return sorted(row.replace(str(project), "@") for row in rows)


def run(project, script, name, env):
    opts = ["--name", name, "--hide", "*.pem"]
    done = lib.box("sh", "-c", script + "; true", opts=opts, cwd=project, env=env)
    if done.returncode:
        return done.stderr.decode().replace(str(project), "@")
    found = lib.carrel("found", "--json", name, cwd=project)
    lines = found.stdout.decode().splitlines()[1:] if found.returncode == 0 else []
    return sorted(line.replace(str(project), "@") for line in lines)


@pytest.mark.parametrize("seed", range(6))
def test_remembered_or_read_is_the_same(place, home, seed):
    dice = random.Random(seed)
    both = [(lib.make_dir(place / name), name, env)
            for name, env in (("remembered", EAGER), ("read", UNCACHED))]  # fmt: skip
    outcomes = 0
    for step in range(10):
        host, inside = edits(dice, 8), edits(dice, 6)
        for project, _, _ in both:
            lib.execute(["sh", "-c", host], cwd=project)
        lib.settle()
        plans = [plan_of(project, env) for project, _, env in both]
        assert plans[0] == plans[1], (seed, step, host)
        reports = [run(project, inside, name, env) for project, name, env in both]
        assert reports[0] == reports[1], (seed, step, host, inside)
        outcomes += len(reports[0]) > 0
    assert outcomes > 2, "nothing happened that could differ"
    assert len(caches(home)) == 2, "one project has caches, of the start and of the end"


def reads(project, env=None):
    """How many directories of s/ a run reads; stubs change the top of the project."""
    log = project.parent / "log"
    log.unlink(missing_ok=True)
    argv = ["strace", "-f", "-y", "-e", "trace=getdents64", "-o", log, lib.program(), "run", "-y",
            "--", "true"]  # fmt: skip
    lib.succeeded(lib.execute(list(map(str, argv)), cwd=project, env=env))
    # A call that another process interrupts has two lines; the first has the path.
    pattern = rf"getdents64\(\d+<({re.escape(str(project))}/s[^>]*)>"
    return len(set(re.findall(pattern, log.read_text())))


def make_tree(project, files):
    for top in [project / "s" / str(i) for i in range(30)]:
        lib.make_dir(top)
        for i in range(files):
            lib.make_file(top / str(i))
    lib.settle()


def test_unchanged_directories_are_not_read(place, home):
    """By the real rules: of an ordinary tree, when what was changed is some seconds old."""
    project = lib.make_dir(place / "ordinary")
    lib.make_dir(project / "s")
    make_tree(project, 8)
    made = time.time()
    lib.wait_for(lambda: time.time() > made + 4, "the tree to be old enough")
    assert reads(project) == 31
    assert len(caches(home)) == 2
    assert reads(project) == 0
    lib.make_file(project / "s/7/new")
    assert reads(project) == 1


def test_small_projects_have_no_cache(project, home):
    lib.succeeded(lib.box("true"))
    assert not caches(home)


@pytest.fixture
def tree(place):
    """One that is remembered as soon as the clock has ticked, with EAGER."""
    project = lib.make_dir(place / "tree")
    lib.make_dir(project / "s")
    make_tree(project, 3)
    return project


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_other_file_systems_have_no_cache(place, tree, home):
    """Only those whose ctime is known to be the kernel's own are remembered."""
    other = lib.make_dir(place / "other")
    subprocess.run(["mount", "-t", "ramfs", "none", other], check=True)
    try:
        subprocess.run(["cp", "-a", tree, other / "tree"], check=True)
        lib.settle()
        lib.succeeded(lib.box("true", cwd=other / "tree", env=EAGER))
        assert not caches(home)
    finally:
        subprocess.run(["umount", "-l", other], check=True)
    lib.succeeded(lib.box("true", cwd=tree, env=EAGER))
    assert caches(home), "the control"


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "directory", "link", "writable"])
def test_damaged_cache_is_not_used(tree, home, how):
    """It costs time and nothing else."""
    reads(tree, EAGER)
    assert reads(tree, EAGER) == 0, "the control"
    for file in caches(home):
        whole = file.read_bytes()
        if how == "cut":
            file.write_bytes(whole[:-100])
        elif how == "flipped":
            at = len(whole) // 2  # in the entries: the key and the root at the end are compared
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        elif how == "empty":
            file.write_bytes(b"")
        elif how == "writable":
            file.chmod(0o666)
        else:
            file.rename(file.with_name("aside"))
            if how == "directory":
                lib.make_dir(file)
            else:
                os.symlink("aside", file)
    assert reads(tree, EAGER) == 31
    if how != "directory":
        assert reads(tree, EAGER) == 0, "it was written again"


def test_another_filter_has_another_cache(tree):
    """What a pattern asks for later is found, although it did not matter before."""
    lib.make_file(tree / "s/7/own.secret")
    lib.settle()
    reads(tree, EAGER)
    assert reads(tree, EAGER) == 0
    done = lib.carrel("plan", "--json", "--hide", "*.secret", "--", "true", cwd=tree, env=EAGER)
    assert b"s/7/own.secret" in lib.succeeded(done)


# What a box does to be overlooked: each after a run that has remembered the directory.
DISGUISES = {
    "times set back": "echo x >s/7/.envrc; touch -d 2001-01-01 s/7/.envrc s/7",
    "an old directory renamed": "mv s/7/kept s/7/.vscode",
    "an old file renamed": "mv s/7/old s/7/.envrc",
    "in place": "echo x >>s/8/.envrc",
    "in place, times set back": "echo x >>s/8/.envrc; touch -d 2001-01-01 s/8/.envrc",
    "replaced by its own name": "cp -p s/8/.envrc s/8/n; mv s/8/n s/8/.envrc",
    "a link": "mv s/8 s/81; mkdir s/8; ln -s ../81/.envrc s/8/.envrc",
    "a directory exchanged": "mv s/7 s/71; mv s/9 s/7; echo x >s/7/.envrc; touch -r s/71 s/7",
    "a hard link": "ln s/7/old s/7/.envrc",
    "below an unreadable one": "mkdir s/7/d; echo x >s/7/d/.envrc; chmod 0 s/7/d",
}


@pytest.mark.parametrize("script", DISGUISES.values(), ids=DISGUISES)
def test_disguised_changes_are_reported(tree, script):
    """By the run that made them, whose walk remembers the one before; not by the next."""
    lib.make_dir(tree / "s/7/kept")
    lib.make_file(tree / "s/7/old", "old\n")
    lib.make_file(tree / "s/8/.envrc", "old\n")
    lib.settle()
    quiet = lib.box("true", cwd=tree, env=EAGER)
    assert not quiet.stderr, quiet
    assert reads(tree, EAGER) == 0, "all of it is remembered"
    done = lib.box("sh", "-c", script, cwd=tree, env=EAGER)
    lib.succeeded(done)
    assert b"look at them before you go on" in done.stderr, done
    assert re.search(rb"  s/\d+/", done.stderr), done


def test_a_change_at_the_very_end_is_found_by_the_next_walk(tree):
    """A directory that is as young as the walk is read again, however soon."""
    script = "touch s/3/a; touch s/3/b; rm s/3/a"
    for i in range(20):
        name = f"s/3/.env.{i}"
        lib.succeeded(lib.box("sh", "-c", script, cwd=tree, env=EAGER))
        lib.make_file(tree / name)
        plan = lib.carrel("plan", "--json", "--", "true", cwd=tree, env=EAGER)
        assert f"{tree}/{name}".encode() in lib.succeeded(plan), i


def test_two_boxes_of_one_project_keep_one_cache(tree, home):
    boxes = [lib.start_box("sh", "-c", f"echo >up{i}; until [ -e go ]; do sleep 0.01; done",
                           cwd=tree, env=EAGER) for i in (0, 1)]  # fmt: skip
    for i in (0, 1):
        lib.wait_for((tree / f"up{i}").exists, "the box to start")
    lib.make_file(tree / "go")
    for process in boxes:
        assert process.wait(timeout=lib.TIMEOUT) == 0
    assert len(caches(home)) == 2 and reads(tree, EAGER) == 0


def test_gc_removes_the_caches_of_what_is_gone(place, home):
    """Also those that nobody reads any more; not what is no cache, or being written."""
    gone, here, away = (lib.make_dir(place / name) for name in ("gone", "here", "mnt"))
    away = lib.make_dir(away / "disk")
    known = {}
    for project in (gone, here, away):
        before = set(caches(home))
        lib.succeeded(lib.box("true", cwd=project, env=EAGER))
        known[project] = set(caches(home)) - before
        assert known[project], "there is a cache"
    (walks,) = {path.parent for path in caches(home)}
    older = lib.make_file(walks / ("0" * 32 + "-start"), "carrel walk 1\n" + "x" * 200)
    broken = lib.make_file(walks / ("1" * 32 + "-start"), next(iter(known[here])).read_bytes()[:-1])
    young, old = (lib.make_file(walks / f"x.{i}", "half") for i in range(2))
    os.utime(old, (0, 0))
    lib.make_dir(walks / "directory")
    (walks / "link").symlink_to(older)
    everything = set(caches(home))
    lib.remove(gone)
    lib.remove(away)
    useless = known[gone] | {older, broken, old}
    done = lib.succeeded(lib.carrel("gc", "-n")).decode()
    assert f"{len(useless)} unused caches" in done and set(caches(home)) == everything
    assert json.loads(lib.succeeded(lib.carrel("gc", "--json")))["walks"] == len(useless)
    assert set(caches(home)) == everything - useless
    assert "cache" not in lib.succeeded(lib.carrel("gc")).decode()
    assert young.exists()
