"""Kernels and machines that lack a layer: carrel works in full, or refuses and says why.

`deny` makes a system call fail as it would on another kernel; unshare(1) and prlimit(1) make
machines that forbid. "works" means that the box is as tight as ever, which is tried; "refuses"
means exit code 125, one line that says what failed, and a command that did not run. Where it
is the machine that has to change, a second line says how.
"""

import os
import pathlib
import socket
import subprocess

import arena
import lib
import pytest

WORKS, REFUSES, ADVISES, EITHER = "works", "refuses", "refuses with advice", "either"


@pytest.fixture(scope="session")
def deny():
    path = lib.root() / "deny"
    source = pathlib.Path(__file__).with_name("deny.c")
    subprocess.run(["cc", "-O1", "-static", "-o", path, source], check=True)
    return str(path)


# What is denied, and what carrel must make of it.
KERNELS = {
    "Landlock not built in": ("landlock_create_ruleset=ENOSYS", ADVISES),
    "Landlock turned off": ("landlock_create_ruleset=EOPNOTSUPP", ADVISES),
    "Landlock refuses a rule": ("landlock_add_rule=EINVAL", REFUSES),
    "Landlock does not restrict": ("landlock_restrict_self=EPERM", REFUSES),
    "no user namespaces": ("clone3=EPERM unshare=EPERM", ADVISES),
    "no user namespaces left": ("clone3=ENOSPC unshare=ENOSPC", ADVISES),
    "no clone3": ("clone3=ENOSYS", EITHER),
    "no openat2": ("openat2=ENOSYS", EITHER),
    "no open_tree_attr": ("open_tree_attr=ENOSYS", WORKS),
    "no mount_setattr": ("mount_setattr=ENOSYS", EITHER),
    "no way to restrict a mount": ("mount_setattr=ENOSYS open_tree_attr=ENOSYS", ADVISES),
    "no open_tree": ("open_tree=ENOSYS open_tree_attr=ENOSYS", ADVISES),
    "no fsopen": ("fsopen=ENOSYS", ADVISES),
    "fsopen forbidden": ("fsopen=EPERM", ADVISES),
    "no fsmount": ("fsmount=ENOSYS", ADVISES),
    "no move_mount": ("move_mount=ENOSYS", ADVISES),
    "no pivot_root": ("pivot_root=EPERM", REFUSES),
    "old root stays": ("umount2=EPERM", REFUSES),
    "no seccomp": ("seccomp=ENOSYS prctl:22=EINVAL", ADVISES),
    "seccomp refused": ("seccomp=EINVAL prctl:22=EINVAL", ADVISES),
    "no no_new_privs": ("prctl:38=EINVAL", REFUSES),
    "capabilities stay": ("capset=EPERM", REFUSES),
    "bounding set stays": ("prctl:24=EPERM", REFUSES),
    "dumpable stays": ("prctl:4=EINVAL", REFUSES),
    "no parent death signal": ("prctl:1=EINVAL", EITHER),
    "no close_range": ("close_range=ENOSYS", EITHER),
    "no limits": ("prlimit64=EPERM", EITHER),
    "no host name": ("sethostname=EPERM", EITHER),
    "no memfd": ("memfd_create=ENOSYS", EITHER),
    "no pidfd_open": ("pidfd_open=ENOSYS", EITHER),
    "no pidfd_send_signal": ("pidfd_send_signal=ENOSYS", EITHER),
    "no setns": ("setns=EPERM", EITHER),
    "no old mount": ("mount=EPERM", EITHER),
}

# The same for a box that keeps what it changes in the user's configuration.
STATES = {
    "no locks": ("flock=ENOLCK", ADVISES),
    "no white-outs": ("mknod=EPERM mknodat=EPERM", ADVISES),
    "no attributes": ("fsetxattr=EOPNOTSUPP", WORKS),
    "no overlays of users": ("fsconfig:1.0=EINVAL", ADVISES),
}

# A machine of one's own: its shell has capabilities, what it hands over to has none.
AS_USER = ["unshare", "-c", "-m", "--keep-caps", "sh", "-c"]
HAND_OVER = 'exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"'
MACHINES = {
    "max_user_namespaces is 0": (
        [*AS_USER, f"echo 0 > /proc/sys/user/max_user_namespaces; {HAND_OVER}", "sh"],
        ADVISES,
    ),
    "proc is covered in part": (
        [*AS_USER, f"mount -t tmpfs none /proc/sys && {HAND_OVER}", "sh"],
        EITHER,
    ),
    "proc is not there": (
        [*AS_USER, f"mount -t tmpfs none /proc && {HAND_OVER}", "sh"],
        EITHER,
    ),
    "root of a user namespace": (["unshare", "-Ur"], WORKS),
    "a user in a user namespace": (["unshare", "-c"], WORKS),
    "no processes left": (["prlimit", "--nproc=0", "--"], EITHER),
    "few descriptors": (["prlimit", "--nofile=12", "--"], EITHER),
}


@pytest.mark.parametrize("rules, expected", KERNELS.values(), ids=KERNELS)
def test_kernel(project, home, place, tool, deny, rules, expected):
    """A system call fails: in full, or not at all (rule 1)."""
    judge([deny, *rules.split(), "--"], expected, project, home, place)


@pytest.mark.parametrize("rules, expected", STATES.values(), ids=STATES)
def test_state(project, home, place, deny, rules, expected):
    """Nothing of the user's changes, and with all there again what was kept is shown."""
    path = lib.make_file(place / "bin/claude", "#!/bin/sh\nexec /bin/sh -s\n", mode=0o755)
    config = lib.make_file(home / ".claude/settings.json", "{}").parent
    before = lib.snapshot(config)
    env = {"PATH": f"{path.parent}:/usr/bin:/bin"}
    argv = [lib.program(), "run", "-y"]

    def mine(prefix, script):
        return lib.execute([*prefix, *argv], env=env, input=script.encode(), timeout=20)

    lib.succeeded(mine([], "echo 1 >~/.claude/kept\n"))
    if "mknod" in rules:  # it is made once
        lib.remove(next(home.glob(".local/state/carrel/instances/*/claude/claude/hiding")))
    done = mine([deny, *rules.split(), "--"], "touch ran; echo 2 >~/.claude/more\n")
    assert (project / "ran").exists() == (expected == WORKS), done
    if expected == ADVISES:
        lib.failed_clearly(done, "set XDG_STATE_HOME")
    seen = lib.succeeded(mine([], "cat ~/.claude/kept ~/.claude/more 2>/dev/null; true\n"))
    assert seen == (b"1\n2\n" if expected == WORKS else b"1\n")
    assert lib.snapshot(config) == before


@pytest.mark.parametrize("prefix, expected", MACHINES.values(), ids=MACHINES)
def test_machine(project, home, place, tool, prefix, expected):
    """The machine's settings forbid: the same."""
    judge(prefix, expected, project, home, place)


def test_nothing_is_denied(project, home, place, tool, deny):
    """The control: under the launcher with nothing denied, everything works."""
    judge([deny, "--"], WORKS, project, home, place)


def run(prefix, *steps, opts=()):
    argv = [*prefix, lib.program(), "run", "-y", *opts, "--", "./attack", *arena.words(steps)]
    return lib.execute(argv, timeout=20)


def judge(prefix, expected, project, home, place):
    before = arena.traces(place, lib.UID)
    done = run(prefix, "put ran yes")
    ran = (project / "ran").exists()
    assert expected != WORKS or done.returncode == 0, done
    assert expected in (WORKS, EITHER) or done.returncode == 125, done
    if done.returncode:
        assert not ran
        refused(done, expected == ADVISES)
        assert arena.traces(place, lib.UID) == before
        return
    assert ran
    (project / "ran").unlink()
    assert arena.traces(place, lib.UID) == before
    tight(prefix, project, home)


def refused(done, advice):
    """One line for what, one line for what to do, and no more."""
    lib.failed_clearly(done)
    lines = done.stderr.decode().splitlines()
    assert not advice or (len(lines) == 2 and len(lines[1].strip()) > 10), done.stderr
    assert not done.stdout


def tight(prefix, project, home):
    """A handful of the escapes, one for each layer that could be missing."""
    face = arena.face(project, ".git/hooks", ".git/config", ".envrc", ".env")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        steps = ["rename .git x", "put .git/hooks/pre-commit EVIL", "write .git/config EVIL"]
        steps += ["put .envrc EVIL", "write .env EVIL", "read .env", f"read {home}/secret.txt"]
        steps += [f"tcp 127.0.0.1 {port}", "sys io_uring_setup 0 0", "sys unshare 0x10000000"]
        steps += ["fds", "status", "kill 1 9", "open /usr/planted rw", "socket 40 1 0"]
        said = arena.lines(run(prefix, *steps), steps)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert arena.face(project, *face) == face
    assert "from-the-env-file" not in "".join(said) and "the secret" not in "".join(said)
    assert said[8:10] == ["ENOSYS", "EPERM"] and said[14] == "EAFNOSUPPORT", said
    assert said[10] == "ok 0 1 2 "
    sets = said[11].split()
    for name in ("CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"):
        assert int(sets[sets.index(name) + 1], 16) == 0, said[11]
    assert "NoNewPrivs: 1" in said[11] and "Seccomp: 2" in said[11]
    scoped(prefix)


def scoped(prefix):
    """With the host's network only Landlock stands before an abstract socket."""
    name = f"carrel-degrade-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        listener.settimeout(0.2)
        run(prefix, f"unix @{name}", opts=["--network", "host"])
        with pytest.raises(TimeoutError):
            listener.accept()
        arena.outside(f"unix @{name}")
        listener.accept()[0].close()


# Protocol 12 of netlink is netfilter; a kernel without it refuses the socket.
NO_NF_TABLES = "socket:2.12=EPROTONOSUPPORT"


def test_no_nf_tables(project, deny):
    """Said so, and nothing else in its place; the proxy is there for whoever names it."""
    without = [deny, NO_NF_TABLES, "--", lib.program()]
    done = lib.execute([*without, "run", "-y", "--network", "open", "--", "echo", "ran"], cwd=project)
    assert done.returncode == 125 and b"ran" not in done.stdout
    assert b"nf_tables" in done.stderr and b"--proxy" in done.stderr
    ask = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT refused.example:443 HTTP/1.1\\r\\n\\r\\n' >&3"
    argv = ["run", "-y", "--network", "allow", "--proxy", "--", "bash", "-c", f"{ask}; head -1 <&3"]
    assert b"403" in lib.succeeded(lib.execute([*without, *argv], cwd=project))
    check = lib.execute([*without, "check"], cwd=project)
    assert check.returncode != 0 and b"works here, without" in check.stdout


@pytest.mark.parametrize(
    "rules", [rules for rules, expected in KERNELS.values() if expected in (REFUSES, ADVISES)]
)
def test_check_says_the_same(project, deny, rules):
    """`carrel check` tries the layers for real: it fails where a box would fail."""
    good = lib.carrel("check")
    assert good.returncode == 0, good
    done = lib.execute([deny, *rules.split(), "--", lib.program(), "check"])
    assert done.returncode != 0, done
    assert done.stdout != good.stdout
