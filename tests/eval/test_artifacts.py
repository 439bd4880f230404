"""Artifact evals with the real clients: what is captured, limits, and what must not leak in."""

import json
import re

import lib
import pytest

BARE = {"configurations": {"only": {"skill": False}}}
EXISTS = {"type": "exists", "path": "out.txt"}


@pytest.fixture(autouse=True)
def claude(client):
    return client("claude")


def attempt(run, case="x", configuration="only"):
    return run.json(f"eval-{case}/{configuration}/run-1/attempt.json")


def test_with_and_without(bench):
    """A suite of BMAD's as it is: both configurations, all files that its tools read."""
    bench.suite(
        {"evals": [{"id": "A1", "prompt": "MOCK:write:out.txt",
                    "expectations": ["MOCK:structured"], "files": ["data.txt"]}]}
    )  # fmt: skip
    bench.write("data.txt", "given\n")
    bench.write("skills/review/notes.md", "part of the skill")
    run = bench.run("--repeat", "1")
    assert run.code == 0, run.out + run.err
    for configuration in ("with_skill", "without_skill"):
        top = run.dir / "eval-A1" / configuration / "run-1"
        found = attempt(run, "A1", configuration)
        assert found["outcome"] == "pass" and found["tool_calls"] == {"Write": 1}
        assert found["artifacts"]["added"] == ["out.txt"]
        assert found["usd"] > 0 and found["tokens"]["cache_read"] > 0 and found["turns"] == 2
        for name in ("prompt.txt", "transcript.jsonl", "metrics.json", "timing.json",
                     "grading.json", "eval_metadata.json", "events.jsonl", "plan.json",
                     "stderr.txt", "outputs/out.txt", "artifacts/out.txt"):  # fmt: skip
            assert (top / name).is_file(), name
        timing = json.loads((top / "timing.json").read_text())
        assert timing["total_tokens"] == sum(found["tokens"].values())
        skills = json.loads((top / "transcript.jsonl").read_text().split("\n")[0])["skills"]
        assert skills == (["review"] if configuration == "with_skill" else [])
    metadata = run.json("eval-A1/eval_metadata.json")
    assert metadata == {"eval_id": "A1", "eval_name": "A1", "prompt": "MOCK:write:out.txt",
                        "assertions": ["MOCK:structured"]}  # fmt: skip
    assert "with 100 %" in run.out and "without 100 %" in run.out


def test_the_skill_and_its_suite_are_not_in_the_workspace(bench):
    """Without the skill nobody can read it, and nobody reads what is graded."""
    bench.cases({"id": "x", "prompt": "MOCK:bash:find . -type f | sort", "graders": [EXISTS]})
    bench.write("src/code.c", "int x;\n")
    bench.write(".claude/skills/own/SKILL.md", "x")
    bench.write("node_modules/a/b", "x")
    run = bench.run()
    for configuration, skill in (("with_skill", True), ("without_skill", False)):
        text = (run.dir / f"eval-x/{configuration}/run-1/transcript.jsonl").read_text()
        result = next(line for line in text.splitlines() if '"tool_result"' in line)
        assert "./src/code.c" in result
        assert ("./.claude/skills/review/SKILL.md" in result) == skill
        assert "evals" not in result and "own" not in result and "node_modules" not in result
        assert "./skills" not in result


def test_limits(bench):
    """Turns and dollars: a limit, with its cost, and no verdict."""
    loop = {"prompt": "MOCK:loop", "graders": [EXISTS]}
    bench.cases({"id": "turns", **loop, "limits": {"turns": 3}},
                {"id": "usd", **loop, "limits": {"usd": 0.02}}, **BARE)  # fmt: skip
    run = bench.run()
    for case in ("turns", "usd"):
        found = attempt(run, case)
        assert found["outcome"] == "limit" and found["usd"] > 0, found
    assert run.code == 3


def test_commands_of_the_client(bench):
    """Without the skill its name is a word; what asks no model says nothing of the skill."""
    more = {"graders": [{"type": "exists", "path": "out.txt"}]}
    bench.cases({"id": "skill", "prompt": "/review MOCK:write:out.txt", **more},
                {"id": "other", "prompt": "/nonesuch MOCK:write:out.txt", **more})  # fmt: skip
    run = bench.run()
    found = {(a["case"], a["configuration"]): a for a in run.attempts().values()}
    for configuration in ("with_skill", "without_skill"):
        assert found["skill", configuration]["outcome"] == "pass", run.out
        other = found["other", configuration]
        assert other["outcome"] == "error" and "did not ask the model" in other["reason"]
    assert run.code == 3


def test_permission_denials(bench):
    """With prompts that nobody answers the client says success, and the record says more."""
    bench.cases({"id": "x", "prompt": "MOCK:write:out.txt", "graders": [EXISTS]}, **BARE)
    run = bench.run("--prompts")
    found = attempt(run)
    assert (found["permission_denials"], found["exit"], found["outcome"]) == (1, 0, "fail")


def test_a_sub_agent_is_paid_for(bench):
    bench.cases({"id": "x", "prompt": "MOCK:agent", "graders": []},
                {"id": "y", "prompt": "MOCK:bash:echo hi", "graders": []}, **BARE)  # fmt: skip
    run = bench.run()
    text = (run.dir / "eval-x/only/run-1/transcript.jsonl").read_text()
    result = json.loads([line for line in text.splitlines() if '"type":"result"' in line][-1])
    found = attempt(run)
    assert found["usd"] == pytest.approx(result["total_cost_usd"])
    assert found["tokens"]["output"] > result["usage"]["output_tokens"]


def test_a_conversation(bench):
    """What the user says next comes after each answer, in one session."""
    case = {"id": "x", "prompt": "MOCK:bash:echo one > one.txt", "graders": [
        {"type": "exists", "path": "one.txt"}, {"type": "exists", "path": "two.txt"}],
        "turns": ["MOCK:bash:cp one.txt two.txt"]}  # fmt: skip
    bench.cases(case, **BARE)
    run = bench.run()
    assert attempt(run)["outcome"] == "pass", attempt(run)
    text = (run.dir / "eval-x/only/run-1/transcript.jsonl").read_text()
    assert text.count('"type":"result"') == 2


def furnish(bench):
    """A user and a project's surroundings that have all that the client would pick up."""
    mark = "MARK-{}".format
    bench.write("~/.claude/CLAUDE.md", mark("user-memory"))
    bench.write("~/.claude/settings.json", {"env": {"MARKED": mark("user-setting")}})
    bench.write("~/.claude/skills/mine/SKILL.md",
                f"---\nname: mine\ndescription: {mark('user-skill')}\n---\n")  # fmt: skip
    bench.write("~/.claude/commands/c.md", f"---\ndescription: {mark('user-command')}\n---\n")
    bench.write("~/.claude/agents/a.md", f"---\nname: a\ndescription: {mark('user-agent')}\n---\n")
    server = {"command": "/usr/bin/touch", "args": [str(bench.home / "server-started")]}
    memory = re.sub(r"[^A-Za-z0-9]", "-", str(bench.project))  # as Claude Code names it
    bench.write(f"~/.claude/projects/{memory}/memory/MEMORY.md", mark("auto-memory"))
    bench.write("~/.claude.json", {"mcpServers": {"MARK-user-server": server}})
    lib.make_file(bench.project.parent / "CLAUDE.md", mark("ancestor-memory"))
    lib.make_file(bench.project.parent / ".claude/skills/above/SKILL.md",
                  f"---\nname: above\ndescription: {mark('ancestor-skill')}\n---\n")  # fmt: skip
    lib.make_file(bench.home / ".local/state/carrel/CLAUDE.md", mark("ancestor-of-scratch"))
    bench.write(".claude/settings.json", {"env": {"X": mark("project-setting")}})
    bench.write(".mcp.json", {"mcpServers": {"MARK-project-server": server}})
    bench.write(".claude/skills/of/SKILL.md",
                f"---\nname: of\ndescription: {mark('project-skill')}\n---\n")  # fmt: skip
    bench.write("~/.gitconfig", f"[user]\n\tname = {mark('git-name')}\n")


def test_nothing_leaks_in(bench):
    """Of all that a client finds outside nothing reaches the model; and outside it does."""
    furnish(bench)
    look = "MOCK:bash:env; git config --list; cat ~/.claude/settings.json; ls -a ~ ~/.claude"
    rows = [{"query": look, "should_trigger": False}]
    bench.suite({"version": 1, "control": "MOCK:autoskill:control", "repeat": 1,
                 "cases": [{"id": "x", "prompt": look, "graders": []}],
                 "triggers": rows})  # fmt: skip
    run = bench.run(env={"OTHER": "MARK-variable", "CLAUDE_CODE_X": "MARK-x"})
    assert len(run.attempts()) == 5, run.err
    assert len(bench.asked()) >= 8
    assert "MARK" not in json.dumps(bench.asked())
    assert "MARK" not in "".join(p.read_text() for p in run.dir.rglob("transcript.jsonl"))
    bench.mock.requests.clear()
    argv = [lib.clients() / "claude", "-p", look, "--dangerously-skip-permissions"]
    env = {**bench.env, "OTHER": "MARK-variable"}
    assert not (bench.home / "server-started").exists()
    lib.succeeded(lib.execute(argv, cwd=bench.project, env=env))
    assert (bench.home / "server-started").exists()
    outside = json.dumps(bench.asked())
    for word in ("user-memory", "user-skill", "ancestor-memory", "project-skill",
                 "variable", "git-name", "user-setting", "auto-memory"):  # fmt: skip
        assert f"MARK-{word}" in outside, word


def test_what_can_be_reached(bench):
    """A trigger eval reaches the model alone; an artifact eval what the suite allows."""
    probe = "MOCK:bash:getent hosts example.invalid; echo status $?"
    bench.suite({"version": 1, "control": "MOCK:autoskill:control", "repeat": 1,
                 "network": {"allow": ["example.invalid:443"]},
                 "configurations": {"only": {"skill": False}},
                 "cases": [{"id": "x", "prompt": probe, "graders": []}],
                 "triggers": [{"query": probe, "should_trigger": False}]})  # fmt: skip
    refused = bench.run()
    assert refused.code == 2 and "--allow example.invalid:443" in refused.err
    run = bench.run("--allow", "example.invalid:443")
    assert run.json("eval-x/only/run-1/plan.json")["network"] != "host"
    allowed = (run.dir / "eval-x/only/run-1/plan.json").read_text()
    refused = (run.dir / "queries/q001-r1/plan.json").read_text()
    assert "example.invalid" in allowed and "example.invalid" not in refused
    events = (run.dir / "queries/q001-r1/events.jsonl").read_text()
    lookups = [json.loads(line) for line in events.splitlines() if "example.invalid" in line]
    assert lookups and {e["verdict"] for e in lookups} == {"refused"}


def test_codex(bench, client):
    """The same with another client, whose events are its own."""
    client("codex")
    port = bench.mock.url.rsplit(":", 1)[1]
    entry = (f'model_providers.mock={{name="mock",base_url="http://127.0.0.1:{port}/v1",'
             'wire_api="responses",env_key="CODEX_API_KEY"}')  # fmt: skip
    prompt = "MOCK:bash:echo hi > out.txt; cat ~/.codex/skills/review/SKILL.md"
    bench.cases({"id": "x", "prompt": prompt, "graders": [EXISTS]})
    run = bench.run("--harness", "codex", "--model", "gpt-5", "--service", port, "--",
                    "-c", entry, "-c", "model_provider=mock",
                    env={"CODEX_API_KEY": "sk-codex"})  # fmt: skip
    assert run.code == 0, run.out + run.err
    found = attempt(run, configuration="with_skill")
    assert found["artifacts"]["added"] == ["out.txt"] and found["tokens"]["input"] > 0
    texts = [(run.dir / f"eval-x/{c}/run-1/transcript.jsonl").read_text()
             for c in ("with_skill", "without_skill")]  # fmt: skip
    assert "Reviews a diff" in texts[0] and "Reviews a diff" not in texts[1]
