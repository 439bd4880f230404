"""An error is not an absence: every look at the host fails in turn.

strace makes one system call of the supervisor's fail, then the next one, and so on, each with
one of four errors in turn; CARREL_ALL_LOOKS=1 tries all four of each. A start then either
stops, and says what could not be looked at and why, or its plan protects and hides no less and
gives no more than the plan without a failure. The report after a run either names what was
planted, or says that something could not be looked at.
"""

import concurrent.futures
import errno
import itertools
import json
import os
import re
import shutil
import subprocess

import lib
import pytest

CALLS = (
    "open openat openat2 stat lstat fstat newfstatat statx readlink readlinkat getdents64 access"
    " faccessat faccessat2"
).split()
# In the words of the two libraries that carrel is built with.
ERRORS = {
    errno.EIO: ("Input/output error", "I/O error"),
    errno.EACCES: ("Permission denied", "you may not read it"),
    errno.EAGAIN: ("Resource temporarily unavailable",),
    errno.ELOOP: ("Too many levels of symbolic links", "Symbolic link loop"),
}
ALL = os.environ.get("CARREL_ALL_LOOKS") == "1"
KEPT = {"protect", "hide", "pin", "stub"}


@pytest.fixture(autouse=True)
def strace():
    if shutil.which("strace") is None:
        pytest.skip("needs strace")


@pytest.fixture
def rich(project, place):
    """A project with something of everything that the survey looks at."""
    allow = {"env": {"GIT_CONFIG_NOSYSTEM": "1"}}
    lib.make_file(project / "app" / ".env.local", "B=1\n")
    lib.make_file(project / "app" / "deep" / ".env", "C=1\n")
    os.symlink("app", project / "link")
    os.symlink("app/.env.local", project / ".env.linked")
    other = place / "other"
    lib.succeeded(lib.execute(["git", "clone", "-q", project, other], **allow))
    lib.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
    lib.git("commit", "-q", "-m", "a submodule")
    lib.succeeded(lib.execute(["git", "init", "-q", project / "nested"], **allow))
    lib.git("config", "core.hooksPath", "../app/hooks-of-nested", cwd=project / "nested")
    lib.git("config", "include.path", "../../app/more-of-nested", cwd=project / "nested")
    lib.make_file(project / "app" / "more-of-nested", "[core]\n\tpager = app/pager\n")
    lib.git("worktree", "add", "-q", project / "tree", "-b", "tree")
    lib.git("config", "core.hooksPath", "app/hooks")
    lib.git("config", "include.path", "../app/more")
    lib.make_file(project / "app" / "more", "[core]\n\tpager = cat\n")
    lib.make_file(project / "app" / "hooks" / "pre-commit", "#!/bin/sh\n", mode=0o755)
    lib.make_file(lib.current.home / ".claude" / "settings.json", "{}\n")
    lib.make_file(lib.current.home / ".config" / "carrel" / "allow", "example.org\n")
    lib.make_file(lib.current.home / ".local" / "state" / "carrel" / "x", "")
    lib.settle()
    return project


def traced(args, inject=None, log=None, cwd=None):
    """carrel under strace; init, which is a child, is not traced."""
    argv = ["strace", "-o", log or "/dev/null", "-e", "trace=" + ",".join(CALLS)]
    if inject:
        call, number, error = inject
        argv += ["-e", f"inject={call}:error={errno.errorcode[error]}:when={number}"]
    return lib.execute([*argv, lib.program(), *args], cwd=cwd)


def looks(args, place, cwd=None):
    """The calls of a run in which none fails, as (call, its number, the line of the log)."""
    log = place / "log"
    lib.make_file(log)
    done = traced(args, log=str(log), cwd=cwd)
    counts = {}
    found = []
    for line in log.read_text(errors="replace").splitlines():
        name = re.match(r"(\w+)\(", line)
        if not name:
            continue
        counts[name[1]] = counts.get(name[1], 0) + 1
        # A loader's business, not ours: in builds that are not static.
        if not re.search(r'\.so[.0-9]*"|/proc/self/(maps|exe|status)|/sys/', line):
            found.append((name[1], counts[name[1]], line))
    return done, found


def faults(found):
    """Which of them fail, and how."""
    for (call, number, line), error in zip(found, itertools.cycle(ERRORS)):
        for one in ERRORS if ALL else [error]:
            yield call, number, one, line


def each(found, check):
    """Check all of them, on as many processors as there are; what is wrong with them."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(lambda fault: check(*fault), faults(found)) if text]
    return "\n".join(wrong)


def complains(done, error):
    """Does it say what could not be looked at, and why?"""
    said = done.stderr.decode(errors="replace")
    return any(words in said for words in ERRORS[error]) and "/" in said


def stopped(done, error):
    return done.returncode == 125 and complains(done, error)


def kept(plan):
    return {(p["kind"], p["target"]) for p in plan["places"] if p["kind"] in KEPT}


def given(plan):
    """What can be written, and what is shown of the user's."""
    return {
        (p["target"], p.get("mode"))
        for p in plan["places"]
        if p["kind"] not in KEPT and p.get("mode") == "rw"
    }


WHERE = {"whole": ".", "worktree": "tree", "submodule": "sub"}


@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
def test_every_look_of_the_survey(rich, place, where):
    args = ["plan", "--json", "--mount", f"{place / 'other'}:/mnt:rw", "--", "true"]
    cwd = rich / where
    done, found = looks(args, place, cwd)
    plan = json.loads(lib.succeeded(done))
    assert len(found) > 50 and len(kept(plan)) > 8

    def check(call, number, error, line):
        done = traced(args, (call, number, error), cwd=cwd)
        if stopped(done, error):
            return None
        if done.returncode:
            return f"{line}: {done.returncode} {done.stderr}"
        now = json.loads(done.stdout)
        less, more = kept(plan) - kept(now), given(now) - given(plan)
        return f"{line}: {os.strerror(error)}: lacks {less}, has {more}" if less | more else None

    wrong = each(found, check)
    assert not wrong, wrong


PLANT = """
mkdir -p deep/.git/hooks && echo evil >deep/.git/hooks/pre-commit
echo evil >app/.envrc; mkdir -p nested/.git/hooks; echo evil >nested/.git/hooks/pre-commit
"""
PLANTED = [b"deep/.git", b"app/.envrc", b"nested/.git/hooks/pre-commit"]


def test_every_look_of_the_report(rich, place):
    """What the run before has planted is removed: each run is the first."""
    args = ["run", "-y", "--", "sh", "-c", PLANT]

    def clean(top):
        shutil.rmtree(top / "deep", ignore_errors=True)
        (top / "app" / ".envrc").unlink(missing_ok=True)
        (top / "nested" / ".git" / "hooks" / "pre-commit").unlink(missing_ok=True)

    done, found = looks(args, place)
    clean(rich)
    assert all(name in done.stderr for name in PLANTED), done.stderr
    # The start is the other test's; what was protected is looked at before the walk.
    first = next(i for i, look in enumerate(found) if '"deep' in look[2])
    found = found[max(0, first - 40) :]
    copies = [rich]
    for i in range(1, os.cpu_count()):
        copies.append(place / f"copy{i}" / "project")
        lib.make_dir(place / f"copy{i}")
        subprocess.run(["cp", "-a", rich, copies[-1]], check=True)

    def check(call, number, error, line):
        top = copies.pop()
        try:
            done = traced(args, (call, number, error), cwd=top)
        finally:
            clean(top)
            copies.append(top)
        # Not every failure to start is one of a look: a pipe could not be looked at.
        if done.returncode == 125 or all(name in done.stderr for name in PLANTED):
            return None
        if complains(done, error):
            return None
        return f"{line}: {os.strerror(error)}: {done.returncode} {done.stderr}"

    wrong = each(found, check)
    assert not wrong, wrong


LEASE = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "name", [".git/config", ".git/HEAD", ".git/worktrees/tree/gitdir", ".git/modules/sub/config"]
)
def test_a_lease_of_another_process(rich, name):
    """EWOULDBLOCK: what is in the file cannot be known, so nothing starts."""
    start = ["run", "-y", "--", "touch", "started"]
    holder = subprocess.Popen(
        lib.as_user([lib.PYTHON, "-c", LEASE, str(rich / name)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    lib.started.append(holder)
    lib.read_until(holder.stdout, b"held")
    lib.failed_clearly(lib.carrel(*start), name, "temporarily unavailable")
    assert not (rich / "started").exists()
    holder.stdin.close()
    holder.wait(lib.TIMEOUT)
    lib.succeeded(lib.carrel(*start))
    assert (rich / "started").exists()
