"""State on a file system that lacks something, as NFS and FUSE may: a clear line, nothing lost.

strace makes one call of carrel's fail, the first, then the second, and so on until none is
left; so each place where a feature is used is reached, also those that only come when a box
has ended. Two real file systems lack something here, too: overlayfs, which a container's home
is often on, and FUSE, which no overlay can write to and which, like NFS, keeps a file that is
removed while it is open. The verdict is what the next box is shown, and the user's own files.
"""

import os
import shutil
import subprocess

import lib
import pytest
from test_sessions import CHANGE, LOOK

ADVICE = "set XDG_STATE_HOME to a directory on"

# What the call is, what it fails with, and whether advice about the file system is due.
LACKS = {
    "locks": ("flock", "ENOLCK", True),
    "white-outs": ("mknod,mknodat", "EPERM", True),
    "renaming": ("rename,renameat,renameat2", "EINVAL", False),
    "renaming across": ("rename,renameat,renameat2", "EXDEV", False),
    "attributes": ("setxattr,fsetxattr", "EOPNOTSUPP", False),
    "links": ("symlink,symlinkat", "EPERM", True),
    "modes": ("chmod,fchmod,fchmodat", "EPERM", False),
    "syncing": ("fsync", "EINVAL", False),
    "removing": ("unlink,unlinkat,rmdir", "EBUSY", False),
    "making": ("mkdir,mkdirat", "EOPNOTSUPP", False),
}


def lacking(user, script, call, error, number):
    """A session in which carrel's nth such call fails; and whether there was an nth."""
    trace = lib.make_file(user.place / "trace")
    argv = ["strace", "-o", str(trace), "-e", f"trace={call}"]
    argv += ["-e", f"inject={call}:error={error}:when={number}"]
    argv += [lib.program(), "run", "-y"]
    done = lib.execute(argv, cwd=user.project, env=user.env(), input=script.encode())
    return done, "(INJECTED)" in trace.read_text()


REMAKE = "cd ~/.claude; rm -rf old; mkdir old; echo"


def two_layers(user, number):
    """So that there is something to merge when the next box ends."""
    keeper = user.hold(name=f"k{number}")
    user.see(f"{REMAKE} {number} >old/a; echo 1 >n-{number}\n")
    user.release(keeper, name=f"k{number}")


def said(done):
    lines = done.stderr.decode().splitlines()
    return [line for line in lines if not line.startswith("carrel: note: ")]


def check_kept(user, kept, rounds):
    """The next box sees all that was written, and what two_layers() did in each round."""
    seen = user.see("cd ~/.claude; echo n-* w-*; cat .claude.json; ls\n").split()
    assert '"theme":' in seen, (rounds, seen)
    assert set(kept) <= set(seen), (kept, seen)
    assert {f"n-{i}" for i in range(1, rounds + 1)} <= set(seen), (rounds, seen)
    user.assert_tidy()


# An instance that is in use has its white-outs, and its layers are made durable later.
NOT_ALWAYS_CALLED = ("fsync", "setxattr,fsetxattr", "mknod,mknodat")


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("calls, error, advice", LACKS.values(), ids=LACKS)
def test_each_call_that_can_be_missing(user, calls, error, advice, used):
    """It is refused with a clear line, or works; what was written is there either way."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    number, failures, refused, kept = 0, 0, 0, []
    # One after the other, since strace counts each call by itself.
    for call in calls.split(","):
        nth, injected = 0, True
        while injected:
            nth, number = nth + 1, number + 1
            if used:
                two_layers(user, number)
            else:
                lib.remove(user.state / "carrel")
                kept.clear()
            script = f"{REMAKE} {number} >old/b; echo 2 >w-{number}\n"
            script += f"cd - >/dev/null; touch done-{number}\n"
            done, injected = lacking(user, script, call, error, nth)
            failures += injected
            if (user.project / f"done-{number}").exists():
                kept.append(f"w-{number}")
                assert done.returncode == 0, done
                # What is not kept yet is said; and the next one keeps it.
                assert not said(done) or b"is not kept yet" in done.stderr, done
            else:
                refused += 1
                lib.failed_clearly(done)
                about_state = str(user.state) in done.stderr.decode()
                assert not advice or not about_state or ADVICE in done.stderr.decode(), done
            check_kept(user, kept, number if used else 0)
    assert failures or calls in NOT_ALWAYS_CALLED, "there was such a call"
    assert refused or calls not in ("flock", "mkdir,mkdirat", "symlink,symlinkat")


# ---- real ones --------------------------------------------------------------------------


def seen_through(user, where, *command):
    """The user's state directory, which the command mounts at where, as it is: a fixture."""
    real = user.state

    def mount():
        subprocess.run(command, check=True)
        user.state = where

    def unmount():
        subprocess.run(["umount", where], check=True)
        user.state = real

    user.mount, user.unmount = mount, unmount
    yield user
    if user.state == where:
        subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture
def layered(user):
    """The state directory seen through an overlay: as in a container."""
    if not lib.ROOT:
        pytest.skip("needs root")
    where, upper, work = (lib.make_dir(user.place / name) for name in ("layered", "upper", "work"))
    options = f"lowerdir={user.state},upperdir={upper},workdir={work}"
    yield from seen_through(user, where, "mount", "-t", "overlay", "-o", options, "o", where)


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_state_on_an_overlay(layered, used):
    """On which no other can be laid: refused, and where it was before all is as it was."""
    if used:
        layered.see(CHANGE)
    else:
        lib.make_dir(layered.home / ".local")
        lib.make_dir(layered.state)
    before = lib.snapshot(layered.state)
    layered.mount()
    done = layered.run("touch ran\n")
    lib.failed_clearly(done, str(layered.state), ADVICE)
    assert not (layered.project / "ran").exists()
    layered.unmount()
    assert lib.snapshot(layered.state) == before
    assert lib.snapshot(layered.claude) == layered.before
    if not used:
        layered.see(CHANGE)
    assert "third" in layered.see(LOOK)
    layered.assert_tidy()


def test_an_overlay_that_cannot_be_mounted(layered):
    """A client of which nothing is hidden gets as far as the mount itself."""
    lib.make_file(layered.home / ".config/opencode/AGENTS.md", "of the user\n")
    mine = '{"mine": {"harness": "opencode"}}'
    lib.make_file(layered.home / ".config/carrel/carrel.json", mine)
    client = (layered.bin / "claude").read_text()
    lib.make_file(layered.bin / "opencode", client, mode=0o755)
    config = layered.home / ".config/opencode"
    before = lib.snapshot(config)
    layered.see("echo kept >~/.config/opencode/new; echo said >~/.local/share/opencode/own\n")
    layered.mount()
    done = layered.run("touch ran\n")
    lib.failed_clearly(done, "overlay", ".config/opencode", ADVICE)
    assert not (layered.project / "ran").exists()
    layered.unmount()
    look = "cat ~/.config/opencode/* ~/.local/share/opencode/own\n"
    assert layered.see(look) == "of the user\nkept\nsaid\n"
    assert lib.snapshot(config) == before


@pytest.fixture
def fused(user):
    """The same through FUSE."""
    if not lib.ROOT:
        pytest.skip("needs root")
    if shutil.which("bindfs") is None or not os.path.exists("/dev/fuse"):
        pytest.skip("needs FUSE")
    where = lib.make_dir(user.place / "fused")
    yield from seen_through(user, where, "bindfs", user.state, where)


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_state_on_fuse(fused, used):
    """Refused, and where it was before all is as it was."""
    if used:
        fused.see(CHANGE)
    else:
        lib.make_dir(fused.home / ".local")
        lib.make_dir(fused.state)
    fused.mount()
    done = fused.run("touch ran\n")
    lib.failed_clearly(done, "overlay", str(fused.claude), ADVICE)
    assert not (fused.project / "ran").exists()
    fused.unmount()
    assert lib.snapshot(fused.claude) == fused.before
    if not used:
        fused.see(CHANGE)
    assert "third" in fused.see(LOOK)
    fused.assert_tidy()


def test_commands_on_fuse(fused, place):
    """They need no overlay. What is removed is gone, though carrel had its locks open."""
    gone = lib.make_dir(place / "gone")
    for path in (fused.project, gone):
        fused.see(CHANGE, cwd=path)
    fused.mount()
    lib.succeeded(fused.carrel("instances", "set", "model=opus"))
    assert b'"opus"' in lib.succeeded(fused.carrel("instances", "set"))
    assert b"old/third" in lib.succeeded(fused.carrel("instances", "diff"))
    lib.remove(gone)
    assert lib.succeeded(fused.carrel("gc")).startswith(b"1 removed")
    lib.succeeded(fused.carrel("instances", "reset", "-y"))
    fused.unmount()
    assert os.listdir(fused.state / "carrel" / "instances") == []
