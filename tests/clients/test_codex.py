"""Codex in a box: it is given what is declared and nothing else.

Codex is the real one and its API the mock's, by a provider of its own: against the built-in one
it would try WebSockets first, for seconds.
"""

import json

import lib
import parts
import pytest

KEY = "sk-test-codex-0123456789"
MODEL = "gpt-5.5"
NEWEST = "gpt-6-sol"  # on a terminal it would ask about an older one


def provider(mock, **more):
    entry = {"name": "mock", "base_url": f"{mock.url}/v1", "wire_api": "responses", **more}
    pairs = ",".join(f"{name}={json.dumps(value)}" for name, value in entry.items())
    return ["-c", f"model_providers.mock={{{pairs}}}", "-c", "model_provider=mock"]


@pytest.fixture(autouse=True)
def codex(client, host):
    host.env["CODEX_API_KEY"] = KEY
    return client("codex")


@pytest.fixture
def declare(host, mock):
    def declare(**more):
        args = provider(mock, env_key="CODEX_API_KEY")
        parts.declare(host, "codex", **{"model": MODEL, "args": args, **more})

    return declare


def asked(mock):
    return [r["body"] for r in mock.requests if r["method"] == "POST"]


def outputs(body):
    items = [item for item in body["input"] if item["type"].endswith("_call_output")]
    return [parts.shown(item["output"]) for item in items]


def test_only_what_is_declared(host, mock, codex, declare):
    parts.furnish(host)
    declare(effort="high", prompt="MOCK:call:mcp__docs/ask_declared:{}")
    home = lib.snapshot(host.home)
    events = parts.events(host.run("--events", "one"))
    body, left = asked(mock)[0], parts.marks(host)

    assert parts.marked(body) == parts.DECLARED
    assert set(left) == {"mcp-declared"} and parts.server_saw_all(left)
    assert "MARK-answer of declared" in parts.shown(asked(mock)[-1])
    assert (body["model"], body["reasoning"]["effort"]) == (MODEL, "high")
    assert events[0]["type"] == "thread.started" and events[-1]["type"] == "turn.completed"
    assert lib.snapshot(host.home) == home, "the user's home is as it was"

    mock.requests.clear()
    skip = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
    argv = [codex, "exec", "--skip-git-repo-check", *skip, *provider(mock), "-m", MODEL, "-"]
    lib.succeeded(host.direct(*argv, input=b"MOCK:bash:true"))
    found = parts.marked(asked(mock)[0])
    assert {"user", "user-codex", "user-agents", "project-codex", "project-agents"} <= found
    assert {"hook-user", "hook-project", "mcp-user", "mcp-project"} == set(parts.marks(host))


def test_secrets_and_settings(host, mock, declare):
    """The prompt is in no argv, the key in no file and not in the shell; config.toml stays."""
    command = parts.look_for(KEY, parts.WORD, "MARK-role") + '; echo "key=$CODEX_API_KEY'
    command += ' token=$TOKEN own=$OWN"; ' + parts.try_to_change("~/.codex/config.toml")
    prompt = f"MARK-prompt 'quoted' $(id)\nMOCK:bash:{command}"
    declare(prompt=prompt, env={"OWN": "of-the-agent"})
    out, seen = parts.watched(host, "MARK-prompt", KEY, parts.WORD, "model_provider=mock")
    assert out == b"Done.\n"
    assert seen == {"model_provider=mock"}, "the arguments were looked at"
    said = [item["content"] for item in asked(mock)[0]["input"] if item.get("role") == "user"]
    assert prompt in [part["text"].strip() for content in said for part in content]
    (output,) = outputs(asked(mock)[-1])
    assert "[]\\n[]\\n[" in output and f"{host.home}/.codex/AGENTS.md " in output, output
    assert "key= token= own=of-the-agent\\nCONTROL" in output


def test_asking(host, mock, declare):
    """With prompts and nobody to ask, what is not plainly harmless is not run."""
    declare(permissions={"skipPrompts": False})
    host.run("one")
    assert not (host.project / "from-the-agent").exists()
    declare()
    lib.succeeded(host.run("one"))
    assert (host.project / "from-the-agent").exists()


@pytest.mark.parametrize("kind", ["key", "tokens"])
def test_login(host, mock, declare, kind):
    """The user's login is used, and the refresh token stays outside."""
    claims = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln"
    tokens = {"id_token": claims, "access_token": claims, "refresh_token": "refresh-" + "me"}
    login = {"OPENAI_API_KEY": KEY}
    if kind == "tokens":
        login = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens}
        login["last_refresh"] = "2099-01-01T00:00:00Z"
    path = host.write("~/.codex/auth.json", login, 0o600)
    before = path.read_bytes()
    host.env["CODEX_API_KEY"] = None
    search = parts.look_for("refresh-me", claims if kind == "tokens" else KEY)
    declare(prompt=f"MOCK:bash:{search}", args=provider(mock, requires_openai_auth=True))
    lib.succeeded(host.run("one"))
    sent = {r["headers"].get("authorization") for r in mock.requests if r["method"] == "POST"}
    assert sent == {f"Bearer {claims if kind == 'tokens' else KEY}"}
    (output,) = outputs(asked(mock)[-1])
    assert f"[]\\n[{host.home}/.codex/auth.json ]" in output, output
    assert path.read_bytes() == before


def test_terminal(host, mock, declare):
    declare(prompt="MARK-prompt", model=NEWEST)
    screen = parts.Screen(host.terminal("one", size=(40, 120)))
    screen.until(lambda: asked(mock), "the first request")
    shown = parts.shown(asked(mock)[0])
    assert "Read the file /etc/carrel/prompt.md" in shown
    assert parts.marked(shown) == parts.DECLARED
    screen.until(lambda: b"mock." in screen.seen, "the answer")
    assert not lib.processes("MARK-prompt") and lib.processes("it is my message to you")


def test_refused(host, declare):
    """What it cannot be given exactly is refused, and the rest of the manifest is fine."""
    declare(tools=["shell"])
    lib.failed_clearly(host.run("one"), "tools: Codex cannot be given this")
    declare(hooks=["before"])
    lib.failed_clearly(host.run("one"), "hooks: Codex cannot be given this")
    declare(env={"TOKEN": "another"})
    lib.failed_clearly(host.run("one"), "mcpServers.docs.env.TOKEN", "the agent has another")
    declare(env={"TOKEN": "${HOST_TOKEN}"})
    lib.succeeded(host.run("one"))
