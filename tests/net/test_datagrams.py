"""Datagrams: refused at once, never heard outside, and each is in the record.

The verdict on the first is the program's own, on the second the servers', on the third that of
`carrel events`. The same program without a box is heard by every server.
"""

import collections
import ipaddress
import json
import re
import time

import lib
import pytest

NAME, OTHER = "datagram.example.org", "unlisted.example.org"
V4, V6 = "93.184.217.1", "2606:2800:217::1"
ELSE_V4, ELSE_V6 = "93.184.217.2", "2606:2800:217::2"
REASON = "UDP is not passed on"
LIMIT = "refused datagrams a second"
KEYS = {"time", "event", "proto", "address", "port", "verdict", "reason"}
ALLOW = ["--network", "allow", "--allow", NAME, "--allow", f"{V4}:*", "--allow", f"[{V6}]:*"]
OPEN = ["--network", "open"]
BY_ADDRESS = [[4, V4, 443], [6, V6, 443], [4, ELSE_V4, 123], [6, ELSE_V6, 123]]
BY_NAME = [[4, NAME, 443], [6, NAME, 8443], [4, NAME, 9]]
BY_OTHER_NAME = [[4, OTHER, 443], [6, OTHER, 443]]

# What each said, and how long it took. No answer is an answer, too: that of a server that listens.
SEND = """
import errno, json, socket, sys, time
answers = []
for family, host, port in json.loads(sys.argv[1]):
    family = socket.AF_INET6 if family == 6 else socket.AF_INET
    try:
        to = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0][4]
    except socket.gaierror:
        answers.append(["no name", 0])
        continue
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        s.connect(to)
        began, said = time.monotonic(), "sent"
        try:
            s.send(b"x")
            s.recv(1)
        except TimeoutError:
            pass
        except OSError as e:
            said = errno.errorcode[e.errno]
        answers.append([said, time.monotonic() - began])
print(json.dumps(answers))
"""


@pytest.fixture
def here(lab):
    """A server for every datagram that is sent."""
    lab.dns({NAME: [V4, V6], OTHER: [ELSE_V4, ELSE_V6]})
    places = {(V4, 443), (V4, 9), (V6, 443), (V6, 8443)}
    places |= {(a, p) for a in (ELSE_V4, ELSE_V6) for p in (123, 443)}
    sockets = [lab.udp(address, port) for address, port in places]
    yield lab
    for s in sockets:
        s.close()


def send(steps, start):
    done = start([lib.PYTHON, "-c", SEND, json.dumps(steps)])
    return json.loads(lib.succeeded(done)), done.stderr.decode()


def boxed(lab, opts, steps):
    """What the program in a box saw, the last lines of the run, and the record."""
    answers, summary = send(steps, lambda cmd: run(lab, opts, *cmd))
    return answers, summary, events(lab)


def run(lab, opts, *cmd):
    return lab.run(["run", "-y", "--name", "box", *opts, "--", *cmd])


def events(lab):
    lines = lib.succeeded(lab.run(["events", "box", "--json"])).splitlines()
    return [json.loads(line) for line in lines]


def refusals(record):
    return [e for e in record if e["event"] == "datagram"]


def is_stand_in(address):
    """One that stands for a name in a box."""
    ranges = map(ipaddress.ip_network, ("198.18.0.0/15", "fd63:6172:7265:6c00::/96"))
    return any(ipaddress.ip_address(address) in r for r in ranges)


def check(told, steps):
    """As many events as steps, in their order by family; each says what was sent where."""
    assert len(told) == len(steps)
    for family in (4, 6):
        of_family = [e for e in told if ("." in e["address"]) == (family == 4)]
        for (_, host, port), e in zip([s for s in steps if s[0] == family], of_family, strict=True):
            assert set(e) - {"name"} == KEYS
            assert (e["proto"], e["verdict"], e["reason"]) == ("udp", "refused", REASON)
            assert e["port"] == port
            if host in (NAME, OTHER):
                assert e["name"] == host and is_stand_in(e["address"])
            else:
                assert "name" not in e and e["address"] == host


def test_without_a_box_all_are_heard(here):
    steps = BY_ADDRESS + BY_NAME + BY_OTHER_NAME
    answers, _ = send(steps, here.bare)
    assert [said for said, _ in answers] == ["sent"] * len(steps)
    assert len(here.heard("udp")) == len(steps)


@pytest.mark.parametrize("opts, steps, unknown", [
    (ALLOW, BY_ADDRESS + BY_NAME, BY_OTHER_NAME),
    (OPEN, BY_ADDRESS + BY_NAME + BY_OTHER_NAME, []),
], ids=["allow", "open"])  # fmt: skip
def test_each_is_refused_at_once_and_in_the_record(here, opts, steps, unknown):
    answers, summary, record = boxed(here, opts, steps + unknown)
    expected = ["ECONNREFUSED"] * len(steps) + ["no name"] * len(unknown)
    assert [said for said, _ in answers] == expected
    assert max(took for _, took in answers) < 0.5
    check(refusals(record), steps)
    assert here.heard("udp") == []
    said = re.search(r", (\d+) refused: (.*)", summary)
    hosts = dict.fromkeys(host for _, host, _ in steps + unknown)
    assert int(said[1]) == len(hosts)
    named, more = re.fullmatch(r"(.*) and (\d+) more", said[2]).groups()
    named = named.split(", ")
    assert len(set(named)) == len(named) == len(hosts) - int(more) == 5, summary
    because = {f"{host} ({REASON})" for _, host, _ in steps}
    assert set(named) <= because | {host for _, host, _ in unknown}, summary
    assert "--allow" not in summary.replace(f"--allow {OTHER}", "")


def test_the_summary_names_it(here):
    _, summary, _ = boxed(here, OPEN, [[4, NAME, 443]])
    assert f"0 hosts reached, 1 refused: {NAME} ({REASON})\n" in summary
    shown = lib.succeeded(here.run(["events", "box"])).decode()
    assert re.search(rf"refused   udp      {NAME}:443 +{REASON}\n", shown)


def test_none_of_its_own(here):
    """What a box sends to itself, its lookups, and TCP: refused or not, no datagram is told of."""
    steps = [[4, a, 9] for a in ("127.0.0.1", "127.9.9.9", "198.18.0.2", "localhost")]
    steps += [[6, a, 9] for a in ("::1", "fd63:6172:7265:6c00::2")]
    answers, summary, record = boxed(here, ALLOW, [*steps, *BY_OTHER_NAME])
    assert [said for said, _ in answers[: len(steps)]] == ["ECONNREFUSED"] * len(steps)
    assert refusals(record) == [] and REASON not in summary
    assert [e["name"] for e in record if e["event"] == "lookup"] == [OTHER] * 2, "it does record"
    tcp = "echo x >/dev/tcp/93.184.217.2/443"
    run(here, ALLOW, "bash", "-c", tcp)
    kinds = [e["event"] for e in events(here)]
    assert "connect" in kinds and "datagram" not in kinds


def test_who_ends_at_once_is_told_of(here):
    """A refusal waits for nobody: also of one that is gone before anybody looked."""
    for i in range(20):
        word = f"echo x >/dev/udp/{ELSE_V4}/{1000 + i}"
        run(here, OPEN, "bash", "-c", word)
        assert [e["port"] for e in refusals(events(here))] == [1000 + i]


def test_the_same_again_is_told_once(here):
    _, _, record = boxed(here, OPEN, [[4, V4, 443], [6, V6, 443], [4, V4, 9]] * 60)
    told = collections.Counter((e["address"], e["port"]) for e in refusals(record))
    assert set(told) == {(V4, 443), (V6, 443), (V4, 9)}
    assert max(told.values()) <= 1 + _lasted(record) // 10, "once in ten seconds"
    assert LIMIT not in [e.get("limit") for e in record]


def _lasted(record):
    first, last = (time.mktime(time.strptime(e["time"][:19], "%Y-%m-%dT%H:%M:%S"))
                   for e in (record[0], record[-1]))  # fmt: skip
    return last - first


# A flood from two processes, and lookups beside it; when it is over, one more.
FLOOD = f"""
import json, os, socket, time
def flood(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        n = 0
        while n < 50000:
            try:
                s.sendto(b"x", (address, 1024 + n % 60000))
                n += 1
            except OSError:
                pass
    os._exit(0)
children = []
for family, address in ((socket.AF_INET, "{ELSE_V4}"), (socket.AF_INET6, "{ELSE_V6}")):
    pid = os.fork()
    if not pid:
        flood(family, address)
    children.append(pid)
longest, lookups = 0, 0
while children:
    began = time.monotonic()
    socket.getaddrinfo("{NAME}", 80, socket.AF_INET, socket.SOCK_DGRAM)
    longest, lookups = max(longest, time.monotonic() - began), lookups + 1
    if os.waitpid(children[0], os.WNOHANG)[0]:
        children.pop(0)
time.sleep(3)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.sendto(b"x", ("{V4}", 9))
print(json.dumps([longest, lookups]))
"""


def test_a_flood_is_bounded(here):
    """100,000 to as many ports: some hundred events, and lookups are answered meanwhile."""
    done = run(here, ALLOW, lib.PYTHON, "-c", FLOOD)
    longest, lookups = json.loads(lib.succeeded(done))
    assert longest < 2 and lookups > 3
    record = events(here)
    told = refusals(record)
    seconds = _lasted(record) + 2
    assert 150 <= len(told) <= 200 + 10 * seconds
    assert len({(e["address"], e["port"]) for e in told}) > 100
    limits = [e for e in record if e["event"] == "limit"]
    assert {e["limit"] for e in limits} == {LIMIT} and len(limits) <= seconds + 1
    assert [e["address"] for e in told][-1] == V4, "it goes on after that"
    assert here.heard("udp") == []
    said = done.stderr.decode()
    # The one that floods first may have had all that there was to tell for the other.
    assert f"limits reached: {LIMIT}" in said and re.search("[23] refused: ", said), said
