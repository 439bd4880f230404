"""Conversations of real clients on a terminal: how they begin, and how one goes on with them."""

import json
import re

import lib
import parts
import pexpect
import pytest
import test_codex
from test_claude import leave_by_keys
from test_instances import ONLINE
from test_mine import Codex, press_until

KEY = "sk-ant-test-0123456789abcdefghijklmnopqrstuvwxyz"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
LAST = rb"to go on with this conversation: (carrel[^\r\n]*)"


# ---- Claude Code ------------------------------------------------------------------------


@pytest.fixture
def claude(client, host):
    """A user whose Claude Code uses a key, and has been asked about it."""
    host.env["ANTHROPIC_API_KEY"] = KEY
    host.write("~/.claude.json", {"customApiKeyResponses": {"approved": [KEY[-20:]]}})
    host.mock.scripts["answer"] = [[{"type": "text", "text": "ANSWERED-BY-THE-MOCK"}]]
    return client("claude")


def ready(child):
    index = child.expect(["shortcuts", "bypass", "Detected", "trust", pexpect.EOF])
    assert index < 2, child.before[-2000:]


def test_the_last_line_goes_on_with_it(host, claude):
    """With the same words that Claude Code prints for itself, but in a box."""
    child = host.terminal(*ONLINE, size=(40, 110))
    ready(child)
    child.send("MOCK:answer SAID")
    child.expect("SAID")
    child.send("\r")
    child.expect("ANSWERED-BY-THE-MOCK")
    leave_by_keys(child)
    assert lib.finish(child) == 0
    line = re.search(LAST, child.before)
    words = line[1].decode().split()
    assert words[:3] == ["carrel", "--", "--resume"] and re.fullmatch(UUID, words[3])
    assert f"--resume {words[3]}".encode() in child.before[: line.start()], "its own last words"


def test_nothing_said_is_nothing_to_go_on_with(host, claude):
    child = host.terminal(*ONLINE, size=(40, 110))
    ready(child)
    leave_by_keys(child)
    assert lib.finish(child) == 0
    assert not re.search(LAST, child.before)


KEYS = {"copied": "${THE_KEY}", "printed": "!/bin/echo " + KEY, "short": "sk-short"}


@pytest.mark.parametrize("how", KEYS)
def test_a_declared_key_is_not_asked_about(host, client, how):
    """Also where it is only fetched after the plan was agreed to."""
    client("claude")
    host.env["THE_KEY"] = KEY
    agent = {"prompt": "MOCK:text:SAID-BY-THE-MOCK", "env": {"ANTHROPIC_API_KEY": KEYS[how]}}
    host.manifest({"one": agent})
    child = host.terminal("one", size=(40, 110))
    index = child.expect(["SAID-BY-THE-MOCK", "Detected", "trust", pexpect.EOF])
    assert index == 0, child.before[-2000:] + child.after
    leave_by_keys(child)
    assert lib.finish(child) == 0
    key = host.mock.requests[-1]["headers"]["x-api-key"]
    assert key == ("sk-short" if how == "short" else KEY)


def test_the_users_own_key_is_not_asked_about(host, client):
    """A user who has no ~/.claude.json: the start has said that the key is used."""
    client("claude")
    host.env["ANTHROPIC_API_KEY"] = KEY
    host.mock.scripts["answer"] = [[{"type": "text", "text": "ANSWERED-BY-THE-MOCK"}]]
    child = host.terminal(*ONLINE, size=(40, 110))
    ready(child)
    child.send("MOCK:answer SAID")
    child.expect("SAID")
    child.send("\r")
    child.expect("ANSWERED-BY-THE-MOCK")
    leave_by_keys(child)
    assert lib.finish(child) == 0
    assert host.mock.requests[-1]["headers"]["x-api-key"] == KEY


def test_a_key_that_was_rejected_stays_so(host, client):
    client("claude")
    host.env["ANTHROPIC_API_KEY"] = KEY
    host.write("~/.claude.json", {"customApiKeyResponses": {"rejected": [KEY[-20:]]}})
    child = host.terminal(*ONLINE, size=(40, 110))
    child.expect(rb"Not\S*logged\S*in|Select\S*login")  # cursor movements stand for spaces
    assert not [r for r in host.mock.requests if "x-api-key" in r["headers"]]
    leave_by_keys(child)
    lib.finish(child)


# ---- Codex ------------------------------------------------------------------------------


@pytest.fixture
def codex(client, host):
    """A user whose Codex talks to the mock; `carrel` alone is still Claude Code."""
    kind = Codex()
    host.env |= kind.env
    program = client("codex")
    host.write(f"~/{kind.config}", kind.settings(host, "/bin/false"))
    return program


def test_codex_goes_on_with_it(host, codex):
    argv = [lib.program(), "codex", "-y", "--network", "host", "--", "-m", test_codex.NEWEST]
    child = lib.terminal(argv, cwd=host.project, env=host.env, size=(40, 120))
    screen = parts.Screen(child)
    screen.until(lambda: b"Trust" in screen.seen, "the question about trust")
    screen.seen = b""
    press_until(screen, lambda: b"YOLO" in screen.seen, "the end of it")
    screen.until(lambda: b"for shortcuts" in screen.seen, "the prompt")
    child.send("MOCK:text:SAID-BY-THE-MOCK")
    press_until(screen, lambda: test_codex.asked(host.mock), "the request")
    screen.until(lambda: screen.seen.count(b"SAID-BY-THE-MOCK") > 1, "the answer")
    child.send("\x04")
    child.expect(LAST)
    words = child.match[1].decode().split()
    assert lib.finish(child) == 0
    assert words[:4] == ["carrel", "codex", "--", "resume"] and re.fullmatch(UUID, words[4])


def test_exec_is_given_to_codex_as_it_was_said(host, codex):
    """With its own options, and with no question of carrel's or of Codex's."""
    words = ["exec", "--json", "-m", test_codex.MODEL, "MOCK:text:hello of exec"]
    done = lib.carrel(
        "codex", "-y", "--network", "host", "--", *words, cwd=host.project, env=host.env
    )
    events = [json.loads(line) for line in lib.succeeded(done).splitlines()]
    assert events[0]["type"] == "thread.started" and events[-1]["type"] == "turn.completed"
    (body,) = test_codex.asked(host.mock)
    assert "hello of exec" in parts.shown(body)
