"""Guards that stand behind others, each on its own: what tests/mutants found without a test."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess

import arena
import lib
import pytest
from arena import held, inside

pytestmark = pytest.mark.usefixtures("home", "tool")

SECRET = "the secret of the victim"
STRANGER = 54321

needs_root = pytest.mark.skipif(not lib.ROOT, reason="needs root")


# ---- a tree that changes during the start -------------------------------------------------


@contextlib.contextmanager
def stopped(place, *cmd, opts=()):
    """A start that waits until its plan is made, and goes on after the block."""
    go = place / "go"
    env = {"CARREL_TEST_STOP": "places", "CARREL_TEST_UNTIL": str(go)}
    process = lib.start_box(*cmd, opts=opts, env=env)
    lib.wait_for(lambda: (place / "go.here").exists() or process.poll() is not None, "init")
    assert process.poll() is None, process.communicate()
    yield process
    lib.make_file(go)
    process.said, process.complained = process.communicate(timeout=lib.TIMEOUT)


def swap(path, target):
    """A link in the place of a directory, which is put aside."""
    path.rename(f"{path}.aside")
    path.symlink_to(target)
    lib.give(path)


SOURCES = {
    "the source itself": ("data", "data", "victim"),
    "its directory": ("above/data", "above", "other"),
    "a directory further up": ("top/above/data", "top", "upper"),
}


@pytest.mark.parametrize("source, at, to", SOURCES.values(), ids=SOURCES)
def test_swapped_during_the_start(project, place, source, at, to):
    """What --mount names becomes a link to the victim after it was looked at."""
    for name in ("victim", "other/data", "upper/above/data"):
        lib.make_file(place / name / "secret", SECRET)
    lib.make_file(place / source / "plain", "plain")
    opts = ["--mount", f"{place / source}:/data"]
    with stopped(place, "sh", "-c", "cat /data/*", opts=opts) as process:
        swap(place / at, place / to)
    assert SECRET not in process.said.decode(), process.said
    assert process.returncode == 125, process.complained
    # The control: started again, it is the victim that is named and mounted.
    assert SECRET in lib.succeeded(lib.box("sh", "-c", "cat /data/*", opts=opts)).decode()


def test_target_swapped_during_the_start(project, place):
    """The directory of a hidden file becomes a link, and so its mask would lie elsewhere."""
    lib.make_file(project / "sub/secret", SECRET)
    lib.make_file(project / "decoy/secret", "decoy")
    script = "touch started; until [ -e seen ]; do sleep 0.02; done; cat sub/secret"
    with stopped(place, "sh", "-c", script, opts=["--hide", "sub/secret"]) as process:
        swap(project / "sub", "decoy")
        lib.make_file(place / "go")
        started = project / "started"
        lib.wait_for(lambda: started.exists() or process.poll() is not None, "the start")
        (project / "sub").unlink()
        (project / "sub.aside").rename(project / "sub")
        lib.make_file(project / "seen")
    assert SECRET not in process.said.decode()
    assert process.returncode == 125, process.complained
    # The control: hidden where nothing is swapped, read where nothing is hidden.
    assert lib.succeeded(lib.box("cat", "sub/secret", opts=["--hide", "sub/secret"])) == b""
    assert SECRET in lib.succeeded(lib.box("cat", "sub/secret")).decode()


# ---- mounts as the host sees them ---------------------------------------------------------


def mounts_of(pid):
    """mountinfo as (root, point, options, propagation, type)."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        words = before.split()
        found.append((words[3], words[4], set(words[5].split(",")), words[6:], after.split()[0]))
    return found


def test_every_mount_of_a_box(project, place):
    """No set-uid, no devices, nothing shared with the host; what lies over names is read-only."""
    data = lib.make_dir(place / "data")
    opts = ["--mount", f"{data}:/data:rw", "--mount", f"{data}:/look", "--hide", "src"]
    with held("uids", project=project, opts=opts) as process:
        pid = arena.in_box(process.pid)[-1]
        mounts = mounts_of(pid)
        names = os.listdir(f"/proc/{pid}/root")
    masks = [m for m in mounts if m[0].startswith(("/.mask-", "/.config-link"))]
    assert {m[0].split("//")[0] for m in masks} >= {"/.mask-file", "/.mask-dir"}
    assert any(m[0].startswith("/.config-link") for m in masks), mounts
    for mount in masks:
        assert mount[2] >= {"ro", "noexec"}, mount
    for mount in mounts:
        _, point, options, propagation, kind = mount
        assert "nosuid" in options and not propagation, mount
        # Devices: the few nodes, which are no programs, and terminals of the box's own.
        if point == "/dev/pts" or os.path.dirname(point) == "/dev":
            assert "noexec" in options or kind == "tmpfs", mount
        else:
            assert "nodev" in options, mount
        if kind == "proc":
            assert "noexec" in options, mount
    # Landlock says the same again, so only the mounts themselves tell.
    writable = {m[1]: "rw" in m[2] for m in mounts}
    assert writable["/data"] and writable[str(project)], "the control"
    for point in ("/look", "/usr", f"{project}/.git/hooks"):
        assert not writable[point], point
    assert [m[1] for m in mounts].count("/") == 1, "the host's tree is gone"
    assert not [name for name in names if name.startswith((".mask", ".config-link"))], names
    assert "data" in names


@needs_root
def test_later_mounts_of_the_host_do_not_appear(project, place):
    """A disk that the host mounts while a box runs, below what the box has mounted."""
    shared = lib.make_dir(place / "shared")
    script = 'touch "$1.up"; until [ -e "$1.go" ]; do sleep 0.02; done; ls "$2"; true'

    def look(name, start, there):
        """What is seen of a mount that was made after the start."""
        process = start("sh", "-c", script, "sh", name, there)
        up = project / f"{name}.up"
        lib.wait_for(lambda: up.exists() or process.poll() is not None, "the start")
        assert process.poll() is None, process.communicate()
        subprocess.run(["mount", "-t", "tmpfs", "none", shared / "sub"], check=True)
        try:
            lib.make_file(shared / "sub/late")
            lib.make_file(project / f"{name}.go")
            return process.communicate(timeout=lib.TIMEOUT)[0]
        finally:
            subprocess.run(["umount", shared / "sub"], check=True)

    def boxed(*cmd):
        return lib.start_box(*cmd, opts=["--mount", f"{shared}:/there"])

    def naive(*cmd):
        argv = ["unshare", "-Urm", "--propagation", "slave", *cmd]
        process = subprocess.Popen(lib.as_user(argv), cwd=project, stdout=subprocess.PIPE)
        lib.started.append(process)
        return process

    subprocess.run(["mount", "-t", "tmpfs", "none", shared], check=True)
    try:
        subprocess.run(["mount", "--make-shared", shared], check=True)
        lib.make_dir(shared / "sub")
        assert look("boxed", boxed, "/there/sub") == b""
        assert look("naive", naive, str(shared / "sub")) == b"late\n", "the control"
    finally:
        subprocess.run(["umount", "-l", shared], check=True)


def test_hidden_and_protected(project):
    """Of two rules for one name the stronger holds."""
    lib.make_file(project / "both", SECRET)
    opts = ["--protect", "both", "--hide", "both"]
    assert SECRET not in "".join(inside("read both", opts=opts))
    assert SECRET in "".join(inside("read both", opts=["--protect", "both"]))


def test_root_of_the_box_is_not_written(project):
    """Landlock alone keeps the box's own root, a tmpfs, from being written."""
    steps = ["put /planted x", "put /etc/planted x", "unlink /etc/group", "put /tmp/made x"]
    with held(*steps, project=project) as process:
        top = f"/proc/{arena.in_box(process.pid)[-1]}/root"
        assert not os.path.exists(f"{top}/planted") and not os.path.exists(f"{top}/etc/planted")
        assert os.path.exists(f"{top}/etc/group")
        assert os.path.exists(f"{top}/tmp/made"), "the control"


# ---- started by root ----------------------------------------------------------------------


@needs_root
def test_groups_of_root_are_dropped(project):
    """A file that only a group may read, and root's session is in that group."""
    subprocess.run(["chown", "-R", "0:0", project], check=True)
    secret = lib.make_file(project / "shared", SECRET, mode=0o040, uid=STRANGER)
    os.chown(secret, STRANGER, 4)
    grouped = ["setpriv", "--groups", "4,27", "--"]
    argv = [*grouped, lib.program(), "run", "-y", "--", "sh", "-c", "cat shared; id -G"]
    done = lib.execute(argv, user=False)
    assert done.stdout == b"1000\n", (done.stdout, done.stderr)
    # The control: somebody without root's powers reads it by that group.
    argv = ["setpriv", "--reuid", "54322", "--regid", "54322", "--groups", "4", "cat", "shared"]
    assert SECRET in lib.succeeded(lib.execute(argv, user=False)).decode()


KERNEL_DIRS = ["acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "scsi", "sys"]
KERNEL_FILES = [
    "kcore", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "mtrr",
    "sched_debug", "timer_list",
]  # fmt: skip


@needs_root
def test_files_of_the_kernel_when_root_starts_the_box(project):
    """Most would be refused for want of a capability; the mounts do not rely on that."""
    subprocess.run(["chown", "-R", "0:0", project], check=True)
    with held("uids", project=project, user=False) as process:
        mounts = {m[1]: m for m in mounts_of(arena.in_box(process.pid)[-1])}
    assert "rw" in mounts["/proc"][2], "the control: the rest of it is as it was"
    plan = lib.succeeded(lib.carrel("plan", "--json", "--", "true", user=False))
    planned = {place["target"]: place["kind"] for place in json.loads(plan)["places"]}
    for name in [*KERNEL_DIRS, *KERNEL_FILES, "sysrq-trigger"]:
        path = f"/proc/{name}"
        assert planned[path] == ("hide" if name in KERNEL_FILES else "seal")
        if not os.path.exists(path):
            continue  # another kernel has it
        assert path in mounts and "ro" in mounts[path][2], (path, mounts.get(path))
        assert mounts[path][0].startswith("/.mask-none") == (name in KERNEL_FILES), mounts[path]


# ---- carrel's own ---------------------------------------------------------------------------


def test_workspace_is_not_carrels_own(home):
    lib.make_file(home / ".config/carrel/carrel.json", "{}\n")
    lib.make_file(home / ".config/carrel/roles/one.md")
    lib.make_dir(home / ".config/other")
    for where in (".config/carrel", ".config/carrel/roles"):
        lib.failed_clearly(lib.box("true", cwd=home / where), "what carrel itself goes by")
    lib.succeeded(lib.box("true", cwd=home / ".config/other"))


ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
s.connect(sys.argv[1])
try:
    s.send(b'{"ask":"status"}')
    print(len(s.recv(65536)) > 0)
except (BrokenPipeError, ConnectionResetError):
    print(False)
"""


@needs_root
@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
def test_control_socket_and_another_user(project, place, user):
    """Who steers a box is its user, also where somebody has opened the socket to all.

    A user's carrel cannot see the namespaces of others, and takes them for foreign. Root's can.
    """
    if not user:
        subprocess.run(["chown", "-R", "0:0", project], check=True)
    top = lib.make_dir(place / "run", mode=0o700, uid=None if user else 0)
    how = {"env": {"XDG_RUNTIME_DIR": str(top)}, "opts": ["--name", "it"], "user": user}
    with held("uids", project=project, **how):
        path = top / "carrel/it.sock"
        lib.wait_for(path.exists, "the box's socket")
        for opened in (top, top / "carrel"):
            os.chmod(opened, 0o755)
        os.chmod(path, 0o666)
        ask = [lib.PYTHON, "-c", ASK, str(path)]
        assert lib.succeeded(lib.execute(ask, uid=STRANGER)) == b"False\n"
        assert lib.succeeded(lib.execute(ask, user=user)) == b"True\n", "the control: who owns it"


@needs_root
def test_another_users_socket_is_not_asked(project, place):
    """A socket under a box's name, of somebody who could put it there: he hears nothing."""
    top = lib.make_dir(place / "run", mode=0o700)
    lib.make_dir(top / "carrel", mode=0o700)
    path = top / "carrel/it.sock"
    ask = [lib.program(), "allow", "it", "a.example"]
    for owner in (STRANGER, lib.UID):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(str(path))
            os.chmod(path, 0o777)
            os.chown(path, owner, owner)
            # Whose socket it is, is who has called listen(2).
            os.seteuid(owner)
            server.listen()
            os.seteuid(0)
            process = subprocess.Popen(
                lib.as_user(ask), env=lib.environment({"XDG_RUNTIME_DIR": str(top)}),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
            lib.started.append(process)
            server.settimeout(lib.TIMEOUT)
            client, _ = server.accept()
            client.settimeout(lib.TIMEOUT)
            heard = client.recv(65536)
            client.close()
            process.communicate(timeout=lib.TIMEOUT)
            assert (b"a.example" in heard) == (owner == lib.UID), heard
        path.unlink()


# ---- git directories that belong to somebody else -----------------------------------------


def test_worktree_that_is_not_pointed_back_to(project, place):
    """A .git file that names a real repository, of another working tree."""
    lib.git("clone", "-q", "--bare", str(project), str(place / "first.git"), cwd=place)
    lib.git("worktree", "add", "-q", str(place / "own"), cwd=place / "first.git")
    lib.git("init", "-q", "--separate-git-dir", str(place / "apart.git"), "mine", cwd=place)
    lib.git("config", "core.worktree", str(place / "mine"), cwd=place / "apart.git")
    names = {"first.git": "first.git/worktrees/own", "apart.git": "apart.git"}
    for repository, leads in names.items():
        liar = lib.make_dir(place / f"liar-{repository}")
        lib.make_file(liar / ".git", f"gitdir: {place / leads}\n")
        attack = ["sh", "-c", f"echo x >{place / repository}/made"]
        lib.box(*attack, cwd=liar)
        assert not (place / repository / "made").exists()
    # The control: the working tree that is pointed back to has its repository.
    for repository, where in (("first.git", "own"), ("apart.git", "mine")):
        lib.box("sh", "-c", f"echo x >{place / repository}/made", cwd=place / where)
        assert (place / repository / "made").exists()


# ---- git's configuration after the box ----------------------------------------------------


def test_config_with_two_names_is_not_written(project, place):
    """What the box set is data, but the file is another one as well."""
    config = project / ".git/config"
    os.link(config, place / "other")
    before = config.read_text()
    said = lib.box("git", "config", "user.email", "box@example.org").stderr.decode()
    assert config.read_text() == before and "not taken over" in said
    (place / "other").unlink()
    lib.succeeded(lib.box("git", "config", "user.email", "box@example.org"))
    assert "box@example.org" in config.read_text(), "the control"


def test_copy_of_the_config_replaced_by_a_link(project, place):
    """The box lets its copy be a file of the host, which it cannot read itself."""
    at = lib.succeeded(lib.box("readlink", ".git/config")).decode().strip()
    theirs = lib.make_dir(place / "theirs")
    text = (project / ".git/config").read_text() + "[user]\n\temail = stolen@example.org\n"
    lib.make_file(theirs / os.path.basename(at), text)
    where = os.path.dirname(at)
    for link in (f"mv {where} {where}.x; ln -s {theirs} {where}",
                 f"ln -sf {theirs}/{os.path.basename(at)} {at}"):  # fmt: skip
        script = f"{link}; ! cat {at} 2>/dev/null && test -L {where} -o -L {at} && echo there"
        assert lib.succeeded(lib.box("sh", "-c", script)) == b"there\n"
        assert "stolen" not in (project / ".git/config").read_text()
    # The control: as a file in the box, it is read and taken over.
    lib.succeeded(lib.box("git", "config", "user.email", "stolen@example.org"))
    assert "stolen" in (project / ".git/config").read_text()


TRUNCATES = """
import os
size = 16 << 20
text, file = os.urandom(size), os.open(".git/index", os.O_RDWR)
open("ready", "w").close()
while not os.path.exists("stop"):
    os.pwrite(file, text, 0)
    os.ftruncate(file, 4096)
    open("ready", "a").write(".")
"""


def test_index_that_is_truncated_during_a_start(project):
    """carrel looks into it for a hidden file. A mapped one would kill it: no other box could start."""
    box = lib.start_box(lib.PYTHON, "-c", TRUNCATES)
    lib.wait_for((project / "ready").exists, "the box")
    for _ in range(30):
        lib.succeeded(lib.carrel("plan", "--", "true"))
    assert (project / "ready").stat().st_size > 0
    (project / "stop").touch()
    assert box.wait(timeout=60) == 0


@needs_root
def test_state_of_another_user_is_not_used(project, place):
    """A directory for what was approved that somebody else has made, and could change."""
    lib.make_dir(lib.make_dir(place / "state") / "carrel")
    theirs = lib.make_dir(place / "state/carrel/trust", uid=STRANGER, mode=0o777)
    env = {"XDG_STATE_HOME": str(place / "state")}
    text = '{"agents": {"x": {"harness": "command", "command": ["true"]}}}'
    lib.make_file(project / "carrel.json", text)
    child = lib.terminal([lib.program(), "trust"], env=env)
    child.expect_exact("[y/N] ")
    child.sendline("y")
    assert lib.finish(child) == 125
    assert not list(theirs.iterdir())
    # The control: in a directory of one's own it is kept, and the agent starts.
    os.chown(theirs, lib.UID, lib.UID)
    child = lib.terminal([lib.program(), "trust"], env=env)
    child.expect_exact("[y/N] ")
    child.sendline("y")
    assert lib.finish(child) == 0
    lib.succeeded(lib.carrel("run", "-y", "x", env=env))
