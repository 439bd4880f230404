"""`carrel trust`, `agents`, `init` and `schema`: what goes around a manifest."""

import hashlib
import json
import os
import re

import jsonschema
import lib
import pytest

NAME = "carrel.json"
SIMPLE = {"agents": {"x": {"harness": "command", "command": ["true"]}}}
MORE = {"agents": {"x": {"harness": "command", "command": ["true"], "network": "host"}}}


def declare(where, document, name=NAME):
    text = document if isinstance(document, (str, bytes)) else json.dumps(document)
    return lib.make_file(where / name, text)


def output(*args, **how):
    return lib.succeeded(lib.carrel(*args, **how)).decode()


def problems(done):
    """Lines about a manifest, and nothing else."""
    assert done.returncode == 125 and done.stdout == b"", (done.returncode, done.stdout)
    lines = done.stderr.decode().splitlines()
    assert lines and all(line.startswith("carrel: ") for line in lines), lines
    return lines


# ---- trust ------------------------------------------------------------------------------


def trust_state(*args, **how):
    return json.loads(output("trust", "--show", "--json", *args, **how))


def asked(*args, **how):
    child = lib.terminal([lib.program(), "trust", *args], **how)
    child.expect_exact("Approve it? [y/N] ")
    return child, child.before.decode()


def approve(*args, **how):
    child, _ = asked(*args, **how)
    child.sendline("y")
    assert lib.finish(child) == 0


@pytest.fixture
def manifest(project):
    return declare(project, SIMPLE)


def test_trust_shows_asks_and_keeps(manifest):
    assert trust_state()["state"] == "new"
    child, question = asked()
    assert str(manifest) in question and "not approved yet" in question
    assert "agents.x.command: true" in question
    child.sendline("y")
    child.expect_exact(f"{manifest} is approved")
    assert lib.finish(child) == 0
    assert trust_state()["state"] == "given"
    assert output("trust") == f"{manifest} is approved already\n"
    assert lib.carrel("run", "-y", "x").returncode == 0


@pytest.mark.parametrize("answer", ["n", "", "yep", "\x04"])
def test_only_yes_approves(manifest, answer):
    child, _ = asked()
    child.sendline(answer) if answer != "\x04" else child.send(answer)
    child.expect_exact("carrel: not approved")
    assert lib.finish(child) == 125
    assert trust_state()["state"] == "new"
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "not approved")


@pytest.mark.parametrize("option", ["-y", "--yes"])
def test_no_option_approves(manifest, option):
    lib.failed_clearly(lib.carrel("trust", option), option)
    assert trust_state()["state"] == "new"


def test_without_a_terminal_the_hash_is_named(manifest):
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    lib.failed_clearly(lib.carrel("trust", input=b"y\n"), "no terminal", f"CARREL_TRUST={digest}")
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "not approved")
    # That variable does start it, once, and approves nothing.
    env = {"CARREL_TRUST": digest}
    lib.succeeded(lib.carrel("run", "-y", "x", env=env))
    assert trust_state(env=env)["state"] == "new"
    lib.failed_clearly(lib.carrel("trust", env=env), "no terminal")


def test_a_change_is_shown_as_one(manifest, project):
    approve()
    declare(project, MORE)
    child, question = asked()
    assert "has changed since you approved it" in question
    assert "+ agents.x.network: host" in question and "agents.x.command" not in question
    child.sendline("n")
    assert lib.finish(child) == 125
    state = trust_state()
    assert (state["state"], state["added"], state["gone"]) == (
        "changed", ["agents.x.network: host"], [])  # fmt: skip
    text = output("trust", "--show")
    assert "has changed" in text and "+ agents.x.network: host" in text
    assert "agents.x.command: true" in text, "all that it grants, too"
    approve()
    declare(project, SIMPLE)
    assert trust_state()["gone"] == ["agents.x.network: host"]


def test_what_was_shown_is_what_is_approved(manifest, project):
    """A file that is changed while the question stands is not what was said yes to."""
    child, _ = asked()
    declare(project, MORE)
    child.sendline("y")
    assert lib.finish(child) == 0
    assert trust_state()["state"] == "changed"
    declare(project, SIMPLE)
    assert trust_state()["state"] == "given"


def test_show_changes_nothing(manifest, home):
    before = lib.snapshot(home)
    shown = trust_state()
    assert shown == {
        "path": str(manifest),
        "hash": hashlib.sha256(manifest.read_bytes()).hexdigest(),
        "state": "new",
        "grants": ["agents.x.command: true", "agents.x.harness: command"],
        "added": ["agents.x.command: true", "agents.x.harness: command"],
        "gone": [],
    }
    text = output("trust", "--show")
    assert "is not approved" in text and shown["hash"] in text
    assert "    agents.x.harness: command\n" in text
    assert lib.snapshot(home) == before
    approve()
    assert lib.snapshot(home) != before
    shown = trust_state()
    assert (shown["state"], shown["added"], len(shown["grants"])) == ("given", [], 2)
    assert "is approved\n" in output("trust", "--show")


def test_revoke(manifest):
    assert "was not approved" in output("trust", "--revoke")
    approve()
    assert "no longer approved" in output("trust", "--revoke")
    assert trust_state()["state"] == "new"
    assert "was not approved" in output("trust", "--revoke")
    lib.failed_clearly(lib.carrel("trust", "--revoke", "--show"), "--revoke", "--show")


@pytest.mark.parametrize("spoil", [lambda p: p.write_text("{"), lambda p: p.unlink()])
def test_revoke_needs_no_manifest(manifest, project, spoil):
    approve()
    spoil(manifest)
    assert "no longer approved" in output("trust", "--revoke")
    declare(project, SIMPLE)
    assert trust_state()["state"] == "new"


def test_trust_of_another_file(project, place):
    other = declare(place / "elsewhere", SIMPLE, "other.json")
    os.symlink(other, project / NAME)
    approve("../elsewhere/other.json")
    assert trust_state(str(other)) | {"state": "given", "path": str(other)} == trust_state(str(other))
    # A link to it is another: its relative paths begin elsewhere.
    assert trust_state()["path"] == str(project / NAME)
    assert trust_state()["state"] == "new"
    approve()
    assert "no longer approved" in output("trust", "--revoke", str(project / NAME))
    assert trust_state()["state"] == "new"
    assert trust_state(str(other))["state"] == "given"


def test_trust_of_what_cannot_be(project):
    lib.failed_clearly(lib.carrel("trust"), "carrel.json", "No such file", "carrel init")
    lib.failed_clearly(lib.carrel("trust", "no/such.json"), "no/such.json")
    declare(project, {"agents": {"x": {"skils": []}, "y": {"model": 3}}})
    lines = problems(lib.carrel("trust"))
    assert lines == problems(lib.carrel("trust", "--show"))
    assert len(lines) == 2 and "carrel.json:1:19: agents.x.skils: unknown key" in lines[0]
    declare(project, {"agents": {"x": {"skills": []}, "y": {"model": "3"}}})
    assert trust_state()["state"] == "new"


def test_the_users_own_needs_no_approval(project, home):
    own = declare(home / ".config" / "carrel", SIMPLE)
    assert "needs no approval" in output("trust", str(own))
    assert "needs no approval" in output("trust", "--show", cwd=own.parent)
    assert trust_state(str(own))["state"] == "given"
    # It does not stand in for a project's that is not there.
    lib.failed_clearly(lib.carrel("trust"), "No such file")


def test_trust_shows_text_harmlessly(project):
    declare(project, {"agents": {"x": {"description": "\x1b[2J\u202e"}}})
    shown = lib.carrel("trust", "--show").stdout
    assert b"\x1b" not in shown and b"\\x1b[2J" in shown
    _, question = asked()
    assert "\x1b[2J" not in question and "\\x1b[2J" in question


# ---- agents -----------------------------------------------------------------------------

LIBRARY = {
    "library": {
        "skills": {"review": {"source": "./skills/review"}},
        "mcpServers": {"docs": {"command": "docs-mcp"}},
        "plugins": {"chat": {"source": "./plugins/chat"}},
        "hooks": {"fmt": {"event": "Stop", "command": ["true"]}},
    },
    "agents": {
        "base": {"description": "to begin with", "env": {"TOKEN": "the-secret-value"}},
        "reviewer": {
            "extends": "base",
            "model": "best",
            "skills": ["review"],
            "mcpServers": ["docs"],
            "plugins": ["chat"],
            "hooks": ["fmt"],
            "tools": ["Read", "Grep"],
            "network": "host",
            "mounts": [{"source": "/usr/share", "target": "/mnt/share"}, {"source": "./skills"}],
        },
    },
}


@pytest.fixture
def library(project):
    lib.make_file(project / "skills/review/SKILL.md", "---\ndescription: Reviews\n---\n")
    lib.make_file(project / "plugins/chat/README", "")
    return declare(project, LIBRARY)


def agents(*args, code=0, **how):
    done = lib.carrel("agents", "--json", *args, **how)
    assert done.returncode == code, done.stderr
    return {agent["name"]: agent for agent in json.loads(done.stdout)}


def test_agents_for_programs(library):
    found = agents()
    assert list(found) == ["base", "reviewer"]
    assert found["reviewer"] == {
        "name": "reviewer",
        "file": str(library),
        "approved": False,
        "harness": "claude",
        "model": "best",
        "description": "to begin with",
        "skills": ["review"],
        "mcpServers": ["docs"],
        "plugins": ["chat"],
        "hooks": ["fmt"],
        "tools": ["Read", "Grep"],
        "env": ["TOKEN"],
        "network": {"mode": "host", "allow": [], "deny": []},
        "mounts": [
            {"source": "/usr/share", "target": "/mnt/share", "mode": "ro"},
            {"source": "./skills", "target": "./skills", "mode": "ro"},
        ],
        "problems": [],
    }
    own = ["api.anthropic.com", "platform.claude.com"]
    assert found["base"]["network"] == {"mode": "allow", "allow": own, "deny": []}


def test_agents_and_whom_they_reach(project):
    def a(**network):
        return {"harness": "command", "command": ["true"], "network": network}

    declare(project, {"agents": {
        "none": a(mode="none", allow=["a.org"]), "empty": a(allow=[]), "plain": a(),
        "some": a(allow=["a.org", "@github"], deny=["b.org"]), "open": a(mode="open"),
        "bad": a(allow=["a.org", "http://b.org"])}})  # fmt: skip
    found = agents(code=1)
    assert {name: agent["network"]["mode"] for name, agent in found.items()} == {
        "none": "none", "empty": "allow", "plain": "allow", "some": "allow", "open": "open",
        "bad": "allow"}  # fmt: skip
    assert found["some"]["network"]["allow"] == ["a.org", "@github"]
    assert found["some"]["network"]["deny"] == ["b.org"]
    assert found["empty"]["network"]["allow"] == found["plain"]["network"]["allow"] == []
    assert [name for name, agent in found.items() if agent["problems"]] == ["bad"]
    assert re.match(r"carrel\.json:\d+:\d+: agents\.bad\.network\.allow: 'http://b\.org' is a URL",
                    found["bad"]["problems"][0])  # fmt: skip
    text = lib.carrel("agents").stdout.decode()
    assert "  allowed     a.org, @github\n  denied      b.org\n" in text


def test_agents_for_a_person(library):
    done = lib.carrel("agents")
    text = lib.succeeded(done).decode()
    assert re.search(r"^base      claude  default model  carrel\.json$", text, re.M), text
    assert re.search(r"^reviewer  claude  best           carrel\.json$", text, re.M), text
    for label, value in {
        "description": "to begin with",
        "skills": "review",
        "mcpServers": "docs",
        "plugins": "chat",
        "hooks": "fmt",
        "tools": "Read, Grep",
        "env": "TOKEN",
        "network": "host",
        "mounts": "/usr/share at /mnt/share (ro)",
    }.items():
        assert f"  {label:12}{value}\n" in text
    assert "the-secret-value" not in text


def test_agents_of_an_unapproved_manifest_are_listed_with_a_word(library):
    done = lib.carrel("agents")
    assert b"is not approved" in done.stderr and done.stderr.count(b"\n") == 1
    approve()
    assert lib.carrel("agents").stderr == b""
    assert agents()["base"]["approved"] is True


def test_agents_of_both_files(project, home):
    own = declare(home / ".config/carrel", {"agents": {"x": {"model": "o"}, "own": {}}})
    declare(project, {"agents": {"x": {"model": "p"}}})
    found = agents()
    assert [(a["name"], a["model"], a["approved"]) for a in found.values()] == [
        ("x", "p", False), ("own", None, True)]  # fmt: skip
    assert found["own"]["file"] == str(own)
    other = declare(project, {"agents": {"other": {}}}, "other.json")
    assert list(agents("-m", "other.json")) == ["other", "x", "own"]
    assert agents("--manifest", str(other))["other"]["file"] == str(other)


@pytest.mark.parametrize(
    "agent, said",
    [
        ({"extends": "nobody"}, 'no agent "nobody"'),
        ({"extends": "bad"}, "a circle"),
        ({"skills": ["nowhere"]}, '"nowhere" is not declared'),
        ({"role": "./no.md"}, "No such file"),
        ({"mounts": [{"source": "./no"}]}, "No such file"),
        ({"harness": "command"}, "command: is missing"),
    ],
)
def test_an_agent_that_cannot_be_is_listed_with_why(project, agent, said):
    declare(project, {"agents": {"good": {}, "bad": agent}})
    found = agents(code=1)
    assert found["good"]["problems"] == [] and len(found["bad"]["problems"]) == 1
    assert said in found["bad"]["problems"][0] and "carrel.json:1:" in found["bad"]["problems"][0]
    done = lib.carrel("agents")
    assert done.returncode == 1 and said in done.stdout.decode()
    assert re.search(r"^  problem     carrel\.json:1:", done.stdout.decode(), re.M)
    declare(project, {"agents": {"good": {}, "bad": {}}})
    assert agents()["bad"]["problems"] == []


def test_agents_of_what_is_no_manifest(project):
    none = lib.carrel("agents")
    lib.failed_clearly(none, "no manifest", str(project / NAME), "carrel init")
    assert none.stderr.removeprefix(b"carrel: ") in lib.carrel("run", "-y", "x").stderr
    declare(project, '{ "agents": { "x": { "modle": "x" }, } ')
    assert "carrel.json:1:" in problems(lib.carrel("agents"))[0]
    declare(project, '{ "agents": { "x": { "modle": "x" }, } }')
    assert 'did you mean "model"' in problems(lib.carrel("agents"))[0]
    declare(project, '{ "agents": { "x": { "model": "x" }, } } // fine')
    assert list(agents()) == ["x"]
    lib.failed_clearly(lib.carrel("agents", "-m", "none.json"), "none.json", "No such file")


def test_no_agents_is_no_trouble(project):
    declare(project, "{}")
    done = lib.carrel("agents")
    assert (done.returncode, done.stdout) == (0, b"") and b"no agent" in done.stderr
    assert agents() == {}


def test_agents_are_shown_harmlessly(project):
    evil = "\x1b[2J\u202ee\n\\"
    declare(project, {"agents": {evil: {"description": evil, "model": evil, "tools": [evil]}}})
    done = lib.carrel("agents")
    assert done.returncode == 0 and done.stdout.count(b"\n") == 5
    assert b"\x1b" not in done.stdout and "\u202e" not in done.stdout.decode()
    assert agents()[evil]["model"] == evil


# ---- init -------------------------------------------------------------------------------


def install(home, *clients):
    """Clients on a PATH of their own; the environment to find them."""
    for name in clients:
        lib.make_file(home / ".local/bin" / name, "#!/bin/sh\n", mode=0o755)
    return {"PATH": f"{home}/.local/bin:/usr/bin:/bin"}


def skill(where, text="Does something"):
    lib.make_file(where / "SKILL.md", f"---\ndescription: {text}\n---\n")


def without_comments(text):
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def with_example(text):
    """The manifest after the slashes of the example were taken away."""
    head, start, rest = text.partition('    // "reviewer": {\n')
    body, end, tail = rest.partition("    // },\n")
    assert start and end
    return head + re.sub("^    // ", "    ", start + body + end, flags=re.M) + tail


@pytest.fixture
def equipped(project, home):
    """A project and a home with something of everything."""
    skill(project / ".claude/skills/lint", "Lints")
    skill(project / "skills/review", 'Reviews "it"')
    skill(home / ".claude/skills/mine", "Only mine")
    lib.make_file(project / "roles/reviewer.md", "Review.\n")
    lib.make_file(project / "CLAUDE.md", "Be kind.\n")
    return install(home, "claude", "codex")


def test_init_writes_for_what_is_there(equipped, project):
    said = output("init", env=equipped)
    text = (project / NAME).read_text()
    document = without_comments(text)
    assert document["library"] == {
        "skills": {
            "lint": {"source": "./.claude/skills/lint"},
            "review": {"source": "./skills/review"},
        }
    }
    assert list(document["agents"]) == ["claude", "codex"]
    assert document["agents"]["claude"]["skills"] == ["lint", "review"]
    for line in ('// Reviews "it"', "// Lints", "// Only mine", '// "mine",', "CLAUDE.md",
                 '// "role": "./roles/reviewer.md",'):  # fmt: skip
        assert line in text
    for word in ("Claude Code", "Codex", "./skills/review", "mine", "./roles/reviewer.md",
                 "carrel run claude", "approval"):  # fmt: skip
        assert word in said
    assert max(map(len, text.splitlines())) <= 96


def test_what_init_writes_can_be_planned(equipped, project):
    output("init", env=equipped)
    assert list(agents(env=equipped)) == ["claude", "codex"]
    for name in ("claude", "codex"):
        plan = json.loads(output("plan", name, "--json", env=equipped))
        assert plan["agent"]["name"] == plan["agent"]["harness"] == name
    assert trust_state()["state"] == "new", "that is for the first start"
    jsonschema.Draft202012Validator(json.loads(output("schema"))).validate(
        without_comments((project / NAME).read_text())
    )


def test_what_init_left_as_comments_can_be_taken_in(equipped, project):
    output("init", env=equipped)
    text = with_example((project / NAME).read_text())
    text = text.replace('// "mine",', '"mine",').replace('      // "role"', '      "role"')
    declare(project, text)
    found = agents(env=equipped)
    assert list(found) == ["reviewer", "claude", "codex"]
    assert found["claude"]["skills"] == found["reviewer"]["skills"] == ["mine", "lint", "review"]
    assert found["reviewer"]["env"] == ["TOKEN"]
    plan = json.loads(output("plan", "reviewer", "--json", env=equipped))
    assert plan["agent"]["prompt_bytes"] > 0
    assert "~" not in (role := [p for p in plan["places"] if p["why"] == "role"])[0]["target"]
    assert len(role) == 1


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
def test_init_finds_each_client(project, home, client):
    env = install(home, client)
    output("init", env=env)
    document = without_comments((project / NAME).read_text())
    assert list(document["agents"]) == [client]
    assert "library" not in document
    assert json.loads(output("plan", client, "--json", env=env))["agent"]["harness"] == client


def test_init_with_nothing(project):
    env = {"PATH": "/usr/bin:/bin"}
    said = output("init", env=env)
    assert "none found" in said and "carrel run" not in said
    text = (project / NAME).read_text()
    assert without_comments(text) == {"agents": {}}
    assert agents(env=env) == {}
    declare(project, with_example(text))
    assert list(agents(env=env)) == ["reviewer"]


def test_init_overwrites_nothing(equipped, project):
    for make in (
        lambda: declare(project, "mine"),
        lambda: os.symlink("nowhere", project / NAME),
        lambda: lib.make_dir(project / NAME),
    ):
        make()
        before = lib.snapshot(project)
        lib.failed_clearly(lib.carrel("init", env=equipped), NAME, "already", "--print")
        assert lib.snapshot(project) == before
        output("init", "--print", env=equipped)
        assert lib.snapshot(project) == before
        os.rmdir(project / NAME) if (project / NAME).is_dir() else os.unlink(project / NAME)
    output("init", env=equipped)
    assert (project / NAME).stat().st_mode & 0o777 == 0o644


def test_init_prints_what_it_would_write(equipped, project):
    printed = output("init", "--print", env=equipped)
    assert not (project / NAME).exists()
    output("init", env=equipped)
    assert (project / NAME).read_text() == printed


def test_of_many_inits_one_writes(equipped, project):
    before = set(os.listdir(project))
    running = [lib.start("init", env=equipped) for _ in range(12)]
    codes = sorted(process.wait(lib.TIMEOUT) for process in running)
    assert codes == [0] + [125] * 11
    assert set(os.listdir(project)) == before | {NAME}
    assert list(agents(env=equipped)) == ["claude", "codex"]


def test_init_writes_whole_or_not_at_all(equipped, project):
    before = lib.snapshot(project)
    script = 'trap "" XFSZ; ulimit -f 0; exec "$0" init'
    lib.failed_clearly(lib.execute(["sh", "-c", script, lib.program()], env=equipped), NAME)
    assert lib.snapshot(project) == before
    project.chmod(0o555)
    lib.failed_clearly(lib.carrel("init", env=equipped), "Permission denied")
    project.chmod(0o755)
    output("init", env=equipped)


def test_init_takes_names_as_data(project, home):
    """Names and texts of files that would be something else in the manifest, or be refused."""
    outside = lib.make_dir(project.parent / "outside")
    skill(project / "skills/good")
    skill(project / 'skills/a"], "network": "open')
    skill(project / "skills" / os.fsdecode(b"\xff"))
    skill(project / "skills/linked")
    os.symlink(outside, project / "skills/linked/out")
    skill(project / ".claude/skills/good", "The\x1b[31m first\u2028")
    lib.make_file(project / "skills/no-skill/README.md", "")
    skill(home / '.claude/skills/x",\n"y', 'text */ } , "\r')
    lib.make_file(project / 'roles/a"\n,"b.md', "")
    lib.make_file(project / "roles" / os.fsdecode(b"\xff.md"), "")
    env = install(home, "claude")
    done = lib.carrel("init", env=env)
    lib.succeeded(done)
    text = (project / NAME).read_text()
    document = without_comments(text)
    assert document["library"]["skills"] == {"good": {"source": "./.claude/skills/good"}}
    assert document["agents"]["claude"]["skills"] == ["good"]
    assert '// "role": "./roles/a\\"\\n,\\"b.md",\n' in text
    assert '// "x\\",\\n\\"y",\n' in text
    assert "\x1b" not in text and "\r" not in text
    notes = done.stderr.decode().splitlines()
    assert len(notes) == 4 and all(note.startswith("carrel: left out ./skills/") for note in notes)
    assert "leads out of it" in done.stderr.decode() and "\\xff" in done.stderr.decode()
    assert json.loads(output("plan", "claude", "--json", env=env))["agent"]["skills"] == ["good"]


def test_a_client_in_the_project_is_none(project):
    lib.make_file(project / "bin/claude", "#!/bin/sh\n", mode=0o755)
    output("init", env={"PATH": f"{project}/bin:/usr/bin:/bin"})
    assert without_comments((project / NAME).read_text()) == {"agents": {}}


# ---- schema -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema(template):
    return json.loads(lib.succeeded(lib.carrel("schema", cwd="/")))


def test_manifest_is_what_is_described_by_default(schema):
    assert json.loads(output("schema", "manifest")) == schema
    assert json.loads(output("schema", "plan"))["title"] == "carrel plan"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def described(node, path=""):
    """Every schema of a property, and whether it says what it is."""
    if isinstance(node, dict):
        for name, inner in node.get("properties", {}).items():
            yield f"{path}.{name}", inner
        for key, inner in node.items():
            yield from described(inner, f"{path}.{key}")
    elif isinstance(node, list):
        for inner in node:
            yield from described(inner, path)


def test_every_key_is_described(schema):
    keys = dict(described(schema))
    assert len(keys) > 50
    assert [path for path, inner in keys.items() if not inner.get("description")] == []
    agent = schema["$defs"]["agent"]["properties"]
    assert agent["harness"]["default"] == "claude" and "command" in agent["harness"]["enum"]
    assert agent["permissions"]["properties"]["skipPrompts"]["default"] is True
    assert schema["$defs"]["hook"]["required"] == ["event", "command"]


def an(**agent):
    return {"agents": {"x": agent}}


def hook(**more):
    return {"library": {"hooks": {"h": {"event": "Stop", "command": ["true"], **more}}}}


SSH = {"Host": "a", "IdentityFile": "~/k", "Hostname": "b", "User": "c", "Port": 22}

# (good, bad): what may be said, and what comes next to it and may not.
PAIRS = [
    ({}, []),
    ({"$schema": "./s.json"}, {"$schema": 1}),
    ({"agents": {}}, {"agent": {}}),
    ({"agents": {"x y/z": {}}}, {"agents": {"": {}}}),
    ({"agents": {"n" * 64: {}}}, {"agents": {"n" * 65: {}}}),
    ({"library": {}}, {"library": []}),
    ({"library": {"skills": {"a.b_c-9": {"source": "x"}}}},
     {"library": {"skills": {"a/b": {"source": "x"}}}}),
    ({"library": {"skills": {"a": {"source": "x"}}}}, {"library": {"skills": {"a": {}}}}),
    ({"library": {"plugins": {"9": {"source": "x"}}}},
     {"library": {"plugins": {".9": {"source": "x"}}}}),
    ({"library": {"mcpServers": {"m": {"command": "c", "env": {"A": ""}}}}},
     {"library": {"mcpServers": {"m": {"command": ["c"]}}}}),
    (hook(), hook(unknown=1)),
    (hook(timeout=5), hook(timeout=0)),
    (an(), {"agents": {"x": []}}),
    (an(model="m"), an(model="")),
    (an(model="m"), an(model=None)),
    (an(harness="codex"), an(harness="codx")),
    (an(skills=["a"]), an(skills="a")),
    (an(skills=[]), an(skills=[""])),
    (an(tools=["a", "b"]), an(tools=["a", 1])),
    (an(permissions={"skipPrompts": False}), an(permissions={"skipPrompts": "no"})),
    (an(permissions={}), an(permissions="allow")),
    (an(env={"_A9": "x", "b": ""}), an(env={"9A": "x"})),
    (an(env={"A": "1"}), an(env={"A": 1})),
    (an(env={"A_B": "1"}), an(env={"A-B": "1"})),
    (an(env={}), an(env={"": "1"})),
    (an(network="host"), an(network="hosts")),
    (an(network={"mode": "host"}), an(network={"mod": "host"})),
    (an(network={"ask": True}), an(network=True)),
    (an(workspace="overlay"), an(workspace="copy")),
    (an(workspace={"hide": ["a"]}), an(workspace={"hide": [{}]})),
    (an(mounts=[{"source": "a", "mode": "rw"}]), an(mounts=[{"source": "a", "mode": "wr"}])),
    (an(mounts=[{"source": "a"}]), an(mounts=[{"target": "/a"}])),
    (an(mounts=[]), an(mounts={"source": "a"})),
    (an(ssh=[SSH]), an(ssh=[{**SSH, "Port": 22.5}])),
    (an(ssh=[SSH]), an(ssh=[{k: v for k, v in SSH.items() if k != "User"}])),
    (an(limits={"memory": "4G"}), an(limits={"memory": "4GB"})),
    (an(limits={"memory": 1024}), an(limits={"memory": -1})),
    (an(limits={"memory": "0064K"}), an(limits={"memory": "0K"})),
    (an(limits={"time": "1h30m"}), an(limits={"time": "1h 30m"})),
    (an(limits={"time": "0h30"}), an(limits={"time": "0h0"})),
    (an(limits={"time": "10"}), an(limits={"time": "m"})),
    (an(limits={"time": 1.0}), an(limits={"time": 1.5})),
    (an(limits={"cpus": 0.5}), an(limits={"cpus": 0})),
    (an(limits={"cpus": 2}), an(limits={"cpus": "2"})),
    (an(limits={"pids": 1}), an(limits={"pids": 1.5})),
    (an(limits={"tokens": 10**15 - 1}), an(limits={"tokens": 10**15})),
    (an(image="host", engine="native"), an(engine="oci")),
    (an(extends="y"), an(extends=["y"])),
]  # fmt: skip


@pytest.mark.parametrize("good, bad", PAIRS, ids=[json.dumps(bad)[:50] for _, bad in PAIRS])
def test_checker_and_schema_agree(project, schema, good, bad):
    validator = jsonschema.Draft202012Validator(schema)
    for document, expected in ((good, True), (bad, False)):
        declare(project, document)
        done = lib.carrel("agents")
        assert (done.returncode in (0, 1)) == expected, (document, done.stderr)
        assert validator.is_valid(document) == expected, document


def test_plan_of_an_agent_fits_its_schema(equipped, project):
    validator = jsonschema.Draft202012Validator(json.loads(output("schema", "plan")))
    lib.make_file(project / "hook.sh", "#!/bin/sh\n", mode=0o755)
    document = {
        "library": {
            "skills": {"review": {"source": "./skills/review"}},
            "mcpServers": {"docs": {"command": "sh", "env": {"A": "${HOME}", "B": "$x"}}},
            "plugins": {"chat": {"source": "./roles"}},
            "hooks": {"fmt": {"event": "Stop", "command": ["./hook.sh"]}},
        },
        "agents": {
            "plain": {},
            "full": {
                "model": "m",
                "effort": "high",
                "role": "./roles/reviewer.md",
                "prompt": "Do it.",
                "skills": ["review"],
                "mcpServers": ["docs"],
                "plugins": ["chat"],
                "hooks": ["fmt"],
                "tools": ["Read"],
                "env": {"L": "x", "P": "?Token", "H": "${HOME}", "C": "!true"},
                "network": "host",
                "mounts": [{"source": "/var/log", "target": "/mnt/log"}],
                "limits": {"time": "1h", "pids": 100},
            },
        },
    }
    declare(project, document)
    plans = {}
    for name in document["agents"]:
        plans[name] = json.loads(output("plan", name, "--json", env=equipped))
        validator.validate(plans[name])
    full = plans["full"]
    assert {e["name"]: e.get("how") for e in full["env"] if e["name"] in "LPHC"} == {
        "L": "literal", "P": "prompt", "H": "copy", "C": "command"}  # fmt: skip
    assert any("sha256" in p and "bytes" in p for p in full["places"])
    assert full["input"] and full["agent"]["prompt_bytes"] == len("Do it.")
    for spoil in (
        lambda plan: plan["agent"].pop("skills"),
        lambda plan: plan["agent"].update(extra=1),
        lambda plan: plan.update(input="prompt.md"),
        lambda plan: plan["env"][0].update(how="guess"),
    ):
        document = json.loads(json.dumps(full))
        spoil(document)
        assert not validator.is_valid(document)
