"""What the kernel counts for all processes of a user together: no box may use it up.

A hog takes as many of one thing as it can, in a box and, as a control, outside. Then a probe
on the host, another process of the same user, wants one more. Both are Python programs that
are run with the limits of a usual login.
"""

import contextlib
import os
import subprocess

import lib
import pytest

MANY = 20000
USUAL = f"--nofile=1024:{MANY}"

# Each has take(), which takes one more or raises OSError, and keeps it.
THINGS = {
    "flight": """
import socket
ends = socket.socketpair()
for end in ends:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
more = [ends]
def take(count=250):
    try:
        socket.send_fds(more[-1][0], [b"x"], [0] * count, socket.MSG_DONTWAIT)
    except BlockingIOError:
        more.append(socket.socketpair())
        take(count)
def probe():
    take(1)
""",
    "signals": """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
def take():
    if libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) < 0:
        raise OSError(ctypes.get_errno(), "sigqueue")
probe = take
""",
    "queues": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
kept = []
def take():
    name = f"/carrel-{os.getpid()}-{len(kept)}".encode()
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    libc.mq_unlink(name)
    kept.append(queue)
probe = take
""",
    "instances": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def take():
    if libc.inotify_init() < 0:
        raise OSError(ctypes.get_errno(), "inotify_init")
probe = take
""",
}
HOG = """
import errno, os, resource, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
taken = 0
try:
    while taken < int(sys.argv[1]):
        take()
        taken += 1
    why = "enough"
except OSError as error:
    why = errno.errorcode[error.errno]
with open("hog.new", "w") as file:
    print(taken, why, file=file)
os.rename("hog.new", "hog")
os.read(0, 1)
"""
PROBE = """
import errno
try:
    probe()
    print("ok")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def limited(argv, limits):
    return lib.as_user(["prlimit", *limits, *argv])


@contextlib.contextmanager
def hog(project, thing, before=(), limits=(USUAL,), most=1000000):
    """A hog that has what it can get: how much that was, and why it stopped."""
    script = THINGS[thing] + HOG
    process = subprocess.Popen(
        limited([*before, lib.PYTHON, "-c", script, str(most)], limits),
        cwd=project,
        env=lib.environment(),
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    lib.started.append(process)
    said = project / "hog"
    lib.wait_for(lambda: said.exists() or process.poll() is not None, "the hog")
    assert process.poll() is None
    taken, why = said.read_text().split()
    said.unlink()
    yield int(taken), why
    process.stdin.close()
    assert process.wait(lib.TIMEOUT) == 0


def probe(thing, limits=(USUAL,)):
    done = lib.execute(["prlimit", *limits, lib.PYTHON, "-c", THINGS[thing] + PROBE])
    return lib.succeeded(done).decode().strip()


def box_command(*opts):
    return [lib.program(), "run", "-y", *opts, "--"]


# The limits of the user's login, and what the kernel answers when there is no more.
LIMITS = {
    "flight": ((USUAL,), "ETOOMANYREFS"),
    "signals": ((USUAL, "--sigpending=1000:1000"), "EAGAIN"),
    "queues": ((USUAL, "--msgqueue=819200:819200"), "EMFILE"),
    "instances": ((USUAL,), "EMFILE"),
}


@pytest.mark.parametrize("thing", LIMITS)
def test_a_box_leaves_some(project, thing):
    """Whatever a box takes, the user's programs have the rest, and another box starts."""
    limits, answer = LIMITS[thing]
    opts = ["--nest"] if thing == "queues" else []  # without it Landlock lets none be made
    with hog(project, thing, box_command(*opts), limits) as (taken, why):
        assert taken > 0 and why == answer, (taken, why)
        assert probe(thing, limits) == "ok"
        again = ["prlimit", *limits, *box_command(), "true"]
        lib.succeeded(lib.execute(again))


@pytest.mark.parametrize("thing", LIMITS)
def test_without_a_box_nothing_is_left(project, thing):
    """The control: the same hog outside takes what the probe needs."""
    limits, answer = LIMITS[thing]
    assert probe(thing, limits) == "ok"
    with hog(project, thing, (), limits) as (_, why):
        assert why == answer
        assert probe(thing, limits) == answer
    assert probe(thing, limits) == "ok"


def test_a_start_is_not_kept_from_sending(project):
    """2,500 descriptors in flight: above the soft limit of a login, below the hard one."""
    with hog(project, "flight", most=10) as (taken, why):
        assert (taken, why) == (10, "enough")
        assert probe("flight") == "ETOOMANYREFS"
        start = [*box_command(), "true"]
        lib.succeeded(lib.execute(["prlimit", USUAL, *start]))
        child = lib.terminal(["prlimit", USUAL, *start])
        assert lib.finish(child) == 0


@pytest.mark.parametrize("opts", [[], ["--network", "host"]], ids=["net", "terminal"])
def test_a_start_says_what_ran_out(project, opts):
    """With no higher limit to go to it says what is used up, and who may have it."""
    start = ["prlimit", "--nofile=1024:1024", *box_command(*opts), "true"]
    with hog(project, "flight", most=10):
        if not opts:
            done = lib.execute(start)
            lib.failed_clearly(done, "too many descriptors are in flight", "another box")
        child = lib.terminal(start)
        assert lib.finish(child) == 125
        assert b"descriptors in flight" in child.before
    lib.succeeded(lib.execute(start))


def test_limits_of_what_is_counted(project):
    """Half of what the user may have, for each that has a limit of its own."""
    script = "ulimit -i; ulimit -q; ulimit -l; ulimit -Hn; ulimit -Sn"
    limits = ["--sigpending=800:900", "--msgqueue=8000:9000", f"--memlock={1 << 20}", USUAL]
    done = lib.execute(["prlimit", *limits, *box_command(), "bash", "-c", script])
    assert lib.succeeded(done).split() == [b"400", b"4000", b"512", b"704", b"704"]


def test_more_files_can_be_asked_for(project):
    done = lib.execute(
        ["prlimit", USUAL, *box_command("--limit", "files=5000"), "sh", "-c", "ulimit -Hn"]
    )
    assert lib.succeeded(done) == b"5000\n"
    done = lib.execute(["prlimit", USUAL, *box_command("--limit", f"files={MANY + 1}"), "true"])
    lib.failed_clearly(done, f"open files to {MANY + 1}", "ulimit -H")


WATCH = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init()
n = 0
where = os.path.join(sys.argv[1], "watched")
os.makedirs(where, exist_ok=True)
while n < 1000:
    path = os.path.join(where, str(n))
    os.makedirs(path, exist_ok=True)
    if libc.inotify_add_watch(fd, path.encode(), 2) < 0:
        break
    n += 1
print(n, flush=True)
"""


def test_watches(project):
    """A box may have half of the watches; seen in a user namespace that has 300 in all."""
    lib.make_file(project / "watch.py", WATCH)
    script = (
        "echo 300 >/proc/sys/user/max_inotify_watches || exit\n"
        f"{lib.PYTHON} watch.py .\n"
        f"{lib.program()} run -y -- sh -c '{lib.PYTHON} -i watch.py /tmp <hold >count' &\n"
        "exec 9>hold; until [ -s count ]; do sleep 0.05; done\n"
        f"cat count; {lib.PYTHON} watch.py .; exec 9>&-; wait $!"
    )
    subprocess.run(["mkfifo", project / "hold"], check=True)
    lib.give(project / "hold")
    done = lib.execute(["unshare", "-c", "--keep-caps", "sh", "-c", script])
    alone, box, beside = map(int, lib.succeeded(done).split())
    assert (alone, box) == (300, 150), done
    assert 140 <= beside <= 150, done  # the supervisor watches the directories of its stubs


def test_watches_of_the_host(project):
    path = "/proc/sys/user/max_inotify_watches"
    with open(path, encoding="ascii") as file:
        half = int(file.read()) // 2
    script = f"cat {path}; echo 99999999 >{path}; cat {path}"
    done = lib.box("sh", "-c", script)
    assert done.stdout.split() == [b"%d" % half] * 2


TERMINALS = """
import errno, os
n = 0
try:
    while n < 300:
        os.openpty()
        n += 1
    print(n)
except OSError as error:
    print(n, errno.errorcode[error.errno])
"""


def test_terminals_of_the_machine(project):
    """The kernel has 4,096 for everybody: a box gets 256, its own terminal among them."""
    program = [lib.PYTHON, "-c", TERMINALS]
    assert lib.succeeded(lib.box(*program)) == b"256 ENOSPC\n"
    child = lib.terminal([*box_command(), *program])
    assert lib.finish(child) == 0 and b"255 ENOSPC" in child.before
    assert lib.succeeded(lib.execute(program)) == b"300\n", "the control"
