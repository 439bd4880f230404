"""Hosts that an agent may log in to, against a real sshd: the key works, and is not there."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import lib
import pytest
from sshd import Server, key, keygen, known, public, serve, user  # noqa: F401

def sockets():
    return sorted(path.name for path in lib.runtime().rglob("*.agent"))


def agents():
    """Those that are ours: they have the name of a box in their arguments."""
    return [pid for pid in lib.processes("ssh-agent") if b".agent" in cmdline(pid)]


def cmdline(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


def nothing_left():
    lib.wait_for(lambda: not agents(), "the ssh-agents to end")
    assert sockets() == []


class Agent:
    """An agent of the user's own manifest: it needs no approval."""

    def __init__(self, home, *entries, **more):
        self.path = home / ".config" / "carrel" / "carrel.json"
        agent = {"harness": "command", "command": ["sh"], "network": "host", "ssh": entries}
        lib.make_file(self.path, json.dumps({"agents": {"a": {**agent, **more}}}))

    def argv(self, script, opts=()):
        return [lib.program(), "run", "-y", *opts, "a", "--", "-c", script]

    def sh(self, script, *opts, **how):
        return lib.execute(known(self.argv(script, opts)), user=False, **how)

    def start(self, script, *opts, env=None):
        process = subprocess.Popen(
            known(self.argv(script, opts)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            cwd=lib.current.cwd,
            env=lib.environment(env),
        )
        lib.started.append(process)
        return process


# ---- what works -------------------------------------------------------------------------


def test_login(home, project, key, serve):
    """By the alias and by the real name; the key is nowhere in the box."""
    server = serve()
    agent = Agent(home, server.entry(key))
    script = (
        "ssh there echo by-alias; ssh 127.0.0.1 echo by-name;"
        f"cat {key} || echo no-key; ssh-add -l; ls -la ~/.ssh"
    )
    out = lib.succeeded(agent.sh(script)).decode()
    assert "by-alias\n" in out and "by-name\n" in out, (out, server.log())
    assert "no-key" in out and "ED25519" in out
    assert server.accepted() == 2
    nothing_left()


def test_git(home, project, key, serve, place):
    server = serve()
    bare = place / "bare.git"
    lib.git("init", "-q", "-b", "main", "--bare", str(bare))
    agent = Agent(home, server.entry(key))
    url = f"ssh://{server.user}@there{bare}"
    done = agent.sh(
        f"git push -q {url} main && git clone -q {url} /tmp/c && cat /tmp/c/src/main.c",
    )
    assert b"int main" in lib.succeeded(done)
    assert server.accepted() >= 1


def test_two_keys_for_one_host(home, project, key, serve):
    """The alias says which: a server that knows only one of them refuses the other."""
    other = keygen(home / ".ssh" / "other")
    server = serve(other)
    agent = Agent(home, server.entry(key, "first"), server.entry(other, "second"))
    script = "ssh -o BatchMode=yes first true; echo $?; ssh second echo second"
    done = agent.sh(script)
    assert lib.succeeded(done) == b"255\nsecond\n", done.stderr
    assert server.accepted() == 1


def test_known_hosts_of_the_user(home, project, key, serve):
    """Hashed, as many systems have them; a key that was revoked does not count."""
    server = serve()
    entry = server.entry(key)
    line = f"[127.0.0.1]:{server.port} {entry.pop('KnownHostKey')}\n"
    agent = Agent(home, entry)
    done = agent.sh("true")
    assert done.returncode == 125 and b"no key of [127.0.0.1]" in done.stderr
    path = lib.make_file(home / ".ssh" / "known_hosts", line)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", path], check=True, capture_output=True)
    assert b"127.0.0.1" not in path.read_bytes()
    lib.give(path)
    assert lib.succeeded(agent.sh("ssh there echo hello")) == b"hello\n"
    lib.make_file(path, line + "@revoked " + line)
    done = agent.sh("true")
    assert done.returncode == 125 and b"no key of [127.0.0.1]" in done.stderr


def test_passphrase(home, project, key, place):
    """Asked for on the terminal before the box begins, without echo."""
    locked = keygen(home / ".ssh" / "locked", passphrase="open sesame")
    server = Server(place / "sshd", public(locked))
    try:
        agent = Agent(home, server.entry(locked))
        child = lib.terminal(known(agent.argv("ssh there echo hel''lo")), user=False)
        child.expect("Enter passphrase for .*locked")
        lib.wait_for(lambda: not child.getecho(), "no echo")
        child.sendline("wrong")
        child.expect("Bad passphrase, try again")
        lib.wait_for(lambda: not child.getecho(), "no echo")
        child.sendline("open sesame")
        child.expect("hello")
        assert lib.finish(child) == 0
        done = agent.sh("echo started")
    finally:
        server.end()
    assert done.returncode == 125 and b"started" not in done.stdout
    assert b"ssh-add does not load the key" in done.stderr
    nothing_left()


def agents_below(where):
    """The sockets of agents; directories that vanish meanwhile have none."""
    return [name for _, _, names in os.walk(where) for name in names if name.endswith(".agent")]


def test_without_a_runtime_directory(home, project, key, serve):
    """Or with one whose path is longer than the address of a socket may be."""
    agent = Agent(home, serve().entry(key))
    long = lib.make_dir(home / ("x" * 200), mode=0o700)
    for where, env in (
        (home / ".local" / "state", {"XDG_RUNTIME_DIR": None}),
        (long, {"XDG_RUNTIME_DIR": str(long)}),
    ):
        process = agent.start("ssh there echo fine; read x", env=env)
        lib.read_until(process.stdout, b"fine")
        assert len(agents_below(where)) == 1
        process.communicate(b"\n")
        assert process.returncode == 0 and not agents_below(where)
    nothing_left()


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_the_agent_starts_no_helpers(home, project, key, serve):
    """Nor loads libraries for tokens (CVE-2023-38408): neither by its options nor otherwise."""
    process = Agent(home, serve().entry(key)).start("ssh there echo fine; read x")
    lib.read_until(process.stdout, b"fine")
    (pid,) = agents()
    with open(f"/proc/{pid}/environ", "rb") as file:
        environ = set(file.read().split(b"\0"))
    assert {b"SSH_PKCS11_HELPER=/nonexistent", b"SSH_SK_HELPER=/nonexistent"} <= environ, environ
    assert b"-P\0none\0" in cmdline(pid)
    process.communicate(b"\n")
    nothing_left()


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_started_by_root(home, project, key, serve):
    """Another user inside than outside, and the same to the agent."""
    agent = Agent(home, serve().entry(key))
    runtime = lib.make_dir(home / "runtime", uid=0, mode=0o700)
    how = {"user": False, "env": {"XDG_RUNTIME_DIR": str(runtime)}}
    done = lib.execute(agent.argv("id -u; ssh there echo fine"), **how)
    assert done.returncode == 125 and b"belongs to another user" in done.stderr
    os.chown(key, 0, 0)
    done = lib.execute(agent.argv("id -u; ssh there echo fine"), **how)
    assert lib.succeeded(done) == b"1000\nfine\n"
    assert not list(runtime.rglob("*.agent")) and agents() == []


# ---- what does not ----------------------------------------------------------------------

# Sign for any session: what the protocol has to offer to somebody who makes no connection.
SIGN = r"""
import os, socket, struct
def text(b): return struct.pack(">I", len(b)) + b
def ask(b):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["SSH_AUTH_SOCK"])
    s.sendall(text(b))
    return s.recv(65536)[4]
import base64
blob = base64.b64decode(open("/etc/carrel/ssh/there.pub").read().split()[1])
login = text(b"x" * 32) + b"\x32" + text(b"USER") + text(b"ssh-connection") \
    + text(b"publickey") + b"\x01" + text(b"ssh-ed25519") + text(blob)
print("login", ask(b"\x0d" + text(blob) + text(login) + struct.pack(">I", 0)))
print("data", ask(b"\x0d" + text(blob) + text(b"anything") + struct.pack(">I", 0)))
print("library", ask(b"\x14" + text(b"/usr/lib/x86_64-linux-gnu/libc.so.6") + text(b"")))
print("list", ask(b"\x0b"))
"""
FAILURE, LIST = 5, 12


def test_another_host(home, project, key, serve):
    """It takes the key, and is not declared: the agent does not sign for it."""
    server, other = serve(), serve()
    agent = Agent(home, server.entry(key))
    to = f"-F none -p {other.port} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    script = f"ssh {to} -o BatchMode=yes {user()}@127.0.0.1 true; echo $?; ssh there echo fine"
    done = agent.sh(script)
    assert lib.succeeded(done) == b"255\nfine\n", done.stderr
    assert (server.accepted(), other.accepted()) == (1, 0)
    assert "Connection from" in other.log(), "it got as far as that"
    # The same with the key declared for both.
    agent = Agent(home, server.entry(key), other.entry(key, "other"))
    assert lib.succeeded(agent.sh("ssh there echo 1; ssh other echo 2")) == b"1\n2\n"
    assert other.accepted() == 1


def test_another_user(home, project, key, serve):
    """A user that is not declared: nothing is signed, so the server has nothing to judge."""
    server = serve()
    agent = Agent(home, server.entry(key, User="somebody"))
    done = agent.sh(f"ssh -v -o BatchMode=yes {user()}@there true; echo $?")
    assert lib.succeeded(done) == b"255\n"
    assert server.accepted() == 0
    assert b"agent refused operation" in done.stderr


def test_a_host_with_another_key(home, project, key, serve):
    """An impostor is not spoken to; nor would the agent sign for it."""
    server, other = serve(), serve()
    agent = Agent(home, server.entry(key, KnownHostKey=public(other.key)))
    done = agent.sh(
        "ssh there true; echo $?;"
        "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes"
        " there true; echo $?"
    )
    assert lib.succeeded(done) == b"255\n255\n"
    assert b"Host key verification failed" in done.stderr
    assert server.accepted() == 0


def test_what_the_agent_signs(home, project, key, serve):
    """No login to a session that no host has signed, no other data, and it loads no library."""
    agent = Agent(home, serve().entry(key))
    lib.make_file(project / "sign.py", SIGN.replace("USER", user()))
    out = lib.succeeded(agent.sh(f"{lib.PYTHON} sign.py")).decode().splitlines()
    assert out == [f"login {FAILURE}", f"data {FAILURE}", f"library {FAILURE}", f"list {LIST}"]


def test_files_cannot_be_changed(home, project, key, serve):
    agent = Agent(home, serve().entry(key))
    script = """
        for f in ~/.ssh/config ~/.ssh/known_hosts /etc/carrel/ssh/there.pub; do
            echo x >>$f || rm -f $f || mv $f $f.old || echo kept
        done
        rm -f /etc/carrel/ssh-agent || mv /etc/carrel /etc/x || echo kept
        ssh there echo fine"""
    assert lib.succeeded(agent.sh(script)) == b"kept\n" * 4 + b"fine\n"


def test_another_box(home, project, key, serve):
    """It sees no socket of the first box's, neither in the box nor by the host's path."""
    agent = Agent(home, serve().entry(key))
    first = agent.start("echo started; read x")
    lib.read_until(first.stdout, b"started")
    (name,) = sockets()
    path = next(lib.runtime().rglob(name))
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
    assert lib.execute([lib.PYTHON, "-c", connect]).returncode == 0, "it is there"
    for opts in ((), ("--network", "host")):
        done = lib.box(lib.PYTHON, "-c", connect, opts=opts)
        assert done.returncode == 1 and b"FileNotFoundError" in done.stderr
        done = lib.box("sh", "-c", "ls /etc/carrel; echo ${SSH_AUTH_SOCK-none}", opts=opts)
        assert done.stdout == b"gitignore\nnone\n"
    second = agent.start("ssh-add -l; echo started; read x")
    lib.read_until(second.stdout, b"started")
    assert len(sockets()) == 2 and len(agents()) == 2
    # Whoever empties one agent empties no other.
    third = agent.sh("ssh-add -D; ssh-add -l; echo end")
    assert b"no identities" in third.stdout
    first.communicate(b"\n")
    second.communicate(b"\n")
    nothing_left()


def test_killed(home, project, key, serve):
    """With the supervisor the agent ends and takes its socket along."""
    agent = Agent(home, serve().entry(key))
    process = agent.start("echo started; sleep 1000")
    lib.read_until(process.stdout, b"started")
    (pid,) = agents()
    assert len(sockets()) == 1
    process.kill()
    nothing_left()
    assert not cmdline(pid)


def test_agent_killed_too(home, project, key, serve):
    """Both at once leave a socket; the next box with keys removes it."""
    agent = Agent(home, serve().entry(key))
    process = agent.start("echo started; sleep 1000", "--name", "lost")
    lib.read_until(process.stdout, b"started")
    (pid,) = agents()
    os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    lib.wait_for(lambda: not agents(), "its end")
    assert sockets() == ["lost.agent"]
    lib.succeeded(agent.sh("ssh there true"))
    assert sockets() == []


def test_agent_ended_under_the_box(home, project, key, serve):
    """The box goes on, and ends as ever."""
    agent = Agent(home, serve().entry(key))
    process = agent.start("echo started; read x; ssh-add -l; exit 7")
    lib.read_until(process.stdout, b"started")
    (pid,) = agents()
    os.kill(pid, signal.SIGKILL)
    lib.wait_for(lambda: not agents(), "the agent's end")
    _, err = process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert process.returncode == 7 and b"Error connecting to agent" in err
    lib.succeeded(agent.sh("true"))
    nothing_left()


def test_limits(home, project, key, serve):
    """Connections without end, and keys without end: the box's own agent refuses or ends."""
    agent = Agent(home, serve().entry(key))
    script = """
        ssh-keygen -q -t rsa -b 1024 -N '' -f k 2>/dev/null || ssh-keygen -q -t rsa -N '' -f k
        ssh-add -q k && echo added
        """
    assert lib.succeeded(agent.sh(script)) == b"added\n"
    process = agent.start("echo started; read x")
    lib.read_until(process.stdout, b"started")
    (pid,) = agents()
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max open files +64 +64", limits)
    assert re.search(rf"Max data size +{64 << 20} ", limits)
    assert re.search(r"Max core file size +0 ", limits)
    environ = pathlib.Path(f"/proc/{pid}/environ").read_text() if lib.ROOT else ""
    assert "HOME" not in environ and "DISPLAY" not in environ
    process.communicate(b"\n")


# ---- what is looked at before anybody is asked ------------------------------------------


def refused(agent, *words):
    done = agent.sh("echo started")
    assert done.returncode == 125 and b"started" not in done.stdout
    for word in words:
        assert word in done.stderr.decode(), (word, done.stderr)
    assert sockets() == [] and agents() == []


def test_bad_keys(home, project, key, serve):
    server = serve()
    for path, mode, words in (
        (home / "absent", None, ["No such file"]),
        (home, None, ["is no file"]),
        (lib.make_file(home / "open", key.read_text()), 0o644, ["mode 0644", "chmod 600"]),
        (lib.make_file(home / "text", "no key\n"), 0o600, ["does not tell its public half"]),
        (lib.make_file(project / "mine", key.read_text()), 0o600, ["lies in the workspace"]),
    ):
        if mode:
            path.chmod(mode)
        refused(Agent(home, server.entry(path)), "ssh[0].IdentityFile", str(path), *words)


def test_a_mount_shows_the_key(home, project, key, serve):
    entry = serve().entry(key)
    shown = f"the box could read the key {key}"
    refused(Agent(home, entry, mounts=[{"source": "~", "target": "/mnt/home"}]), shown)
    refused(Agent(home, entry, mounts=[{"source": "~/.ssh", "target": "/k"}]), shown)
    lib.make_dir(home / "else")
    lib.succeeded(Agent(home, entry, mounts=[{"source": "~/else"}]).sh("true"))


def test_without_openssh(home, project, key, serve):
    agent = Agent(home, serve().entry(key))
    path = lib.make_dir(home / "bin")
    for name in ("sh", "ssh-keygen", "ssh-agent"):
        os.symlink(shutil.which(name), path / name)
    done = agent.sh("echo started", env={"PATH": str(path)})
    lib.failed_clearly(done, "no program 'ssh-add'", "openssh-client")


def test_programs_of_the_project(home, project, key, serve):
    """An agent may have left an ssh-agent in the project: it is not run."""
    agent = Agent(home, serve().entry(key))
    for name in ("ssh-agent", "ssh-add", "ssh-keygen"):
        lib.make_file(project / "bin" / name, "#!/bin/sh\ntouch ../executed\n", mode=0o755)
    env = {"PATH": f"{project}/bin:/usr/bin:/bin"}
    assert lib.succeeded(agent.sh("/usr/bin/ssh there echo fine", env=env)) == b"fine\n"
    assert not (project.parent / "executed").exists()


def test_without_a_network(home, project, key, serve):
    agent = Agent(home, serve().entry(key), network="none")
    done = agent.sh("ssh -o ConnectTimeout=5 there true; echo $?")
    assert lib.succeeded(done) == b"255\n"
    assert b'no network: the hosts that "ssh" declares cannot be reached' in done.stderr


def test_plan(home, project, key, serve):
    """It names host and key, and says that the key stays; and makes nothing."""
    server = serve()
    Agent(home, server.entry(key))
    before = lib.snapshot(lib.runtime()), lib.snapshot(home)
    text = lib.succeeded(
        lib.execute(known([lib.program(), "plan", "a"]), user=False),
    ).decode()
    assert f"there: {user()}@127.0.0.1 port {server.port}, with {key}, which stays" in text
    plans = []
    for name in ("one", "two"):
        argv = known([lib.program(), "plan", "--json", "--name", name, "a"])
        plans.append(json.loads(lib.succeeded(lib.execute(argv, user=False))))
    assert plans[0]["ssh"] == [{"host": "there", "hostname": "127.0.0.1", "user": user(),
                                "port": server.port, "key": str(key)}]  # fmt: skip
    assert plans[0]["hash"] == plans[1]["hash"], "the name of the box is not part of it"
    places = {place["target"]: place for place in plans[0]["places"]}
    assert places["/etc/carrel/ssh-agent"]["source"].endswith("/one.agent")
    assert key.read_text().splitlines()[1] not in json.dumps(plans)
    assert (lib.snapshot(lib.runtime()), lib.snapshot(home)) == before


def test_a_bottle_manifest(home, project, key, serve):
    """A claude-bottle.json under another name: agents with env, skills, prompt and ssh."""
    server = serve()
    lib.make_file(home / ".claude" / "skills" / "notes" / "SKILL.md", "---\nname: notes\n---\n")
    script = (
        "#!/bin/sh\n"
        'printf "%s|%s|" "$LITERAL" "$COPIED" >from-box\n'
        "ssh code echo logged-in >>from-box; cat ~/.claude/skills/notes/SKILL.md >>from-box\n"
    )
    claude = lib.make_file(home / "bin" / "claude", script, mode=0o755)
    entry = server.entry("~/.ssh/id", "code")
    agent = {
        "env": {"LITERAL": "as it is", "COPIED": "${HOST_VAR}"},
        "skills": ["notes"],
        "prompt": "Keep the journal.",
        "ssh": [entry],
    }
    manifest = json.dumps({"agents": {"journal": agent}})
    lib.make_file(project / "carrel.json", manifest)
    env = {
        "CARREL_TRUST": hashlib.sha256(manifest.encode()).hexdigest(),
        "HOST_VAR": "copied",
        "ANTHROPIC_API_KEY": "k",
        "PATH": f"{claude.parent}:/usr/bin:/bin",
    }
    argv = [lib.program(), "run", "-y", "--network", "host", "journal"]
    lib.succeeded(lib.execute(known(argv), user=False, env=env))
    text = (project / "from-box").read_text()
    assert text.startswith("as it is|copied|logged-in\n") and "name: notes" in text
    # What was not approved gets no key.
    lib.make_file(project / "carrel.json", manifest + "\n")
    done = lib.execute(known(argv), user=False, env=env)
    assert done.returncode == 125 and b"approved" in done.stderr
    assert server.accepted() == 1
    nothing_left()
