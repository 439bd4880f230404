"""The commands that are compared: how each of them puts a program into a box.

A peer is asked once whether it works here. If not it is listed as absent, with what
it said; it is never dropped silently.
"""
import json
import os
import pathlib
import shutil
import subprocess

import stage as stage_module

BINDS = 25          # of the "bwrap, 25 binds" that the targets speak of
BWRAP_TAIL = ["--unshare-all", "--die-with-parent", "--new-session"]


class Peer:
    """One that can run a program in a box.

    prefix    the argv before the program
    version   the argv that tells its version
    payload   for the memory row, where it needs an argv of its own
    cwd       a project of its own, for those that leave things in it; else the sample
    """

    def __init__(self, name, prefix, version=None, note="", payload=None, cwd=None):
        self.name = name
        self.prefix = [str(word) for word in prefix]
        self.version_argv = version
        self.version = ""
        self.note = note
        self.payload = payload or {}
        self.cwd = cwd
        self.mounts = 0     # how many the translated plan has; known for bwrap only

    def command(self, *program):
        return [*self.prefix, *program]


class Absent(Exception):
    """Why a peer cannot take part."""


def tool(name):
    path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if not path:
        raise Absent("not installed")
    return path


def npm_tool(name):
    path = stage_module.cache_dir() / "node" / "node_modules" / ".bin" / name
    if not path.exists():
        raise Absent("not installed (bench/peers.sh fetches it)")
    return str(path)


# ---- bwrap, with what carrel mounts ----------------------------------------------

def bwrap_flags(places, project, twin, empty_file, empty_dir):
    """carrel's places as bwrap flags: the same mounts, in the same order.

    Where bwrap has no equal, it gets the cheaper thing: files that carrel writes into
    its root are left out, and so is the remount of the root as read-only. Neither
    Landlock nor seccomp is asked of bwrap.
    """
    def source(place):
        path = place.get("source") or place["target"]
        inside = path == str(project) or path.startswith(f"{project}/")
        return str(twin) + path[len(str(project)):] if inside else path

    def bind(place):
        flag = "--bind" if place.get("mode") == "rw" else "--ro-bind"
        return [flag, source(place), place["target"]]

    def cover(place):
        return ["--ro-bind", str(empty_dir if place.get("type") == "dir" else empty_file),
                place["target"]]

    translate = {
        "bind": bind,
        "pin": bind,
        "protect": lambda p: ["--ro-bind", source(p), p["target"]],
        "stub": lambda p: ["--ro-bind", str(empty_dir), p["target"]],
        "hide": cover,
        "scratch": lambda p: ["--tmpfs", p["target"]],
        "proc": lambda p: ["--proc", p["target"]],
        "link": lambda p: ["--symlink", p["text"], p["target"]],
        "dir": lambda p: ["--dir", p["target"]],
        "file": lambda p: [],
        "copy": bind,  # what a user of bwrap would write to have the file
    }
    flags, dev_done, unknown = [], False, set()
    for place in places:
        if place["target"] == "/dev" or place["target"].startswith("/dev/"):
            # bwrap's own: a tmpfs, the same six nodes, the same links, a devpts.
            flags += [] if dev_done else ["--dev", "/dev"]
            dev_done = True
        elif place["kind"] not in translate:
            unknown.add(place["kind"])
        elif place["target"] != "/":
            flags += translate[place["kind"]](place)
    return flags, sorted(unknown)


def read_plan(stage, carrel):
    ran = stage.run([carrel, "plan", "--json", "--", "/bin/true"])
    if ran.returncode:
        raise Absent(f"carrel plan --json failed: {last_line(ran.stderr)}")
    try:
        return json.loads(ran.stdout)["places"]
    except (ValueError, KeyError) as error:
        raise Absent(f"carrel plan --json cannot be read: {error!r}") from error


def bwrap_same(stage, carrel):
    program = tool("bwrap")
    places = read_plan(stage, carrel)
    empty_dir, empty_file = stage.directories(1)[0], stage.base / "empty"
    empty_file.touch()
    twin = stage.twin("bwrap", [p["target"] for p in places if p["kind"] == "stub"])
    flags, unknown = bwrap_flags(places, stage.project, twin, empty_file, empty_dir)
    count = sum(flag in ("--bind", "--ro-bind", "--tmpfs", "--proc") for flag in flags)
    note = f"{count} mounts and /dev, as carrel's plan has them"
    if unknown:
        note += "; without places of kind " + ", ".join(unknown)
    peer = Peer("bwrap", [program, *flags, "--chdir", stage.project, *BWRAP_TAIL, "--"],
                [program, "--version"], note)
    peer.mounts = count
    return peer


# ---- the others -------------------------------------------------------------------

def bwrap_fixed(stage, _carrel):
    """Exactly 25 binds, whatever carrel does: a measure that stays the same over time."""
    program = tool("bwrap")
    flags, binds = [], 2
    for name in ("/bin", "/lib", "/lib64", "/sbin"):
        if os.path.islink(name):
            flags += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            flags += ["--ro-bind", name, name]
            binds += 1
    flags += ["--ro-bind", "/usr", "/usr", "--bind", str(stage.project), str(stage.project)]
    for path in stage.directories(BINDS - binds):
        flags += ["--ro-bind", str(path), str(path)]
    flags += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    return Peer("bwrap, 25 binds", [program, *flags, *BWRAP_TAIL, "--"],
                [program, "--version"], "25 binds, proc, dev, tmpfs")


def firejail(_stage, _carrel):
    program = tool("firejail")
    flags = ["--quiet", "--noprofile", "--private", "--private-dev", "--private-tmp",
             "--net=none", "--caps.drop=all", "--nonewprivs", "--seccomp"]
    return Peer("firejail", [program, *flags], [program, "--version"], " ".join(flags[2:]))


def podman(stage, _carrel):
    program = tool("podman")
    flags = ["run", "--rm", "--network=none", "--cgroups=disabled", "--log-driver=none"]
    note = "rootless, no network, no cgroup, no image: --rootfs with true and sleep"
    rootfs = str(stage.rootfs())
    return Peer("podman", [program, *flags, "--rootfs", rootfs], [program, "--version"], note,
                payload={"detach": [program, *flags, "--detach", "--rootfs", rootfs],
                         "count": "conmon"})


def bundled_ripgrep():
    """srt needs rg; the codex package carries one."""
    found = shutil.which("rg", path="/usr/local/bin:/usr/bin:/bin")
    if found:
        return found
    vendor = stage_module.cache_dir() / "node" / "node_modules" / "@openai"
    return next((str(path) for path in vendor.glob("*/vendor/*/*/rg")), None)


def srt(stage, _carrel):
    program = npm_tool("srt")
    settings = {
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
    }
    if rg := bundled_ripgrep():
        settings["ripgrep"] = {"command": rg}
    path = stage.base / "srt.json"
    path.write_text(json.dumps(settings))
    return Peer("srt", [program, "--settings", path, "--"], [program, "--version"],
                "no domains allowed, project writable", cwd=stage.twin("srt"))


def codex(stage, _carrel):
    """The subcommand was `sandbox linux` and became `sandbox`: take the one that works."""
    program, twin = npm_tool("codex"), stage.twin("codex")
    for words in (["sandbox"], ["sandbox", "linux"]):
        peer = Peer("codex", [program, *words, "--"], [program, "--version"],
                    " ".join(words), cwd=twin)
        if stage.run(peer.command("/bin/true"), cwd=twin).returncode == 0:
            break
    return peer


def carrel_peer(_stage, carrel):
    if not os.access(carrel, os.X_OK):
        raise Absent(f"{carrel} is not there")
    return Peer("carrel", [carrel, "run", "-y", "--"], [carrel, "version"], "defaults")


def plain(_stage, _carrel):
    return Peer("plain", [], None, "fork and exec, no box")


def namespaces(stage, _carrel):
    return Peer("namespaces", [stage.compiled("namespaces")], None,
                "the namespaces of a box and nothing in them: what the kernel takes for those")


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


def versions_line(stage, peer):
    if not peer.version_argv:
        return ""
    ran = stage.run(peer.version_argv)
    lines = ran.stdout.strip().splitlines()
    return lines[0].strip() if lines else "unknown"


MAKERS = {
    "plain": plain,
    "namespaces": namespaces,
    "carrel": carrel_peer,
    "bwrap": bwrap_same,
    "bwrap, 25 binds": bwrap_fixed,
    "firejail": firejail,
    "podman": podman,
    "codex": codex,
    "srt": srt,
}


def find_all(stage, carrel):
    """({name: Peer}, {name: why it is absent}): everybody is in one of the two."""
    working, absent = {}, {}
    for name, make in MAKERS.items():
        try:
            peer = make(stage, str(pathlib.Path(carrel).resolve()))
            ran = stage.run(peer.command("/bin/true"), cwd=peer.cwd)
            if ran.returncode:
                raise Absent(f"exit {ran.returncode}: {last_line(ran.stderr)}")
            peer.version = versions_line(stage, peer)
            working[name] = peer
        except (Absent, OSError, subprocess.SubprocessError) as why:
            absent[name] = str(why)
    return working, absent
