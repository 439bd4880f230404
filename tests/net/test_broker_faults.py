"""Answers and peers outside that once made the broker spin, stall or let go of something."""

import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import lib
import pytest
from lab import NAMESERVER, Name

ALLOW = ["run", "-y", "--network", "allow"]
FETCH = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
print(s.recv(100).decode())
"""


def fetch(lab, name, port, *opts):
    argv = [*ALLOW, *opts, "--", lib.PYTHON, "-c", FETCH, name, str(port)]
    return lab.run(argv)


def broker_of(process):
    """The broker's pid, below a carrel that runs."""

    def find():
        for pid in lib.children(process.pid):
            with contextlib.suppress(OSError):  # one that has ended meanwhile
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if line.startswith(b"carrel-broker"):
                    return pid
        return None

    return lib.wait_for(find, "the broker")


def seconds_of(pid):
    """Processor time that a process has had."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


class Two(bytes):
    """Two messages of a stream in one; the lab puts the length of the first before it."""

    def __new__(cls, one, other):
        made = super().__new__(cls, one + struct.pack(">H", len(other)) + other)
        made.first = len(one)
        return made

    def __len__(self):
        return self.first


def test_large_answers_over_tcp(lab, monkeypatch):
    """Two answers that come at once and do not fit into one read: the second one counts too."""
    plain, kept = lab._answer, []

    def together(question, via, peer):
        said = plain(question, via, peer)
        if via == "udp":
            return said
        kept.append(said)
        return Two(kept[1], kept[0]) if len(kept) == 2 else None

    few, many = ["93.184.216.34"], [f"2606:2800:220::{i:x}" for i in range(1, 130)]
    few += [f"93.184.217.{i}" for i in range(1, 100)]
    lab.dns({"large.example.org": Name(few + many, cut=True)})
    lab.tcp("93.184.216.34", 7001)
    monkeypatch.setattr(lab, "_answer", together)
    done = fetch(lab, "large.example.org", 7001, "--allow", "large.example.org:7001")
    assert b"hello" in lib.succeeded(done)
    assert len(lab.heard("dns", name="large.example.org", via="tcp")) == 2


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_many_dead_addresses_do_not_keep_the_broker_busy(lab):
    """Four and more that never answer: nothing is to be done until one of them fails."""
    lab.blackhole("93.184.218.0/24")
    lab.dns({"dead.example.org": [f"93.184.218.{i}" for i in range(1, 7)]})
    opts = ["--allow", "dead.example.org:7002", "--", lib.PYTHON, "-c", FETCH]
    process = lab.start([*ALLOW, *opts, "dead.example.org", "7002"])
    broker = broker_of(process)
    lib.wait_for(lambda: lab.heard("dns", name="dead.example.org"), "the lookup")
    time.sleep(1)  # until all attempts that there may be are under way
    before = seconds_of(broker)
    time.sleep(2)
    assert seconds_of(broker) - before < 0.3
    assert process.poll() is None


IN_FLIGHT = """
import socket, struct, time
ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(150):
    name = b"".join(bytes([len(p)]) + p for p in (b"n%d" % i, b"slow", b"example", b"org"))
    head = struct.pack(">6H", i, 0x100, 1, 0, 0, 0)
    ask.sendto(head + name + struct.pack(">BHH", 0, 1, 1), ("198.18.0.1", 53))
kept = []
for i in range(50):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("93.184.218.1", 8000 + i))
    kept.append(s)
time.sleep(2)
"""


@pytest.mark.parametrize("opts", [["--network", "open"], [*ALLOW[2:], "--allow", "*.slow.example.org",
                                                          "--allow", "93.184.218.1:*"]])  # fmt: skip
def test_what_is_in_flight_when_the_box_ends_is_recorded(lab, opts):
    """Names and addresses are words, too: who asks and ends at once has said them."""
    lab.blackhole("93.184.218.0/24")
    lab.dns({"*.slow.example.org": Name(["93.184.216.34"], silent=True)})
    done = lab.run(["run", "-y", *opts, "--name", "flight", "--", lib.PYTHON, "-c", IN_FLIGHT])
    lib.succeeded(done)
    said = lib.succeeded(lab.run(["events", "flight", "--json"])).splitlines()
    found = [json.loads(line) for line in said]
    heard = {e.name for e in lab.heard("dns")}
    told = {e["name"]: e for e in found if e["event"] == "lookup"}
    assert len(heard) > 20 and heard <= set(told) and len(told) == 150
    assert {e["error"] for e in told.values()} == {"the box ended first"}
    dialled = [e for e in found if e["event"] == "connect"]
    assert {e["port"] for e in dialled} == set(range(8000, 8050)) and len(dialled) == 50
    assert {e["error"] for e in dialled} == {"the box ended first"}
    assert b"(the box ended first)" in done.stderr


def test_a_dead_server_is_noticed(lab):
    """Who asks whether it is still there is the kernel: that it will, and when, it says itself."""
    lab.dns({"quiet.example.org": ["93.184.216.34"]})
    lab.tcp("93.184.216.34", 7030, lambda connection, _: connection.recv(1))
    opts = ["--allow", "quiet.example.org:7030", "--", lib.PYTHON, "-c", FETCH]
    lab.start([*ALLOW, *opts, "quiet.example.org", "7030"])
    lib.wait_for(lambda: lab.heard("tcp", port=7030), "the connection")
    said = lib.succeeded(lab.bare(["ss", "-tnoH", "dst", "93.184.216.34:7030"])).decode()
    assert re.fullmatch(r"ESTAB.*timer:\(keepalive,(1min|[1-5]\d(\.\d+)?sec),0\)\s*", said), said


NEAR = [("93.184.215.1", 7040), ("2606:2800:215::1", 7041)]  # on the same wire as the machine


@pytest.mark.parametrize("near, port", NEAR)
def test_a_neighbour_is_not_the_public(lab, near, port):
    """A public address that is of the machine's own network: a router, a printer, a colleague."""
    lab.dns({"near.example.org": [near], "far.example.org": ["93.184.216.34"]})
    lab.tcp(near, port)
    lab.tcp("93.184.216.34", port)
    by_name = ["--allow", f"near.example.org:{port}", "--allow", f"far.example.org:{port}"]
    for opts in (by_name, [*by_name, "--allow", "0.0.0.0/0:*", "--allow", "[::/0]:*"]):
        assert b"hello" in lib.succeeded(fetch(lab, "far.example.org", port, *opts))
        done = fetch(lab, "near.example.org", port, *opts)
        assert done.returncode == 1 and b"of this machine's network" in done.stderr
        assert fetch(lab, near, port, *opts).returncode == 1
    assert not lab.heard("tcp", address=near)
    entry = f"[{near}]:{port}" if ":" in near else f"{near}:{port}"
    done = fetch(lab, "near.example.org", port, *by_name, "--allow", entry)
    assert b"hello" in lib.succeeded(done) and lab.heard("tcp", address=near)


BRISK = """
import socket, sys
s = socket.create_connection(("near.example.org", 7020), 20)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(500):
    s.send(b"p")
    assert s.recv(1) == b"p"
print("brisk", flush=True)
sys.stdin.readline()
s.send(b"t")
print(sum(len(s.recv(1)) for _ in range(100)), flush=True)
sys.stdin.readline()
"""


def test_who_waits_sleeps(lab):
    """After a server that answers at once: in silence, and with one that takes its time."""

    def answer(connection, _):
        while byte := connection.recv(1):
            for _ in range(100 if byte == b"t" else 1):
                connection.send(byte)
                if byte == b"t":
                    time.sleep(0.02)

    lab.dns({"near.example.org": ["93.184.216.34"]})
    lab.tcp("93.184.216.34", 7020, answer)
    opts = ["--allow", "near.example.org:7020", "--", lib.PYTHON, "-c", BRISK]
    process = lab.start([*ALLOW, *opts])
    lib.read_until(process.stdout, b"brisk")
    before = seconds_of(broker_of(process))
    time.sleep(2)
    silent = seconds_of(broker_of(process))
    assert silent - before < 0.3
    process.stdin.write(b"\n")
    lib.read_until(process.stdout, b"100\n")
    assert seconds_of(broker_of(process)) - silent < 0.3
    process.communicate(b"\n", timeout=lib.TIMEOUT)


ONE_AFTER_THE_OTHER = """
import socket, struct
def all_of(s):
    return b"".join(iter(lambda: s.recv(65536), b""))
for n in range(100):
    for host in ("93.184.216.34", "2606:2800:220::34"):
        s = socket.create_connection((host, 7021), 20)
        s.settimeout(None)
        s.sendall(b"left %d " % n * 1000)
        s.recv(1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        s = socket.create_connection((host, 7022), 20)
        s.sendall(b"said %d" % n)
        s.shutdown(socket.SHUT_WR)
        assert all_of(s) == b"said %d" % n * 2, "an orderly end"
        s.close()
        s = socket.create_connection((host, 7023), 20)
        assert all_of(s) == b"the server's end"
        s.close()
        s = socket.create_connection((host, 7024), 20)
        try:
            s.sendall(b"x")
            raise SystemExit(all_of(s))
        except ConnectionResetError:
            s.close()
print("good")
"""


def test_nothing_is_left_of_the_connection_before(lab):
    """One was reset with much under way to both sides, the next ones end in order."""
    ends = collections.Counter()

    def pour(connection, _):
        try:
            while True:
                connection.sendall(b"left" * 16384)
        except OSError:
            ends["reset"] += 1

    def echo(connection, entry):
        while said := connection.recv(100):
            entry.got += said
        connection.sendall(entry.got * 2)
        ends["end"] += 1

    def leave(connection, _):
        connection.sendall(b"the server's end")

    def reset(connection, _):
        connection.recv(1)
        connection.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: close() resets

    for address in ("93.184.216.34", "2606:2800:220::34"):
        for port, handler in ((7021, pour), (7022, echo), (7023, leave), (7024, reset)):
            lab.tcp(address, port, handler)
    argv = ["run", "-y", "--network", "open", "--", lib.PYTHON, "-c", ONE_AFTER_THE_OTHER]
    assert lib.succeeded(lab.run(argv)) == b"good\n"
    lib.wait_for(lambda: ends == {"reset": 200, "end": 200}, "all ends")
    assert {e.got for e in lab.heard("tcp", port=7022)} == {b"said %d" % n for n in range(100)}
    assert len(lab.heard("tcp", port=7023)) == 200


def test_a_name_to_be_asked_about_is_not_looked_up(lab):
    """With --ask as without: what a lookup could tell the outside waits for the user."""
    lab.dns({"*.example.org": ["93.184.216.34"]})
    look = "import socket; print(socket.getaddrinfo('secret.example.org', 443)[0][4])"
    opts = ["--ask", "--", lib.PYTHON, "-c", look]
    assert b"198.18." in lib.succeeded(lab.run([*ALLOW, *opts])).replace(b"fd63:", b"198.18.")
    assert not lab.heard("dns")
    lib.succeeded(lab.run([*ALLOW, "--allow", "secret.example.org", *opts]))
    assert lab.heard("dns", name="secret.example.org")


LATER = {"one more": ["93.184.219.7/32"], "IPv6": ["2606:2800:219::7/128"],
         "second of its network": ["93.184.219.1/24", "93.184.219.7/24"]}  # fmt: skip
DIAL = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
    print(s.recv(100))
except OSError as e:
    print(e)
"""


SERVE = """
import socket
s = socket.create_server(("::", 7003), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    s.accept()[0].send(b"own")
"""


@contextlib.contextmanager
def more_addresses(lab, addresses):
    """The machine where carrel runs has these too."""
    with contextlib.ExitStack() as undo:
        for address in addresses:
            nodad = ["nodad"] if ":" in address else []
            lab.ip("addr", "add", address, "dev", "lab0", *nodad, near=True)
            undo.callback(lab.ip, "addr", "del", address, "dev", "lab0", near=True)
        yield


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
@pytest.mark.parametrize("addresses", LATER.values(), ids=LATER)
def test_an_address_that_the_machine_gets_later(lab, addresses):
    """In `open`: refused although the policy was made before; an exact entry opens it."""
    server = subprocess.Popen([*lab._enter(lab._lab), lib.PYTHON, "-c", SERVE],
                              stdout=subprocess.PIPE)  # fmt: skip
    lib.started.append(server)
    server.stdout.readline()
    plain, said = addresses[-1].partition("/")[0], {}
    for opts in ((), ("--allow", f"[{plain}]:7003" if ":" in plain else f"{plain}:7003")):
        argv = ["run", "-y", "--network", "open", *opts, "--", lib.PYTHON, "-c", DIAL]
        process = lab.start([*argv, plain, "7003"])
        lib.read_until(process.stdout, b"ready")
        with more_addresses(lab, addresses):
            said[opts] = process.communicate(b"\n", timeout=lib.TIMEOUT)[0]
    refused, opened = said.values()
    assert b"own" not in refused and b"own" in opened, said


NEAR_V4, FAR_V4 = "93.184.215.2/30", "93.184.215.1"
TWICE = """
import socket, sys
for _ in range(2):
    try:
        print(socket.create_connection((sys.argv[1], 7003), 10).recv(100), flush=True)
    except OSError as e:
        print(e, flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def moved(lab, address):
    """The machine has this address and not its own any more."""
    lab.ip("addr", "del", NEAR_V4, "dev", "lab0", near=True)
    try:
        with more_addresses(lab, [address]):
            yield
    finally:
        lab.ip("addr", "add", NEAR_V4, "dev", "lab0", near=True)
        lab.ip("route", "add", "default", "via", FAR_V4, near=True)


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_a_machine_that_moves_to_an_address(lab):
    """It was somebody else's a moment ago, and was reached; what was found out then is not so
    any more, and the address from which it was is gone."""
    server = subprocess.Popen([*lab._enter(lab._lab), lib.PYTHON, "-c", SERVE],
                              stdout=subprocess.PIPE)  # fmt: skip
    lib.started.append(server)
    server.stdout.readline()
    lab.tcp("93.184.219.7", 7003, lambda connection, _: connection.send(b"somebody else"))
    for opts in ([], ["--allow", "93.184.219.7:7003"]):
        argv = ["run", "-y", "--network", "open", *opts, "--", lib.PYTHON, "-c", TWICE]
        process = lab.start([*argv, "93.184.219.7"])
        lib.read_until(process.stdout, b"somebody else'\n")
        with moved(lab, "93.184.219.7/32"):
            process.stdin.write(b"\n")
            said = lib.read_until(process.stdout, b"\n")
            assert (b"own" in said) == bool(opts), said
        process.communicate(b"\n", timeout=lib.TIMEOUT)


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
@pytest.mark.parametrize("address", ["93.184.219.9/32", "2606:2800:219::9/128"])
def test_a_name_whose_address_the_machine_gets_later(lab, address):
    """What it led to a moment ago was somebody else; to be on the list does not open our own."""
    server = subprocess.Popen([*lab._enter(lab._lab), lib.PYTHON, "-c", SERVE],
                              stdout=subprocess.PIPE)  # fmt: skip
    lib.started.append(server)
    server.stdout.readline()
    plain = address.partition("/")[0]
    lab.dns({"later.example.org": [plain]})
    lab.tcp(plain, 7003, lambda connection, _: connection.send(b"somebody else"))
    for opts in (["--network", "open"], ["--allow", "later.example.org:7003"]):
        argv = ["run", "-y", *opts, "--", lib.PYTHON, "-c", TWICE, "later.example.org"]
        process = lab.start(argv)
        lib.read_until(process.stdout, b"somebody else'\n")
        with more_addresses(lab, [address]):
            dial = f"import socket; print(socket.create_connection(('{plain}', 7003)).recv(9))"
            assert b"own" in lib.succeeded(lab.bare([lib.PYTHON, "-c", dial]))
            process.stdin.write(b"\n")
            assert b"own" not in lib.read_until(process.stdout, b"\n")
        process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert len(lab.heard("tcp", port=7003)) == 2, "of the first ones alone"


POUR = """
import socket, sys
all = [socket.create_connection(("pour.example.org", 7004), 20) for _ in range(100)]
for s in all:
    left = 512 * 1024
    while left > 0:
        left -= len(s.recv(65536))
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_pipes_of_the_user_are_left_for_others(lab):
    """Connections with much in them get pipes of 1 MiB: not all that the user may have."""

    def pour(connection, _):
        block = b"x" * 65536
        for _ in range(12):
            connection.sendall(block)
        connection.recv(1)

    lab.dns({"pour.example.org": ["93.184.216.34"]})
    lab.tcp("93.184.216.34", 7004, pour)
    process = lab.start([*ALLOW, "--allow", "pour.example.org:7004", "--", lib.PYTHON, "-c", POUR])
    lib.read_until(process.stdout, b"ready")
    size = "import fcntl, os; print(fcntl.fcntl(os.pipe()[1], 1032))"
    assert lib.succeeded(lib.execute([lib.PYTHON, "-c", size])) == b"65536\n"
    fds = pathlib.Path(f"/proc/{broker_of(process)}/fd")

    def has_pipes():
        with contextlib.suppress(FileNotFoundError):  # one is closed meanwhile
            return any(os.readlink(fd).startswith("pipe:") for fd in fds.iterdir())

    lib.wait_for(has_pipes, "pipes of the broker")
    process.communicate(b"\n", timeout=lib.TIMEOUT)


PIPELINE = """
import socket, struct

def question(number, name):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    one = struct.pack(">6H", number, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">2H", 1, 1)
    return struct.pack(">H", len(one)) + one

names = ["echo.example.org", "refused.example.org"]
s = socket.create_connection(("198.18.0.1", 53), 20)
s.sendall(b"".join(question(i, names[i % 2]) for i in range(200)))
s.shutdown(socket.SHUT_WR)
with s.makefile("rb") as stream:
    for i in range(200):
        size = struct.unpack(">H", stream.read(2))[0]
        number, flags = struct.unpack(">2H", stream.read(size)[:4])
        assert (number, flags & 15) == (i, 3 * (i % 2)), (i, number, flags)
    assert not stream.read(1)
print("all")
"""


def test_many_questions_in_one_stream_that_ends_after_them(lab):
    """More than fit into the buffer, while the first waits for its answer."""
    lab.dns({"echo.example.org": ["93.184.216.34"]})
    done = lab.run([*ALLOW, "--allow", "echo.example.org", "--", lib.PYTHON, "-c", PIPELINE])
    assert lib.succeeded(done) == b"all\n"
    assert not lab.heard("dns", name="refused.example.org")


FAILING = """
import socket, struct
labels = b"".join(bytes([len(l)]) + l.encode() for l in "echo.example.org".split("."))
end = b"\\0" + struct.pack(">2H", 1, 1)
ask = [struct.pack(">6H", i, 0x100, 1, 0, 0, 0) + labels + end for i in range(900)]
s = socket.create_connection(("198.18.0.1", 53), 20)
s.sendall(b"".join(struct.pack(">H", len(one)) + one for one in ask))
with s.makefile("rb") as stream:
    for i in range(900):
        size = struct.unpack(">H", stream.read(2))[0]
        assert stream.read(size)[3] & 15 == 2, i
print("all")
"""


def test_a_stream_of_questions_that_fail_at_once(lab):
    """There is no way to the name server: each is answered before the next is read."""
    lab.ip("route", "add", "unreachable", NAMESERVER, near=True)
    try:
        argv = ["prlimit", "--stack=524288", "--", lib.program(), *ALLOW, "--allow", "echo.example.org"]
        assert lib.succeeded(lab.bare([*argv, "--", lib.PYTHON, "-c", FAILING])) == b"all\n"
    finally:
        lab.ip("route", "del", "unreachable", NAMESERVER, near=True)


SIGNALLED = """
import signal, socket, sys
for number in (1, 2, 3, 15):
    signal.signal(number, lambda *_: None)
for _ in range(2):
    print(socket.create_connection(("93.184.216.34", int(sys.argv[1])), 20).recv(100), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("sig", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_what_is_sent_to_the_whole_job_is_not_for_the_broker(lab, sig):
    """Ctrl-C, timeout(1), a service that is stopped: the box may go on, with its network."""
    port = 7010 + sig
    lab.tcp("93.184.216.34", port)
    opts = ["--allow", f"93.184.216.34:{port}", "--", lib.PYTHON, "-c", SIGNALLED, str(port)]
    process = lab.start([*ALLOW, *opts])
    lib.read_until(process.stdout, b"hello")
    broker = broker_of(process)
    os.killpg(process.pid, sig)
    process.stdin.write(b"\n")
    assert b"hello" in lib.read_until(process.stdout, b"hello"), "with its network"
    assert broker_of(process) == broker
    _, said = process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert process.returncode == 0 and b"broker" not in said, said


def stop_at_once(process):
    """Stop the broker as soon as there is one. Had it not shut itself in yet?"""
    lib.read_until(process.stdout, b"ready")
    before = set(lib.children(process.pid))
    process.stdin.write(b"\n")
    while process.poll() is None:  # no pause: it has itself shut in after a millisecond
        for pid in set(lib.children(process.pid)) - before:
            with contextlib.suppress(OSError):  # one that has ended meanwhile
                # Not before it has its name: until then the supervisor waits for it.
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"carrel-broker"):
                    os.kill(pid, signal.SIGSTOP)
                    return "Seccomp:\t0" in pathlib.Path(f"/proc/{pid}/status").read_text()
    return False


def test_nobody_waits_for_a_broker_that_does_not_start(lab):
    """It has read nothing of the longest policy: the box's time ends all the same."""
    many = [word for i in range(1020) for word in ("--allow", f"h{i}.example")]
    script = "echo ready; read; echo >/dev/tcp/93.184.216.34/80; sleep 60"
    opts = [*many, "--limit", "time=1s", "--", "bash", "-c", script]
    end = time.monotonic() + lib.TIMEOUT
    while time.monotonic() < end:
        process = lab.start([*ALLOW, *opts])
        if stop_at_once(process):
            process.communicate(timeout=15)
            assert process.returncode == 128 + signal.SIGTERM
            return
        process.kill()
        process.communicate(timeout=15)
    pytest.fail("it was never stopped in time")
