"""Claude Code in a box: it is given what is declared and nothing else, and can keep nothing.

Claude Code is the real one and its API the mock's. What the model was shown is read off the
requests; hooks and MCP servers leave files in the project when they run.
"""

import hashlib
import json
import os

import lib
import pexpect
import pytest
from sshd import key, serve  # noqa: F401

KEY = "sk-ant-test-0123456789abcdefghijklmnopqrstuvwxyz"
NO_TRAFFIC = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

# An MCP server with one tool. That it was started, and with what in TOKEN, is in a file.
SERVER = """#!/usr/bin/python3
import hashlib, json, os, sys

name = sys.argv[1]
with open("mcp-" + name, "w") as file:
    token = os.environ.get("TOKEN", "")
    json.dump([sys.argv[2:], hashlib.sha256(token.encode()).hexdigest()], file)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": name, "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object"}
        tool = {"name": "ask_" + name, "description": "asks " + name, "inputSchema": schema}
        result = {"tools": [tool]}
    elif "id" not in message:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
# A hook that leaves its arguments.
HOOK = """#!/usr/bin/python3
import json, sys

with open("hook-" + sys.argv[1], "w") as file:
    json.dump(sys.argv[2:], file)
"""


@pytest.fixture(autouse=True)
def claude(client, host):
    host.env["ANTHROPIC_API_KEY"] = KEY
    return client("claude")


def skill(name):
    return f"---\nname: {name}\ndescription: MARK-{name} does things\n---\nDo it.\n"


def asked(mock):
    """The bodies of what the model was asked, without requests on the side."""
    return [r["body"] for r in mock.requests if r["path"].startswith("/v1/messages")
            and r["body"].get("tools")]  # fmt: skip


def shown(body):
    return json.dumps(body, ensure_ascii=False)


def tools(body):
    return {tool["name"] for tool in body["tools"]}


def texts_of(message):
    content = message["content"]
    return [content] if isinstance(content, str) else [b.get("text", "") for b in content]


def results(mock):
    """What the tools answered, in order, as the model was told."""
    found = []
    for message in asked(mock)[-1]["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                inner = block["content"]
                found.append(inner if isinstance(inner, str) else inner[0].get("text", ""))
    return found


def shell(*commands):
    """A script for the mock: one turn of Bash for each command."""
    return [[{"type": "tool_use", "name": "Bash", "input": {"command": c, "description": "x"}}]
            for c in commands]  # fmt: skip


# ---- only what is declared --------------------------------------------------------------


def hooks(command):
    entry = {"hooks": [{"type": "command", "command": command}]}
    return {"hooks": {"SessionStart": [entry], "PreToolUse": [{"matcher": "*", **entry}]}}


def furnish(host):
    """A user and a project that both have everything Claude Code would pick up."""
    server = host.write("bin/server", SERVER, 0o755)
    host.write("bin/hook", HOOK, 0o755)
    lib.make_file(host.project.parent / "CLAUDE.md", "MARK-ancestor-memory\n")
    for top, who in (("~/", "user"), ("", "project")):
        host.write(f"{top}.claude/skills/{who}skill/SKILL.md", skill(f"{who}skill"))
        host.write(f"{top}.claude/agents/{who}agent.md", skill(f"{who}agent"))
        host.write(f"{top}.claude/commands/{who}command.md", skill(f"{who}command"))
        settings = {"enableAllProjectMcpServers": True, **hooks(f"touch hook-{who}")}
        host.write(f"{top}.claude/settings.json", settings)
    host.write(".claude/settings.local.json", hooks("touch hook-local"))
    servers = {w: {"command": str(server), "args": [w]} for w in ("user", "project")}
    host.write("~/.claude/CLAUDE.md", "MARK-user-memory\n")
    host.write("CLAUDE.md", "MARK-project-memory\n")
    trusted = {str(host.project): {"hasTrustDialogAccepted": True}}
    host.write("~/.claude.json", {"mcpServers": {"user": servers["user"]}, "projects": trusted})
    host.write(".mcp.json", {"mcpServers": {"project": servers["project"]}})


STRANGE = ["$(touch pwned)", "two words", "`id`;*", "$HOME"]


def declare(host):
    """An agent that has one of each."""
    host.write("lib/declared/SKILL.md", skill("declared"))
    host.write("lib/plugin/.claude-plugin/plugin.json", {"name": "plug", "version": "1.0.0"})
    host.write("lib/plugin/skills/plugged/SKILL.md", skill("plugged"))
    plugged = {"command": str(host.project / "bin/server"), "args": ["plugin"]}
    host.write("lib/plugin/.mcp.json", {"mcpServers": {"plugged": plugged}})
    host.write("roles/role.md", "MARK-role\n")
    host.manifest(
        {
            "one": {
                "role": "./roles/role.md",
                "prompt": "MOCK:bash:touch from-the-agent",
                "skills": ["declared"],
                "mcpServers": ["docs"],
                "plugins": ["plug"],
                "hooks": ["before"],
            }
        },
        {
            "skills": {"declared": {"source": "./lib/declared"}},
            "mcpServers": {
                "docs": {
                    "command": "./bin/server",
                    "args": ["declared", *STRANGE],
                    "env": {"TOKEN": "${HOST_TOKEN}"},
                }
            },
            "plugins": {"plug": {"source": "./lib/plugin"}},
            "hooks": {
                "before": {
                    "event": "PreToolUse",
                    "matcher": "Bash",
                    "command": ["./bin/hook", "declared", *STRANGE],
                }
            },
        },
    )


OTHERS = [
    "MARK-user-memory",
    "MARK-userskill",
    "MARK-useragent",
    "MARK-usercommand",
    "MARK-ancestor-memory",
    "MARK-projectskill",
    "MARK-projectagent",
    "MARK-projectcommand",
]


def marks(host):
    """What hooks, servers and tools have left in the project; it is taken away."""
    found = {}
    for path in host.project.iterdir():
        if path.name.startswith(("hook-", "mcp-", "from-")) or path.name == "pwned":
            found[path.name] = path.read_text()
            path.unlink()
    return found


def listed_skills(body):
    """The names in the list of skills that the client shows to the model."""
    texts = [text for message in body["messages"] for text in texts_of(message)]
    lists = [t for t in texts if "skills are available" in t]
    assert len(lists) == 1, texts
    after = lists[0].split("skills are available", 1)[1]
    return {line[2:].split(": ")[0] for line in after.splitlines() if line.startswith("- ")}


def test_only_what_is_declared(host, mock, claude):
    """Skills, memory, agents, MCP servers, plugins and hooks; the control is no box at all."""
    furnish(host)
    declare(host)
    home = lib.snapshot(host.home)
    done = host.run("--events", "one", env={"HOST_TOKEN": "token-of-the-host"})
    events = [json.loads(line) for line in lib.succeeded(done).splitlines()]
    body, left = asked(mock)[0], marks(host)

    assert listed_skills(body) == {"declared", "plug:plugged"}
    assert not [mark for mark in OTHERS if mark in shown(body)]
    for mark in ("MARK-role", "MARK-project-memory", "MARK-declared", "MARK-plugged"):
        assert mark in shown(body), mark
    servers = {name for name in tools(body) if name.startswith("mcp__")}
    assert servers == {"mcp__docs__ask_declared", "mcp__plugin_plug_plugged__ask_plugin"}
    assert set(left) == {"hook-declared", "mcp-declared", "mcp-plugin", "from-the-agent"}
    assert json.loads(left["hook-declared"]) == STRANGE
    token = hashlib.sha256(b"token-of-the-host").hexdigest()
    assert json.loads(left["mcp-declared"]) == [STRANGE, token]
    assert events[0]["subtype"] == "init" and events[-1]["type"] == "result"
    assert events[-1]["result"] == "Done." and not events[-1]["is_error"]
    assert lib.snapshot(host.home) == home, "the user's home is as it was"

    mock.requests.clear()
    skip = "--dangerously-skip-permissions"
    lib.succeeded(host.direct(claude, "-p", skip, input=b"MOCK:bash:true", env=NO_TRAFFIC))
    body, left = asked(mock)[0], marks(host)
    assert not [mark for mark in OTHERS if mark not in shown(body)]
    assert len(listed_skills(body)) > 4, "some are bundled"
    assert {"mcp__user__ask_user", "mcp__project__ask_project"} <= tools(body)
    ran = {"hook-user", "hook-project", "hook-local", "mcp-user", "mcp-project"}
    assert set(left) == ran


def test_two_agents_in_one_project(host, mock):
    """At the same time, each with its own; what they say is plain text."""
    agents = {}
    for name in ("left", "right"):
        host.write(f"lib/{name}/SKILL.md", skill(name))
        host.write(f"roles/{name}.md", f"MARK-role-{name}\n")
        prompt = f"MOCK:text:said by {name}"
        agents[name] = {"role": f"./roles/{name}.md", "skills": [name], "prompt": prompt}
    skills = {name: {"source": f"./lib/{name}"} for name in agents}
    host.manifest(agents, {"skills": skills})
    running = {name: host.start(name) for name in agents}
    for name, process in running.items():
        out, err = process.communicate(timeout=lib.TIMEOUT)
        assert (process.returncode, out) == (0, f"said by {name}\n".encode()), err
    assert len(asked(mock)) == 2
    for name, other in (("left", "right"), ("right", "left")):
        (body,) = [b for b in asked(mock) if f"said by {name}" in shown(b)]
        assert listed_skills(body) == {name}
        assert f"MARK-role-{name}" in shown(body) and f"MARK-role-{other}" not in shown(body)


# ---- on a copy of the project ------------------------------------------------------------


def test_on_a_copy_and_applied(host, mock):
    """It edits by its own tools, is told that it is a copy, and the user takes what it did."""

    def tool(name, **arguments):
        return [{"type": "tool_use", "name": name, "input": arguments}]

    mock.scripts["edit"] = [
        tool("Read", file_path="{cwd}/src/cache.c"),
        tool("Edit", file_path="{cwd}/src/cache.c", old_string="three", new_string="drei"),
        tool("Write", file_path="{cwd}/docs/cache.md", content="# Cache\n"),
        *shell("git rm -q src/old.c && git mv lib library && git commit -qam 'from the agent'",
               "cat /etc/carrel/SANDBOX.md"),
    ]  # fmt: skip
    host.write("src/cache.c", "one\ntwo\nthree\nfour\nfive\nsix\n")
    for name in ("src/old.c", "lib/a", "lib/deep/b"):
        host.write(name, f"{name}\n")
    host.manifest({"fixer": {"prompt": "MOCK:edit", "workspace": {"mode": "overlay"}}})
    lib.git("add", "-A", cwd=host.project)
    lib.git("commit", "-qm", "start", cwd=host.project)
    before = lib.snapshot(host.project)
    done = host.run("fixer")
    assert lib.succeeded(done) == b"Done.\n"
    assert lib.snapshot(host.project) == before
    assert b"nothing on the host has changed yet" in done.stderr
    assert b"carrel diff carrel-fixer" in done.stderr
    told = lib.succeeded(lib.carrel("diff", "carrel-fixer", "--name-only", cwd=host.project)).decode()
    assert "You work on a copy of the project." in shown(asked(mock)[0])
    assert "You work on a copy of these." in results(mock)[-1]
    moved = ["lib/a", "lib/deep/b", "library/a", "library/deep/b"]
    assert told.split() == ["docs/cache.md", *moved, "src/cache.c", "src/old.c"]
    host.write("src/cache.c", "ONE\ntwo\nthree\nfour\nfive\nsix\n")
    done = lib.carrel("apply", "carrel-fixer", cwd=host.project)
    lib.succeeded(done)
    assert b"src/cache.c changed here since the box started; merged" in done.stderr
    assert b"7 changes applied" in done.stderr
    assert (host.project / "src/cache.c").read_text().split() == ["ONE", "two", "drei", "four", "five", "six"]
    assert (host.project / "docs/cache.md").read_text() == "# Cache\n"
    assert (host.project / "library/deep/b").is_file() and not (host.project / "lib").exists()
    lib.succeeded(lib.carrel("apply", "carrel-fixer", "--as-branch", "agents", cwd=host.project))
    assert "from the agent" in lib.git("log", "--format=%s", "agents", cwd=host.project)


# ---- tools and permissions --------------------------------------------------------------


def test_tools_and_permissions(host, mock):
    """`tools` is all there is, disallowedTools takes away, deny is obeyed without a prompt."""
    mock.scripts["try"] = [
        *shell("mkdir from-denied", "mkdir from-allowed"),
        [{"type": "tool_use", "name": "Read", "input": {"file_path": "{cwd}/secret.txt"}}],
        [{"type": "tool_use", "name": "Read", "input": {"file_path": "{cwd}/public.txt"}}],
        [{"type": "tool_use", "name": "Write",
          "input": {"file_path": "{cwd}/written", "content": "x"}}],
    ]  # fmt: skip
    host.write("secret.txt", "MARK-secret\n")
    host.write("public.txt", "MARK-public\n")
    deny = ["Bash(mkdir from-denied)", "Read(./secret.txt)"]
    host.manifest(
        {
            "one": {
                "prompt": "MOCK:try",
                "tools": ["Bash", "Read", "Write", "Skill"],
                "disallowedTools": ["Write"],
                "permissions": {"deny": deny},
            },
            "free": {"prompt": "MOCK:try"},
        }
    )
    assert lib.succeeded(host.run("one")) == b"Done.\n"
    assert tools(asked(mock)[0]) == {"Bash", "Read", "Skill"}
    assert not (host.project / "from-denied").exists()
    assert (host.project / "from-allowed").is_dir()
    assert "MARK-public" in shown(asked(mock)[-1])
    assert "MARK-secret" not in shown(asked(mock)[-1])
    assert not (host.project / "written").exists()

    mock.requests.clear()
    lib.succeeded(host.run("free"))
    assert {"Bash", "Read", "Write", "Edit", "WebFetch"} <= tools(asked(mock)[0])
    assert (host.project / "from-denied").is_dir() and (host.project / "written").is_file()
    assert "MARK-secret" in shown(asked(mock)[-1])


# ---- secrets ----------------------------------------------------------------------------


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def watch(process, words):
    """Until the process ends: in how many argv each word was, and in whose environment."""
    argv, environ, looks = dict.fromkeys(words, 0), {word: set() for word in words}, 0
    own = os.readlink("/proc/self/ns/pid")
    while process.poll() is None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            line, env = read(f"/proc/{pid}/cmdline"), read(f"/proc/{pid}/environ")
            for word in words:
                argv[word] += word.encode() in line
                if word.encode() in env:
                    inside = is_inside(pid, own)
                    environ[word] |= {inside} - {None}
        looks += 1
    assert looks > 3
    return argv, environ


def is_inside(pid, own):
    """Is it a process of a box? None: it has gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") != own
    except OSError:
        return None


def files_with(word, *tops):
    """The files below that have the word in them, or in their name."""
    found = set()
    for top in tops:
        for where, _, names in os.walk(top):
            for name in names:
                path = os.path.join(where, name)
                if word in name or word.encode() in read(path):
                    found.add(path)
    return found


FROM_COMMAND = "value-that-a-command-printed"
FROM_HOST = "value-of-a-variable-of-the-host"
# Looks for what the variables hold: the command itself is kept in the client's files.
SEARCH = (
    'for v in "$ANTHROPIC_API_KEY" "$COMMAND" "$HOST" "$ROLE"; do'
    ' echo "[${#v}" $(printf %s "$v" | grep -rlFs -f - "$HOME" "$PWD" /tmp /run /etc) "]";'
    " done; sleep 1"
)


def test_prompt_and_secrets_stay_where_they_belong(host, mock):
    """Neither in an argv nor in a file, and in the environment of the box's processes alone."""
    mock.scripts["search"] = shell(SEARCH, "env")
    prompt = "MARK-prompt \"quoted\" 'too' $(id) `id` \\\n\tMOCK:search\n" + "é line\n" * 7000
    prompt += "the last line"
    secret = host.write("~/.secret", FROM_COMMAND + "\n", 0o600)
    host.write("bin/server", SERVER, 0o755)
    host.write("roles/role.md", "MARK-role\n")
    host.manifest(
        {
            "one": {
                "prompt": prompt,
                "role": "./roles/role.md",
                "mcpServers": ["docs"],
                "args": ["--name", "MARK-in-an-argument"],
                "env": {
                    "COMMAND": f"!cat '{secret}'",
                    "HOST": "${HOST_TOKEN}",
                    "LITERAL": "a $literal value",
                    "ESCAPED": "\\?no question",
                    "ROLE": "MARK-role",
                },
            }
        },
        {
            "mcpServers": {
                "docs": {
                    "command": "./bin/server",
                    "args": ["docs"],
                    "env": {"TOKEN": "${HOST_TOKEN}"},
                }
            }
        },
    )
    before = lib.snapshot(host.project), lib.snapshot(host.home)
    process = host.start("one", env={"HOST_TOKEN": FROM_HOST}, stdin=None, stdout=None)
    values = [KEY, FROM_COMMAND, FROM_HOST]
    argv, environ = watch(process, ["MARK-prompt", "MARK-in-an-arg", *values])
    assert process.returncode == 0, process.stderr.read()

    texts = [text for message in asked(mock)[0]["messages"] for text in texts_of(message)]
    assert [text.strip() for text in texts if "MARK-prompt" in text] == [prompt]
    assert argv.pop("MARK-in-an-arg") > 0 and not any(argv.values()), argv
    assert environ[FROM_COMMAND] == {True}, "the launcher's own has it not"
    assert environ["MARK-prompt"] == set()
    assert True in environ[KEY] and True in environ[FROM_HOST]

    found, env = results(mock)
    lines = [line.strip("[]").split() for line in found.splitlines()]
    assert [int(line[0]) for line in lines] == [len(v) for v in (*values, "MARK-role")]
    assert [line[1:] for line in lines[:3]] == [[], [], []]
    assert f"{host.home}/.claude/CLAUDE.md" in lines[3], "the search can find"
    for line in (f"COMMAND={FROM_COMMAND}", "LITERAL=a $literal value", "ESCAPED=?no question"):
        assert line in env.splitlines(), line
    left = json.loads((host.project / "mcp-docs").read_text())
    assert left == [[], hashlib.sha256(FROM_HOST.encode()).hexdigest()]

    (host.project / "mcp-docs").unlink()
    assert (lib.snapshot(host.project), lib.snapshot(host.home)) == before
    for word, where in ((KEY, set()), (FROM_HOST, set()), (FROM_COMMAND, {str(secret)})):
        assert files_with(word, host.project.parent) == where


def credentials(host):
    """The user is logged in and has no key."""
    host.env.pop("ANTHROPIC_API_KEY")
    login = {
        "accessToken": "access-token-of-the-user",
        "refreshToken": "refresh-token-of-the-user",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    return host.write("~/.claude/.credentials.json", {"claudeAiOauth": login}, 0o600)


def test_login(host, mock):
    """The access token goes with the client; the refresh token stays at home."""
    login = credentials(host)
    mock.scripts["login"] = shell(
        "cat ~/.claude/.credentials.json",
        "grep -rlFs -e refresh-'token-of' ~ . /tmp /run /etc; echo end",
        "grep -rlFs -e access-'token-of' ~; echo >>~/.claude/.credentials.json",
    )
    host.manifest({"one": {"prompt": "MOCK:login"}})
    before = lib.snapshot(host.home)
    lib.succeeded(host.run("one"))
    sent = {r["headers"].get("authorization") for r in mock.requests if r["method"] == "POST"}
    assert sent == {"Bearer access-token-of-the-user"}
    assert not any("x-api-key" in r["headers"] for r in mock.requests)
    file, refresh, access = results(mock)
    assert "access-token-of-the-user" in file and "refresh" not in file
    assert refresh.split() == ["end"] and str(login) in access.split()
    assert "refresh-token-of-the-user" not in json.dumps(mock.requests)
    assert lib.snapshot(host.home) == before


def test_bottle_manifest(host, mock, key, serve):
    """Agents with env, skills, prompt and ssh; what is asked for is typed unseen."""
    typed, server = "typed on the terminal", serve()
    mock.scripts["journal"] = shell(
        'printf "%s|%s|%s" "$ASKED" "$COPIED" "$PLAIN" >from-box',
        "ssh code echo logged-in >from-ssh; cat ~/.ssh/id >key; find / -name id >>key; true",
    )
    for name in ("userskill", "otherskill"):
        host.write(f"~/.claude/skills/{name}/SKILL.md", skill(name))
    host.approve(
        {
            "agents": {
                "journal": {
                    "env": {
                        "ASKED": "?Token for the journal",
                        "COPIED": "${HOST_TOKEN}",
                        "PLAIN": "as it is",
                    },
                    "skills": ["userskill"],
                    "prompt": "MOCK:journal",
                    "ssh": [server.entry("~/.ssh/id", "code")],
                }
            }
        }
    )
    argv = ["run", "-y", "--headless", "--network", "host", "journal"]
    child = host.terminal_as_known(*argv, env={"HOST_TOKEN": "copied"})
    child.expect("Token for the journal")
    lib.wait_for(lambda: not child.getecho(), "no echo")
    child.sendline(typed)
    child.expect("Done.")
    assert typed.encode() not in child.before
    assert lib.finish(child) == 0
    assert (host.project / "from-box").read_text() == f"{typed}|copied|as it is"
    assert (host.project / "from-ssh").read_text() == "logged-in\n" and server.accepted() == 1
    assert str(key) not in (host.project / "key").read_text()
    assert listed_skills(asked(mock)[0]) == {"userskill"}


# ---- what the agent cannot change -------------------------------------------------------

# Write, allow oneself to write, replace: the file and its directory.
ATTACK = """
list="/etc/carrel/settings.json /etc/carrel/mcp.json /etc/carrel/skill-catalog.md
/etc/carrel/prompt.md $HOME/.claude/CLAUDE.md $HOME/.claude/skills/declared/SKILL.md
/etc/carrel/plugins/plug/.claude-plugin/plugin.json lib/declared/SKILL.md
lib/plugin/.claude-plugin/plugin.json roles/role.md carrel.json bin/server bin/hook"
sum() { sha256sum $list; }
before=$(sum)
for f in $list from-control; do
  echo pwned >>"$f"; chmod 777 "$f"; mv "$f" "$f.old"; rm -f "$f"; echo pwned >"$f"
  d=$(dirname "$f"); case $d in .) continue ;; esac
  mv "$d" "$d.old" && mkdir "$d"; echo pwned >"$d/new"
done 2>/dev/null
diff <(echo "$before") <(sum) && echo all-the-same; sum | wc -l
find /etc/carrel "$HOME/.claude/skills" -name new -o -name '*.old'
"""


def test_what_is_declared_cannot_be_changed(host, mock):
    """By the agent: not in the box, and not where it comes from."""
    declare(host)
    host.write("bin/server", SERVER, 0o755)
    host.write("bin/hook", HOOK, 0o755)
    host.write("from-control", "")
    mock.scripts["attack"] = shell(ATTACK, "cat /etc/carrel/mcp.json")
    manifest = json.loads((host.project / "carrel.json").read_text())
    manifest["agents"]["one"] |= {"prompt": "MOCK:attack"}
    host.approve(manifest)
    before = lib.snapshot(host.project)
    lib.succeeded(host.run("one", env={"HOST_TOKEN": FROM_HOST}))
    told, config = results(mock)
    assert told.split() == ["all-the-same", "13"], told
    assert "pwned" not in config and FROM_HOST not in config and "docs" in config
    assert set(marks(host)) >= {"from-control", "from-control.old"}, "the attack is one"
    after = lib.snapshot(host.project)
    before.pop(b"from-control")
    # Beside a program or a role there may be anything; in a skill or plugin there may not.
    assert after.keys() - before.keys() == {b"bin/new", b"roles/new"}
    assert {name: after.get(name) for name in before} == before


# ---- how it ends, and conversations -----------------------------------------------------


def test_exit_code_is_the_clients(host, mock, claude):
    host.manifest({"one": {"prompt": "MOCK:err400"}, "two": {"prompt": "MOCK:text:fine"}})
    direct = host.direct(claude, "-p", input=b"MOCK:err400", env=NO_TRAFFIC)
    done = host.run("one")
    assert done.returncode == direct.returncode == 1
    assert b"400" in done.stdout and done.stdout == direct.stdout
    assert lib.succeeded(host.run("two")) == b"fine\n"


def leave_by_name(child):
    """Typed as a person would: the list of commands has to come up before Return."""
    child.send("/exit")
    child.expect("Exit")
    child.send("\r")


def leave_by_keys(child):
    child.send("\x03")
    child.expect("again")
    child.send("\x03")


@pytest.mark.parametrize("login", ["credentials", "key"])
def test_conversation(host, mock, login):
    """No questions at the start, the prompt goes out by itself, and it ends when told to."""
    if login == "credentials":
        credentials(host)
    lines = [f"line {i} of the prompt" for i in range(1000)]
    prompt = "\n".join(["MOCK:text:SAID-BY-THE-MOCK", *lines, "MARK-end"])
    host.manifest({"one": {"prompt": prompt}})
    before = lib.snapshot(host.project), lib.snapshot(host.home)
    child = host.terminal("one", size=(40, 110))
    # Spaces are movements of the cursor: no more than a word can be looked for.
    index = child.expect(["SAID-BY-THE-MOCK", "Detected", "trust", pexpect.EOF])
    assert index == 0, child.before[-2000:] + child.after
    (body,) = asked(mock)
    assert "MOCK:text:SAID" in shown(body) and "MARK-end" in shown(body)
    (leave_by_name if login == "key" else leave_by_keys)(child)
    assert lib.finish(child) == 0
    assert (lib.snapshot(host.project), lib.snapshot(host.home)) == before
