"""What the tests of several clients share: things to declare, looking at what came of it."""

import hashlib
import json
import os
import re
import tempfile

import lib
import pexpect

# Arguments that a shell, or a client that puts in variables, would not leave as they are.
STRANGE = ["$(touch pwned)", "two words", "`id`;*", "$HOME", '"{env:HOME}"', "${HOME}", "\\'"]
WORD = "the-word-in-the-token"
TOKEN = f'a "{WORD}'

# An MCP server with one tool. That it was started, and with what in TOKEN, is in a file.
SERVER = """#!/usr/bin/python3
import hashlib, json, os, sys

name = sys.argv[1]
with open("mcp-" + name, "w") as file:
    token = os.environ.get("TOKEN", "")
    json.dump([sys.argv[2:], hashlib.sha256(token.encode()).hexdigest(),
               os.environ.get("LITERAL")], file)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": name, "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        tool = {"name": "ask_" + name, "description": "asks " + name, "inputSchema": schema}
        result = {"tools": [tool]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "MARK-answer of " + name}]}
    elif "id" not in message:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def skill(name):
    return f"---\nname: {name}\ndescription: MARK-{name} does things\n---\nDo it.\n"


def declare(host, harness, **more):
    """An agent "one" of this client that has one of each."""
    host.write("bin/server", SERVER, 0o755)
    host.write(".agents/skills/declared/SKILL.md", skill("declared"))
    host.write("roles/role.md", "MARK-role\n")
    host.write("AGENTS.md", "MARK-project\n")
    lib.make_file(host.project.parent / "AGENTS.md", "MARK-ancestor\n")
    lib.make_file(host.project.parent / "GEMINI.md", "MARK-ancestor\n")
    agent = {
        "harness": harness,
        "role": "./roles/role.md",
        "skills": ["declared"],
        "mcpServers": ["docs"],
        "prompt": "MOCK:bash:touch from-the-agent",
        **more,
    }
    server = {
        "command": "./bin/server",
        "args": ["declared", *STRANGE],
        "env": {"TOKEN": "${HOST_TOKEN}", "LITERAL": STRANGE[0] + STRANGE[4]},
    }
    library = {
        "skills": {"declared": {"source": "./.agents/skills/declared"}},
        "mcpServers": {"docs": server},
        "hooks": {"before": {"event": "PreToolUse", "command": ["true"]}},
    }
    host.manifest({"one": agent}, library)
    host.env["HOST_TOKEN"] = TOKEN


def server_saw_all(left):
    """Was the declared server given its words and values as they were written?"""
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    return json.loads(left["mcp-declared"]) == [STRANGE, token, STRANGE[0] + STRANGE[4]]


def marks(host):
    """What hooks, servers and tools have left in the project; it is taken away."""
    found = {}
    for path in host.project.iterdir():
        if path.name.startswith(("hook-", "mcp-", "from-")) or path.name == "pwned":
            found[path.name] = path.read_text()
            path.unlink()
    return found


def shown(body):
    return json.dumps(body, ensure_ascii=False)


def events(done):
    return [json.loads(line) for line in lib.succeeded(done).splitlines()]


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def watched(host, *words):
    """Run the agent; what it printed, and which words were in the argv of any process."""
    seen, looks = set(), 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = host.start("one", stdin=None, stdout=out, stderr=err)
        while process.poll() is None:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                line = _read(f"/proc/{pid}/cmdline")
                seen |= {word for word in words if word.encode() in line}
            looks += 1
        err.seek(0)
        assert process.returncode == 0 and looks > 3, err.read()
        out.seek(0)
        return out.read(), seen


def furnish(host):
    """A user and a project that have all that the clients would pick up, but for hooks."""
    server = str(host.write("bin/server", SERVER, 0o755))
    for top, who in (("~/", "user"), ("", "project")):
        for place in (".codex", ".gemini", ".agents", ".opencode", ".claude"):
            name = f"{who}-{place[1:]}"
            host.write(f"{top}{place}/skills/{name}/SKILL.md", skill(name))
        table = f'[mcp_servers.{who}]\ncommand = "{server}"\nargs = ["{who}"]\n'
        host.write(f"{top}.codex/config.toml", table)
        host.write(f"{top}.codex/hooks.json", hooks(host, who, "PreToolUse"))
        servers = {"mcpServers": {who: {"command": server, "args": [who]}}}
        host.write(f"{top}.gemini/settings.json", servers | hooks(host, who, "BeforeTool"))
        where = "opencode.json" if not top else "~/.config/opencode/opencode.json"
        host.write(where, {"mcp": {who: {"type": "local", "command": [server, who]}}})
    for name in (".codex/AGENTS.md", ".gemini/GEMINI.md", ".config/opencode/AGENTS.md"):
        host.write("~/" + name, "MARK-user\n")


def hooks(host, who, event):
    command = {"type": "command", "command": f"touch {host.project}/hook-{who}"}
    return {"hooks": {event: [{"matcher": "*", "hooks": [command]}]}}


def marked(body):
    """The marks that the model was shown."""
    return {word.rstrip("-") for word in re.findall(r"MARK-([a-z-]+)", shown(body))}


DECLARED = {"role", "project", "declared"}


def look_for(*words):
    """A command that names the files that hold each word, and does not hold it itself.

    No command substitution: Gemini CLI refuses that by itself.
    """
    lines = []
    for word in words:
        half = len(word) // 2
        search = 'grep -rlFs -f - "$HOME" "$PWD" /tmp /run /etc | sort -u | tr "\\n" " "'
        lines.append(f"printf [; printf %s {word[:half]} {word[half:]} | {search}; echo ]")
    return "; ".join(lines)


def try_to_change(path):
    """A command that says what it could do to the file, and that it could to another."""
    other = f"{os.path.dirname(path)}/of-the-agent"
    tries = [f"(echo x >>{path}) && echo WROTE", f"mv {path} {other} && echo MOVED"]
    tries += [f"unlink {path} && echo REMOVED", f"(echo x >>{other}) && echo CONTROL"]
    return "{ " + "; ".join(tries) + "; } 2>/dev/null"


class Screen:
    """A client on a terminal that answers what it asks of terminals."""

    def __init__(self, child):
        self.child, self.seen = child, b""

    def until(self, condition, what):
        def looked():
            try:
                self.seen += self.child.read_nonblocking(65536, timeout=0.1)
            except pexpect.TIMEOUT:
                pass
            for question, answer in ((b"\x1b[6n", "\x1b[1;1R"), (b"\x1b[c", "\x1b[?62;c")):
                if question in self.seen[-200:]:
                    self.child.send(answer)
            return condition()

        return lib.wait_for(looked, what)


def texts(body):
    """What the user has said, in Anthropic's form."""
    contents = [m["content"] for m in body["messages"] if m["role"] == "user"]
    blocks = [c if isinstance(c, list) else [{"text": c}] for c in contents]
    return [block.get("text", "").strip() for content in blocks for block in content]
