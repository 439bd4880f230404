"""What the whole-program tests share: the program, whom it runs as, and looking at the host.

Everything runs as a normal user. Started by root, as in CI, the tests drop to a uid that has
no passwd entry; started by anybody else they stay that user. Verdicts are taken on the host:
nothing here believes what a box says about itself when the host can be asked instead.
"""

import ctypes
import errno
import functools
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import termios
import time

import pexpect

REPO = pathlib.Path(__file__).resolve().parent.parent
ROOT = os.getuid() == 0
UID = int(os.environ.get("CARREL_TEST_UID", "12345")) if ROOT else os.getuid()
GID = UID if ROOT else os.getgid()
# Generous: a stuck test must end, a slow machine must not fail.
TIMEOUT = float(os.environ.get("CARREL_TEST_TIMEOUT", "150"))
PYTHON = "/usr/bin/python3"
# The ABI of this kernel's Landlock; 6 came with Linux 6.12, and Debian 12's own has 2.
LANDLOCK = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
_CLOCK_REALTIME_COARSE = 5

# What a sanitizer or coverage build reads; everything else of our environment stays out.
_PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "GCOV_PREFIX")


class _Current:
    """The running test's own home and working directory; set by conftest."""

    home = None
    cwd = None


current = _Current()
started = []  # processes a test left to conftest to end


# ---- places -----------------------------------------------------------------------------


@functools.lru_cache(None)
def root():
    """The session's directory: every user can pass through, conftest removes it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="carrel-test-", dir="/tmp"))
    path.chmod(0o755)
    return path


@functools.lru_cache(None)
def runtime():
    """Names of boxes are taken here, so that two runs of the tests do not take each other's."""
    return make_dir(root() / "runtime", mode=0o700)


def remove(path):
    """Remove a tree, also one with directories that may not be read or written."""

    def again(function, name, _):
        """Once more with permission; what has vanished by itself is fine."""
        if not os.path.lexists(name):
            return
        if os.fspath(name) != os.fspath(path):  # what is around the tree is not ours to change
            os.chmod(os.path.dirname(name), 0o700)
        if not os.path.islink(name):
            os.chmod(name, 0o700)
        if function in (os.scandir, os.open):
            shutil.rmtree(name, onerror=again)
        else:
            function(name)

    # The janitor of a box whose supervisor was killed may still write the box's record.
    end = time.monotonic() + TIMEOUT
    while os.path.lexists(path):
        try:
            shutil.rmtree(path, onerror=again)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > end:
                raise
            time.sleep(0.05)


def make_dir(path, uid=None, mode=0o755):
    """A directory owned by the test user."""
    os.mkdir(path)
    os.chmod(path, mode)
    give(path, uid)
    return path


def make_file(path, content=b"", mode=0o644, uid=None):
    """A file owned by the test user, and the directories on the way."""
    path = pathlib.Path(os.fsdecode(path))
    for parent in reversed(path.parents):
        if not parent.exists():
            make_dir(parent, uid)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    give(path, uid)
    return path


def give(path, uid=None):
    if ROOT:
        owner = UID if uid is None else uid
        os.chown(path, owner, owner, follow_symlinks=False)


def snapshot(top):
    """All that can be seen of a tree from outside, except the times of directories."""
    top = os.fsencode(top)
    seen = {}
    for where, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            entry = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_ino]
            if stat.S_ISREG(st.st_mode):
                entry += [st.st_size, st.st_mtime_ns, st.st_nlink, digest(path)]
            elif stat.S_ISLNK(st.st_mode):
                entry += [os.readlink(path)]
            seen[os.path.relpath(path, top)] = entry
    return seen


def settle():
    """Wait until what is written later is newer, also by the coarse clock.

    Linux from 6.13 on stamps some files by the fine clock, which is ahead of the coarse one.
    """
    now = time.clock_gettime(time.CLOCK_REALTIME)
    wait_for(lambda: time.clock_gettime(_CLOCK_REALTIME_COARSE) > now, "the clock to tick")


def state(top, name):
    """What a name below top is on the host: as snapshot() has it, or None."""
    return snapshot(top).get(os.fsencode(name))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def kept(name):
    """Where something lies that is kept between runs of the tests, as in install.sh."""
    if ROOT:
        return pathlib.Path("/var/cache/carrel-tests") / name
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "carrel-tests" / name


def clients():
    """The directory of the clients' programs."""
    where = os.environ.get("CARREL_CLIENTS") or kept("clients")
    return pathlib.Path(where) / "node_modules" / ".bin"


# ---- running ----------------------------------------------------------------------------


@functools.lru_cache(None)
def program():
    """The program under test, where the test user can execute it."""
    path = pathlib.Path(os.environ.get("CARREL") or REPO / "build-test" / "carrel").resolve()
    assert path.exists(), f"there is no {path}: build it first"
    if subprocess.run(as_user(["test", "-x", path]), check=False).returncode == 0:
        return str(path)
    copy = root() / "carrel"
    shutil.copy(path, copy)
    copy.chmod(0o755)
    return str(copy)


def as_user(argv, uid=None):
    """argv such that it runs as a normal user."""
    if not ROOT:
        return list(argv)
    number = str(UID if uid is None else uid)
    drop = [shutil.which("setpriv"), "--reuid", number, "--regid", number, "--clear-groups"]
    return [*drop, "--", *argv]


def environment(extra=None):
    """A small, known environment; None as a value takes a name out."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(current.home)}
    env["XDG_RUNTIME_DIR"] = str(runtime())
    env |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env |= extra or {}
    return {name: value for name, value in env.items() if value is not None}


def _settings(user, uid, cwd, env):
    def wrap(argv):
        return as_user(argv, uid) if user else list(argv)

    return wrap, {"cwd": cwd or current.cwd, "env": environment(env)}


def execute(argv, user=True, uid=None, cwd=None, env=None, input=b"", timeout=TIMEOUT, **more):
    """Run any program as the test user with no terminal at all; output is bytes."""
    wrap, settings = _settings(user, uid, cwd, env)
    if "stdin" not in more:
        more["input"] = input
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(
        wrap(argv), timeout=timeout, start_new_session=True, check=False, **settings, **more
    )


def carrel(*args, **how):
    """Run carrel to its end."""
    return execute([program(), *args], **how)


CLIENTS = (".codex", ".gemini", ".config", ".config/opencode", ".cursor", ".config/JetBrains")


def use_clients():
    """Each client and editor has run here once: its absent files are kept from being made."""
    for name in CLIENTS:
        if not (current.home / name).exists():
            make_dir(current.home / name)


def box(*cmd, opts=(), **how):
    """Run a command in a box, unasked."""
    return carrel("run", "-y", *opts, "--", *cmd, **how)


def start(*args, user=True, uid=None, cwd=None, env=None, **more):
    """Start carrel and return at once; whatever is left of it ends with the test."""
    wrap, settings = _settings(user, uid, cwd, env)
    for stream in ("stdin", "stdout", "stderr"):
        more.setdefault(stream, subprocess.PIPE)
    process = subprocess.Popen(
        wrap([program(), *args]), start_new_session=True, bufsize=0, **settings, **more
    )
    started.append(process)
    return process


def start_box(*cmd, opts=(), **how):
    return start("run", "-y", *opts, "--", *cmd, **how)


def git(*args, cwd=None, check=True, **how):
    """git on the host, with nothing but the repository's own configuration."""
    done = execute(["git", *args], cwd=cwd, env={"GIT_CONFIG_NOSYSTEM": "1"}, **how)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.decode()


# ---- terminals --------------------------------------------------------------------------


def terminal(argv, user=True, uid=None, cwd=None, env=None, size=(24, 80), timeout=TIMEOUT):
    """A program on a new terminal that belongs to the test user."""
    wrap, settings = _settings(user, uid, cwd, {"TERM": "xterm-256color", **(env or {})})
    argv = [os.fsdecode(word) for word in wrap(argv)]
    owner = (UID if uid is None else uid) if user else os.getuid()

    def own_terminal():
        if ROOT:
            os.fchown(0, owner, owner)

    child = pexpect.spawn(
        argv[0], argv[1:], timeout=timeout, dimensions=size, preexec_fn=own_terminal, **settings
    )
    child.delaybeforesend = None
    child.ptyproc.delayafterclose = 0
    child.ptyproc.delayafterterminate = 0
    started.append(child)
    return child


def terminal_box(*cmd, opts=(), **how):
    return terminal([program(), "run", "-y", *opts, "--", *cmd], **how)


def finish(child):
    """Wait for the end of a program on a terminal: its exit code, or 128 + its signal."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus if child.signalstatus is None else 128 + child.signalstatus


def wait_raw(child):
    """Wait until keys pass untouched: carrel has the terminal. (readline leaves ISIG on.)"""

    def is_raw():
        return not termios.tcgetattr(child.child_fd)[3] & termios.ISIG

    wait_for(is_raw, "the raw terminal")


# ---- looking at the host ----------------------------------------------------------------


def wait_for(condition, what, timeout=TIMEOUT):
    """Wait until the condition holds; its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited in vain for: {what}"
        time.sleep(0.01)


def read_until(stream, mark, timeout=TIMEOUT):
    """Read a pipe until the mark was seen."""
    os.set_blocking(stream.fileno(), False)
    seen = bytearray()

    def more():
        block = stream.read(65536)
        seen.extend(block or b"")
        assert mark in seen or block != b"", f"the end instead of {mark!r} after {seen!r}"
        return mark in seen

    wait_for(more, f"{mark!r}", timeout)
    os.set_blocking(stream.fileno(), True)
    return bytes(seen)


def processes(word):
    """The processes on this machine that have the word in their command line."""
    word = os.fsencode(word)
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def wait_gone(word):
    """Wait until no process has the word in its command line."""
    wait_for(lambda: not processes(word), f"the processes with {word} to end")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def end_started():
    """End what a test has left running."""
    while started:
        process = started.pop()
        try:
            if isinstance(process, pexpect.spawn):
                process.close(force=True)
            else:
                process.kill()
                process.communicate(timeout=TIMEOUT)
        except (OSError, ValueError, pexpect.ExceptionPexpect, subprocess.TimeoutExpired):
            pass


# ---- verdicts ---------------------------------------------------------------------------


def succeeded(done):
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def failed_clearly(done, *words, code=125):
    """carrel itself said no: one line that names the thing, perhaps one line of advice.

    Notes on the plan may stand before it.
    """
    lines = done.stderr.decode(errors="replace").splitlines()
    lines = [line for line in lines if not line.startswith("carrel: note: ")]
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert lines and lines[0].startswith("carrel: "), done.stderr
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("  ")), done.stderr
    for word in words:
        assert word in done.stderr.decode(errors="replace"), (word, done.stderr)
