"""Ordinary programs in a box with --proxy: they go by the variables that it sets.

Every one of them is also run without the variables, which shows that there is no other way,
and in a box that may not reach the host.
"""

import lib
import pytest
from test_net_programs import CURL, HELLO, HTTP, HTTPS, URLLIB, boxed, nothing_heard
from test_ports_and_limits import SERVER, events, reached
from test_steering import start

NAMES = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"]
FETCH = "git clone -q {}://git.example.org/git/one.git copy && cat copy/README"
FILE = "a file of the repository"
PROGRAMS = {
    "curl": ([*CURL, HTTP], HELLO),
    "curl tls": ([*CURL, HTTPS], HELLO),
    "git": (["sh", "-c", FETCH.format("http")], FILE),
    "git tls": (["sh", "-c", FETCH.format("https")], FILE),
    "python tls": (["python3", "-c", URLLIB, HTTPS], HELLO),
}
HOSTS = ["www.example.org", "git.example.org"]


def proxied(lab, world, *cmd, allow=HOSTS, **how):
    env = {"GIT_SSL_CAINFO": "/tools/ca.pem"}
    return boxed(lab, world, *cmd, allow=allow, env=env, opts=["--proxy"], **how)


def without(names):
    return ["env", *(word for name in names for word in ("-u", name))]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_that_goes_by_the_variables(lab, world, program):
    cmd, says = program
    assert proxied(lab, world, *without(NAMES), *cmd).returncode != 0
    assert proxied(lab, world, *cmd, allow=["db.example.org"]).returncode != 0
    assert nothing_heard(lab)
    assert says in lib.succeeded(proxied(lab, world, *cmd)).decode()
    assert {e.tls for e in lab.heard("http")} == {"https" in str(cmd)}


@pytest.mark.parametrize("name", NAMES[:4])
def test_each_variable_alone_is_enough(lab, world, name):
    cmd = [*without(set(NAMES) - {name}), *CURL, HTTPS]
    assert HELLO in lib.succeeded(proxied(lab, world, *cmd)).decode()
    assert len(lab.heard("http", host="www.example.org", tls=True)) == 1


@pytest.mark.parametrize("name", NAMES[4:])
def test_a_server_in_the_box_is_not_asked_of_the_proxy(lab, world, name):
    """Nor would the proxy reach it."""
    inside = "python3 -m http.server --bind {} 8000 >/dev/null 2>&1 & "
    wait = "for i in $(seq 100); do {} http://{}:8000/ 2>/dev/null && exit; sleep 0.1; done"
    curl = " ".join(without({"NO_PROXY", "no_proxy"} - {name})) + " curl -sS -m 5"
    v4 = "127.0.0.1"
    for bind, host in ((v4, v4), (v4, "localhost"), ("::1", "[::1]")):
        script = inside.format(bind) + wait.format(curl, host) + "; exit 1"
        assert b"Directory listing" in lib.succeeded(proxied(lab, world, "sh", "-c", script))
    script = inside.format(v4) + "sleep 1; " + " ".join(without(NAMES[4:]))
    script += " curl -sS -m 5 http://127.0.0.1:8000/"
    assert proxied(lab, world, "sh", "-c", script).returncode == 97, "curl: the proxy said no"


def test_a_port_leads_to_a_server_behind_a_proxy(lab, world, project):
    """And the box has its own way out meanwhile."""
    fetch = f"curl -sS -m 10 {HTTP} >answer.new && mv answer.new answer; "
    opts = ["--allow", "www.example.org", "--proxy", "--port", "7020:8000"]
    start(lab, "behind", *opts, cmd=fetch + SERVER.format("127.0.0.1", 8000))
    lib.wait_for(lambda: reached(lab, 7020), "the server")
    assert HELLO in (project / "answer").read_text()
    assert len(lab.heard("http", path="/")) == 1


ASK = """
import socket
kept = []
for _ in range(5):
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 10)
        s.sendall(b"CONNECT www.example.org:7 HTTP/1.1\\r\\n\\r\\n")
        if b" 200 " not in s.recv(4096):
            break
        kept.append(s)
    except OSError:
        print(len(kept), "then reset")
        break
"""


def test_connections_at_once_by_a_proxy(lab, world):
    opts = ["--allow", "www.example.org:7", "--proxy", "--limit", "connections=3"]
    done = lab.run(["run", "-y", "--name", "fewp", *opts, "--", lib.PYTHON, "-c", ASK])
    assert lib.succeeded(done) == b"3 then reset\n"
    lib.wait_for(lambda: len(lab.heard("tcp", port=7)) == 3, "the three outside")
    assert [e["limit"] for e in events(lab, "fewp") if e["event"] == "limit"] == ["connections"]


MANY = """
import asyncio
many = asyncio.Semaphore(200)
async def one(i):
    async with many:
        r, w = await asyncio.open_connection("127.0.0.1", 3128)
        w.write(f"CONNECT n{i}.many.example.org:443 HTTP/1.1\\r\\n\\r\\n".encode())
        said = await r.readline()
        w.close()
        return said
async def all():
    print(len([s for s in await asyncio.gather(*map(one, range(2300))) if s]))
asyncio.run(all())
"""


def test_names_above_the_limit_wait_in_order(lab, world):
    """So none waits for longer than the 5 seconds that it may, and that there is one is told."""
    done = lab.run(["run", "-y", "--name", "order", "--proxy", "--allow", "*.many.example.org", "--",
                    lib.PYTHON, "-c", MANY])  # fmt: skip
    assert lib.succeeded(done) == b"2300\n"
    told = events(lab, "order")
    assert {e["error"] for e in told if e["event"] == "connect"} == {"no such name"}
    assert {e["limit"] for e in told if e["event"] == "limit"} == {"lookups a second"}
