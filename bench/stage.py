"""Where the benchmark plays: a normal user, a sample project, and nothing left behind.

Everything measured runs as a normal user. Started by root, that user is a number
(12345) which exists nowhere; some peers want more than that, so root first moves
into a mount namespace of its own and there, for itself alone,

  - gives that user a line in /etc/passwd (firejail asks for one),
  - lets that user at /dev/net/tun where only root may (pasta, slirp4netns), and at
    /dev/fuse (fuse-overlayfs), and
  - on a host with mixed cgroup versions shows version 2 only (crun refuses both).

All commands of a comparison run in that same view, so nobody gains by it, and it is
gone with the last process. Orphans (podman's pause process, conmon, socat) come back
to us because we are a subreaper: at the end we kill our descendants, by pid.
"""
import atexit
import ctypes
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

UID = 12345
IN_NAMESPACE = "CARREL_BENCH_IN_NAMESPACE"
PR_SET_CHILD_SUBREAPER = 36
HERE = pathlib.Path(__file__).resolve().parent


def cache_dir():
    """Must match peers.sh. Not /tmp: codex refuses a home below a temporary directory."""
    if "CARREL_BENCH_CACHE" in os.environ:
        return pathlib.Path(os.environ["CARREL_BENCH_CACHE"]).resolve()
    if os.getuid() == 0:
        return pathlib.Path("/var/cache/carrel-bench")
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return home / "carrel-bench"


def enter_namespace():
    """Start over in a private mount namespace (Python 3.11 has no os.unshare)."""
    if os.getuid() != 0 or IN_NAMESPACE in os.environ:
        return
    os.environ[IN_NAMESPACE] = "1"
    unshare = shutil.which("unshare") or sys.exit("bench: unshare (util-linux) is needed")
    os.execv(unshare, [unshare, "--mount", "--propagation", "private",
                       sys.executable, *sys.argv])


# ---- processes ------------------------------------------------------------------

def process_table():
    """pid -> (parent, name, state), for everything alive."""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                text = file.read().decode(errors="replace")
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:].rsplit(")", 1)
        state, parent = rest.split()[:2]
        table[int(entry)] = (int(parent), name, state)
    return table


def descendants(root, table=None):
    """pid -> name of all that descends from root, without root and without the dead."""
    table = table or process_table()
    children = {}
    for pid, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, todo = {}, list(children.get(root, []))
    while todo:
        pid = todo.pop()
        todo += children.get(pid, [])
        if table[pid][2] not in "ZX":
            found[pid] = table[pid][1]
    return found


def kill(pid, number):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def reap():
    """Collect dead orphans. Popen objects cope with losing their exit status to us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_descendants(patience=15):
    """Kill what is left below us, and again, as killing a parent hands us its children."""
    deadline = time.monotonic() + patience
    while left := descendants(os.getpid()):
        if time.monotonic() > deadline:
            print(f"bench: could not end {left}", file=sys.stderr)
            return
        for pid in left:
            kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        reap()
    reap()


# ---- the stage ------------------------------------------------------------------

class Stage:
    """The temporary directory with all in it, and how to run things there as the user."""

    def __init__(self):
        self.root = os.getuid() == 0
        self.uid = UID if self.root else os.getuid()
        cache_dir().mkdir(parents=True, exist_ok=True)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=cache_dir()))
        self.errors = self.base / "errors"
        self.runtime = None
        self.inside = []    # before every command: how to get to where it runs
        self.programs = {}
        atexit.register(self.close)
        self.base.chmod(0o755)
        self.home = self._directory("home")
        self.project = self._directory("project")
        self.extra = self._directory("extra")
        self.tmp = self._directory("tmp")
        # podman refuses a run directory of more than 50 characters, but only when it
        # cleans up, and then waits 20 s for what will not come: hence not below base.
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="cb-", dir="/tmp"))
        self._give(self.runtime)
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home),
            "LANG": "C.UTF-8", "USER": "bench", "TMPDIR": str(self.tmp),
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def prepare(self):
        """All that can fail comes after the constructor, whose close() is registered."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: sys.exit(128 + n))
        if self.root:
            self._show_user()
            self._show("/dev/net/tun", 10, 200)
            self._show("/dev/fuse", 10, 229)
            self._show_one_cgroup_version()
        self._fill_project()
        self.interleave = self.compiled("interleave")

    def close(self):
        """Ctrl-C again, during this, must not leave boxes behind."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_descendants()
        for path in filter(None, (self.base, self.runtime)):
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                print(f"bench: could not remove {path}", file=sys.stderr)

    def as_user(self, argv):
        if not self.root:
            return list(argv)
        return [*self.inside, shutil.which("setpriv"), f"--reuid={UID}", f"--regid={UID}",
                "--clear-groups", "--", *argv]

    def run(self, argv, timeout=120, cwd=None):
        """One command as the user, to its end: a CompletedProcess with text."""
        return subprocess.run(
            self.as_user(argv), cwd=cwd or self.project, env=self.env, timeout=timeout,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="surrogateescape", check=False)

    def start(self, argv, cwd=None):
        """One command as the user, left running; what it complains of is in self.errors."""
        with open(self.errors, "ab") as errors:
            return subprocess.Popen(
                self.as_user(argv), cwd=cwd or self.project, env=self.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)

    def keep(self, program):
        """A copy of the program: a build that goes on meanwhile must not be measured too."""
        if not os.access(program, os.X_OK):
            return program
        return shutil.copy(program, self.base / "carrel")

    def directories(self, count):
        """That many directories of the user, outside home and project, to be bound."""
        made = [self.extra / f"{i:03}" for i in range(count)]
        for path in made:
            path.mkdir(exist_ok=True)
            self._give(path)
        return made

    def twin(self, name, absent=()):
        """A copy of the project in which the names of `absent` exist, as directories.

        Some peers make missing mount points on the host and leave them there; in the
        project itself that would change carrel's plan for all later runs.
        """
        twin = self.base / f"project-{name}"
        shutil.copytree(self.project, twin, symlinks=True)
        for path in absent:
            (twin / os.path.relpath(path, self.project)).mkdir(parents=True, exist_ok=True)
        self._give(twin)
        return twin

    def rootfs(self):
        """The smallest root that runs true and sleep, for podman --rootfs."""
        rootfs = self.base / "rootfs"
        for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
            (rootfs / name).mkdir(parents=True, exist_ok=True)
        programs = ["/bin/true", "/bin/sleep"]
        ldd = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True)
        libraries = {word for word in ldd.stdout.split() if word.startswith("/lib")}
        for path in [*programs, *(word.rstrip(":") for word in libraries)]:
            copy = rootfs / path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        self._give(rootfs)
        return rootfs

    def _directory(self, name):
        path = self.base / name
        path.mkdir(mode=0o755)
        self._give(path)
        return path

    def _give(self, path):
        if self.root:
            subprocess.run(["chown", "-R", f"{UID}:{UID}", path], check=True)

    def _show_user(self):
        passwd = self.base / "passwd"
        line = f"bench:x:{UID}:{UID}:benchmark:{self.home}:/bin/sh\n"
        passwd.write_bytes(pathlib.Path("/etc/passwd").read_bytes() + line.encode())
        passwd.chmod(0o644)
        subprocess.run(["mount", "--bind", passwd, "/etc/passwd"], check=True)

    def _show(self, name, major, minor):
        """A device, as distributions have it: for everybody."""
        device = pathlib.Path(name)
        if not device.exists() or device.stat().st_mode & 0o006 == 0o006:
            return
        node = self.base / device.name
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        node.chmod(0o666)
        subprocess.run(["mount", "--bind", node, device], check=True)

    def _show_one_cgroup_version(self):
        cgroup = "/sys/fs/cgroup"
        with open("/proc/self/mounts", encoding="utf-8") as file:
            types = {line.split()[2] for line in file if line.split()[1].startswith(cgroup)}
        if "cgroup" in types:
            subprocess.run(["umount", "--lazy", cgroup], check=False)
            subprocess.run(["mount", "-t", "cgroup2", "cgroup2", cgroup], check=False)

    def _fill_project(self):
        """A small repository as people have it, with a secret that wants hiding."""
        files = {"src/main.c": "int main(void)\n{\n\treturn 0;\n}\n",
                 "README.md": "# sample\n", ".env": "TOKEN=sample\n"}
        (self.project / "src").mkdir()
        for name, text in files.items():
            (self.project / name).write_text(text)
        self._give(self.project)
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        for step in (["init", "-q"], ["add", "src", "README.md"], ["commit", "-qm", "sample"]):
            self.run([*git, *step]).check_returncode()

    def compiled(self, name, more=()):
        """The program bench/NAME.c, with these files of carrel's own source."""
        if name not in self.programs:
            source = HERE.parent / "src"
            subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", f"-I{source}", "-o",
                            self.base / name, HERE / f"{name}.c",
                            *(source / path for path in more)], check=True)
            self.programs[name] = self.base / name
        return self.programs[name]
