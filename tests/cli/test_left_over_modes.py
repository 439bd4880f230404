"""What a box asked of the terminal is undone at its end, and no answer reaches the shell."""

import re

import lib
import pytest

PROMPT = "HOST> "
MODES = {
    "mouse": (rb"\033[?1000h\033[?1003h\033[?1006h", [b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l"]),
    "focus": (rb"\033[?1004h", [b"\x1b[?1004l"]),
    "alternate screen": (rb"\033[?1049h", [b"\x1b[?1049l"]),
    "cursor": (rb"\033[?25l\033[3 q", [b"\x1b[?25h", b"\x1b[0 q"]),
    "cursor keys": (rb"\033[?1h\033=", [b"\x1b[?1l", b"\x1b>"]),
    "keyboard": (rb"\033[>1u\033[>4;2m", [b"\x1b[<99u", b"\x1b[>4m"]),
    "margins": (rb"\033[3;10r", [b"\x1b7\x1b[r\x1b8"]),
    "title": (rb"\033]2;hostile\a", [b"\x1b]2;\x07"]),
    "half a sequence": (rb"\033]2;never ends", [b"\x18"]),
}


pytestmark = pytest.mark.usefixtures("project")


def shell():
    """An interactive bash that shows at once what is typed into it."""
    child = lib.terminal(["bash", "--norc", "--noprofile", "-i"], env={"PS1": PROMPT}, size=(24, 400))
    child.expect_exact(PROMPT)
    child.sendline("bind 'set enable-bracketed-paste off'")
    child.expect_exact(PROMPT)
    return child


def after(child, text):
    """Run a box that prints the text; what the terminal got up to the prompt."""
    child.sendline(f"{lib.program()} run -y -- printf '{text.decode()}in-the-box'")
    child.expect_exact("in-the-box'")  # as it was typed
    child.expect_exact("in-the-box")
    child.expect_exact(PROMPT)
    return child.before


@pytest.mark.parametrize("what", MODES)
def test_modes_are_undone(what):
    asked, undone = MODES[what]
    said = after(shell(), asked)
    for sequence in undone:
        assert sequence in said
    assert all(sequence not in after(shell(), b"") for sequence in undone)


def test_a_mode_that_the_box_took_back_is_left_alone():
    said = after(shell(), rb"\033[?1049h\033[?1049l\033[?25l\033[?25h")
    assert b"1049" not in said and b"\x1b[?25" not in said


@pytest.mark.parametrize("question", [rb"\033[c", rb"\033[6n", rb"\033]11;?\a", rb"\033[>q"])
def test_a_late_answer_is_not_typed_into_the_shell(question):
    """The terminal here answers only when the box is over, and is asked once more."""
    child = shell()
    late = "; sleep 2.5" if b"[6n" in question else ""  # nor if the box asked long ago
    child.sendline(f"{lib.program()} run -y -- sh -c \"printf '{question.decode()}in-the-box'{late}\"")
    child.expect_exact("in-the-box'")
    child.expect_exact("in-the-box")
    child.expect_exact("\x1b[c")
    child.send("\x1b[12;34R;touch hacked\r\x1b[?62;1;6c")
    child.expect_exact(PROMPT)
    child.sendline("echo alive")
    child.expect_exact("alive\r\n")
    child.expect_exact(PROMPT)
    assert not re.search(rb"12;34R|touch", child.before)
    assert not (lib.current.cwd / "hacked").exists()
