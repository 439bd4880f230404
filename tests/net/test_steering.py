"""A box that runs is asked and steered: what is shown can be answered, and what is said holds."""

import json
import subprocess

import lib

WAITS = "while :; do sleep 1; done"


def start(lab, name, *opts, cmd=WAITS):
    """A box that runs until the end of the test."""
    process = lab.start(["run", "-y", "--name", name, *opts, "--", "sh", "-c", cmd],
                        stderr=subprocess.PIPE)  # fmt: skip
    lib.wait_for(lambda: status(lab, name), "the box")
    return process


def status(lab, name):
    """What `carrel ps` has of it, when the box itself has answered."""
    rows = json.loads(lib.succeeded(lab.run(["ps", "--json"])))
    return next((row for row in rows if row["name"] == name and row["network"]), None)


def test_the_question_about_an_ipv6_address_can_be_answered_as_it_stands(lab):
    there = "[2606:2800:220::34]:80"
    lab.http("2606:2800:220::34", 80)
    curl = f"curl -sS -m 30 http://{there}/ > answer"
    start(lab, "asker", "--network", "allow", "--ask", cmd=f"{curl}; {WAITS}")
    lib.wait_for(lambda: status(lab, "asker")["waiting"] == [there], "the question")
    shown = lib.succeeded(lab.run(["ps"])).decode()
    assert f"carrel allow asker {there}\n" in shown
    lib.succeeded(lab.run(["allow", "asker", there]))
    lib.wait_for(lambda: status(lab, "asker")["waiting"] == [], "the answer")
    lib.wait_for(lambda: lab.heard("http", path="/"), "the request")


def test_presets_of_the_machine_are_for_running_boxes_too(lab):
    lib.make_file(lib.current.home / ".npmrc", "registry=https://packages.example.org/\n")
    start(lab, "late", "--network", "allow")
    lib.succeeded(lab.run(["allow", "late", "@npm"]))
    lib.failed_clearly(lab.run(["allow", "late", "@npmm"]), "@npm", "@npmm")


def test_no_rule_is_dropped_in_silence(lab):
    many = [word for i in range(1023) for word in ("--allow", f"h{i}.example")]
    start(lab, "full", *many)
    lib.succeeded(lab.run(["allow", "full", "last.example"]))
    done = lab.run(["allow", "full", "h1.example", "--deny"])
    lib.failed_clearly(done, "h1.example", "1024 rules")
