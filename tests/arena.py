"""The attack tool seen from both sides of the wall, and what must not be left behind.

A refusal proves nothing if the attack cannot succeed anywhere. So the same steps run twice:
`inside` a box, where the host must show no trace of them, and `outside` (or in a box that
allows it, or in the naive sandbox of `naive`), where the same look at the host must find one.
"""

import contextlib
import os
import pathlib
import re
import shlex
import stat
import subprocess
import time

import lib

TOOL = "./attack"
EVIL = "EVIL"


# ---- the attack tool ----------------------------------------------------------------------


def words(steps):
    """Steps, each a line of words or a list of them, as arguments of the tool."""
    argv = []
    for step in steps:
        argv += [*(shlex.split(step) if isinstance(step, str) else map(str, step)), ","]
    return argv[:-1]


def lines(done, steps):
    """What the tool said, one line per step; an attack that did not run proves nothing."""
    said = lib.succeeded(done).decode(errors="replace").splitlines()
    assert len(said) == len(steps), (said, done.stderr)
    return said


def inside(*steps, tool=TOOL, **how):
    return lines(by_box(tool, *words(steps), **how), steps)


def by_box(*cmd, **how):
    """Run a command in a box; test_through_exec.py has another way."""
    return lib.box(*cmd, **how)


def through_exec(*cmd, opts=(), **how):
    """The same, as a further command of a box that is there already."""
    who = {key: how[key] for key in ("user", "uid", "cwd", "env") if key in how}
    done = lib.carrel("run", "-d", "-y", *opts, "--", "sleep", "100000", **who)
    name = lib.succeeded(done).decode().strip()
    try:
        return lib.carrel("exec", name, *cmd, **how)
    finally:
        lib.succeeded(lib.carrel("stop", "-t", "0", name, **who))


def outside(*steps, tool=TOOL, **how):
    return lines(lib.execute([tool, *words(steps)], **how), steps)


def naive(*steps, read_only=(), setup="", **how):
    """A sandbox as one would write it in a minute: what is mounted, but nothing pinned.

    The tool is the only process of its user and mount namespace, and keeps its capabilities.
    """
    mounts = [f"mount --bind {shlex.quote(p)} {shlex.quote(p)}" for p in read_only]
    mounts += [f"mount -o remount,ro,bind {shlex.quote(p)}" for p in read_only]
    script = " && ".join(["set -e", *mounts, setup or "true", 'cd "$PWD"', 'exec "$@"'])
    argv = ["unshare", "-Urm", "sh", "-c", script, "sh", TOOL, *words(steps)]
    return lines(lib.execute(argv, **how), steps)


@contextlib.contextmanager
def held(*steps, project, **how):
    """A box that has done its steps and now waits, while the host looks around."""
    name = f"held-{time.monotonic_ns()}"
    argv = words([*steps, f"put {name} yes", f"await {name}.go"])
    process = lib.start_box(TOOL, *argv, **how)
    await_file(process, project / name)
    try:
        yield process
    finally:
        lib.make_file(project / f"{name}.go")
    process.said, process.complained = process.communicate(timeout=lib.TIMEOUT)
    (project / name).unlink(missing_ok=True)
    (project / f"{name}.go").unlink()


def await_file(process, path):
    """Wait until a running box has made this file; its end is a failure."""
    lib.wait_for(lambda: path.exists() or process.poll() is not None, f"{path}", 20)
    assert process.poll() is None, process.communicate()


# ---- what the host sees -------------------------------------------------------------------


def face(project, *names):
    """What a tool on the host finds under these names: links followed, contents and all."""
    return {name: _look(os.path.join(project, name)) for name in names}


def _look(path):
    try:
        st = os.stat(path)
    except OSError:
        return os.readlink(path) if os.path.islink(path) else None
    if stat.S_ISDIR(st.st_mode):
        return sorted((n, _look(os.path.join(path, n))) for n in os.listdir(path))
    if stat.S_ISREG(st.st_mode):
        xattrs = [n for n in os.listxattr(path) if n.startswith("user.")]
        return (oct(st.st_mode), pathlib.Path(path).read_bytes(), xattrs)
    return oct(st.st_mode)


# ---- what is left behind ------------------------------------------------------------------


def descendants(pid):
    """All processes below this one, zombies included."""
    found = lib.children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def state(pid):
    """The letter of /proc/PID/stat, or None."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[0]


def status(pid):
    """/proc/PID/status as a dictionary, {} when the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.M))


def in_box(pid):
    """The processes of a box below this carrel, by their pid namespace: pid 1 comes first."""
    inner = {p: status(p).get("NSpid", "").split()[1:] for p in descendants(pid)}
    return sorted((p for p in inner if inner[p]), key=lambda p: int(inner[p][-1]))


def traces(place, uid):
    """Everything a run of this user could have left on the host, apart from processes."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # Mounts of other runs of the tests come and go: they lie below directories of those.
    others = [line for line in mounts if "/carrel-test-" in line.split()[4]]
    found = {
        line
        for line in mounts
        if str(place) in line or ("carrel" in line.split()[4] and line not in others)
    }
    for top in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/user", "/run/netns"):
        with contextlib.suppress(OSError):
            for entry in os.scandir(top):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == uid:
                        found.add(entry.path)
    return found | {f"{where}/{name}" for where, name in _files(place)}


def _files(place):
    for where, dirs, files in os.walk(place):
        for name in dirs + files:
            yield where, name


def kill(process, sig):
    """A signal to the carrel behind a Popen; setpriv has long become it."""
    os.kill(process.pid, sig)


def tail(done):
    """Output and errors of a finished process, as text, for a message."""
    if isinstance(done, subprocess.CompletedProcess):
        return (done.returncode, done.stdout[-800:], done.stderr[-800:])
    return done
