"""The user's own Codex, Gemini CLI and opencode in a box; Claude Code is in test_instances.py.

The clients are the real ones and their APIs the mock's. For each the same is tried: what is the
user's is seen and acts, nothing that a box does to it is there outside of the project's boxes,
and conversations belong to the project. Each has the client itself, in no box, beside it.
"""

import json
import pathlib
import time
import types

import lib
import parts
import pytest
import test_codex
import test_gemini
import test_opencode
from test_instances import at, holders, home_of, instance

SECRET = "word-said-in-the-first-project"
REFRESH = "refresh-token-of-the-user"
ONLINE = ["--network", "host"]
# Of one that is to be found in a box: written so that the command is not found itself.
GREP = f"grep -rlsF {SECRET[:-4]}'{SECRET[-4:]}' ~ | sort; "


class Codex:
    name, config, module = "codex", ".codex/config.toml", test_codex
    tool, ready = "mcp__owned/ask_owned", b"for shortcuts"
    instructions, history = ".codex/AGENTS.md", ".codex/history.jsonl"
    resume, told = ["resume", "--last"], "You run in a sandbox. /etc/carrel/SANDBOX.md"
    mine = {"model": test_codex.MODEL, "effort": "high"}
    env = {"CODEX_API_KEY": test_codex.KEY}

    def settings(self, host, server, *names):
        """What the user has set up, with MCP servers of these names."""
        lines = ['model_provider = "mock"', 'developer_instructions = "MARK-further"']
        lines += ["[model_providers.mock]", 'name = "mock"']
        lines += [f'base_url = "{host.mock.url}/v1"', 'wire_api = "responses"']
        lines += ['env_key = "CODEX_API_KEY"', "[features]", "apps = false"]
        for name in names:
            lines += [f"[mcp_servers.{name}]", f'command = "{server}"', f'args = ["{name}"]']
        return "\n".join(lines) + "\n"

    def direct(self, client, *more):
        skip = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [client, "exec", *skip, "-m", test_codex.MODEL, *more, "-"]


class Gemini:
    name, config, module = "gemini", ".gemini/settings.json", test_gemini
    tool, ready = "mcp_owned_ask_owned", b"Type your message"
    instructions, history = ".gemini/GEMINI.md", ".gemini/tmp/other/logs.json"
    resume, told = ["--resume", "latest"], "# Your sandbox"
    mine = {"model": test_gemini.MODEL}

    def __init__(self, mock):
        self.env = {"GEMINI_API_KEY": test_gemini.KEY, "GOOGLE_GEMINI_BASE_URL": mock.url}

    def settings(self, host, server, *names):
        servers = {name: {"command": server, "args": [name]} for name in names}
        auth = {"auth": {"selectedType": "gemini-api-key"}}
        # Its cleanup would remove, at the next start, a conversation that was continued in another
        # minute than it was begun in (docs/harnesses.md), in a box or not.
        keep = {"sessionRetention": {"enabled": False}}
        host.write("~/.gemini/NOTES.md", "MARK-further\n")
        context = {"fileName": "NOTES.md", "loadMemoryFromIncludeDirectories": False}
        settings = {"security": auth, "general": keep, "context": context}
        return json.dumps({**settings, "mcpServers": servers})

    def direct(self, client, *more):
        return [client, "--skip-trust", "--yolo", "-m", test_gemini.MODEL, *more]


class Opencode:
    name, config, module = "opencode", ".config/opencode/opencode.json", test_opencode
    tool, ready = "owned_ask_owned", b"Ask anything"
    instructions = ".config/opencode/AGENTS.md"
    history = ".local/share/opencode/log/old.log"
    resume, told = ["--continue"], "# Your sandbox"
    mine = {"model": test_opencode.MODEL}

    def __init__(self, mock):
        off = ("MODELS_FETCH", "DEFAULT_PLUGINS")
        self.env = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
        self.env["ANTHROPIC_API_KEY"] = test_opencode.KEY
        self.env["ANTHROPIC_BASE_URL"] = f"{mock.url}/v1"
        self.mine = self.mine | {"env": {name: "1" for name in self.env if "DISABLE" in name}}

    def settings(self, host, server, *names):
        servers = {name: {"type": "local", "command": [server, name]} for name in names}
        schema = "https://opencode.ai/config.json"  # or it would add that by itself
        host.write("~/.config/opencode/NOTES.md", "MARK-further\n")
        further = {"instructions": [str(host.home / ".config/opencode/NOTES.md")]}
        return json.dumps({"$schema": schema, "share": "disabled", "mcp": servers, **further})

    def direct(self, client, *more):
        return [client, "run", "--auto", "-m", test_opencode.MODEL, *more]


@pytest.fixture(params=["codex", "gemini", "opencode"])
def kind(request, mock):
    makers = {"codex": lambda _: Codex(), "gemini": Gemini, "opencode": Opencode}
    return makers[request.param](mock)


@pytest.fixture
def program(client, kind):
    return client(kind.name)


@pytest.fixture
def mine(host, kind, program):
    """The host of a user who has set this client up, and wants it when he says `carrel`."""
    host.env |= kind.env
    host.write("~/.config/carrel/carrel.json", {"mine": {"harness": kind.name, **kind.mine}})
    server = host.write(f"~/{pathlib.Path(kind.config).parent}/server", parts.SERVER, 0o755)
    host.write(f"~/{kind.config}", kind.settings(host, str(server), "owned"))
    host.write(f"~/{kind.instructions}", "MARK-user\n")
    skills = str(pathlib.Path(kind.config).parent / "skills")
    host.write(f"~/{skills}/userskill/SKILL.md", parts.skill("userskill"))
    return host


@pytest.fixture
def other(mine, place):
    path = lib.make_dir(place / "other")
    lib.git("init", "-q", cwd=path)
    return at(mine, path)


@pytest.fixture
def tree(mine, place):
    lib.git("worktree", "add", "-q", str(place / "tree"), cwd=mine.project)
    return at(mine, place / "tree")


def say(host, kind, prompt, *args):
    """What `carrel` does with a prompt: what the model was asked. args are the client's."""
    since = len(host.mock.requests)
    words = [*ONLINE, "mine", "--", *args] if args else ONLINE
    lib.succeeded(host.run(*words, input=prompt.encode()))
    return bodies_since(host, kind, since)


def bodies_since(host, kind, since):
    later = types.SimpleNamespace(requests=host.mock.requests[since:])
    bodies = kind.module.asked(later)
    assert bodies, "the model was asked"
    return bodies


def do(host, kind, command, *args):
    """Let the agent run a command of one line: what it printed."""
    assert "\n" not in command
    return kind.module.outputs(say(host, kind, f"MOCK:bash:{command}", *args)[-1])[-1]


def direct(host, kind, program, prompt="MOCK:text:hello", *args):
    """The client itself, in no box, as the user would start it."""
    since = len(host.mock.requests)
    lib.succeeded(host.direct(*kind.direct(program, *args), input=prompt.encode()))
    return bodies_since(host, kind, since)


def test_what_is_the_users_is_there(mine, kind, program):
    """Instructions, skills, servers and settings, as outside; and nothing of it changes."""
    before = home_of(mine)
    bodies = say(mine, kind, f"MOCK:call:{kind.tool}:{{}}")
    boxed, answered = bodies[0], bodies[-1]
    assert set(parts.marks(mine)) == {"mcp-owned"}
    assert parts.marked(boxed) >= {"user", "userskill", "further"}
    assert "MARK-answer of owned" in parts.shown(answered)
    assert kind.told in parts.shown(boxed)
    assert home_of(mine) == before
    outside = direct(mine, kind, program)[0]
    assert set(parts.marks(mine)) == {"mcp-owned"}
    assert parts.marked(outside) == parts.marked(boxed)
    assert kind.told not in parts.shown(outside)


def test_what_is_planted_stays_in_the_projects_boxes(mine, other, kind, program):
    """A server and instructions that an agent added for all sessions to come."""
    server = (mine.home / kind.config).parent / "server"
    mine.write("planted", kind.settings(mine, str(server), "owned", "planted"))
    before = home_of(mine)
    words = f"cp planted ~/{kind.config}; echo MARK-pla''nted >>~/{kind.instructions}"
    do(mine, kind, f"{words}; cat ~/{kind.config}")
    assert home_of(mine) == before, "byte for byte, and the very same files"
    parts.marks(mine)

    assert "planted" not in parts.marked(direct(mine, kind, program)[0])
    assert set(parts.marks(mine)) == {"mcp-owned"}
    home = home_of(mine)
    assert "planted" not in parts.marked(say(other, kind, "MOCK:text:hello")[0])
    assert set(parts.marks(other)) == {"mcp-owned"}
    # The control: in this project's boxes it is obeyed.
    assert "planted" in parts.marked(say(mine, kind, "MOCK:text:hello")[0])
    assert set(parts.marks(mine)) == {"mcp-owned", "mcp-planted"}
    assert home_of(mine) == home


def diff(host):
    return json.loads(lib.succeeded(lib.carrel("instances", "diff", "--json", cwd=host.project)))


SPOILT = {
    "rm": ("deleted", set(), ["-MARK-user"]),
    "echo MARK-oth''er >>": ("changed", {"other", "user"}, [" MARK-user", "+MARK-other"]),
}


@pytest.mark.parametrize("how", SPOILT, ids=["removed", "added to"])
def test_told_whatever_a_box_did(mine, kind, how):
    """The model, of its sandbox; instructions are what the user and the box made of them."""
    verb, marks, lines = SPOILT[how]
    out = do(mine, kind, f"{how} ~/{kind.instructions}; cat ~/{kind.instructions} && echo IS")
    assert "SANDBOX" not in out and ("IS" in out) == (verb != "deleted"), out
    for more in ([], kind.resume):
        body = say(mine, kind, "MOCK:text:hello", *more)[0]
        assert kind.told in parts.shown(body)
        assert parts.marked(body) & {"user", "other"} == marks
    changes = diff(mine)
    (change,) = [c for c in changes if c["name"] == f"~/{kind.instructions}"]
    assert change["change"] == verb
    assert [x for x in change["diff"].splitlines() if not x.startswith("@@")] == lines
    assert "/etc/carrel" not in json.dumps(changes), "nothing of our own"


def instead(host, kind):
    """A shell in place of the client."""
    client = pathlib.Path(lib.make_dir(host.project.parent / "fake")) / kind.name
    lib.make_file(client, "#!/bin/sh\nexec /bin/sh -s\n", mode=0o755)
    host.env["PATH"] = f"{client.parent}:{host.env['PATH']}"


@pytest.mark.parametrize("kind", ["gemini"], indirect=True)
def test_what_is_trusted_is_made_anew(mine, kind):
    """Gemini CLI's list has what the user says and our directory, whatever a box wrote."""
    path, users = ".gemini/trustedFolders.json", {"/srv/project": "DO_NOT_TRUST"}
    mine.write(f"~/{path}", users)
    before = home_of(mine)
    instead(mine, kind)
    script = f"cat ~/{path}; echo '{{}}' >~/{path}; cat ~/{path}\n".encode()
    for _ in range(2):
        seen = lib.succeeded(mine.run(input=script)).decode()
        assert json.loads(seen.removesuffix("{}\n")) == users | {"/etc/carrel": "TRUST_FOLDER"}
        assert seen.endswith("{}\n"), "the control: a box can write it"
    assert diff(mine) == [] and home_of(mine) == before
    done = lib.carrel("instances", "take", f"~/{path}", cwd=mine.project)
    lib.failed_clearly(done, "every box gets it anew")


@pytest.mark.parametrize("kind", ["gemini"], indirect=True)
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "headless"])
def test_direct_is_told_of_its_sandbox(mine, kind, terminal):
    """With home "direct" too, and without a question; the user's own list stays as it is."""
    users = {"/srv/project": "DO_NOT_TRUST"}
    path = mine.write("~/.gemini/trustedFolders.json", users)
    text = path.read_bytes()
    mine.write("~/.config/carrel/carrel.json", {"mine": {"harness": "gemini", "home": "direct"}})
    body = converse(mine, kind, trust=False) if terminal else say(mine, kind, "MOCK:text:hello")
    assert kind.told in parts.shown(body)
    assert path.read_bytes() == text


def test_conversations_are_the_projects(mine, other, kind):
    """Continued in the project, unknown in another; kept in the instance alone."""
    before = home_of(mine)
    say(mine, kind, f"MOCK:text:first {SECRET}")
    assert SECRET in parts.shown(say(mine, kind, "MOCK:text:second", *kind.resume))
    assert SECRET not in parts.shown(say(mine, kind, "MOCK:text:third"))
    found = do(other, kind, GREP + "echo END")
    assert "END" in found and str(mine.home) not in found
    assert str(mine.home) in do(mine, kind, GREP + "echo END"), "the control"
    kept = holders(mine.home, SECRET)
    assert kept and all(path.startswith(f"{instance(mine)}/") for path in kept), kept
    assert home_of(mine) == before


def test_another_project_cannot_continue(mine, other, kind):
    say(mine, kind, f"MOCK:text:first {SECRET}")
    since = len(mine.mock.requests)
    words = [*ONLINE, "mine", "--", *kind.resume]
    other.run(*words, input=b"MOCK:text:second")
    assert SECRET not in json.dumps(mine.mock.requests[since:])
    assert SECRET in parts.shown(say(mine, kind, "MOCK:text:third", *kind.resume)), "control"


def test_worktrees_share(mine, tree, kind):
    """Gemini CLI and Codex look for conversations by directory; the files are all there."""
    say(mine, kind, f"MOCK:text:first {SECRET}")
    assert str(mine.home) in do(tree, kind, GREP + "echo END")


def test_conversations_of_the_user_are_not_seen(mine, kind, program):
    """Those that were held outside of any box, in this very project."""
    direct(mine, kind, program, f"MOCK:text:outside {SECRET}")
    mine.write(f"~/{kind.history}", json.dumps({"text": SECRET}) + "\n")
    assert holders(mine.home, SECRET), "the control"
    before = home_of(mine)
    found = do(mine, kind, GREP + "echo END")
    assert "END" in found and str(mine.home) not in found, found
    again = say(mine, kind, "MOCK:text:again", *kind.resume)
    assert SECRET not in parts.shown(again)
    assert home_of(mine) == before


def test_two_at_once(mine, kind):
    """Both conversations are kept, and can be looked up."""
    first, second = f"{SECRET}-one", f"{SECRET}-two"
    wait = "until [ -e both ]; do sleep 0.05; done"
    processes = []
    for number, word in enumerate((first, second)):
        process = mine.start(*ONLINE)
        command = f"touch here-{number}; {wait}; echo {word}"
        process.stdin.write(f"MOCK:bash:{command}".encode())
        process.stdin.close()
        process.stdin = None
        processes.append(process)
        lib.wait_for((mine.project / f"here-{number}").exists, "the box")
    lib.make_file(mine.project / "both")
    for process in processes:
        out, err = process.communicate(timeout=lib.TIMEOUT)
        assert process.returncode == 0, (out, err)
    for word in (first, second):
        assert holders(instance(mine), word), word
    again = parts.shown(say(mine, kind, "MOCK:text:again", *kind.resume))
    assert first in again or second in again


def press_until(screen, condition, what):
    """Enter, again and again: a client may not be listening yet."""
    times = [time.monotonic()]

    def looked():
        if time.monotonic() - times[-1] > 1:
            times.append(time.monotonic())
            screen.child.send("\r")
        return condition()

    return screen.until(looked, what)


def converse(host, kind, trust):
    """Typed on a terminal and sent, after what the client asks by itself; the request."""
    screen, since = parts.Screen(host.terminal(*ONLINE, size=(40, 120))), len(host.mock.requests)
    if trust:
        screen.until(lambda: b"Trust" in screen.seen, "the question about trust")
        screen.seen = b""
        press_until(screen, lambda: b"YOLO" in screen.seen, "the end of it")
    screen.until(lambda: kind.ready in screen.seen, "the prompt")
    screen.child.send("MOCK:text:hello MARK-typed")

    def sent():
        later = types.SimpleNamespace(requests=host.mock.requests[since:])
        return [b for b in kind.module.asked(later) if "MARK-typed" in parts.shown(b)]

    body = press_until(screen, sent, "the request")[0]
    assert b"Trust" not in screen.seen and b"Do you trust" not in screen.seen
    return body


def test_on_a_terminal(mine, kind):
    """Started and used; Codex asks once per project whether the directory is trusted."""
    if kind.name == "codex":
        config = {"harness": "codex", "model": test_codex.NEWEST}
        mine.write("~/.config/carrel/carrel.json", {"mine": config})
    before = home_of(mine)
    body = converse(mine, kind, trust=kind.name == "codex")
    assert parts.marked(body) >= {"user", "userskill", "typed"}
    if kind.name == "codex":
        # Codex shows its prompt before it has written the answer down.
        lib.wait_for(lambda: holders(instance(mine), "trust_level"), "the answer to be kept")
    lib.end_started()
    assert parts.marked(converse(mine, kind, trust=False)) >= {"user", "typed"}
    assert home_of(mine) == before


LOGINS = {
    "codex": (
        ".codex/auth.json",
        {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "last_refresh": "2099-01-01T00:00:00Z",
         "tokens": {"id_token": "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln",
                    "access_token": "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln",
                    "refresh_token": REFRESH}},
    ),
    "gemini": (
        ".gemini/oauth_creds.json",
        {"access_token": "access-of-the-user", "refresh_token": REFRESH,
         "token_type": "Bearer", "expiry_date": 4102444800000},
    ),
    "opencode": (
        ".local/share/opencode/auth.json",
        {"other": {"type": "oauth", "access": "access-of-the-user", "refresh": REFRESH,
                   "expires": 4102444800000}},
    ),
}  # fmt: skip


def test_the_refresh_token_stays_outside(mine, kind):
    """What the plan puts there, seen without the client: some use a key where there is one."""
    path, login = LOGINS[kind.name]
    mine.write(f"~/{path}", login, 0o600)
    keys = [name for name in mine.env if name.endswith("_KEY")]
    mine.env |= {name: None for name in keys}
    before = home_of(mine)
    instead(mine, kind)
    word = f"{REFRESH[:-4]}'{REFRESH[-4:]}'"
    script = f"grep -rlsF {word} ~ /etc /run /tmp; cat ~/{path}; echo spoilt >~/{path}\n"
    seen = lib.succeeded(mine.run(input=script.encode()))
    box = json.loads(seen)
    assert REFRESH not in json.dumps(box)
    assert json.dumps(box) == json.dumps(login).replace(REFRESH, ""), box
    assert home_of(mine) == before
    assert (mine.home / path).read_text() == json.dumps(login, indent=1)
    assert lib.succeeded(mine.run(input=f"cat ~/{path}\n".encode())) == seen, "as new"
    assert not holders(instance(mine), REFRESH)
