"""Many attempts: at a time, again, on a budget, interrupted, killed and gone on with.

The agent is a plain command, which costs next to nothing to start.
"""

import json
import signal
import time

import lib
import pytest
from conftest import Run, script

OK = {"type": "exists", "path": "done"}


def suite(bench, command, cases=4, repeat=1, **more):
    rows = [{"id": f"k{i}", "prompt": "p", "graders": [OK]} for i in range(cases)]
    bench.cases(*rows, agent={"harness": "command", "command": command},
                configurations={"only": {"skill": False}}, repeat=repeat,
                project="empty", **more)  # fmt: skip
    lib.make_dir(bench.project / "skills/review/evals/empty")


def journal(run):
    return [json.loads(line) for line in (run.dir / "journal.jsonl").read_text().splitlines()]


def test_a_thousand_attempts(bench):
    suite(bench, ["touch", "done"], cases=100, repeat=10)
    run = bench.run("--jobs", "4", timeout=200)
    assert run.code == 0, run.out[-2000:] + run.err
    attempts = run.attempts()
    assert len(attempts) == 1000 == run.json("run.json")["planned"]
    assert {a["outcome"] for a in attempts.values()} == {"pass"}
    events = journal(run)
    assert len([e for e in events if e["event"] == "ended"]) == 1000
    assert run.json("run.json")["ended"]
    assert not list((bench.home / ".local/state/carrel/work").iterdir())
    assert not [p for p in run.dir.iterdir() if p.name.startswith(".")]


def test_so_many_at_a_time(bench):
    """With two jobs two run at once, and never three."""
    suite(bench, script("sleep 0.5; touch done"), cases=6)
    run = bench.run("--jobs", "2")
    running = most = 0
    for event in journal(run):
        running += {"started": 1, "ended": -1}.get(event["event"], 0)
        most = max(most, running)
    assert run.code == 0 and most == 2


def test_filter_and_repeat(bench):
    suite(bench, ["touch", "done"], cases=12)
    run = bench.run("--filter", "k1,k1?", "--repeat", "2")
    cases = sorted({a["case"] for a in run.attempts().values()})
    assert cases == ["k1", "k10", "k11"] and len(run.attempts()) == 6
    assert bench.run("--filter", "none").code == 2


def test_fail_fast(bench):
    suite(bench, ["true"], cases=20)
    run = bench.run("--fail-fast", "--jobs", "1")
    assert run.code == 1 and len(run.attempts()) == 1
    assert "--fail-fast was given" in run.out


def test_until_sure(bench):
    """A series ends when the sequential test has decided it: 4 of 4, either way."""
    suite(bench, ["touch", "done"], cases=2, repeat=12)
    run = bench.run("--until-sure", "--jobs", "1")
    assert run.code == 0 and len(run.attempts()) == 8, run.out
    record = run.json("run.json")
    assert (record["planned"], record["spared"]) == (8, 16)
    assert len([e for e in journal(run) if e["event"] == "spared"]) == 16
    again = bench.run("--resume", str(run.dir))
    assert again.code == 0 and len(again.attempts()) == 8, again.out
    assert len(bench.run("--jobs", "1", "--repeat", "5").attempts()) == 10  # off by default


def test_until_sure_of_a_failure(bench):
    suite(bench, ["true"], cases=1, repeat=12)
    run = bench.run("--until-sure", "--jobs", "1")
    assert run.code == 1 and len(run.attempts()) == 4, run.out


def test_a_budget_of_time(bench):
    suite(bench, script("sleep 1; touch done"), cases=20)
    run = bench.run("--max-time", "2s", "--jobs", "1")
    assert run.code == 3 and 1 <= len(run.attempts()) < 20
    assert "the time for the run is over" in run.out


def test_resume(bench):
    """What is there stays as it is; what is missing and what was an error is made."""
    suite(bench, script("test -e /nowhere || exit 9"), cases=3)
    run = bench.run()
    assert run.code == 3 and {a["outcome"] for a in run.attempts().values()} == {"error"}
    record = json.loads((run.dir / "suite.json").read_text())
    record["agent"]["command"] = ["touch", "done"]
    (run.dir / "suite.json").write_text(json.dumps(record))
    again = bench.run("--resume", str(run.dir))
    assert again.code == 0, again.out + again.err
    assert len(again.attempts()) == 3 and len(list((run.dir / "replaced").iterdir())) == 3
    before = lib.snapshot(run.dir / "eval-k0")
    third = bench.run("--resume", str(run.dir))
    assert third.code == 0 and lib.snapshot(run.dir / "eval-k0") == before


def test_resume_remembers_what_was_asked_for(bench):
    """Only cases, only these, so often; and when it began."""
    suite(bench, ["touch", "done"], cases=3, triggers=[{"query": "q", "should_trigger": True}])
    run = bench.run("--mode", "artifact", "--filter", "k1,k2", "--repeat", "2")
    assert run.code == 0 and len(run.attempts()) == 4, run.err
    before = run.json("run.json")
    lib.remove(run.dir / "eval-k1/only/run-2")
    again = bench.run("--resume", str(run.dir))
    after = again.json("run.json")
    assert again.code == 0 and len(again.attempts()) == 4, again.err
    assert after["planned"] == 4 and after["started"] == before["started"]
    assert after["options"] == {**before["options"], "trigger_name": after["options"]["trigger_name"]}


def wait_for_attempts(bench, n):
    def there():
        return len(list(bench.out.glob("*/eval-*/only/run-*"))) >= n

    lib.wait_for(there, f"{n} attempts")


def ended(process):
    out, err = process.communicate(timeout=60)
    process.stdout = process.stderr = None

    class Done:
        returncode, stdout, stderr = process.returncode, out, err

    return Done


@pytest.mark.parametrize("signals", [1, 2], ids=["drains", "ends"])
def test_interrupted(bench, signals):
    """The first Ctrl-C lets what runs come to its end, the second ends it; then it goes on."""
    suite(bench, script("sleep 2.25; touch done"), cases=8)
    process = bench.start("--jobs", "2")
    wait_for_attempts(bench, 1)
    (record,) = bench.out.glob("*/journal.jsonl")
    lib.wait_for(lambda: record.read_text().count('"started"') >= 3, "one more to begin")
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    run = Run(ended(process), bench.out)
    made = len(run.attempts())
    assert run.code == 3 and "it was interrupted" in run.out
    started = len([e for e in journal(run) if e["event"] == "started"])
    assert made == started if signals == 1 else made < started
    lib.wait_gone("sleep 2.25")
    assert not list((bench.home / ".local/state/carrel/work").iterdir())
    again = bench.run("--resume", str(run.dir), "--jobs", "8")
    assert again.code == 0 and len(again.attempts()) == 8


def test_killed(bench):
    """kill -9 loses what was under way and nothing else; the boxes end with it."""
    suite(bench, script("sleep 1.125; touch done"), cases=6)
    process = bench.start("--jobs", "2")
    wait_for_attempts(bench, 2)
    process.kill()
    process.communicate(timeout=60)
    lib.wait_gone("sleep 1.125")
    run = Run(type("Done", (), {"returncode": 137, "stdout": b"", "stderr": b""}), bench.out)
    made = run.attempts()
    assert 2 <= len(made) < 6 and all(a["outcome"] == "pass" for a in made.values())
    assert run.json("run.json")["ended"] is None
    kept = {name: lib.snapshot(run.dir / name) for name in made}
    again = bench.run("--resume", str(run.dir))
    assert again.code == 0 and len(again.attempts()) == 6
    now = {name: lib.snapshot(run.dir / name) for name in made}
    for files in now.values():
        files.pop(b"trajectory.json")  # written at the end of a run
    assert now == kept
    assert not list((bench.home / ".local/state/carrel/work").iterdir())
    assert not [p for p in run.dir.iterdir() if p.name.startswith(".")]


def test_one_run_is_not_run_twice_at_once(bench):
    suite(bench, script("sleep 2; touch done"), cases=3)
    process = bench.start("--jobs", "1")
    wait_for_attempts(bench, 1)
    other = bench.run("--resume", str(next(bench.out.iterdir())))
    assert other.code == 3 and "is being run already" in other.err
    process.send_signal(signal.SIGINT)
    ended(process)


def test_infrastructure_is_tried_again(bench, client):
    """What the API failed is tried again, after a pause; a failure of the agent's is not."""
    client("claude")
    tries = {"n": 0}
    original = bench.mock.count_try

    def count_try(prompt):
        tries["n"] += 1
        return original(prompt)

    bench.mock.count_try = count_try
    bench.cases({"id": "x", "prompt": "MOCK:flaky:6", "graders": [OK]},
                configurations={"only": {"skill": False}})  # fmt: skip
    run = bench.run("--retries", "1", timeout=120)
    (attempt,) = run.attempts().values()
    assert attempt["tries"] == 2 and attempt["outcome"] == "fail" and run.code == 1
    assert [e["event"] for e in journal(run)] == ["started", "again", "started", "ended"]


def test_progress_on_a_terminal(bench):
    suite(bench, script("sleep 0.6; touch done"), cases=4)
    words = ["eval", "skills/review", "--output-dir", str(bench.out), "--jobs", "2"]
    child = lib.terminal([lib.program(), *words], cwd=bench.project, env=bench.env)
    child.expect_exact("suite     skills/review/evals/evals.json (4 cases)")
    child.expect_exact("attempts  4 x 1; 2 at a time")
    child.expect_exact("Start? [y/N] ")
    child.send("y\n")
    child.expect_exact("[####")
    child.expect_exact("/4")
    child.expect_exact("verdict   pass")
    child.expect_exact(str(bench.out))
    assert lib.finish(child) == 0
