"""Connections that the kernel gives to the broker as they are, for the address that was dialled.

So the broker's end has that address and port inside the box, and with nobody to take them such
connections would be the box's own.
"""

import os
import re
import signal
import subprocess
import time

import lib
import pytest
from lab import Lab
from test_broker_faults import broker_of

V4, V6, OTHER = "93.184.230.34", "2606:2800:230::34", "93.184.230.35"
pytestmark = pytest.mark.usefixtures("project")
OPEN = ["run", "-y", "--network", "open", "--", lib.PYTHON, "-c"]


def serve(connection, entry):
    """Says three words after each that it hears, in three packets."""
    while heard := connection.recv(100):
        entry.got += heard
        for word in (b"one ", b"two ", b"three\n"):
            connection.send(word)


@pytest.fixture(scope="module")
def lab():
    world = Lab()
    world.dns({"a.example": [V4, V6]})
    for address in (V4, V6):
        world.tcp(address, 8080, serve)
    yield world
    world.close()


PRELUDE = f"""
import socket, sys, threading, time
V4, V6, PORT = "{V4}", "{V6}", 8080
def ask(address, port=PORT):
    try:
        with socket.create_connection((address, port), 10) as c:
            c.sendall(b"x")
            return c.makefile("rb").readline().decode() or "the end"
    except OSError as why:
        return type(why).__name__
def wait():
    print("waiting", flush=True)
    sys.stdin.readline()
"""

# A server on all addresses.
INSIDE = """
s = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=500)
def answer():
    while True:
        s.accept()[0].sendall(b"inside\\n")
threading.Thread(target=answer, daemon=True).start()
"""

TAKE = (
    PRELUDE
    + INSIDE
    + """
print(ask("127.0.0.1"), ask(V4), ask(V6), ask("a.example"), sep="")
wait()
print(ask("127.0.0.1"), ask(V4), ask(V6), ask("10.0.0.1"), sep=" ")
"""
)


def test_a_dead_brokers_place_cannot_be_taken(lab):
    """Nor by a server of the box that listens on all addresses, at the port that is dialled."""
    process = lab.start([*OPEN, TAKE])
    before = lib.read_until(process.stdout, b"waiting\n").decode()
    assert before.split("\n")[:4] == ["inside", *3 * ["one two three"]]
    os.kill(broker_of(process), signal.SIGKILL)
    out, err = process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert out.decode().split() == ["inside", *3 * ["ConnectionResetError"]], (out, err)
    assert b"the broker of the box's network ended" in err


KEEP = (
    PRELUDE
    + """
c = socket.create_connection((V4, PORT))
c.sendall(b"x")
c.makefile("rb").readline()
wait()
try:
    print(c.recv(1))
except OSError as why:
    print(type(why).__name__)
"""
)


def test_the_first_connection_is_like_all_others(lab):
    """It is there before the broker is, which it wakes: cut off, it does not look complete."""
    process = lab.start([*OPEN, KEEP])
    lib.read_until(process.stdout, b"waiting\n")
    os.kill(broker_of(process), signal.SIGKILL)
    out, err = process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert out == b"ConnectionResetError\n", (out, err)


BIND = (
    PRELUDE
    + """
with socket.create_connection((V4, PORT)) as c:
    c.sendall(b"x")
    c.makefile("rb").readline()
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        socket.create_server((address, PORT), family=family).close()
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as s:
        with socket.create_connection(("127.0.0.1", PORT)) as to:
            s.accept()[0].close()
            print(to.recv(1))
    c.sendall(b"x")
    print(c.makefile("rb").readline())
"""
)


def test_a_server_on_the_port_that_was_dialled(lab):
    """The connection has that port in the box, too; who binds as servers do is not disturbed."""
    assert lib.succeeded(lab.run([*OPEN, BIND])) == b"b''\nb'one two three\\n'\n"


DIAL = (
    PRELUDE
    + """
def dial(to, source=None, *options):
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(family) as c:
        c.settimeout(10)
        for option in options:
            c.setsockopt(*option)
        if source:
            c.bind((source, 0))
        c.connect((to, PORT))
        c.sendall(b"x")
        return c.makefile("rb").readline().decode().strip()
"""
)

OWN = (
    DIAL
    + """
def listen(address):
    v6 = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.create_server((address, PORT), family=v6)
    def answer():
        while True:
            s.accept()[0].sendall(address.encode() + b"\\n")
    threading.Thread(target=answer, daemon=True).start()
FREEBIND, TRANSPARENT = (0, 15, 1), (0, 19, 1)
stands = socket.getaddrinfo("a.example", PORT, socket.AF_INET)[0][4][0]
own = ["127.0.0.1", "127.1.2.3", "198.18.0.2", "::1", "fd63:6172:7265:6c00::2"]
for address in (stands, V4, *own):
    listen(address)
for source in (None, "127.0.0.1", "198.18.0.2", "198.18.0.1", "10.1.2.3", V4, stands):
    assert dial(stands, source) == dial(V4, source) == "one two three", source
assert dial("::ffff:" + V4) == dial(V4, "1.2.3.4", FREEBIND) == "one two three"
for address in own:
    assert dial(address) == address
    assert dial(address, address) == address
try:
    dial(V4, None, TRANSPARENT)
except PermissionError:
    print("all")
"""
)


def test_own_sockets_are_in_nobodys_way(lab):
    """Servers on the very addresses that are dialled, and clients that are bound to any.

    What goes out is heard outside, and what is the box's own stays in it.
    """
    lab.clear()
    opts = ["--allow", "a.example:8080", "--allow", f"{V4}:8080"]
    done = lab.run(["run", "-y", "--network", "allow", *opts, "--", lib.PYTHON, "-c", OWN])
    assert lib.succeeded(done) == b"all\n"
    assert len(lab.heard("tcp", port=8080, got=b"x")) == 16


# Packets that carry one of the box's own addresses where the other family has its destination:
# in half of an IPv6 source, and in IPv4 options.
ALIKE = (
    DIAL
    + INSIDE
    + """
FREEBIND_V6 = (socket.IPPROTO_IPV6, 78, 1)
def recorded(address):  # a full record of the route, with an address in it
    return (socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([7, 20, 21, 0]) + address)
for part in ("7e00:1", "c612:3", "7f00:1", "c612:2"):
    print(dial(V6, f"2606:2800:231::{part}:0:0", FREEBIND_V6))
for like in ("::3", "::1", "fd63:6172:7265:6c00::2"):
    print(dial(V4, None, recorded(socket.inet_pton(socket.AF_INET6, like))))
"""
)


def test_the_destination_alone_decides(lab):
    """Each rule reads the destination of its own family: all of these packets go out."""
    lab.clear()
    said = lib.succeeded(lab.run([*OPEN, ALIKE])).decode().splitlines()
    assert said == ["one two three"] * 7
    assert len(lab.heard("tcp", port=8080, got=b"x")) == 7


# Connections without end to the outside, beside such a server.
BURST = (
    PRELUDE
    + INSIDE
    + """
import collections, concurrent.futures
said, longest = collections.Counter(), 0
end = time.monotonic() + 0.7
def one(address):
    began = time.monotonic()
    return ask(address).strip(), time.monotonic() - began
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    while time.monotonic() < end:
        for word, took in pool.map(one, [V4, V6] * 8):
            said[word] += 1
            longest = max(longest, took)
print(*said, longest)
"""
)


TWICE = """
import socket, sys
for _ in range(2):
    sys.stdin.readline()
    s = socket.create_connection(("a.example", 8080), 20)
    s.sendall(b"a byte of the box")
    s.recv(100)
    print("there", flush=True)
"""


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_a_connection_is_told_of_before_its_bytes(lab):
    """Seen from outside of the broker: a broker that is killed can have hidden nothing."""
    argv = ["run", "-y", "--allow", "a.example:8080", "--", lib.PYTHON, "-c", TWICE]
    process = lab.start(argv)
    process.stdin.write(b"\n")
    lib.read_until(process.stdout, b"there")
    trace = lib.current.home / "trace"
    strace = subprocess.Popen(["strace", "-s", "500", "-o", trace, "-p", str(broker_of(process))],
                              stderr=subprocess.PIPE)  # fmt: skip
    lib.started.append(strace)
    lib.read_until(strace.stderr, b"attached")
    process.communicate(b"\n", timeout=lib.TIMEOUT)
    strace.wait(lib.TIMEOUT)
    calls = trace.read_text().splitlines()

    def first(*words):
        return next(n for n, call in enumerate(calls) if all(word in call for word in words))

    dialled, sent = first("connect(", "htons(8080)"), first("sendto(", "a byte of the box")
    assert any(call.startswith("sendmsg(3,") for call in calls[dialled:sent]), calls


def test_a_broker_killed_at_any_moment(lab):
    """While it starts, too, with connections that wait for it: each is made outside, or reset."""
    seen = set()
    for pause in (0, 0, 0.001, 0.002, 0.005, 0.02, 0.1, 0.3):
        process = lab.start([*OPEN, BURST])
        broker = broker_of(process)
        time.sleep(pause)
        os.kill(broker, signal.SIGKILL)
        out, err = process.communicate(timeout=lib.TIMEOUT)
        *words, longest = out.decode().replace("one two three", "outside").split()
        assert set(words) <= {"outside", "ConnectionResetError"} and float(longest) < 5, out
        assert b"broker" in err
        seen |= set(words)
    assert seen == {"outside", "ConnectionResetError"}
