"""Boxes that lock directories: they keep no other box from starting, nor its stubs from going.

The box of the outer project has all below it for its own, so it can lock the directory that
another box works in. Whoever takes the lock leaves it to a child and ends, so that the kernel's
list of locks names a process that is gone.
"""

import contextlib
import fcntl
import os

import arena
import lib
import pytest

pytestmark = pytest.mark.usefixtures("home", "tool")

STUBS = (".claude", ".vscode")
HOLD = """
import fcntl, os, signal, sys
for path in sys.argv[2:]:
    fcntl.flock(os.open(path, os.O_RDONLY), getattr(fcntl, sys.argv[1]) | fcntl.LOCK_NB)
if os.fork():
    os._exit(0)
signal.pause()
"""


def is_locked(path):
    """Somebody has the lock for himself."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


@contextlib.contextmanager
def hostile(project, how, *paths):
    """A box of the project that has locked these, and runs on."""
    script = '/usr/bin/python3 -c "$0" "$@" && >locked && while [ ! -e go ]; do sleep 0.05; done'
    process = lib.start_box("sh", "-c", script, HOLD, how, *map(str, paths))
    arena.await_file(process, project / "locked")
    try:
        yield process
    finally:
        lib.make_file(project / "go")
    assert process.wait(lib.TIMEOUT) == 0, process.communicate()
    (project / "locked").unlink()
    (project / "go").unlink()


@pytest.fixture
def inner(project):
    """A project in the project, with a repository of its own."""
    path = lib.make_dir(project / "inner")
    lib.git("init", "-q", cwd=path)
    return path


def present(path):
    return {name for name in STUBS if os.path.lexists(path / name)}


def test_directory_of_another_box(project, inner):
    before = lib.snapshot(project)
    with hostile(project, "LOCK_EX", "inner", "inner/.git/objects"):
        assert is_locked(inner)
        script = "ls -d .claude .vscode && ! mkdir .claude/x 2>/dev/null"
        lib.succeeded(lib.box("sh", "-c", script, cwd=inner))
        assert is_locked(inner) and not present(inner)
    assert lib.snapshot(project) == before


def test_directory_of_another_box_where_there_is_nothing_else_to_lock(project, inner, home):
    """The control: the lock is one that carrel would heed."""
    bare = {"XDG_RUNTIME_DIR": ""}  # and no state directory
    with hostile(project, "LOCK_EX", "inner"):
        done = lib.box("true", cwd=inner, env=bare)
        lib.failed_clearly(done, "lock the directory", str(inner))
        assert not present(inner)
    lib.succeeded(lib.box("true", cwd=inner, env=bare))


def test_own_directory_and_a_box_beside(project):
    """It keeps the stubs, which it has itself, for as long as it runs."""
    before = lib.snapshot(project)
    with hostile(project, "LOCK_SH", ".", ".git"):
        lib.succeeded(lib.box("true"))
        assert present(project) == set(STUBS)
    assert lib.snapshot(project) == before


def test_a_box_that_has_the_state_directory_read_only(project, home):
    """It cannot open the file with the seats, and so not lock it. The user can."""
    for name in (".local", ".local/state", ".local/state/carrel"):
        lib.make_dir(home / name, mode=0o700)
    bare = {"XDG_RUNTIME_DIR": ""}
    lib.succeeded(lib.box("true", env=bare))
    path = home / ".local/state/carrel/stubs.seats"
    script = f"import os; print(os.stat('{path}').st_size, flush=True); os.open('{path}', os.%s)"
    for flags in ("O_RDONLY", "O_WRONLY", "O_RDWR"):
        argv = ["/usr/bin/python3", "-c", script % flags]
        done = lib.box(*argv, opts=["--mount", str(path.parent)], env=bare)
        assert (done.returncode, done.stdout) == (1, b"0\n"), done
    lib.succeeded(lib.execute(["/usr/bin/python3", "-c", script % "O_WRONLY"]))


def test_two_environments_agree(project, place):
    """As a session has it, and a timer's job: neither takes away what the other's box needs."""
    other = {"XDG_STATE_HOME": str(lib.make_dir(place / "other")), "XDG_RUNTIME_DIR": ""}
    before = lib.snapshot(project)
    with arena.held(project=project):
        lib.succeeded(lib.box("true", env=other))
        assert present(project) == set(STUBS)
        lib.succeeded(lib.box("true", env={"XDG_RUNTIME_DIR": ""}))
        assert present(project) == set(STUBS)
    assert lib.snapshot(project) == before
