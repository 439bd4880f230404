"""carrel exec: one more command in a box that runs, confined as its own is."""

import json
import os
import signal

import lib
import pytest


@pytest.fixture
def name(project):
    """A box that does nothing, and waits."""
    out = lib.succeeded(lib.carrel("run", "-d", "-y", "--", "sleep", "100000"))
    yield out.decode().strip()
    lib.carrel("stop", "-t", "0", out.decode().strip())


@pytest.fixture
def beside(project):
    """Another box, which a terminal or a pipe holds."""
    with lib.start_box("sh", "-c", "echo up; exec sleep 1000", opts=("--name", "beside")) as box:
        lib.read_until(box.stdout, b"up")
        yield box
        box.kill()


def run(name, *cmd, **how):
    return lib.carrel("exec", name, *cmd, **how)


# ---- as with run ------------------------------------------------------------------------


def test_streams_and_exit_code(name):
    done = run(name, "sh", "-c", "cat; echo out; echo err >&2; exit 9", input=b"in\n")
    assert (done.returncode, done.stdout, done.stderr) == (9, b"in\nout\n", b"err\n")


def test_options_of_the_command_are_its_own(name):
    assert lib.succeeded(run(name, "echo", "-n", "--json", "-h")) == b"--json -h"


def test_much_of_it_passes(name):
    data = os.urandom(3_000_000)
    assert lib.succeeded(run(name, "cat", input=data)) == data


@pytest.mark.parametrize("cmd, code", [("no-such-program", 127), ("/etc", 126)])
def test_what_cannot_run(name, cmd, code):
    done = run(name, cmd)
    assert done.returncode == code
    assert cmd.encode() in done.stderr


def test_a_signal_is_the_exit_code(name):
    assert run(name, "sh", "-c", "kill -9 $$").returncode == 137


def test_on_a_terminal_it_has_one(name):
    child = lib.terminal([lib.program(), "exec", name, "sh", "-c",
                          "tty; stty size; read x; echo got $x; exit 4"], size=(33, 77))
    child.expect("/dev/pts/[0-9]+")
    child.expect_exact("33 77")
    child.send("word\r")
    child.expect_exact("got word")
    assert lib.finish(child) == 4


def test_ctrl_c_reaches_it_and_not_the_box(name):
    child = lib.terminal([lib.program(), "exec", name, "sh", "-c", "echo up; exec sleep 1000"])
    child.expect_exact("up")
    lib.wait_raw(child)
    child.send("\x03")
    assert lib.finish(child) == 130
    lib.succeeded(run(name, "true"))


def test_also_in_a_box_that_is_not_detached(beside):
    assert lib.succeeded(run("beside", "echo", "inside")) == b"inside\n"
    lib.failed_clearly(run("carrel-nobody", "true"), "no box named")
    lib.failed_clearly(lib.carrel("exec", "beside"), "CMD")


# ---- life and death ---------------------------------------------------------------------


def test_it_ends_with_its_client(name):
    with lib.start("exec", name, "sh", "-c", "echo up; exec sleep 7654321") as client:
        lib.read_until(client.stdout, b"up")
        client.send_signal(signal.SIGKILL)
    lib.wait_gone("7654321")
    lib.succeeded(run(name, "true"))


def test_it_ends_with_the_box(name):
    with lib.start("exec", name, "sh", "-c", "echo up; exec sleep 7654322") as client:
        lib.read_until(client.stdout, b"up")
        lib.succeeded(lib.carrel("stop", "-t", "0", name))
        assert client.wait(20) == 137
    lib.wait_gone("7654322")


def test_there_is_an_end_to_them(name):
    clients = [lib.start("exec", name, "sh", "-c", "echo up; exec sleep 1000") for _ in range(8)]
    for client in clients:
        lib.read_until(client.stdout, b"up")
    lib.failed_clearly(run(name, "true"), "8 commands")
    for client in clients:
        client.kill()
        client.wait()
    lib.wait_for(lambda: run(name, "true").returncode == 0, "room again")


# ---- the same walls ---------------------------------------------------------------------

LOOK = r"""
for n in user mnt pid ipc uts cgroup net; do readlink /proc/self/ns/$n; done
grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Seccomp_filters):' /proc/self/status
cat /proc/self/uid_map; ulimit -a; umask; pwd; env | sort | grep -v -E '^(_|SHLVL|OLDPWD)='
ls -l /proc/self/fd | wc -l; cat /proc/self/mountinfo
"""


def test_it_is_confined_as_the_first_command_is(project):
    """Namespaces, ids, capabilities, filters, limits, variables, descriptors, mounts."""
    out = lib.succeeded(lib.carrel(
        "run", "-d", "-y", "--limit", "files=500", "--limit", "pids=300", "--env", "WHO=me",
        "--", "sh", "-c", f"({LOOK}) < /dev/null > first 2> /dev/null; sleep 100000"))
    name = out.decode().strip()
    first = project / "first"
    lib.wait_for(lambda: first.exists() and b"/" in first.read_bytes()[-2000:], "the look")
    second = lib.succeeded(lib.carrel("exec", name, "sh", "-c", f"({LOOK}) > second 2> /dev/null"))
    ours, theirs = (project / "second").read_text(), first.read_text()
    lib.carrel("stop", "-t", "0", name)
    assert second == b""
    assert [x for x in ours.splitlines() if not x.startswith("TERM=")] == [
        x for x in theirs.splitlines() if not x.startswith("TERM=")]


ATTACKS = [
    "mount -t tmpfs none /tmp",
    "unshare -Ur true",
    "echo x > /etc/passwd",
    "echo x > {project}/.git/hooks/pre-commit",
    "ls {home}/secret",
    "cat /proc/1/environ",
    "ls -l /proc/1/fd/",
    "nsenter -t 1 -m true",
    "dmesg",
    "kill -9 {outside}",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_through_it(name, beside, home, project, attack):
    lib.make_file(home / "secret" / "file", "secret")
    command = attack.format(project=project, home=home, outside=beside.pid)
    inside, refused = run(name, "sh", "-c", command), lib.box("sh", "-c", command)
    assert inside.returncode != 0
    assert inside.returncode == refused.returncode
    assert not (project / ".git" / "hooks" / "pre-commit").exists()
    assert beside.poll() is None


def test_it_cannot_be_asked_for_from_a_box(name):
    done = lib.box(lib.program(), "exec", name, "touch", "escaped", opts=("--network", "host"))
    assert done.returncode != 0
    assert not (lib.current.cwd / "escaped").exists()
    assert json.loads(lib.carrel("ps", "--json").stdout)[0]["name"] == name
