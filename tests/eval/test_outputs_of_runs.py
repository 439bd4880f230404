"""What `carrel eval` leaves for other tools, and that `carrel report` reads it."""

import json
import xml.etree.ElementTree

import lib
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
