"""A round: the box does its deeds, the user goes on working, and what came of that is an alarm.

An alarm is a write outside of the project, or a program that runs, where the same commands in an
untouched copy would have done neither. The host is looked at, not the box: files outside before and
after, marks that a payload leaves when it runs and, in traced rounds, what strace saw.
"""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex

import lib
import shapes

DEEDS = (pathlib.Path(__file__).parent / "deeds.py").read_text()
# carrel keeps its own things there; nothing else is written for it.
ITS_OWN = ("home/.local/state/carrel", "home/.cache/carrel", "home/.config/carrel")
COMMAND_SECONDS = 2

# Ordinary work.
GIT_COMMANDS = [
    "git status",
    "git diff",
    "git log -3 --oneline --all",
    "git submodule status",
    "git worktree list",
    "git rebase --abort",
    "git am --abort",
    "git cherry-pick --abort",
    "git merge --abort",
    "git bisect reset",
    "git add -A",
    "git commit -m x",
    "git status",
    "git commit --amend --no-edit",
    "git checkout -b tripwire",
    "git checkout -",
    "rm -rf host.txt; echo host >host.txt; git add host.txt; git stash",
    "git stash pop",
    "git commit -m host",
    "git merge --no-edit side",
    "git rebase side",
    "git rebase --apply HEAD~1",
    "git rebase --continue",
    "git rebase --abort",
    "git submodule update --init",
    "git submodule update",
    "git fetch origin",
    "git diff HEAD~1",
    "git show",
    "git branch -D tripwire",
    "git tag -f -m tag tripped",
    "git reset --hard",
    "git checkout -",
    "git worktree prune",
    "git gc -q",
    "git fsck --lost-found",
    "git reflog expire --all",
    "git status",
]
CARREL_COMMANDS = ["plan", "run -y -- true", "instances"]


@dataclasses.dataclass
class Alarm:
    kind: str  # "ran", "wrote" or what strace saw: "executed", "opened", "changed"
    what: str
    by: str = ""

    def key(self):
        return (self.kind, self.what)


@dataclasses.dataclass
class Round:
    shape: str
    runs: list  # of lists of operations
    commands: list  # of the user's afterwards
    alarms: list = dataclasses.field(default_factory=list)
    said: list = dataclasses.field(default_factory=list)  # by carrel, at the end of each run
    did: list = dataclasses.field(default_factory=list)  # by the box


# ---- the two sides --------------------------------------------------------------------------


def fill(operations):
    return [[shapes.filled(w) if isinstance(w, str) else w for w in op] for op in operations]


def act(operations, boxed, first):
    """Do the deeds, in a box or without one; (what was done, what carrel said).

    Only after another run may carrel refuse to start a box, because of what it found.
    """
    argv = [lib.PYTHON, "-I", "-S", "-c", DEEDS]
    how = {
        "cwd": shapes.project(),
        "env": {"HOME": str(shapes.names()["home"])},
        "input": json.dumps(fill(operations)).encode(),
    }
    done = lib.box(*argv, **how) if boxed else lib.execute(argv, **how)
    said = done.stderr.decode(errors="replace")
    refused = boxed and not first and done.returncode == 125
    assert refused or len(done.stdout.splitlines()) >= len(operations), (done.returncode, said)
    return done.stdout.decode(errors="replace"), said + whole_report(said)


def whole_report(said):
    """The rest of a list that was too long for the terminal, as the user is told to ask for it."""
    name = re.search(r"carrel found (\S+)", said)
    if not name:
        return ""
    done = lib.carrel("found", name[1], "--json", env={"HOME": str(shapes.names()["home"])})
    entries = map(json.loads, lib.succeeded(done).decode().splitlines())
    return "".join(f"  {e['path']}  ({e['why']})\n" for e in entries if "path" in e)


def script(shape, commands, seconds):
    """The commands in every working tree that the project had, each with a time limit if asked."""
    lines = ["exec </dev/null >/dev/null 2>&1", "export GIT_TERMINAL_PROMPT=0 EDITOR=true PAGER=cat GIT_TEST_FSYNC=0"]
    limit = f"timeout -s KILL {seconds} git" if seconds else "git"
    for tree in shape.trees:
        where = shlex.quote(str(shapes.project() / shapes.filled(tree)))
        lines.append(f"if cd {where}; then")
        lines += [re.sub(r"(^|; )git", rf"\1{limit}", command) for command in commands]
        lines.append("fi")
    return "\n".join(lines) + "\n"


def carrel_script(commands):
    program = shlex.quote(lib.program())
    where = shlex.quote(str(shapes.project()))
    lines = ["exec </dev/null >/dev/null 2>&1", f"cd {where}"]
    return "\n".join(lines + [f"{program} {command}" for command in commands]) + "\n"


def work(text, trace=None):
    """Run a script of the user's; with trace, under strace into that file."""
    path = lib.make_file(shapes.top() / "work.sh", text)
    argv = ["sh", str(path)]
    if trace:
        calls = "execve,execveat,open,openat,openat2,creat,/^(rename|unlink|link|symlink|mkdir|rmdir)"
        calls += ",/^(mknod|truncate|f?chmod|l?f?chown|utime)"
        argv = ["strace", "-f", "-qq", "-y", "--seccomp-bpf", "-s", "400", "-z",
                "-e", f"trace={calls}", "-e", "signal=none", "-o", str(trace), *argv]
    home = str(shapes.names()["home"])
    return lib.execute(argv, cwd="/", env={"HOME": home}, timeout=300)


# ---- verdicts -------------------------------------------------------------------------------


def marks():
    found = []
    for path in sorted((shapes.now() / "marks").iterdir()):
        text = path.read_text(errors="replace")
        found.append(Alarm("ran", path.name, text.splitlines()[0] if text else ""))
        path.unlink()
    return found


def is_its_own(path):
    return any(path == own or path.startswith(own + "/") or own.startswith(path + "/")
               for own in ITS_OWN)


def differences(before, after):
    return [Alarm("wrote", path) for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path) and not is_its_own(path)]


_EXEC = re.compile(r'^\d+ +execve(?:at)?\((?:AT_FDCWD<[^>]*>, )?"((?:[^"\\]|\\.)*)", \[(.*?)\]')
_OPENED = re.compile(r"^\d+ +(?:open|openat|openat2|creat)\(.*(O_WRONLY|O_RDWR|O_CREAT|creat\().*"
                     r" = \d+<(.*)>$")
_CHANGED = re.compile(r"^\d+ +(\w+)\((.*)\) += 0$")
_AT = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')


def read_trace(path):
    """(programs executed, with a shell's command; paths opened for writing or changed)."""
    ran, wrote = set(), set()
    if not path.exists():
        return ran, wrote
    for line in path.read_text(errors="replace").splitlines():
        match = _EXEC.match(line)
        if match:
            name = os.path.basename(match[1])
            shell = name in ("sh", "bash", "dash") and '"-c"' in match[2]
            ran.add((match[1], match[2] if shell else ""))
            continue
        match = _OPENED.match(line)
        if match:
            wrote.add(match[2].removesuffix(" (deleted)"))
            continue
        match = _CHANGED.match(line)
        if match and not match[1].startswith(("exec", "open", "creat")):
            full = (os.path.join(at, name) for at, name in _AT.findall(match[2]))
            wrote.update(os.path.normpath(path) for path in full if path.startswith("/"))
    return ran, wrote


def is_ours(path, shape):
    """In the project, or where the look at the files before and after would see it."""
    within = str(shapes.now())
    return path.startswith((within + "/", "/proc/", "/dev/", "pipe:", "socket:", "anon_inode:"))


def is_transport(command):
    """git's own way to another repository on this machine."""
    return re.fullmatch(r'"\S*sh", "-c", "git-upload-pack \'[^\'"\\]*\'"(, .*)?', command)


def is_gits(program):
    return program.startswith("/usr/lib/git-core/") or program in ("/usr/bin/git", "/usr/bin/timeout")


def is_marked(text):
    """A payload, which leaves a mark, too."""
    return str(shapes.names()["trip"]) in text


def traced_alarms(path, shape, clean):
    ran, wrote = read_trace(path)
    known_ran, known_wrote = clean
    found = [Alarm("executed", program, command) for program, command in sorted(ran - known_ran)
             if (not is_transport(command) if command else not is_gits(program)) and not is_marked(program + command)]
    found += [Alarm("opened", name) for name in sorted(wrote - known_wrote)
              if not is_ours(name, shape)]
    return found


@functools.lru_cache(None)
def clean(name, commands):
    """What these commands do in an untouched copy: (programs, files); and what alarm they raise."""
    shape = shapes.fresh(name)
    before = shapes.outside(shape)
    trace = shapes.top() / "clean.trace"
    work(script(shape, commands, 0), trace)
    work(carrel_script(CARREL_COMMANDS))
    return read_trace(trace), marks() + differences(before, shapes.outside(shape))


# ---- a round --------------------------------------------------------------------------------


def can_block(runs):
    return any(op[0] == "fifo" for run in runs for op in run)


def play(name, runs, commands=None, boxed=True, traced=False):
    """Do the runs in a fresh copy, then the user's work; what came of it."""
    commands = GIT_COMMANDS if commands is None else commands
    known = clean(name, tuple(commands))[0] if traced else None
    shape = shapes.fresh(name)
    result = Round(name, runs, commands)
    for number, operations in enumerate(runs):
        did, said = act(operations, boxed, number == 0)
        result.did.append(did)
        result.said.append(said)
        lib.settle()
    before = shapes.outside(shape)
    marks()
    trace = shapes.top() / "round.trace" if traced else None
    work(script(shape, commands, COMMAND_SECONDS if can_block(runs) else 0), trace)
    if traced:
        result.alarms += traced_alarms(trace, shape, known)
    work(carrel_script(CARREL_COMMANDS))
    result.alarms += marks()
    result.alarms += differences(before, shapes.outside(shape))
    return result


# ---- was it said? ---------------------------------------------------------------------------

_LISTED = re.compile(r"^(?:carrel: (?:note: )?)? {2,}(\S.*?) {2}\(", re.M)


def relations(path):
    """A path and all above it but the project itself, relative and absolute."""
    project = str(shapes.project())
    whole = os.path.normpath(os.path.join(project, path))
    found = set()
    while whole not in (project, "/", str(shapes.names()["home"]), str(shapes.names()["main"])):
        found.add(whole)
        if whole.startswith(project + "/"):
            found.add(whole[len(project) + 1 :])
        whole = os.path.dirname(whole)
    return found


def paths_of(operations):
    """The names that operations change, but not where a link leads or what a file says."""
    found = set()
    for name, *args in fill(operations):
        if name == "git":
            found |= {args[0]} | {os.path.join(args[0], word) for word in args[1:] if word[:1] != "-"}
        elif name in ("rename", "swap", "copy"):
            found |= set(args[:2])
        else:
            found.add(args[0])
    return found


def said_paths(said):
    """The paths that carrel listed; and its words, for those that an error names."""
    listed = set()
    for text in said:
        listed |= set(_LISTED.findall(text))
    return listed


def is_reported(said, operations):
    """Is one of the names that the operations need in what carrel said?"""
    listed = said_paths(said)
    words = set(re.findall(r"[^\s'\"`,;:()]+", " ".join(said)))
    for path in paths_of(operations):
        near = relations(path)
        if near & listed:
            return True
        whole = os.path.normpath(os.path.join(str(shapes.project()), path))
        if {path.removesuffix("/"), whole} & words:
            return True
        if any(name.startswith((path + "/", whole + "/")) for name in listed):
            return True
    return False
