"""`carrel instances` and `carrel gc`: list, remove, set and import what is kept for projects.

The verdict is taken on the disk.
"""

import fcntl
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
import pytest
from instance_files import (
    CLIENT,
    identity,
    killed_before_each,
    listed,
    locked,
    output,
    vanish,
)


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
    "limits.usd=2": "limits.usd: this version of carrel cannot do it",
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
    "limits.usd": '{"limits": {"pids": 9,\n "usd": 2}}',
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
    path = lib.make_file(one / "settings.json", '{"limits": {"usd": 2}}')
    at_start = lib.carrel("plan", "mine").stderr.decode().splitlines()[0]
    path.unlink()
    done = lib.carrel("instances", "set", "limits.usd=2")
    lib.failed_clearly(done, at_start.split(": ", 2)[2])
    assert not path.exists()


def test_of_two_wrong_settings_one_is_taken_back(kept, one):
    lib.make_file(one / "settings.json", '{"limits": {"usd": 2, "tokens": 3}}')
    output("instances", "set", "limits.usd=")
    assert settings(one) == {"limits": {"tokens": 3}}
    lib.failed_clearly(lib.carrel("instances", "set", "model=x=", "model="), "limits.tokens")


def test_a_limit_of_the_manifest_is_not_the_settings(kept, one):
    """What is wrong in the user's own file is said to be there."""
    path = lib.make_file(lib.current.home / ".config/carrel/carrel.json",
                         '{"mine":\n{"limits": {"usd": 2}}}')  # fmt: skip
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
