"""Run directories as `carrel eval` writes them, made from a seed."""

import json
import pathlib
import random

import lib

OUTCOMES = ("pass", "fail", "error", "limit", "skipped", "ungraded")
EPOCH = 1794996000  # 2026-11-18 10:00:00 UTC


def stamp(seconds):
    """ISO 8601 of a number of seconds after EPOCH, within that day."""
    whole = int(seconds)
    hour, minute, second = 10 + whole // 3600, whole // 60 % 60, whole % 60
    return f"2026-11-{18 + hour // 24:02}T{hour % 24:02}:{minute:02}:{second:02}.{int(seconds * 10) % 10}Z"


def conversation(words="Wrote it.", tool="Bash", value="wc -w brief.md", result="6 brief.md"):
    """What Claude Code prints for a turn with one tool call."""
    return [
        {"type": "system", "subtype": "init", "model": "sonnet", "claude_code_version": "2.1.197"},
        {
            "type": "assistant",
            "message": {
                "id": "m1",
                "model": "sonnet",
                "content": [{"type": "thinking", "thinking": "Let me count the words first."}],
            },
        },
        {
            "type": "assistant",
            "message": {"id": "m1", "model": "sonnet", "content": [{"type": "text", "text": "I count them."}]},
        },
        {
            "type": "assistant",
            "message": {
                "id": "m1",
                "model": "sonnet",
                "content": [{"type": "tool_use", "id": "t1", "name": tool, "input": {"command": value}}],
            },
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}],
            },
        },
        {
            "type": "assistant",
            "message": {"id": "m2", "model": "sonnet", "content": [{"type": "text", "text": words}]},
        },
        {"type": "result", "subtype": "success", "is_error": False, "result": words},
    ]


class Run:
    """One run directory below `top`."""

    def __init__(self, top, name="20261118-100000-review", skill="review", **options):
        self.path = pathlib.Path(top) / name
        self.path.mkdir(parents=True)
        lib.give(self.path)
        self.clock = 0.0
        self.planned = 0
        self.head = {
            "version": 1,
            "id": name,
            "suite": {"path": f"skills/{skill}/evals/evals.json", "kind": "bmad", "skill": skill},
            "agent": {"harness": "claude", "version": "2.1.197", "model": "sonnet", "profile": "pure"},
            "started": stamp(0),
            "ended": None,
            "options": {"repeat": 3, "jobs": 4, "threshold": 0.5, "min_n": 2} | options,
            "configurations": ["with_skill", "without_skill"],
        }

    def file(self, name, content):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(line) + "\n" for line in content)
        elif isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def attempt(self, where, transcript=None, prompt="Do it.", seconds=4.0, **values):
        self.planned += 1
        start = self.clock
        self.clock += seconds / 4  # four at a time
        record = {
            "version": 1,
            "run": 1,
            "reason": "",
            "started": stamp(start),
            "ended": stamp(start + seconds),
            "seconds": seconds,
            "exit": 0,
            "turns": 2,
            "tokens": {"input": 30, "output": 57, "cache_read": 29118, "cache_creation": 400},
            "usd": 0.0288,
            "retries": 0,
            "tool_calls": {"Bash": 1},
            "expectations": [],
            "artifacts": {"added": [], "changed": [], "deleted": []},
            "plan": "5f" * 32,
            "permission_denials": 0,
            "verdict": None,
            "query": None,
            "should_trigger": None,
        } | values
        self.file(f"{where}/attempt.json", record)
        self.file(f"{where}/prompt.txt", prompt)
        self.file(f"{where}/transcript.jsonl", conversation() if transcript is None else transcript)
        return where

    def artifact(self, case, configuration="with_skill", run=1, outcome="pass", **values):
        return self.attempt(
            f"eval-{case}/{configuration}/run-{run}",
            kind="artifact",
            case=case,
            configuration=configuration,
            run=run,
            outcome=outcome,
            **values,
        )

    def trigger(self, number, should, verdict, run=1, query=None, **values):
        outcome = "error" if verdict == "error" else "pass" if (verdict == "fired") == should else "fail"
        return self.attempt(
            f"queries/q{number:03}-r{run}",
            **{
                "kind": "trigger",
                "case": f"q{number:03}",
                "run": run,
                "query": query or f"query {number}",
                "should_trigger": should,
                "verdict": verdict,
                "outcome": outcome,
            }
            | values,
        )

    def control(self, number=1, verdict="fired"):
        return self.attempt(
            f"controls/c{number}",
            kind="control",
            case=f"c{number}",
            verdict=verdict,
            should_trigger=True,
            outcome="pass" if verdict == "fired" else "fail",
        )

    def end(self, finished=True):
        self.head["planned"] = self.planned
        self.head["ended"] = stamp(self.clock) if finished else None
        self.file("run.json", self.head)
        for path in (self.path, *self.path.rglob("*")):
            lib.give(path)
        return self.path


def expectation(text, passed, **more):
    return {"text": text, "passed": passed, "evidence": "seen in brief.md", "grader": "regex"} | more


def sample(top, cases=12, queries=20, repeat=3, seed=1, lift=0.3, **more):
    """A run like the one in the documentation."""
    rng = random.Random(seed)
    run = Run(top, **more)
    run.control(1)
    run.control(2)
    for number in range(1, cases + 1):
        easy = rng.uniform(0.3, 0.85)
        for configuration, chance in (("with_skill", easy + lift), ("without_skill", easy)):
            for k in range(1, repeat + 1):
                good = rng.random() < chance
                outcome = "pass" if good else "fail"
                if rng.random() < 0.03:
                    outcome = rng.choice(("error", "limit"))
                run.artifact(
                    f"A{number}",
                    configuration,
                    k,
                    outcome,
                    seconds=rng.uniform(2, 40),
                    usd=rng.uniform(0.01, 0.2),
                    turns=rng.randint(1, 9),
                    reason={"fail": "the brief names no owner", "error": "the client ended without a result", "limit": "10 minutes are over"}.get(outcome, ""),
                    expectations=[
                        expectation("The brief has at most 200 words", True),
                        expectation("It names an owner", good, grader="model"),
                        expectation("A file exists", True, grader="exists", weak="any file would do"),
                    ]
                    if outcome in ("pass", "fail")
                    else [],
                )
    for number in range(1, queries + 1):
        should = number <= queries // 2
        for k in range(1, repeat + 1):
            right = rng.random() < 0.95
            verdict = ("fired" if right else rng.choice(("not_fired", "other_skill"))) if should else ("not_fired" if right else "fired")
            if rng.random() < 0.02:
                verdict = "error"
            run.trigger(number, should, verdict, k, seconds=rng.uniform(1, 5), usd=0.01,
                query=f"please review the change in part {number} of the project")
    return run


def many(top, attempts):
    """Very many attempts, half of them with the skill; their transcripts are one file."""
    run = Run(top)
    shared = run.file("transcript.jsonl", conversation())
    rng = random.Random(7)
    for number in range(attempts):
        case, configuration = number // 8, ("with_skill", "without_skill")[number // 4 % 2]
        where = f"eval-C{case}/{configuration}/run-{number % 4 + 1}"
        outcome = rng.choices(("pass", "fail", "error"), (7, 3, 0.2))[0]
        record = {
            "version": 1, "kind": "artifact", "case": f"C{case}", "configuration": configuration,
            "run": number % 4 + 1, "outcome": outcome, "reason": "a reason" if outcome != "pass" else "",
            "started": stamp(number / 2), "seconds": rng.uniform(1, 30), "usd": rng.uniform(0, 0.1), "turns": 3,
            "tokens": {"input": 10, "output": 20, "cache_read": 30, "cache_creation": 0},
            "expectations": [expectation("It is so", outcome == "pass")], "tool_calls": {"Bash": 1},
        }
        path = run.file(f"{where}/attempt.json", record)
        path.with_name("transcript.jsonl").hardlink_to(shared)
    run.file("run.json", run.head | {"planned": attempts, "ended": stamp(attempts / 2)})
    return run.path
