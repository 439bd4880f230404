"""carrel race: several boxes on one task, each on its own copy, checked and compared."""

import json
import os
import signal

import lib
import pytest

# Each box knows its number by its host name, which is the box's name.
TASK = """
n=${HOSTNAME##*-}
case $n in
1) printf 'good\\nand\\nmore\\n' >answer;;
2) echo bad >answer;;
3) echo good >answer;;
4) echo good >answer; exit 7;;
esac
"""
CHECK = "grep -q good answer; code=$?; touch junk; exit $code"


def race(*opts, script=TASK, count="4", project, **how):
    return lib.carrel("race", "-y", "-n", count, *opts, "--", "bash", "-c", script, cwd=project, **how)


def boxes():
    return lib.current.home / ".local/state/carrel/boxes"


def test_the_table(project):
    before = lib.snapshot(project)
    done = race("--check", CHECK, project=project)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["#", "box", "ended", "check", "time", "change"]
    assert rows[1][1:4] == ["race-1", "ok", "pass"] and rows[1][5:] == ["1", "file", "+3", "-0"]
    assert rows[2][1:4] == ["race-2", "ok", "fail"]
    assert rows[3][1:4] == ["race-3", "ok", "pass"] and rows[3][-1] == "best"
    assert rows[4][1:5] == ["race-4", "exit", "7", "pass"]
    assert lib.snapshot(project) == before
    assert b"carrel apply race-3" in done.stderr
    assert b"race-2 ended: ok" in done.stderr and b"race-2 checked: fail" in done.stderr


def test_json_and_the_best_is_applied(project):
    done = race("--check", CHECK, "--json", "--apply", "best", "--name", "run", project=project)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["best"] == "run-3"
    assert [box["code"] for box in told["boxes"]] == [0, 0, 0, 7]
    assert [box["check"] for box in told["boxes"]] == [0, 1, 0, 0]
    assert (project / "answer").read_text() == "good\n"
    assert not (project / "junk").exists(), "what a check writes is dropped"
    assert sorted(path.name for path in boxes().iterdir()) == [f"run-{n}" for n in range(1, 5)]


def test_none_is_good(project):
    done = race("--check", "false", count="2", project=project)
    assert done.returncode == 1 and b"no box changed something and passed" in done.stderr
    done = race("--name", "idle", script="true", count="2", project=project)
    assert done.returncode == 1 and b"nothing" in done.stdout


def test_the_check_has_no_network_and_sees_the_copy(project):
    lib.make_file(project / "here", "host\n")
    check = "cat here; cat /proc/net/route | wc -l; ls -A"
    done = race("--check", check, script="echo box >here; rm .gitignore", count="1", project=project)
    assert done.returncode == 0, done.stderr
    log = (boxes() / "race-1/check.log").read_text()
    assert log.startswith("box\n1\n") and ".gitignore" not in log
    assert (project / "here").read_text() == "host\n"


def test_what_a_box_says_is_kept(project):
    done = race(script="echo said; echo more >&2; exit 3", count="1", project=project)
    assert done.returncode == 1 and b"what race-1 said is in" in done.stderr
    assert (boxes() / "race-1/output.log").read_text().startswith("said\nmore\n")


def test_names_that_are_taken(project):
    assert race(script="echo 1 >x", count="1", project=project).returncode == 0
    done = race(script="echo 1 >x", count="2", project=project)
    assert done.returncode == 125 and b"'race-1' holds changes" in done.stderr


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all(project, sig):
    word = f"3{os.getpid()}"
    process = lib.start("race", "-y", "-n", "3", "--", "sleep", word, cwd=project)
    lib.wait_for(lambda: len(lib.processes(f"sleep\0{word}")) >= 3 or len(
        [p for p in lib.processes(word)]) >= 6, "all boxes")  # fmt: skip
    process.send_signal(sig)
    _, told = process.communicate(timeout=lib.TIMEOUT)
    assert process.returncode == 130 and b"interrupted" in told
    lib.wait_for(lambda: not lib.processes(word), "their end")


def test_a_terminal_shows_what_runs(project):
    """A line that is drawn anew; and Ctrl-C ends all."""
    argv = [lib.program(), "race", "-y", "-n", "2", "--", "sleep", "600"]
    child = lib.terminal(argv, cwd=project)
    child.expect("race-1 started")
    child.expect(r"\r  race-1 0:\d\d  race-2 0:\d\d\x1b\[K")
    child.sendintr()
    child.expect("interrupted")
    assert lib.finish(child) == 130


def test_killed_it_leaves_no_box(project):
    word = f"4{os.getpid()}"
    process = lib.start("race", "-y", "-n", "2", "--", "sleep", word, cwd=project)
    lib.wait_for(lambda: len(lib.processes(word)) >= 5, "both boxes")
    process.kill()
    lib.wait_for(lambda: not [p for p in lib.processes(word) if p != process.pid], "their end")


def test_wrong_words(project):
    for words in (["-n", "0"], ["-n", "x"], ["-n", "65"], ["--apply", "all"]):
        done = lib.carrel("race", "-y", *words, "--", "true", cwd=project)
        assert done.returncode == 125, words
    assert b"needs an agent" in lib.carrel("race", "-y", cwd=project).stderr
    done = lib.carrel("race", "--", "true", cwd=project)
    assert done.returncode == 125 and b"-y" in done.stderr


# ---- a command on top of what a box has left --------------------------------------------


def test_over_a_box(project):
    lib.box("sh", "-c", "echo box >f; rm -r src", opts=("--overlay", "--name", "a"), cwd=project)
    done = lib.box("sh", "-c", "cat f; ls; echo x >y; rm f", opts=("--over", "a"), cwd=project)
    assert done.stdout == b"box\nf\n"
    done = lib.box("cat", "f", opts=("--over", "a"), cwd=project)
    assert done.stdout == b"box\n", "what the command changed was dropped"
    assert (project / "src").is_dir() and not (project / "f").exists()


def test_over_a_box_that_cannot_be_had(project, place):
    done = lib.box("true", opts=("--over", "nobody"), cwd=project)
    assert done.returncode == 125 and b"nobody" in done.stderr
    other = lib.make_dir(place / "other")
    lib.box("sh", "-c", "echo 1 >f", opts=("--overlay", "--name", "b"), cwd=other)
    done = lib.box("true", opts=("--over", "b"), cwd=project)
    assert done.returncode == 125 and b"a copy of" in done.stderr
    lib.start_box("sh", "-c", "echo go; sleep 60", opts=("--overlay", "--name", "c"), cwd=project)
    lib.read_until(lib.started[-1].stdout, b"go\n")
    done = lib.box("true", opts=("--over", "c"), cwd=project)
    assert done.returncode == 125 and b"which runs" in done.stderr
