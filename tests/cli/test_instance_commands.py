"""`carrel instances` and `carrel gc`: what is kept for projects, looked at and removed.

The instances are built by hand, as state/instance.h lays them out, so that they can be as wrong
as no box would leave them. The verdict is taken on the disk.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import time

import lib
import pexpect
import pytest
from test_sessions import CHANGES, killed_before

CLIENT = "claude/claude"


def identity(root):
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


class State:
    """The instances of the test user, and his ~/.claude."""

    def __init__(self, place):
        self.place = place
        self.home = lib.current.home
        self.claude = lib.make_dir(self.home / ".claude")
        self.all = self.home / ".local" / "state" / "carrel" / "instances"
        for path in (self.all.parents[2], self.all.parents[1], self.all.parents[0], self.all):
            lib.make_dir(path, mode=0o700)

    def instance(self, root, layers=("000001",), client=CLIENT):
        path = self.all / identity(root)
        lib.make_dir(path, mode=0o700)
        lib.make_file(path / "version", "1\n", mode=0o600)
        lib.make_file(path / "project-root", os.fsencode(root), mode=0o600)
        part = path / client
        for name in ("own/projects", "layers", "sessions"):
            lib.make_file(part / name / ".made").unlink()
        lib.make_file(part / "own" / "history.jsonl")
        for name in ("busy", "change"):
            lib.make_file(part / name, mode=0o600)
        for name in layers:
            lib.make_dir(part / "layers" / name)
        return path

    def layer(self, instance, name="000001"):
        return instance / CLIENT / "layers" / name

    def session(self, instance, number="000001"):
        path = instance / CLIENT / "sessions" / number
        lib.make_file(path / "upper" / ".made").unlink()
        lib.make_dir(path / "work")
        self.begin(path)
        return path

    def begin(self, session, *notes):
        """Its notes: see overlay/layers.h. Without them no box has begun."""
        (session / "begun").unlink(missing_ok=True)
        (session / "begun").symlink_to("\n".join(["on 000001", *notes, ""]))
        if lib.ROOT:
            os.chown(session / "begun", lib.UID, lib.GID, follow_symlinks=False)


@pytest.fixture
def kept(place):
    return State(place)


@pytest.fixture
def one(kept, project):
    """The instance of the project."""
    return kept.instance(project)


def whiteout(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))
    lib.give(path)


def opaque(path):
    os.setxattr(path, "user.overlay.opaque", b"y")


@contextlib.contextmanager
def locked(*paths, how=fcntl.LOCK_EX):
    """As a box that runs holds them."""
    fds = [os.open(path, os.O_RDONLY) for path in paths]
    for fd in fds:
        fcntl.flock(fd, how)
    yield
    for fd in fds:
        os.close(fd)


def output(*args, **how):
    return lib.succeeded(lib.carrel(*args, **how)).decode()


def listed(**how):
    return {row["id"]: row for row in json.loads(output("instances", "--json", **how))}


def vanish(place, name):
    """A root that is gone, beside one that is there."""
    root = place / "work" / name
    lib.make_file(place / "work" / "another" / "file")
    return root


# ---- list -------------------------------------------------------------------------------


def test_list_is_empty_at_first(place):
    done = lib.carrel("instances")
    assert (done.returncode, done.stdout) == (0, b"") and b"nothing is kept" in done.stderr
    assert output("instances", "list", "--json") == "[]\n"
    assert not (lib.current.home / ".local").exists()


def test_list(kept, one, project):
    lib.make_file(one / CLIENT / "own" / "projects" / "big", bytes(300000))
    now = int(time.time())
    os.utime(one / CLIENT / "own", (now, now - 100))
    for name in ("layers", "sessions"):
        os.utime(one / CLIENT / name, (now, now - 5000))
    os.utime(one, (now, now - 5000))
    row = listed()[identity(project)]
    assert row["root"] == str(project) and row["dir"] == str(one)
    assert row["harnesses"] == ["claude"] and row["problem"] is None
    assert 300000 < row["bytes"] < 400000
    assert row["used"] == now - 100 and row["running"] == 0
    text = output("instances")
    for word in (identity(project), str(project), "claude", time.strftime("%Y-%m-%d")):
        assert word in text
    assert text == output("instances", "list")
    head, row = text.splitlines()
    assert head.split() == ["ID", "CLIENTS", "SIZE", "LAST", "USED", "BOXES", "PROJECT"]
    assert row.split()[-2:] == ["none", str(project)]
    assert [head.index(word) for word in ("CLIENTS", "LAST USED", "BOXES")] == [
        row.index(word) for word in ("claude", time.strftime("%Y-"), "none")
    ]


def test_list_has_words_and_breaks_no_path(kept, place):
    root = lib.make_dir(place / "a-rather-long-name-of-a-project-with-more-than-one-word")
    lib.remove(kept.instance(root) / "claude")
    (row,) = output("instances").splitlines()[1:]
    assert row.split()[1] == "none" and not {"-", "?"} & set(row.split())
    child = lib.terminal([lib.program(), "instances"], size=(24, 80))
    assert lib.finish(child) == 0
    head, row, path = child.before.decode().splitlines()
    assert max(len(head), len(row)) <= 80 and path == f"  {root}" and "PROJECT" not in head


def test_running_boxes_are_counted(kept, one, project):
    first, second = kept.session(one, "000001"), kept.session(one, "000002")
    kept.session(one, "000003")  # of one that died
    with locked(first, second):
        assert listed()[identity(project)]["running"] == 2
        assert "2 running" in output("instances")
    assert listed()[identity(project)]["running"] == 0


def spoiled(kept, how):
    path = kept.instance(kept.place / "gone" / how)
    if how == "version":
        lib.make_file(path / "version", "2\n")
    elif how == "long version":
        lib.make_file(path / "version", "1\n" * 100)
    elif how == "no root":
        (path / "project-root").unlink()
    elif how == "root of another":
        lib.make_file(path / "project-root", "/somewhere/else")
    elif how == "no directory":
        lib.remove(path)
        lib.make_file(path, "x")
    elif how == "a link":
        lib.remove(path)
        path.symlink_to(kept.place)
    elif how == "another name":
        path = path.rename(path.parent / "something")
    return path


SPOILED = {
    "version": "another version",
    "long version": "another version",
    "no root": "has no project-root",
    "root of another": "another's",
    "no directory": "no directory",
    "a link": "no directory",
    "another name": "no instance",
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_no_instance_is_left_alone(kept, how):
    """By everybody: it is mentioned, and nothing else happens."""
    path = spoiled(kept, how)
    lib.make_file(kept.place / "work" / "x")
    good = kept.instance(vanish(kept.place, "good"))  # the control: this one goes
    before = {n: e for n, e in lib.snapshot(kept.all).items() if os.fsencode(good.name) not in n}
    assert SPOILED[how] in listed()[path.name]["problem"]
    done = lib.carrel("gc")
    assert done.returncode == 0 and SPOILED[how] in done.stderr.decode(), done.stderr
    assert not good.exists() and lib.snapshot(kept.all) == before
    if how != "another name":
        for word in ("diff", "reset"):
            lib.failed_clearly(lib.carrel("instances", word, path.name), SPOILED[how])
        lib.failed_clearly(lib.carrel("instances", "set", path.name, "model=x"), SPOILED[how])
    assert lib.snapshot(kept.all) == before


def test_ids_may_be_short(kept, place):
    roots = [lib.make_dir(place / f"r{i}") for i in range(17)]  # two begin alike
    for root in roots:
        kept.instance(root)
    ids = sorted(identity(root) for root in roots)
    twice = next(a[0] for a, b in zip(ids, ids[1:]) if a[0] == b[0])
    lib.failed_clearly(lib.carrel("instances", "diff", twice), "more than one")
    for name in ids:
        n = next(n for n in range(1, 17) if sum(i.startswith(name[:n]) for i in ids) == 1)
        assert output("instances", "reset", "-y", name[:n]).startswith(f"removed {name}")
        ids = [i for i in ids if i != name]
    lib.failed_clearly(lib.carrel("instances", "diff", "0"), "no instance '0'")


# ---- the state directory itself ---------------------------------------------------------


WRONG = {
    "a link": (["instances"], "link"),
    "a file": (["instances"], "link, or a file"),
    "world-writable": (["instances"], "written by others"),
    "group-writable": (["instances"], "written by others"),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_state_directory_is_refused(kept, how):
    path = kept.instance(vanish(kept.place, "gone"))
    if how == "a link":
        elsewhere = kept.place / "elsewhere"
        kept.all.rename(elsewhere)
        kept.all.symlink_to(elsewhere)
    elif how == "a file":
        kept.all.rename(kept.place / "elsewhere")
        lib.make_file(kept.all)
    else:
        kept.all.chmod(0o777 if how == "world-writable" else 0o770)
    before = lib.snapshot(kept.place)
    for args in (["gc"], ["gc", "-n"], ["instances"], ["instances", "reset", "-y", path.name]):
        lib.failed_clearly(lib.carrel(*args), str(kept.all), WRONG[how][1])
    assert lib.snapshot(kept.place) == before
    if "writable" in how:  # the control
        kept.all.chmod(0o700)
        output("gc")
        assert not path.exists()


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_a_state_directory_of_somebody_else_is_refused(kept):
    path = kept.instance(vanish(kept.place, "gone"))
    os.chown(kept.all, 4321, 4321)
    kept.all.chmod(0o755)
    for args in (["gc"], ["instances"]):
        lib.failed_clearly(lib.carrel(*args), "another user", "4321")
    lib.give(kept.all)
    os.chown(path, 4321, 4321)
    path.chmod(0o755)
    done = lib.carrel("gc")
    assert done.returncode == 0 and b"another user" in done.stderr and path.exists()
    lib.give(path)
    output("gc")
    assert not path.exists()


def test_a_state_directory_that_cannot_be_written(kept):
    path = kept.instance(vanish(kept.place, "gone"))
    kept.all.chmod(0o500)
    if not lib.ROOT or lib.UID != 0:
        done = lib.carrel("gc")
        assert done.returncode == 125 and b"Permission denied" in done.stderr, done
        assert (path / "project-root").exists()
        assert path.name in output("instances")
    kept.all.chmod(0o700)
    output("gc")
    assert not path.exists()


# ---- gc ---------------------------------------------------------------------------------


def test_gc_removes_exactly_the_vanished(kept, place, project):
    here = [kept.instance(project), kept.instance(lib.make_dir(place / "with\nnewline"))]
    gone = [kept.instance(vanish(place, name)) for name in ("a", "b\n\x1b[31m", "c/d/e")]
    before = lib.snapshot(kept.all)
    dry = lib.carrel("gc", "--dry-run")
    assert lib.snapshot(kept.all) == before
    assert b"3 removed" in dry.stdout and dry.stdout.startswith(b"dry run")
    done = lib.carrel("gc")
    assert done.returncode == 0
    for path in gone:
        assert not path.exists()
        assert f"removed {path.name}".encode() in done.stderr
        assert f"would remove {path.name}".encode() in dry.stderr
    assert b"\x1b" not in done.stderr + dry.stderr + lib.carrel("instances").stdout
    assert all((path / "project-root").exists() for path in here)
    assert sorted(os.listdir(kept.all)) == sorted(path.name for path in here)
    assert output("gc") == "0 removed (0), 2 kept\n"


def test_gc_json(kept, place):
    path = kept.instance(vanish(place, "gone"))
    kept.instance(lib.make_dir(place / "here"))
    lib.make_dir(kept.all / "strange")
    lib.make_file(kept.all / ".gone-0123-1-0" / "x")
    for args, dry in ((["-n"], True), ([], False)):
        said = json.loads(output("gc", "--json", *args))
        assert said["dryRun"] is dry and said["others"] == 1 and said["leftovers"] == 1
        assert [row["id"] for row in said["removed"]] == [path.name]
        assert said["removed"][0]["root"] == str(place / "work" / "gone")
        assert [row["id"] for row in said["kept"]] == ["strange"]
        assert path.exists() is dry


def test_gc_forgets_what_was_agreed_to(kept, place):
    gone, here = kept.instance(vanish(place, "gone")), kept.instance(lib.make_dir(place / "here"))
    agreed = [lib.make_file(kept.all.parent / "agreed" / path.name, "x" * 64 + "\n")
              for path in (gone, here)]  # fmt: skip
    output("gc", "-n")
    assert all(path.exists() for path in agreed)
    output("gc")
    assert [path.exists() for path in agreed] == [False, True]


def test_gc_keeps_what_may_only_be_unmounted(kept, place):
    """Its parent is empty, cannot be looked into, or is nothing that the user could change."""
    empty = kept.instance(lib.make_dir(place / "mnt") / "disk")
    closed = lib.make_dir(place / "closed")
    hidden = kept.instance(closed / "project")
    closed.chmod(0)
    foreign = kept.instance(pathlib.Path("/usr/no-such-project"))
    linked = kept.instance(place / "link" / "project")
    (place / "link").symlink_to(place / "not-mounted")
    done = lib.carrel("gc")
    assert done.returncode == 0 and done.stdout == b"0 removed (0), 4 kept\n"
    for path in (empty, hidden, foreign, linked):
        assert path.exists() and path.name.encode() in done.stderr
    assert b"not mounted" in done.stderr
    closed.chmod(0o755)
    lib.make_file(place / "mnt" / "x")
    lib.make_file(closed / "x")
    (place / "link").unlink()
    output("gc")
    assert [path.exists() for path in (empty, hidden, foreign, linked)] == [0, 0, 1, 0]


LOCKS = {
    "session": lambda path: path / CLIENT / "sessions" / "000001",
    "busy": lambda path: path / CLIENT / "busy",
    "change": lambda path: path / CLIENT / "change",
    "instance": lambda path: path,
}


@pytest.mark.parametrize("lock", LOCKS)
def test_gc_keeps_what_runs(kept, place, lock):
    path = kept.instance(vanish(place, "gone"))
    kept.session(path)
    before = lib.snapshot(path)
    with locked(LOCKS[lock](path), how=fcntl.LOCK_EX if lock == "session" else fcntl.LOCK_SH):
        done = lib.carrel("gc")
        assert done.returncode == 0 and path.name.encode() in done.stderr, done
        assert b"kept" in done.stderr and b"0 removed" in done.stdout
        lib.failed_clearly(lib.carrel("instances", "reset", "-y", path.name), path.name)
        assert lib.snapshot(path) == before
    output("gc")
    assert not path.exists()


def plant(path, bait):
    """What a box could leave behind so that removing it does harm elsewhere."""
    layer = path / CLIENT / "layers" / "000001"
    own = path / CLIENT / "own" / "projects"
    for where in (layer, own):
        (where / "dir").symlink_to(bait)
        (where / "file").symlink_to(bait / "file")
        (where / "up").symlink_to("../../../../../..")
        lib.make_file(where / "closed" / "x")
        os.mkfifo(where / "fifo")
        for name in ("dir", "file", "up", "fifo"):
            lib.give(where / name)
        (where / "closed").chmod(0)
    deep = own
    for _ in range(50):
        deep = deep / "d"
        lib.make_dir(deep)
    shutil.rmtree(path / CLIENT / "layers" / "000002", ignore_errors=True)
    (path / CLIENT / "layers" / "000002").symlink_to(bait)
    (path / "claude" / "other").symlink_to(bait)
    (path / "harness").symlink_to(bait)


def test_gc_follows_no_links(kept, place):
    bait = lib.make_file(place / "bait" / "file", "mine").parent
    lib.make_file(bait / "own" / "projects" / "x", "mine")
    path = kept.instance(vanish(place, "gone"))
    plant(path, bait)
    before = lib.snapshot(bait)
    output("instances", "diff", path.name)
    output("gc")
    assert not path.exists()
    assert lib.snapshot(bait) == before


def test_gc_can_be_killed_at_any_time(kept, place):
    """There is a whole instance or one that the next gc removes; the others are untouched."""
    here = kept.instance(lib.make_dir(place / "here"))
    lib.make_file(here / CLIENT / "own" / "projects" / "x", "mine")
    before = lib.snapshot(here)
    rng = random.Random(1)
    killed = whole = 0
    for number in range(40):
        path = kept.instance(vanish(place, f"gone{number}"))
        for i in range(150):
            lib.make_file(path / CLIENT / "own" / "projects" / str(i))
        files = len(lib.snapshot(path))
        process = lib.start("gc")
        time.sleep(rng.random() * 0.012)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        if path.exists():
            whole += 1
            assert len(lib.snapshot(path)) == files
        output("gc")
        assert os.listdir(kept.all) == [here.name]
    assert lib.snapshot(here) == before
    assert killed > 5, (killed, whole)


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_gc_and_set_on_a_full_disk(kept, place, project):
    """Removing needs no room; what cannot be written leaves what was there."""
    small = place / "small"
    small.mkdir()
    script = """
        mount -t tmpfs -o size=256k,mode=755 tmpfs "$1"
        cp -a "$2/." "$1/" && chown "$uid:$uid" "$1"
        dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null
        run() { HOME=$3 XDG_STATE_HOME=$1 setpriv --reuid "$uid" --regid "$uid" --clear-groups \
            "$4" "${@:6}"; echo "exit $?"; }
        cd "$5"
        run "$@" instances set model=new
        run "$@" instances set
        run "$@" gc
        run "$@" instances set model=newer
    """
    gone = kept.instance(vanish(place, "gone"))
    lib.make_file(gone / CLIENT / "own" / "projects" / "x", bytes(20000))
    here = kept.instance(project)
    lib.make_file(here / "settings.json", '{"model": "old"}', mode=0o600)
    argv = ["unshare", "-m", "env", f"uid={lib.UID}", "bash", "-c", script, "bash", small,
            kept.all.parents[1], kept.home, lib.program(), project]  # fmt: skip
    done = lib.execute([str(word) for word in argv], user=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert out.count("exit 125") == 1 and out.count("exit 0") == 3, (out, err)
    assert "No space left" in err and f"removed {gone.name}" in err
    assert '"model": "old"' in out and '"model": "newer"' in out and '"new"' not in out


# ---- diff -------------------------------------------------------------------------------


def changes(*args, **how):
    return {row["name"]: row for row in json.loads(output("instances", "diff", "--json", *args))}


def test_diff(kept, one, project):
    layer = kept.layer(one)
    for name, text in [("same", "s\n"), ("changed", "1\n2\n"), ("deleted", "d\n"),
                       ("below/kept", "k"), ("hidden/old", "o"), ("hidden/both", "b"),
                       ("dir/x", ""), ("linked", "l")]:  # fmt: skip
        lib.make_file(kept.claude / name, text)
    lib.make_file(layer / "same", "s\n")
    lib.make_file(layer / "changed", "1\n3\n")
    whiteout(layer / "deleted")
    whiteout(layer / "never-there")
    lib.make_file(layer / "below" / "new", "n")
    lib.make_file(layer / "hidden" / "both", "b")
    opaque(layer / "hidden")
    whiteout(layer / "dir")
    (layer / "linked").symlink_to("/etc/passwd")
    lib.make_dir(layer / "empty")  # clients make such for later: no change of anything
    lib.make_file(layer / "binary", b"\0\1\2")
    lib.make_file(layer / "big", b"x\n" * 800000)
    found = {name.removeprefix("~/.claude/"): row for name, row in changes().items()}
    assert {name: row["change"] for name, row in found.items()} == {
        "changed": "changed", "deleted": "deleted", "below/new": "added",
        "hidden/old": "deleted", "dir": "deleted", "linked": "changed",
        "binary": "added", "big": "added",
    }  # fmt: skip
    assert found["changed"]["diff"] == "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    assert found["linked"]["boxes"] == {"type": "link", "link": "/etc/passwd"}
    assert found["binary"]["diff"] is None and found["big"]["diff"] is None
    text = output("instances", "diff")
    assert "    -2\n    +3\n" in text and "root:" not in text
    assert "a file of 1.5M" in text and "a link to /etc/passwd" in text


def test_diff_of_nothing(kept, one):
    done = lib.carrel("instances", "diff")
    assert (done.returncode, done.stdout) == (0, b"") and b"no box has changed" in done.stderr
    assert output("instances", "diff", "--json") == "[]\n"


def test_diff_sees_all_layers_as_one(kept, project):
    one = kept.instance(project, layers=("000001", "000002", "000003"))
    lib.make_file(kept.claude / "user", "u")
    for number, name, text in [(1, "a", "old"), (2, "a", "new"), (1, "b", "b"), (1, "user", "x"),
                               (2, "d/x", "x"), (1, "d/y", "y")]:  # fmt: skip
        lib.make_file(kept.layer(one, f"00000{number}") / name, text)
    whiteout(kept.layer(one, "000003") / "b")
    whiteout(kept.layer(one, "000003") / "user")
    opaque(kept.layer(one, "000002") / "d")
    found = changes()
    assert {name: row["change"] for name, row in found.items()} == {
        "~/.claude/a": "added", "~/.claude/d/x": "added", "~/.claude/user": "deleted",
    }  # fmt: skip
    assert "+new" in found["~/.claude/a"]["diff"]


def test_diff_of_sessions(kept, one):
    """What a dead one left is seen without what was put there; a running one's is not."""
    dead, runs = kept.session(one, "000001"), kept.session(one, "000002")
    unborn = kept.session(one, "000003")
    (unborn / "begun").unlink()
    lib.make_file(unborn / "upper" / "of-no-box", "x")
    lib.make_file(dead / "upper" / "put.json", "{}")
    kept.begin(dead, f"{hashlib.sha256(b'{}').hexdigest()} put.json")
    lib.make_file(dead / "upper" / "left", "x")
    lib.make_file(runs / "upper" / "running", "x")
    with locked(runs):
        assert set(changes()) == {"~/.claude/left"}
        assert b"1 running" in lib.carrel("instances", "diff").stderr
    assert set(changes()) == {"~/.claude/left", "~/.claude/running"}
    lib.make_file(dead / "upper" / "put.json", '{"mcpServers": {}}')
    assert "~/.claude/put.json" in changes()


def test_diff_is_of_the_configuration(kept, one):
    """Not what a client writes down of its sessions, nor a file that every box gets anew."""
    lib.make_dir(one / CLIENT / "hiding")
    whiteout(one / CLIENT / "hiding" / "plans")
    for name in ("plans/one.md", ".claude.json", "skills/plans/SKILL.md"):
        lib.make_file(kept.layer(one) / name, "x\n")
    assert set(changes()) == {"~/.claude/skills/plans/SKILL.md"}
    assert "plans/one.md" not in output("instances", "diff")
    lib.failed_clearly(lib.carrel("instances", "take", ".claude.json"), "anew", "~/.claude.json")
    assert taking("plans/one.md", answers="y")[0] == 0
    assert (kept.claude / "plans" / "one.md").read_text() == "x\n"
    lib.remove(kept.layer(one) / "skills")
    assert b"no box has changed" in lib.carrel("instances", "diff").stderr


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_diff_leaves_out_what_clients_note_about_themselves(kept, project, client):
    """Unless somebody asks for it by name; and only at the top."""
    noted = {"codex": ".sandbox_migration", "gemini": "state.json"}[client]
    layer = kept.instance(project, client=f"{client}/{client}") / client / client / "layers/000001"
    for name in ("installation_id", noted, f"below/{noted}"):
        lib.make_file(layer / name, "x\n")
    assert set(changes()) == {f"~/.{client}/below/{noted}"}
    output("instances", "drop", "-y", f"~/.{client}/{noted}")
    assert not (layer / noted).exists() and (layer / "installation_id").exists()


LOUD = ["settings.json", "settings.local.json", "hooks/x.sh", "CLAUDE.md", "skills/a/CLAUDE.md",
        "plugins/a/b.json", "commands/x.md", "agents/x.md", "skills/x/SKILL.md", ".mcp.json",
        "output-styles/x.md", "workflows/x.js", "local/node_modules/x.js", "loop.md", ".env",
        "agent-memory/a/MEMORY.md", "policies/x.toml", "trustedFolders.json", "system.md",
        "trusted_hooks.json", "package.json", "node_modules/x/y.js", "mode/x.md", "modes/x.md",
        "skill/x/SKILL.md"]  # fmt: skip


def test_diff_is_loud(kept, one):
    layer = kept.layer(one)
    for name in LOUD:
        lib.make_file(layer / name, "x\n")
    lib.make_file(layer / "program", "x\n", mode=0o755)
    (layer / "link").symlink_to("/x")
    lib.make_file(layer / "todos" / "x.json", "x\n")
    found = changes()
    for name in [*LOUD, "program", "link"]:
        assert found[f"~/.claude/{name}"]["danger"], name
    assert found["~/.claude/todos/x.json"]["danger"] is None
    text = output("instances", "diff")
    assert "! added    ~/.claude/settings.json\n  ! settings: hooks" in text
    assert "  added    ~/.claude/todos/x.json\n    @@" in text


def test_diff_cannot_drive_the_terminal(kept, one):
    lib.make_file(kept.layer(one) / "a\x1b[2J\nb", "\x1b[31mred\n\u202e\n")
    lib.make_file(kept.layer(one) / "esc", "x\n")
    done = lib.carrel("instances", "diff")
    assert b"\x1b" not in done.stdout and b"\\x1b[2J\\nb" in done.stdout


def test_diff_shows_no_login(kept, one):
    lib.make_file(kept.claude / ".credentials.json", '{"token": "the-users-secret"}')
    lib.make_file(kept.layer(one) / ".credentials.json", '{"token": "the-boxes-secret"}')
    for args in ([], ["--json"]):
        text = output("instances", "diff", *args)
        assert ".credentials.json" in text and "secret" not in text


def test_diff_changes_nothing(kept, one, project):
    lib.make_file(kept.layer(one) / "x", "x")
    lib.make_dir(kept.layer(one) / "closed", mode=0)
    kept.session(one)
    before = lib.snapshot(lib.current.home)
    assert set(changes()) == {"~/.claude/x", "~/.claude/closed"}
    assert lib.snapshot(lib.current.home) == before
    lib.failed_clearly(lib.carrel("instances", "diff", cwd=kept.place), "nothing is kept for")


# ---- take -------------------------------------------------------------------------------


def taking(*args, answers, **how):
    child = lib.terminal([lib.program(), "instances", "take", *args], **how)
    for answer in answers:
        child.expect_exact("? [y/N] ")
        child.sendline(answer)
    code = lib.finish(child)
    return code, child.before.decode()


def test_take(kept, one):
    layer = kept.layer(one)
    lib.make_file(kept.claude / "settings.json", "old\n", mode=0o600)
    lib.make_file(layer / "settings.json", "new\n", mode=0o6755)
    lib.make_file(layer / "hooks" / "x.sh", "hook\n", mode=0o777)
    lib.make_file(kept.claude / "deleted", "d")
    whiteout(layer / "deleted")
    lib.make_file(layer / "other", "o")
    child = lib.terminal([lib.program(), "instances", "take", "settings.json"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert "-old" in shown and "+new" in shown and "! settings: hooks" in shown
    assert (kept.claude / "settings.json").read_text() == "old\n"
    child.sendline("y")
    assert lib.finish(child) == 0
    assert (kept.claude / "settings.json").read_text() == "new\n"
    assert stat.S_IMODE((kept.claude / "settings.json").stat().st_mode) == 0o755
    assert not (layer / "settings.json").exists()
    code, _ = taking("~/.claude/hooks/x.sh", kept.claude / "deleted", answers="yy")
    assert code == 0
    assert (kept.claude / "hooks" / "x.sh").read_text() == "hook\n"
    assert stat.S_IMODE((kept.claude / "hooks" / "x.sh").stat().st_mode) == 0o755
    assert not (kept.claude / "deleted").exists() and not os.path.lexists(layer / "deleted")
    assert set(changes()) == {"~/.claude/other"}
    assert sorted(os.listdir(kept.claude)) == ["hooks", "settings.json"]


@pytest.mark.parametrize("answer", ["n", "", "yep"])
def test_only_yes_takes(kept, one, answer):
    lib.make_file(kept.layer(one) / "a", "x")
    lib.make_file(kept.layer(one) / "b", "x")
    before = lib.snapshot(kept.home)
    code, said = taking("a", "b", answers=[answer, answer])
    assert code == 125 and "not taken over" in said
    assert lib.snapshot(kept.home) == before
    code, _ = taking("a", "b", answers=[answer, "y"])
    assert code == 125 and os.listdir(kept.claude) == ["b"]


def test_a_short_name_is_a_file_not_an_id(kept, one):
    """Whatever the instance's id begins with."""
    for name in one.name[:3], "other":
        lib.make_file(kept.layer(one) / name, "x")
    assert taking(one.name[:3], "other", answers=["y", "y"])[0] == 0
    assert sorted(os.listdir(kept.claude)) == sorted([one.name[:3], "other"])
    lib.make_file(kept.layer(one) / "more", "x")
    assert taking(one.name[:4], "more", answers=["y"], cwd=kept.place)[0] == 0


def test_take_needs_a_person(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    lib.failed_clearly(lib.carrel("instances", "take", "a"), "no terminal")
    lib.failed_clearly(lib.carrel("instances", "take", "-y", "a"), "takes no --yes")
    lib.failed_clearly(lib.carrel("instances", "take", "nope"), "nope", "no box has changed")
    lib.failed_clearly(lib.carrel("instances", "take", "../../x"), "no box has changed")
    lib.failed_clearly(lib.carrel("instances", "take"), "which file")
    assert os.listdir(kept.claude) == []


def test_take_is_refused_while_a_box_runs(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    with locked(kept.session(one)):
        lib.failed_clearly(lib.carrel("instances", "take", "a"), "runs")
    child = lib.terminal([lib.program(), "instances", "take", "a"])
    child.expect_exact("? [y/N] ")
    with locked(one / CLIENT / "busy", how=fcntl.LOCK_SH):  # it begins while we think
        child.sendline("y")
        child.expect_exact("runs, and its layers are in use")
        assert lib.finish(child) == 125
    assert os.listdir(kept.claude) == [] and (kept.layer(one) / "a").exists()
    assert taking("a", answers="y")[0] == 0


def links(kept, how):
    if how == "the file":
        lib.make_file(kept.place / "bait", "mine")
        (kept.claude / "dir").mkdir()
        lib.give(kept.claude / "dir")
        (kept.claude / "dir" / "a").symlink_to(kept.place / "bait")
    else:
        lib.make_file(kept.place / "baits" / "a", "mine")
        (kept.claude / "dir").symlink_to(kept.place / "baits")


@pytest.mark.parametrize("how", ["the file", "the way"])
def test_take_goes_through_no_link(kept, one, how):
    links(kept, how)
    lib.make_file(kept.layer(one) / "dir" / "a", "box\n")
    before = lib.snapshot(kept.place)
    for word, answers in (("dir/a", "y"), ("dir", "")):
        code, said = taking(word, answers=answers if how == "the way" else "")
        assert code == 125 and ("link" in said or "plain" in said), said
    after = lib.snapshot(kept.place)
    assert {n: e for n, e in before.items() if b"bait" in n} == {
        n: e for n, e in after.items() if b"bait" in n
    }
    assert os.path.islink(kept.claude / "dir") or os.path.islink(kept.claude / "dir" / "a")


@pytest.mark.parametrize("side", ["box", "user"])
def test_take_takes_what_was_shown(kept, one, side):
    lib.make_file(kept.claude / "a", "old\n")
    lib.make_file(kept.layer(one) / "a", "new\n")
    child = lib.terminal([lib.program(), "instances", "take", "a"])
    child.expect_exact("? [y/N] ")
    lib.make_file((kept.layer(one) if side == "box" else kept.claude) / "a", "evil\n")
    child.sendline("y")
    child.expect_exact("has changed in the meantime")
    assert lib.finish(child) == 125
    assert (kept.claude / "a").read_text() == ("old\n" if side == "box" else "evil\n")


def put_strange(path, what):
    lib.make_file(path.parent / "plain", "x")
    if what == "a link":
        path.symlink_to("/etc/passwd")
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "too big":
        os.truncate(lib.make_file(path), (64 << 20) + 1)
    if not path.is_symlink():
        lib.give(path)
    else:
        os.chown(path, lib.UID, lib.GID, follow_symlinks=False)


@pytest.mark.parametrize("what", ["a link", "a pipe", "too big"])
def test_take_of_what_is_no_plain_file_is_refused(kept, one, what):
    """By its name, and in a directory that is asked for: of that nothing is taken."""
    put_strange(kept.layer(one) / "dir" / "deep" / "strange", what)
    before = lib.snapshot(kept.home)
    for name in ("dir/deep/strange", "dir/deep", "dir"):
        code, said = taking(name, answers="")
        assert code == 125 and ("only plain files" in said or "too large" in said), said
        assert "strange" in said
    assert lib.snapshot(kept.home) == before
    assert taking("dir/deep/plain", answers="y")[0] == 0, "the control"


UNSEEN = "a directory that cannot be looked into: what is in it is not listed"


@pytest.mark.parametrize("mode", [0, 0o400, 0o100, 0o300])
def test_a_directory_that_cannot_be_looked_into(kept, one, mode):
    """It is said, not passed over; and nothing of it, or around it, is taken."""
    lib.make_file(kept.claude / "both/closed/file", "old")
    for top in ("new", "both"):
        lib.make_file(kept.layer(one) / top / "closed/file", "x")
        lib.make_file(kept.layer(one) / top / "beside", "x")
        (kept.layer(one) / top / "closed").chmod(mode)
    found, before = changes(), lib.snapshot(kept.claude)
    assert {name: row["change"] for name, row in found.items()} == {
        "~/.claude/new/closed": "added", "~/.claude/new/beside": "added",
        "~/.claude/both/closed": "changed", "~/.claude/both/beside": "added",
    }  # fmt: skip
    for top in ("new", "both"):
        row = found[f"~/.claude/{top}/closed"]
        assert row["boxes"] == {"type": "directory", "unseen": True}
        assert row["danger"] == "it may hold anything"
        for name in (top, f"{top}/closed", f"{top}/closed/file"):
            code, said = taking(name, answers="")
            assert code == 125, said
            assert f"{top}/closed: a directory that cannot be looked into" in said
    text = output("instances", "diff")
    assert f"({UNSEEN})" in text and f"(a directory → {UNSEEN})" in text
    assert lib.snapshot(kept.claude) == before
    assert taking("new/beside", answers="y")[0] == 0, "the control"
    for top in ("new", "both"):
        (kept.layer(one) / top / "closed").chmod(0o700)
    assert {name for name in changes() if "closed" in name} == {
        "~/.claude/new/closed/file", "~/.claude/both/closed/file"
    }  # fmt: skip
    assert taking("new", answers="y")[0] == 0
    assert (kept.claude / "new/closed/file").read_text() == "x"


def test_a_directory_that_is_closed_further_down(kept, project):
    """The newest layer's can be read; what an older one has is not seen, and that is said."""
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "dir/old", "x")
    lib.make_file(kept.layer(one, "000002") / "dir/new", "x")
    assert set(changes()) == {"~/.claude/dir/old", "~/.claude/dir/new"}, "the control"
    (kept.layer(one, "000001") / "dir").chmod(0)
    assert set(changes()) == {"~/.claude/dir", "~/.claude/dir/new"}
    assert changes()["~/.claude/dir"]["boxes"]["unseen"] is True


def test_take_of_a_directory(kept, one):
    """A skill that an agent made: all is shown, loudly, then asked once."""
    layer = kept.layer(one)
    lib.make_file(layer / "skills/new/SKILL.md", "a skill\n")
    lib.make_file(layer / "skills/new/scripts/run.sh", "#!/bin/sh\n", mode=0o6777)
    lib.make_dir(layer / "skills/new/empty", mode=0o777)
    lib.make_file(layer / "skills/newer/SKILL.md", "another\n")
    lib.make_file(kept.claude / "skills/new/gone", "x")
    lib.make_file(kept.claude / "skills/new/kept", "k")
    whiteout(layer / "skills/new/gone")
    child = lib.terminal([lib.program(), "instances", "take", "~/.claude/skills/new/"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert shown.count("a skill that sessions of yours would use") == 4
    assert "+a skill" in shown and "#!/bin/sh" in shown and "deleted" in shown
    assert "Make these 4 changes in" in shown and "newer" not in shown
    child.sendline("y")
    assert lib.finish(child) == 0
    new = kept.claude / "skills/new"
    assert sorted(os.listdir(new)) == ["SKILL.md", "empty", "kept", "scripts"]
    assert stat.S_IMODE((new / "scripts/run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((new / "scripts").stat().st_mode) == 0o755
    assert stat.S_IMODE((new / "empty").stat().st_mode) == 0o755
    assert set(changes()) == {"~/.claude/skills/newer/SKILL.md"}
    assert not (kept.claude / "skills/newer").exists()


def test_take_of_a_directory_is_refused_whole(kept, one):
    """Something in it is another while the person reads: nothing of it is taken."""
    for name in ("a", "b", "c"):
        lib.make_file(kept.layer(one) / "dir" / name, name)
    child = lib.terminal([lib.program(), "instances", "take", "dir"])
    child.expect_exact("? [y/N] ")
    lib.make_file(kept.layer(one) / "dir" / "c", "evil")
    child.sendline("y")
    child.expect_exact("dir/c has changed in the meantime")
    assert lib.finish(child) == 125
    assert os.listdir(kept.claude) == []
    assert taking("dir", answers="n")[0] == 125 and os.listdir(kept.claude) == []
    assert taking("dir", answers="y")[0] == 0
    assert sorted(os.listdir(kept.claude / "dir")) == ["a", "b", "c"]


def test_take_where_a_directory_is_in_the_way(kept, one):
    """The user has a file, the box a directory of that name; and the other way round."""
    lib.make_file(kept.claude / "one", "file")
    lib.make_file(kept.layer(one) / "one" / "x", "x")
    lib.make_file(kept.claude / "two" / "x", "x")
    lib.make_file(kept.layer(one) / "two", "file")
    before = lib.snapshot(kept.claude)
    for name in ("one", "two"):
        code, said = taking(name, answers="")
        assert code == 125 and "only plain files" in said, said
    assert lib.snapshot(kept.claude) == before


def test_take_does_not_wait_for_a_lock(kept, one):
    """A box that sees the directory, even read-only, could hold it for ever."""
    lib.make_file(kept.layer(one) / "new", "x")
    directory = os.open(kept.claude, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    code, said = taking("new", answers="y")
    assert code == 125 and "locked its directory" in said, said
    assert os.listdir(kept.claude) == []
    os.close(directory)
    assert taking("new", answers="y")[0] == 0 and os.listdir(kept.claude) == ["new"]


def test_take_of_what_a_dead_box_left(kept, project):
    """It is frozen first, and older layers do not show again."""
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "a", "1")
    lib.make_file(kept.layer(one, "000002") / "a", "2")
    lib.make_file(kept.session(one) / "upper" / "a", "3")
    assert taking(one.name[:8], "a", answers="y", cwd=kept.place)[0] == 0
    assert (kept.claude / "a").read_text() == "3"
    assert changes(one.name) == {}
    left = os.listdir(one / CLIENT / "sessions")
    assert [name for name in left if not name.startswith("rest-")] == []


def test_take_out_of_a_directory_that_hides(kept, one):
    """The next box must still see it."""
    lib.make_file(kept.claude / "d" / "old", "x")
    lib.make_file(kept.layer(one) / "d" / "new", "n")
    opaque(kept.layer(one) / "d")
    assert taking("d/new", answers="y")[0] == 0
    assert (kept.claude / "d" / "new").read_text() == "n"
    assert (kept.layer(one) / "d" / "new").exists()
    assert set(changes()) == {"~/.claude/d/old"}


# ---- drop -------------------------------------------------------------------------------


def later(path, seconds=10):
    """As if it had been changed later than all else: two changes can fall into one tick."""
    now = time.time() + seconds
    os.utime(path, (now, now))
    return path


def test_what_the_user_changed_since_is_marked(kept, one):
    layer = kept.layer(one)
    for name in ("settings.json", "older", "alike", ".credentials.json"):
        lib.make_file(kept.claude / name, "of the user\n")
        lib.make_file(layer / name, "of the box\n")
    lib.make_file(layer / "alike", "of the user\n")
    lib.make_file(layer / "added", "of the box\n")
    assert not any(row["outdated"] for row in changes().values())
    later(layer / "older", 20)
    for name in ("settings.json", "alike", ".credentials.json"):
        later(kept.claude / name)
    assert [name for name, row in changes().items() if row["outdated"]] == [
        "~/.claude/settings.json"
    ]
    text = output("instances", "diff")
    assert text.count("changed by you since") == 1
    assert "    -of the user\n    +of the box\n" in text


@pytest.mark.parametrize("how", ["mtime", "ctime"])
def test_both_times_tell_what_was_changed_since(kept, one, how):
    """A file that was put there with its old mtime has a new ctime."""
    lib.make_file(kept.layer(one) / "a", "of the box\n")
    path = lib.make_file(kept.claude / "a", "of the user\n")
    os.utime(path, (0, 0))
    os.utime(kept.layer(one) / "a", (0, 1))
    if how == "mtime":
        assert changes()["~/.claude/a"]["outdated"] is False  # its ctime is the later one
        later(path)
    else:
        layered = os.stat(kept.layer(one) / "a").st_ctime_ns
        lib.wait_for(lambda: touched(path) > layered, "a later ctime")
    assert changes()["~/.claude/a"]["outdated"] is True


def touched(path):
    path.chmod(0o644)
    return os.stat(path).st_ctime_ns


def dropping(*args, answers, **how):
    child = lib.terminal([lib.program(), "instances", "drop", *args], **how)
    for answer in answers:
        child.expect_exact("? [y/N] ")
        child.sendline(answer)
    code = lib.finish(child)
    return code, child.before.decode()


def test_drop(kept, one):
    layer = kept.layer(one)
    lib.make_file(kept.claude / "settings.json", "of the user\n")
    lib.make_file(layer / "settings.json", "of the box\n")
    lib.make_file(kept.claude / "deleted", "d")
    whiteout(layer / "deleted")
    lib.make_file(layer / "skills" / "new" / "SKILL.md", "x")
    (layer / "skills" / "link").symlink_to(kept.claude)
    lib.make_dir(layer / "skills" / "closed", mode=0)
    lib.make_file(layer / "other", "o")
    users = lib.snapshot(kept.claude)
    child = lib.terminal([lib.program(), "instances", "drop", "settings.json"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert "-of the user" in shown and "+of the box" in shown
    child.sendline("y")
    assert lib.finish(child) == 0
    assert not (layer / "settings.json").exists()
    assert "yours" in output("instances", "drop", "-y", "~/.claude/deleted", "skills")
    assert os.listdir(layer) == ["other"] and set(changes()) == {"~/.claude/other"}
    assert lib.snapshot(kept.claude) == users


@pytest.mark.parametrize("answer", ["n", "", "yep"])
def test_only_yes_drops(kept, one, answer):
    lib.make_file(kept.layer(one) / "a", "x")
    before = lib.snapshot(kept.home)
    code, said = dropping("a", answers=[answer])
    assert code == 125 and "not dropped" in said
    assert lib.snapshot(kept.home) == before
    lib.failed_clearly(lib.carrel("instances", "drop", "a"), "no terminal", "-y")
    assert lib.snapshot(kept.home) == before
    assert dropping("a", answers="y")[0] == 0 and changes() == {}


def test_drop_is_refused_while_a_box_runs(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    with locked(kept.session(one)):
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", "a"), "runs")
    with locked(one / CLIENT / "busy", how=fcntl.LOCK_SH):  # one that just begins
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", "a"), "runs")
    assert (kept.layer(one) / "a").exists()
    output("instances", "drop", "-y", "a")
    assert not (kept.layer(one) / "a").exists()


def test_drop_goes_through_no_link(kept, one):
    bait = lib.make_file(kept.place / "baits" / "a", "mine")
    (kept.layer(one) / "dir").symlink_to(bait.parent)
    for name in ("dir/a", "../../../baits/a", "nope", "."):
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", name), "no box has changed")
    output("instances", "drop", "-y", "dir")
    assert bait.read_text() == "mine" and not os.path.lexists(kept.layer(one) / "dir")


def test_drop_drops_what_was_shown(kept, one):
    lib.make_file(kept.layer(one) / "a", "shown\n")
    child = lib.terminal([lib.program(), "instances", "drop", "a"])
    child.expect_exact("? [y/N] ")
    lib.make_file(kept.layer(one) / "a", "newer\n")
    child.sendline("y")
    child.expect_exact("has changed in the meantime")
    assert lib.finish(child) == 125
    assert (kept.layer(one) / "a").read_text() == "newer\n"


def test_drop_out_of_a_directory_that_hides(kept, one):
    """Without the box's file nobody's would be seen: the whole directory goes, or nothing."""
    lib.make_file(kept.claude / "d" / "a", "of the user")
    lib.make_file(kept.layer(one) / "d" / "a", "of the box")
    opaque(kept.layer(one) / "d")
    lib.failed_clearly(lib.carrel("instances", "drop", "-y", "d/a"), "replaced", "Drop d instead")
    assert (kept.layer(one) / "d" / "a").exists()
    output("instances", "drop", "-y", "d")
    assert not (kept.layer(one) / "d").exists() and changes() == {}


def test_drop_of_what_a_dead_box_left(kept, project):
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "a", "1")
    lib.make_file(kept.layer(one, "000002") / "a", "2")
    lib.make_file(kept.session(one) / "upper" / "a", "3")
    output("instances", "drop", "-y", one.name[:8], "a", cwd=kept.place)
    assert changes(one.name) == {}


# ---- reset ------------------------------------------------------------------------------


def test_reset_asks(kept, one, project):
    before = lib.snapshot(kept.all)
    lib.failed_clearly(lib.carrel("instances", "reset"), "no terminal")
    child = lib.terminal([lib.program(), "instances", "reset"])
    child.expect_exact("Remove it? [y/N] ")
    assert str(project) in child.before.decode()
    child.sendline("n")
    assert lib.finish(child) == 125
    assert lib.snapshot(kept.all) == before
    child = lib.terminal([lib.program(), "instances", "reset"])
    child.expect_exact("Remove it? [y/N] ")
    child.sendline("y")
    assert lib.finish(child) == 0
    assert os.listdir(kept.all) == []
    lib.failed_clearly(lib.carrel("instances", "reset", "-y"), "nothing is kept for")


# ---- set --------------------------------------------------------------------------------


def settings(path):
    return json.loads((path / "settings.json").read_text())


def test_set(kept, one):
    output("instances", "set", "model=opus", "env.A=1", "env.B=true", "limits.pids=100",
           "permissions.skipPrompts=false", 'tools=["Bash"]', "limits.scratch=2G",
           "network=open")  # fmt: skip
    assert settings(one) == {
        "model": "opus", "env": {"A": "1", "B": "true"}, "tools": ["Bash"], "network": "open",
        "limits": {"pids": 100, "scratch": "2G"}, "permissions": {"skipPrompts": False},
    }  # fmt: skip
    assert stat.S_IMODE((one / "settings.json").stat().st_mode) == 0o600
    output("instances", "set", one.name[:6], "network.allow=[\"a:443\"]", "env.A=", "model=",
           "limits.pids=", "limits.scratch=", "permissions.skipPrompts=", cwd=kept.place)  # fmt: skip
    assert settings(one) == {
        "env": {"B": "true"}, "tools": ["Bash"], "network": {"mode": "open", "allow": ["a:443"]},
    }  # fmt: skip
    assert json.loads(output("instances", "set")) == settings(one)
    done = lib.carrel("instances", "set", "model=")
    assert done.returncode == 0 and b"model was not set" in done.stderr


def test_set_makes_the_instance(place, project):
    output("instances", "set", "model=opus")
    row = listed()[identity(project)]
    assert row["root"] == str(project) and row["problem"] is None
    assert settings(pathlib.Path(row["dir"])) == {"model": "opus"}


def test_set_says_that_a_git_file_is_not_believed(place, project):
    """As all do who go by the working directory."""
    lib.make_file(place / "liar" / ".git", f"gitdir: {project}/.git\n")
    done = lib.carrel("instances", "set", "model=opus", cwd=place / "liar")
    assert done.returncode == 0 and b"does not point back" in done.stderr, done
    assert set(listed()) == {identity(place / "liar")}
    assert b"does not point back" in lib.carrel("instances", "diff", cwd=place / "liar").stderr
    assert lib.carrel("instances", "set", "model=opus", cwd=project).stderr == b""


BAD = {
    "modle=x": 'did you mean "model"',
    "limtis.pids=3": 'did you mean "limits"',
    "limits.pdis=3": 'did you mean "pids"',
    "limits.pids=many": "expected a whole number",
    "permissions.skipPrompts=perhaps": "expected true or false",
    "tools=Bash": "expected a list",
    "harness=clyde": "is none of",
    "env.1A=x": "a variable's name",
    'env={"A": 1}': "expected a string",
    "agents.x.model=y": "unknown key",
    "limits.usd=5": "limits.usd: this version of carrel cannot do it",
    "image=debian:12": "image: this version of carrel cannot do it",
    'network.allow=["exa mple"]': "network.allow: 'exa mple' has a space",
    'network.deny=["a:0"]': "network.deny: ",
    'network={"mode": "host", "allow": ["a"]}': "network.allow: with mode \"host\"",
    'network.ports=["x"]': 'network.ports: "x": expected PORT or HOST:BOX',
    "env.A=!./x": "env.A: the command ./x runs outside",
}


@pytest.mark.parametrize("word", BAD)
def test_set_is_checked(kept, one, word):
    output("instances", "set", "model=good")
    before = lib.snapshot(one)
    done = lib.carrel("instances", "set", "effort=high", word)
    assert done.returncode == 125 and BAD[word] in done.stderr.decode(), done.stderr
    assert lib.snapshot(one) == before
    output("instances", "set", "effort=high")
    assert settings(one) == {"model": "good", "effort": "high"}


# What a start would refuse, as a file that was not written by `set` may say it.
REFUSED = {
    "limits.usd": '{"limits": {"pids": 9,\n "usd": 5}}',
    "network.allow": '{"network":\n    {"allow": ["exa mple"]}}',
    "extends": '{"model": "x",\n"extends": "nobody"}',
    "tools": '{"model": "x",\n  "tools": ["Bash"]}',
    "modle": '{\n"modle": "x"}',
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_start_says_where_a_setting_is_wrong(kept, one, key):
    """The file, the line and the key as it stands there; and the words that take it back."""
    path = lib.make_file(one / "settings.json", REFUSED[key])
    done = lib.carrel("plan", "mine")
    lib.failed_clearly(done, f"{path}:2:", f": {key}: ")
    assert f"\n  `carrel instances set {key}=` takes it back.\n" in done.stderr.decode()
    output("instances", "set", f"{key}=")
    assert key.split(".")[-1] not in path.read_text()
    assert b"settings.json" not in lib.carrel("plan", "mine").stderr


def test_set_says_what_a_start_says(kept, one):
    path = lib.make_file(one / "settings.json", '{"limits": {"usd": 5}}')
    at_start = lib.carrel("plan", "mine").stderr.decode().splitlines()[0]
    path.unlink()
    done = lib.carrel("instances", "set", "limits.usd=5")
    lib.failed_clearly(done, at_start.split(": ", 2)[2])
    assert not path.exists()


def test_of_two_wrong_settings_one_is_taken_back(kept, one):
    lib.make_file(one / "settings.json", '{"limits": {"usd": 5, "tokens": 2}}')
    output("instances", "set", "limits.usd=")
    assert settings(one) == {"limits": {"tokens": 2}}
    lib.failed_clearly(lib.carrel("instances", "set", "model=x=", "model="), "limits.tokens")


def test_a_limit_of_the_manifest_is_not_the_settings(kept, one):
    """What is wrong in the user's own file is said to be there."""
    path = lib.make_file(lib.current.home / ".config/carrel/carrel.json",
                         '{"mine":\n{"limits": {"usd": 5}}}')  # fmt: skip
    output("instances", "set", "model=x")
    lib.failed_clearly(lib.carrel("plan", "mine"), f"{path}:2:20: mine.limits.usd: ")


def test_bad_words_make_nothing(place, project):
    assert lib.carrel("instances", "set", "modle=x").returncode == 125
    lib.failed_clearly(lib.carrel("instances", "set", "=x"), "KEY=VALUE")
    assert not (lib.current.home / ".local").exists()


def test_settings_that_are_broken_are_not_overwritten(kept, one):
    lib.make_file(one / "settings.json", '{"model": ')
    done = lib.carrel("instances", "set", "model=x")
    assert done.returncode == 125 and b"settings.json:1:" in done.stderr
    assert (one / "settings.json").read_text() == '{"model": '


def test_two_set_at_once(kept, one):
    many = [lib.start("instances", "set", f"env.V{i}={i}") for i in range(20)]
    for process in many:
        assert process.communicate()[1] == b"" and process.returncode == 0
    assert settings(one) == {"env": {f"V{i}": str(i) for i in range(20)}}


# ---- import -----------------------------------------------------------------------------


@pytest.fixture
def other(kept, project):
    """What another tool has kept, of the project and of one that is gone."""
    top = kept.home / ".claudebox"
    line = '{{"display": "{}", "project": "{}"}}\n'.format
    lib.make_file(top / "history.jsonl", line("one", project) + "no json\n" + line("x", "/else")
                  + line("two", project / "sub") + line("no", f"{project}-not"))  # fmt: skip
    ours = top / "projects" / identity(project)
    lib.make_file(ours / "project-root", f"{project}\n")
    lib.make_file(ours / "-the-project" / "a.jsonl", "talk\n", mode=0o600)
    lib.make_file(ours / "-the-project" / "memory" / "MEMORY.md", "memory\n")
    (ours / "-the-project" / "link").symlink_to("/etc/passwd")
    (ours / "-linked").symlink_to(kept.place)
    lib.make_file(top / "projects" / "0123456789abcdef" / "project-root", "/gone/for/ever")
    lib.make_file(top / "projects" / "fedcba9876543210" / "-x" / "a")
    lib.make_file(top / "projects" / "not-a-hash" / "project-root", str(project))
    return top


def test_import(kept, other, project):
    before = lib.snapshot(other)
    text = output("instances", "import", "--dry-run")
    assert "would copy -the-project" in text and "would copy 2 prompts" in text
    assert os.listdir(kept.all) == []
    text = output("instances", "import")
    assert f"{project} → {identity(project)}" in text and "copied -the-project" in text
    assert "/gone/for/ever: left alone" in text and "does not say which project" in text
    assert "left out: 2" in text
    own = kept.all / identity(project) / CLIENT / "own"
    assert (own / "projects" / "-the-project" / "a.jsonl").read_text() == "talk\n"
    assert (own / "projects" / "-the-project" / "memory" / "MEMORY.md").exists()
    assert not os.path.lexists(own / "projects" / "-the-project" / "link")
    assert os.listdir(own / "projects") == ["-the-project"]
    lines = [json.loads(line)["display"] for line in (own / "history.jsonl").open()]
    assert lines == ["one", "two"]
    assert os.listdir(kept.all) == [identity(project)]
    assert lib.snapshot(other) == before
    assert listed()[identity(project)]["problem"] is None


def test_import_overwrites_nothing(kept, one, other):
    own = one / CLIENT / "own"
    lib.make_file(own / "projects" / "-the-project" / "a.jsonl", "newer\n")
    lib.make_file(own / "history.jsonl", "ours\n")
    text = output("instances", "import", str(other))
    assert "there already: -the-project" in text and "there already: a history" in text
    assert (own / "projects" / "-the-project" / "a.jsonl").read_text() == "newer\n"
    assert (own / "history.jsonl").read_text() == "ours\n"


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_import_on_a_full_disk(kept, other, project, place):
    """A clear line and nothing by halves; with room it can be done again."""
    lib.make_file(other / "projects" / identity(project) / "-the-project" / "big", bytes(400000))
    small = lib.make_dir(place / "small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "s", small], check=True)
    try:
        lib.give(small)
        env = {"XDG_STATE_HOME": str(small)}
        done = lib.carrel("instances", "import", env=env)
        assert done.returncode == 125 and b"No space left on device" in done.stderr, done
        part = small / "carrel" / "instances" / identity(project) / CLIENT
        assert os.listdir(part / "own" / "projects") == [] and "import" not in os.listdir(part)
        subprocess.run(["mount", "-o", "remount,size=2m", small], check=True)
        assert "copied -the-project" in output("instances", "import", env=env)
        assert (part / "own" / "projects" / "-the-project" / "big").stat().st_size == 400000
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_import_of_nothing(kept, place):
    where = f"there is no {kept.home}/.claudebox/projects"
    lib.failed_clearly(lib.carrel("instances", "import"), "nothing to import: ", where)
    lib.failed_clearly(lib.carrel("instances", "import", "/no/such"), "/no/such/projects")
    lib.make_file(place / "file")
    done = lib.carrel("instances", "import", str(place / "file"))
    lib.failed_clearly(done, "/file/projects: Not a directory")
    lib.make_file(place / "o" / "projects" / "x")
    assert "nothing to import" in output("instances", "import", str(place / "o"))


def test_killed_import_can_be_done_again(kept, other, project):
    source = other / "projects" / identity(project) / "-the-project"
    for i in range(300):
        lib.make_file(source / f"{i}.jsonl", "talk\n")
    want = {path.name for path in source.iterdir()} - {"link"}
    own = kept.all / identity(project) / CLIENT / "own" / "projects" / "-the-project"
    killed = 0
    for i in range(15):
        process = lib.start("instances", "import")
        time.sleep(0.001 * i)
        process.kill()
        process.communicate()
        killed += process.returncode < 0
        if own.exists():
            assert {path.name for path in own.iterdir()} == want
        output("instances", "import")
        assert {path.name for path in own.iterdir()} == want
        names = os.listdir(kept.all / identity(project) / CLIENT)
        assert set(names) <= {"own", "change"}
        lib.remove(kept.all / identity(project))
    assert killed > 2


# ---- killed -----------------------------------------------------------------------------

# What changes something on the disk, besides what changes a session.
CALLS = [*CHANGES, "open", "openat", "ftruncate", "utimensat"]


def killed_before_each(*args, answers=""):
    """The command, killed before the first call of each kind, the second, until it ends."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    kills = 0
    for call in CALLS:
        number, code = 0, None
        while code != 0:
            number += 1
            child = lib.terminal(killed_before(call, number, [lib.program(), *args]))
            with contextlib.suppress(pexpect.EOF, OSError):
                for answer in answers:
                    child.expect_exact("? [y/N] ")
                    child.sendline(answer)
            code = lib.finish(child)
            assert code in (0, 128 + signal.SIGKILL), (call, number, child.before)
            kills += code != 0
            yield code == 0
    assert kills > 20, kills


def test_gc_killed_before_each_change(kept, place):
    """There is a whole instance, or one that the next gc removes."""
    here, root = kept.instance(lib.make_dir(place / "here")), vanish(place, "gone")
    before = lib.snapshot(here)

    def prepare():
        path = kept.instance(root)
        lib.make_file(path / CLIENT / "own" / "projects" / "x" / "y")
        return path, lib.snapshot(path)

    path, files = prepare()
    whole = half = 0
    for _ in killed_before_each("gc"):
        whole += path.exists()
        half += not path.exists() and len(os.listdir(kept.all)) > 1
        assert not path.exists() or lib.snapshot(path) == files
        output("gc")
        assert os.listdir(kept.all) == [here.name]
        path, files = prepare()
    assert lib.snapshot(here) == before
    assert whole and half, (whole, half)


def test_set_killed_before_each_change(kept, one):
    lib.make_file(one / "settings.json", '{"model": "old"}', mode=0o600)
    for done in killed_before_each("instances", "set", "model=new"):
        assert settings(one)["model"] in (("new",) if done else ("old", "new"))
        output("instances", "set", "model=old")
        assert settings(one) == {"model": "old"}
        assert set(os.listdir(one)) == {"version", "project-root", "settings.json", "claude"}


def test_import_killed_before_each_change(kept, other, project):
    own = kept.all / identity(project) / CLIENT / "own"
    want = {"a.jsonl", "memory"}
    lib.remove(other / "projects" / "fedcba9876543210")
    for _ in killed_before_each("instances", "import"):
        if (own / "projects" / "-the-project").exists():
            assert set(os.listdir(own / "projects" / "-the-project")) == want
        output("instances", "import")
        assert set(os.listdir(own / "projects" / "-the-project")) == want
        assert len((own / "history.jsonl").read_text().splitlines()) == 2
        assert set(os.listdir(own.parent)) <= {"own", "change"}
        assert set(os.listdir(own.parents[2])) == {"version", "project-root", "claude"}
        lib.remove(kept.all / identity(project))


def test_take_killed_before_each_change(kept, one):
    """The user's file is the old one or the new one, and nothing else is left beside it."""
    def prepare():
        lib.make_file(kept.claude / "hooks" / "x", "old\n", mode=0o755)
        lib.make_file(kept.layer(one) / "hooks" / "x", "new\n", mode=0o755)

    prepare()
    for _ in killed_before_each("instances", "take", "hooks", answers="y"):
        assert (kept.claude / "hooks" / "x").read_text() in ("old\n", "new\n")
        if changes():
            assert taking("hooks", answers="y")[0] == 0
        assert (kept.claude / "hooks" / "x").read_text() == "new\n"
        assert os.listdir(kept.claude / "hooks") == ["x"] and changes() == {}
        prepare()


# ---- mistakes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, word",
    [
        (["instances", "lsit"], "'list'"),
        (["instances", "list", "x"], "'x'"),
        (["instances", "diff", "a", "b"], "'b'"),
        (["instances", "set", "--json", "a=b"], "--json"),
        (["instances", "list", "-n"], "--dry-run"),
        (["gc", "x"], "'x'"),
    ],
)
def test_mistakes(place, args, word):
    lib.failed_clearly(lib.carrel(*args), word)


def test_no_home(place):
    for args in (["gc"], ["instances"]):
        done = lib.carrel(*args, env={"HOME": None, "XDG_STATE_HOME": None})
        lib.failed_clearly(done, "HOME")
