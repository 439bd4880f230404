"""What `carrel eval` leaves for other tools, and that `carrel report` reads it."""

import json
import xml.etree.ElementTree

import jsonschema
import lib
import readers
from conftest import script


def test_files_of_a_run(bench):
    bench.write("skills/review/evals/setup/given.txt", "one\ntwo\n")
    bench.cases(
        {"id": "x", "prompt": "p", "graders": [{"type": "exists", "path": "out.txt"}], "setup": "setup"},
        agent={"harness": "command", "command": script("echo three >> given.txt; echo y > out.txt; echo done")},
        configurations={"only": {"skill": False}},
    )
    empty = lib.make_dir(bench.project.parent / "empty")
    junit, log = empty.parent / "junit.xml", empty.parent / "log.json"
    run = bench.run("--project-root", str(empty), "--junit", str(junit), "--inspect", str(log))
    assert run.code == 0, run.err
    assert f"report    carrel report --open {run.dir}\n" in run.out
    top = run.dir / "eval-x/only/run-1"
    assert (top / "before/given.txt").read_text() == "one\ntwo\n"
    assert run.json("benchmark.json")["runs"][0]["result"]["pass_rate"] == 1
    assert run.json("execution-summary.json")["exec_failures"] == 0
    steps = json.loads((top / "trajectory.json").read_text())["steps"]
    assert [s["message"] for s in steps] == ["p", "done"]
    assert xml.etree.ElementTree.parse(junit).find("testsuite").get("failures") == "0"
    assert json.loads(log.read_text())["samples"][0]["scores"]["carrel"]["value"] == "C"
    page = lib.carrel("report", str(run.dir), "-o", "-")
    assert page.returncode == 0 and page.stdout.startswith(b"<!doctype html>")


AGENT = script(
    "read -r prompt",
    "mkdir -p notes",
    "echo one > notes/a.txt",
    "echo two > b.txt",
    '[ "$prompt" != fail ] || rm b.txt',
    '[ "$prompt" != break ] || exit 7',
    "echo done",
)


def check_schemas(run):
    """What was written is what `carrel schema` says, and no member of it is left unsaid."""
    of = {what: json.loads(lib.carrel("schema", what).stdout) for what in ("run", "attempt")}
    strict = json.loads(json.dumps(of), object_hook=lambda o: (
        {**o, "additionalProperties": False} if "properties" in o and "type" in o else o))  # fmt: skip
    jsonschema.validate(run.json("run.json"), strict["run"])
    assert "summary" in run.json("run.json")
    for attempt in run.attempts().values():
        jsonschema.validate(attempt, strict["attempt"])


def suite_of(*ids):
    """Cases of which the second fails, and the third breaks before there is a verdict."""
    prompts = ("good", "fail", "break")
    graders = [{"type": "exists", "path": "notes/a.txt"}, {"type": "exists", "path": "b.txt"}]
    return [
        {"id": i, "name": f"the case {i}", "prompt": p, "graders": graders} for i, p in zip(ids, prompts)
    ]


def agents(bench, *ids):
    bench.cases(
        *suite_of(*ids),
        repeat=2,
        agent={"harness": "command", "command": AGENT},
    )
    run = bench.run("--retries", "0", "--min-n", "1")
    assert run.dir is not None, run.err
    return run


def test_the_public_readers(bench):
    """skill-creator's aggregator, review page and viewer, and BMAD's: all read the directory."""
    run = agents(bench, 0, 7, 30)
    found, ids, delta = readers.aggregate(run.dir)
    assert ids == [0, 7] and list(found) == ["with_skill", "without_skill"]
    rows = found["with_skill"]
    assert [(r["eval_id"], r["run_number"], r["pass_rate"]) for r in rows] == [
        (0, 1, 1), (0, 2, 1), (7, 1, 0.5), (7, 2, 0.5)]  # fmt: skip
    assert all(r["time_seconds"] > 0 and r["tokens"] == 0 for r in rows), "no characters as tokens"
    assert all(e["evidence"] for r in rows for e in r["expectations"])
    benchmark = run.json("benchmark.json")
    assert readers.viewer(benchmark) == ["with_skill", "without_skill"]
    # What its own aggregator would write is what we wrote.
    assert benchmark["metadata"]["evals_run"] == [0, 7, 30]
    for name, list_of in found.items():
        ours = [r["result"]["pass_rate"] for r in benchmark["runs"] if r["configuration"] == name]
        assert ours == [r["pass_rate"] for r in list_of]
    assert float(benchmark["run_summary"]["delta"]["pass_rate"]) == round(delta["pass_rate"], 2)
    pages = readers.review(run.dir)
    assert [p["eval_id"] for p in pages] == [0] * 4 + [7] * 4 + [30] * 4
    assert pages[0]["outputs"] == ["b.txt", "notes_a.txt"] and pages[0]["prompt"] == "good"
    assert all((p["grading"] is None) == (p["eval_id"] == 30) for p in pages), "no verdict of a broken run"
    means = readers.bmad(run.dir)
    assert means["elapsed_s"] > 0 and means["return_code"] == 7 / 3 and "total_tokens" in means
    check_schemas(run)


def test_numbers_beside_words(bench):
    """Ids of which one is no number are all strings: their readers sort them."""
    run = agents(bench, 1, "B2", 3)
    found, ids, _ = readers.aggregate(run.dir)
    assert ids == ["1", "B2"] and len(found["without_skill"]) == 4
    assert {p["eval_id"] for p in readers.review(run.dir)} == {"1", "B2", "3"}
    assert readers.viewer(run.json("benchmark.json"))
