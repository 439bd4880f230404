"""Gemini CLI in a box: it is given what is declared and nothing else.

Gemini CLI is the real one and its API the mock's.
"""

import json

import lib
import parts
import pytest

KEY = "AIza-test-gemini-0123456789"
MODEL = "gemini-2.5-pro"
SHELL = {"run_shell_command", "read_file"}


@pytest.fixture(autouse=True)
def gemini(client, host, mock):
    host.env |= {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": mock.url}
    return client("gemini")


def declare(host, **more):
    parts.declare(host, "gemini", **{"model": MODEL, **more})


def asked(mock):
    return [r["body"] for r in mock.requests if ":streamGenerateContent" in r["path"]]


def tools(body):
    return {f["name"] for t in body["tools"] for f in t["functionDeclarations"]}


def outputs(body):
    everything = [part for content in body["contents"] for part in content["parts"]]
    return [parts.shown(p["functionResponse"]) for p in everything if "functionResponse" in p]


def listed_skills(body):
    (tool,) = [f for t in body["tools"] for f in t["functionDeclarations"]
               if f["name"] == "activate_skill"]  # fmt: skip
    return set(tool["parametersJsonSchema"]["properties"]["name"]["enum"])


def test_only_what_is_declared(host, mock, gemini):
    parts.furnish(host)
    host.write("GEMINI.md", "MARK-gemini\n")
    declare(host, effort="2048", prompt="MOCK:call:mcp_docs_ask_declared:{}")
    home = lib.snapshot(host.home)
    events = parts.events(host.run("--events", "one"))
    body, left = asked(mock)[0], parts.marks(host)

    assert parts.marked(body) == parts.DECLARED | {"gemini"}
    assert listed_skills(body) == {"declared"}
    assert set(left) == {"mcp-declared"} and parts.server_saw_all(left)
    assert "MARK-answer of declared" in parts.shown(asked(mock)[-1])
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2048
    assert {MODEL in r["path"] for r in mock.requests} == {True}
    assert (events[0]["type"], events[-1]["type"]) == ("init", "result")
    assert lib.snapshot(host.home) == home, "the user's home is as it was"

    mock.requests.clear()
    own = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings = json.loads((host.home / ".gemini/settings.json").read_bytes())
    host.write("~/.gemini/settings.json", settings | own)
    trust = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    done = host.direct(gemini, "--yolo", "-m", MODEL, input=b"MOCK:bash:true", env=trust)
    lib.succeeded(done)
    found = parts.marked(asked(mock)[0])
    assert {"user", "user-gemini", "user-agents", "project-gemini", "project-agents"} <= found
    assert "skill-creator" in listed_skills(asked(mock)[0]), "some are bundled"
    assert {"hook-user", "hook-project", "mcp-user", "mcp-project"} == set(parts.marks(host))


def test_secrets_and_settings(host, mock):
    """The prompt is in no argv, the key in no file; settings.json stays; tools are limited."""
    command = parts.look_for(KEY, parts.WORD, "MARK-role")
    command += "; " + parts.try_to_change("~/.gemini/settings.json")
    prompt = f"MARK-prompt 'quoted' $(id)\nMOCK:bash:{command}"
    limits = {"tools": [*SHELL, "glob"], "disallowedTools": ["glob"]}
    declare(host, prompt=prompt, effort="high", **limits)
    out, seen = parts.watched(host, "MARK-prompt", KEY, parts.WORD, MODEL)
    assert out == b"Done.\n"
    assert seen == {MODEL}, "the arguments were looked at"
    body = asked(mock)[0]
    assert prompt in [p.get("text", "").strip() for c in body["contents"] for p in c["parts"]]
    assert tools(body) == SHELL | {"mcp_docs_ask_declared"}
    assert body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "HIGH"
    (output,) = outputs(asked(mock)[-1])
    assert "[]\\n[]\\n[" in output and f"{host.home}/.gemini/GEMINI.md " in output, output
    assert "]\\nCONTROL" in output


def test_asking(host, mock):
    """With prompts and nobody to ask, no command is run."""
    declare(host, permissions={"skipPrompts": False})
    host.run("one")
    assert asked(mock) and not (host.project / "from-the-agent").exists()
    declare(host)
    lib.succeeded(host.run("one"))
    assert (host.project / "from-the-agent").exists()


def test_terminal(host, mock):
    """The prompt itself is what the model gets."""
    declare(host, prompt="MARK-prompt MOCK:text:that is all")
    screen = parts.Screen(host.terminal("one", size=(40, 120)))
    screen.until(lambda: asked(mock), "the first request")
    assert parts.marked(asked(mock)[0]) == parts.DECLARED | {"prompt"}
    screen.until(lambda: b"that is all" in screen.seen, "the answer")
    assert b"Do you trust" not in screen.seen
    assert not lib.processes("MARK-prompt") and lib.processes("@/etc/carrel/prompt.md")


def test_refused(host):
    """What it cannot be given exactly; all other tests are the control."""
    declare(host, hooks=["before"])
    lib.failed_clearly(host.run("one"), "hooks: Gemini CLI cannot be given this")
    parts.declare(host, "gemini", effort="high")
    lib.failed_clearly(host.run("one"), 'say which with "model"')
