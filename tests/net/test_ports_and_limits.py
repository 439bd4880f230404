"""Ports of the machine that lead into a box, questions to the user, and limits of the network."""

import itertools
import json
import os
import pty
import re
import time

import lib
from lab import OWN
from test_steering import WAITS, start, status
from world import PROGRAMS

HOST = "www.example.org"
_last = itertools.count(60)
SERVER = "exec python3 -m http.server --bind {} {} >/dev/null 2>&1"
CURL = ["curl", "-sS", "-m", "10", "--noproxy", "*"]

# A WebSocket server of one echo, as small as it can be.
WEBSOCKET = r"""
import base64, hashlib, socket, struct
listener = socket.create_server(("127.0.0.1", 9000))
s = listener.accept()[0]
head = b""
while b"\r\n\r\n" not in head:
    head += s.recv(4096)
key = [l.split(b": ")[1] for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")][0]
answer = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          b"Sec-WebSocket-Accept: " + answer + b"\r\n\r\n")
for _ in range(3):
    b = s.recv(2, socket.MSG_WAITALL)
    n, mask = b[1] & 127, s.recv(4, socket.MSG_WAITALL)
    text = bytes(c ^ mask[i % 4] for i, c in enumerate(s.recv(n, socket.MSG_WAITALL)))
    s.sendall(bytes([0x81, n]) + text)
s.recv(1)
"""
WS_CLIENT = r"""
import base64, os, socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
key = base64.b64encode(os.urandom(16)).decode()
s.sendall((f"GET / HTTP/1.1\r\nHost: box\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
head = b""
while b"\r\n\r\n" not in head:
    head += s.recv(1)
assert b" 101 " in head
for word in (b"one", b"two", b"three"):
    s.sendall(bytes([0x81, 0x80 | len(word)]) + b"\0\0\0\0" + word)
    assert s.recv(2, socket.MSG_WAITALL)[1] == len(word)
    print(s.recv(len(word), socket.MSG_WAITALL).decode())
    time.sleep(0.5)
"""


def server(lab, handler=None):
    """A server of the test's own outside, under HOST."""
    address = f"93.184.216.{next(_last)}"
    lab.dns({HOST: [address], "telemetry.example.com": [address]})
    if handler:
        lab.tcp(address, 80, handler)
    else:
        lab.http(address, 80)


def page(lab, port):
    return lab.bare([*CURL, f"http://127.0.0.1:{port}/"])


def reached(lab, port):
    return b"Directory listing" in page(lab, port).stdout


def events(lab, box):
    lines = lib.succeeded(lab.run(["events", box, "--json"])).splitlines()
    return [json.loads(line) for line in lines]


def of_kind(lab, box, kind):
    return [e for e in events(lab, box) if e["event"] == kind]


# ---- ports ------------------------------------------------------------------------------


def test_a_port_leads_to_a_server_in_the_box(lab):
    start(lab, "server", "--network", "allow", "--port", "7001:8000", cmd=SERVER.format("127.0.0.1", 8000))
    lib.wait_for(lambda: reached(lab, 7001), "the server")
    assert lab.bare([*CURL, "http://127.0.0.1:8000/"]).returncode == 7
    inbound = lib.wait_for(lambda: of_kind(lab, "server", "connect"), "the record")
    assert all(e["inbound"] and e["port"] == 8000 for e in inbound)


def test_a_port_is_on_loopback_alone(lab):
    """Control: a server of the machine, on all of its addresses, is reached from outside."""
    start(lab, "all", "--network", "host", cmd=SERVER.format("0.0.0.0", 7017))
    inside = SERVER.format("0.0.0.0", 8000)
    start(lab, "alone", "--network", "allow", "--port", "7018:8000", cmd=inside)
    for port in (7017, 7018):
        lib.wait_for(lambda: reached(lab, port), "the servers")
    for dial in (lab.bare, lab.outside):
        assert b"Directory listing" in dial([*CURL, f"http://{OWN[0]}:7017/"]).stdout
        assert dial([*CURL, f"http://{OWN[0]}:7018/"]).returncode == 7


def test_a_server_on_the_other_loopback(lab):
    start(lab, "six", "--network", "open", "--port", "7002:8000", cmd=SERVER.format("::1", 8000))
    lib.wait_for(lambda: reached(lab, 7002), "the server")


def test_a_port_comes_and_goes(lab):
    start(lab, "live", "--network", "allow", cmd=SERVER.format("0.0.0.0", 8000))
    assert page(lab, 7003).returncode == 7
    lib.succeeded(lab.run(["port", "live", "7003:8000"]))
    lib.wait_for(lambda: reached(lab, 7003), "the server")
    assert status(lab, "live")["ports"] == ["7003:8000"]
    again = lab.run(["port", "live", "7003:8001"])
    assert again.returncode != 0 and b"already" in again.stderr
    lib.succeeded(lab.run(["port", "live", "7003", "--remove"]))
    lib.wait_for(lambda: page(lab, 7003).returncode == 7, "the port to be closed")
    assert status(lab, "live")["ports"] == []


def test_a_port_goes_only_as_it_came(lab):
    start(lab, "same", "--network", "allow", "--port", "7012:8000")
    other = lab.run(["port", "same", "7012:8001", "--remove"])
    assert other.returncode != 0 and b"leads to 8000" in other.stderr
    assert status(lab, "same")["ports"] == ["7012:8000"]
    lib.succeeded(lab.run(["port", "same", "7012:8000", "--remove"]))


def test_a_server_on_a_low_port(lab):
    start(lab, "low", "--network", "allow", "--port", "7013:80", cmd=SERVER.format("127.0.0.1", 80))
    lib.wait_for(lambda: reached(lab, 7013), "the server")


def test_a_low_port_with_a_proxy(lab):
    start(lab, "lowp", "--network", "allow", "--proxy", "--port", "7014:80", cmd=SERVER.format("127.0.0.1", 80))
    lib.wait_for(lambda: reached(lab, 7014), "the server")


BIND = """
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        for port in (1, 2, 52, 53, 54, 80, 1023):
            s = socket.socket(family, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", port))
                print(port)
            except PermissionError:
                pass
"""


def test_the_brokers_ports_stay_its_own(lab):
    """In a box that may have low ports, and in one that said nothing of them."""
    run = ["run", "-y", "--network", "allow"]
    low = lab.run([*run, "--port", "7015:80", "--", lib.PYTHON, "-c", BIND])
    assert lib.succeeded(low).split() == [b"54", b"80", b"1023"] * 4
    assert lib.succeeded(lab.run([*run, "--port", "7015:3000", "--", lib.PYTHON, "-c", BIND])) == b""


def test_a_low_port_comes_too_late(lab):
    start(lab, "late", "--network", "allow")
    late = lab.run(["port", "late", "7016:80"])
    assert late.returncode != 0 and b"--port 7016:80" in late.stderr
    never = lab.run(["port", "late", "7016:53"])
    assert never.returncode != 0 and b"53 or below" in never.stderr
    assert status(lab, "late")["ports"] == []


def test_nobody_listens_in_the_box(lab):
    start(lab, "nobody", "--network", "allow", "--port", "7004:8000")
    assert page(lab, 7004).returncode in (7, 52, 56)  # a reset, seen sooner or later
    reads = (PROGRAMS / "socket_client.py").read_text()
    done = lab.bare([lib.PYTHON, "-c", reads, "reset", "127.0.0.1", "7004"])
    assert lib.succeeded(done) == b"reset\n"
    told = lib.wait_for(lambda: of_kind(lab, "nobody", "connect"), "the record")
    assert told[0]["verdict"] == "failed"


def test_a_port_that_is_taken(lab):
    start(lab, "first", "--network", "allow", "--port", "7005")
    done = lab.run(["run", "-y", "--network", "allow", "--port", "7005:80", "--", "echo", "ran"])
    assert done.returncode == 125 and b"ran" not in done.stdout
    assert b"port 7005" in done.stderr and b"7006:80" in done.stderr


def test_a_web_socket_through_a_port(lab):
    script = lib.make_file(lib.current.cwd / "ws.py", WEBSOCKET)
    start(lab, "ws", "--network", "allow", "--port", "7006:9000", cmd=f"exec {lib.PYTHON} {script}")
    time.sleep(0.5)
    done = lab.bare([lib.PYTHON, "-c", WS_CLIENT, "7006"])
    assert lib.succeeded(done) == b"one\ntwo\nthree\n"


def test_loopback_stays_inside(lab):
    """A server of the machine is not that of the box, on the same port and on another."""
    start(lab, "machine", "--network", "host", cmd=SERVER.format("127.0.0.1", 7010))
    lib.wait_for(lambda: reached(lab, 7010), "the machine's server")
    for url in ("http://127.0.0.1:7010/", "http://localhost:7010/", "http://[::1]:7010/"):
        done = lab.run(["run", "-y", "--network", "open", "--", *CURL, url])
        assert done.returncode == 7, done


# ---- questions --------------------------------------------------------------------------


def ask(lab, name, *opts, env=None):
    server(lab)
    curl = f"curl -sS -m 40 http://{HOST}/ >answer 2>&1; echo $? >code.new; mv code.new code; {WAITS}"
    process = start(lab, name, "--network", "allow", "--ask", *opts, cmd=curl, env=env)
    lib.wait_for(lambda: status(lab, name)["waiting"] == [f"{HOST}:80"], "the question")
    return process, lib.current.cwd


def test_yes(lab):
    process, here = ask(lab, "yes")
    assert not lab.heard("http")
    lib.succeeded(lab.run(["allow", "yes", HOST]))
    lib.wait_for((here / "code").exists, "the answer")
    assert (here / "code").read_text() == "0\n" and len(lab.heard("http")) == 1
    assert b"carrel allow yes www.example.org:80" in lib.read_until(process.stderr, b"--deny)", 5)


def test_one_question_of_many_connections(lab):
    server(lab)
    curl = f"for i in 1 2 3; do curl -sS -m 30 http://{HOST}/ & done; {WAITS}"
    start(lab, "many", "--network", "allow", "--ask", cmd=curl)
    lib.wait_for(lambda: len(of_kind(lab, "many", "held")) == 3, "the connections")
    assert status(lab, "many")["waiting"] == [f"{HOST}:80"]


SEVENTY = """
import socket, time
kept = [socket.create_connection((host, 80), 20) for host in ["a.example.org"] * 70 + ["b.example.org"]]
time.sleep(60)
"""


def test_many_connections_hide_no_other_question(lab):
    process = start(lab, "hides", "--network", "allow", "--ask",
                    cmd=f"exec {lib.PYTHON} -c '{SEVENTY}'")  # fmt: skip
    lib.wait_for(lambda: len(of_kind(lab, "hides", "held")) == 71, "the connections")
    assert status(lab, "hides")["waiting"] == ["a.example.org:80", "b.example.org:80"]
    lib.read_until(process.stderr, b"carrel allow hides b.example.org:80 (or --deny)\n")
    lib.succeeded(lab.run(["allow", "hides", "a.example.org", "--deny"]))
    lib.wait_for(lambda: len(of_kind(lab, "hides", "connect")) == 70, "the refusals")
    assert status(lab, "hides")["waiting"] == ["b.example.org:80"]


def test_the_question_on_a_terminal_rings_its_bell(lab):
    """The box has the terminal's screen: the line begins at its left end, and with a bell."""
    server(lab)
    screen, terminal = pty.openpty()
    argv = ["run", "-y", "--name", "bell", "--network", "allow", "--ask", "--", *CURL]
    with open(screen, "rb", buffering=0) as screen:
        lab.start([*argv, f"http://{HOST}/"], stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        shown = lib.read_until(screen, b"(or --deny)\r\n")
        assert f"\r\n\acarrel: {HOST}:80 is not in the list and waits".encode() in shown
        assert not lab.heard("http")
        lib.succeeded(lab.run(["allow", "bell", HOST]))
        lib.read_until(screen, b"hello from")


def test_the_question_about_the_longest_name_is_one_whole_line(lab):
    name = ".".join(["x" * 60] * 4) + ".example"
    assert len(name) == 251
    opts = ["--name", "long", "--network", "allow", "--ask"]
    process = lab.start(["run", "-y", *opts, "--", *CURL, f"http://{name}/"])
    line = f"{name}:80 is not in the list and waits for you: carrel allow long {name}:80 (or --deny)"
    assert lib.read_until(process.stderr, b"\n") == f"carrel: {line}\n".encode()


def test_what_is_answered_waits_no_more_while_it_is_dialled(lab):
    slow = "93.184.218.7"
    lab.blackhole(slow)
    lab.dns({"slow.example.org": [slow], "other.example.org": [slow]})
    curl = "curl -sS -m 40 http://{}/ >/dev/null 2>&1 &"
    hosts = ["slow.example.org", slow, "other.example.org"]
    start(lab, "dials", "--network", "allow", "--ask",
          cmd=" ".join(map(curl.format, hosts)) + WAITS)  # fmt: skip
    lib.wait_for(lambda: len(status(lab, "dials")["waiting"]) == 3, "the questions")
    for entry in ("*.example.org:22", "slow.example.org", "93.184.218.0/24:*"):
        lib.succeeded(lab.run(["allow", "dials", entry]))
    assert status(lab, "dials")["waiting"] == ["other.example.org:80"]
    assert not of_kind(lab, "dials", "connect"), "the control: none is made, and none has failed"
    lib.succeeded(lab.run(["allow", "dials", "other.example.org", "--deny"]))
    assert status(lab, "dials")["waiting"] == []


def test_no(lab):
    _, here = ask(lab, "no")
    lib.succeeded(lab.run(["allow", "no", f"{HOST}:80", "--deny"]))
    lib.wait_for((here / "code").exists, "the answer")
    assert (here / "code").read_text() != "0\n" and not lab.heard("http")


def test_no_answer_is_a_no(lab):
    _, here = ask(lab, "silence", env={"CARREL_TEST_ASK": "2"})
    lib.wait_for((here / "code").exists, "the time-out")
    assert (here / "code").read_text() != "0\n" and not lab.heard("http")
    told = lib.wait_for(lambda: of_kind(lab, "silence", "connect"), "the record")
    assert [e["verdict"] for e in told] == ["refused"]


def test_nobody_could_answer(lab):
    server(lab)
    argv = ["run", "-y", "--name", "alone", "--allow", "known.example", "--ask", "--", *CURL]
    done = lab.run([*argv, f"http://{HOST}/"], env={"XDG_RUNTIME_DIR": None})
    assert b"Could not resolve host" in done.stderr and b"waits for you" not in done.stderr
    assert not lab.heard("http") and not of_kind(lab, "alone", "held")


def test_always_holds_for_the_next_box(lab):
    _, here = ask(lab, "always")
    lib.succeeded(lab.run(["allow", "always", HOST, "--always"]))
    lib.wait_for((here / "code").exists, "the answer")
    done = lab.run(["run", "-y", "--network", "allow", "--", *CURL, f"http://{HOST}/"])
    assert lib.succeeded(done)
    assert not (here / "carrel.json").is_file(), "the project's manifest is nobody's to write"


def test_always_leaves_the_manifest_as_it_is(lab, project):
    """Of a box that was started from it, and said in its project: for and against."""
    server(lab)
    agent = {"harness": "command", "command": ["sh", "-c", WAITS],
             "network": {"allow": ["a.example"]}}  # fmt: skip
    path = lib.make_file(project / "carrel.json", json.dumps({"agents": {"x": agent}}))
    before, env = lib.state(project, "carrel.json"), {"CARREL_TRUST": lib.digest(path)}
    lab.start(["run", "-y", "--name", "mine", "x"], env=env)
    lib.wait_for(lambda: status(lab, "mine"), "the box")
    for words in ([HOST], ["a.example", "--deny"]):
        lib.succeeded(lab.run(["allow", "mine", *words, "--always"]))
    assert before and lib.state(project, "carrel.json") == before
    said = (lib.current.home / ".config/carrel/allow").read_text()
    assert HOST in said and "!a.example" in said


# ---- limits -----------------------------------------------------------------------------


def test_connections_at_once(lab):
    server(lab, lambda connection, entry: connection.recv(1))
    script = f"""
import socket
good = []
for _ in range(5):
    try:
        s = socket.create_connection(("{HOST}", 80), 10)
        s.settimeout(1)
        s.recv(1)
        break
    except TimeoutError:
        good.append(s)
    except OSError:
        print(len(good), "then reset")
        break
"""
    done = lab.run(["run", "-y", "--name", "few", "--allow", HOST, "--limit", "connections=3", "--",
                    lib.PYTHON, "-c", script])  # fmt: skip
    assert lib.succeeded(done) == b"3 then reset\n"
    assert [e["limit"] for e in events(lab, "few") if e["event"] == "limit"] == ["connections"]


def download(lab, name, limit):
    server(lab, lambda connection, entry: connection.sendall(bytes(2000000)))
    script = f"""
import socket
n = 0
try:
    s = socket.create_connection(("{HOST}", 80), 10)
    while block := s.recv(65536):
        n += len(block)
    print(n, "end")
except OSError:
    print(n, "reset")
"""
    began = time.monotonic()
    done = lab.run(["run", "-y", "--name", name, "--allow", HOST, "--limit", limit, "--",
                    lib.PYTHON, "-c", script])  # fmt: skip
    count, how = lib.succeeded(done).split()
    return int(count), how, time.monotonic() - began


def test_traffic_in_all(lab):
    count, how, _ = download(lab, "cut", "traffic=1M")
    assert count <= 1 << 20 and how == b"reset"
    assert "traffic" in [e.get("limit") for e in events(lab, "cut")]


def test_traffic_in_all_is_for_those_who_are_silent_too(lab):
    lab.tcp("93.184.216.37", 81, lambda connection, entry: connection.recv(1))
    lab.tcp("93.184.216.37", 82, lambda connection, entry: connection.sendall(bytes(2000000)))
    script = """
import socket
idle = socket.create_connection(("93.184.216.37", 81), 10)
busy = socket.create_connection(("93.184.216.37", 82), 10)
try:
    while busy.recv(65536):
        pass
except OSError:
    pass
try:
    idle.recv(1)
except ConnectionResetError:
    print("reset")
"""
    argv = ["run", "-y", "--network", "open", "--limit", "traffic=1M", "--", lib.PYTHON, "-c", script]
    assert lib.succeeded(lab.run(argv)) == b"reset\n"


def test_traffic_a_second(lab):
    """Two megabytes at one a second take more than one; how much more is the machine's matter."""
    count, how, took = download(lab, "slow", "rate=1M")
    assert (count, how) == (2000000, b"end") and took > 1


def test_traffic_a_second_is_shared(lab):
    """Six that want all they can get: each gets something."""
    server(lab, lambda connection, entry: connection.sendall(bytes(20000000)))
    script = f"""
import selectors, socket, time
wait, got, until = selectors.DefaultSelector(), [0] * 6, time.monotonic() + 4
for i in range(6):
    wait.register(socket.create_connection(("{HOST}", 80), 10), selectors.EVENT_READ, i)
while time.monotonic() < until:
    for key, _ in wait.select(0.1):
        got[key.data] += len(key.fileobj.recv(65536))
print(*got)
"""
    done = lab.run(["run", "-y", "--name", "six", "--allow", HOST, "--limit", "rate=1M", "--",
                    lib.PYTHON, "-c", script])  # fmt: skip
    got = [int(n) for n in lib.succeeded(done).split()]
    assert min(got) * 4 > max(got), got


def upload(lab, name, limit):
    """What came out, how that ended for the box, and how long it took."""

    def count(connection, entry):
        entry.size = 0
        try:
            while block := connection.recv(65536):
                entry.size += len(block)
            connection.sendall(b"all")
        finally:
            entry.over = True

    server(lab, count)
    script = f"""
import socket
try:
    s = socket.create_connection(("{HOST}", 80), 10)
    s.sendall(bytes(2000000))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(3).decode() or "end")
except OSError:
    print("reset")
"""
    began = time.monotonic()
    done = lab.run(["run", "-y", "--name", name, "--allow", HOST, "--limit", limit, "--",
                    lib.PYTHON, "-c", script])  # fmt: skip
    took = time.monotonic() - began
    entry = lib.wait_for(lambda: lab.heard("tcp", port=80), "the connection")[0]
    lib.wait_for(lambda: getattr(entry, "over", False), "its end")
    return entry.size, lib.succeeded(done).strip(), took


def test_traffic_in_all_counts_what_is_sent(lab):
    count, how, _ = upload(lab, "cutup", "traffic=1M")
    assert 0 < count <= 1 << 20 and how == b"reset"
    assert "traffic" in [e.get("limit") for e in events(lab, "cutup")]


def test_traffic_a_second_counts_what_is_sent(lab):
    count, how, took = upload(lab, "slowup", "rate=1M")
    assert (count, how) == (2000000, b"all") and took > 1


# ---- what is told -----------------------------------------------------------------------


def test_the_last_line_and_the_way_to_allow_it(lab):
    server(lab)
    script = f"curl -sS http://{HOST}/; curl -sS http://telemetry.example.com/; true"
    done = lab.run(["run", "-y", "--allow", HOST, "--", "sh", "-c", script])
    assert b"1 host reached" in done.stderr and b"1 refused: telemetry.example.com" in done.stderr
    assert b"--allow telemetry.example.com" in done.stderr


def test_a_private_address_is_named_with_the_option_that_opens_it(lab):
    """What the last line says is typed, and then the same works."""
    address = "10.77.0.1"
    lab.dns({"db.example": [address]})
    lab.http(address, 5432)
    command = ["--", "curl", "-sS", "-m", "20", "http://db.example:5432/"]
    args = ["run", "-y", "--name", "wants-db", "--allow", "db.example:5432"]
    done = lab.run([*args, *command])
    assert done.returncode != 0 and not lab.heard("http")
    assert f"1 refused: db.example ({address}: not a public address)\n" in done.stderr.decode()
    shown = lib.succeeded(lab.run(["events", "wants-db"])).decode()
    assert f"  {address}: not a public address\n" in shown
    offered = re.search(r"to allow it: carrel run (.*) \.\.\.\n", done.stderr.decode())[1]
    assert offered == f"--allow {address}:5432"
    lib.succeeded(lab.run([*args, *offered.split(), *command]))
    assert lab.heard("http")


TOLD = f"""
import socket, time
s = socket.create_connection(("{HOST}", 80), 10)
s.sendall(bytes(1000))
s.shutdown(socket.SHUT_WR)
assert len(s.makefile("rb").read()) == 3000
began = time.monotonic()
try:
    print(socket.create_connection(("{HOST}", 22), 10).recv(1))
except ConnectionResetError:
    print("reset")
try:
    socket.getaddrinfo("telemetry.example.com", 80)
except socket.gaierror:
    print("no name", time.monotonic() - began < 1)
"""


def test_every_lookup_connection_and_refusal_is_an_event(lab):
    """With the bytes and the time of each; and a refusal is one, at once."""

    def serve(connection, entry):
        while len(entry.got) < 1000:
            entry.got += connection.recv(4096)
        time.sleep(0.2)
        connection.sendall(bytes(3000))

    server(lab, serve)
    done = lab.run(["run", "-y", "--name", "each", "--allow", HOST, "--", lib.PYTHON, "-c", TOLD])
    assert lib.succeeded(done) == b"reset\nno name True\n"
    _, *told, _ = events(lab, "each")
    lookups = [e for e in told if e["event"] == "lookup"]
    assert {(e["name"], e["type"], e["verdict"]) for e in lookups} == {
        (name, kind, verdict) for name, verdict in ((HOST, "allowed"),
                                                    ("telemetry.example.com", "refused"))
        for kind in ("A", "AAAA")}  # fmt: skip
    made, closed, *refused = [e for e in told if e["event"] != "lookup"]
    assert (made["event"], made["verdict"], made["port"]) == ("connect", "allowed", 80)
    assert (closed["event"], closed["id"]) == ("close", made["id"])
    assert (closed["sent"], closed["received"]) == (1000, 3000) and 200 <= closed["ms"] < 5000
    assert made["name"] == closed["name"] == HOST and made["address"] == closed["address"]
    # A reset that is quick is seen by connect(2), and then the other address is tried.
    assert len(refused) in (1, 2) and {
        (e["event"], e["name"], e["port"], e["verdict"], e["reason"]) for e in refused} == {
        ("connect", HOST, 22, "refused", "not allowed on this port")}  # fmt: skip


def test_events_are_followed_while_they_happen(lab):
    server(lab)
    start(lab, "told", "--allow", HOST, cmd=f"sleep 1; curl -sS http://{HOST}/ >answer; sleep 1")
    follow = lab.start(["events", "told", "-f", "--json"])
    said = follow.communicate(timeout=lib.TIMEOUT)[0]
    kinds = [json.loads(line)["event"] for line in said.splitlines()]
    assert kinds[0] == "start" and kinds[-1] == "end"
    assert {"lookup", "connect", "close"} <= set(kinds)
