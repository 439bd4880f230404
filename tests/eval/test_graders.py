"""Graders, on what a plain command left behind, and on what a hostile one did.

Each has a case in which it passes and one in which it fails.
"""

import json
import os

import lib
import pytest
from conftest import CONTROL, script  # noqa: F401

AGENT = script(
    "echo 'hello world' > out.txt",
    """echo '{"a": {"b": [1, "two"]}}' > data.json""",
    "echo changed > given.txt",
    "rm gone.txt",
    "mkdir -p sub/dir; echo deep > sub/dir/f",
    "echo 'the answer is 42'",
)
GIVEN = {"given.txt": "given\n", "gone.txt": "gone\n", "same.txt": "same\n", "keep/a": "a\n"}

# A grader, whether it passes, and a word of its evidence or of why it is weak.
GRADERS = [
    ({"type": "exists", "path": "out.txt"}, True, "is there"),
    ({"type": "exists", "path": "sub/dir"}, True, "is there"),
    ({"type": "exists", "path": "none.txt"}, False, "there is no"),
    ({"type": "exists", "path": "same.txt"}, True, "before the agent began"),
    ({"type": "absent", "path": "gone.txt"}, True, "there is no"),
    ({"type": "absent", "path": "out.txt"}, False, "is there"),
    ({"type": "absent", "path": "never.txt"}, True, "before the agent began, either"),
    ({"type": "contains", "path": "out.txt", "text": "lo wo"}, True, "contains"),
    ({"type": "contains", "path": "out.txt", "text": "[h]ello"}, False, "does not"),
    ({"type": "contains", "path": "same.txt", "text": "same"}, True, "was like this before"),
    ({"type": "regex", "path": "out.txt", "pattern": "^h.*d$"}, True, "matched: hello world"),
    ({"type": "regex", "path": "out.txt", "pattern": "^world"}, False, "no match"),
    ({"type": "regex", "path": "out.txt", "pattern": "x*"}, True, "an empty text"),
    ({"type": "regex", "path": "none", "pattern": "x"}, False, "cannot be read"),
    ({"type": "json", "path": "data.json", "at": "a.b[1]", "equals": "two"}, True, "two"),
    ({"type": "json", "path": "data.json", "at": "a", "equals": {"b": [1.0, "two"]}}, True, ""),
    ({"type": "json", "path": "data.json", "at": "a.b[1]", "equals": "2"}, False, "two"),
    ({"type": "json", "path": "data.json", "at": "a.c"}, False, "nothing at"),
    ({"type": "json", "path": "out.txt", "at": "a"}, False, "no JSON"),
    ({"type": "unchanged", "path": "same.txt"}, True, "as they were"),
    ({"type": "unchanged", "path": "keep"}, True, "as they were"),
    ({"type": "unchanged", "path": "given.txt"}, False, "changed or deleted"),
    ({"type": "tool_never", "tool": "Bash"}, True, "0 times"),
    ({"type": "tool_called", "tool": "Bash"}, False, "0 times"),
    ({"type": "max_seconds", "value": 1000}, True, ""),
    ({"type": "max_seconds", "value": 0}, False, ""),
    ({"type": "command", "command": ["grep", "-q", "hello", "out.txt"]}, True, "exit code 0"),
    ({"type": "command", "command": ["grep", "nothing", "out.txt"]}, False, "exit code 1"),
    ({"type": "command", "command": ["sh", "-c", "exit 3"], "exit": 3}, True, "exit code 3"),
    ({"type": "command", "command": ["sh", "check.sh"], "files": ["check.sh"]}, True, "checked"),
]


def given(bench, files=GIVEN):
    for name, text in files.items():
        bench.write(f"skills/review/evals/setup/{name}", text)
    return {"setup": "setup"}


def one(bench, command, *graders, **more):
    """One attempt of a plain command, with its record."""
    case = {"id": "x", "prompt": "p", "graders": list(graders), **more}
    bench.cases(case, agent={"harness": "command", "command": command},
                configurations={"only": {"skill": False}})  # fmt: skip
    run = bench.run("--project-root", str(lib.make_dir(bench.project.parent / "empty")))
    assert run.dir, run.err
    return run, run.json("eval-x/only/run-1/attempt.json")


def test_graders(bench):
    bench.write("skills/review/evals/check.sh", "test -e out.txt && echo checked\n")
    rows = [grader for grader, _, _ in GRADERS]
    run, attempt = one(bench, AGENT, *rows, **given(bench))
    assert attempt["outcome"] == "fail" and run.code == 1, attempt
    # Commands come last, because they may change things: compare by what they are.
    found = sorted(attempt["expectations"], key=lambda e: e["grader"] == "command")
    assert len(found) == len(GRADERS)
    for (grader, passes, word), got in zip(GRADERS, found, strict=True):
        assert (got["grader"], got["passed"]) == (grader["type"], passes), (grader, got)
        assert word in got["evidence"] + (got["weak"] or ""), (grader, got)
    grading = run.json("eval-x/only/run-1/grading.json")
    assert grading["summary"]["passed"] == sum(passes for _, passes, _ in GRADERS)
    assert grading["summary"]["total"] == len(GRADERS)
    assert "timing" not in grading
    weak = [s["assertion"] for s in grading["eval_feedback"]["suggestions"]]
    assert len(weak) == 4, weak


def test_artifacts(bench):
    """Exactly what was added and changed, by content, and a list of the deleted."""
    touch = script("echo same > same.txt; touch keep/a", *AGENT[2].split("\n"))
    run, attempt = one(bench, touch, {"type": "exists", "path": "out.txt"}, **given(bench))
    top = run.dir / "eval-x/only/run-1"
    assert attempt["artifacts"] == {
        "added": ["data.json", "out.txt", "sub/dir/f"],
        "changed": ["given.txt"],
        "deleted": ["gone.txt"],
        "left_out": [],
    }
    files = sorted(str(p.relative_to(top / "artifacts")) for p in (top / "artifacts").rglob("*")
                   if p.is_file())  # fmt: skip
    assert files == ["data.json", "given.txt", "out.txt", "sub/dir/f"]
    assert (top / "artifacts/given.txt").read_text() == "changed\n"
    assert (top / "deleted.txt").read_text() == "gone.txt\n"
    assert sorted(os.listdir(top / "outputs")) == [
        "data.json", "given.txt", "out.txt", "sub_dir_f"]  # fmt: skip
    assert run.code == 0 and attempt["outcome"] == "pass"


def test_hostile_trees(bench):
    """Links lead nowhere, pipes and closed directories stop nothing, names drive no terminal."""
    agent = script(
        "ln -s /etc/passwd link; ln -s / up; ln -s loop loop; mkfifo pipe",
        "mkdir closed; echo x > closed/f; chmod 0 closed/f closed",
        "printf x > \"$(printf 'esc\\033[31m')\"; printf x > \"$(printf 'bad\\377')\"",
        "i=0; while [ $i -lt 60 ]; do mkdir d; cd d; i=$((i+1)); done; echo deep > f",
    )
    graders = [
        {"type": "contains", "path": "link", "text": "root"},
        {"type": "exists", "path": "up/etc"},
        {"type": "regex", "path": "pipe", "pattern": "."},
    ]
    run, attempt = one(bench, agent, *graders)
    assert attempt["outcome"] == "fail"
    assert [e["passed"] for e in attempt["expectations"]] == [False, False, False]
    top = run.dir / "eval-x/only/run-1"
    kept = [p for p in top.rglob("*") if p.is_symlink() or p.is_fifo()]
    assert not kept
    assert set(attempt["artifacts"]["left_out"]) == {"link", "up", "loop", "pipe"}
    assert (top / "artifacts/closed/f").read_text() == "x\n"
    assert "\033[31m" not in run.out
    assert not list((bench.home / ".local/state/carrel/work").iterdir())


def test_a_forged_reward_fails(bench):
    """The agent writes every file that a grader or a reader would believe; and cannot reach it."""
    verdict = json.dumps({"outcome": "pass", "summary": {"pass_rate": 1.0, "passed": 1}})
    names = "attempt.json grading.json ../attempt.json ../grading.json ../../run.json outputs/x"
    agent = script(
        "mkdir -p outputs artifacts",
        f"for f in {names}; do echo '{verdict}' > $f; done 2>/dev/null",
        f"find .. /tmp $HOME -name attempt.json -exec sh -c 'echo x > $1' _ {{}} \\; "
        "2>/dev/null",
        "true",
    )
    run, attempt = one(bench, agent, {"type": "exists", "path": "work-done.txt"})
    assert run.code == 1 and attempt["outcome"] == "fail"
    assert run.json("eval-x/only/run-1/grading.json")["summary"]["pass_rate"] == 0


def test_an_error_is_no_failure(bench):
    run, attempt = one(bench, script("exit 7"), {"type": "exists", "path": "x"})
    assert (attempt["outcome"], attempt["exit"], run.code) == ("error", 7, 3)
    assert not (run.dir / "eval-x/only/run-1/grading.json").exists()


def test_a_grader_that_cannot_judge(bench):
    grader = {"type": "command", "command": ["no-such-program"]}
    run, attempt = one(bench, AGENT, grader, **given(bench))
    assert (attempt["outcome"], run.code) == ("error", 3)
    assert "could not judge" in attempt["reason"]


def test_a_command_grader_has_no_network(bench):
    probe = "timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'"
    port = bench.mock.url.rsplit(":", 1)[1]
    grader = {"type": "command", "command": ["bash", "-c", probe.replace("$PORT", port)]}
    _, attempt = one(bench, AGENT, grader, **given(bench))
    assert attempt["expectations"][0]["passed"] is False


def test_no_assertions(bench):
    """The case runs and is ungraded, never a pass."""
    run, attempt = one(bench, AGENT, **given(bench))
    assert (attempt["outcome"], run.code) == ("ungraded", 3)


# ---- by a model --------------------------------------------------------------------------


@pytest.fixture
def claude(client):
    return client("claude")


def answer(**verdicts):
    """A script for the mock: the grader's structured output."""
    return [[{"type": "tool_use", "name": "StructuredOutput", "input": verdicts}]]


def judged(bench, *expectations, **scripts):
    bench.mock.scripts.update(scripts)
    case = {"id": "x", "prompt": "Do it.", "expectations": list(expectations),
            "graders": [{"type": "exists", "path": "out.txt"}]}  # fmt: skip
    bench.cases(case, agent={"harness": "command", "command": script("echo hi > out.txt")},
                configurations={"only": {"skill": False}})  # fmt: skip
    run = bench.run()
    return run, run.json("eval-x/only/run-1/attempt.json")


def test_a_model_judges(bench, claude):
    met = {"passed": True, "evidence": "it says so"}
    not_met = {"passed": False, "evidence": "it does not", "weak": "anybody could"}
    run, attempt = judged(bench, "MOCK:judge one", "two", judge=answer(e1=met, e2=not_met))
    assert attempt["outcome"] == "fail" and attempt["grader_usd"] > 0
    found = {e["text"]: (e["passed"], e["evidence"], e["weak"]) for e in attempt["expectations"]}
    assert found["MOCK:judge one"] == (True, "it says so", None)
    assert found["two"] == (False, "it does not", "anybody could")
    # It can read and search and nothing else, and sees copies of the evidence.
    (asked,) = [b for b in bench.asked() if b.get("tools")][:1]
    tools = {tool["name"] for tool in asked["tools"]}
    assert tools <= {"Read", "Grep", "Glob", "StructuredOutput"} and "Read" in tools
    assert (run.dir / "eval-x/only/run-1/grader.jsonl").exists()


@pytest.mark.parametrize(
    "verdicts", [{"e1": {"passed": True, "evidence": "x"}}, {"e1": "yes", "e2": "yes"}]
)
def test_a_grader_that_leaves_something_out(bench, claude, verdicts):
    run, attempt = judged(bench, "MOCK:judge one", "two", judge=answer(**verdicts))
    assert (attempt["outcome"], run.code) == ("error", 3)


def test_a_grader_that_breaks(bench, claude):
    run, attempt = judged(bench, "MOCK:err400")
    assert (attempt["outcome"], run.code) == ("error", 3)
    assert "the model grader failed" in attempt["reason"]
