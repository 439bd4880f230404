"""Trigger evals with the real Claude Code: every scenario of the mock has its verdict."""

import random

import lib
import pytest


@pytest.fixture(autouse=True)
def claude(client):
    return client("claude")


def test_verdicts(bench):
    """By Skill, by Read, late; not at all; another one; after retries and a cut stream."""
    expected = {
        "MOCK:autoskill:review": "fired",
        "MOCK:readskill:review": "fired",
        "MOCK:late:review": "fired",
        "MOCK:text": "not_fired",
        "MOCK:skill:other": "other_skill",
        "MOCK:drop": "not_fired",
        "MOCK:two": "not_fired",
        'MOCK:text:"quotes" $HOME `id` \\n': "not_fired",
        "-MOCK:text": "not_fired",
        "/review MOCK:autoskill:review": "fired",
        "/nonesuch MOCK:text": "not_fired",
        "MOCK:flaky:2": "not_fired",
    }
    bench.triggers(*expected)
    run = bench.run("--repeat", "1")
    assert run.verdicts() == expected
    by_query = {a["query"]: a for a in run.attempts().values()}
    assert by_query["MOCK:late:review"]["tool_calls"] == {"Bash": 1, "Skill": 1}
    assert by_query["MOCK:flaky:2"]["retries"] == 2
    assert by_query["MOCK:two"]["tool_calls"] == {"Write": 1, "Bash": 1}
    assert by_query["MOCK:text"]["usd"] > 0
    # A '/' does not make it a command of the client's: the model was asked.
    assert by_query["/nonesuch MOCK:text"]["usd"] > 0
    # What was given and what was asked for is in the record; nothing of it was written outside.
    assert (run.dir / "queries" / "q001-r1" / "transcript.jsonl").read_text().count("\n") > 3
    assert run.code == 1 and "fired 2 of 2" in run.out
    assert not list((bench.home / ".local/state/carrel/work").iterdir())


def test_a_message_is_counted_once(bench):
    """MOCK:two is one message with three blocks."""
    bench.triggers("MOCK:two")
    run = bench.run("--repeat", "1")
    metrics = run.json("queries/q001-r1/metrics.json")
    assert metrics["total_steps"] == 2 and metrics["total_tool_calls"] == 2


def test_a_refused_key_is_an_error_at_once(bench):
    """It is neither "not fired" nor tried for two minutes, and nothing else is started."""
    bench.suite([{"query": "MOCK:err401", "should_trigger": False}])
    run = bench.run("--control", "MOCK:err401", "--repeat", "3")
    assert run.code == 3 and run.verdicts() == {}
    assert {a["outcome"] for a in run.attempts().values()} == {"error"}
    assert "refused the credential" in run.out
    assert all(a["seconds"] < 20 for a in run.attempts().values())


def test_a_limit_is_no_verdict(bench):
    bench.suite([{"query": query, "should_trigger": False}
                 for query in ("MOCK:hang", "MOCK:bash:sleep 98765")])  # fmt: skip
    # The controls have no more time than the queries, and a busy machine starts them late.
    run = bench.run("--control", "MOCK:autoskill:control", "--repeat", "1", "--timeout", "20s")
    made = [a for a in run.attempts().values() if a["kind"] == "trigger"]
    assert [(a["outcome"], a["verdict"]) for a in made] == [("limit", "error")] * 2, run.out
    assert run.code == 3
    lib.wait_gone("sleep 98765")


def test_the_control_must_fire(bench):
    """A client that uses no skill "passes" negatives; its control says that it is not valid."""
    bench.suite([{"query": "MOCK:text", "should_trigger": False}])
    run = bench.run("--control", "MOCK:text")
    assert run.code == 3 and not run.verdicts()
    assert "the model was offered the control skill and did not use it" in run.out


def test_a_client_without_skills_is_named(bench):
    """As one whose default is --bare would be."""
    bench.suite([{"query": "MOCK:text", "should_trigger": False}])
    run = bench.run("--control", "MOCK:autoskill:control", "--", "--tools", "Bash,Read")
    assert run.code == 3 and not run.verdicts()
    assert "no Skill tool" in run.out


def test_profiles(bench):
    """Bundled skills are there with --profile realistic alone."""
    bench.suite([{"query": "MOCK:skill:code-review", "should_trigger": True}])
    for profile, listed in (("pure", False), ("realistic", True)):
        run = bench.run("--control", "MOCK:autoskill:control", "--repeat", "1",
                        "--profile", profile)  # fmt: skip
        text = (run.dir / "queries/q001-r1/transcript.jsonl").read_text()
        assert ('"code-review"' in text.split("\n")[0]) == listed
        assert set(run.verdicts().values()) == {"other_skill"}


def test_a_rate(bench, mock):
    """Fifty attempts of a skill that fires in seven of ten: the interval covers that."""
    random.seed(1)  # the mock's dice are thrown in this process
    bench.triggers("MOCK:maybe:0.7:review")
    run = bench.run("--repeat", "50", "--jobs", "4", timeout=200)
    fired = [a["verdict"] == "fired" for a in run.attempts().values() if a["kind"] == "trigger"]
    assert len(fired) == 50
    recall = run.json("run.json")["summary"]["triggers"]["recall"]
    assert recall["passed"] == sum(fired) and recall["n"] == 50
    assert recall["low"] <= 0.7 <= recall["high"]


def test_codex(bench, client):
    """It has no tool for skills: to use one is to read its file."""
    client("codex")
    port = bench.mock.url.rsplit(":", 1)[1]
    entry = (f'model_providers.mock={{name="mock",base_url="http://127.0.0.1:{port}/v1",'
             'wire_api="responses",env_key="CODEX_API_KEY"}')  # fmt: skip
    bench.triggers("MOCK:readskill:review", "MOCK:text:no", "MOCK:bash:echo SKILL.md")
    run = bench.run("--control", "MOCK:readskill:control-word", "--repeat", "1",
                    "--harness", "codex", "--model", "gpt-5", "--service", port, "--",
                    "-c", entry, "-c", "model_provider=mock",
                    env={"CODEX_API_KEY": "sk-codex"})  # fmt: skip
    assert list(run.verdicts().values()) == ["fired", "not_fired", "not_fired"], run.out + run.err
