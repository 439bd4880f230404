"""The real clients detached: whoever attaches with another size sees them drawn for it."""

import lib
import parts
import pytest
import test_codex
import test_opencode

DETACH = "\x10\x11"


def declare(host, mock, client):
    """An agent `one` of the client, with nothing to do yet."""
    if client == "codex":
        host.env["CODEX_API_KEY"] = test_codex.KEY
        args = test_codex.provider(mock, env_key="CODEX_API_KEY")
        host.manifest({"one": {"harness": client, "model": test_codex.MODEL, "args": args}})
    elif client == "opencode":
        host.manifest({"one": {"harness": client, "model": test_opencode.MODEL}})
    else:
        host.env["ANTHROPIC_API_KEY"] = test_opencode.KEY
        host.manifest({"one": {}})


def widths(name):
    """The longest lines of what is on the screen."""
    lines = lib.succeeded(lib.carrel("logs", name)).decode().splitlines()[-60:]
    return max(map(len, lines), default=0)


@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
def test_attach_with_another_size(host, mock, client, program):
    client(program)
    declare(host, mock, program)
    name = lib.succeeded(host.run("-d", "one")).decode().strip()
    try:
        lib.wait_for(lambda: widths(name) > 40, "something to see")
        for rows, cols in ((30, 110), (40, 140)):
            child = lib.terminal([lib.program(), "attach", name], size=(rows, cols))
            screen = parts.Screen(child)
            screen.until(lambda: cols - 25 <= widths(name) <= cols, f"a picture of {cols} columns")
            child.send(DETACH)
            assert lib.finish(child) == 0
    finally:
        lib.carrel("stop", "-t", "0", name)
