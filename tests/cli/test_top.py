"""carrel top: looked at in tmux, which shows what a terminal would."""

import json
import os
import shlex
import signal
import time

import lib
import pytest
from test_control import SERVER, Server


class Pane:
    """A terminal with a shell in it."""

    def __init__(self, cols=80, rows=24, **env):
        self.where = lib.make_dir(lib.current.home / f"tmux{cols}", mode=0o700)
        self.env = {"TERM": "xterm-256color", "TMUX_TMPDIR": str(self.where), **env}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows),
                  "exec env PS1='HOST> ' bash --norc --noprofile -i")  # fmt: skip
        self.wait("HOST>")

    def tmux(self, *words):
        done = lib.execute(["tmux", *words], env=self.env)
        return lib.succeeded(done).decode()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.keys("-l", text)
        self.keys("Enter")

    def text(self, *opts):
        return self.tmux("capture-pane", "-p", *opts)

    def wait(self, *words):
        end = time.monotonic() + lib.TIMEOUT
        while not all(word in (seen := self.text()) for word in words):
            assert time.monotonic() < end, f"waited in vain for {words}:\n{seen}"
            time.sleep(0.02)
        return seen

    def wait_not(self, word):
        lib.wait_for(lambda: word not in self.text(), f"{word} to go")

    def facts(self):
        """What a program may leave behind: the terminal's and the line's modes."""
        names = ("alternate_on", "cursor_flag", "wrap_flag", "mouse_any_flag", "keypad_flag")
        tty = self.tmux("display", "-p", "#{pane_tty}").strip()
        stty = lib.execute(["stty", "-a", "-F", tty]).stdout.decode()
        return self.tmux("display", "-p", " ".join(f"#{{{n}}}" for n in names)), stty

    def end(self):
        lib.execute(["tmux", "kill-server"], env=self.env)


@pytest.fixture
def pane(project):
    pane = Pane()
    yield pane
    pane.end()


@pytest.fixture(autouse=True)
def ended(project):
    yield
    lib.end_started()
    for box in json.loads(lib.carrel("ps", "--json").stdout):
        lib.carrel("stop", "-t", "0", box["name"])


def detached(name, *cmd, opts=()):
    lib.succeeded(lib.carrel("run", "-d", "-y", "--name", name, *opts, "--", *cmd))


def fake(name, monkeypatch, **status):
    """A box that answers everything with its status."""
    monkeypatch.setattr("test_control.SERVER", SERVER.replace(
        "for reply in replies:", "while True:\n    reply = replies[0]"))  # fmt: skip
    base = {"network": "allow", "since": int(time.time()) - 7200, "pid": 1, "state": "running"}
    return Server(name, {"ok": True, "status": base | status})


def top(pane):
    pane.type(f"clear; {shlex.quote(lib.program())} top")


def test_it_shows_all_at_a_glance_and_nothing_hostile(pane, monkeypatch):
    boxes = [
        fake("carrel-fixer", monkeypatch, agent="fixer", project="/a/shop",
             state="waits for input", viewers=0, waiting=["crates.io:443"]),
        fake("carrel-hostile", monkeypatch, agent="\x1b[2J\x1b]2;title\x07", project="/a/\n\u202e漢字",
             state="\x1b[41mred", reaches=["\x9b31m", "x"]),
        fake("carrel-reviewer", monkeypatch, agent="reviewer", project="/a/" + "long" * 9,
             viewers=1, reaches=["@anthropic"]),
    ]  # fmt: skip
    top(pane)
    seen = pane.wait("carrel-reviewer", "1 held", "3 running, 1 waits for input, 1 held")
    lines = seen.splitlines()
    assert lines[1].split() == ["NAME", "AGENT", "PROJECT", "STATE", "AGE", "CPU", "MEM", "NET"]
    assert lines[2].startswith(">carrel-fixer") and "waits for input" in lines[2] and "2h" in lines[2]
    assert "\\x1b[2J" in lines[3] and "longlonglong " in lines[4]
    assert "asks for crates.io:443" in seen and "Return attach" in lines[23]
    assert pane.tmux("display", "-p", "#{pane_title}").strip() != "title"
    assert "\x1b[41m" not in pane.text("-e") and "\x1b[7m" in pane.text("-e")
    # A small terminal keeps the selected box in sight.
    pane.keys("Down", "Down")
    pane.wait(">carrel-reviewer")
    pane.tmux("resize-window", "-x", "40", "-y", "6")
    lib.wait_for(lambda: len(pane.text().splitlines()) == 6 and ">carrel-reviewer" in pane.text(), "it")
    pane.tmux("resize-window", "-x", "80", "-y", "24")
    pane.wait("Return attach", "carrel-fixer", ">carrel-reviewer")
    pane.tmux("resize-window", "-x", "120", "-y", "24")
    pane.wait("1 held: crates.io:443", "@anthropic")
    pane.keys("q")
    pane.wait("HOST>")
    plain = Pane(cols=81, NO_COLOR="1")
    top(plain)
    plain.wait(">carrel-fixer", "Return attach")
    assert "\x1b" not in plain.text("-e")
    plain.keys("C-c")
    plain.wait("HOST>")
    plain.end()
    for box in boxes:
        box.stop()


def test_its_keys_do_what_the_commands_do(pane, monkeypatch):
    lib.make_file(lib.current.cwd / "file", "old\n")
    detached("first", "sh", "-c", "echo up; while read x; do echo got $x; done")
    detached("second", "sh", "-c", "echo new > file; printf 'red \\033[31m\\n'; cat",
             opts=("--overlay",))  # fmt: skip
    asks = fake("third", monkeypatch, waiting=["crates.io:443"], viewers=None)
    top(pane)
    pane.wait(">first", "second", "third")
    pane.keys("Enter")
    pane.wait("up")
    pane.wait_not("Return attach")
    pane.type("hello")
    pane.wait("got hello")
    pane.keys("C-p", "C-q")
    pane.wait("Return attach", ">first")
    lib.wait_for(lambda: b"got hello" in lib.carrel("logs", "first").stdout, "its log")
    pane.keys("l")
    pane.wait("output of first", "got hello", "q back")
    pane.keys("q")
    pane.wait(">first")
    pane.keys("j")
    pane.wait(">second")
    pane.keys("d")
    pane.wait("changes of second", "-old", "+new")
    pane.keys("q")
    pane.wait(">second")
    pane.keys("e")
    pane.wait("network of second", "q back")
    pane.keys("Escape")
    pane.wait(">second")
    pane.keys("s")
    pane.wait("Stop second?")
    pane.keys("x")
    pane.wait_not("Stop second?")
    pane.keys("s")
    pane.wait("Stop second?")
    pane.keys("y")
    pane.wait("second has 10 seconds to end")
    pane.keys("Home")
    pane.wait_not("second")
    pane.keys("a")
    pane.wait("second", "ended 1")
    pane.keys("Home", "Down")
    pane.wait(">third")
    pane.keys("Enter")
    pane.wait("not started with -d")
    pane.keys("h")
    pane.wait("Let third reach crates.io:443?")
    pane.keys("y")
    pane.wait("crates.io:443 is allowed in third")
    while (request := asks.asked())["ask"] == "status":
        pass
    assert request == {"ask": "decide", "entry": "crates.io:443", "deny": False}
    pane.keys("q")
    pane.wait("HOST>")
    asks.stop()


def test_it_leaves_the_terminal_as_it_was_however_it_ends(pane):
    detached("box", "cat")
    before = pane.facts()
    shell = int(pane.tmux("display", "-p", "#{pane_pid}"))

    def end(how):
        """Of the two processes the first guards the second."""
        guard = lib.children(shell)[0]
        inner = lib.children(guard)[0]
        if isinstance(how, str):
            pane.keys(how)
        elif how < 0:
            os.kill(inner, -how)
        else:
            os.kill(guard, how)

    ways = ["q", "C-c", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
            signal.SIGKILL, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV]  # fmt: skip
    for how in ways:
        top(pane)
        pane.wait(">box", "Return attach")
        end(how)
        lib.wait_for(lambda: not lib.children(shell) and pane.facts() == before, f"the end by {how}")
    # Stopped, the shell has the terminal; continued, the list is there again.
    top(pane)
    pane.wait(">box", "Return attach")
    pane.keys("C-z")
    pane.wait("Stopped", "HOST>")
    assert pane.facts()[0] == before[0]
    pane.type("fg")
    pane.wait(">box", "Return attach")
    # Also from within a box that it attached to.
    pane.keys("Enter")
    pane.wait_not("Return attach")
    end(signal.SIGTERM)
    lib.wait_for(lambda: not lib.children(shell) and pane.facts() == before, "the end in a box")
    lib.failed_clearly(lib.carrel("top"), "terminal")
