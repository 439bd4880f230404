"""Two runs in the same project, and what each came to: outside, and in a box or beside one.

The project is made anew for each run, always at the same path, so that what programs print can be
compared as it stands. node_modules is the exception: it is made once, and moves into each project,
as copying it would take longer than the tools themselves.
"""

import contextlib
import difflib
import os
import pathlib
import re
import shutil
import subprocess

import lib

TIMEOUT = 5 * lib.TIMEOUT  # compilers, on a busy machine

# The user's own: the project's configuration has no identity.
GITCONFIG = "[user]\n\tname = A Tester\n\temail = tester@example.org\n[pull]\n\trebase = true\n"

# What tools leave behind of their own: differs from run to run, or takes long to read.
OWN = {"node_modules", ".git", "target", ".mypy_cache", "__pycache__", ".pytest_cache"}

# In .git this must be the same byte for byte. The rest has times in it, and inode numbers.
GIT_TEXTS = ("HEAD", "config", "config.worktree", "packed-refs", "refs", "info")

# A machine with no network but its own loopback, for the user that one is. Nothing that a
# program does outside of a box may leave this machine.
ALONE = (
    'ip link set lo up && exec unshare -U --map-user=$1 --map-group=$2 -- sh -euc "$3"'
)


def tools():
    where = os.environ.get("CARREL_TOOLS") or lib.kept("tools")
    return pathlib.Path(where) / "node_modules"


@contextlib.contextmanager
def fresh(everything, path, modules=None):
    """A new project at that path, for as long as the block lasts."""
    subprocess.run(["cp", "-a", everything, path], check=True)
    lib.settle()
    if modules:
        os.rename(modules, path / "node_modules")
    try:
        yield path
    finally:
        if modules:
            for name in (".vite", ".vite-temp", ".vitest", ".cache"):
                shutil.rmtree(path / "node_modules" / name, ignore_errors=True)
            os.rename(path / "node_modules", modules)
        lib.remove(path)


def alone(script):
    """The words that run a script on a machine of its own."""
    return ["unshare", "-rn", "sh", "-c", ALONE, "sh", str(lib.UID), str(lib.GID), script]


def content(path):
    if os.path.islink(path):
        return os.readlink(path)
    return "directory" if os.path.isdir(path) else lib.digest(path)


def files(top):
    """All that is below top with its content, but for what tools keep for themselves."""
    seen = {}
    for where, dirs, names in os.walk(top):
        for name in dirs + names:
            path = os.path.join(where, name)
            seen[os.path.relpath(path, top)] = content(path)
        dirs[:] = [name for name in dirs if name not in OWN]
    return seen


def of_git(top):
    """What git keeps: names, and what the texts say. Objects have names that depend on the time."""
    seen = {}
    for where, dirs, names in os.walk(top / ".git"):
        rel = os.path.relpath(where, top / ".git")
        dirs[:] = [name for name in dirs if (rel, name) != (".", "objects")]
        for name in dirs + names:
            path = os.path.normpath(os.path.join(rel, name))
            text = path.split("/")[0] in GIT_TEXTS
            seen[f".git/{path}"] = content(os.path.join(where, name)) if text else "there"
    return seen


# Times and ports differ from run to run, wherever that is.
VARYING = [
    (r" *\(?\b[\d.]+ ?m?s\b\)?", " T"),
    (r"(duration_ms|time=|Start at|Time:) *[\d.:]+.*", r"\1 T"),
    (r"(localhost|127\.0\.0\.1):\d+", r"\1:PORT"),
]


# What git lists of a box's own, in it and beside it, and nobody else does: see docs/decisions.md.
STUBS = ("claude", "codex", "gemini", "idea", "vscode", "cursor")
CLEANED = re.compile(rf"(Would remove|Removing) \.({'|'.join(STUBS)})/")


def plain(stream):
    """The lines of an output: without times and ports, and without what carrel says itself."""
    lines, own = [], False
    for line in stream.decode(errors="replace").splitlines():
        own = line.startswith("carrel: ") or (own and line.startswith("  "))
        for pattern, word in VARYING:
            line = re.sub(pattern, word, line)
        if not own and not CLEANED.fullmatch(line):
            lines.append(line)
    return lines


def said(done, streams):
    """What a run printed, as lines."""
    lines = [f"exit code {done.returncode}"]
    return lines + [f"{name}: {line}" for name in streams for line in plain(getattr(done, name))]


def left(path):
    """What it left in the project, as lines."""
    seen = files(path) | of_git(path)
    return [f"{content} {name}" for name, content in sorted(seen.items())]


def same(found, wanted):
    """Nothing differs; else the difference is shown, and only that."""
    diff = difflib.unified_diff(wanted, found, "outside", "here", n=0, lineterm="")
    assert not (text := "\n".join(diff)), text
