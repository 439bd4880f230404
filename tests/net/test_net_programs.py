"""Ordinary programs in a box whose network is brokered: they know nothing of it, and work.

Every program is run three times: in a box that may reach the host, where it must do its work
and the server hear of it; in the lab without a box, which shows that the lab is right; and in
a box that may not, where it must fail and no server hear a thing.
"""

import re

import lib
import pytest

JAVA = ["java", "-Xshare:auto", "-Djavax.net.ssl.trustStore=/tools/trust.p12",
        "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", "/tools", "Fetch"]  # fmt: skip
URLLIB = "import urllib.request as r, sys; print(r.urlopen(sys.argv[1], timeout=20).read())"
SSH = "ssh -F none -i key -o IdentitiesOnly=yes -o UserKnownHostsFile=/tools/known_hosts"
CURL = ["curl", "-sS", "-m", "20"]
WGET = ["wget", "-q", "-T", "20", "-t", "1", "-O", "-"]
TLS = {"SSL_CERT_FILE": "/tools/ca.pem", "NODE_EXTRA_CA_CERTS": "/tools/ca.pem"}
HTTP, HTTPS = "http://www.example.org/", "https://www.example.org/"
HELLO = "hello from www.example.org"

WEB = {
    "curl": [*CURL, HTTP],
    "curl tls": [*CURL, HTTPS],
    "curl ipv4": [*CURL, "-4", HTTPS],
    "curl ipv6": [*CURL, "-6", HTTPS],
    "wget": [*WGET, HTTP],
    "wget tls": [*WGET, "--ca-certificate=/tools/ca.pem", HTTPS],
    "wget ipv6": [*WGET, "-6", HTTP],
    "python": ["python3", "-c", URLLIB, HTTP],
    "python tls": ["python3", "-c", URLLIB, HTTPS],
    "node http": ["node", "/tools/fetch.mjs", "http", HTTP, "1"],
    "node https": ["node", "/tools/fetch.mjs", "http", HTTPS, "1"],
    "node fetch": ["node", "/tools/fetch.mjs", "fetch", HTTP, "1"],
    "node fetch tls": ["node", "/tools/fetch.mjs", "fetch", HTTPS, "1"],
    "go": ["/tools/fetch-go", HTTP],
    "go tls": ["/tools/fetch-go", HTTPS],
    "go own resolver": ["env", "GODEBUG=netdns=go", "/tools/fetch-go", HTTPS],
    "go libc resolver": ["env", "GODEBUG=netdns=cgo", "/tools/fetch-go", HTTPS],
    "java tls": [*JAVA, HTTPS],
}


def boxed(lab, world, *cmd, allow=(), env=None, opts=(), **how):
    """A command in a box that may reach these hosts."""
    opts = ["--network", "allow", "--mount", f"{world.tools}:/tools", *opts]
    for host in allow:
        opts += ["--allow", host]
    for name, value in {**TLS, **(env or {})}.items():
        opts += ["--env", f"{name}={value}"]
    return lab.run(["run", "-y", *opts, "--", *cmd], **how)


def bare(lab, world, *cmd, env=None, **how):
    """The same in the lab without a box."""
    here = [str(word).replace("/tools", str(world.tools)) for word in cmd]
    env = {k: v.replace("/tools", str(world.tools)) for k, v in {**TLS, **(env or {})}.items()}
    return lab.bare(here, env=env, **how)


def nothing_heard(lab):
    """Neither a connection nor a question about a name came out."""
    return [e for e in lab.log if e.kind != "error"] == []


@pytest.mark.parametrize("cmd", WEB.values(), ids=WEB)
def test_web(lab, world, cmd):
    tls = HTTPS in cmd
    said = lib.succeeded(boxed(lab, world, *cmd, allow=["www.example.org"]))
    assert HELLO in said.decode()
    heard = lab.heard("http", host="www.example.org", path="/", tls=tls)
    assert len(heard) == 1 and heard[0].sni == ("www.example.org" if tls else None)
    assert {e.name for e in lab.heard("dns")} == {"www.example.org"}

    lab.clear()
    assert HELLO in lib.succeeded(bare(lab, world, *cmd)).decode()
    assert lab.heard("http", host="www.example.org", path="/", tls=tls)

    lab.clear()
    assert boxed(lab, world, *cmd, allow=["git.example.org"]).returncode != 0
    assert nothing_heard(lab)


# ---- families -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["-4", "-6"])
@pytest.mark.parametrize("server", ["v4", "v6"])
def test_a_client_of_one_family_reaches_a_server_of_the_other(lab, world, client, server):
    url = f"https://{server}.example.org/"
    done = boxed(lab, world, *CURL, client, url, allow=[f"{server}.example.org"])
    assert lib.succeeded(done).decode() == f"hello from {server}.example.org\n"
    heard = lab.heard("http", host=f"{server}.example.org")
    assert [":" in e.peer for e in heard] == [server == "v6"]
    control = bare(lab, world, *CURL, client, url)
    assert (control.returncode == 0) == (client[1] == server[1]), "without the broker it cannot"


def test_program_that_knows_ipv6_alone(lab, world):
    lab.tcp("93.184.216.34", 1234)
    cmd = ["python3", "/tools/socket_client.py", "only_v6", "v4.example.org", "1234"]
    said = lib.succeeded(boxed(lab, world, *cmd, allow=["v4.example.org:1234"])).decode()
    assert re.match(r"fd63:6172:7265:6c00::\S+ hello from 93\.184\.216\.34", said)
    assert len(lab.heard("tcp", port=1234)) == 1
    assert bare(lab, world, *cmd).returncode != 0


# ---- TLS is the server's own --------------------------------------------------------------


def test_openssl_sees_the_certificate_of_the_server(lab, world):
    words = "openssl s_client -connect www.example.org:443 -servername www.example.org " \
            "-verify_return_error -verify_hostname www.example.org"  # fmt: skip
    script = f"{words} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256"
    inside = lib.succeeded(boxed(lab, world, "sh", "-c", script, allow=["www.example.org"]))
    stem = lab.context(["www.example.org", "v4.example.org", "v6.example.org"]).stem
    argv = ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", f"{stem}.pem"]
    assert inside == lib.succeeded(lib.execute(argv, user=False)) and b"=" in inside
    assert lab.heard("tcp", port=443)

    lab.clear()
    refused = boxed(lab, world, "sh", "-c", f"{words} </dev/null", allow=["git.example.org"])
    assert refused.returncode != 0 and nothing_heard(lab)


# ---- many at once -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["http", "fetch"])
def test_two_hundred_requests_at_once(lab, world, how):
    """The server answers nobody before all two hundred are there."""
    cmd = ["node", "/tools/fetch.mjs", how, HTTP + "together", "200"]
    said = lib.succeeded(boxed(lab, world, *cmd, allow=["www.example.org"]))
    assert said == b"200 all are here\n"
    assert len(lab.heard("http", path="/together")) == 200
    assert len(lab.heard("tcp", port=80)) == 200


def test_asyncio_with_fifty_echoes_at_once(lab, world):
    cmd = ["python3", "/tools/socket_client.py", "echoes", "www.example.org", "7"]
    done = boxed(lab, world, *cmd, allow=["www.example.org:7"])
    assert lib.succeeded(done) == b"50 echoed\n"
    assert [e.size for e in lab.heard("tcp", port=7)] == [200000] * 50
    assert boxed(lab, world, *cmd, allow=["www.example.org:8"]).returncode != 0
    assert len(lab.heard("tcp", port=7)) == 50, "not on another port"


# ---- git ----------------------------------------------------------------------------------


def key(project, world):
    """ssh wants its key to be the user's and nobody else's to read."""
    return lib.make_file(project / "key", (world.tools / "key").read_bytes(), mode=0o600)


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_git_clones_and_pushes(lab, world, project, scheme):
    key(project, world)
    where = f"tester@git.example.org{world.repos}" if scheme == "ssh" else "git.example.org/git"
    where = where.replace("tester@", f"{lab.user}@")
    branch = f"from-the-box-{scheme}"
    script = f"""set -e
        git clone -q {scheme}://{where}/one.git copy
        cd copy
        git config user.name x; git config user.email x@example.org
        head -c 2000000 /dev/urandom >new; git add new; git commit -qm new
        git push -q origin HEAD:{branch}
        git rev-parse HEAD"""
    port = {"http": ":80", "https": ":443", "ssh": ":22"}[scheme]
    env = {"GIT_SSH_COMMAND": SSH.replace("key", str(project / "key"), 1),
           "GIT_SSL_CAINFO": "/tools/ca.pem"}  # fmt: skip
    done = boxed(lab, world, "sh", "-c", script, allow=[f"git.example.org{port}"], env=env)
    pushed = lib.succeeded(done).decode().strip()
    there = lib.git("rev-parse", branch, cwd=world.repos / "one.git").strip()
    assert pushed == there, "what was committed in the box is in the repository outside"
    assert (project / "copy" / "README").read_text() == "a file of the repository\n"
    if scheme != "ssh":
        heard = lab.heard("http", host="git.example.org", tls=scheme == "https")
        assert {e.method for e in heard} == {"GET", "POST"}

    lab.clear()
    script = f"git clone -q {scheme}://{where}/one.git other"
    done = boxed(lab, world, "sh", "-c", script, allow=["git.example.org:9418"], env=env)
    assert done.returncode != 0 and not lab.heard("tcp") and not lab.heard("http")
    assert lib.succeeded(bare(lab, world, "sh", "-c", script, env=env)) == b""


# ---- ssh and PostgreSQL -------------------------------------------------------------------


def test_ssh(lab, world, project):
    """A command, its exit code, and a copy."""
    ssh = SSH.replace("key", str(key(project, world)), 1).split()
    cmd = [*ssh, f"{lab.user}@git.example.org", "echo $SSH_CONNECTION; cat; exit 7"]
    log = lab.top / "sshd.log"
    begun = len(log.read_text())
    done = boxed(lab, world, *cmd, allow=["git.example.org:22"], input=b"through the pipe\n")
    assert done.returncode == 7, done.stderr
    assert done.stdout.split(b"\n")[1] == b"through the pipe"
    assert done.stdout.startswith(b"93.184.215.2 "), "the server sees the machine's address"
    assert "Accepted publickey" in log.read_text()[begun:]

    scp = ["scp", *ssh[1:], f"{lab.user}@git.example.org:{lab.top}/passwd", "copy"]
    lib.succeeded(boxed(lab, world, *scp, allow=["git.example.org:22"]))
    assert (project / "copy").read_text() == (lab.top / "passwd").read_text()

    connections = log.read_text().count("Connection from")
    assert boxed(lab, world, *cmd, allow=["git.example.org"]).returncode == 255
    assert log.read_text().count("Connection from") == connections > 0, "port 22 has to be said"


def test_psql(lab, world):
    where = "host=db.example.org dbname=postgres user=tester sslmode=verify-full " \
            "sslrootcert=/tools/ca.pem connect_timeout=20"  # fmt: skip
    query = "select ssl, version from pg_stat_ssl where pid = pg_backend_pid();" \
            " select count(*), sum(n) from generate_series(1, 300000) n;" \
            " copy (select repeat('x', 1000) from generate_series(1, 20000)) to stdout"  # fmt: skip
    cmd = ["psql", "-XAtq", "-c", query, where]
    done = boxed(lab, world, *cmd, allow=["db.example.org:5432"])
    lines = lib.succeeded(done).splitlines()
    assert lines[0].startswith(b"t|TLS") and lines[1] == b"300000|45000150000"
    assert lines[2:] == [b"x" * 1000] * 20000
    log = lab.top / "postgres.log"
    assert "connection authorized: user=tester" in log.read_text()

    connections = log.read_text().count("connection received")
    assert boxed(lab, world, *cmd, allow=["db.example.org"]).returncode == 2
    assert log.read_text().count("connection received") == connections > 0
