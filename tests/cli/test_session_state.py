"""State that boxes cannot write, or that is not as they left it: it is refused or left alone.

The verdict is on the host: the user's files, the instance's, and what the next box is shown.
"""

import json
import os
import subprocess

import lib
import pytest
from test_sessions import CHANGE, LOOK

# ---- state that is wrong ----------------------------------------------------------------


def test_state_that_cannot_be_written(user):
    user.see(CHANGE)
    before = lib.snapshot(user.state)
    places = [user.part() / "sessions", user.part() / "layers", user.part(), user.instance()]
    for path in places[:3]:
        path.chmod(0o500)
        done = user.run("touch ran\n")
        refused = done.returncode == 125
        path.chmod(0o700)
        if refused:
            lib.failed_clearly(done, str(path), "Permission denied")
            assert not (user.project / "ran").exists()
        (user.project / "ran").unlink(missing_ok=True)
        assert "third" in user.see(LOOK)
        user.assert_tidy()
    names, were = ({n for n in x if b"/rest-" not in n} for x in (lib.snapshot(user.state), before))
    assert names == were


@pytest.mark.parametrize("made", [False, True], ids=["new", "used"])
def test_state_on_a_read_only_file_system(user, made):
    if not lib.ROOT:
        pytest.skip("needs root")
    if made:
        user.see(CHANGE)
    else:
        lib.make_dir(user.home / ".local")
        lib.make_dir(user.state)
    before = lib.snapshot(user.place)
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    argv = lib.as_user([lib.program(), "run", "-y"])
    argv = ["unshare", "-m", "sh", "-c", script, "sh", str(user.state), *argv]
    done = lib.execute(argv, user=False, cwd=user.project, env=user.env(), input=b"touch ran\n")
    lib.failed_clearly(done, "Read-only file system", str(user.state))
    assert lib.snapshot(user.place) == before
    user.see(CHANGE)
    assert "third" in user.see(LOOK)


def owners(user):
    return {
        "state": user.state / "carrel",
        "instances": user.state / "carrel" / "instances",
        "instance": user.instance(),
        "part": user.part(),
        "layers": user.part() / "layers",
    }


@pytest.mark.parametrize("which", ["state", "instances", "instance", "part", "layers"])
def test_state_of_another_user(user, which):
    """Also one that we may write to: its owner could put another there at any time."""
    if not lib.ROOT:
        pytest.skip("needs root")
    user.see(CHANGE)
    path = owners(user)[which]
    path.chmod(0o777)
    os.chown(path, 4321, 4321)
    before = lib.snapshot(user.state)
    lib.failed_clearly(user.run("touch ran\n"), str(path), "another user")
    assert not (user.project / "ran").exists()
    assert lib.snapshot(user.state) == before
    lib.give(path)
    assert "third" in user.see(LOOK)


def test_state_behind_a_link(user):
    """As those have it who keep it on another disk."""
    lib.make_dir(user.place / "disk")
    user.state.parent.mkdir()
    lib.give(user.state.parent)
    user.state.symlink_to(user.place / "disk")
    user.see(CHANGE)
    assert "third" in user.see(LOOK)
    assert (user.place / "disk" / "carrel" / "instances").is_dir()


WRONG = {
    "version": ("version", "2\n", "another version"),
    "no version": ("version", "", "another version"),
    "root": ("project-root", "/somewhere/else", "/somewhere/else"),
}


@pytest.mark.parametrize("name, text, word", WRONG.values(), ids=WRONG)
def test_an_instance_that_is_not_ours(user, name, text, word):
    user.see(CHANGE)
    path = user.instance() / name
    right = path.read_text()
    lib.make_file(path, text, mode=0o600)
    before = lib.snapshot(user.state)
    for words in (("run", "-y"), ("plan",)):
        lib.failed_clearly(user.carrel(*words), word)
    assert lib.snapshot(user.state) == before
    lib.make_file(path, right, mode=0o600)
    assert "third" in user.see(LOOK)


def test_no_place_for_state(user):
    done = user.run("touch ran\n", env={"HOME": None, "XDG_STATE_HOME": None})
    assert done.returncode == 125 and b"HOME" in done.stderr, done
    assert not (user.project / "ran").exists()


@pytest.mark.parametrize("inside", [False, True], ids=["itself", "above"])
def test_state_cannot_be_the_workspace(user, inside):
    """An agent there could change what all other projects have, and what was approved."""
    user.see(CHANGE)
    path = user.state if inside else user.state / "carrel"
    before = lib.snapshot(user.state)
    lib.failed_clearly(user.run("touch ran\n", cwd=path), str(path))
    assert lib.snapshot(user.state) == before


# ---- a full disk ------------------------------------------------------------------------


@pytest.fixture
def small(user):
    """The state directory is a file system of its own, with little room."""
    if not lib.ROOT:
        pytest.skip("needs root")
    user.state = user.place / "small"
    user.state.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=400,mode=700", "small"]
    subprocess.run([*mount, user.state], check=True)
    lib.give(user.state)
    yield user
    subprocess.run(["umount", "-l", user.state], check=True)


def fill(path, left):
    """Until only so many pages are free."""
    st = os.statvfs(path)
    with open(lib.make_file(path / "filler"), "ab", buffering=0) as filler:
        # The count lags behind for a moment after something was removed.
        while os.statvfs(path).f_bfree > left:
            filler.write(bytes(st.f_bsize))


def fill_names(path, left):
    """A directory takes up more than a file does, and a name a little."""
    lib.make_dir(path / "filler")
    number = 0
    try:
        while True:
            lib.make_file(path / "filler" / str(number))
            number += 1
    except OSError:
        pass
    assert number > left
    for i in range(left):
        (path / "filler" / str(i)).unlink()


def unfill(path):
    filler = path / "filler"
    (lib.remove if filler.is_dir() else os.unlink)(filler)


@pytest.mark.parametrize("how, most", [(fill, 12), (fill_names, 80)], ids=["bytes", "names"])
@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_full_disk(small, how, most, used):
    """A clear line or a start; then, with room again, all is as it was."""
    config = json.dumps({"theme": "dark", "filler": "f" * 9000, "last": "yes"})
    lib.make_file(small.home / ".claude.json", config, mode=0o600)
    refused = started = 0
    for left in range(most + 1):
        lib.remove(small.state / "carrel")
        if used:
            small.see(CHANGE)
        how(small.state, left)
        done = small.run("touch ran\n")
        unfill(small.state)
        if (small.project / "ran").exists():
            started += 1
            (small.project / "ran").unlink()
        else:
            refused += 1
            assert done.returncode == 125, done
            assert b"No space left on device" in done.stderr, done
        seen = small.see("cat ~/.claude/.claude.json; echo; cat ~/.claude/old/third\n" if used
                         else "cat ~/.claude/.claude.json; echo\n")  # fmt: skip
        assert '"last": "yes"' in seen and seen.endswith("3\n" if used else "}\n"), (left, seen)
        assert small.names("sessions") == []
    assert refused and started, (refused, started)


def test_disk_full_while_running(small):
    """What the box could write is kept."""
    done = small.run(
        "echo 1 >~/.claude/one; head -c 10M /dev/zero >~/.claude/big || touch full;"
        "truncate -s 100K ~/.claude/big\n"
    )
    assert (small.project / "full").exists(), done
    assert small.see("cat ~/.claude/one; rm ~/.claude/big\n") == "1\n"
    small.see("echo 2 >~/.claude/two\n")
    assert small.see("cd ~/.claude; [ -e big ] || cat one two\n") == "1\n2\n"
