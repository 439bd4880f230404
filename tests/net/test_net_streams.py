"""Streams through the broker: large, long, idle, half closed and broken ones."""

import concurrent.futures
import hashlib
import os
import re
import select
import signal
import socket
import struct
import time

import lib
import pytest
import world as far
from test_net_programs import CURL, HTTP, HTTPS, JAVA, bare, boxed

GIGABYTE = 1 << 30
pytestmark = pytest.mark.usefixtures("idle")
IDLE = f"""
curl -sSN {HTTP}events >plain & a=$!
curl -sSN {HTTPS}events >tls & b=$!
python3 - <<-END & c=$!
import socket, time
s = socket.create_connection(("www.example.org", 7))
time.sleep({far.IDLE})
s.sendall(b"still here")
print(s.recv(100).decode())
END
wait $a && wait $b && wait $c && cat plain tls
"""


@pytest.fixture(scope="module")
def idle(_lab, _world):
    """A box with silent streams, which is there while the other tests of this file run."""
    top = lib.make_dir(lib.root() / "idle")
    project, home = lib.make_dir(top / "project"), lib.make_dir(top / "home")
    opts = ["--allow", "www.example.org", "--allow", "www.example.org:7"]
    opts += ["--env", "SSL_CERT_FILE=/tools/ca.pem", "--mount", f"{_world.tools}:/tools"]
    argv = ["run", "-y", *opts, "--", "sh", "-c", IDLE]
    process = _lab.start(argv, cwd=project, env={"HOME": str(home)})
    process.began = time.monotonic()
    lib.started.remove(process)  # the test that it began with does not end it
    yield process
    process.kill()
    process.communicate()


def test_a_gigabyte_arrives_as_it_was_sent(lab, world):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        expected = pool.submit(world.sum_of_big, GIGABYTE)
        script = f"curl -sS {HTTP}big/{GIGABYTE} | b2sum"
        done = boxed(lab, world, "sh", "-c", script, allow=["www.example.org"], timeout=120)
        assert lib.succeeded(done).split()[0].decode() == expected.result()
    assert re.search(rb"1 host reached \(\S+ sent, 1\.0G received\)", done.stderr), done.stderr


def test_upload(lab, world, project):
    size = 100 << 20
    with open(project / "data", "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    for i, url in enumerate((HTTP, HTTPS)):
        cmd = [*CURL, "-T", "data", url + "upload"]
        done = boxed(lab, world, *cmd, allow=["www.example.org"], timeout=120)
        assert lib.succeeded(done).decode().strip() == lib.digest(project / "data")
        assert lab.heard("http", path="/upload")[i].sum == lib.digest(project / "data")


def test_web_socket(lab, world):
    urls = ["ws://www.example.org/ws", "wss://www.example.org/ws"]
    done = boxed(lab, world, *JAVA, *urls, allow=["www.example.org"])
    assert lib.succeeded(done) == b"echoed 300000\n" * 2
    heard = lab.heard("http", path="/ws")
    assert [(e.tls, e.echoed) for e in heard] == [(False, 300000), (True, 300000)]


def test_an_event_arrives_when_it_is_sent(lab, world):
    """Nothing is kept back: the first event is there long before the stream ends."""
    process = lab.start(["run", "-y", "--allow", "www.example.org", "--", "curl", "-sSN",
                         HTTP + "events"])  # fmt: skip
    said = lib.read_until(process.stdout, b"\n\n", 15)
    assert said.startswith(b"data: first ") and process.poll() is None
    assert time.time() - float(said.split()[2]) < far.IDLE / 2


def test_half_a_close(lab, world):
    """The end of what the client says is not the end of what it hears."""

    def count(connection, entry):
        entry.size, whole = 0, hashlib.sha256()
        while block := connection.recv(65536):
            entry.size += len(block)
            whole.update(block)
        connection.sendall(b"got %d" % entry.size)

    lab.tcp("93.184.216.34", 2000, count)
    cmd = ["python3", "/tools/socket_client.py", "half_close", "v4.example.org", "2000"]
    done = boxed(lab, world, *cmd, allow=["v4.example.org:2000"])
    assert lib.succeeded(done) == b"got 3000000\n"
    assert lab.heard("tcp", port=2000)[0].size == 3000000


def test_behind_urgent_data(lab, world):
    """A read ends before the urgent byte: what is behind it must not wait for more to come."""

    def answer(connection, entry):
        connection.sendall(b"one")
        connection.send(b"!", socket.MSG_OOB)
        connection.sendall(b"two")
        entry.said = b""
        while len(entry.said) < 6 and (block := connection.recv(100)):
            entry.said += block
        connection.recv(1)

    lab.tcp("93.184.216.34", 2021, answer)
    cmd = ["python3", "/tools/socket_client.py", "urgent", "v4.example.org", "2021"]
    done = boxed(lab, world, *cmd, allow=["v4.example.org:2021"])
    assert lib.succeeded(done) == b"onetwo\n" * 50
    assert [e.said for e in lab.heard("tcp", port=2021)] == [b"onetwo"] * 50


def test_behind_urgent_data_in_the_middle_of_much(lab, world):
    """splice(2) stops there, and calls it the end when there is one."""

    def answer(connection, entry):
        entry.said = b""
        while not entry.said.endswith(b"the end") and (block := connection.recv(65536)):
            entry.said += block
        connection.sendall(b"yes")
        connection.sendall(b"x" * 400000)
        connection.send(b"!", socket.MSG_OOB)
        connection.sendall(b"the end")

    lab.tcp("93.184.216.34", 2022, answer)
    cmd = ["python3", "/tools/socket_client.py", "urgent_bulk", "v4.example.org", "2022"]
    done = boxed(lab, world, *cmd, allow=["v4.example.org:2022"])
    assert lib.succeeded(done) == b"yes 400007 the end\n"
    assert [len(e.said) for e in lab.heard("tcp", port=2022)] == [400007]


def count_all(connection, entry):
    """How much came, and whether that was the whole of it."""
    entry.size, entry.end = 0, None
    try:
        while block := connection.recv(65536):
            entry.size += len(block)
        entry.end = "whole"
    except OSError as error:
        entry.end = str(error)


def test_sent_and_gone(lab, world):
    """What a program sends before the whole box ends arrives, also when the server is slow."""

    def count(connection, entry):
        time.sleep(0.3)
        count_all(connection, entry)

    lab.tcp("93.184.216.34", 2002, count)
    script = "import os, socket\ns = socket.create_connection(('v4.example.org', 2002))\n"
    script += "s.sendall(b'z' * 3000000)\nos._exit(0)\n"
    lib.succeeded(boxed(lab, world, "python3", "-c", script, allow=["v4.example.org:2002"]))
    heard = lib.wait_for(lambda: lab.heard("tcp", port=2002), "the connection")
    entry = heard[0]
    lib.wait_for(lambda: getattr(entry, "end", None), "the end")
    assert (entry.size, entry.end) == (3000000, "whole")


def test_sent_and_gone_at_a_rate(lab, world):
    """The box has ended: what it left is not held up any more, and not thrown away."""
    lab.tcp("93.184.216.34", 2006, count_all)
    script = "import socket\ns = socket.create_connection(('v4.example.org', 2006))\n"
    script += "s.sendall(b'z' * 60000)\n"
    opts = ["--limit", "rate=10K"]
    lib.succeeded(
        boxed(lab, world, "python3", "-c", script, allow=["v4.example.org:2006"], opts=opts)
    )
    entry = lib.wait_for(lambda: lab.heard("tcp", port=2006), "the connection")[0]
    lib.wait_for(lambda: getattr(entry, "end", None), "the end")
    assert (entry.size, entry.end) == (60000, "whole")


RESET = """
import select, socket, struct, sys, time
s = socket.create_connection(("v4.example.org", int(sys.argv[1])))
if sys.argv[2] == "client":
    s.shutdown(socket.SHUT_WR)
    time.sleep(0.3)
    s.close()  # with something unread: a reset
    time.sleep(20)
else:
    assert s.recv(5) == b"hello" and s.recv(1) == b""
    p = select.poll()
    p.register(s, 0)
    print(bool(p.poll(10000)))
"""


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_reset_after_half_a_close(lab, world, side):
    """Whoever has said all may still be cut off, and the other one hears of that."""
    port = 2004 + (side == "server")

    def serve(connection, entry):
        connection.sendall(b"hello")
        if side == "client":
            assert connection.recv(1) == b""
            watch = select.poll()
            watch.register(connection, 0)
            entry.told = bool(watch.poll(10000))
            return
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    lab.tcp("93.184.216.34", port, serve)
    words = ["run", "-y", "--allow", f"v4.example.org:{port}", "--", lib.PYTHON, "-c", RESET]
    process = lab.start([*words, str(port), side])
    if side == "server":
        assert process.communicate(timeout=30)[0] == b"True\n"
        return
    entry = lib.wait_for(lambda: lab.heard("tcp", port=port), "the connection")[0]
    lib.wait_for(lambda: hasattr(entry, "told"), "the end")
    assert entry.told


def test_a_reset_is_a_reset(lab, world):
    """What was cut off must not look whole."""

    def cut(connection, _):
        connection.sendall(b"half of it")
        time.sleep(0.3)
        connection.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: close() resets

    lab.tcp("93.184.216.34", 2001, cut)
    cmd = ["python3", "/tools/socket_client.py", "reset", "v4.example.org", "2001"]
    assert lib.succeeded(boxed(lab, world, *cmd, allow=["v4.example.org:2001"])) == b"reset\n"


# How a client ends, and what its kernel makes of that: the server sees an end or a reset.
ENDS = {
    "half": (2030, 0, "end"),
    "close": (2031, 0, "end"),
    "close_unread": (2032, 0, "reset"),
    "linger": (2033, 0, "reset"),
    "killed": (2034, signal.SIGKILL, "end"),
    "killed_unread": (2035, signal.SIGKILL, "reset"),
}


def hear_the_end(connection, entry):
    """Answer what is said, once before its end and, if it is an orderly one, once behind it."""
    entry.said = connection.recv(100)
    connection.sendall(b"heard")
    try:
        entry.said += connection.recv(100)
    except ConnectionResetError:
        entry.end = "reset"
        return
    entry.end = "end"
    connection.sendall(b" to the end")


def ends_seen(lab, port, count):
    """What the server saw of the first so many connections."""

    def seen():
        heard = lab.heard("tcp", port=port)[:count]
        return len(heard) == count and all(hasattr(e, "end") for e in heard) and heard

    return [(e.said, e.end) for e in lib.wait_for(seen, "the end of the connection")]


@pytest.mark.parametrize("how", ENDS)
def test_the_end_that_a_client_makes(lab, world, how):
    """The server sees of a client in a box what it sees of the same one in none."""
    port, killed, end = ENDS[how]
    lab.tcp("93.184.216.34", port, hear_the_end)
    cmd = ["python3", "/tools/socket_client.py", f"end_{how}", "v4.example.org", str(port)]
    control = bare(lab, world, *cmd)
    assert ends_seen(lab, port, 1) == [(b"said", end)]
    done = boxed(lab, world, *cmd, allow=[f"v4.example.org:{port}"])
    assert ends_seen(lab, port, 2) == [(b"said", end)] * 2
    assert done.returncode == (128 + killed if killed else 0) and control.returncode == -killed
    assert done.stdout == control.stdout == (b"heard to the end\n" if how == "half" else b"")


def test_the_end_of_one_who_is_killed(lab, world):
    """The box goes on: the server sees the end before the box has one."""
    lab.tcp("93.184.216.34", 2036, hear_the_end)
    opts = ["--mount", f"{world.tools}:/tools", "--allow", "v4.example.org:2036"]
    cmd = ["python3", "/tools/socket_client.py", "end_child_killed", "v4.example.org", "2036"]
    process = lab.start(["run", "-y", *opts, "--", *cmd])
    assert ends_seen(lab, 2036, 1) == [(b"said", "end")]
    assert process.poll() is None
    _, err = process.communicate(timeout=lib.TIMEOUT)
    assert process.returncode == 0, err


def test_nobody_listens(lab, world):
    """A refusal outside is a quick failure inside, and never an orderly end: who only reads would
    take that for an empty answer."""
    begun, allow = time.monotonic(), ["v4.example.org:2003"]
    done = boxed(lab, world, *CURL, "http://v4.example.org:2003/", allow=allow)
    assert done.returncode in (7, 52, 56) and time.monotonic() - begun < 10, done
    cmd = ["python3", "/tools/socket_client.py", "reset", "v4.example.org", "2003"]
    assert lib.succeeded(boxed(lab, world, *cmd, allow=allow)) == b"reset\n"


def test_idle_streams_live(lab, world, idle):
    """Server-sent events with a long silence, plain and with TLS, and a silent TCP connection."""
    out, err = idle.communicate(timeout=lib.TIMEOUT)
    assert idle.returncode == 0, err
    assert time.monotonic() - idle.began >= far.IDLE
    assert re.findall(rb"still here|first|last", out) == [b"still here", *[b"first", b"last"] * 2]
