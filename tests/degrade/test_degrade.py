"""Kernels and machines that lack a layer: carrel works in full, or refuses and says why.

`deny` makes a system call fail as it would on another kernel; unshare(1) and prlimit(1) make
machines that forbid. "works" means that the box is as tight as ever, which is tried; "refuses"
means exit code 125, one line that says what failed, and a command that did not run. Where it
is the machine that has to change, a second line says how.
"""

import contextlib
import json
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
    "no layers by descriptor": ("fsconfig:1.5=EINVAL", WORKS),
}

# A machine of one's own: its shell has capabilities, what it hands over to has none.
AS_USER = ["unshare", "-c", "-m", "--keep-caps", "sh", "-c"]
HAND_OVER = 'exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"'
# As container engines do it: other namespaces, a root of its own that was pivoted into, a new proc.
CONTAINER = (
    "mount --rbind / /mnt && mount -t proc none /mnt/proc && cd /mnt && /sbin/pivot_root . . &&"
    ' umount -l . && cd "$1" && shift && '
)
IN_CONTAINER = ["unshare", "-c", "-m", "-p", "-f", "--keep-caps", "sh", "-c"]
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
    "a container": ([*IN_CONTAINER, CONTAINER + HAND_OVER, "sh", "@W@"], WORKS),
    "a container that covers parts of proc": (
        [*IN_CONTAINER, f"{CONTAINER} mount --bind /dev/null /proc/interrupts && {HAND_OVER}",
         "sh", "@W@"],
        ADVISES,
    ),
    "a chroot": (
        [*AS_USER, 'mount --rbind / /mnt && exec /sbin/chroot /mnt "$@"', "sh", "sh", "-c",
         f'cd "$1" && shift && {HAND_OVER}', "sh", "@W@"],
        ADVISES,
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


# The size of what a kernel of an ABI knows of a rule set; one that is told more refuses.
SIZES = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16, 6: 24}


@pytest.mark.parametrize("abi", [abi for abi in SIZES if abi <= lib.LANDLOCK])
def test_landlock_abi(project, home, place, tool, deny, abi):
    """An older Landlock: used as far as it goes, and the plan says what that leaves open."""
    rules = ["landlock_create_ruleset:2.1=%d" % abi]
    rules += [f"landlock_create_ruleset:1.{n}=E2BIG" for n in (16, 24) if n > SIZES[abi]]
    prefix = [deny, *rules, "--"]
    words = [*prefix, lib.program(), "plan", "--json", "--network", "host", "--", "true"]
    document = json.loads(lib.succeeded(lib.execute(words)))
    assert document["layers"]["landlock"] == abi
    assert any("abstract sockets" in text for text in document["notices"]) == (abi < 6)
    assert any("cannot be moved" in text for text in document["notices"]) == (abi < 2)
    steps = ["put ran yes", "mkdir a", "rename ran a/ran"]
    said = arena.lines(run(prefix, *steps), steps)
    assert said == ["ok", "ok", "EXDEV" if abi < 2 else "ok"]
    tight(prefix, project, home, scopes=abi >= 6)


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
    """The machine's settings forbid, or it is one within another: the same."""
    judge([word.replace("@W@", str(project)) for word in prefix], expected, project, home, place)


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


def tight(prefix, project, home, scopes=lib.LANDLOCK >= 6):
    """A handful of the escapes, one for each layer that could be missing."""
    face = arena.face(project, ".git/hooks", ".git/config", ".vscode", ".env")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        steps = ["rename .git x", "put .git/hooks/pre-commit EVIL", "write .git/config EVIL"]
        steps += ["put .vscode/tasks.json EVIL", "write .env EVIL", "read .env", f"read {home}/secret.txt"]
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
    scoped(prefix, scopes)


def scoped(prefix, scopes):
    """With the host's network only Landlock stands before an abstract socket, since ABI 6."""
    name = f"carrel-degrade-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        listener.settimeout(0.2)
        run(prefix, f"unix @{name}", opts=["--network", "host"])
        with pytest.raises(TimeoutError) if scopes else contextlib.nullcontext():
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


def test_no_network_of_its_own_in_another_box(project):
    """It is not the kernel that lacks it, and a proxy would not help."""
    outer = [lib.program(), "run", "-y", "--nest", "--mount", f"{lib.program()}:/tmp/carrel", "--"]
    inner = ["/tmp/carrel", "run", "-y", "--network"]
    done = lib.execute([*outer, *inner, "open", "--", "echo", "ran"], cwd=project)
    assert done.returncode == 125 and b"ran" not in done.stdout
    assert b"In another box" in done.stderr and b"--proxy" not in done.stderr
    assert lib.succeeded(lib.execute([*outer, *inner, "host", "--", "echo", "ran"], cwd=project))


# A datagram by bash, and what comes back for the next one.
SEND = "exec 3>/dev/udp/192.0.2.1/99; echo x >&3; sleep 0.1; echo x >&3"


@pytest.mark.parametrize("rules, told", [([], True), (["socket:2.58=EPERM"], True),
                                         (["socket:2.1=EPERM"], False)])  # fmt: skip
def test_no_raw_sockets(project, deny, rules, told):
    """The kernel refuses datagrams as ever; only the record does not have them."""
    argv = ["run", "-y", "--name", "raw", "--network", "open", "--", "bash", "-c", SEND]
    done = lib.execute([deny, *rules, "--", lib.program(), *argv], cwd=project)
    assert done.returncode == 1 and b"Connection refused" in done.stderr
    assert (b"1 refused: 192.0.2.1 (UDP" in done.stderr) == told
    record = lib.succeeded(lib.carrel("events", "raw", "--json"))
    assert (b'"datagram"' in record) == told and b'"end"' in record
    assert b"lost" not in record
    assert lib.execute([deny, *rules, "--", lib.program(), "check"], cwd=project).returncode == 0


def test_no_ipv6(project, deny):
    """A box's network is of one family then, and ends at the broker as ever."""
    ask = "(: <>/dev/tcp/127.0.0.1/22) || echo own; exec 3<>/dev/tcp/192.0.2.1/80; head -1 <&3"
    argv = ["run", "-y", "--name", "four", "--network", "allow", "--", "bash", "-c", ask]
    done = lib.execute([deny, "socket:10=EAFNOSUPPORT", "--", lib.program(), *argv], cwd=project)
    assert done.stdout == b"own\n" and b"1 refused: 192.0.2.1" in done.stderr
    record = lib.succeeded(lib.carrel("events", "four", "--json"))
    assert b'"end"' in record and b"lost" not in record


def test_no_broker(project, deny):
    """One that cannot start is no reason for a way around it: the box has no network."""
    ask = "exec 3<>/dev/tcp/192.0.2.1/80 && head -1 <&3"
    argv = ["run", "-y", "--network", "open", "--", "bash", "-c", ask]
    done = lib.execute([deny, "getrandom=EPERM", "--", lib.program(), *argv], cwd=project)
    assert done.returncode == 1 and done.stdout == b""
    assert b"the box had no network, its broker could not start: get something" in done.stderr
    assert lib.execute([deny, "--", lib.program(), *argv], cwd=project).stderr.count(b"broker") == 0
    check = lib.execute([deny, "getrandom=EPERM", "--", lib.program(), "check"], cwd=project)
    assert check.returncode != 0 and b"get something random" in check.stdout


@pytest.mark.parametrize(
    "rules, expected", [row for row in KERNELS.values() if row[1] in (REFUSES, ADVISES)]
)
def test_check_says_the_same(project, deny, rules, expected):
    """`carrel check` tries the layers for real: it fails where a box would, in the same words.

    And where the box's own advice is to ask it, it does not send anybody in a circle.
    """
    good = lib.carrel("check")
    assert good.returncode == 0, good
    denied = [deny, *rules.split(), "--", lib.program()]
    run = lib.execute([*denied, "run", "-y", "--", "true"]).stderr.decode().splitlines()
    text = lib.execute([*denied, "check"])
    done = lib.execute([*denied, "check", "--json"])
    assert text.returncode == done.returncode == 1 and not text.stderr + done.stderr
    assert b"carrel cannot run here" in text.stdout
    document = json.loads(done.stdout)
    failed, = [layer for layer in document["layers"] if layer["state"] == "failed"]
    states = [layer["state"] for layer in document["layers"]]
    at = states.index("failed")
    assert not document["works"]
    assert set(states[:at]) <= {"ok"} and set(states[at + 1 :]) == {"not reached"}
    assert run[0].endswith(failed["problem"]) and failed["problem"] in text.stdout.decode()
    assert expected != ADVISES or len(failed["fix"]) > 10
    if failed["fix"]:
        assert failed["fix"] in text.stdout.decode() and "carrel check" not in failed["fix"]
        assert "carrel check" in run[-1] or len(run) == 1 or run[-1].strip() == failed["fix"]


# What Ubuntu sets, in a /proc/sys of our own.
APPARMOR = """
    mount -t tmpfs none /proc/sys/kernel &&
    echo {} >/proc/sys/kernel/apparmor_restrict_unprivileged_userns &&
"""


@pytest.mark.parametrize("value", ["1", "0"])
def test_check_names_the_profile_where_apparmor_restricts(project, deny, value):
    """The namespace is made and is of no use; the profile that helps is one that we ship."""
    machine = [*AS_USER, APPARMOR.format(value) + HAND_OVER, "sh", deny, "fsopen=EPERM", "--"]
    done = lib.execute([*machine, lib.program(), "check", "--json"])
    layers = {layer["name"]: layer for layer in json.loads(done.stdout)["layers"]}
    assert layers["mounts"]["state"] == "failed" and layers["mounts"]["fix"]
    assert ("packaging/apparmor/carrel" in layers["mounts"]["fix"]) == (value == "1")
    profile = (lib.REPO / "packaging/apparmor/carrel").read_text()
    assert "\nprofile carrel /usr{/local,}/bin/carrel flags=(unconfined) {\n" in profile
    assert "\n  userns,\n" in profile
