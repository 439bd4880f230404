"""Steps that fail, and processes that are killed at every one of them: nothing stays behind.

The test process is made the reaper of orphans, so whatever a run leaves alive becomes its
child and is seen. Traces in the file system and among the mounts are compared before and
after. A network namespace lives as long as a process, a mount or a descriptor holds it, so
these two looks cover it.
"""

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import time

import arena
import lib
import pytest

PR_SET_CHILD_SUBREAPER = 36
BOXES = {"none": [], "host": ["--network", "host"], "nest": ["--nest"]}
# A user of our own, so that what he leaves in /tmp is known to be his.
UID = 20000 + os.getpid() % 10000 if lib.ROOT else lib.UID


def engine_steps():
    done = subprocess.run(
        [lib.program(), "check", "--json"], stdout=subprocess.PIPE, check=False, timeout=60
    )
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return json.loads(done.stdout)["steps"]
    return []


def pytest_generate_tests(metafunc):
    if "step" in metafunc.fixturenames:
        metafunc.parametrize("step", engine_steps())


def test_steps_are_listed():
    """`carrel check --json` names the steps; without them nothing here is tested."""
    assert len(engine_steps()) >= 5


@pytest.fixture
def alone(project, home, place, tool):
    """The host before the run, and the promise that it is the same after it."""
    for path in (project, home):
        subprocess.run(["chown", "-R", f"{UID}:{UID}", path], check=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield Alone(place)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class Alone:
    def __init__(self, place):
        self.place, self.ran = place, place / "project" / "ran"
        self.processes = set(arena.descendants(os.getpid()))
        self.traces = arena.traces(place, UID)

    def start(self, *steps, opts=(), **env):
        return lib.start_box("./attack", *arena.words(steps), opts=opts, env=env, uid=UID)

    def left(self):
        """What is left: processes (reaped when they are dead) and traces."""
        found = []
        for pid in set(arena.descendants(os.getpid())) - self.processes:
            if arena.state(pid) == "Z":
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            elif arena.state(pid):
                found.append((pid, arena.state(pid), arena.status(pid).get("Name")))
        return found, arena.traces(self.place, UID) ^ self.traces

    def assert_nothing_left(self, seconds=10):
        end = time.monotonic() + seconds
        while any(left := self.left()):
            assert time.monotonic() < end, left
            time.sleep(0.02)


def finish(process):
    out, err = process.communicate(timeout=lib.TIMEOUT)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


# ---- a step fails -------------------------------------------------------------------------


@pytest.mark.parametrize("opts", BOXES.values(), ids=BOXES)
def test_step_fails(alone, step, opts):
    """Each step of the engine fails once: exit 125, the step's name, no command, no trace."""
    done = finish(alone.start("put ran yes", opts=opts, CARREL_TEST_FAIL=step))
    # A failure to execute has a code of its own.
    lib.failed_clearly(done, "on purpose", code=126 if step == "exec" else 125)
    assert not alone.ran.exists()
    alone.assert_nothing_left()


def test_no_step_fails(alone):
    """The control: an unknown step changes nothing, and the command's traces are seen."""
    done = finish(alone.start("put ran yes", CARREL_TEST_FAIL="no-such-step"))
    assert done.returncode == 0, done
    lib.wait_for(lambda: not alone.left()[0], "the last process to go", 10)
    assert alone.left()[1] == {str(alone.ran)}


# ---- killed at a step ---------------------------------------------------------------------


def hold_at(alone, step):
    """A box whose init waits before a step, and init; the command has not run."""
    process = alone.start("put ran yes", CARREL_TEST_STOP=step)
    lib.wait_for(lambda: arena.in_box(process.pid) or process.poll() is not None, "init", 20)
    time.sleep(0.15)  # more than a whole start takes: now it stands at the step
    assert process.poll() is None, process.communicate()
    assert not alone.ran.exists()
    return process, arena.in_box(process.pid)[0]


@pytest.mark.parametrize("who", ["supervisor", "init", "both"])
def test_killed_at_step(alone, step, who):
    """SIGKILL of carrel, of the box's init, or of both, while init stands still at a step."""
    process, init = hold_at(alone, step)
    if who != "supervisor":
        os.kill(init, signal.SIGKILL)
    if who != "init":
        process.kill()
    done = finish(process)
    codes = {"supervisor": [-signal.SIGKILL], "init": [125], "both": [-signal.SIGKILL, 125]}
    assert done.returncode in codes[who], done
    assert not alone.ran.exists()
    alone.assert_nothing_left()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_interrupted_at_step(alone, step, sig):
    """The user loses patience while the box is being built."""
    process, _ = hold_at(alone, step)
    process.send_signal(sig)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    assert process.returncode in (128 + sig, -sig, 125), process.returncode
    finish(process)
    assert not alone.ran.exists()
    alone.assert_nothing_left()


# ---- killed while it runs -----------------------------------------------------------------

ENDS = {
    "SIGKILL of the supervisor": ("supervisor", signal.SIGKILL),
    "SIGTERM of the supervisor": ("supervisor", signal.SIGTERM),
    "SIGHUP of the supervisor": ("supervisor", signal.SIGHUP),
    "SIGINT of the supervisor": ("supervisor", signal.SIGINT),
    "SIGQUIT of the supervisor": ("supervisor", signal.SIGQUIT),
    "SIGKILL of init": ("init", signal.SIGKILL),
    "SIGKILL of the command": ("command", signal.SIGKILL),
    "SIGSEGV of the supervisor": ("supervisor", signal.SIGSEGV),
}


@pytest.mark.parametrize("who, sig", ENDS.values(), ids=ENDS)
def test_killed_while_running(alone, who, sig):
    """With background children in sessions of their own that ignore every signal."""
    process = alone.start("linger 5", "put ran yes", "sleep 60")
    arena.await_file(process, alone.ran)
    lib.wait_for(lambda: len(arena.in_box(process.pid)) >= 7, "the children")
    init, command = arena.in_box(process.pid)[:2]
    assert all(alone.left()), "the looks that must find nothing afterwards find nothing now"
    os.kill({"supervisor": process.pid, "init": init, "command": command}[who], sig)
    done = finish(process)
    expected = {"init": (125, 137), "command": (137,)}.get(who, (128 + sig, -sig))
    assert done.returncode in expected, done
    alone.ran.unlink()
    alone.assert_nothing_left()


def test_killed_at_once(alone):
    """Killed before it could begin anything."""
    process = alone.start("put ran yes")
    process.kill()
    finish(process)
    alone.ran.unlink(missing_ok=True)
    alone.assert_nothing_left()


def test_killed_at_any_moment(alone):
    """SIGKILL after a random time, many times over, within and after the start."""
    chance = random.Random(1)
    killed = ended = 0
    for _ in range(40):
        process = alone.start("linger 2", "sleep 5")
        time.sleep(chance.uniform(0, 0.06))
        process.kill()
        finish(process)
        killed += process.returncode == -signal.SIGKILL
        ended += process.returncode == 0
        alone.assert_nothing_left()
    assert killed > 20, (killed, ended)


def test_stub_is_gone_after_a_kill(alone):
    """What stands in for an absent protected name is removed even when carrel is killed."""
    project = alone.place / "project"
    with arena.held(project=project, uid=UID) as process:
        names = (".claude", ".vscode")
        during = [name for name in names if os.path.lexists(project / name)]
        process.kill()
        process.wait()
    assert during, "nothing stands in for absent names: this test has no object"
    alone.assert_nothing_left()


def test_whole_group_is_killed(alone):
    """The terminal's hang-up and a job's kill reach the whole process group at once."""
    process = alone.start("linger 3", "put ran yes", "sleep 60")
    arena.await_file(process, alone.ran)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)
    alone.ran.unlink()
    alone.assert_nothing_left()
