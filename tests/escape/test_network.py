"""Attacks by way of the network. The verdict is the listener's on the host: did it hear?

`--network host` is the control of everything that only the box's own network namespace stops.
"""

import contextlib
import os
import select
import socket

import arena
import lib
import pytest
from arena import inside, outside

pytestmark = pytest.mark.usefixtures("tool")

HOST = ["--network", "host"]


class Listener:
    """A socket on the host that remembers whether anybody said anything."""

    def __init__(self, family, kind, address):
        self.socket = socket.socket(family, kind)
        self.socket.bind(address)
        self.stream = kind == socket.SOCK_STREAM
        if self.stream:
            self.socket.listen()
        self.port = self.socket.getsockname()[1] if family != socket.AF_UNIX else None

    def heard(self):
        """Has somebody connected, or has a datagram come?"""
        if not select.select([self.socket], [], [], 0.1)[0]:
            return False
        if self.stream:
            self.socket.accept()[0].close()
        else:
            self.socket.recv(100)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, contextlib.suppress(OSError):
        s.connect(("192.0.2.1", 9))
        return s.getsockname()[0]
    return None


TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
REACH = {
    "tcp 127.0.0.1": (socket.AF_INET, TCP, "127.0.0.1", "tcp 127.0.0.1 {}"),
    "tcp any loopback address": (socket.AF_INET, TCP, "0.0.0.0", "tcp 127.1.2.3 {}"),
    "tcp 0.0.0.0": (socket.AF_INET, TCP, "0.0.0.0", "tcp 0.0.0.0 {}"),
    "tcp ::1": (socket.AF_INET6, TCP, "::1", "tcp ::1 {}"),
    "tcp mapped IPv4": (socket.AF_INET, TCP, "127.0.0.1", "tcp ::ffff:127.0.0.1 {}"),
    "udp 127.0.0.1": (socket.AF_INET, UDP, "127.0.0.1", "udp 127.0.0.1 {}"),
    "udp ::1": (socket.AF_INET6, UDP, "::1", "udp ::1 {}"),
    "abstract stream": (socket.AF_UNIX, TCP, "\0carrel-test-{}", "unix @carrel-test-{}"),
    "abstract datagram": (socket.AF_UNIX, UDP, "\0carrel-test-{}", "unixdgram @carrel-test-{}"),
}


@pytest.mark.parametrize("family, kind, bound, step", REACH.values(), ids=REACH)
def test_listener_on_the_host_is_not_reached(family, kind, bound, step):
    """A service on the host's loopback, and abstract sockets (rule 7), with no network."""
    mark = os.getpid()
    address = bound.format(mark) if family == socket.AF_UNIX else (bound, 0)
    with Listener(family, kind, address) as listener:
        words = step.format(listener.port or mark)
        inside(words)
        assert not listener.heard()
        if family == socket.AF_UNIX:
            # With the host's network the scope of Landlock, where it has one, is what stops it.
            inside(words, opts=HOST)
            assert listener.heard() == (lib.LANDLOCK < 6)
            outside(words)
        else:
            inside(words, opts=HOST)
        assert listener.heard()


def test_own_address_of_the_host_is_not_reached():
    """The machine's address on its real network."""
    address = own_address() or "127.0.0.1"
    with Listener(socket.AF_INET, TCP, ("0.0.0.0", 0)) as listener:
        inside(f"tcp {address} {listener.port}")
        assert not listener.heard()
        inside(f"tcp {address} {listener.port}", opts=HOST)
        assert listener.heard()


def test_there_is_no_route():
    """Addresses elsewhere, metadata and private ones included: unreachable at once."""
    steps = [f"tcp {a} 80" for a in ("192.0.2.1", "169.254.169.254", "10.0.0.1", "2001:db8::1")]
    steps += [f"udp {a} 53" for a in ("192.0.2.1", "8.8.8.8", "224.0.0.251", "255.255.255.255")]
    said = inside(*steps, "links", "read /proc/net/route")
    assert set(said[:8]) <= {"ENETUNREACH", "EACCES", "EADDRNOTAVAIL", "EHOSTUNREACH"}, said
    assert said[8] == "ok lo "
    assert said[9].count("\\x0a") <= 1
    names = inside("links", opts=HOST)[0].removeprefix("ok ").split()
    assert sorted(names) == sorted(name for _, name in socket.if_nameindex())


def received(raw):
    """All packets that a raw socket has got."""
    packets = []
    with contextlib.suppress(BlockingIOError):
        while True:
            packets.append(raw.recv(2000))
    return packets


def test_raw_packets():
    """Raw IP and ping sockets: no capability, and no host network to send them to."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) if lib.ROOT else (
        contextlib.nullcontext()
    ) as raw:
        said = inside("rawip 127.0.0.1", "ping 127.0.0.1", "sys socket 17 3 0x300")
        assert said[0] == "EPERM" and said[2] == "EAFNOSUPPORT", said
        said = inside("rawip 127.0.0.1", "sys socket 17 3 0x300", opts=HOST)
        assert said == ["EPERM", "EAFNOSUPPORT"]
        if raw:
            # Other programs of this machine use UDP on its loopback as well.
            raw.setblocking(False)
            assert not any(b"attack" in packet for packet in received(raw))
            outside("rawip 127.0.0.1", user=False)
            assert any(b"attack" in packet for packet in received(raw))


@pytest.mark.parametrize("opts", [[], HOST], ids=["none", "host"])
def test_vsock(opts):
    """A network namespace does not contain AF_VSOCK: the family is refused (rule 6)."""
    assert inside("vsock 2 1", "socket 40 1 0", opts=opts) == ["EAFNOSUPPORT"] * 2
    said = outside("socket 40 1 0")
    assert said == ["ok"] or not os.path.exists("/dev/vsock"), said


def test_netlink():
    """Only the routing family of netlink, and it cannot change anything."""
    said = inside(*[f"socket 16 3 {p}" for p in (0, 4, 9, 12, 15, 16)])
    assert said == ["ok"] + ["EAFNOSUPPORT"] * 5, said
    assert outside(*[f"socket 16 3 {p}" for p in (0, 12, 15, 16)]) == ["ok"] * 4


def test_socket_file_of_the_host(project, place):
    """A UNIX socket in the file system is reached where it is mounted, and only there."""
    path = place / "s"
    with Listener(socket.AF_UNIX, TCP, str(path)) as listener:
        path.chmod(0o777)
        inside(f"unix {path}")
        inside(f"unix {path}", opts=HOST)
        assert not listener.heard()
        outside(f"unix {path}")
        assert listener.heard()


def test_servers_of_two_boxes_do_not_meet(project):
    """What listens in one box is not there for another, nor for the host."""
    serve = (
        "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n"
        "open('port', 'w').write(str(s.getsockname()[1]))\n"
        "open('met.not', 'w')\ns.settimeout(20)\n"
        "try: s.accept(); open('met', 'w')\nexcept OSError: pass\n"
    )
    process = lib.start_box("/usr/bin/python3", "-c", serve)
    arena.await_file(process, project / "met.not")
    port = (project / "port").read_text()
    said = inside(f"tcp 127.0.0.1 {port}") + outside(f"tcp 127.0.0.1 {port}")
    assert said == ["ECONNREFUSED"] * 2 and not (project / "met").exists()
    process.kill()
    process.wait()
    (project / "met.not").unlink()
    process = lib.start_box("/usr/bin/python3", "-c", serve, opts=HOST)
    arena.await_file(process, project / "met.not")
    assert inside(f"tcp 127.0.0.1 {(project / 'port').read_text()}", opts=HOST) == ["ok"]
    lib.wait_for((project / "met").exists, "the meeting")


def test_proxy_variables_and_dev_tcp():
    """Neither variables nor bash's /dev/tcp lead anywhere."""
    with Listener(socket.AF_INET, TCP, ("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        env = {name: url for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY")}
        script = f"echo attack > /dev/tcp/127.0.0.1/{listener.port}; env"
        done = lib.box("/bin/bash", "-c", script, env=env)
        assert not listener.heard()
        assert b"proxy" not in done.stdout.lower()
        lib.box("/bin/bash", "-c", script, opts=HOST)
        assert listener.heard()


