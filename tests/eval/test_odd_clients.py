"""What clients do seldom: they hang when they are done, are logged out, have used up a limit.

A shell script stands in for Claude Code and prints its events.
"""

import json

import lib
import pytest
from conftest import Run
from test_schedule import ended, journal

CLIENT = r"""#!/bin/sh
line() { printf '%s\n' "$1"; }
init='{"type":"system","subtype":"init","claude_code_version":"9.9","tools":["Skill"],"skills":[]}'
said='{"type":"assistant","message":{"id":"m1","model":"m","content":[{"type":"text","text":"T"}]}}'
well='{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"T",
"total_cost_usd":0.25}'
ill='{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"You have hit it"}'
synthetic='{"type":"assistant","message":{"id":"m1","model":"<synthetic>","content":[{"type":"text",
"text":"Not logged in · Please run /login"}]},"error":"authentication_failed"}'
well=$(echo $well) synthetic=$(echo $synthetic)
line "$init"
case "$(cat)" in
*HANGS*)  touch done; sleep 98761 & line "$said"; line "$well"; exec sleep 98761 ;;
*IDLE*)   exec sleep 98761 ;;
*LOGIN*)  line "$synthetic"; line "$ill"; exit 1 ;;
*LIMIT*)
	if test -e limited; then
		line '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":'"$(($(date +%s) + $(cat limited)))}}"
		line "$ill"
		exit 1
	fi ;;
*WARN*)   line '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1}}' ;;
*SILENT*) exit 0 ;;
*ODD*)    line 'no JSON at all'; line '[1]'; line '{"type":7}'; printf '\377\n{"type":"assistant"' ;;
esac
touch done
line "$said"
line "$well"
"""
DONE = {"type": "exists", "path": "done"}


@pytest.fixture
def odd(bench):
    """Cases by the word in their prompt."""
    client = lib.make_file(bench.project.parent / "fake/claude", CLIENT, mode=0o755)
    bench.env["PATH"] = f"{client.parent}:{bench.env['PATH']}"

    def cases(*words, **more):
        rows = [{"id": word, "prompt": word, "graders": [DONE], **more} for word in words]
        bench.cases(*rows, configurations={"only": {"skill": False}})

    bench.make = cases
    return bench


def by_case(run):
    return {a["case"]: a for a in run.attempts().values()}


def test_what_the_events_say(odd):
    """The result is the end, whatever comes after; no result is none; all else is passed over."""
    odd.make("HANGS", "IDLE", "WARN", "SILENT", "ODD", limits={"idle": "3s"})
    run = odd.run("--jobs", "5")
    found = by_case(run)
    assert {case: a["outcome"] for case, a in found.items()} == {
        "HANGS": "pass", "IDLE": "limit", "WARN": "pass", "SILENT": "error", "ODD": "pass",
    }, run.out  # fmt: skip
    assert "printed nothing for too long" in found["IDLE"]["reason"]
    assert "no result" in found["SILENT"]["reason"]
    assert found["ODD"]["unreadable_lines"] >= 2
    lib.wait_gone("sleep 98761")
    assert run.code == 3
    text = (run.dir / "eval-ODD/only/run-1/transcript.jsonl").read_bytes()
    assert b"no JSON at all\n[1]\n" in text and b"\n\xff\n" in text, "byte for byte"


def test_no_login_ends_the_run(odd):
    """Not one more attempt is made, and what the client said stands in the reason."""
    odd.make("LOGIN", "WARN", "ODD")
    run = odd.run("--jobs", "1")
    assert list(by_case(run)) == ["LOGIN"] and run.code == 3, run.out
    assert "cannot work here: Not logged in" in run.out and "--resume" in run.out


def test_a_limit_that_is_back_soon_is_waited_for(odd):
    """As often as it takes: it is no failure of the attempt, and uses up none of its tries."""
    odd.make("LIMIT")
    limited = odd.write("limited", "-1")
    process = odd.start("--retries", "0")

    def events():
        return "".join(p.read_text() for p in odd.out.glob("*/journal.jsonl"))

    lib.wait_for(lambda: events().count('"again"') >= 1, "the limit to be met")
    limited.unlink()
    run = Run(ended(process), odd.out)
    assert run.code == 0, run.out
    assert by_case(run)["LIMIT"]["tries"] == 1
    assert {e["event"] for e in journal(run)} == {"started", "again", "ended"}
    assert "waiting   the limit of your account is used up until" in run.out


def test_a_limit_that_is_not_back_soon_ends_the_run(odd):
    odd.make("LIMIT", "WARN")
    limited = odd.write("limited", "90000")
    run = odd.run("--jobs", "1")
    assert run.code == 3 and not run.attempts(), run.out
    assert "used up until" in run.out and "--resume goes on then" in run.out
    limited.unlink()
    again = odd.run("--resume", str(run.dir))
    assert again.code == 0 and len(again.attempts()) == 2, again.out


def test_prices_that_nobody_says(odd):
    """A budget counts what has no price as the average of the rest; "$?" says that it has none."""
    odd.make("WARN", "ODD", "HANGS")
    run = odd.run("--jobs", "1", "--max-usd", "0.5")
    assert len(run.attempts()) == 2 and "the money for the run is spent" in run.out, run.out
    usd = [e["usd"] for e in journal(run) if e["event"] == "ended"]
    assert usd == [0.25, 0.25]
    odd.make("SILENT", "WARN")
    run = odd.run("--jobs", "1")
    assert "$?" in run.out
    assert [json.dumps(e["usd"]) for e in journal(run) if e["event"] == "ended"] == ["null", "0.25"]


def test_other_models_and_clients(odd):
    """Configurations differ in both, side by side in one run."""
    agent = {"command": ["touch", "done"]}
    configurations = {"own": {}, "opus": {"model": "opus"}, "other": {"harness": "command"}}
    odd.cases({"id": "x", "prompt": "WARN", "graders": [DONE]}, agent=agent,
                    configurations=configurations)  # fmt: skip
    run = odd.run()
    assert run.code == 0 and "          opus: claude, opus\n" in run.out, run.out
    for name, words in (("own", "sonnet"), ("opus", "opus"), ("other", "touch")):
        plan = run.json(f"eval-x/{name}/run-1/plan.json")
        assert words in plan["argv"], plan["argv"]
