"""ps, events, allow and port: how a running box is seen and steered from outside.

A box that can be asked is here a small server in its place, as the test user: it holds the
lock of a name and answers on the socket beside it. What a real box answers is tested below.
"""

import json
import os
import socket
import subprocess
import time

import lib
import pytest

SERVER = """
import fcntl, json, os, socket, sys
name, *replies = sys.argv[1:]
top = os.environ["XDG_RUNTIME_DIR"] + "/carrel"
os.makedirs(top, mode=0o700, exist_ok=True)
lock = open(f"{top}/{name}.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
path = f"{top}/{name}.sock"
if replies:
    if os.path.lexists(path):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
print("up", flush=True)
if not replies:
    sys.stdin.read()
for reply in replies:
    client, _ = server.accept()
    print(client.recv(65536).decode(), flush=True)
    client.send(reply.encode())
    client.close()
sys.stdin.read()
"""


class Server:
    """A name that is held, and answers as many requests as it has replies."""

    def __init__(self, name, *replies):
        self.name = name
        argv = [lib.PYTHON, "-c", SERVER, name, *(json.dumps(reply) for reply in replies)]
        self.process = subprocess.Popen(
            lib.as_user(argv), env=lib.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)  # fmt: skip
        lib.started.append(self.process)
        assert self.process.stdout.readline() == b"up\n"

    def asked(self):
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=lib.TIMEOUT)
        self.process.stdin.close()
        self.process.stdout.close()


OK = {"ok": True}


def output(*args, **how):
    return lib.succeeded(lib.carrel(*args, **how)).decode()


def listed():
    return {box["name"]: box for box in json.loads(output("ps", "--json"))}


# ---- ps ---------------------------------------------------------------------------------


def test_ps_of_nothing():
    done = lib.carrel("ps")
    assert lib.succeeded(done) == b"" and b"no box runs; `carrel ps -a`" in done.stderr
    assert json.loads(output("ps", "--json")) == []
    done = lib.carrel("ps", env={"XDG_RUNTIME_DIR": None})
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"XDG_RUNTIME_DIR" in done.stderr


def test_ps_shows_what_boxes_say(home):
    status = {"agent": "re\x1b[31mview", "project": "/p", "pid": 4711, "network": "allow",
              "since": int(time.time()) - 7300, "connections": 3, "lost": True,
              "sent": 100, "received": 2048, "state": "running", "viewers": 2,
              "cpu": None, "cpu_seconds": None, "memory": None,
              "ports": ["8080:80"], "waiting": ["new.example:443"],
              "reaches": ["@github", "b.example"]}  # fmt: skip
    reply = {"ok": True, "status": status}
    one, two = Server("one", reply, reply), Server("two")
    found = listed()
    runs = {"running": True, "code": None, "ended": None, "changes": None, "limits": []}
    assert found["one"] == {"name": "one", **status, **runs}
    assert found["two"] == {"name": "two", "pid": two.process.pid, "agent": None,
                            "project": None, "network": None, "since": None,
                            "connections": None, "sent": None, "received": None,
                            "state": None, "viewers": None,
                            "cpu": None, "cpu_seconds": None, "memory": None,
                            "lost": False, "ports": [], "waiting": [], "reaches": [], **runs}  # fmt: skip
    text = output("ps")
    assert "\x1b" not in text
    head, first, lost, port, waits, second, silent = text.splitlines()
    assert head.split() == ["NAME", "AGENT", "PROJECT", "STATE", "AGE", "CPU", "MEM", "NET"]
    assert first.split() == ["one", "re\\x1b[31mview", "p", "running", "2h1m", "n/a", "n/a", "lost"]
    assert "network has ended" in lost and port.strip() == "127.0.0.1:8080 leads to port 80 of the box"
    assert "carrel allow one new.example:443" in waits
    assert second.split() == ["two", "-", "-", "silent", "-", "n/a", "n/a", "-"]
    assert "does not answer" in silent
    one.stop()
    two.stop()
    assert listed() == {}  # their files are still there


def test_ps_says_what_the_network_is(home):
    """What is held comes first; then what the box was given, as it was written; then the mode."""
    given = {"project": "/a/shop", "network": "allow", "since": 1, "pid": 4711, "waiting": []}
    cases = [
        ({"reaches": ["@anthropic"], "waiting": ["crates.io:443"]}, "1 held: crates.io:443"),
        ({"reaches": ["@anthropic"]}, "@anthropic"),
        ({"reaches": ["a.example", "b.example", "\x1b[2J"]}, "a.example +2"),
        ({"reaches": ["\x1b[2J"]}, "\\x1b[2J"),
        ({"reaches": ["a.example"], "network": "open"}, "open"),
        ({"network": "none"}, "none"),
        ({"network": None}, "-"),
    ]
    box = Server("shop", *[{"ok": True, "status": given | more} for more, _ in cases])
    for _, words in cases:
        assert output("ps").splitlines()[1].endswith("  " + words)
    box.stop()


def test_ps_in_a_narrow_terminal(home):
    """If a row does not fit, its last column has a line of its own."""
    status = {"agent": "claude", "project": "/where/" + "long-name-" * 3, "network": "allow",
              "since": int(time.time()) - 90, "pid": 1, "waiting": ["registry.example.org:443"]}
    box = Server("carrel-shop", *[{"ok": True, "status": status}] * 2)
    for columns, rows in ((80, 4), (160, 3)):
        child = lib.terminal([lib.program(), "ps"], size=(24, columns))
        assert lib.finish(child) == 0
        lines = child.before.decode().splitlines()
        assert len(lines) == rows and max(map(len, lines[:-1])) <= columns, lines
        assert lines[0].endswith("NET") is (rows == 3)
    box.stop()


def test_ps_of_a_project_that_is_not_utf8(home):
    status = {"project": os.fsdecode(b"/caf\xe9"), "network": "allow", "waiting": ["a.example:443"]}
    box = Server("box", *[{"ok": True, "status": status}] * 2)
    found = listed()["box"]
    assert {key: found[key] for key in status} == status
    row, waits = output("ps").splitlines()[1:]
    assert row.split()[2] == "caf\\xe9" and "a.example:443" in waits
    box.stop()


@pytest.mark.parametrize("network, count", [("none", 0), ("host", None)])
def test_ps_of_a_box_whose_traffic_is_not_counted(project, network, count):
    box = lib.start_box("sh", "-c", "echo ready; cat", opts=["--name", "box", "--network", network])
    lib.read_until(box.stdout, b"ready")
    found = listed()["box"]
    shown = output("ps").splitlines()[1].split()
    box.communicate(timeout=lib.TIMEOUT)
    assert found["network"] == shown[-1] == network
    assert [found[key] for key in ("connections", "sent", "received")] == [count] * 3


def test_a_box_that_does_not_answer_is_listed(home):
    silent = Server("silent", OK)
    silent.process.send_signal(19)
    begun = time.monotonic()
    assert "silent" in listed()
    assert time.monotonic() - begun < 5
    silent.process.send_signal(18)
    silent.stop()


# ---- allow, port ------------------------------------------------------------------------


def test_allow_asks_the_box(home):
    box = Server("box", OK, OK, {"ok": False, "error": "no \x1b[2J", "fix": "Do it."})
    assert output("allow", "box", "a.example:22") == "a.example:22 is allowed in box\n"
    assert box.asked() == {"ask": "decide", "entry": "a.example:22", "deny": False}
    assert output("allow", "--deny", "box", "a.example") == "a.example is denied in box\n"
    assert box.asked() == {"ask": "decide", "entry": "a.example", "deny": True}
    done = lib.carrel("allow", "box", "--always", "b.example")
    lib.failed_clearly(done, "no \\x1b[2J", "Do it.")
    assert not (home / ".config/carrel/allow").exists()  # the box said no
    box.stop()


def test_port_asks_the_box():
    box = Server("box", OK, OK)
    assert output("port", "box", "8080:80") == "port 8080:80 of box is open\n"
    assert box.asked() == {"ask": "port", "spec": "8080:80", "remove": False}
    assert output("port", "box", "8080:80", "--remove") == "port 8080:80 of box is closed\n"
    assert box.asked() == {"ask": "port", "spec": "8080:80", "remove": True}
    box.stop()


def always(*entries):
    box = Server("box", *[OK] * len(entries))
    said = [output("allow", "box", "--always", *entry.split()) for entry in entries]
    box.stop()
    return said


def test_always_keeps_the_rest_of_the_file(home):
    path = home / ".config/carrel/allow"
    always("a.example")
    assert path.read_text() == "a.example\n"
    assert path.stat().st_mode & 0o777 == 0o600
    kept = "# mine\n\n  a.example   # why\n!b.example\nc.example:22"
    lib.make_file(path, kept)
    assert "was already" in always("A.Example.")[0]
    assert path.read_text() == kept
    always("--deny d.example")
    assert path.read_text() == kept + "\n!d.example:*\n"
    # The contrary of the same entry goes; another port is another entry.
    always("--deny c.example:22", "c.example:23")
    assert path.read_text() == (
        "# mine\n\n  a.example   # why\n!b.example\n!d.example:*\n!c.example:22\nc.example:23\n"
    )
    # Without a port, too, although a denial then means all of them.
    always("B.example", "d.example")
    assert path.read_text() == (
        "# mine\n\n  a.example   # why\n!c.example:22\nc.example:23\nb.example\nd.example\n"
    )
    always("--deny d.example")
    assert path.read_text().endswith("\nb.example\n!d.example:*\n")


def test_always_with_a_line_that_stops_starts(home):
    path = home / ".config/carrel/allow"
    text = "a.example\n\na b.example\n"
    lib.make_file(path, text)
    box = Server("box", OK, OK, OK)
    for entry in "b.example", "a.example":  # one is there already
        done = lib.carrel("allow", "box", "--always", entry)
        assert done.returncode == 125
        assert done.stdout.decode() == f"{entry} is allowed in box\n"
        assert f"carrel: {path}:3: 'a b.example' " in done.stderr.decode()
        assert path.read_text() == text
    start = lib.carrel("plan", "--allow", "b.example", "--", "true")
    assert start.stderr == done.stderr
    # Its contrary takes out what nobody understands.
    lib.make_file(path, "*\n")
    assert "now in all boxes" in output("allow", "box", "--always", "--deny", "*")
    assert path.read_text() == "!*:*\n"
    box.stop()


def test_always_follows_no_link(home, place):
    victim = lib.make_file(place / "victim", "a.example\n")
    lib.make_file(home / ".config/carrel/x")
    os.symlink(victim, home / ".config/carrel/allow")
    box = Server("box", OK)
    lib.failed_clearly(lib.carrel("allow", "box", "--always", "b.example"), "is a link")
    box.stop()
    assert victim.read_text() == "a.example\n"


def test_always_at_the_same_time(home):
    box = Server("box", *[OK] * 20)
    running = [lib.start("allow", "box", "--always", f"h{i}.example") for i in range(20)]
    for process in running:
        assert process.wait(timeout=lib.TIMEOUT) == 0
    box.stop()
    lines = (home / ".config/carrel/allow").read_text().splitlines()
    assert sorted(lines) == sorted(f"h{i}.example" for i in range(20))


@pytest.mark.parametrize(
    "args, said",
    [
        (["allow"], ["the name of a box"]),
        (["allow", "box"], ["needs ENTRY after the name"]),
        (["port", "box"], ["needs [HOST:]PORT after the name"]),
        (["allow", "box", "a", "b"], ["'b'"]),
        (["allow", "nobody", "a.example"], ["no box named 'nobody'", "carrel ps"]),
        (["port", "nobody", "80"], ["no box named 'nobody'"]),
        (["allow", "../x", "a.example"], ["cannot be named"]),
        (["events", "a", "b"], ["'b'"]),
        (["events", "nobody"], ["no record", "'nobody'"]),
        (["events", "\x1b"], ["cannot be named '\\x1b'"]),
    ],
)
def test_mistakes_are_named(args, said):
    lib.failed_clearly(lib.carrel(*args), *said)


def test_a_left_over_socket_is_nobody():
    box = Server("box", OK)
    box.stop()
    assert (lib.runtime() / "carrel/box.sock").is_socket()
    lib.failed_clearly(lib.carrel("allow", "box", "a.example"), "no box named 'box'")


@pytest.mark.parametrize("args", [["allow", "box", "a.example"], ["port", "box", "80"]], ids=["allow", "port"])
def test_a_box_of_another_runtime_directory(place, args):
    """It runs, and nothing here can know that."""
    box = Server("box", OK)
    other = lib.make_dir(place / "other", mode=0o700)
    lib.failed_clearly(
        lib.carrel(*args, env={"XDG_RUNTIME_DIR": str(other)}),
        "no box named 'box' can be found", "carrel ps", "started with the same XDG_RUNTIME_DIR")  # fmt: skip
    lib.failed_clearly(
        lib.carrel(*args, env={"XDG_RUNTIME_DIR": None}),
        "no box named 'box' can be found", "XDG_RUNTIME_DIR is not set")  # fmt: skip
    lib.succeeded(lib.carrel(*args))
    box.stop()


# ---- another version on the other side --------------------------------------------------


def test_an_older_supervisor_is_understood(home):
    """The first version: its status has less, and it knows neither -d nor exec."""
    status = {"version": 1, "pid": 4711, "agent": "claude", "project": "/p", "network": "allow",
              "since": int(time.time()) - 60, "connections": 0, "waiting": []}  # fmt: skip
    no = {"ok": False, "error": "this box does not know what is asked"}
    box = Server("old", *[{"ok": True, "status": status}] * 2, *[no] * 5)
    row = listed()["old"]
    assert (row["agent"], row["network"], row["state"], row["reaches"]) == ("claude", "allow", None, [])
    assert output("ps").splitlines()[1].split()[:4] == ["old", "claude", "p", "running"]
    for words in (["stop", "old"], ["restart", "old"], ["send", "old", "x"], ["exec", "old", "true"],
                  ["port", "old", "3000"]):  # fmt: skip
        lib.failed_clearly(lib.carrel(*words), "does not know")
    box.stop()


RAW = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["XDG_RUNTIME_DIR"] + "/carrel/box.sock")
for request in sys.argv[1:]:
    s.send(request.encode())
    print(s.recv(1 << 17).decode())
"""


def test_a_newer_client_is_understood(project):
    """What is not known of a request is left alone; an unknown request is refused, in words."""
    box = lib.start_box("sh", "-c", "echo ready; cat", opts=["--name", "box"])
    lib.read_until(box.stdout, b"ready")
    requests = ({"ask": "status", "version": 9, "more": [{"x": 1}]}, {"ask": "dance"},
                {"ask": "stop", "seconds": 0, "gently": True})  # fmt: skip
    done = lib.execute([lib.PYTHON, "-c", RAW, *map(json.dumps, requests)])
    first, second, third = map(json.loads, lib.succeeded(done).splitlines())
    assert first["ok"] and first["status"]["version"] == 1
    assert not second["ok"] and "does not know" in second["error"]
    assert third["ok"] and box.wait(lib.TIMEOUT) == 137


# ---- events -----------------------------------------------------------------------------

EVENTS = [
    {"time": "2030-01-02T03:04:05.006Z", "event": "start", "carrel": 1, "box": "b", "pid": 7},
    {"time": "2030-01-02T03:04:06.007Z", "event": "lookup", "name": "a.example", "type": "A",
     "verdict": "allowed", "reason": "allowed"},
    {"time": "2030-01-02T03:04:06.008Z", "event": "connect", "id": 1, "name": "a.example",
     "address": "192.0.2.1", "port": 443, "verdict": "allowed", "reason": "allowed", "ms": 12},
    {"time": "2030-01-02T03:04:06.009Z", "event": "close", "id": 1, "name": "a.example",
     "port": 443, "sent": 100, "received": 2048, "ms": 99},
    {"time": "2030-01-02T03:04:06.010Z", "event": "connect", "id": 2, "address": "2001:db8::1",
     "port": 22, "verdict": "refused", "reason": "not in the list", "ms": 0},
    {"time": "2030-01-02T03:04:06.011Z", "event": "connect", "id": 3, "name": "b.example",
     "port": 80, "verdict": "failed", "reason": "allowed", "error": "Connection refused",
     "ms": 3},
    {"time": "2030-01-02T03:04:07.000Z", "event": "end", "code": 0},
]  # fmt: skip


def lines_of(events):
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)


def record(home, text, name="b"):
    path = home / ".local/state/carrel/boxes" / name / "events.jsonl"
    for part in reversed(path.parents):
        if not part.exists():
            lib.make_dir(part, mode=0o700)
    return lib.make_file(path, text, mode=0o600)


def test_events_for_a_person(home):
    record(home, lines_of(EVENTS))
    text = output("events", "b", env={"TZ": "UTC"})
    assert text.splitlines() == [
        "2030-01-02 03:04:05.006  box b, pid 7",
        "03:04:06.007  allowed   lookup   a.example                             A",
        "03:04:06.008  allowed   connect  a.example:443                         12 ms",
        "03:04:06.009            close    a.example:443                         99 ms, "
        "100 sent, 2.0K received",
        "03:04:06.010  refused   connect  [2001:db8::1]:22                      0 ms  "
        "not in the list",
        "03:04:06.011  failed    connect  b.example:80                          3 ms  "
        "Connection refused",
        "03:04:07.000            end      exit code 0",
    ]


def test_events_as_json(home):
    record(home, lines_of(EVENTS))
    assert [json.loads(line) for line in output("events", "b", "--json").splitlines()] == EVENTS
    # Also one that has not ended is over when nobody has the name.
    record(home, lines_of(EVENTS[:2]))
    assert output("events", "b", "-f", "--json") == lines_of(EVENTS[:2])


@pytest.mark.parametrize("form", [2, 0, "1.0", 10])
def test_events_of_another_version(home, form):
    """What it means is not guessed at: nothing of it is shown, and it stays as it is."""
    events = [EVENTS[0] | {"carrel": form}, *EVENTS[1:]]
    path = record(home, lines_of(events))
    for args in ([], ["--json"], ["-f"]):
        lib.failed_clearly(lib.carrel("events", "b", *args), "another version of carrel")
    assert path.read_text() == lines_of(events)


def test_events_that_are_none(home):
    """Whatever is in there drives no terminal and does no harm."""
    hostile = [
        {"event": "connect", "name": "\x1b]0;x\x07", "port": "\x9b31m", "verdict": "\x1b[31m"},
        {"event": ["connect"]}, {"event": "start", "time": "\x1b[2J"}, {"event": "close"},
        {"event": "connect", "inbound": {}},
    ]  # fmt: skip
    text = lines_of(hostile).encode() + b"\x1b[31m\n\n[1]\n\"x\"\n{\"event\": \"\x1b\"}\n\xff\n"
    text += b"x" * 100_000 + b"\n" + b"[" * 5000 + b"\n" + lines_of(EVENTS[-1:]).encode() + b"{"
    record(home, text)
    for args in ([], ["--json"]):
        done = lib.carrel("events", "b", *args)
        assert done.returncode == 0
        assert not any(byte < 32 and byte != 10 or byte > 126 for byte in done.stdout)
        assert b"is no event" in done.stderr and b"\x1b" not in done.stderr
        assert b"end" in done.stdout


def test_events_of_a_long_record(home):
    """In little memory: what a line took is given back."""
    record(home, lines_of(EVENTS[:1] + EVENTS[1:6] * 20_000 + EVENTS[-1:]))
    limit = ["sh", "-c", 'ulimit -v 1200000; exec "$@"', "sh", lib.program()]
    assert len(lib.succeeded(lib.execute([*limit, "events", "b"])).splitlines()) == 100_002


def test_events_are_followed(home):
    box = Server("b", OK)
    path = record(home, lines_of(EVENTS[:1]))
    follower = lib.start("events", "b", "-f", "--json")
    lib.read_until(follower.stdout, b'"start"')
    with open(path, "a", encoding="ascii") as file:
        file.write(lines_of(EVENTS[1:2])[:20])
        file.flush()
        time.sleep(0.3)
        file.write(lines_of(EVENTS[1:2])[20:])
        file.flush()
        lib.read_until(follower.stdout, b"a.example")
        assert follower.poll() is None
        file.write(lines_of(EVENTS[-1:]))
    assert follower.wait(timeout=lib.TIMEOUT) == 0
    # And one whose box is killed.
    record(home, lines_of(EVENTS[:1]))
    follower = lib.start("events", "b", "--follow")
    lib.read_until(follower.stdout, b"box b")
    time.sleep(0.5)
    assert follower.poll() is None
    box.process.kill()
    assert follower.wait(timeout=lib.TIMEOUT) == 0
    assert b"has no end" in follower.stderr.read()


def test_events_that_cannot_be_followed(home, place):
    """The box is found nowhere: it was killed, or runs with another runtime directory."""
    box = Server("b", OK)
    record(home, lines_of(EVENTS[:2]))
    other = lib.make_dir(place / "other", mode=0o700)
    for env in (str(other), None):
        done = lib.carrel("events", "b", "-f", env={"XDG_RUNTIME_DIR": env})
        assert done.returncode == 0 and b"a.example" in done.stdout
        assert b"the record of 'b' has no end" in done.stderr
        assert b"XDG_RUNTIME_DIR" in done.stderr
    record(home, lines_of(EVENTS))
    for opts in (["-f"], []):
        assert lib.carrel("events", "b", *opts).stderr == b""
    record(home, lines_of(EVENTS[:2]))
    assert lib.carrel("events", "b").stderr == b""
    # And one whose name another box has taken.
    follower = lib.start("events", "b", "-f")
    lib.read_until(follower.stdout, b"a.example")
    path = home / ".local/state/carrel/boxes/b/events.jsonl"
    path.unlink()
    assert follower.wait(timeout=lib.TIMEOUT) == 0
    assert b"another box of that name" in follower.stderr.read()
    box.stop()


def test_events_follow_no_links(home, place):
    secret = lib.make_file(place / "secret", lines_of(EVENTS))
    path = record(home, "")
    path.unlink()
    path.symlink_to(secret)
    done = lib.carrel("events", "b")
    assert done.returncode == 125 and not done.stdout


def test_gc_removes_old_records(home):
    old, new, runs = (record(home, lines_of(EVENTS), name) for name in ("old", "new", "runs"))
    for path in (old, runs):
        for part in (path, path.parent):
            os.utime(part, (1, time.time() - 31 * 86400))
    box = Server("runs")
    dry = lib.carrel("gc", "-n")
    assert b"would remove the record of the box old" in dry.stderr and old.exists()
    said = json.loads(output("gc", "--json"))
    assert said["records"] == ["old"]
    assert (old.parent.exists(), new.exists(), runs.exists()) == (False, True, True)
    box.stop()
    assert json.loads(output("gc", "--json"))["records"] == ["runs"]
    assert output("gc").startswith("0 removed")


# ---- a box and the sockets --------------------------------------------------------------


def test_no_box_has_the_sockets(place):
    """Not with a mount of what they are in; and the directory itself cannot be mounted."""
    mine = lib.make_dir(place / "runtime", mode=0o700)
    lib.make_dir(mine / "carrel", mode=0o700)
    lib.make_file(mine / "other")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(str(mine / "carrel/x.sock"))
    server.listen()
    os.chmod(mine / "carrel/x.sock", 0o777)
    lib.give(mine / "carrel/x.sock")
    env = {"XDG_RUNTIME_DIR": str(mine)}
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "open(sys.argv[1] + '/other'); s.connect(sys.argv[1] + '/carrel/x.sock')"
    )
    attack = [lib.PYTHON, "-c", code, str(mine)]
    work = lib.make_dir(place / "work")
    how = {"cwd": work, "env": env}
    lib.succeeded(lib.execute(attack))
    server.settimeout(lib.TIMEOUT)
    server.accept()[0].close()
    server.setblocking(False)
    for mode in ("ro", "rw"):
        done = lib.box(*attack, opts=[f"--mount={mine}::{mode}"], **how)
        assert b"FileNotFoundError" in done.stderr, done.stderr
        with pytest.raises(BlockingIOError):
            server.accept()
    for path in (mine / "carrel", mine / "carrel/x.sock"):
        lib.failed_clearly(lib.box("true", opts=[f"--mount={path}"], **how), "steer boxes")
    lib.failed_clearly(lib.box("true", cwd=mine, env=env), "what carrel itself goes by")
    lib.failed_clearly(lib.box("true", cwd=mine / "carrel", env=env), "carrel itself goes by")
    other = lib.make_dir(place / "empty", mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(other)}
    done = lib.box("true", opts=[f"--mount={other}"], cwd=work, env=env)
    lib.failed_clearly(done, "cannot be hidden", "mkdir")
    server.close()
