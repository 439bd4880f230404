"""opencode in a box: it is given what is declared and nothing else.

opencode is the real one and its API the mock's.
"""

import lib
import parts
import pytest

KEY = "sk-ant-test-opencode-0123456789"
MODEL = "anthropic/claude-sonnet-4-5"


@pytest.fixture(autouse=True)
def opencode(client, host, mock):
    host.env |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"{mock.url}/v1"}
    host.env["OPENAI_API_KEY"] = "sk-of-another-provider"
    return client("opencode")


def declare(host, **more):
    parts.declare(host, "opencode", **{"model": MODEL, **more})


def asked(mock):
    return [r["body"] for r in mock.requests if r["path"].startswith("/v1/messages")
            and r["body"].get("tools")]  # fmt: skip


def tools(body):
    return {tool["name"] for tool in body["tools"]}


def outputs(body):
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    blocks = [block for content in contents for block in content]
    return [parts.shown(b["content"]) for b in blocks if b.get("type") == "tool_result"]


def test_only_what_is_declared(host, mock, opencode):
    parts.furnish(host)
    declare(host, effort="high", prompt="MOCK:call:docs_ask_declared:{}")
    home = lib.snapshot(host.home)
    events = parts.events(host.run("--events", "one"))
    body, left = asked(mock)[0], parts.marks(host)

    assert parts.marked(body) == parts.DECLARED
    assert "customize-opencode" not in parts.shown(body)
    assert set(left) == {"mcp-declared"} and parts.server_saw_all(left)
    assert "MARK-answer of declared" in parts.shown(asked(mock)[-1])
    assert (body["model"], body["thinking"]["budget_tokens"]) == ("claude-sonnet-4-5", 16000)
    assert len(asked(mock)) == len(mock.requests), "nothing is asked on the side"
    assert (events[0]["type"], events[-1]["type"]) == ("step_start", "step_finish")
    assert lib.snapshot(host.home) == home, "the user's home is as it was"

    mock.requests.clear()
    off = {f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "DEFAULT_PLUGINS")}
    done = host.direct(opencode, "run", "--auto", "-m", MODEL, input=b"MOCK:bash:true", env=off)
    lib.succeeded(done)
    found = parts.marked(asked(mock)[0])
    assert {"user", "user-agents", "user-claude", "project-agents", "project-opencode"} <= found
    assert "customize-opencode" in parts.shown(asked(mock)[0]), "one is bundled"
    assert {"mcp-user", "mcp-project"} == set(parts.marks(host))


def test_secrets_and_settings(host, mock):
    """The prompt is in no argv, the key in no file; the settings stay; tools are limited."""
    command = parts.look_for(KEY, parts.WORD, "MARK-role") + '; echo "${OPENAI_API_KEY-none}"; '
    command += parts.try_to_change("~/.config/opencode/AGENTS.md")
    command += "; (echo x >>/etc/carrel/opencode.json) 2>/dev/null && echo WROTE; true"
    prompt = f"MARK-prompt 'quoted' $(id)\nMOCK:bash:{command}"
    declare(host, prompt=prompt, tools=["bash", "read", "glob"], disallowedTools=["glob"])
    out, seen = parts.watched(host, "MARK-prompt", KEY, parts.WORD, "--title")
    assert out.strip().endswith(b"Done.")
    assert seen == {"--title"}, "the arguments were looked at"
    body = asked(mock)[0]
    assert prompt in parts.texts(body)
    assert tools(body) == {"bash", "read", "docs_ask_declared"}
    (output,) = outputs(asked(mock)[-1])
    assert "[]\\n[]\\n[" in output, output
    assert f"{host.home}/.config/opencode/AGENTS.md " in output, "the search can find"
    assert "]\\nnone\\nCONTROL" in output and "WROTE" not in output


def test_asking(host, mock):
    """With prompts and nobody to ask, nothing outside of the project is looked at."""
    prompt = 'MOCK:call:read:{"filePath": "/etc/carrel/prompt.md"}'
    declare(host, prompt=prompt, permissions={"skipPrompts": False})
    host.run("one")
    assert not any("filePath" in output for output in outputs(asked(mock)[-1]))
    mock.requests.clear()
    declare(host, prompt=prompt)
    lib.succeeded(host.run("one"))
    assert any("filePath" in output for output in outputs(asked(mock)[-1]))


def test_login(host, mock):
    """The user's login is used, and refresh tokens stay outside."""
    login = {"anthropic": {"type": "api", "key": KEY}}
    tokens = {"access": "access-me", "refresh": "refresh-me", "expires": 1}
    login["openai"] = {"type": "oauth", **tokens}
    path = host.write("~/.local/share/opencode/auth.json", login, 0o600)
    before = path.read_bytes()
    host.env["ANTHROPIC_API_KEY"] = None
    declare(host, prompt="MOCK:bash:" + parts.look_for("refresh-me", "access-me"))
    lib.succeeded(host.run("one"))
    assert {r["headers"].get("x-api-key") for r in mock.requests} == {KEY}
    (output,) = outputs(asked(mock)[-1])
    assert f"[]\\n[{host.home}/.local/share/opencode/auth.json ]" in output, output
    assert path.read_bytes() == before


def test_terminal(host, mock):
    declare(host, prompt="MARK-prompt")
    screen = parts.Screen(host.terminal("one", size=(40, 120)))
    screen.until(lambda: asked(mock), "the first request")
    shown = parts.shown(asked(mock)[0])
    assert "Read the file /etc/carrel/prompt.md" in shown
    assert parts.marked(shown) == parts.DECLARED
    assert not lib.processes("MARK-prompt") and lib.processes("it is my message to you")


def test_refused(host):
    """What it cannot be given exactly; all other tests are the control."""
    declare(host, hooks=["before"])
    lib.failed_clearly(host.run("one"), "hooks: opencode cannot be given this")
    parts.declare(host, "opencode", effort="high")
    lib.failed_clearly(host.run("one"), 'say which with "model"')
