"""Attacks on the explicit proxy of a box (--proxy): targets in CONNECT and SOCKS form.

What is said to it is made by hand; the verdict is that of the servers outside and near. Its
controls: the same targets without a box in test_attacks.py, and here the one that is allowed.
"""

import os
import signal
import struct

import pytest
from lab import OWN
from test_attacks import (  # noqa: F401
    DATAGRAMS, EVIL, GOOD, HOST, MACHINE, OPEN, PING, PORTS, PRIVATE, RAW, SOME, USERS, V4, V6,
    WAIT, _world, asked, broker_of, forget, go, greeted, heard, packets, probe, waiting, world,
)  # fmt: skip

PROXY = [*SOME, "--proxy"]


def connect(target, head="", method="CONNECT", version=" HTTP/1.1", end="\r\n"):
    text = f"{method} {target}{version}{end}{head}{end}"
    return text.encode("latin-1").hex()


def socks(kind, target, port, command=1):
    """A greeting and a request in one go."""
    greeting = b"\5\1\0\5" + bytes([command]) + b"\0" + bytes([kind])
    return (greeting + target + struct.pack(">H", port)).hex()


def named(name, port=80, **how):
    return socks(3, bytes([len(name)]) + name, port, **how)


GOODS = {
    "a name": connect(f"{HOST}:80"),
    "in capitals and with a dot": connect("ATTACK.Example.:80"),
    "another Host": connect(f"{HOST}:80", "Host: other.example\r\n"),
    "two requests": connect(f"{HOST}:80") + connect("other.example:80"),
    "SOCKS": named(HOST.encode()),
    "SOCKS with capitals": named(b"Attack.EXAMPLE."),
}
TARGETS = [
    # other hosts and ports, and what is no host and port
    "other.example:80", f"x.{HOST}:80", f"evil{HOST}:80", f"{HOST}:22", f"{HOST}:8080", HOST,
    f"{HOST}:", f"{HOST}:080", f"{HOST}:65616", f"{HOST}:0", f"{HOST}:+80", f"{HOST}:80 ", ":80",
    f" {HOST}:80", "*:80", f"user@{HOST}:80", f"{HOST}:80@{EVIL}", f"{HOST}:80/", f"[{HOST}]:80",
    f"http://{HOST}:80", f"{HOST}\0.evil:80", f"{HOST}%00.evil:80", f"{HOST}\t:80", f"{HOST}#:80",
    f"{HOST}..:80", f"{HOST}:80,x:80", "b\xfccher.example:80", "a" * 64 + ".example:80",
    "a." * 200 + "example:80",
    # addresses, and the machine
    f"{V4}:80", f"[{V6}]:80", f"[::ffff:{V4}]:80", "10.66.0.1:80", "[::ffff:10.66.0.1]:80",
    "169.254.169.254:80", "[64:ff9b::a42:1]:80", "[fd00:66::1]:80", "127.0.0.1:7100",
    "[::1]:7100", "localhost:7100", "x.localhost:7100", "LOCALHOST.:7100", "127.1:7101",
    "0x7f.0.0.1:7101", "0177.0.0.1:7101", "2130706433:7101", "0:7101", "0.0.0.0:7101",
    "[::]:7101", "[::127.0.0.1]:7101", "[fe80::1%lo]:7101", f"{OWN[0]}:7101", f"[{OWN[1]}]:7101",
    "host.internal:7100", "host.internal.:80", "198.18.1.0:80", "198.18.0.1:53",
]  # fmt: skip
BAD = {repr(t[:40]): connect(t) for t in TARGETS} | {
    "GET": connect("http://attack.example/", method="GET"),
    "GET of another": connect("http://other.example/", method="GET"),
    "POST": connect(f"{HOST}:80", method="POST"),
    "lower case": connect(f"{HOST}:80", method="connect"),
    "no version": connect(f"{HOST}:80", version=""),
    "HTTP/2": connect(f"{HOST}:80", version=" HTTP/2.0"),
    "only LF": connect(f"{HOST}:80", end="\n"),
    "LF in the target": connect(f"{HOST}:80\nx"),
    "CR in a header": connect(f"{HOST}:80", "X: a\rb\r\n"),
    "half a head": connect(f"{HOST}:80")[:-4],
    "a long head": connect(f"{HOST}:80", "X: y\r\n" * 2000),
    "SOCKS4": (b"\4\1\0\x50" + bytes([10, 66, 0, 1]) + b"\0").hex(),
    "SOCKS4a": (b"\4\1\0\x50\0\0\0\1\0" + HOST.encode() + b"\0").hex(),
    "SOCKS with a login": (b"\5\1\2").hex(),
    "SOCKS not listed": named(b"other.example"),
    "SOCKS other port": named(HOST.encode(), 22),
    "SOCKS NUL": named(HOST.encode() + b"\0.evil.example"),
    "SOCKS NUL at the end": named(HOST.encode() + b"\0"),
    "SOCKS address as a name": named(b"127.0.0.1", 7100),
    "SOCKS number as a name": named(b"2130706433", 7101),
    "SOCKS empty": named(b""),
    "SOCKS IPv4": socks(1, bytes([10, 66, 0, 1]), 80),
    "SOCKS loopback": socks(1, bytes([127, 0, 0, 1]), 7100),
    "SOCKS zeros": socks(1, bytes(4), 7101),
    "SOCKS IPv6 loopback": socks(4, bytes(15) + b"\1", 7100),
    "SOCKS mapped": socks(4, bytes(10) + b"\xff\xff" + bytes([127, 0, 0, 1]), 7100),
    "SOCKS bind": named(HOST.encode(), command=2),
    "SOCKS datagrams": named(HOST.encode(), command=3),
    "SOCKS unknown type": socks(9, b"", 80),
    "TLS": "1603010200010001fc0303",
    "nothing": "",
}


@pytest.mark.parametrize("who", USERS)
def test_no_target_but_the_allowed_is_reached(world, who):  # noqa: F811
    steps = [["proxy", packet] for packet in [*BAD.values(), *GOODS.values()]]
    said = probe(world, PROXY, steps, who)
    names = {step[1]: name for name, step in zip([*BAD, *GOODS], steps, strict=True)}
    assert [names[s[1]] for s in greeted(steps, said)] == list(GOODS)
    silent = {names[step[1]] for step, answer in zip(steps, said, strict=True) if not answer}
    assert silent == {"half a head", "lower case", "TLS", "nothing"}  # others are told why
    assert len(heard(world)) == len(GOODS) and set(heard(world)) <= {(V4, 80), (V6, 80)}
    assert world.near.heard == [] and asked(world) == {(HOST, "A"), (HOST, "AAAA")}


def test_there_is_no_way_but_the_proxy(world):  # noqa: F811
    """Not one packet from programs that do not ask it."""
    before = packets(world)
    steps = [*GOOD, *RAW, *PORTS, *PRIVATE[:5], *MACHINE, *DATAGRAMS, *PING, ["lookup", HOST]]
    assert greeted(steps, probe(world, PROXY, steps)) == []
    assert packets(world) == before and world.near.heard == []


def test_open_through_the_proxy(world):  # noqa: F811
    """The public Internet, and nothing else."""
    public = [connect(t) for t in ("other.example:80", f"{V4}:80", f"[{V6}]:80", f"{HOST}:22")]
    words = ("10.66", ":710", "169.254", "ff9b", "fd00")
    rest = [connect(t) for t in TARGETS if any(w in t for w in words)]
    steps = [["proxy", packet] for packet in [*rest, *public]]
    said = probe(world, [*OPEN, "--proxy"], steps)
    assert greeted(steps, said) == [["proxy", p] for p in public]
    assert world.near.heard == [] and len(heard(world)) == len(public)


def test_slow_heads_and_a_killed_broker(world):  # noqa: F811
    """Half requests do not keep whole ones out; without the broker there is nothing."""
    script = ["proxy", GOODS["a name"]]
    steps = [["crowd", 200], script, WAIT, script, *GOOD, *RAW]
    with waiting(world, PROXY, steps) as process:
        assert len(heard(world)) == 1
        forget(world)
        before = packets(world)
        os.kill(broker_of(process), signal.SIGKILL)
        said, complained = go(process, steps)
    assert said[0] == 200 and greeted(steps, said[:2] + [""] + said[3:]) == [script]
    assert packets(world)[0] <= before[0] + 4 and heard(world) == [] and "broker" in complained
