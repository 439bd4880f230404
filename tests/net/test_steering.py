"""A box that runs is asked and steered: what is shown can be answered, and what is said holds."""

import json
import os
import signal
import subprocess

import lib
from test_broker_faults import broker_of

WAITS = "while :; do sleep 1; done"

# One connection, and when it has been denied meanwhile the same again.
TALK = """
import os, socket, time

def said(s):
    s.sendall(b"x")
    return s.recv(1)

one = socket.create_connection(("echo.example.org", 80), 20)
open("first", "wb").write(said(one))
for _ in range(2000):
    if os.path.exists("denied"):
        break
    time.sleep(0.01)
open("second", "wb").write(said(one))
try:
    third = said(socket.create_connection(one.getpeername()[:2], 20))
except OSError:
    third = b"reset"
open("third.new", "wb").write(third)
os.rename("third.new", "third")
time.sleep(60)
"""


def start(lab, name, *opts, cmd=WAITS, env=None):
    """A box that runs until the end of the test."""
    process = lab.start(["run", "-y", "--name", name, *opts, "--", "sh", "-c", cmd],
                        stderr=subprocess.PIPE, env=env)  # fmt: skip
    lib.wait_for(lambda: status(lab, name), "the box")
    return process


def status(lab, name):
    """What `carrel ps` has of it, when the box itself has answered."""
    rows = json.loads(lib.succeeded(lab.run(["ps", "--json"])))
    return next((row for row in rows if row["name"] == name and row["network"]), None)


def test_the_question_about_an_ipv6_address_can_be_answered_as_it_stands(lab):
    there = "[2606:2800:220::36]:80"
    lab.http("2606:2800:220::36", 80)
    curl = f"curl -sS -m 30 http://{there}/ > answer"
    start(lab, "asker", "--network", "allow", "--ask", cmd=f"{curl}; {WAITS}")
    lib.wait_for(lambda: status(lab, "asker")["waiting"] == [there], "the question")
    shown = lib.succeeded(lab.run(["ps"])).decode()
    assert f"carrel allow asker {there}\n" in shown
    lib.succeeded(lab.run(["allow", "asker", there]))
    lib.wait_for(lambda: status(lab, "asker")["waiting"] == [], "the answer")
    lib.wait_for(lambda: lab.heard("http", path="/"), "the request")


def test_a_later_denial_is_for_new_connections(lab):
    def echo(connection, entry):
        while got := connection.recv(100):
            connection.sendall(got)

    lab.dns({"echo.example.org": ["93.184.216.35"]})
    lab.tcp("93.184.216.35", 80, echo)

    script = lib.make_file(lib.current.cwd / "talk.py", TALK)
    start(lab, "talker", "--allow", "echo.example.org", cmd=f"exec {lib.PYTHON} {script}")
    here = script.parent
    lib.wait_for((here / "first").exists, "the first echo")
    lib.succeeded(lab.run(["allow", "talker", "echo.example.org", "--deny"]))
    lib.make_file(here / "denied")
    lib.wait_for((here / "third").exists, "the second connection")
    assert (here / "second").read_bytes() == b"x"
    assert (here / "third").read_bytes() == b"reset"
    assert len(lab.heard("tcp", port=80)) == 1
    for entry in ("Echo.example.org", "echo.example.org:22"):
        lib.failed_clearly(lab.run(["allow", "talker", entry]), entry, "a denial wins")
    lib.succeeded(lab.run(["allow", "talker", "*.example.org"]))


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


def test_a_box_that_lost_its_network_says_so(lab):
    """To whoever asks it for a port or a host; and there is no port any more."""
    process = start(lab, "lost", "--network", "allow", "--port", "7020:80")
    lib.succeeded(lab.run(["port", "lost", "7021:80"]))
    row = status(lab, "lost")
    assert row["ports"] == ["7020:80", "7021:80"] and not row["lost"], row
    os.kill(broker_of(process), signal.SIGKILL)
    lib.wait_for(lambda: b"lost" in lab.run(["events", "lost", "--json"]).stdout, "the record")
    row = status(lab, "lost")
    assert row["ports"] == [] and row["lost"], row
    assert b"its network has ended" in lib.succeeded(lab.run(["ps"]))
    for args in (["port", "lost", "7022:80"], ["port", "lost", "7021", "--remove"]):
        lib.failed_clearly(lab.run(args), "its network has ended")
    lib.failed_clearly(lab.run(["allow", "lost", "a.example"]), "its network has ended")
    assert lab.bare(["bash", "-c", "echo >/dev/tcp/127.0.0.1/7021"]).returncode == 1
