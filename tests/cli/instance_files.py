"""Instances built by hand, as state/instance.h lays them out, and `carrel` run on them.

So they can be wrong in ways in which no box would leave them.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat

import lib
import pexpect
import pytest
from test_sessions import CHANGES, killed_before

CLIENT = "claude/claude"


def identity(root):
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


class State:
    """The instances of the test user, and his ~/.claude."""

    def __init__(self, place):
        self.place = place
        self.home = lib.current.home
        self.claude = lib.make_dir(self.home / ".claude")
        self.all = self.home / ".local" / "state" / "carrel" / "instances"
        for path in (self.all.parents[2], self.all.parents[1], self.all.parents[0], self.all):
            lib.make_dir(path, mode=0o700)

    def instance(self, root, layers=("000001",), client=CLIENT):
        path = self.all / identity(root)
        lib.make_dir(path, mode=0o700)
        lib.make_file(path / "version", "1\n", mode=0o600)
        lib.make_file(path / "project-root", os.fsencode(root), mode=0o600)
        part = path / client
        for name in ("own/projects", "layers", "sessions"):
            lib.make_file(part / name / ".made").unlink()
        lib.make_file(part / "own" / "history.jsonl")
        for name in ("busy", "change"):
            lib.make_file(part / name, mode=0o600)
        for name in layers:
            lib.make_dir(part / "layers" / name)
        return path

    def layer(self, instance, name="000001"):
        return instance / CLIENT / "layers" / name

    def session(self, instance, number="000001"):
        path = instance / CLIENT / "sessions" / number
        lib.make_file(path / "upper" / ".made").unlink()
        lib.make_dir(path / "work")
        self.begin(path)
        return path

    def begin(self, session, *notes):
        """Its notes: see overlay/layers.h. Without them no box has begun."""
        (session / "begun").unlink(missing_ok=True)
        (session / "begun").symlink_to("\n".join(["on 000001", *notes, ""]))
        if lib.ROOT:
            os.chown(session / "begun", lib.UID, lib.GID, follow_symlinks=False)


def whiteout(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))
    lib.give(path)


def opaque(path):
    os.setxattr(path, "user.overlay.opaque", b"y")


@contextlib.contextmanager
def locked(*paths, how=fcntl.LOCK_EX):
    """As a box that runs holds them."""
    fds = [os.open(path, os.O_RDONLY) for path in paths]
    for fd in fds:
        fcntl.flock(fd, how)
    yield
    for fd in fds:
        os.close(fd)


def output(*args, **how):
    return lib.succeeded(lib.carrel(*args, **how)).decode()


def listed(**how):
    return {row["id"]: row for row in json.loads(output("instances", "--json", **how))}


def vanish(place, name):
    """A root that is gone, beside one that is there."""
    root = place / "work" / name
    lib.make_file(place / "work" / "another" / "file")
    return root


# What changes something on the disk, besides what changes a session.
CALLS = [*CHANGES, "open", "openat", "ftruncate", "utimensat"]


def killed_before_each(*args, answers=""):
    """The command, killed before the first call of each kind, the second, until it ends."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    kills = 0
    for call in CALLS:
        number, code = 0, None
        while code != 0:
            number += 1
            child = lib.terminal(killed_before(call, number, [lib.program(), *args]))
            with contextlib.suppress(pexpect.EOF, OSError):
                for answer in answers:
                    child.expect_exact("? [y/N] ")
                    child.sendline(answer)
            code = lib.finish(child)
            assert code in (0, 128 + signal.SIGKILL), (call, number, child.before)
            kills += code != 0
            yield code == 0
    assert kills > 20, kills
