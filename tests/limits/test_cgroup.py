"""Limits of a box: each is held, or refused, or left out where it is optional.

Where the test user has a part of the cgroup v2 tree (./test.sh vm), memory, swap, processors,
weight and processes are held there. Elsewhere rlimits and tmpfs hold what they can, and the others
are errors. Each test runs on both kinds of machine, or says which one it is about. What a box is
kept from is judged on the host.
"""

import hashlib
import json
import os
import pathlib
import re
import signal

import lib
import pytest

ROOT = pathlib.Path("/sys/fs/cgroup")
MIB = 1 << 20
NEED_GROUP = {"memory": "64M", "swap": "4M", "cpus": "0.5", "io": "50"}
BOMB = """
import os, sys, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
        made += 1
except OSError as e:
    pass
print("made", made, flush=True)
sys.stdin.read()
"""
HOG = "x = bytearray(int(%d)); x[::4096] = b'x' * len(x[::4096]); print('took', flush=True); input()"


def own_group():
    """The group that the tests run in, if there is one tree of version 2."""
    line = pathlib.Path("/proc/self/cgroup").read_text().splitlines()[-1]
    return ROOT / line.removeprefix("0::/") if (ROOT / "cgroup.controllers").exists() else None


def delegated():
    """Where boxes have their groups; None: nowhere. Not asked of carrel."""
    own = own_group()
    if own is None or own == ROOT or own.parent.name.endswith(".slice"):
        return None
    test = ["sh", "-c", 'test -w "$0" && test -w "$0/cgroup.procs"', str(own.parent)]
    on = (own.parent / "cgroup.subtree_control").read_text().split()
    return own.parent if "memory" in on and lib.execute(test).returncode == 0 else None


@pytest.fixture
def parent():
    where = delegated()
    if where is None:
        pytest.skip("needs a delegated cgroup")
    return where


@pytest.fixture
def without():
    if delegated() is not None:
        pytest.skip("needs a machine without a delegated cgroup")


def groups(parent):
    return sorted(parent.glob("carrel-*"))


def planned(*opts):
    return json.loads(lib.succeeded(lib.carrel("plan", "--json", *opts, "--", "true")))


def opts_of(limits):
    return [f"--limit={name}={value}" for name, value in limits.items()]


def ready(*cmd, opts=(), mark=b"ready"):
    box = lib.start_box(*cmd, opts=opts)
    return box, lib.read_until(box.stdout, mark)


def listed(name):
    boxes = json.loads(lib.succeeded(lib.carrel("ps", "--json")))
    return next(box for box in boxes if box["name"] == name)


def echo(box, word):
    """Does the box still answer?"""
    box.stdin.write(word + b"\n")
    lib.read_until(box.stdout, word)


# ---- the plan ---------------------------------------------------------------------------


def test_the_plan_says_what_holds_each_limit(project):
    limits = planned("--limit=time=1h", "--limit=idle=10m")["limits"]
    held = limits["held"]
    assert held["time"] == held["idle"] == "supervisor"
    assert (held["files"], held["scratch"]) == ("rlimit", "tmpfs")
    if delegated():
        assert limits["cgroup"] == "beside"
        assert held["pids"] == held["memory"] == "cgroup"
        ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert 0 < limits["memory"] < ram, "a box may not take all memory"
    else:
        assert limits["cgroup"] == "none" and held["pids"] == "rlimit"
        assert limits["memory"] == 0 and "memory" not in held
    text = lib.succeeded(lib.carrel("plan", "--", "true")).decode()
    assert re.search(rf"\d+ processes \({held['pids']}\)", text)


@pytest.mark.parametrize("name", NEED_GROUP)
def test_a_limit_that_nothing_holds_is_an_error(project, without, name):
    limit = f"--limit={name}={NEED_GROUP[name]}"
    done = lib.box("touch", "started", opts=[limit])
    lib.failed_clearly(done, f"--limit {name} cannot be held here", f"{name}=VALUE?", "carrel check")
    assert not (project / "started").exists()
    done = lib.box("touch", "started", opts=[f"{limit}?"])
    lib.succeeded(done)
    assert (project / "started").exists() and f"{name} is not limited".encode() in done.stderr


def test_a_manifest_marks_a_limit_as_optional(project, without):
    for value, works in (("1G", False), ("1G?", True)):
        agent = {"harness": "command", "command": ["true"], "limits": {"memory": value, "cpus": "2?"}}
        text = json.dumps({"agents": {"a": agent}})
        lib.make_file(project / "carrel.json", text)
        trust = hashlib.sha256(text.encode()).hexdigest()
        done = lib.carrel("run", "-y", "a", env={"CARREL_TRUST": trust})
        assert (done.returncode == 0) is works, done.stderr
        assert b"memory" in done.stderr


def test_check_says_which_limits_are_held(project):
    found = json.loads(lib.carrel("check", "--json").stdout)["limits"]
    held = {limit["name"]: limit["by"] for limit in found}
    assert held["pids"] == ("cgroup" if delegated() else "rlimit")
    assert held["memory"] == held["cpus"] == ("cgroup" if delegated() else None)
    text = lib.carrel("check").stdout.decode()
    assert ("limits that cannot be held" in text) is (delegated() is None)


# ---- bombs ------------------------------------------------------------------------------


def sleepers(word):
    """Processes of the host whose command line has the word."""
    return len(lib.processes(word))


def test_a_fork_bomb_is_alone_with_it(project):
    other, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "other"])
    bomb, text = ready("python3", "-c", BOMB + "# fork-bomb-1", opts=["--limit=pids=30"], mark=b"\n")
    assert 0 < int(text.split()[-1]) < 30
    assert 0 < sleepers("fork-bomb-1") <= 33  # with carrel itself, whose arguments have it too
    echo(other, b"still-here")
    lib.succeeded(lib.box("true"))
    _, err = bomb.communicate(timeout=lib.TIMEOUT)
    if delegated():
        assert b"out of processes: the box reached its limit of 30" in err
    other.communicate(timeout=lib.TIMEOUT)


def test_a_bomb_below_its_limit_is_none(project):
    done = lib.box("python3", "-c", BOMB, opts=["--limit=pids=300"])
    assert lib.succeeded(done) == b"made 200\n" and b"out of processes" not in done.stderr


def test_a_memory_bomb_is_alone_with_it(project, parent):
    other, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "other"])
    opts = ["--limit=memory=64M", "--limit=swap=1"]
    done = lib.box("python3", "-c", HOG % (200 * MIB), opts=opts)
    assert done.returncode == 128 + signal.SIGKILL and b"took" not in done.stdout
    assert b"out of memory: the box reached its limit of 64 MiB" in done.stderr
    echo(other, b"still-here")
    done = lib.box("python3", "-c", HOG % (20 * MIB), opts=opts, input=b"\n")
    assert lib.succeeded(done) == b"took\n" and b"out of memory" not in done.stderr
    other.communicate(timeout=lib.TIMEOUT)
    lib.wait_for(lambda: not groups(parent), "all groups to be gone")


def test_scratch_counts_as_memory(project, parent):
    opts = ["--limit=memory=64M", "--limit=swap=1"]
    assert planned(*opts)["limits"]["scratch"] == 32 * MIB, "full before memory is"
    done = lib.box("sh", "-c", "cat /dev/zero >/tmp/x", opts=[*opts, "--limit=scratch=1G"])
    assert done.returncode != 0 and b"out of memory" in done.stderr


def test_a_disk_filler_is_alone_with_it(project):
    fill = "cat /dev/zero >/tmp/x; echo ready; exec cat"
    other, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "other"])
    box, _ = ready("sh", "-c", fill, opts=["--name", "full", "--limit=scratch=8M"])
    lib.succeeded(lib.box("sh", "-c", "echo x >/tmp/x"))
    echo(other, b"still-here")
    _, err = box.communicate(timeout=lib.TIMEOUT)
    assert b"out of space: the box has filled the 8 MiB" in err
    _, err = other.communicate(timeout=lib.TIMEOUT)
    assert b"out of space" not in err


def test_a_flood_of_output_is_alone_with_it(project):
    """Nobody reads it, so it stands still; a detached box keeps a bounded log."""
    flood, _ = ready("sh", "-c", "exec yes ready", opts=["--name", "flood"])
    other, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "other"])
    echo(other, b"still-here")
    other.communicate(timeout=lib.TIMEOUT)
    flood.kill()


# ---- time -------------------------------------------------------------------------------


def test_idle_time_ends_a_box(project):
    done = lib.box("sh", "-c", "echo begun; sleep 1000", opts=["--limit=idle=1s"])
    assert done.returncode != 0 and b"begun" in done.stdout
    assert b"the box was idle for 1 s" in done.stderr


def test_a_box_that_speaks_is_not_idle(project):
    speak = "while :; do printf x; sleep 0.2; done"
    done = lib.box("sh", "-c", speak, opts=["--limit=idle=3s", "--limit=time=4s"])
    assert b"the time limit of 4 s" in done.stderr and b"idle" not in done.stderr


def detach_and_wait(*cmd, opts):
    if not (pathlib.Path(lib.program()).parent / "carrel-screen").exists():
        pytest.skip("needs carrel-screen")
    lib.succeeded(lib.carrel("run", "-d", "-y", "--name", "gone", *opts, "--", *cmd))
    lib.carrel("wait", "gone")
    record = lib.current.home / ".local/state/carrel/boxes/gone/result.json"
    return json.loads(record.read_text())


def test_the_record_says_which_limit_was_reached(project):
    assert detach_and_wait("sleep", "1000", opts=["--limit=time=1s"])["limits"] == ["time"]
    assert detach_and_wait("true", opts=[])["limits"] == []
    fill = detach_and_wait("sh", "-c", "cat /dev/zero >/tmp/x", opts=["--limit=scratch=1M"])
    assert fill["limits"] == ["scratch"]


def test_the_record_says_that_memory_was_out(project, parent):
    opts = ["--limit=memory=32M", "--limit=swap=1"]
    result = detach_and_wait("python3", "-c", HOG % (100 * MIB), opts=opts)
    assert result["limits"] == ["memory"]


# ---- the group --------------------------------------------------------------------------


def test_the_group_has_what_the_plan_says(project, parent):
    limits = {**NEED_GROUP, "pids": "77"}
    box, _ = ready("sh", "-c", "echo ready; exec cat", opts=opts_of(limits))
    (group,) = groups(parent)
    files = {"memory.max": str(64 * MIB), "memory.swap.max": str(4 * MIB), "pids.max": "77",
             "cpu.max": "50000 100000", "io.weight": "default 50"}  # fmt: skip
    assert {name: (group / name).read_text().strip() for name in files} == files
    inside = {int(pid) for pid in (group / "box" / "cgroup.procs").read_text().split()}
    assert len(inside) == 2, "init and the command"
    assert box.pid not in inside, "the supervisor must not be killed for the box's memory"
    box.communicate(timeout=lib.TIMEOUT)
    lib.wait_for(lambda: not groups(parent), "its group to be gone")


def test_the_box_does_not_see_its_group(project, parent):
    """Its namespace begins below the group with the limits, which nothing shows it."""
    show = "cat /proc/self/cgroup; ls /sys/fs/cgroup 2>&1; mount -t cgroup2 c /tmp 2>&1; echo $?"
    text = lib.succeeded(lib.box("sh", "-c", show)).decode()
    assert text.startswith("0::/\n") and text.strip().splitlines()[-1] != "0"


def test_a_further_command_is_in_the_group(project, parent):
    opts = ["--name", "box", "--limit=memory=64M", "--limit=swap=1"]
    box, _ = ready("sh", "-c", "echo ready; exec cat", opts=opts)
    done = lib.carrel("exec", "box", "python3", "-c", HOG % (200 * MIB))
    assert done.returncode == 128 + signal.SIGKILL
    echo(box, b"still-here")
    _, err = box.communicate(timeout=lib.TIMEOUT)
    assert b"out of memory" in err


def test_a_killed_supervisor_leaves_a_group_that_the_next_removes(project, parent):
    box, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "box"])
    (group,) = groups(parent)
    os.kill(listed("box")["pid"], signal.SIGKILL)
    box.wait(timeout=lib.TIMEOUT)
    lib.wait_for(lambda: "populated 0" in (group / "cgroup.events").read_text(), "its box to end")
    assert groups(parent) == [group]
    lib.succeeded(lib.box("true"))
    lib.wait_for(lambda: not groups(parent), "both groups to be gone")


def test_a_start_that_fails_leaves_no_group(project, parent):
    done = lib.box("true", env={"CARREL_TEST_FAIL": "landlock"})
    assert done.returncode == 125
    lib.wait_for(lambda: not groups(parent), "its group to be gone")


# ---- ps ---------------------------------------------------------------------------------


def test_ps_shows_processor_time_and_memory(project):
    burn = "x = bytearray(b'x' * (48 << 20))\nfor i in range(3000000): pass\nprint('ready', flush=True)\ninput()"
    box, _ = ready("python3", "-c", burn, opts=["--name", "busy"])
    idle, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "calm"])
    busy, calm = listed("busy"), listed("calm")
    assert busy["memory"] > 48 * MIB > calm["memory"] > 0
    assert busy["cpu_seconds"] > 0.02 and isinstance(busy["cpu"], int)
    head, *rows = lib.succeeded(lib.carrel("ps")).decode().splitlines()
    assert head.split()[5:7] == ["CPU", "MEM"]
    cells = {row.split()[0]: row.split() for row in rows}
    assert re.fullmatch(r"\d+%", cells["busy"][5]) and re.fullmatch(r"\d+(\.\d)?M", cells["busy"][6])
    for one in (box, idle):
        one.communicate(b"\n", timeout=lib.TIMEOUT)


def test_ps_watches(project):
    box, _ = ready("sh", "-c", "echo ready; exec cat", opts=["--name", "seen"])
    watch = lib.start("ps", "--watch")
    for _ in range(2):
        lib.read_until(watch.stdout, b"seen")
    watch.terminate()
    assert watch.wait(timeout=lib.TIMEOUT) == -signal.SIGTERM
    box.communicate(timeout=lib.TIMEOUT)
