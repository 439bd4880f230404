"""On a terminal: the box has one of its own, and it behaves as if there were no box."""

import json
import os
import re
import signal
import time

import lib
import pexpect
import pytest

STARTED = "started-now"


@pytest.fixture(autouse=True)
def starter(project):
    """./start says that it runs, in words nobody has typed, and becomes its arguments."""
    lib.make_file(project / "start", '#!/bin/sh\necho started-"now"\nexec "$@"\n', mode=0o755)


def started(*cmd, **how):
    """A command in a box on a terminal, up and running, with the keys passing through."""
    child = lib.terminal_box("./start", *cmd, **how)
    child.expect_exact(STARTED)
    lib.wait_raw(child)
    return child


class Shell:
    """An interactive bash on the host, in whose job control carrel has to fit."""

    PROMPT = "HOST> "

    def __init__(self):
        env = {"PS1": self.PROMPT, "CARREL": lib.program()}
        self.child = lib.terminal(["bash", "--norc", "--noprofile", "-i"], env=env)
        self.child.expect_exact(self.PROMPT)

    def run(self, line):
        """One command to its end; what it printed."""
        self.child.send(line + "\r")
        self.child.expect_exact("\r\n")
        self.child.expect_exact(self.PROMPT)
        return self.child.before.decode()

    def begin(self, line):
        self.child.send(line + "\r")
        self.child.expect_exact(STARTED)
        lib.wait_raw(self.child)

    def foreground(self):
        self.child.send("fg\r")
        lib.wait_raw(self.child)

    def stop(self):
        """Ctrl-Z; back at the prompt with a stopped job."""
        self.child.send("\x1a")
        self.child.expect_exact("Stopped")
        self.child.expect_exact(self.PROMPT)


def states(pid):
    """A process's name and state letter."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        head, _, rest = file.read().rpartition(")")
        return head.partition("(")[2], rest.split()[0]


def descendants(pid):
    found = []
    for child in lib.children(pid):
        found += [child, *descendants(child)]
    return found


# ---- its own terminal -------------------------------------------------------------------


def test_terminal_is_the_boxs_own(project):
    """Not the host's: another device, the only one there is, on all three streams."""
    links = "readlink /proc/$$/fd/[012] | xargs"
    script = f"tty; ls /dev/pts | xargs; stat -c %d /dev/pts/0; {links}"
    child = lib.terminal_box("sh", "-c", script)
    hosts = os.stat(os.readlink(f"/proc/{child.pid}/fd/0"))
    assert lib.finish(child) == 0
    lines = child.before.decode().splitlines()
    assert lines[0] == "/dev/pts/0"
    assert lines[1] == "0 ptmx"
    assert int(lines[2]) != hosts.st_dev or hosts.st_ino == 0
    assert lines[3] == "/dev/pts/0 /dev/pts/0 /dev/pts/0"


def test_controlling_terminal_can_be_opened(project):
    child = lib.terminal_box("sh", "-c", "echo to-the-tty >/dev/tty")
    child.expect_exact("to-the-tty")
    assert lib.finish(child) == 0


def test_colours(project):
    child = lib.terminal_box("sh", "-c", 'echo "$TERM"; tput colors; tput setaf 1; echo red')
    assert lib.finish(child) == 0
    assert child.before.decode().splitlines() == ["xterm-256color", "256", "\x1b[31mred"]


@pytest.mark.parametrize("size", [(31, 97), (24, 80), (200, 500)])
def test_window_size_at_the_start(project, size):
    child = lib.terminal_box("stty", "size", size=size)
    assert lib.finish(child) == 0
    assert child.before.decode().split() == [str(number) for number in size]


def test_window_size_follows(project):
    script = "trap 'stty size' WINCH; ./start true; while :; do sleep 0.1; done"
    child = lib.terminal_box("sh", "-c", script)
    child.expect_exact(STARTED)
    for size in ((40, 120), (10, 20)):
        child.setwinsize(*size)
        child.expect_exact("%d %d\r\n" % size)
    child.send("\x03")
    assert lib.finish(child) == 130


def test_streams_that_are_no_terminals_are_pipes(project):
    """A terminal only on one side: then there is no pty, and nothing is relayed raw."""
    script = "test -t 0 && echo in-tty; test -t 1 && echo out-tty; echo done"
    for redirect in ("</dev/null", "| cat"):
        line = f"{lib.program()} run -y -- sh -c '{script}' {redirect}"
        child = lib.terminal(["sh", "-c", line])
        assert lib.finish(child) == 0
        assert child.before.decode().split() == ["done"]


def test_stderr_goes_where_it_was_sent(project):
    """`2>file` on a terminal: it is not on the terminal then."""
    shell = Shell()
    shell.run("cd " + str(project))
    said = shell.run("$CARREL run -y -- sh -c 'echo to-out; echo to-err >&2' 2>log")
    assert "to-out" in said and "to-err" not in said
    assert (project / "log").read_text() == "to-err\n"
    assert "to-err" not in shell.run("$CARREL run -y -- sh -c 'echo to-err >&2' 2>/dev/null")


def test_stopping_oneself_stops_the_box(project):
    """A command that stops itself must not leave children behind the shell's prompt."""
    shell = Shell()
    shell.run("cd " + str(project))
    loop = "i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo $i >count; sleep 0.05; done"
    shell.run(f"$CARREL run -y -- sh -c 'setsid sh -c \"{loop}\" & sleep 0.3; kill -STOP $$'"
              .replace("$i", "\\$i").replace("$((i", "\\$((i"))
    before = (project / "count").read_text()
    lib.settle()
    time.sleep(0.5)
    assert (project / "count").read_text() == before
    shell.run("kill %1; fg >/dev/null 2>&1; true")


def test_output_is_complete(project):
    """All that was written before the end arrives, also from a fast writer."""
    child = lib.terminal_box("seq", "1", "50000")
    assert lib.finish(child) == 0
    lines = child.before.decode().split()
    assert lines == [str(number) for number in range(1, 50001)]


def test_every_byte_passes(project):
    """With the box's terminal in raw mode, every byte goes both ways unchanged."""
    script = "stty raw -echo; ./start true; head -c 256 | od -An -v -tu1 -w256"
    child = lib.terminal_box("sh", "-c", script)
    child.expect_exact(STARTED)
    child.send(bytes(range(256)))
    child.expect(r"0 +1 +2 [ 0-9]*253 +254 +255")
    assert lib.finish(child) == 0


# ---- keys -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, code", [("\x03", 128 + signal.SIGINT), ("\x1c", 128 + signal.SIGQUIT)]
)
def test_keys_that_end_the_command(project, key, code):
    child = started("sleep", "1000")
    child.send(key)
    assert lib.finish(child) == code


def test_interrupt_can_be_handled(project):
    child = started("bash", "-c", "trap 'echo caught' INT; ./start true; read -r x; echo $x")
    child.expect_exact(STARTED)
    for _ in range(20):  # bash itself may miss one that comes just before it reads
        child.send("\x03")
        if child.expect_exact(["caught", pexpect.TIMEOUT], timeout=3) == 0:
            break
    child.send("go on\r")
    child.expect_exact("go on")
    assert lib.finish(child) == 0


def test_interrupt_goes_to_the_whole_foreground_group(project):
    child = started("sh", "-c", "sleep 1000 | sleep 1001; echo unreached")
    child.send("\x03")
    assert lib.finish(child) == 130
    assert b"unreached" not in child.before


def test_end_of_file_key(project):
    child = started("sh", "-c", "cat; echo after")
    child.send("line\r")
    child.expect_exact("line\r\nline\r\n")
    child.send("\x04")
    child.expect_exact("after")
    assert lib.finish(child) == 0


def test_hangup_ends_the_box(project):
    """The window is closed: nothing of the box stays."""
    word = f"1000.{os.getpid()}8"
    child = started("sh", "-c", f"trap '' HUP; sleep {word} & ./start true; sleep {word}")
    child.expect_exact(STARTED)
    child.ptyproc.fileobj.close()
    lib.wait_gone(word)


# ---- job control of the host ------------------------------------------------------------


def test_stop_and_continue(project):
    """Ctrl-Z stops the whole, jobs shows it, fg goes on where it was."""
    shell = Shell()
    shell.begin("$CARREL run -y -- ./start cat")
    shell.child.send("one\r")
    shell.child.expect_exact("one\r\none\r\n")
    shell.stop()
    assert [states(pid) for pid in lib.children(shell.child.pid)] == [("carrel", "T")]
    assert ("cat", "T") in [states(pid) for pid in descendants(shell.child.pid)]
    assert "Stopped" in shell.run("jobs")
    for word in ("two", "three"):
        shell.foreground()
        shell.child.send(f"{word}\r")
        shell.child.expect_exact(f"{word}\r\n{word}\r\n")
        shell.stop()
    shell.foreground()
    shell.child.send("\x04")
    shell.child.expect_exact(shell.PROMPT)
    assert "rc=0" in shell.run("echo rc=$?")


def test_stopped_box_can_be_killed(project):
    shell = Shell()
    word = f"1000.{os.getpid()}9"
    shell.begin(f"$CARREL run -y -- ./start sleep {word}")
    shell.stop()
    shell.child.send("kill %1\r")
    lib.wait_gone(word)


def test_window_size_changed_while_stopped(project):
    shell = Shell()
    shell.begin("$CARREL run -y -- ./start bash -c 'read -r x; stty size'")
    shell.stop()
    shell.child.setwinsize(41, 121)
    shell.foreground()
    shell.child.send("\r")
    shell.child.expect_exact("41 121")


def test_background_start(project):
    """Started with &: prints, is not stopped, and leaves the shell its terminal."""
    shell = Shell()
    shell.child.send("$CARREL run -y -- ./start true &\r")
    shell.child.expect_exact(STARTED)
    text = shell.run("wait $!; echo rc=$?")
    assert "rc=0" in text and "Stopped" not in text


def test_background_start_then_foreground(project):
    shell = Shell()
    shell.child.send("$CARREL run -y -- ./start cat &\r")
    shell.child.expect_exact(STARTED)
    shell.foreground()
    shell.child.send("typed\r")
    shell.child.expect_exact("typed\r\ntyped\r\n")
    shell.child.send("\x04")
    shell.child.expect_exact(shell.PROMPT)
    assert "rc=0" in shell.run("echo rc=$?")


def test_interrupt_in_a_pipeline(project):
    """No terminal for the box, but Ctrl-C of the host's arrives as a signal."""
    shell = Shell()
    shell.child.send("$CARREL run -y -- ./start sleep 1000 | cat\r")
    shell.child.expect_exact(STARTED)
    shell.child.send("\x03")
    shell.child.expect_exact(shell.PROMPT)
    assert "rc=130" in shell.run('echo "rc=${PIPESTATUS[0]}"')


def test_stop_in_a_pipeline(project):
    shell = Shell()
    shell.child.send("$CARREL run -y -- ./start cat | cat\r")
    shell.child.expect_exact(STARTED)
    shell.stop()
    shell.child.send("fg\r")
    shell.child.expect_exact("cat\r\n")
    shell.child.send("typed\r")
    shell.child.expect_exact("typed\r\ntyped\r\n")
    shell.child.send("\x04")
    shell.child.expect_exact(shell.PROMPT)


# ---- the terminal afterwards ------------------------------------------------------------


def around(*cmd):
    """A shell that shows the terminal's settings before and after the box."""
    script = 'stty -g; "$@"; echo "rc=$?"; stty -g'
    return lib.terminal(["sh", "-c", script, "sh", lib.program(), "run", "-y", "--", *cmd])


def settings_of(child):
    assert lib.finish(child) == 0
    return re.findall(r"[0-9a-f]+(?::[0-9a-f]+){20,}", child.before.decode())


@pytest.mark.parametrize(
    "script, code",
    [
        ("true", 0),
        ("stty raw -echo", 0),
        ("stty raw -echo; kill -9 $$", 137),
        ("exit 3", 3),
        ("kill -SEGV $$", 139),
    ],
)
def test_settings_are_restored(project, script, code):
    child = around("sh", "-c", script)
    before, after = settings_of(child)
    assert before == after
    assert f"rc={code}" in child.before.decode()


def test_settings_are_restored_when_carrel_is_ended(project):
    child = around("./start", "sleep", "1000")
    child.expect_exact(STARTED)
    before = re.search(r"[0-9a-f]+(?::[0-9a-f]+){20,}", child.before.decode())[0]
    lib.wait_raw(child)
    for pid in lib.children(child.pid):
        os.kill(pid, signal.SIGTERM)
    assert settings_of(child) == [before]
    assert "rc=143" in child.before.decode()


def test_settings_are_restored_when_the_command_cannot_start(project):
    child = around("no-such-command")
    before, after = settings_of(child)
    assert before == after


def test_settings_while_stopped(project):
    """At the prompt of the shell the terminal is the shell's."""
    shell = Shell()
    before = shell.run("stty -g")
    shell.begin("$CARREL run -y -- ./start cat")
    shell.stop()
    assert shell.run("stty -g") == before


# ---- programs ---------------------------------------------------------------------------


def test_shell_command(project):
    child = lib.terminal([lib.program(), "shell", "-y"], env={"SHELL": "/bin/bash"})
    child.expect(r"[$#] ")
    child.send("echo $((6*7)) $CARREL_BOX; exit 5\r")
    child.expect_exact("42 carrel-project")
    assert lib.finish(child) == 5


def test_job_control_inside(project):
    """bash in the box stops and continues its own jobs; the box itself does not stop."""
    child = lib.terminal_box("bash", "--norc", "--noprofile", "-i", env={"TERM": "dumb"})
    child.expect(r"\$ ")
    child.send("PS1='IN''SIDE> '\r")
    child.expect_exact("INSIDE> ")
    child.send("./start sleep 1000\r")
    child.expect_exact(STARTED)
    child.send("\x1a")
    child.expect_exact("Stopped")
    child.expect_exact("INSIDE> ")
    child.send("bg\r")
    child.expect_exact("INSIDE> ")
    child.send("jobs\r")
    child.expect_exact("Running")
    child.send("fg\r")
    child.expect_exact("start sleep 1000\r\n")
    child.send("\x03")
    child.expect_exact("INSIDE> ")
    child.send("exit 4\r")
    assert lib.finish(child) == 4


def test_vim(project):
    child = lib.terminal_box("vim", "-u", "NONE", "-N", "-n", "note.txt")
    child.expect_exact("note.txt")
    child.send("ihello\x1b")
    child.send(":wq\r")
    assert lib.finish(child) == 0
    assert (project / "note.txt").read_text() == "hello\n"


def test_less(project):
    lib.make_file(project / "lines", "".join(f"line-{number}\n" for number in range(500)))
    child = lib.terminal_box("less", "lines")
    child.expect_exact("line-20")
    child.send("G")
    child.expect_exact("line-499")
    child.send("q")
    assert lib.finish(child) == 0


def test_top(project):
    """It works, and it sees the box's processes only."""
    child = lib.terminal_box("top")
    child.expect(r"Tasks:[^,]*?[ m](\d+) [^,]*?total")
    assert int(child.match[1]) <= 5
    child.expect_exact("top")
    child.send("q")
    assert lib.finish(child) == 0


def test_git_add_patch(project):
    lib.make_file(project / "src" / "main.c", "int main(void)\n{\n\treturn 1;\n}\n")
    child = lib.terminal_box("git", "add", "-p")
    child.expect_exact("Stage this hunk")
    child.send("y\r")
    assert lib.finish(child) == 0
    assert lib.git("diff", "--cached", "--name-only", cwd=project) == "src/main.c\n"


def test_tmux(project):
    """A full-screen client with terminals of its own."""
    child = lib.terminal_box("tmux", "-f", "/dev/null", "new-session", "./start cat")
    child.expect_exact(STARTED)
    child.send("typed-in-tmux\r")
    child.expect_exact("typed-in-tmux")
    child.send("\x04")
    child.expect_exact("[exited]")
    assert lib.finish(child) == 0


# ---- recording --------------------------------------------------------------------------


def read_cast(path):
    """The header and the events of an asciicast v2, each line checked."""
    header, *events = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["version"] == 2
    assert isinstance(header["width"], int) and isinstance(header["height"], int)
    last = 0.0
    for time, kind, data in events:
        assert isinstance(time, (int, float)) and time >= last
        assert kind in ("o", "i", "r", "m") and isinstance(data, str)
        last = time
    return header, events


def output_of(events):
    return "".join(data for _, kind, data in events if kind == "o")


def test_recording(project, place):
    cast = place / "session.cast"
    coloured = "printf 'caf\\303\\251 \\033[31mred\\033[0m \"\\\\'; echo;"
    resized = 'until [ "$(stty size)" = "40 100" ]; do sleep 0.05; done'
    opts = ["--record", cast]
    child = lib.terminal_box(
        "sh", "-c", f"{coloured} ./start true; {resized}", opts=opts, size=(30, 90)
    )
    child.expect_exact(STARTED)
    child.setwinsize(40, 100)
    assert lib.finish(child) == 0
    header, events = read_cast(cast)
    assert (header["width"], header["height"]) == (90, 30)
    assert 'caf\u00e9 \x1b[31mred\x1b[0m "\\' in output_of(events)
    assert [data for _, kind, data in events if kind == "r"] == ["100x40"]
    assert cast.stat().st_uid == lib.UID


def test_recording_of_bytes_that_are_no_text(project, place):
    """Still a valid file, and a character cut by the end of a read is whole."""
    cast = place / "session.cast"
    script = "for i in {1..20000}; do printf '\\342\\230\\203'; done; printf '\\377'"
    child = lib.terminal_box("bash", "-c", script, opts=["--record", cast])
    assert lib.finish(child) == 0
    text = output_of(read_cast(cast)[1])
    assert text.count("\u2603") == 20000


def test_recording_does_not_show_what_is_typed_unseen(project, place):
    """A password prompt turns echo off; the recording has output only."""
    cast = place / "session.cast"
    script = "stty -echo; ./start true; read -r x; stty echo; echo got"
    child = lib.terminal_box("sh", "-c", script, opts=["--record", cast])
    child.expect_exact(STARTED)
    child.send("hunter2\r")
    child.expect_exact("got")
    assert lib.finish(child) == 0
    assert "hunter2" not in cast.read_text()


def test_recording_without_a_terminal(project, place):
    cast = place / "session.cast"
    done = lib.box("sh", "-c", "echo out; echo err >&2", opts=["--record", cast])
    assert lib.succeeded(done) == b"out\n"
    assert "out" in output_of(read_cast(cast)[1])


def test_recording_that_cannot_be_written(project):
    done = lib.box("touch", "made", opts=["--record", "/no/such/directory/x.cast"])
    lib.failed_clearly(done, "/no/such/directory/x.cast")
    assert not (project / "made").exists()
