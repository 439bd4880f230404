"""What a run is written as for other tools. The schemas are written down here from those tools'
documentation and readers, not from carrel's code."""

import csv
import json
import pathlib
import statistics
import xml.etree.ElementTree

import jsonschema
import lib
import pytest
import runs

SAMPLES = lib.REPO / "tests" / "mock" / "samples"
NUMBER, STRING, WHOLE, BOOL = ({"type": t} for t in ("number", "string", "integer", "boolean"))


def record(required, **optional):
    """An object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | optional,
        "additionalProperties": False,
    }


def listed(of):
    return {"type": "array", "items": of}


def report(path, *args):
    return lib.carrel("report", str(path), *args)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def run(place):
    made = runs.sample(place, cases=5, queries=6, seed=5)
    made.artifact("A9", "with_skill", 1, "error", reason="the client ended without a result")
    made.artifact("A9", "without_skill", 1, "limit", reason="10 minutes are over")
    made.trigger(90, False, "error")
    path = made.end()
    done = report(path, "--files")
    assert done.returncode == 0, done.stderr
    return path


# ---- skill-creator ----------------------------------------------------------------------

EXPECTATION = record({"text": STRING, "passed": BOOL, "evidence": STRING})
SPREAD = record({"mean": NUMBER, "stddev": NUMBER, "min": NUMBER, "max": NUMBER})
FIGURES = record({"pass_rate": SPREAD, "time_seconds": SPREAD, "tokens": SPREAD})
BENCHMARK = record(
    {
        "metadata": record(
            {
                "skill_name": STRING,
                "skill_path": STRING,
                "executor_model": STRING,
                "analyzer_model": STRING,
                "timestamp": STRING,
                "evals_run": {"anyOf": [listed(WHOLE), listed(STRING)]},
                "runs_per_configuration": WHOLE,
            }
        ),
        "runs": listed(
            record(
                {
                    "eval_id": {"type": ["integer", "string"]},
                    "eval_name": STRING,
                    "configuration": STRING,
                    "run_number": WHOLE,
                    "result": record(
                        {
                            "pass_rate": NUMBER,
                            "passed": WHOLE,
                            "failed": WHOLE,
                            "total": WHOLE,
                            "time_seconds": {"type": ["number", "null"]},
                            "tokens": NUMBER,
                            "tool_calls": NUMBER,
                            "errors": NUMBER,
                        }
                    ),
                    "expectations": listed(EXPECTATION),
                    "notes": listed(STRING),
                }
            )
        ),
        "run_summary": record(
            {
                "with_skill": FIGURES,
                "without_skill": FIGURES,
                "delta": record({"pass_rate": STRING, "time_seconds": STRING, "tokens": STRING}),
            }
        ),
        "notes": listed(STRING),
    }
)


def test_benchmark(run):
    data = read(run / "benchmark.json")
    jsonschema.validate(data, BENCHMARK)
    # Its viewer shows the first configuration as "with".
    assert list(data["run_summary"])[:2] == ["with_skill", "without_skill"]
    rates = [r["result"]["pass_rate"] for r in data["runs"] if r["configuration"] == "with_skill"]
    spread = data["run_summary"]["with_skill"]["pass_rate"]
    assert spread["mean"] == pytest.approx(statistics.mean(rates))
    assert spread["stddev"] == pytest.approx(statistics.stdev(rates))
    assert (spread["min"], spread["max"]) == (min(rates), max(rates))
    # What gave no verdict would be a pass rate of 0 there: it is a note.
    assert all(r["eval_id"] != "A9" for r in data["runs"])
    assert any("A9 with_skill run 1 gave no verdict (error)" in note for note in data["notes"])
    assert "| A9 | 0 of 0 (+1 without verdict) |" in (run / "benchmark.md").read_text()


def test_benchmark_ids_are_all_numbers_or_all_strings(place):
    numbers, mixed = runs.Run(place, "n"), runs.Run(place, "m")
    for case in ("1", "2"):
        numbers.artifact(case)
        mixed.artifact(case)
    mixed.artifact("B")
    for made, ids in ((numbers, [1, 2]), (mixed, ["1", "2", "B"])):
        path = made.end()
        assert report(path, "--files").returncode == 0
        assert read(path / "benchmark.json")["metadata"]["evals_run"] == ids
        assert [r["eval_id"] for r in read(path / "benchmark.json")["runs"]] == ids


# ---- BMAD -------------------------------------------------------------------------------


def test_execution_summary(run):
    data = read(run / "execution-summary.json")
    assert {"total", "executed", "exec_failures", "results"} == set(data)
    attempts = [read(p) for p in run.glob("eval-*/*/run-*/attempt.json")]
    assert data["total"] == data["executed"] == len(attempts) == len(data["results"])
    lost = [a for a in attempts if a["outcome"] in ("error", "limit")]
    assert data["exec_failures"] == len(lost) >= 2


def test_triggers_result(run):
    row = record(
        {
            "query": STRING,
            "should_trigger": BOOL,
            "trigger_rate": {"type": ["number", "null"]},
            "triggers": WHOLE,
            "runs": WHOLE,
            "pass": {"type": ["boolean", "null"]},
            "errors": WHOLE,
        }
    )
    schema = record(
        {
            "run_id": STRING,
            "completed_at": STRING,
            "skill_name": STRING,
            "description": STRING,
            "isolation": STRING,
            "results": listed(row),
            "summary": record({"total": WHOLE, "passed": WHOLE, "failed": WHOLE}),
        }
    )
    data = read(run / "triggers-result.json")
    jsonschema.validate(data, schema)
    # A negative whose only attempt failed did not pass.
    assert data["results"][-1]["pass"] is None and data["results"][-1]["trigger_rate"] is None
    decided = [r for r in data["results"] if r["pass"] is not None]
    assert all(r["pass"] == ((r["trigger_rate"] >= 0.5) == r["should_trigger"]) for r in decided)
    assert data["summary"]["passed"] + data["summary"]["failed"] == len(decided)


# ---- JUnit and Markdown -----------------------------------------------------------------


def test_junit(run, place):
    assert report(run, "--junit", f"{place}/junit.xml").returncode == 0
    top = xml.etree.ElementTree.parse(place / "junit.xml").getroot()
    assert top.tag == "testsuites"
    cases, triggers = top.findall("testsuite")
    assert cases.get("name") == "review.with_skill" and triggers.get("name") == "review.triggers"
    for suite in (cases, triggers):
        tests = suite.findall("testcase")
        assert int(suite.get("tests")) == len(tests)
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors")) == len(suite.findall("testcase/error")) == 1
        assert all(float(t.get("time")) > 0 and t.get("classname") for t in tests)
    assert cases.find("testcase[@name='A9']/error").text.startswith("eval-A9/with_skill/run-1: error")


def test_junit_agrees_with_the_verdict(place):
    """A case that fails without the skill is no failure."""
    made = runs.Run(place)
    for k in (1, 2):
        made.artifact("A1", "with_skill", k, "pass")
        made.artifact("A1", "without_skill", k, "fail")
    path = made.end()
    assert report(path, "--files", "--junit", f"{place}/j.xml").returncode == 0
    assert read(path / "run.json")["summary"]["verdict"] == "pass"
    assert xml.etree.ElementTree.parse(place / "j.xml").find("testsuite").get("failures") == "0"


# ---- ATIF -------------------------------------------------------------------------------

# Version 1.4 of Harbor's RFC 0001. Beyond the schema its validator wants that steps count from 1,
# that only agents have tool calls, and that a result names a call of its own step.
CALL = record({"tool_call_id": STRING, "function_name": STRING, "arguments": {"type": "object"}})
RESULT = record({}, source_call_id=STRING, content=STRING)
STEP = record(
    {"step_id": WHOLE, "source": {"enum": ["system", "user", "agent"]}, "message": STRING},
    timestamp=STRING,
    model_name=STRING,
    reasoning_content=STRING,
    tool_calls=listed(CALL),
    observation=record({"results": listed(RESULT)}),
    extra={"type": "object"},
)
ATIF = record(
    {
        "schema_version": {"const": "ATIF-v1.4"},
        "session_id": STRING,
        "agent": record({"name": STRING, "version": STRING}, model_name=STRING),
        "steps": listed(STEP) | {"minItems": 1},
    },
    final_metrics=record(
        {},
        total_prompt_tokens=WHOLE,
        total_completion_tokens=WHOLE,
        total_cached_tokens=WHOLE,
        total_cost_usd=NUMBER,
        total_steps=WHOLE,
    ),
    extra={"type": "object"},
)


def check_trajectory(path):
    data = read(path)
    jsonschema.validate(data, ATIF)
    for number, step in enumerate(data["steps"], 1):
        assert step["step_id"] == number
        agents = {"model_name", "reasoning_content", "tool_calls"} & set(step)
        assert not agents or step["source"] == "agent"
        calls = {c["tool_call_id"] for c in step.get("tool_calls", [])}
        assert {r["source_call_id"] for r in step.get("observation", {}).get("results", [])} <= calls
    return data


def test_trajectory(run):
    for path in run.rglob("attempt.json"):
        check_trajectory(path.with_name("trajectory.json"))
    data = read(run / "eval-A1/with_skill/run-1/trajectory.json")
    user, system, agent, last = data["steps"]
    assert (user["source"], user["message"]) == ("user", "Do it.")
    assert system["source"] == "system" and last["message"] == "Wrote it."
    assert agent["message"] == "I count them."
    assert agent["reasoning_content"] == "Let me count the words first."
    assert agent["tool_calls"][0]["arguments"] == {"command": "wc -w brief.md"}
    assert agent["observation"]["results"] == [{"source_call_id": "t1", "content": "6 brief.md"}]
    # Prompt tokens include what came from the cache.
    assert data["final_metrics"]["total_prompt_tokens"] == 30 + 29118 + 400
    assert data["final_metrics"]["total_cached_tokens"] == 29118


@pytest.mark.parametrize("name", sorted(p.name for p in SAMPLES.glob("*.jsonl")))
def test_trajectory_of_each_client(place, name):
    """Transcripts that real clients printed: each gives an agent's step or says what failed."""
    made = runs.Run(place)
    made.artifact("A1", transcript=(SAMPLES / name).read_text())
    path = made.end()
    assert report(path, "--files").returncode == 0
    data = check_trajectory(path / "eval-A1/with_skill/run-1/trajectory.json")
    said = [s for s in data["steps"] if s["source"] == "agent"]
    if "err" in name:
        assert any(s["source"] == "system" and s["message"] for s in data["steps"])
    else:
        assert said and (name == "m_plug.jsonl" or any(s.get("tool_calls") for s in said))
    assert not any('"type":"' in s["message"] for s in data["steps"]), "an event was not understood"


def test_transcript_of_a_plain_command(place):
    made = runs.Run(place)
    made.artifact("A1", transcript="one\ntwo\n\nthree \xff\n".encode("latin-1"))
    path = made.end()
    assert report(path, "--files").returncode == 0
    steps = check_trajectory(path / "eval-A1/with_skill/run-1/trajectory.json")["steps"]
    assert [s["message"] for s in steps] == ["Do it.", "one\ntwo\nthree \ufffd"]


# ---- Inspect ----------------------------------------------------------------------------

# Version 2 of the log, as the fields of Inspect's EvalLog, EvalSpec, EvalSample and ChatMessage.
MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": STRING,
        "tool_calls": listed(
            record({"id": STRING, "function": STRING, "arguments": {"type": "object"}, "type": {"const": "function"}})
        ),
        "tool_call_id": STRING,
        "function": STRING,
    },
    "additionalProperties": False,
}
USAGE = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["input_tokens", "output_tokens", "total_tokens"],
        "additionalProperties": WHOLE,
    },
}
SAMPLE = {
    "type": "object",
    "required": ["id", "epoch", "input", "target", "messages", "output", "scores", "metadata"],
    "properties": {
        "id": STRING,
        "epoch": WHOLE,
        "input": STRING,
        "target": {"anyOf": [STRING, listed(STRING)]},
        "messages": listed(MESSAGE),
        "output": {"type": "object", "required": ["model", "choices"]},
        "scores": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["value"],
                "properties": {"value": {"enum": ["C", "I"]}, "explanation": STRING},
            },
        },
        "model_usage": USAGE,
        "error": record({"message": STRING, "traceback": STRING, "traceback_ansi": STRING}),
        "limit": record(
            {
                "type": {"enum": ["context", "time", "working", "message", "token", "cost", "operator", "custom"]},
                "limit": NUMBER,
            }
        ),
    },
}
METRIC = record({"name": STRING, "value": NUMBER, "params": {"type": "object"}})
INSPECT = {
    "type": "object",
    "required": ["version", "status", "eval", "plan", "results", "stats", "samples"],
    "properties": {
        "version": {"const": 2},
        "status": {"enum": ["started", "success", "cancelled", "error"]},
        "eval": {
            "type": "object",
            "required": ["created", "task", "dataset", "model", "config"],
            "properties": {"created": STRING, "task": STRING, "model": STRING, "config": {"type": "object"}},
        },
        "results": {
            "type": "object",
            "properties": {
                "scores": listed(
                    {
                        "type": "object",
                        "required": ["name", "scorer", "metrics"],
                        "properties": {"metrics": {"type": "object", "additionalProperties": METRIC}},
                    }
                )
            },
        },
        "stats": {"type": "object", "properties": {"model_usage": USAGE}},
        "samples": listed(SAMPLE),
    },
}


def test_inspect(run, place):
    assert report(run, "--inspect", f"{place}/log.json").returncode == 0
    data = read(place / "log.json")
    jsonschema.validate(data, INSPECT)
    assert list(data)[:4] == ["version", "status", "eval", "plan"]
    keys = [(s["id"], s["epoch"]) for s in data["samples"]]
    assert len(set(keys)) == len(keys) == data["results"]["total_samples"]
    by_id = {s["id"]: s for s in data["samples"]}
    assert by_id["A9/with_skill"]["scores"] == {} and by_id["A9/with_skill"]["error"]
    assert by_id["A9/without_skill"]["scores"] == {} and by_id["A9/without_skill"]["limit"]
    assert [m["role"] for m in by_id["A1/with_skill"]["messages"]][-2:] == ["tool", "assistant"]
    scores = {s["name"]: s["metrics"]["accuracy"]["value"] for s in data["results"]["scores"]}
    got = [s["scores"]["carrel"]["value"] for s in data["samples"] if s["id"].endswith("/with_skill") and s["scores"]]
    assert scores["with_skill"] == pytest.approx(got.count("C") / len(got))


# ---- hostile text -----------------------------------------------------------------------

HOSTILE = "</script>]]> & \"quoted\" `code` | pipe \x1b[2J \x00 \u202e \ufffe <img src=x onerror=alert(1)>"


def test_hostile_text_stays_text(place):
    """No output is broken by what an agent wrote, and each can be read back."""
    made = runs.Run(place, skill="evil | `skill`")
    words = HOSTILE.replace("\x00", "")
    made.artifact("A1", reason=words, outcome="fail", transcript=runs.conversation(HOSTILE), prompt=HOSTILE,
        expectations=[runs.expectation(words, False, evidence=words)])
    made.artifact("A2", transcript=b'{"type":"assistant"\xff\xfe}\n\x00\x01\n')
    made.trigger(1, True, "not_fired", query=words)
    path = made.end()
    done = report(path, "--files", "--junit", f"{place}/j.xml", "--inspect", f"{place}/i.json", "--markdown", f"{place}/m.md")
    assert done.returncode == 0, done.stderr
    failure = xml.etree.ElementTree.parse(place / "j.xml").find("testsuite/testcase/failure")
    assert "<img src=x onerror=alert(1)>" in failure.text and "\x1b" not in failure.text
    assert read(place / "i.json")["samples"][0]["scores"]["carrel"]["explanation"] == words
    assert read(path / "benchmark.json")["runs"][0]["expectations"][0]["evidence"] == words
    jsonschema.validate(read(path / "benchmark.json")["runs"], BENCHMARK["properties"]["runs"])
    for name in ("A1", "A2"):
        check_trajectory(path / f"eval-{name}/with_skill/run-1/trajectory.json")
    text = pathlib.Path(place / "m.md").read_text()
    assert "<img" not in text.replace("\\<img", "") and "\x1b" not in text


# ---- CSV and JSON -----------------------------------------------------------------------


def test_csv(run, place):
    assert report(run, "--csv", f"{place}/a.csv", "--json").returncode == 0
    with open(place / "a.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    attempts = {str(p.parent.relative_to(run)): read(p) for p in run.rglob("attempt.json")}
    assert {r["directory"] for r in rows} == set(attempts) and len(rows) == len(attempts)
    for row in rows:
        a = attempts[row["directory"]]
        assert (row["kind"], row["case"], row["outcome"]) == (a["kind"], a["case"], a["outcome"])
        assert float(row["usd"]) == pytest.approx(a["usd"]) and int(row["output_tokens"]) == 57
        assert row["should_trigger"] == {True: "true", False: "false", None: ""}[a["should_trigger"]]
        assert int(row["met"]) == sum(e["passed"] for e in a["expectations"])


def test_csv_is_no_program(place):
    """What an agent wrote is no formula of a spreadsheet, and ends no field."""
    made = runs.Run(place)
    words = ("=HYPERLINK(1)", "+1", "-1", "@a", 'a"b,c\n\x1bd', "plain")
    for number, word in enumerate(words):
        made.artifact(f"A{number}", outcome="fail", reason=word)
    assert report(made.end(), "--csv", f"{place}/a.csv").returncode == 0
    with open(place / "a.csv", newline="", encoding="utf-8") as file:
        shown = [r["reason"] for r in csv.DictReader(file, strict=True)]
    assert shown == ["'" + w if w[0] in "=+-@" else w for w in words]


def test_json(run, place):
    """The figures without a page, one line for each run; nothing in the run changes."""
    before = lib.snapshot(run)
    done = report(run, str(run), "--json")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and len(lines) == 2
    assert json.loads(lines[0]) == json.loads(lines[1]) == read(run / "run.json")
    assert lib.snapshot(run) == before
    done = report(run, "--json", "-o", f"{place}/page.html")
    assert json.loads(done.stdout)["summary"] and (place / "page.html").exists()


# ---- the command ------------------------------------------------------------------------


def test_newest_run_by_default(place):
    top = place / "state" / "carrel" / "runs"
    runs.Run(top, "20261118-090000-old", skill="old").end()
    made = runs.Run(top, "20261118-100000-new", skill="new")
    made.artifact("A1")
    path = made.end()
    for parent in (top, *top.parents[:2]):
        lib.give(parent)
    env = {"XDG_STATE_HOME": str(place / "state")}
    done = lib.carrel("report", env=env)
    assert (done.returncode, done.stdout.decode()) == (0, f"{path}/report.html\n"), done.stderr
    done = lib.carrel("report", "20261118-100000-new", "-o", "-", env=env)
    assert done.returncode == 0 and done.stdout.startswith(b"<!doctype html>")


def test_a_run_that_was_cut_short(place):
    made = runs.Run(place)
    made.artifact("A1", run=1)
    made.artifact("A1", run=2)
    path = made.end(finished=False)
    (path / "eval-A1/with_skill/run-2/attempt.json").write_text("{")
    assert report(path, "--files").returncode == 0
    summary = read(path / "run.json")["summary"]
    assert summary["attempts"]["pass"] == 1 and summary["attempts"]["error"] == 1
    assert summary["verdict"] == "undecided"


@pytest.mark.parametrize(
    "args, code, said",
    [
        (["--nonsense"], 2, "--nonsense"),
        (["a", "b", "--junit", "x"], 2, "of one run"),
        (["-o", "-", "--open"], 2, "--open needs a file"),
        (["-o", "-", "--json"], 2, "standard output"),
        (["a", "b", "--csv", "x"], 2, "of one run"),
        (["nowhere"], 3, "open the run"),
        (["."], 3, "is no run"),
    ],
)
def test_refusals(place, args, code, said):
    done = lib.carrel("report", *args)
    assert done.returncode == code and said in done.stderr.decode(), done.stderr


def test_nowhere_to_write(place):
    made = runs.Run(place)
    made.artifact("A1")
    path = made.end()
    done = report(path, "-o", f"{place}/no/such/dir.html")
    assert done.returncode == 3 and "write '" in done.stderr.decode()
    assert not list(place.glob("*.html*"))
