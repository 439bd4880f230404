"""Boxes that nobody's terminal holds: -d, attach, logs, send, wait, stop, restart."""

import json
import os
import pathlib
import re
import signal
import time

import lib
import pexpect
import pytest

DETACH = "\x10\x11"


@pytest.fixture(autouse=True)
def ended(project):
    """No box outlives its test."""
    yield
    for box in json.loads(lib.carrel("ps", "--json").stdout):
        lib.carrel("stop", "-t", "0", box["name"])


def detached(*cmd, opts=(), **how):
    """The name of a box that runs the command."""
    out = lib.succeeded(lib.carrel("run", "-d", "-y", *opts, "--", *cmd, **how))
    return out.decode().strip()


def attach(name, *opts, size=(24, 80)):
    child = lib.terminal([lib.program(), "attach", *opts, name], size=size)
    lib.wait_raw(child)
    return child


def logs(name):
    return lib.succeeded(lib.carrel("logs", name)).decode()


def wait_logs(name, text):
    lib.wait_for(lambda: text in logs(name), f"{text!r} in the log")


def status(name):
    boxes = json.loads(lib.succeeded(lib.carrel("ps", "--json")))
    return next((box for box in boxes if box["name"] == name and box["running"]), None)


# ---- the life of a box ------------------------------------------------------------------


def test_the_name_is_printed_and_the_box_goes_on():
    name = detached("sh", "-c", "echo begun; read x; exit 7")
    assert name == "carrel-project"
    wait_logs(name, "begun")
    assert status(name)["state"] == "running"
    lib.succeeded(lib.carrel("send", name, "go"))
    assert lib.carrel("wait", name).returncode == 7
    assert status(name) is None


def test_a_start_that_fails_says_why():
    done = lib.carrel("run", "-d", "-y", "--", "no-such-program")
    assert done.returncode == 127
    assert b"no-such-program" in done.stderr
    assert done.stdout == b""


def test_it_survives_the_terminal_it_was_started_from():
    shell = lib.terminal(["bash", "--norc", "--noprofile", "-i"])
    shell.sendline(f"{lib.program()} run -d -y -- sh -c 'echo up; sleep 1000'")
    shell.expect_exact("carrel-project")
    os.kill(shell.pid, signal.SIGKILL)  # and SIGHUP to all of its session
    lib.finish(shell)
    wait_logs("carrel-project", "up")
    assert status("carrel-project")["state"] == "running"


def test_stop_asks_first_and_kills_then():
    name = detached("sh", "-c", "trap 'echo polite; exit 3' TERM; echo up; while :; do sleep 0.1; done")
    wait_logs(name, "up")
    lib.succeeded(lib.carrel("stop", name))
    assert lib.carrel("wait", name).returncode == 3
    assert "polite" in logs(name)
    name = detached("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done")
    wait_logs(name, "up")
    lib.succeeded(lib.carrel("stop", "-t", "1s", name))
    assert lib.carrel("wait", name).returncode == 137


def test_a_killed_supervisor_takes_its_box_and_is_not_taken_for_an_end():
    name = detached("sh", "-c", "echo up; exec sleep 1234567")
    wait_logs(name, "up")
    os.kill(status(name)["pid"], signal.SIGKILL)
    lib.wait_gone("1234567")
    done = lib.carrel("wait", name)
    assert done.returncode == 125
    assert b"not known" in done.stderr


def test_restart_begins_again_under_the_same_name():
    name = detached("sh", "-c", "echo $$ >> runs; exec sleep 1000")
    runs = lib.current.cwd / "runs"
    lib.wait_for(lambda: runs.exists(), "the first run")
    first = status(name)
    lib.succeeded(lib.carrel("restart", name))
    lib.wait_for(lambda: len(runs.read_text().split()) == 2, "the second run")
    lib.wait_for(lambda: status(name) and status(name)["since"], "the box")
    assert status(name)["pid"] == first["pid"]


def test_restart_on_failure_stops_at_its_limit():
    name = detached("sh", "-c", "echo x >> runs; exit 4", opts=("--restart", "on-failure:1"))
    runs = lib.current.cwd / "runs"
    lib.wait_for(lambda: runs.exists() and runs.read_text() == "x\nx\n", "two runs")
    lib.wait_for(lambda: status(name) is None, "the end")
    assert lib.carrel("wait", name).returncode == 4
    lib.failed_clearly(lib.carrel("run", "-y", "--restart", "on-failure:1", "--", "true"), "-d")
    lib.failed_clearly(lib.carrel("run", "-d", "--restart", "always", "--", "true"), "on-failure")


def test_ps_shows_it_at_a_glance():
    running = detached("cat", opts=("--name", "runs", "--allow", "@github", "--allow", "a.example"))
    detached("sh", "-c", "exit 3", opts=("--name", "over"))
    stopped = detached("cat", opts=("--name", "stopped"))
    lib.wait_for(lambda: status("over") is None, "the end")
    lib.succeeded(lib.carrel("stop", "-t", "0", stopped))
    lib.succeeded(lib.box("true", opts=("--name", "never-detached")))

    def rows(*args):
        head, *all_ = lib.succeeded(lib.carrel("ps", *args)).decode().splitlines()
        assert head.split() == ["NAME", "AGENT", "PROJECT", "STATE", "AGE", "CPU", "MEM", "NET"]
        return {row.split()[0]: row for row in all_}

    shown = rows()
    assert list(shown) == ["runs", "over"]
    assert re.fullmatch(r"runs +- +project +running +\d+s +\d+% +[\d.]+M +@github \+1", shown["runs"])
    assert re.fullmatch(r"over +- +project +ended 3 +\d+s", shown["over"])
    lib.box("sh", "-c", "exit 4", opts=("--name", "net", "--allow", "a.example"))
    lib.box("sh", "-c", "mkdir d; cd d; git init -q", opts=("--name", "found"))
    ended = rows("-a")
    assert "ended 137" in ended["stopped"]
    assert re.fullmatch(r"net +- +project +ended 4 +\d+s", ended["net"])
    assert re.fullmatch(r"found +- +project +ended +\d+s", ended["found"])
    lib.succeeded(lib.box("true", opts=("--name", "found")))
    assert "found" not in rows("-a"), "it has left nothing"
    lib.failed_clearly(lib.carrel("stop", "net"), "'net' does not run", "carrel ps -a")
    lib.succeeded(lib.carrel("rm", "over"))
    assert list(rows()) == ["runs"]
    os.kill(status(running)["pid"], signal.SIGKILL)
    lib.wait_for(lambda: status(running) is None, "the end")
    assert re.fullmatch(r"runs +- +project +ended +\d+s", rows()["runs"])
    # The record of an earlier box of the name is not this one's.
    lib.succeeded(lib.box("true", opts=("--name", "stopped")))
    assert "stopped" not in rows()


# ---- attach -----------------------------------------------------------------------------


def test_attach_shows_what_was_written_before_and_passes_keys():
    name = detached("sh", "-c", "echo earlier words; read x; echo got $x; exit 5")
    wait_logs(name, "earlier")
    child = attach(name)
    child.expect_exact("earlier words")
    child.send("hello\r")
    child.expect_exact("got hello")
    assert lib.finish(child) == 5


def test_detach_keys_leave_the_box_running():
    name = detached("sh", "-c", "echo up; exec cat")
    wait_logs(name, "up")
    child = attach(name)
    child.expect_exact("up")
    child.send("\x10x\r")  # not the keys: both arrive
    child.expect_exact("x")
    child.send(DETACH)
    child.expect_exact("\x1b[J")  # what is painted below the cursor is not left beside the words
    child.expect_exact("detached from")
    assert lib.finish(child) == 0
    assert status(name)["state"] == "running"
    child = attach(name, "--detach-keys", "ctrl-]")
    child.send("\x1d")
    assert lib.finish(child) == 0
    done = lib.terminal([lib.program(), "attach", "--detach-keys", "meta-x", name])
    assert lib.finish(done) == 125


def test_several_look_at_once_and_read_only_cannot_type():
    name = detached("sh", "-c", "echo up; exec cat")
    wait_logs(name, "up")
    first, second = attach(name), attach(name, "--read-only")
    second.expect_exact("up")
    second.send("silent\r")
    first.send("loud\r")
    second.expect_exact("loud")
    assert "silent" not in logs(name)
    assert status(name)["viewers"] == 2
    for child in (first, second):
        child.send(DETACH)
        assert lib.finish(child) == 0


def test_the_size_is_that_of_who_typed_last():
    name = detached("sh", "-c", "echo up; while read x; do stty size; done")
    wait_logs(name, "up")
    small, large = attach(name, size=(20, 60)), attach(name, size=(40, 100))
    large.send("\r")
    large.expect_exact("40 100")
    small.send("\r")
    small.expect_exact("20 60")
    for child in (small, large):
        child.send(DETACH)
        assert lib.finish(child) == 0


@pytest.mark.parametrize("program", [["less"], ["vim", "-u", "NONE", "-N"]], ids=["less", "vim"])
def test_a_full_screen_program_is_drawn_again_on_another_size(program):
    lib.make_file(lib.current.cwd / "text", "".join(f"row number {i}\n" for i in range(200)))
    name = detached(*program, "text")
    wait_logs(name, "row number 3")
    child = attach(name, size=(30, 90))
    child.expect_exact("row number 0")
    child.expect_exact("row number 27")
    child.send("G")
    child.expect_exact("199")
    child.send(DETACH)
    assert lib.finish(child) == 0
    lib.wait_for(lambda: "row number 199" in logs(name), "the last page in the log")


def test_a_viewer_that_is_killed_leaves_a_plain_terminal_and_the_box():
    name = detached("sh", "-c", r"printf '\033[?1049h\033[?1003h\033[?2004hfull'; exec cat")
    wait_logs(name, "full")
    for which in (0, 1):
        shell = lib.terminal(["bash", "--norc", "--noprofile", "-i"])
        shell.sendline(f"PS1=HOST'> '; {lib.program()} attach {name}")
        shell.expect_exact("full")
        lib.wait_raw(shell)
        guard = lib.children(shell.pid)[0]
        os.kill((guard, lib.children(guard)[0])[which], signal.SIGKILL)
        # Whoever is left undoes the modes; the shell may be the first to write.
        expected = ["\x1b[?2004l", "\x1b[?1003l", "\x1b[?1049l", "HOST>"]
        while expected:
            expected.pop(shell.expect_exact(expected))
        os.kill(shell.pid, signal.SIGKILL)
        lib.finish(shell)
    assert status(name)["state"] == "running"


def test_a_viewer_that_does_not_read_is_in_nobodys_way():
    name = detached("sh", "-c", "echo up; read x; seq 1 300000; echo done-now; exec cat")
    wait_logs(name, "up")
    stuck, other = attach(name), attach(name)
    os.kill(lib.children(stuck.pid)[0], signal.SIGSTOP)
    other.send("\r")
    other.expect_exact("done-now")
    os.kill(lib.children(stuck.pid)[0], signal.SIGCONT)
    stuck.expect_exact("done-now")
    other.send(DETACH)
    assert lib.finish(other) == 0


def test_attach_needs_a_terminal_and_a_detached_box():
    name = detached("sleep", "1000")
    lib.failed_clearly(lib.carrel("attach", name), "terminal")
    with lib.start_box("sh", "-c", "echo up; exec sleep 1000") as own:
        lib.read_until(own.stdout, b"up")
        other = next(b["name"] for b in json.loads(lib.carrel("ps", "--json").stdout)
                     if b["name"] != name)
        child = lib.terminal([lib.program(), "attach", other])
        child.expect_exact("-d")
        assert lib.finish(child) == 125
        lib.failed_clearly(lib.carrel("send", other, "x"), "-d")
        lib.succeeded(lib.carrel("stop", "-t", "0", other))


# ---- the screen -------------------------------------------------------------------------


QUERIES = r"""
import os, sys, termios, tty, select
tty.setraw(0)
def ask(text):
    os.write(1, text)
    got = b""
    while select.select([0], [], [], 5)[0]:
        got += os.read(0, 100)
        if got[-1:] in b"cRn\\": break
    return got
out = [ask(q) for q in (b"\033[c", b"\033[>c", b"\033[5n", b"\033[6n", b"\033]11;?\033\\")]
open("answers", "w").write(repr(out))
os.write(1, b"asked\r\n")
"""


@pytest.mark.parametrize("watched", [False, True])
def test_questions_are_answered_with_and_without_a_viewer(watched):
    lib.make_file(lib.current.cwd / "ask.py", QUERIES)
    name = detached("sh", "-c", "read x; python3 ask.py; exec cat")
    child = attach(name) if watched else None
    lib.succeeded(lib.carrel("send", name, "go"))
    wait_logs(name, "asked")
    answers = eval((lib.current.cwd / "answers").read_text())
    assert answers[0].startswith(b"\x1b[?") and answers[0].endswith(b"c")
    assert answers[1].startswith(b"\x1b[>")
    assert answers[2] == b"\x1b[0n"
    assert answers[3].endswith(b"R")
    assert b"rgb:0000/0000/0000" in answers[4]
    if child:  # and no terminal of a user heard them
        child.send(DETACH)
        child.expect(pexpect.EOF)
        for question in (b"\x1b[c", b"\x1b[>c", b"\x1b[6n", b"]11;?"):
            assert question not in child.before


def test_control_characters_of_two_bytes_are_read_as_some_terminals_do():
    """U+009B is ESC [ to xterm: what asks is kept from a viewer, and modes are undone."""
    c1 = r"\302\233"
    lines = f"printf '{c1}21t{c1}6n\\302\\235 2;t\\302\\234{c1}?1000h\\302\\251 end'"
    name = detached("sh", "-c", f"read x; {lines}; exec cat")
    child = attach(name)
    lib.succeeded(lib.carrel("send", name, "go"))
    child.expect_exact("\u00a9 end".encode())
    shown = child.before
    child.send(DETACH)
    child.expect(pexpect.EOF)
    for question in (b"21t", b"6n", b"\xc2\x9b"):
        assert question not in shown
    assert b"\x1b[?1000h" in shown
    assert b"\x1b[?1000l" in child.before


def test_logs_are_plain_text():
    name = detached("sh", "-c",
                    r"printf '\033[31mred\033[0m \342\234\223\r\n'; seq 1 100; printf 'a\rb\n'")
    lib.carrel("wait", name)
    lines = logs(name).splitlines()
    assert lines[0] == "red ✓"
    assert lines[1:101] == [str(i) for i in range(1, 101)]
    assert lines[101:] == ["b"]


def test_logs_follow_to_the_end():
    name = detached("sh", "-c", "for i in $(seq 1 60); do echo line $i; sleep 0.02; done; read x")
    with lib.start("logs", "-f", name) as follower:
        first = lib.read_until(follower.stdout, b"line 30\n")
        lib.succeeded(lib.carrel("send", name, "end"))
        rest, _ = follower.communicate(timeout=20)
    lines = (first + rest).decode().splitlines()
    assert [line for line in lines if line != "end"] == [f"line {i}" for i in range(1, 61)]


def test_the_log_has_an_end():
    name = detached("sh", "-c", "yes 'a line of a flooder' | head -c 12000000")
    lib.carrel("wait", name)
    path = next(lib.current.home.rglob("output.log"))
    assert path.stat().st_size <= 8 << 20


def test_hostile_output_does_not_end_the_box():
    lib.make_file(lib.current.cwd / "noise.py",
                  "import os, random\nrandom.seed(1)\n"
                  "for _ in range(300): os.write(1, b'\\033' + random.randbytes(2000))\n")
    name = detached("sh", "-c", "python3 noise.py; printf '\\030\\033c'; echo still here; exec cat")
    wait_logs(name, "still here")


# ---- who may ------------------------------------------------------------------------------


def test_another_box_cannot_reach_the_socket():
    name = detached("sleep", "1000")
    socket = lib.runtime() / f"{name}.sock" if (lib.runtime() / f"{name}.sock").exists() else (
        next(pathlib.Path(lib.environment()["XDG_RUNTIME_DIR"]).rglob(f"{name}.sock")))
    assert socket.is_socket()
    done = lib.box("sh", "-c", f"ls {socket.parent} {socket}; ls /proc/*/root/{socket}",
                   opts=("--network", "host"))
    assert done.returncode != 0
    assert f"{name}.sock\n".encode() not in done.stdout
    inside = lib.box(lib.program(), "stop", name, opts=("--network", "host"))
    assert inside.returncode != 0
    assert status(name)["state"] == "running"


def test_a_client_says_whether_it_works():
    """Spinners in titles and progress as clients have them; the end of either is for the user."""
    name = detached("sh", "-c", 'while read -r what; do printf "$what"; echo >> said; done')
    said = lib.current.cwd / "said"
    steps = [
        (r"\033]0;\342\240\202 Claude Code\007", "running"),
        (r"\033]0;\342\234\263 Claude Code\007", "waits for input"),
        (r"\033]0;\342\227\220 Claude Code\007", "running"),
        (r"\033]0;Claude Code\007", "waits for input"),
        (r"\033]9;4;3\007", "running"),
        (r"\033]9;4;0\007", "waits for input"),
        (r"\033]9;9;/tmp\007", "running"),
        (r"\033]9;Approval requested\007", "waits for input"),
    ]
    for n, (what, state) in enumerate(steps, 1):
        lib.succeeded(lib.carrel("send", name, what))
        lib.wait_for(lambda: said.exists() and len(said.read_text()) == n, what)
        lib.wait_for(lambda: status(name)["state"] == state, f"{state} after {what}")


def test_a_bell_says_that_it_waits_until_somebody_types():
    name = detached("sh", "-c", r"printf '\a'; exec cat")
    lib.wait_for(lambda: status(name)["state"] == "waits for input", "the bell")
    lib.succeeded(lib.carrel("send", name, "x"))
    assert status(name)["state"] == "running"
