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


def test_what_is_denied_is_not_asked_about(lab):
    """Nobody is made to say yes by being asked often enough; what is only unlisted is asked."""
    denied, unlisted = "[2606:2800:220::46]", "[2606:2800:220::47]"
    for address in (denied, unlisted):
        lab.http(address.strip("[]"), 80)
    script = f"curl -m 30 http://{denied}/; curl -m 30 http://{unlisted}/; true"
    opts = ["--name", "both", "--network", "allow", "--ask", "--deny", denied]
    run = ["run", "-y", *opts, "--", "sh", "-c", script]
    lib.succeeded(lab.run(run, env={"CARREL_TEST_ASK": "1"}))
    lines = lib.succeeded(lab.run(["events", "both", "--json"])).splitlines()
    asked = [line for line in lines if json.loads(line)["event"] == "held"]
    assert len(asked) == 1 and unlisted.strip("[]").encode() in asked[0], lines
    assert not lab.heard("http")


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


def test_what_a_wider_denial_covers_is_not_called_allowed(lab):
    start(lab, "wide", "--network", "allow", "--deny", "*.example.org", "--deny", "10.0.0.0/8")
    for entry in ("*.example.org", "*.a.example.org", "10.1.0.0/16"):
        lib.failed_clearly(lab.run(["allow", "wide", entry]), entry, "a denial wins")
    for entry in ("example.org", "*.org", "10.0.0.0/7"):
        lib.succeeded(lab.run(["allow", "wide", entry]))


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


def test_an_entry_that_is_there_twice_is_there_once(lab):
    """Whoever said it first: the room for rules is for different ones."""
    many = [word for i in range(1023) for word in ("--allow", f"h{i}.example")]
    start(lab, "twice", *many)
    for entry in ("h7.example", "last.example", "LAST.example", "h7.example"):
        lib.succeeded(lab.run(["allow", "twice", entry]))
    done = lab.run(["allow", "twice", "one.more.example"])
    lib.failed_clearly(done, "one.more.example", "1024 rules")


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


READS = f'exec {lib.PYTHON} -c "import sys; sys.stdin.readline()"'


def test_a_broker_that_does_not_end_is_told_of(lab):
    """What it would have said is missing: the record and the user know that."""
    process = start(lab, "slow", "--network", "allow", "--port", "7025:80", cmd=READS)
    os.kill(broker_of(process), signal.SIGSTOP)
    _, said = process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert process.returncode == 0 and b"time for the broker to end" in said, said
    record = [json.loads(line) for line in lab.run(["events", "slow", "--json"]).stdout.splitlines()]
    assert [e.get("limit") for e in record[-2:]] == ["time for the broker to end", None]
    assert record[-1]["event"] == "end"
    quick = start(lab, "quick", "--network", "allow", "--port", "7026:80", cmd=READS)
    assert b"time for" not in quick.communicate(b"\n", timeout=lib.TIMEOUT)[1], "the control"


MANY = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for to in [("127.0.0.1", 9)] * 3000 + [("93.184.217.9", 9)] * 2:
    try:
        s.sendto(b"x" * 600, to)
    except OSError:
        pass  # the refusal of the one before
print("sent", flush=True)
sys.stdin.readline()
"""


def test_refusals_that_nobody_could_hear_are_told_of(lab):
    """The kernel keeps a few hundred. One that a box hides behind many to itself is among those
    that the record says there were."""
    program = lib.make_file(lib.current.cwd / "many.py", "import sys; sys.stdin.readline()" + MANY)
    process = start(lab, "many", "--network", "open", "--port", "7027:80",
                    cmd=f"exec {lib.PYTHON} {program}")  # fmt: skip
    broker = broker_of(process)
    os.kill(broker, signal.SIGSTOP)
    process.stdin.write(b"\n")
    lib.read_until(process.stdout, b"sent")
    os.kill(broker, signal.SIGCONT)
    process.communicate(b"\n", timeout=lib.TIMEOUT)
    record = [json.loads(line) for line in lab.run(["events", "many", "--json"]).stdout.splitlines()]
    assert "datagram" not in [e["event"] for e in record], "the control: there was no room for it"
    assert [e["limit"] for e in record if e["event"] == "limit"] == ["refused datagrams a second"]


POUR = """
import socket, sys
s = socket.create_connection(("pour.example.org", 80), 20)
s.sendall(b"x" * 1000)
left = 3_000_000
while left:
    left -= len(s.recv(65536))
print("there", flush=True)
sys.stdin.readline()
"""


def test_bytes_are_counted_while_they_flow(lab):
    """Of a connection that goes on, too; and all of them stand in the last line of the record."""

    def pour(connection, _):
        connection.sendall(b"y" * 3_000_000)
        connection.recv(5000)
        connection.recv(5000)

    lab.dns({"pour.example.org": ["93.184.216.36"]})
    lab.tcp("93.184.216.36", 80, pour)
    program = lib.make_file(lib.current.cwd / "pour.py", POUR)
    process = start(lab, "pours", "--allow", "pour.example.org", cmd=f"exec {lib.PYTHON} {program}")
    lib.read_until(process.stdout, b"there")

    def counted():
        row = status(lab, "pours")
        return row["connections"] == 1 and (row["sent"], row["received"]) == (1000, 3_000_000)

    lib.wait_for(counted, "the bytes")
    process.communicate(b"\n", timeout=lib.TIMEOUT)
    last = json.loads(lab.run(["events", "pours", "--json"]).stdout.splitlines()[-1])
    assert (last["event"], last["sent"], last["received"]) == ("end", 1000, 3_000_000)


QUESTIONS = r"""
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
for labels in ([b"127", b"1"], [b"\x1b[31m", b"org"], [], [b"known", b"example"], [b"new", b"example"]):
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    s.sendto(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1), ("198.18.0.1", 53))
    s.recv(1000)
"""


def test_every_lookup_is_recorded(lab):
    """Also what is no host name, by which something could be meant; and what waits is not called
    allowed."""
    lab.dns({"known.example": ["93.184.216.36"]})
    opts = ["--name", "asks", "--allow", "known.example", "--ask"]
    lib.succeeded(lab.run(["run", "-y", *opts, "--", lib.PYTHON, "-c", QUESTIONS]))
    lines = lab.run(["events", "asks", "--json"]).stdout.splitlines()
    found = [e for e in map(json.loads, lines) if e["event"] == "lookup"]
    nameless = (None, "refused", "not a host name")
    assert [(e.get("name"), e["verdict"], e["reason"]) for e in found] == [
        nameless, nameless, nameless, ("known.example", "allowed", "allowed"),
        ("new.example", "held", "not in the list")]  # fmt: skip
    assert all(e["ms"] >= 0 for e in found)
    assert {e.name for e in lab.heard("dns")} == {"known.example"}
