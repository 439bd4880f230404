"""State on a file system that lacks something, as NFS and FUSE may: a clear line, nothing lost.

strace makes one call of carrel's fail, the first, then the second, and so on until none is
left; so each place where a feature is used is reached, also those that only come when a box
has ended. One real file system lacks something here, too: overlayfs, which a container's home
is often on. The verdict is what the next box is shown, and the user's own files.
"""

import shutil
import subprocess

import lib
import pytest
from test_sessions import CHANGE, LOOK, User

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


@pytest.fixture
def user(place, home, project):
    return User(place, home, project)


def lacking(user, script, calls, error, number):
    """A session in which carrel's nth such call fails; and whether there was an nth."""
    trace = lib.make_file(user.place / "trace")
    argv = ["strace", "-o", str(trace), "-e", f"trace={calls}"]
    argv += ["-e", f"inject={calls}:error={error}:when={number}"]
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


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("calls, error, advice", LACKS.values(), ids=LACKS)
def test_each_call_that_can_be_missing(user, calls, error, advice, used):
    """It is refused with a clear line, or works; what was written is there either way."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    number, injected, refused, kept = 0, True, 0, []
    while injected:
        number += 1
        if used:
            two_layers(user, number)
        else:
            lib.remove(user.state / "carrel")
            kept.clear()
        script = f"{REMAKE} {number} >old/b; echo 2 >w-{number}\n"
        script += f"cd - >/dev/null; touch done-{number}\n"
        done, injected = lacking(user, script, calls, error, number)
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
        seen = user.see("cd ~/.claude; echo n-* w-*; cat .claude.json; ls\n").split()
        assert '"theme":' in seen, (number, seen)
        assert set(kept) <= set(seen), (number, kept, seen)
        if used:
            assert {f"n-{i}" for i in range(1, number + 1)} <= set(seen), (number, seen)
        user.assert_tidy()
    assert number > 1 or calls in ("fsync", "setxattr,fsetxattr"), "there was such a call"
    assert refused or calls not in ("flock", "mkdir,mkdirat", "symlink,symlinkat")


# ---- a real one -------------------------------------------------------------------------


@pytest.fixture
def layered(user):
    """The user's state directory as it is, seen through an overlay: as in a container."""
    if not lib.ROOT:
        pytest.skip("needs root")
    where, real = user.place / "layered", user.state
    for name in ("layered", "upper", "work"):
        lib.make_dir(user.place / name)

    def mount():
        options = f"lowerdir={real},upperdir={user.place}/upper,workdir={user.place}/work"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "o", where], check=True)
        user.state = where

    def unmount():
        subprocess.run(["umount", where], check=True)
        user.state = real

    user.mount, user.unmount = mount, unmount
    yield user
    if user.state == where:
        subprocess.run(["umount", "-l", where], check=True)


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
