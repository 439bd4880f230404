"""Resolvers in a box: of glibc, musl, c-ares and Go, and questions as bytes.

What a name leads to is an address of the box; that it leads to the right host is seen where
the server is. Names that are not allowed are not asked about outside.
"""

import collections
import datetime
import json
import re
import struct
import time

import lib
import pytest
import world as far
from lab import NAMESERVER, OWN, Name
from test_broker_faults import broker_of, seconds_of
from test_net_programs import CURL, boxed

V4, V6 = r"198\.18\.[1-9]\d*\.\d+", r"fd63:6172:7265:6c00::[0-9a-f:]+"
BOTH = rf"({V4} {V6}|{V6} {V4})"
NAMES = ["www.example.org", "v4.example.org", "v6.example.org"]
RESOLVERS = {
    "glibc": ["/tools/lookup-glibc"],
    "musl": ["/tools/lookup-musl"],
    "go": ["/tools/lookup-go"],
}


def events(lab, kind):
    """Those of the last box."""
    lines = lib.succeeded(lab.run(["events", "carrel-project", "--json"])).splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


@pytest.mark.parametrize("cmd", RESOLVERS.values(), ids=RESOLVERS)
def test_resolver(lab, world, cmd):
    """Names have both kinds of address, whichever they have outside; the same each time."""
    allow = ["*.example.org:7", "*.example.org:443"]
    done = boxed(lab, world, *cmd, *NAMES, NAMES[0], allow=allow)
    lines = [line.strip() for line in lib.succeeded(done).decode().splitlines()]
    assert len(lines) == 4 and all(re.fullmatch(BOTH, line) for line in lines), lines
    assert lines[0] == lines[3] and len(set(lines)) == 3
    assert {e.name for e in lab.heard("dns")} == set(NAMES)

    lab.clear()
    done = boxed(lab, world, *cmd, "www.example.org", allow=["git.example.org"])
    assert done.returncode != 0 and not re.search(V4, done.stdout.decode())
    asked, ended = (datetime.datetime.fromisoformat(events(lab, kind)[0]["time"])
                    for kind in ("lookup", "end"))  # fmt: skip
    assert not lab.heard("dns") and (ended - asked).total_seconds() < 3, "an error, and at once"


def test_getent(lab, world):
    """What each of them prints: an address to a line, by socket type, or with the name."""
    asks = ["ahosts v4.example.org", "hosts v6.example.org", "ahostsv4 x.invalid"]
    script = "; echo; ".join(f"getent {ask} && echo found" for ask in asks)
    done = boxed(lab, world, "sh", "-c", script, allow=NAMES)
    assert done.returncode == 2, "of the last, which is not there"
    all_of_it, one, none = done.stdout.decode().split("\n\n")
    *lines, found = all_of_it.splitlines()
    addresses = " ".join(dict.fromkeys(line.split()[0] for line in lines))
    assert re.fullmatch(BOTH, addresses) and found == "found"
    assert re.fullmatch(rf"{V6} +v6\.example\.org\nfound", one) and none == ""


def test_node(lab, world):
    done = boxed(lab, world, "node", "/tools/lookup.mjs", "www.example.org", allow=NAMES)
    said = dict(line.split(" ", 1) for line in lib.succeeded(done).decode().splitlines())
    assert re.search(V4, said["lookup"]) and re.search(V6, said["lookup"])
    assert re.fullmatch(rf'\["{V4}"\]', said["resolve4"])
    assert re.fullmatch(rf'\["{V6}"\]', said["resolve6"])
    assert [said[t] for t in ("mx", "txt", "srv")] == ["ENODATA"] * 3
    assert said["none"] == "ENOTFOUND"
    assert {(e.name, e.type) for e in lab.heard("dns")} == {
        ("www.example.org", "A"), ("www.example.org", "AAAA")}  # fmt: skip


# ---- as bytes -----------------------------------------------------------------------------

OURS_V6 = "fd63:6172:7265:6c00::1"  # of the box's own resolver
SERVERS = ["93.184.216.53", "127.0.0.53", "2606:2800:220::53", "::1", OURS_V6]
A, MX, TXT, AAAA, SRV, SVCB, HTTPS, ANY = "1", "15", "16", "28", "33", "64", "65", "255"


def ask(lab, world, how, edns, name, *types, server="198.18.0.1", allow=NAMES):
    cmd = ["python3", "/tools/ask.py", how, server, str(edns), name, *types]
    said = lib.succeeded(boxed(lab, world, *cmd, allow=allow)).decode().split("\n")[:-1]
    rows = [line.split() for line in said]
    assert all(int(row[-1]) < 3000 for row in rows), "promptly"
    return [tuple(map(int, row[:4])) for row in rows]


@pytest.mark.parametrize("edns", [0, 512, 1232, 4096])
@pytest.mark.parametrize("how", ["udp", "tcp"])
def test_addresses_and_other_types(lab, world, how, edns):
    """rcode, TC, answers, OPT: addresses are there, and of anything else there is none."""
    kinds = [A, AAAA, HTTPS, SVCB, TXT, MX, SRV, ANY]
    opt = int(edns > 0)
    got = ask(lab, world, how, edns, "www.example.org", *kinds)
    assert got[:2] == [(0, 0, 1, opt)] * 2
    assert [row[0] for row in got] == [0] * len(kinds)
    assert [row[2] for row in got[2:-1]] == [0] * 5
    assert {e.type for e in lab.heard("dns")} == {"A", "AAAA"}

    lab.clear()
    got = ask(lab, world, how, edns, "other.example.org", *kinds)
    assert [row[:3] for row in got] == [(3, 0, 0)] * len(kinds)
    assert not lab.heard("dns")


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_is_the_resolver(lab, world, server):
    """A program that has the address of another resolver built in gets the same answers."""
    assert ask(lab, world, "udp", 0, "www.example.org", A, server=server) == [(0, 0, 1, 0)]
    assert len(lab.heard("dns")) == 2
    assert {e.peer for e in lab.heard("dns")} == {"93.184.215.2"}


def test_the_resolver_over_ipv6_and_tcp(lab, world):
    said = ask(lab, world, "tcp", 0, "www.example.org", A, AAAA, server=OURS_V6)
    assert said == [(0, 0, 1, 0)] * 2
    assert {(e.name, e.type) for e in lab.heard("dns")} == {
        ("www.example.org", "A"), ("www.example.org", "AAAA")}  # fmt: skip


# ---- what the resolver outside does -------------------------------------------------------


def fetch(lab, world, name, allow=None, **how):
    return boxed(lab, world, *CURL, f"http://{name}/", allow=allow or [name], **how)


def test_name_with_many_labels(lab, world):
    name = ".".join(["a"] * 110) + ".deep.example.org"
    lab.dns({"*.deep.example.org": ["93.184.216.34"]})
    assert len(name) < 254
    assert lib.succeeded(fetch(lab, world, name, ["*.deep.example.org"])).decode()
    assert lab.heard("http", host=name)


def test_long_label_and_case(lab, world):
    name = "x" * 63 + ".example.org"
    lab.dns({name: ["93.184.216.34"]})
    cmd = [*CURL, f"http://{name.upper()}./"]
    assert lib.succeeded(boxed(lab, world, *cmd, allow=[name]))
    assert lab.heard("http")


def test_cname(lab, world):
    """The name that is allowed is the one that was asked for, whatever it leads to."""
    lab.dns({"cdn.example.org": Name(["93.184.216.34"], cname="edge.example.net")})
    assert lib.succeeded(fetch(lab, world, "cdn.example.org"))
    assert lab.heard("http", host="cdn.example.org")


def test_answer_that_is_cut(lab, world):
    """The resolver outside says: over TCP."""
    many = [f"93.184.217.{i}" for i in range(1, 60)]
    lab.dns({"cut.example.org": Name(["93.184.216.34", *many], cut=True)})
    assert lib.succeeded(fetch(lab, world, "cut.example.org"))
    assert {e.via for e in lab.heard("dns", name="cut.example.org")} == {"udp", "tcp"}
    assert lab.heard("http", host="cut.example.org")


def test_slow_resolver(lab, world):
    lab.dns({"slow.example.org": Name(["93.184.216.34"], delay=2)})
    assert lib.succeeded(fetch(lab, world, "slow.example.org"))
    assert lab.heard("http", host="slow.example.org")


def test_resolver_that_fails(lab, world):
    lab.dns({"broken.example.org": Name(rcode=2), "gone.example.org": Name(rcode=3),
             "empty.example.org": Name([])})  # fmt: skip
    for name in ("broken.example.org", "gone.example.org", "empty.example.org"):
        assert fetch(lab, world, name).returncode == 6, "curl: could not resolve host"
        assert lab.heard("dns", name=name) and not lab.heard("http")


def test_link_local_resolver(lab, world):
    """As router advertisements give one: on the cable alone, over UDP and TCP."""
    lab.ip("addr", "replace", "fe80::53/64", "dev", "far0", "nodad")
    lab.serve_dns("fe80::53%far0")
    lab.dns({"cut.example.org": Name(["93.184.216.34"], cut=True)})
    number = lab.bare(["ip", "-o", "link", "show", "lab0"]).stdout.decode().split(":")[0]
    for zone in ("lab0", number):
        lab.clear()
        with lab.etc("resolv.conf", f"nameserver fe80::53%{zone}\n"):
            assert lib.succeeded(fetch(lab, world, "www.example.org"))
            assert lib.succeeded(fetch(lab, world, "cut.example.org"))
        assert all(e.peer.startswith("fe80::") for e in lab.heard("dns", via="udp"))
        assert lab.heard("dns", via="tcp", name="cut.example.org")

    lab.clear()
    with lab.etc("resolv.conf", f"nameserver fe80::53%no0\nnameserver {NAMESERVER}\n"):
        assert lib.succeeded(fetch(lab, world, "www.example.org"))
    assert {e.peer for e in lab.heard("dns")} == {OWN[0]}


@pytest.mark.parametrize("opts", [[], ["--ask"]])
def test_the_name_of_the_box_is_its_own(lab, opts):
    """It is in the hosts file, with an address of one family: nobody is asked for the other."""
    look = "getent hosts $(hostname); getent ahosts $(hostname) >/dev/null && hostname"
    argv = ["run", "-y", "--name", "My-Box", "--network", "allow", *opts, "--", "sh", "-c", look]
    done = lab.run(argv)
    assert re.fullmatch(rb"127\.0\.1\.1\s+My-Box\nMy-Box\n", lib.succeeded(done)), done.stdout
    assert b"refused" not in done.stderr and not lab.heard("dns")


@pytest.mark.parametrize("bad, good", [(28, 1), (1, 28)], ids=["AAAA", "A"])
@pytest.mark.parametrize("rcode", [1, 2, 4, 5])
@pytest.mark.parametrize("late", [0, 0.2])
def test_a_family_that_fails_is_not_both(lab, world, monkeypatch, bad, good, rcode, late):
    """The server fails for one at once, and answers for the other, now or later."""
    plain = lab._answer

    def answer(question, via, peer):
        said, end = plain(question, via, peer), question.index(0, 12)
        kind = struct.unpack_from(">H", question, end + 1)[0]
        if kind == bad:
            return said[:3] + bytes([said[3] | rcode]) + said[4:6] + bytes(6) + said[12 : end + 5]
        time.sleep(late if kind == good else 0)
        return said

    lab.dns({"half.example.org": list(far.WWW)})
    monkeypatch.setattr(lab, "_answer", answer)
    assert lib.succeeded(fetch(lab, world, "half.example.org"))
    assert lab.heard("http", host="half.example.org")


def test_a_server_without_edns(lab, world, monkeypatch):
    """As of old: what has more than a question is not understood."""
    plain = lab._answer

    def answer(question, via, peer):
        said = plain(question, via, peer)
        more = struct.unpack(">H", question[10:12])[0]
        return said[:3] + bytes([said[3] | 1]) + said[4:6] + bytes(6) + said[12:] if more else said

    lab.dns({"old.example.org": list(far.WWW)})
    monkeypatch.setattr(lab, "_answer", answer)
    assert lib.succeeded(fetch(lab, world, "old.example.org"))


def test_one_of_many_addresses_has_a_server(lab, world):
    """Some are refused and some are silent: the one that answers is found."""
    lab.blackhole("93.184.221.0/24")
    silent = [f"93.184.221.{i}" for i in range(1, 7)]
    refused = ["93.184.222.1", "93.184.222.2", "2606:2800:221::1"]
    lab.dns({"silent.example.org": [*silent, far.WWW[0]], "no.example.org": [*refused, far.WWW[0]]})
    for name in ("silent.example.org", "no.example.org"):
        assert lib.succeeded(fetch(lab, world, name))
        assert lab.heard("http", host=name)


def test_a_family_that_is_silent_costs_a_moment(lab, world):
    """RFC 8305: the next address is tried after a quarter of a second, of the other family."""
    lab.blackhole("2606:2800:222::/48")
    silent = [f"2606:2800:222::{i}" for i in range(1, 4)]
    lab.dns({"half.example.org": [*silent, far.WWW[0]]})
    assert lib.succeeded(fetch(lab, world, "half.example.org"))
    assert [200 < e["ms"] < 2000 for e in events(lab, "connect")] == [True]
    assert [e.address for e in lab.heard("http", host="half.example.org")] == [far.WWW[0]]


def type_of(question):
    return struct.unpack_from(">H", question, question.index(0, 12) + 1)[0]


def test_what_is_not_known_is_not_said_to_be_absent(lab, world, monkeypatch):
    """A fails and AAAA is empty: the name may have an address, and the program asks again."""
    plain = lab._answer

    def answer(question, via, peer):
        said = plain(question, via, peer)
        return said[:3] + bytes([said[3] | 2]) + said[4:] if type_of(question) == 1 else said

    lab.dns({"half.example.org": []})
    monkeypatch.setattr(lab, "_answer", answer)
    script = "import socket\ntry: socket.getaddrinfo('half.example.org', 80, socket.AF_INET)\n"
    script += "except socket.gaierror as e: print(e.errno == socket.EAI_AGAIN)"
    done = boxed(lab, world, "python3", "-c", script, allow=["half.example.org"])
    assert lib.succeeded(done) == b"True\n"


@pytest.mark.parametrize("via", ["udp", "tcp"])
def test_an_answer_of_any_length(lab, world, via):
    """Also over UDP, from servers that send more than a client without EDNS may be sent.

    An answer of 64 KB takes a busy machine its time: nobody gives up before the test does.
    """
    many = [f"93.184.{i // 250}.{i % 250 + 1}" for i in range(4000 if via == "tcp" else 200)]
    lab.dns({"many.example.org": Name([far.WWW[0], *many], cut=via == "tcp")})
    get = ["curl", "-sS", "http://many.example.org/"]
    with lab.etc("resolv.conf", f"nameserver {NAMESERVER}\noptions timeout:30\n"):
        done = boxed(lab, world, *get, allow=["many.example.org"],
                     env={"RES_OPTIONS": "timeout:30"})  # fmt: skip
    assert lib.succeeded(done)
    assert via in {e.via for e in lab.heard("dns", name="many.example.org")}


def lost(lab, monkeypatch, how):
    """The first questions of each name do not arrive."""
    plain, seen = lab._answer, collections.Counter()

    def answer(question, via, peer):
        said = plain(question, via, peer)
        name = question[12 : question.index(0, 12)]
        seen[name, type_of(question)] += 1
        return None if how == "lost" and seen[name, type_of(question)] == 1 else said

    monkeypatch.setattr(lab, "_answer", answer)


@pytest.mark.parametrize("how", ["lost", "dead"])
@pytest.mark.parametrize("libc", ["glibc", "musl"])
def test_a_question_that_was_lost(lab, world, monkeypatch, libc, how):
    """musl asks twice in 5 seconds and gives up; so that must be soon enough."""
    names = [f"{how}{i}.example.org" for i in range(2)]
    lab.dns(dict.fromkeys(names, Name([far.WWW[0]], delay=0.5)))
    lost(lab, monkeypatch, how)
    conf = lab.top / "resolv.conf"
    plain = conf.read_text()
    if how == "dead":
        lab.blackhole("93.184.221.0/24")
        conf.write_text("nameserver 93.184.221.53\n" + plain)
    try:
        done = boxed(lab, world, *RESOLVERS[libc], *names, allow=["*.example.org:7"])
    finally:
        conf.write_text(plain)
    assert len(re.findall(V4, lib.succeeded(done).decode())) == 2, done


def test_a_lookup_that_time_has_ended_is_dialled_in_time(lab, world, monkeypatch):
    """The clock ends the lookup (no word on AAAA), and has to begin the next address, too."""
    plain = lab._answer

    def answer(question, via, peer):
        said = plain(question, via, peer)
        return None if b"\0\x1c\0\1" in question[-4:] else said

    lab.blackhole("93.184.221.0/24")
    lab.dns({"half.example.org": ["93.184.221.1", far.WWW[0]]})
    monkeypatch.setattr(lab, "_answer", answer)
    lib.succeeded(boxed(lab, world, *CURL, "http://half.example.org/",
                        allow=["half.example.org"], opts=["--proxy"]))  # fmt: skip
    assert [e.address for e in lab.heard("http", host="half.example.org")] == [far.WWW[0]]


# ---- the machine's own file of names ------------------------------------------------------

BLOCKED = "".join(f"0.0.0.0 n{i}.ads.example.net\n" for i in range(105000))


def test_name_in_a_large_hosts_file(lab, world):
    """More than a few MiB of names that are to lead nowhere, and one that is somebody's own."""
    lab.blackhole("93.184.221.0/24")
    lab.dns({"own.example.org": ["93.184.221.1"], "n7.ads.example.net": [far.WWW[0]]})
    large = BLOCKED * 2 + f"{far.WWW[0]} other.example.org OWN.example.org # mine\n"
    assert len(large) > 4 << 20
    with lab.etc("hosts", large):
        assert lib.succeeded(fetch(lab, world, "own.example.org"))
        assert fetch(lab, world, "n7.ads.example.net").returncode != 0
    assert [e.host for e in lab.heard("http")] == ["own.example.org"] and not lab.heard("dns")
    assert lib.succeeded(fetch(lab, world, "n7.ads.example.net"))
    assert lab.heard("dns", name="n7.ads.example.net")


def test_hosts_file_that_is_too_large(lab, world):
    """Names in it are not to be asked for outside, so nobody is asked for any."""
    with lab.etc("hosts", BLOCKED * 13):
        done = fetch(lab, world, "www.example.org")
    assert done.returncode == 6, "curl: could not resolve host"
    assert b"could not start: '/etc/hosts' has more than 32 MiB" in done.stderr
    assert not lab.log


def test_lookups_do_not_read_a_large_hosts_file(lab, world):
    """Its 3 MiB, once for each of 100 names, would be more than a second for all streams."""
    names = [f"n{i}.many.example.org" for i in range(100)]
    lab.dns({"*.many.example.org": [far.WWW[0]]})
    look = ["sh", "-c", '/tools/lookup-glibc "$@" && read end', "sh", *names]
    argv = ["run", "-y", "--network", "allow", "--mount", f"{world.tools}:/tools"]
    with lab.etc("hosts", BLOCKED):
        process = lab.start([*argv, "--allow", "*.many.example.org", "--", *look])
        found = [process.stdout.readline() for _ in names]
    assert all(re.search(V4.encode(), line) for line in found)
    assert {e.name for e in lab.heard("dns")} == set(names)
    assert seconds_of(broker_of(process)) < 0.6


# ---- many at once -------------------------------------------------------------------------


@pytest.mark.parametrize("cmd", RESOLVERS.values(), ids=RESOLVERS)
@pytest.mark.parametrize("n", [100, 400])
def test_lookups_at_once(lab, world, cmd, n):
    """From one process (Go) or from as many as there are names; more than go out at a time."""
    lab.dns({"*.many.example.org": Name([far.WWW[0]], delay=0.05)})
    names = [f"n{i}.many.example.org" for i in range(n)]
    if cmd == RESOLVERS["go"]:
        argv = [*cmd, *names]
    else:
        argv = ["sh", "-c", "for name; do $0 $name & done; wait", *cmd, *names]
    done = boxed(lab, world, *argv, allow=["*.many.example.org", "*.many.example.org:7"])
    found = re.findall(V4, lib.succeeded(done).decode())
    assert len(found) == n and len(set(found)) == n
    assert {e.name for e in lab.heard("dns")} == set(names)
