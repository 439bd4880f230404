"""What a box leaves in a project does nothing to the user who goes on working there, or is reported.

The corpus has the attacks that once got through, as short as they can be; each is done without a box
as well, where the tripwire must be tripped. Random ones come after it: CARREL_TRIPWIRE_SEED and
CARREL_TRIPWIRE_ROUNDS say which and how many. An alarm that carrel did not report is printed as an
entry for the corpus.
"""

import json
import os
import pathlib

import hostile
import hunt
import lib
import pytest
import rig
import shapes

CORPUS = sorted((pathlib.Path(__file__).parent / "corpus").glob("*.json"))
SEED = int(os.environ.get("CARREL_TRIPWIRE_SEED", "1"))
ROUNDS = int(os.environ.get("CARREL_TRIPWIRE_ROUNDS", "24"))
TRACED = 6  # one in so many rounds is traced
BATCH = 12


@pytest.fixture(autouse=True, scope="module")
def projects():
    yield
    lib.remove(shapes.top())


def told(alarm, command, small):
    entry = {"shape": small.shape, "commands": [command], "runs": small.runs}
    return f"{alarm.kind} {alarm.what} by {command}: {json.dumps(entry)}; carrel said {small.said}"


def check(result):
    missed = [told(*found) for found in hunt.unreported(result)]
    assert not missed, "\n".join(missed)


# ---- the tripwire itself ----------------------------------------------------------------------


@pytest.mark.parametrize("name", shapes.NAMES)
def test_an_untouched_project_raises_no_alarm(name):
    """The user's commands alone write nothing outside, and run what they run each time."""
    (ran, wrote), alarms = rig.clean(name, tuple(rig.GIT_COMMANDS))
    assert not alarms
    assert ("/usr/bin/git", "") in ran and any(str(shapes.project()) in path for path in wrote)


def test_strace_sees_what_the_marks_do_not():
    """A program that leaves no mark, and a file that lies outside of the home, are alarms too."""
    made = shapes.top() / "made-outside"
    hook = f"#!/bin/sh\nexpr 1 >{made}\n"
    ops = [["put", ".git/hooks/post-commit", hook, "755"]]
    commands = ["git commit --allow-empty -m x"]
    result = rig.play("plain", [ops], commands, boxed=False, traced=True)
    seen = {(alarm.kind, alarm.what) for alarm in result.alarms}
    assert {("executed", "/usr/bin/expr"), ("opened", str(made))} <= seen
    assert not rig.play("plain", [ops], commands, traced=True).alarms


# ---- attacks ----------------------------------------------------------------------------------


def read(path):
    entry = json.loads(path.read_text())
    return entry["shape"], entry["runs"], entry["commands"]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path):
    name, runs, commands = read(path)
    check(rig.play(name, runs, commands, traced=True))
    control = rig.play(name, runs, commands, boxed=False)
    assert control.alarms, "without a box it does nothing either"


@pytest.mark.parametrize("first", range(SEED, SEED + ROUNDS, BATCH))
def test_random(first):
    for seed in range(first, min(first + BATCH, SEED + ROUNDS)):
        name, runs, commands = hostile.attack(seed)
        check(rig.play(name, runs, commands, traced=seed % TRACED == 0))


def test_random_attacks_without_a_box():
    """The same attacks do harm where nothing stops them."""
    alarms = 0
    for seed in range(SEED, SEED + 60):
        name, runs, commands = hostile.attack(seed)
        alarms += bool(rig.play(name, runs, commands, boxed=False).alarms)
        if alarms == 2:
            return
    raise AssertionError(f"{alarms} of 60 attacks without a box raised an alarm")
