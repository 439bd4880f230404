"""The user's own Claude Code in a box: all that is theirs is seen, and nothing of it changes.

Claude Code is the real one and its API the mock's. What the model was shown is read off the
requests, what is kept is looked for in the instance's directory on the host, and whether
something that was planted runs is tried with the real client outside of any box.
"""

import hashlib
import json
import os
import pathlib
import re

import lib
import pexpect
import pytest

KEY = "sk-ant-test-0123456789abcdefghijklmnopqrstuvwxyz"
NO_TRAFFIC = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
# In the box as outside: what is compared must have been asked for alike.
ONLINE = ["--network", "host", "--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"]
SKIP = "--dangerously-skip-permissions"

# An MCP server with one tool, which bears the name it is started with.
SERVER = """#!/usr/bin/python3
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": sys.argv[1], "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object"}
        tool = {"name": "ask_" + sys.argv[1], "description": "asks", "inputSchema": schema}
        result = {"tools": [tool]}
    elif "id" not in message:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(autouse=True)
def claude(client, host):
    host.env["ANTHROPIC_API_KEY"] = KEY
    # For arguments of the client: `carrel` alone takes none.
    configure(host, agents={"me": {"home": "mine"}})
    return client("claude")


def configure(host, **manifest):
    host.write("~/.config/carrel/carrel.json", manifest)


def at(host, path):
    """The same user in another project."""
    other = type(host)(host.mock, host.home, path)
    other.env = host.env
    return other


@pytest.fixture
def other(host, place, template):
    """Another project, a repository as well."""
    path = lib.make_dir(place / "other")
    lib.git("init", "-q", cwd=path)
    return at(host, path)


@pytest.fixture
def tree(host, place):
    """A worktree of the first project."""
    lib.git("worktree", "add", "-q", str(place / "tree"), cwd=host.project)
    return at(host, place / "tree")


@pytest.fixture
def moved(host, place):
    """Another worktree of it, which git has moved after the client was there."""
    old, new = place / "second", place / "moved"
    lib.git("worktree", "add", "-q", str(old), cwd=host.project)
    say(at(host, old), "MOCK:text:before")
    lib.git("worktree", "move", str(old), str(new), cwd=host.project)
    return at(host, new)


class Said:
    """What came of one run: the events, and what the model was asked."""

    def __init__(self, host, done, since):
        lib.succeeded(done)
        self.err = done.stderr.decode()
        self.events = [json.loads(line) for line in done.stdout.splitlines()]
        self.init = next(e for e in self.events if e.get("subtype") == "init")
        self.session = self.init["session_id"]
        self.requests = host.mock.requests[since:]
        asked = [r["body"] for r in self.requests if r["path"].startswith("/v1/messages")]
        self.bodies = [body for body in asked if body.get("tools")]  # no title or the like
        self.text = json.dumps(self.requests, ensure_ascii=False)
        assert self.bodies and self.events[-1]["type"] == "result", self.events

    def shown(self):
        """All that the model was shown, as it was: with real line ends."""
        texts = [block["text"] for block in self.bodies[0]["system"]]
        for message in self.bodies[0]["messages"]:
            content = message["content"]
            blocks = [{"text": content}] if isinstance(content, str) else content
            texts += [block.get("text", "") for block in blocks]
        return "\n".join(texts)

    def result(self):
        """What the tool answered."""
        for message in self.bodies[-1]["messages"][::-1]:
            for block in message["content"]:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    inner = block["content"]
                    return inner if isinstance(inner, str) else inner[0].get("text", "")
        raise AssertionError("no tool was used")

    def tools(self):
        return {tool["name"] for tool in self.bodies[0]["tools"]}


def say(host, prompt, *args, agent=None, env=None):
    """What `carrel` does with a prompt; args are carrel's, those of `agent` the client's."""
    since = len(host.mock.requests)
    words = [*ONLINE, "--events", *args]
    if agent:
        words = [*ONLINE, "--events", "me", "--", *agent]
    return Said(host, host.run(*words, input=prompt.encode(), env=env), since)


def do(host, command, *args, **how):
    """Let the agent run a command of one line."""
    assert "\n" not in command
    return say(host, f"MOCK:bash:{command}", *args, **how)


def direct(host, claude, prompt="MOCK:text:hello"):
    """The client itself, in no box, as the user would start it later."""
    since = len(host.mock.requests)
    words = (claude, "-p", SKIP, "--output-format", "stream-json", "--verbose")
    done = host.direct(*words, input=prompt.encode(), env=NO_TRAFFIC)
    return Said(host, done, since)


def instance(host, root=None):
    name = hashlib.sha256(os.fsencode(root or host.project)).hexdigest()[:16]
    return host.home / ".local" / "state" / "carrel" / "instances" / name


def slug(path):
    """The client's name for a directory."""
    return re.sub("[^A-Za-z0-9]", "-", str(path))


def own(host, root=None):
    return instance(host, root) / "claude" / "claude" / "own"


def home_of(host):
    """The user's home, but for what carrel keeps itself."""
    seen = lib.snapshot(host.home)
    return {name: what for name, what in seen.items() if not name.startswith(b".local")}


def holders(top, word):
    """The files below that have the word in them."""
    word = word.encode()
    files = filter(pathlib.Path.is_file, pathlib.Path(top).rglob("*"))
    return {str(path) for path in files if word in path.read_bytes()}


# ---- conversations and memory -----------------------------------------------------------

SECRET = "word-said-in-the-first-project"


def test_conversations_are_the_projects(host, tree, moved, other):
    """Continued in the project and in its worktrees, unknown anywhere else."""
    before = home_of(host)
    first = say(host, f"MOCK:text:first {SECRET}")
    assert SECRET in say(host, "MOCK:text:second", agent=["--continue"]).text
    resumed = say(tree, "MOCK:text:third", agent=["--resume", first.session])
    assert SECRET in resumed.text and resumed.session == first.session
    resumed = say(moved, "MOCK:text:of-the-moved", agent=["--resume", first.session])
    assert SECRET in resumed.text and "third" in resumed.text
    assert resumed.session == first.session
    assert "of-the-moved" in say(host, "MOCK:text:back", agent=["--resume", first.session]).text
    begun = say(tree, "MOCK:text:begun-in-a-tree").session
    for where in (host, moved):
        assert "begun-in-a-tree" in say(where, "MOCK:text:on", agent=["--resume", begun]).text
    # Without being asked to, it says nothing of earlier conversations.
    assert SECRET not in say(host, "MOCK:text:fourth").text

    words = [*ONLINE, "me", "--", "--resume", first.session]
    done = other.run(*words, input=b"MOCK:text:fifth")
    assert done.returncode != 0 and first.session.encode() in done.stdout + done.stderr
    assert SECRET not in say(other, "MOCK:text:sixth", agent=["--continue"]).text
    grep = f"grep -rlF {SECRET[:-4]}'{SECRET[-4:]}' ~ 2>/dev/null; ls ~/.claude/projects"
    assert do(other, grep).result().split() == [slug(other.project)]
    for where in (tree, moved):
        assert slug(host.project) in do(where, grep).result(), "the control"

    kept = holders(host.home, SECRET)
    assert kept and all(p.startswith(str(own(host) / "projects")) for p in kept), kept
    assert not holders(own(other), SECRET)
    assert home_of(host) == before
    assert not (host.home / ".claude" / "projects").exists()
    assert set(os.listdir(instance(host).parent)) == {instance(host).name, instance(other).name}


def test_memory_is_the_projects(host, tree, moved, other):
    """What the client notes down for itself."""
    name = slug(host.project)
    memory = f"~/.claude/projects/{name}/memory"
    do(host, f"mkdir -p {memory}; echo MARK-remem'bered' >{memory}/MEMORY.md")
    assert (own(host) / "projects" / name / "memory" / "MEMORY.md").is_file()
    do(moved, f"echo MARK-of-the-mo'ved' >>{memory}/MEMORY.md")
    for where in (host, tree, moved):
        shown = say(where, "MOCK:text:again").shown()
        assert "MARK-remembered" in shown and "MARK-of-the-moved" in shown
    assert "MARK-" not in say(other, "MOCK:text:again").text


def test_conversations_of_the_user_are_not_seen(host, claude):
    """Those that were held outside of any box, in this project and in others."""
    direct(host, claude, f"MOCK:text:outside {SECRET}")
    host.write("~/.claude/history.jsonl", json.dumps({"display": SECRET}) + "\n")
    assert holders(host.home / ".claude" / "projects", SECRET), "the control"
    before = home_of(host)
    grep = f"grep -rlF {SECRET[:-4]}'{SECRET[-4:]}' ~ 2>/dev/null; "
    assert do(host, grep + "wc -c <~/.claude/history.jsonl").result().split() == ["0"]
    assert SECRET not in say(host, "MOCK:text:x", agent=["--continue"]).text
    assert home_of(host) == before


def test_many_at_once(host, count=4):
    """Each conversation is kept whole, and what each changed of the configuration."""
    before = home_of(host)
    processes = []
    for i in range(count):
        wait = "until [ -e go ]; do sleep 0.05; done"
        command = f"touch here-{i}; {wait}; echo {SECRET}-{i}; echo {i} >~/.claude/of-{i}"
        process = host.start(*ONLINE)
        process.stdin.write(f"MOCK:bash:{command}".encode())
        process.stdin.close()
        process.stdin = None
        processes.append(process)
    lib.wait_for(lambda: len(list(host.project.glob("here-*"))) == count, "all the boxes")
    lib.make_file(host.project / "go")
    for process in processes:
        out, err = process.communicate(timeout=lib.TIMEOUT)
        assert process.returncode == 0, (out, err)
    talks = list((own(host) / "projects" / slug(host.project)).glob("*.jsonl"))
    assert len(talks) == count
    for path in talks:
        assert [json.loads(line) for line in path.read_text().splitlines()], "no line is torn"
    for i in range(count):
        (path,) = [path for path in talks if f"{SECRET}-{i}" in path.read_text()]
        assert SECRET in say(host, "MOCK:text:again", agent=["--resume", path.stem]).text
    assert do(host, "cat ~/.claude/of-*").result().split() == [str(i) for i in range(count)]
    assert home_of(host) == before


# Where the client keeps what it did in all projects: snapshots of files, what was pasted,
# plans, lists of tasks, logs, copies of ~/.claude.json, the tokens of editors, the key of the
# process that runs jobs.
TRACES = """
backups daemon debug dump-prompts feedback-bundles file-history ide image-cache jobs paste-cache
plans session-env sessions shares shell-snapshots startup-perf tasks teams telemetry todos
traces uploads usage-data
"""


def test_traces_of_other_projects_are_not_seen(host):
    """They are the user's, not their configuration; the project has its own, and keeps them."""
    for name in TRACES.split():
        host.write(f"~/.claude/{name}/old/file", SECRET)
    host.write("~/.claude/rules/rule.md", SECRET)
    before = home_of(host)
    grep = f"grep -rlF {SECRET[:-4]}'{SECRET[-4:]}' ~ 2>/dev/null; "
    found = do(host, grep + "mkdir -p ~/.claude/plans; echo mine >~/.claude/plans/new").result()
    assert found.split() == [str(host.home / ".claude/rules/rule.md")]
    assert do(host, "cat ~/.claude/plans/new").result().strip() == "mine"
    assert home_of(host) == before


def converse(host, words):
    """Typed on a terminal, answered, ended."""
    child = host.terminal(*ONLINE, size=(40, 110))
    index = child.expect(["shortcuts", "bypass", "Detected", "trust", pexpect.EOF])
    assert index < 2, child.before[-2000:]
    child.send(words)
    child.expect("SAID")
    child.send("\r")
    child.expect("ANSWERED-BY-THE-MOCK")
    child.send("\x03")
    child.expect("again")
    child.send("\x03")
    assert lib.finish(child) == 0


def test_prompts_are_the_projects(host, mock, other):
    """On a terminal: no questions at the start, and history.jsonl is of this project."""
    host.write("~/.claude.json", {"customApiKeyResponses": {"approved": [KEY[-20:]]}})
    host.write("~/.claude/history.jsonl", "")
    mock.scripts["answer"] = [[{"type": "text", "text": "ANSWERED-BY-THE-MOCK"}]]
    before = home_of(host)
    converse(host, "MOCK:answer SAID-IN-ONE")
    converse(other, "MOCK:answer SAID-IN-OTHER")
    one, two = (p / "history.jsonl" for p in (own(host), own(other)))
    assert "SAID-IN-ONE" in one.read_text() and "SAID-IN-OTHER" in two.read_text()
    assert "SAID-IN-OTHER" not in one.read_text() and "SAID-IN-ONE" not in two.read_text()
    assert home_of(host) == before


# ---- what is the user's -----------------------------------------------------------------


def skill(name):
    return f"---\nname: {name}\ndescription: MARK-{name} does things\n---\nDo it.\n"


def hook(command, event="SessionStart"):
    return {event: [{"hooks": [{"type": "command", "command": command}]}]}


def furnish(host, claude):
    """A user who has everything, with a plugin that the client itself has installed."""
    host.write("~/.claude/skills/userskill/SKILL.md", skill("userskill"))
    host.write("~/.claude/agents/useragent.md", skill("useragent"))
    host.write("~/.claude/commands/usercommand.md", skill("usercommand"))
    host.write("~/.claude/output-styles/loud.md", skill("loud"))
    host.write("~/.claude/keybindings.json", {"bindings": []})
    host.write("~/.claude/CLAUDE.md", "MARK-user-memory\n")
    server = host.write("~/.claude/server", SERVER, 0o755)
    servers = {"users": {"type": "stdio", "command": str(server), "args": ["users"]}}
    projects = {
        str(host.project): {"hasTrustDialogAccepted": True, "lastCost": 4711},
        "/MARK/another/project": {"history": ["MARK-of-another"], "mcpServers": {}},
    }
    clones = {"MARK/repo": ["/MARK/clone"]}
    config = {"mcpServers": servers, "projects": projects, "githubRepoPaths": clones}
    host.write("~/.claude.json", config)
    install_plugin(host, claude, host.home / ".claude/plugins/marketplaces/market")
    settings = json.loads((host.home / ".claude/settings.json").read_text())
    settings |= {"env": {"FROM_SETTINGS": "MARK-of-settings"}, "outputStyle": "loud"}
    settings |= {"hooks": hook("touch hook-of-the-user")}
    host.write("~/.claude/settings.json", settings)


def install_plugin(host, claude, market):
    """From a marketplace at that path: the client's own commands do it."""
    plugin = {"name": "plug", "version": "1.0.0", "description": "d"}
    lib.make_file(market / "plug/.claude-plugin/plugin.json", json.dumps(plugin))
    lib.make_file(market / "plug/skills/plugged/SKILL.md", skill("plugged"))
    lib.make_file(market / "plug/commands/plugcommand.md", skill("plugcommand"))
    lib.make_file(market / "plug/hooks/hooks.json", json.dumps({"hooks": {}}))
    entry = {"name": "plug", "source": "./plug", "description": "d"}
    sold = {"name": "market", "owner": {"name": "o"}, "plugins": [entry]}
    lib.make_file(market / ".claude-plugin/marketplace.json", json.dumps(sold))
    for words in (("marketplace", "add", str(market)), ("install", "plug@market")):
        lib.succeeded(host.direct(claude, "plugin", *words, env=NO_TRAFFIC))


def test_the_users_configuration_is_there(host, claude):
    """The same as without a box; what is said of other projects is not."""
    furnish(host, claude)
    before = home_of(host)
    look = "echo $FROM_SETTINGS; cat ~/.claude/keybindings.json; grep -rl MARK'/' ~; true"
    boxed = do(host, look)
    marker = host.project / "hook-of-the-user"
    assert marker.exists(), "the user's hook runs, in the box"
    marker.unlink()
    assert home_of(host) == before
    outside = direct(host, claude, f"MOCK:bash:{look}")
    assert marker.exists()

    for key in ("skills", "agents", "slash_commands", "output_style"):
        assert boxed.init[key] == outside.init[key], key
    names = [{p["name"] for p in said.init["plugins"]} for said in (boxed, outside)]
    assert names == [{"plug"}, {"plug"}]
    assert boxed.tools() == outside.tools() and "mcp__users__ask_users" in boxed.tools()
    for mark in ("userskill", "useragent", "plugged", "user-memory"):
        assert f"MARK-{mark}" in boxed.shown() + boxed.text, mark
    assert "usercommand" in boxed.init["slash_commands"]
    assert boxed.result().startswith("MARK-of-settings\n") and '"bindings"' in boxed.result()

    assert str(host.home / ".claude.json") in outside.result(), "the search can find"
    assert str(host.home) not in boxed.result() and "MARK-of-another" not in boxed.text
    config = do(host, "cat ~/.claude/.claude.json").result()
    assert "4711" in config and "users" in config and "MARK" not in config


def test_a_marketplace_elsewhere(host, claude, place):
    """A plugin of a directory that the user works on."""
    install_plugin(host, claude, place / "market")
    assert "plug:plugged" in direct(host, claude).init["skills"]
    assert "plug:plugged" in say(host, "MOCK:text:x").init["skills"]


def test_links_in_the_configuration(host, claude):
    """As those have it who keep their settings in a repository."""
    host.write("~/dotfiles/CLAUDE.md", "MARK-linked-memory\n")
    host.write("~/dotfiles/skills/linked/SKILL.md", skill("linked"))
    host.write("~/.claude/x", "")
    (host.home / ".claude/CLAUDE.md").symlink_to("../dotfiles/CLAUDE.md")
    (host.home / ".claude/skills").symlink_to(host.home / "dotfiles/skills")
    outside = direct(host, claude)
    assert "MARK-linked-memory" in outside.shown() and "linked" in outside.init["skills"]
    boxed = say(host, "MOCK:text:x")
    assert "MARK-linked-memory" in boxed.shown() and "linked" in boxed.init["skills"]


def test_the_users_later_changes_arrive(host, claude):
    """Also where the client itself has written to the same file in the box."""
    host.write("~/.claude/settings.json", {"cleanupPeriodDays": 30})
    host.write("~/.claude.json", {"mcpServers": {}})
    host.write("~/.claude/CLAUDE.md", "MARK-first\n")
    say(host, "MOCK:text:first")
    server = host.write("~/.claude/server", SERVER, 0o755)
    new = {"command": str(server), "args": ["new"]}
    host.write("~/.claude.json", {"mcpServers": {"new": new}})
    host.write("~/.claude/settings.json", {"env": {"LATER": "MARK-later-setting"}})
    host.write("~/.claude/CLAUDE.md", "MARK-second\n")
    again = do(host, "echo $LATER")
    assert "MARK-second" in again.shown() and "MARK-first" not in again.shown()
    assert again.result().strip() == "MARK-later-setting"
    assert "mcp__new__ask_new" in again.tools()


# ---- nothing of it changes --------------------------------------------------------------

# Each hook says who ran it, in a file of the working directory.
PLANT = r"""
import glob, json, os, sys

home = os.path.expanduser("~")


def change(path, function):
    data = json.load(open(path)) if os.path.exists(path) else {}
    function(data)
    json.dump(data, open(path, "w"))


def hook(name):
    entry = {"hooks": [{"type": "command", "command": "touch planted-" + name}]}
    return {"SessionStart": [entry]}


def plant_settings(data):
    data["hooks"] = hook("settings")


change(home + "/.claude/settings.json", plant_settings)
change(home + "/.claude/settings.local.json", lambda d: d.update(hooks=hook("local")))
for path in glob.glob(home + "/.claude/plugins/**/hooks/hooks.json", recursive=True):
    change(path, lambda d: d.update(hooks=hook("plugin")))
open(home + "/.claude/CLAUDE.md", "a").write("PLANTED-memory\n")
os.makedirs(home + "/.claude/skills/planted", exist_ok=True)
open(home + "/.claude/skills/planted/SKILL.md", "w").write(
    "---\nname: planted\ndescription: PLANTED-skill\n---\n")
server = {"type": "stdio", "command": "touch", "args": ["planted-server"]}
for path in (home + "/.claude.json", home + "/.claude/.claude.json"):
    change(path, lambda d: d.setdefault("mcpServers", {}).update(planted=server))
"""


def planted(host):
    """What has run in the project; it is taken away."""
    found = {path.name for path in host.project.glob("planted-*")}
    for name in found:
        (host.project / name).unlink()
    return found


def try_plant(host):
    host.write("plant.py", PLANT)
    said = do(host, f"{lib.PYTHON} plant.py && echo all-planted")
    assert said.result().strip() == "all-planted"
    return said


def test_nothing_planted_runs_outside(host, other, claude):
    """Hooks, memory, skills, plugins and servers: in the project's boxes alone."""
    furnish(host, claude)
    before = home_of(host)
    try_plant(host)
    assert home_of(host) == before and not planted(host)

    outside = direct(host, claude)
    assert not planted(host) and "PLANTED" not in outside.text
    elsewhere = say(other, "MOCK:text:hello")
    assert not planted(other) and "PLANTED" not in elsewhere.text
    # The control: they are hooks, and in this project's boxes they are obeyed.
    again = say(host, "MOCK:text:hello")
    assert planted(host) >= {"planted-settings", "planted-plugin"}
    assert "PLANTED-memory" in again.shown() and "PLANTED-skill" in again.text


def test_direct_is_direct(host, claude):
    """The control of the control: with home "direct" it all runs outside, as was warned."""
    furnish(host, claude)
    configure(host, mine={"home": "direct"})
    before = home_of(host)
    said = try_plant(host)
    assert 'home "direct"' in said.err and "hooks" in said.err
    assert home_of(host) != before
    outside = direct(host, claude)
    assert planted(host) >= {"planted-settings", "planted-plugin"}
    assert "PLANTED-memory" in outside.shown() and "PLANTED-skill" in outside.text


def test_changes_stay_with_the_project(host, tree, other):
    """Settings that the agent or the user changed in a box."""
    host.write("~/.claude/settings.json", {"env": {"WHICH": "of the user"}})
    changed = json.dumps({"env": {"WHICH": "of the project"}})
    do(host, f"printf '%s' '{changed}' >~/.claude/settings.json")
    assert do(host, "echo $WHICH").result().strip() == "of the project"
    assert do(tree, "echo $WHICH").result().strip() == "of the project"
    assert do(other, "echo $WHICH").result().strip() == "of the user"


def changes(host):
    """What `carrel instances diff` lists, and whether it is loud."""
    done = lib.carrel("instances", "diff", "--json", cwd=host.project, env=host.env)
    return {row["name"]: bool(row["danger"]) for row in json.loads(lib.succeeded(done))}


def test_only_what_the_agent_changed_is_a_change(host, claude):
    """What the client itself writes at every start would hide it."""
    furnish(host, claude)
    do(host, "true")
    kept = os.listdir(instance(host) / "claude/claude/layers/000001")
    assert ".claude.json" in kept, "the client does write"
    assert changes(host) == {}
    do(host, "echo '{}' >~/.claude/settings.json; echo x >~/.claude/note")
    assert changes(host) == {"~/.claude/settings.json": True, "~/.claude/note": False}


# ---- what the agent is told -------------------------------------------------------------


def sandbox(said):
    text = said.shown()
    assert text.count("# Your sandbox") == 1
    return text.split("# Your sandbox", 1)[1].split("There is no sudo.")[0]


def section(text, heading):
    """The paths in the list under the paragraph that has these words."""
    parts = text.split("\n\n")
    (at,) = [i for i, part in enumerate(parts) if heading in part]
    return [line[3:-1] for line in parts[at + 1].splitlines() if line.startswith("- `")]


def test_the_agent_is_told_the_truth(host, place):
    """Of what it is told, each thing is tried; and another box is described otherwise."""
    memory = "# Mine\n\n  MARK é \"quoted\" $HOME `id`\n@not-a-file\n\tlast line"
    host.write("~/.claude/CLAUDE.md", memory + "\n")
    data = lib.make_dir(place / "data")
    lib.make_file(data / "file", "to read\n")
    tries = (
        f"echo 1 >tried; echo 2 >.git/config; cat .env; cat {data}/file; echo 3 >{data}/file; "
        "ls /sys/class/net | tr '\\n' ' '; true"
    )
    one = do(host, tries, "--mount", str(data))
    told = sandbox(one)
    assert memory in one.shown(), "the user's own words are as they were"
    assert str(host.project) in section(told, "You can write here")
    assert str(host.home / ".claude") in section(told, "stays in a layer")
    assert str(data) in section(told, "You can also read")
    assert str(host.project / ".git/hooks") in section(told, "cannot be changed")
    assert section(told, "and read as empty") == [str(host.project / ".env")]
    assert "Network: the machine's own." in told
    assert (host.project / "tried").read_text() == "1\n"
    assert "SECRET=" not in one.text and "to read" in one.result()
    assert (data / "file").read_text() == "to read\n"

    words = ("--mount", f"{data}::rw", "--hide", "!.env", "--protect", "src")
    two = do(host, f"cat .env; echo 3 >{data}/file; echo 4 >src/main.c; true", *words)
    told = sandbox(two)
    assert str(data) in section(told, "You can write here")
    assert str(host.project / "src") in section(told, "cannot be changed")
    assert "read as empty" not in told
    assert "SECRET=" in two.result() and (data / "file").read_text() == "3\n"
    assert (host.project / "src/main.c").read_text() != "4\n"
    # Where the mock cannot be reached nobody can be told, but it is written down all the same.
    for words, said in (((), "these hosts and no others: `api.anthropic.com`"),
                        (("--network", "none"), "none")):  # fmt: skip
        plan = json.loads(lib.succeeded(host.run("-n", "--json", *words)))
        (file,) = [p for p in plan["places"] if p["target"] == "/etc/carrel/SANDBOX.md"]
        assert f"Network: {said}" in json.dumps(file)


# ---- login ------------------------------------------------------------------------------


def log_in(host, token):
    host.env.pop("ANTHROPIC_API_KEY", None)
    login = {
        "accessToken": token,
        "refreshToken": "refresh-token-of-the-user",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    return host.write("~/.claude/.credentials.json", {"claudeAiOauth": login}, 0o600)


def sent(said):
    return {r["headers"].get("authorization") for r in said.requests if r["method"] == "POST"}


def test_login(host):
    """The access token goes with the client, the refresh token stays; the newest counts."""
    log_in(host, "access-token-of-the-user")
    before = home_of(host)
    grep = "grep -rlF refresh-'token-of' ~ /etc /run /tmp 2>/dev/null; "
    said = do(host, grep + "grep -l access-'token-of' ~/.claude/.credentials.json")
    assert sent(said) == {"Bearer access-token-of-the-user"}
    assert said.result().split() == [str(host.home / ".claude/.credentials.json")]
    assert "refresh-token" not in said.text
    assert home_of(host) == before

    log_in(host, "later-access-token")
    assert sent(say(host, "MOCK:text:again")) == {"Bearer later-access-token"}
    kept = instance(host)
    assert kept.is_dir() and not holders(kept, "refresh-token-of-the-user")


def test_a_login_that_the_box_spoils(host, other):
    """Is spoilt for the box: outside, and in another project, the user is logged in."""
    log_in(host, "access-token-of-the-user")
    before = home_of(host)
    spoil = b"MOCK:bash:echo {} >~/.claude/.credentials.json"
    done = host.run(*ONLINE, input=spoil)
    assert b"Not logged in" in done.stdout, "it was"
    assert home_of(host) == before
    assert sent(say(other, "MOCK:text:hello")) == {"Bearer access-token-of-the-user"}


def test_a_login_that_has_expired(host, mock):
    """The box is refused, and the next one has what the user got since."""
    log_in(host, "access-token-of-the-user")
    done = host.run(*ONLINE, input=b"MOCK:err401")
    assert done.returncode != 0 and b"401" in done.stdout + done.stderr, done
    log_in(host, "later-access-token")
    assert sent(say(host, "MOCK:text:again")) == {"Bearer later-access-token"}


# ---- settings of one project ------------------------------------------------------------


def test_settings_of_the_instance(host, other):
    """The user's "mine", and over it what was set for this project alone."""
    configure(host, mine={"model": "model-of-mine", "env": {"ONE": "1"}})
    said = say(host, "MOCK:text:x")
    assert {b["model"] for b in said.bodies} == {"model-of-mine"}
    settings = {"model": "model-of-this-project", "env": {"TWO": "2"}}
    lib.make_file(instance(host) / "settings.json", json.dumps(settings))
    said = do(host, "echo $ONE$TWO")
    assert {b["model"] for b in said.bodies} == {"model-of-this-project"}
    assert said.result().strip() == "12"
    assert {b["model"] for b in say(other, "MOCK:text:x").bodies} == {"model-of-mine"}

    lib.make_file(instance(host) / "settings.json", '{"modell": "x"}')
    done = host.run(*ONLINE, input=b"MOCK:text:x")
    assert done.returncode == 125, done
    assert b"modell" in done.stderr and b"settings.json" in done.stderr, done
