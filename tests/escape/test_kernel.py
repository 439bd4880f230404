"""The kernel's surface: each refused call raw, with an errno that only the filter gives.

A filter's answer is told from the kernel's own by making the same call outside: there it
succeeds or fails otherwise. The arguments are such that it does no harm in either case.
"""

import contextlib
import os
import platform
import subprocess

import arena
import lib
import pytest
from arena import inside, outside

pytestmark = pytest.mark.usefixtures("tool")

NEST = ["--nest"]
BOXES = {"none": [], "host": ["--network", "host"], "nest": NEST}
MAX = "0xffffffffffffffff"

# "@" is zeroed memory. Calls after the blank line may be missing in a kernel anyway.
REFUSED = f"""
acct 0
add_key 0 0 0 0 0
adjtimex @
bpf {MAX} 0 0
chroot 0
clock_adjtime 0 @
clock_settime 0 0
clone3 0 0
fanotify_init 0xffff 0
fsconfig {MAX} 0 0 0 0
fsmount {MAX} 0 0
fsopen 0 0
fspick {MAX} 0 0
get_robust_list 0 @ @
io_uring_enter {MAX} 0 0 0 0 0
io_uring_register {MAX} 0 0 0
io_uring_setup 0 0
keyctl 0xffff 0 0 0 0
mbind 0 0 0xffff 0 0 0
migrate_pages 0 0 0 0
mount 0 0 0 0 0
mount_setattr {MAX} 0 0 0 0
move_mount {MAX} 0 {MAX} 0 0
move_pages 0 0 0 0 0 0xffff
name_to_handle_at {MAX} 0 0 0 0
open_by_handle_at {MAX} 0 0
open_tree {MAX} 0 0
perf_event_open 0 0 0 0 0
pivot_root 0 0
process_madvise {MAX} 0 0 0 0
process_mrelease {MAX} 0
quotactl 0xffffffff 0 0 0
quotactl_fd {MAX} 0xffffffff 0 0
reboot 0 0 0 0
remap_file_pages 0 0 0 0 0
request_key 0 0 0 0
set_mempolicy 0xffff 0 0
setdomainname 0 0
sethostname 0 0
settimeofday 0 0
swapoff 0
swapon 0 0
syslog 3 0 0
umount2 0 0
userfaultfd 0xffff
vhangup

delete_module 0 0
finit_module {MAX} 0 0
init_module 0 0 0
ioperm 0 1 1
iopl 3
kexec_file_load {MAX} {MAX} 0 0 0
kexec_load 0 0 0 0
listmount 0 0 0 0
lookup_dcookie 0 0 0
memfd_secret 0xffff
modify_ldt 0 @ 0
open_tree_attr {MAX} 0 0 0 0
statmount 0 0 0 0
sysfs 3
uselib 0
ustat 0 0
"""
PRESENT, OPTIONAL = ([c for c in part.split("\n") if c] for part in REFUSED.split("\n\n"))
# What --nest gives back, because a box in the box is made of it.
NESTING = set(
    "chroot clone3 fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree"
    " open_tree_attr pivot_root sethostname umount2".split()
)


@pytest.mark.parametrize("call", PRESENT + OPTIONAL, ids=lambda c: c.split()[0])
def test_refused_call(call):
    """Not in the allow-list (rule 6): ENOSYS here, something else without the filter."""
    assert inside(f"sys {call}") == ["ENOSYS"]
    control = outside(f"sys {call}")
    assert control not in (["ENOSYS"], ["EDOTDOT"]) or call in OPTIONAL
    nested = inside(f"sys {call}", opts=NEST)
    assert (nested == ["ENOSYS"]) == (call.split()[0] not in NESTING or control == ["ENOSYS"])


def test_numbers_nobody_has_used_yet():
    """A call that is invented tomorrow is refused today."""
    numbers = [500, 511, 512, 547, 600, 1023, 1024, 0x3FFFFFFF]
    assert inside(*[f"sys {n}" for n in numbers]) == ["ENOSYS"] * len(numbers)
    assert inside("sys getpid")[0].startswith("ok ")


@pytest.mark.parametrize("entry", ["int80", "x32"])
def test_foreign_entry_dies(project, entry):
    """The 32-bit table by int 0x80, and x32 numbers: the process is killed (rule 6)."""
    if platform.machine() != "x86_64":
        return
    steps = arena.words(["put before x", entry, "put after x"])
    for opts in ([], NEST):
        done = lib.box("./attack", *steps, opts=opts)
        assert done.returncode == 128 + 31, done
        assert (project / "before").exists() and not (project / "after").exists()
    outside("put before x", entry, "put after x")
    assert (project / "after").exists()


FAMILIES = {
    "AF_AX25": 3, "AF_IPX": 4, "AF_APPLETALK": 5, "AF_X25": 9, "AF_KEY": 15, "AF_PACKET": 17,
    "AF_RDS": 21, "AF_PPPOX": 24, "AF_CAN": 29, "AF_TIPC": 30, "AF_BLUETOOTH": 31, "AF_ALG": 38,
    "AF_NFC": 39, "AF_VSOCK": 40, "AF_KCM": 41, "AF_QIPCRTR": 42, "AF_SMC": 43, "AF_XDP": 44,
}  # fmt: skip


@pytest.mark.parametrize("opts", BOXES.values(), ids=BOXES)
def test_socket_families(opts):
    """Families other than UNIX, INET, INET6 and routing netlink, also with high bits set."""
    steps = [f"socket {n} {t} 0" for n in FAMILIES.values() for t in (1, 2, 3)]
    steps += [f"socket {n | 1 << 32} 1 0" for n in FAMILIES.values()]
    steps += ["socketpair 30 1 0", "socketpair 40 1 0"]
    assert inside(*steps, opts=opts) == ["EAFNOSUPPORT"] * len(steps)
    good = [f"socket {n} {t} 0" for n in (1, 2, 10) for t in (1, 2)] + ["socket 16 3 0"]
    assert inside(*good, opts=opts) == ["ok"] * len(good)
    there = [name for name, line in zip(steps, outside(*steps)) if line != "EAFNOSUPPORT"]
    assert there, "this kernel has none of them: nothing was proven"


def test_socket_types():
    """Raw and packet sockets within the good families, and protocols loaded on demand."""
    steps = ["socket 2 3 17", "socket 10 3 58", "socket 2 10 0x300", "socket 2 3 255"]
    for opts in ([], ["--network", "host"], NEST):
        assert inside(*steps, opts=opts) == ["EPERM"] * 4
        assert inside("socket 2 1 132", "socket 2 1 262", opts=opts) == ["EPROTONOSUPPORT"] * 2
    if lib.ROOT:
        assert outside("socket 2 3 17", user=False) == ["ok"]
    # A nested user namespace has the capability, so there only the filter stands before it.
    nested = ["usermount", "sys unshare 0x40000000", "socket 2 3 17"]
    assert inside(*nested, opts=NEST)[2] == "EPERM"
    assert outside(*nested)[2] == "ok"


NAMESPACES = {
    "mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
    "pid": 0x20000000, "net": 0x40000000, "time": 0x80,
}  # fmt: skip
USER = NAMESPACES["user"]


@pytest.mark.parametrize("flag", NAMESPACES.values(), ids=NAMESPACES)
def test_no_new_namespaces(flag):
    """By clone and unshare, alone and with a user namespace, with bits that may be dropped."""
    flags = [flag, flag | USER, flag | USER | 0x200]
    steps = [f"sys unshare {f}" for f in flags] + [f"sys unshare {flag | 1 << 32}"]
    if flag != NAMESPACES["time"]:  # for clone(2) this bit belongs to the exit signal
        steps += [f"clone {f}" for f in [*flags, flag | 0xFF << 32]]
    assert inside(*steps) == ["EPERM"] * len(steps)
    assert inside(f"clone3 {flag | USER}", "sys clone3 0 0") == ["ENOSYS"] * 2
    assert outside(f"sys unshare {flag | USER}") == ["ok"]
    assert outside(f"clone3 {flag | USER}") == ["ok"]
    assert inside(f"sys unshare {flag | USER}", opts=NEST) == ["ok"]


def test_unshare_unknown_bits_and_setns():
    """Bits that a newer kernel may give a meaning (an empty mount namespace), and setns."""
    steps = ["sys unshare 0x100000", f"sys unshare {1 << 40}"]
    steps += [f"sys setns {MAX} 0", "sys setns 0 0"]
    assert inside(*steps) == ["EPERM"] * 4
    assert "EPERM" not in outside(f"sys setns {MAX} 0", "sys setns 0 0")
    assert inside("sys unshare 0x200", "sys unshare 0x400", "clone 0") == ["ok"] * 3


def test_user_namespaces_are_used_up():
    """Behind the filter stands max_user_namespaces = 0, which the box cannot raise (rule 5)."""
    path = "/proc/sys/user/max_user_namespaces"
    assert inside(f"read {path}", f"write {path} 99", f"read {path}")[::2] == ["ok 0\\x0a"] * 2
    assert inside(f"read {path}", opts=NEST) != ["ok 0\\x0a"]
    assert outside(f"read {path}") != ["ok 0\\x0a"]


TERMINAL = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "TIOCSETD": 0x5423}


@pytest.mark.parametrize("request_", TERMINAL.values(), ids=TERMINAL)
@pytest.mark.parametrize("opts", [[], NEST], ids=["strict", "nest"])
def test_ioctl_by_its_low_bits(request_, opts):
    """The kernel drops the high word of a request, so the filter must (CVE-2019-10063)."""
    steps = [f"ioctl 0 {request_ | high << 32}" for high in (0, 1, 0x80000000, 0xFFFFFFFF)]
    assert inside(*steps, opts=opts) == ["EPERM"] * 4
    assert "EPERM" not in outside(*steps)
    assert inside("ioctl 0 0x5401", opts=opts) == ["ENOTTY"]


# By the kernel's numbers: 1024 is F_SETLEASE, 1026 F_NOTIFY, 1039 and 1040 are F_GETDELEG and
# F_SETDELEG of Linux 6.19.
LEASES = {"read": "fcntl {0} 1024 0", "write": "fcntl {0} 1024 1", "again": "fcntl {0} 1024 2"}
F_DN_CREATE = 4


@pytest.mark.parametrize("opts", [[], NEST], ids=["strict", "nest"])
def test_no_lease(project, opts):
    """A lease makes the next one who opens the file wait for the box, or fail (18.2)."""
    file = lib.make_file(project / "leased", "x")
    steps = [step.format("leased") for step in LEASES.values()]
    steps += [f"fcntl . 1026 {F_DN_CREATE}", "fcntl . 1040 0", "fcntl . 1039 0"]
    steps += [f"fcntl leased {1024 | 1 << 32} 0", f"fcntl . {1026 | 1 << 40} {F_DN_CREATE}"]
    assert inside(*steps, opts=opts) == ["EINVAL"] * len(steps)
    assert inside("fcntl leased 1 0", "fcntl leased 1025 0", opts=opts) == ["ok", "ok 2"]
    with arena.held(steps[0], project=project, opts=opts):
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
    assert outside(steps[0], "fcntl . 1026 4") == ["ok", "ok"]
    with held_outside(steps[0], project=project):
        with pytest.raises(BlockingIOError):
            os.open(file, os.O_WRONLY | os.O_NONBLOCK)


@contextlib.contextmanager
def held_outside(step, project):
    """The attacker without a box has done its step, and waits."""
    argv = [arena.TOOL, *arena.words([step, "put up x", "await go"])]
    process = subprocess.Popen(lib.as_user(argv), cwd=project, stdout=subprocess.PIPE)
    lib.started.append(process)
    arena.await_file(process, project / "up")
    yield
    lib.make_file(project / "go")
    process.wait(lib.TIMEOUT)
    assert process.stdout.read().startswith(b"ok\n")


def test_personality():
    """READ_IMPLIES_EXEC, MMAP_PAGE_ZERO and foreign personalities; a debugger's wish is let."""
    steps = [f"sys personality {p}" for p in ("0x400000", "0x100000", "0x6", "0x440000")]
    assert inside(*steps) == ["EPERM"] * 4
    assert outside(steps[0]) == ["ok"]
    assert inside("sys personality 0x40000") == ["ok"]


@pytest.mark.parametrize("way", ["thread", "exec", "memexec", "exec thread exec", "swapcall"])
def test_no_way_around_the_filter(way):
    """Another thread, a new program, a program in memory, a tracer that changes the call."""
    call = "" if way == "swapcall" else "sys "
    steps = [f"{way} {call}keyctl 0xffff 0 0", f"{way} {call}io_uring_setup 0 0"]
    for step in steps:
        assert inside(step) == ["ENOSYS"]
        assert outside(step) not in (["ENOSYS"], [])
    if way != "swapcall":
        assert inside(f"{way} uids") == [f"ok {lib.UID} {lib.UID}"]


def test_every_thread_of_the_box_is_restricted(project):
    """Seen from the host: no thread was there before the filter, none has a capability."""
    script = (
        "import threading, time, subprocess, os\n"
        "for i in range(3):\n"
        "    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "subprocess.Popen(['sleep', '30'])\n"
        "open('up', 'w').close()\n"
        "time.sleep(30)\n"
    )
    process = lib.start_box(lib.PYTHON, "-c", script)
    arena.await_file(process, project / "up")
    init, *rest = arena.in_box(process.pid)
    tasks = [f"{pid}/task/{t}" for pid in rest for t in os.listdir(f"/proc/{pid}/task")]
    assert len(tasks) >= 5
    for task in tasks:
        seen = arena.status(task)
        assert seen["Seccomp"] == "2" and seen["NoNewPrivs"] == "1", seen
        assert_powerless(seen)
    for task in os.listdir(f"/proc/{init}/task"):
        assert_powerless(arena.status(f"{init}/task/{task}"))
    process.kill()
    process.wait()
    if lib.ROOT:
        assert int(arena.status("self")["CapEff"], 16) != 0


def assert_powerless(seen):
    """All five capability sets are empty, and they are the host's numbers."""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(seen[name], 16) == 0, (name, seen)
