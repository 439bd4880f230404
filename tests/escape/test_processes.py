"""Attacks on and through processes: descriptors, terminals, /proc, signals, identity.

Host processes are looked after by the host: it sees whether they live, what they said, and
which descriptors a box's processes really hold.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time

import arena
import lib
import pytest
from arena import inside, outside

pytestmark = pytest.mark.usefixtures("tool")

HOST = ["--network", "host"]
NEST = ["--nest"]
NETWORKS = pytest.mark.parametrize("opts", [[], HOST], ids=["none", "host"])
SECRET = "secret-of-the-host"


# ---- descriptors --------------------------------------------------------------------------


@contextlib.contextmanager
def inherited(home):
    """Descriptors that carrel inherits by accident: a directory, a file, a socket, a pipe."""
    ends = socket.socketpair()
    fds = [os.open(home, os.O_RDONLY), os.open(home / "secret.txt", os.O_RDWR)]
    fds += [ends[0].fileno(), *os.pipe(), fcntl.fcntl(fds[0], fcntl.F_DUPFD, 200)]
    try:
        yield fds
    finally:
        for end in ends:
            end.close()
        for fd in (fds[0], fds[1], *fds[3:]):
            os.close(fd)


@pytest.mark.parametrize("opts", [[], NEST], ids=["strict", "nest"])
def test_descriptors_at_the_first_instruction(project, home, opts):
    """Only 0, 1 and 2, whatever carrel was started with (CVE-2024-21626)."""
    with inherited(home) as fds:
        reads = [s for n in range(3, 16) for s in (f"holdfd {n}", "readat secret.txt")]
        said = inside("fds", *reads, opts=opts, pass_fds=fds)
        assert said[0] == "ok 0 1 2 "
        assert "the secret" not in "".join(said)
        said = outside("fds", f"holdfd {fds[0]}", "readat secret.txt", pass_fds=fds)
        assert len(said[0].split()) >= 4 + len(fds)
        assert "the secret" in said[2]


def open_files(pid):
    """What a process's descriptors lead to, as the host sees it."""
    top = f"/proc/{pid}/fd"
    return {os.readlink(f"{top}/{number}") for number in os.listdir(top)}


def test_descriptors_seen_from_the_host(project, home):
    """What init and the command hold: no file of the host, no stream of carrel's."""
    own = set()
    with inherited(home) as fds, arena.held(project=project, pass_fds=fds) as process:
        for n in range(3):
            own.add(os.readlink(f"/proc/{process.pid}/fd/{n}"))
        init, command = arena.in_box(process.pid)[:2]
        links = open_files(command)
        assert len(links) == 3 and not own & links, (own, links)
        if lib.ROOT:
            links = open_files(init)
            assert not [link for link in links if link.startswith(str(home))], links
            assert not own & links
        assert len(os.listdir(f"/proc/{process.pid}/fd")) > 3


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_standard_stream_is_a_host_file(home, stream):
    """A stream is relayed: the file behind it cannot be reopened, truncated or read back."""
    steps = ["truncate /proc/self/fd/{0}", "put /proc/self/fd/{0} EVIL"]
    steps += ["linkfd /proc/self/fd/{0} l"]
    number = {"stdin": 0, "stdout": 1, "stderr": 2}[stream]
    words = arena.words([s.format(number) for s in [*steps, "read /proc/self/fd/{0}"]])
    path = home / "secret.txt"
    flags = os.O_RDONLY if stream == "stdin" else os.O_WRONLY | os.O_APPEND
    for where in (lib.box, lambda *argv, **how: lib.execute(argv, **how)):
        fd = os.open(path, flags)
        where("./attack", *words, **{stream: fd})
        os.close(fd)
        intact = path.read_text().startswith("the secret of the home")
        assert intact == (where is lib.box), where


@pytest.mark.parametrize("kind", ["directory", "socket"])
def test_standard_input_is_a_directory_or_socket(home, project, kind):
    """Neither a directory nor a socket of the host becomes the box's descriptor 0."""
    steps = ["holdfd 0", "readat secret.txt", "chdir /proc/self/fd/0", "read secret.txt"]
    ends = socket.socketpair()
    fd = os.open(home, os.O_RDONLY) if kind == "directory" else ends[0].fileno()
    done = lib.box("./attack", *arena.words(steps), stdin=fd)
    assert b"the secret" not in done.stdout
    done = lib.box("./attack", "readlink", "/proc/self/fd/0", stdin=fd)
    assert b"socket:" not in done.stdout and str(home).encode() not in done.stdout
    steps += ["readlink /proc/self/fd/0"]
    done = lib.execute(["./attack", *arena.words(steps)], stdin=fd)
    assert (b"the secret" in done.stdout) == (kind == "directory")
    assert (b"socket:" in done.stdout) == (kind == "socket")


def test_working_directory_through_a_descriptor(project, home):
    """chdir to /proc/self/fd/N, and being started with a leaked one (CVE-2024-21626)."""
    with inherited(home) as fds:
        steps = []
        for n in (*range(3, 16), fds[-1]):
            steps += [f"chdir /proc/self/fd/{n}", "read secret.txt"]
        assert "the secret" not in "".join(inside(*steps, pass_fds=fds))
        said = outside(f"chdir /proc/self/fd/{fds[0]}", "read secret.txt", pass_fds=fds)
        assert "the secret" in said[1]
    assert inside("cwd") == [f"ok {project}"]


# ---- terminals ----------------------------------------------------------------------------


class Terminal:
    """A terminal of the test's own, controlling whatever runs on it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        if lib.ROOT:
            os.fchown(self.slave, lib.UID, lib.UID)
        self.shown = b""

    def run(self, argv, streams=("stdin", "stdout", "stderr")):
        """Run to the end, with the named streams on the terminal, the others nowhere."""

        def control():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

        how = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        how |= dict.fromkeys(streams, self.slave)
        env = lib.environment({"TERM": "xterm"})
        process = subprocess.Popen(
            lib.as_user(argv), preexec_fn=control, cwd=lib.current.cwd, env=env, **how
        )
        os.set_blocking(self.master, False)
        end = time.monotonic() + lib.TIMEOUT
        while process.poll() is None and time.monotonic() < end:
            self.drain()
            time.sleep(0.01)
        assert process.returncode is not None, process.kill()
        self.drain()

    def drain(self):
        with contextlib.suppress(BlockingIOError, OSError):
            while True:
                self.shown += os.read(self.master, 65536)

    def pending(self):
        """Has somebody typed into it?"""
        size = fcntl.ioctl(self.slave, termios.FIONREAD, struct.pack("i", 0))
        return struct.unpack("i", size)[0]

    def close(self):
        os.close(self.master)
        os.close(self.slave)


STREAMS = {
    "all": ("stdin", "stdout", "stderr"),
    "stdin": ("stdin",),
    "output": ("stdout", "stderr"),
    "none": (),
}


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_typing_into_the_hosts_terminal(streams):
    """TIOCSTI plain and with high bits (CVE-2017-5226, CVE-2019-10063)."""
    words = arena.words([["input", high, "id\n"] for high in ("0", "1", "0xffffffff")])
    terminal = Terminal()
    terminal.run([lib.program(), "run", "-y", "--", "./attack", *words], streams)
    assert terminal.pending() == 0
    terminal.run(["./attack", *words], ("stdin", *streams))
    # Since Linux 6.2 a machine may have TIOCSTI turned off for all.
    switch = pathlib.Path("/proc/sys/dev/tty/legacy_tiocsti")
    assert terminal.pending() > 0 or switch.read_text().strip() == "0"
    terminal.close()


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_writing_to_the_hosts_terminal(streams, home):
    """/dev/tty, /dev/console and the host's /dev/pts/N are not the terminal that carrel has."""
    terminal = Terminal()
    name = os.ttyname(terminal.slave)
    words = arena.words(["write /dev/console EVIL", f"write {name} EVIL"])
    words += [",", "sleep", "0"] if "stdin" in streams else [",", "write", "/dev/tty", "EVIL"]
    # On a full terminal /dev/pts/0 is the box's own, and what it shows is to be relayed.
    number = name.rpartition("/")[2]
    if not (streams == STREAMS["all"] and number == "0"):
        terminal.run([lib.program(), "run", "-y", "--", "./attack", *words], streams)
        assert b"EVIL" not in terminal.shown
    terminal.run(["./attack", "write", "/dev/tty", "EVIL"], streams)
    assert b"EVIL" in terminal.shown
    terminal.close()


# ---- the box's init and carrel itself -----------------------------------------------------


@pytest.mark.parametrize("opts", [[], HOST, NEST], ids=["none", "host", "nest"])
def test_init_cannot_be_looked_into(opts):
    """/proc/1 of the box: memory, environment, descriptors, root are closed; no ptrace."""
    steps = [f"open /proc/1/{name} r" for name in ("environ", "mem", "maps", "auxv", "io")]
    steps += [f"list /proc/1/{name}" for name in ("fd", "map_files", "root/", "cwd/")]
    steps += [f"readlink /proc/1/{name}" for name in ("fd/0", "root", "cwd", "exe")]
    steps += ["open /proc/1/mem rw"]
    steps += ["ptrace 1", "vmread 1 0x400000 8", "sys pidfd_getfd 3 0 0", "sys kcmp 1 1 2 0 0"]
    said = inside(*steps, opts=opts)
    assert not [p for p in zip(steps, said) if p[1].startswith("ok")]
    steps = [f"open /proc/self/{n} r" for n in ("environ", "mem", "maps")]
    own = inside(*steps, "list /proc/self/fd")
    assert [line[:2] for line in own] == ["ok"] * 4


@pytest.mark.parametrize("opts", [[], NEST], ids=["strict", "nest"])
def test_own_binary_is_not_overwritten(place, project, opts):
    """carrel's file reopened through /proc/PID/exe, and a script that runs it (CVE-2019-5736).

    The copy belongs to the user, so that nothing but the box stands between.
    """
    copy = place / "carrel"
    shutil.copy(lib.program(), copy)
    copy.chmod(0o755)
    lib.give(copy)
    lib.make_file(project / "script", "#!/proc/self/exe\n", mode=0o755)
    before = lib.digest(copy)
    steps = []
    for pid in ("1", "2", "self", "thread-self"):
        exe = f"/proc/{pid}/exe"
        steps += [f"open {exe} w", f"put {exe} EVIL", f"truncate {exe}"]
    steps += ["run ./script", f"put {copy} EVIL", f"put /proc/1/root{copy} EVIL"]
    attack = ["./attack", *arena.words(steps)]
    for command in (attack, ["./script", "x"], ["/proc/self/exe", "help"]):
        lib.execute([str(copy), "run", "-y", *opts, "--", *command])
        assert lib.digest(copy) == before
    outside(f"put {copy} EVIL")
    assert lib.digest(copy) != before


# ---- other processes of the same user -----------------------------------------------------

VICTIM = """
import ctypes, signal, sys, time
text = ctypes.create_string_buffer(b"secret-of-the-host")
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
print(hex(ctypes.addressof(text)), flush=True)
time.sleep(60)
"""


@pytest.fixture
def victim():
    """A process of the same user on the host, with a secret in its memory and environment."""
    argv = lib.as_user([lib.PYTHON, "-c", VICTIM])
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, env={"TOKEN": SECRET})
    process.address = process.stdout.readline().decode().strip()
    yield process
    process.kill()
    process.communicate()


@NETWORKS
def test_memory_of_a_host_process(victim, opts):
    """ptrace, process_vm_readv, /proc/PID of a process with the same uid (rule 7)."""
    pid = victim.pid
    steps = [f"ptrace {pid}", f"vmread {pid} {victim.address} {len(SECRET)}", f"pidfd {pid} 0"]
    steps += [f"read /proc/{pid}/environ", f"read /proc/{pid}/cmdline"]
    steps += [f"open /proc/{pid}/root path"]
    said = inside(*steps, opts=opts)
    assert SECRET not in "".join(said) and not [line for line in said if line.startswith("ok")]
    said = outside(*steps)
    assert "".join(said).count(SECRET) >= 2 and {line[:2] for line in said} == {"ok"}, said


@NETWORKS
def test_environment_of_every_process(opts):
    """What is in carrel's own environment is in nobody's that the box can see."""
    steps = [f"read /proc/{n}/environ" for n in (*range(1, 12), "self")] + ["env"]
    said = inside(*steps, opts=opts, env={"HOST_TOKEN": SECRET})
    assert SECRET not in "".join(said)
    assert SECRET in inside("env", opts=["--env", "HOST_TOKEN"], env={"HOST_TOKEN": SECRET})[0]
    assert SECRET in outside("read /proc/self/environ", env={"HOST_TOKEN": SECRET})[0]


def pids_in_box(opts):
    """What a box's /proc lists: init, the command, perhaps a helper that is leaving."""
    return [int(n) for n in inside("list /proc", opts=opts)[0].split() if n.isdigit()]


@NETWORKS
def test_signals_stay_in_the_box(victim, opts):
    """By the host's pid, to everybody, to process groups, by pidfd; init is deaf too."""
    pid = victim.pid
    # In a broken box the last of these would be the end of the user's session.
    assert max(pids_in_box(opts)) < 10
    steps = [f"kill {pid} 9", f"kill -{pid} 9", f"pidfd {pid} 9"]
    steps += ["kill 1 9", "kill 1 15", "kill -1 9"]
    inside(*steps, "put alive yes", opts=opts)
    assert victim.poll() is None
    assert (lib.current.cwd / "alive").exists(), "init died of a signal from its own box"
    outside(f"kill {pid} 9")
    assert victim.wait(timeout=10) == -signal.SIGKILL


@NETWORKS
def test_processes_are_not_seen(victim, opts):
    """/proc shows the box's own processes only."""
    assert pids_in_box(opts)[0] == 1 and max(pids_in_box(opts)) < 10
    assert str(victim.pid) in outside("list /proc")[0].split()


def test_daemons_do_not_outlive_the_command():
    """New sessions, ignored signals, no parent death signal: all is over with carrel."""
    mark = f"linger-{os.getpid()}-{time.monotonic_ns()}"
    left = lambda: [p for p in lib.processes(mark) if arena.status(p).get("Name") == "attack"]
    inside(["linger", "4", mark])
    assert not left()
    outside(["linger", "4", mark])
    lib.wait_for(lambda: len(left()) == 4, "the children to settle")
    left = left()
    assert len(left) == 4
    for pid in left:
        os.kill(pid, signal.SIGKILL)


# ---- identity -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user, opts",
    [(True, []), (True, HOST), (True, NEST), (False, []), (False, HOST)],
    ids=["user", "user, host", "user, nest", "root", "root, host"],
)
def test_no_capabilities_and_no_new_privileges(project, user, opts):
    """All five sets empty and NoNewPrivs 1, as the host sees the command."""
    if not user:
        if not lib.ROOT:
            pytest.skip("needs root")
        subprocess.run(["chown", "-R", "0:0", project], check=True)
    with arena.held("setid", project=project, opts=opts, user=user) as process:
        for pid in arena.in_box(process.pid):
            seen = arena.status(pid)
            sets = [seen[n] for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
            # A box that may nest keeps the bounding set for its own user namespaces only.
            powers = [int(s, 16) for s in sets]
            assert not any(powers[:3] + powers[4:]) and (opts == NEST or not powers[3]), seen
            assert set(seen["Uid"].split()) == {str(lib.UID if user else 0)}
            assert seen["NoNewPrivs"] == "1", seen
    assert process.said.decode().splitlines()[0] == "EINVAL"
    inner = lib.UID if user else 1000
    assert inside("uids", user=user, opts=opts) == [f"ok {inner} {inner}"]
    assert outside("status")[0].count("NoNewPrivs: 0")


@pytest.mark.parametrize("number", [0, 1, 65534])
def test_no_other_identity(number):
    """setuid, setgid and setgroups to anybody; a file cannot be given away."""
    steps = [f"sys {call} {number}" for call in (105, 106)] + ["sys 116 1 @", "setid"]
    said = inside(*steps)
    assert not [line for line in said if line.startswith("ok")], said
    if lib.ROOT:
        assert outside("sys 105 1", user=False) == ["ok"]


# ---- words --------------------------------------------------------------------------------

WORDS = [
    "; touch planted", "$(touch planted)", "`touch planted`", "| touch planted", "a\nb", "-y",
    "--network=host", "--", "", "*", "~", "$HOME", "'", '"', "\\", "%s%n", "--mount", "/:/x:rw",
]  # fmt: skip


def test_arguments_stay_literal(project):
    """No shell, no second parsing of options: the words arrive as they were given."""
    done = lib.box("./attack", "args", *WORDS)
    assert lib.succeeded(done).decode() == "".join(f"<{word}>" for word in WORDS) + "\n"
    assert not (project / "planted").exists()
    lib.box("/bin/sh", "-c", f"true {WORDS[0]}")
    assert (project / "planted").exists()


@pytest.mark.parametrize("name", ["--bind", "--network=host", "-c", "-y", "--mount", "--nest"])
def test_command_that_looks_like_an_option(project, home, name):
    """After `--` a command is a command, also one named like an option of anybody's."""
    shutil.copy(project / "attack", project / name)
    done = lib.box(name, "/", "/", "./attack", "uids")
    assert done.returncode == 127, done
    done = lib.box(f"./{name}", "links")
    assert done.stdout == b"ok lo \n"
    done = lib.carrel("run", "-y", "--network", "host", "--", f"./{name}", "links")
    assert done.stdout.split()[1:] and done.stdout != b"ok lo \n"


# ---- environment --------------------------------------------------------------------------

STEERING = {
    "LD_PRELOAD": "{place}/no.so", "LD_LIBRARY_PATH": "{place}", "LD_AUDIT": "{place}/no.so",
    "GIT_DIR": "{place}/evil", "GIT_WORK_TREE": "{place}",
    "GIT_SSH_COMMAND": "touch {place}/executed",
    "GIT_CONFIG_GLOBAL": "{place}/evil", "GIT_CONFIG_COUNT": "0", "BASH_ENV": "{place}/evil",
    "ENV": "{place}/evil", "PYTHONPATH": "{place}", "PYTHONSTARTUP": "{place}/evil",
    "NODE_OPTIONS": "--require {place}/evil", "PERL5OPT": "-Mevil", "IFS": "/",
    "CARREL_BOX": "forged", "CARREL_CONFIG": "{place}/evil", "CARREL_ANYTHING": "1",
    "SSH_AUTH_SOCK": "{place}/agent", "DBUS_SESSION_BUS_ADDRESS": "unix:path={place}/bus",
    "DISPLAY": ":0", "XAUTHORITY": "{place}/x", "DOCKER_HOST": "unix://{place}/docker",
    "TMUX": "{place}/tmux,1,0", "AWS_SECRET_ACCESS_KEY": SECRET,
    "XDG_RUNTIME_DIR": "{place}/run",
}  # fmt: skip


@pytest.mark.parametrize("name", STEERING)
def test_environment_of_the_host_stays_out(project, place, name):
    """Variables that steer loaders, git, shells and runtimes, and those that name sockets."""
    value = STEERING[name].format(place=place)
    env = {name: value}
    if name.startswith("LD_"):
        env = {}
        argv = ["env", f"{name}={value}", lib.program(), "run", "-y", "--", "./attack", "env"]
        said = lib.execute(argv).stdout.decode()
    else:
        said = inside("env", "put .git/hooks/pre-commit EVIL", env=env)[0]
    assert "PATH=" in said
    assert f" {name}={value} " not in f" {said.removeprefix('ok ')}"
    assert not (project / ".git/hooks/pre-commit").exists()
    assert not (place / "executed").exists()
    if name != "CARREL_BOX":
        said = inside("env", opts=["--env", f"{name}={value}"])[0]
        assert f" {name}={value} " in f" {said.removeprefix('ok ')}"


def test_path_of_the_host_runs_no_planted_helper(project, place):
    """A PATH with the workspace in front: carrel starts no program of it on the host."""
    planted = lib.make_dir(project / "bin")
    script = f"#!/bin/sh\ntouch {place}/executed 2>/dev/null\n"
    for name in ("git", "sh", "true", "newuidmap", "newgidmap", "mount", "fusermount", "id"):
        lib.make_file(planted / name, script, mode=0o755)
    env = {"PATH": f"{planted}:.:/usr/bin:/bin"}
    for words in (["plan", "--", "true"], ["run", "-y", "--", "./attack", "uids"], ["check"]):
        lib.carrel(*words, env=env)
        assert not (place / "executed").exists(), words
    lib.execute(["sh", "-c", "git"], env=env)
    assert (place / "executed").exists()


# ---- IPC and keys -------------------------------------------------------------------------


@NETWORKS
def test_shared_memory_of_the_host(opts):
    """System V segments by key and by id, and POSIX ones, live in another namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = 0x0CA77E1 + os.getpid()
    ident = libc.shmget(key, 4096, 0o1666)
    assert ident >= 0
    try:
        address = libc.shmat(ident, None, 0)
        ctypes.memmove(address, SECRET.encode(), len(SECRET))
        steps = [f"shmread {key}", f"shmid {ident}"]
        assert SECRET not in "".join(inside(*steps, opts=opts))
        assert "".join(outside(*steps)).count(SECRET) == 2
    finally:
        libc.shmctl(ident, 0, None)


@NETWORKS
def test_posix_shared_memory_and_queues_of_the_host(opts):
    """/dev/shm and the message queues are the box's own."""
    name = f"/carrel-test-{os.getpid()}"
    rt = ctypes.CDLL("librt.so.1", use_errno=True)
    queue = rt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, ctypes.c_uint(0o666), None)
    assert queue >= 0
    with open(f"/dev/shm{name}", "w", encoding="ascii") as file:
        file.write(SECRET)
    os.chmod(f"/dev/shm{name}", 0o666)
    try:
        os.fchmod(queue, 0o666)
        rt.mq_send(queue, SECRET.encode(), len(SECRET), 0)
        steps = [f"mqread {name}", f"read /dev/shm{name}"]
        assert SECRET not in "".join(inside(*steps, opts=opts))
        assert "".join(outside(*steps)).count(SECRET) == 2
    finally:
        rt.mq_unlink(name.encode())
        os.close(queue)
        os.unlink(f"/dev/shm{name}")


KEYED = """
import ctypes, os, sys
call = ctypes.CDLL(None, use_errno=True).syscall
join, add = (250, 248) if os.uname().machine == "x86_64" else (219, 217)
call(join, 1, None)
assert call(add, b"user", b"carrel-test-key", b"secret-of-the-host", 18, -3) > 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("opts", [[], HOST, NEST], ids=["none", "host", "nest"])
def test_session_keyring_of_the_host(opts):
    """A key in the session keyring that carrel was started with: not read, not even listed.

    A box that may nest needs a proc with nothing on top of it, and so sees the names of keys.
    """
    words = arena.words(["keyread carrel-test-key", "read /proc/keys"])
    keyed = [lib.PYTHON, "-c", KEYED]
    box = [lib.program(), "run", "-y", *opts, "--", "./attack", *words]
    done = lib.execute([*keyed, *box])
    assert done.returncode == 0, done
    assert SECRET.encode() not in done.stdout
    assert opts == NEST or b"carrel-test-key" not in done.stdout
    done = lib.execute([*keyed, "./attack", *words])
    assert SECRET.encode() in done.stdout and b"carrel-test-key" in done.stdout


