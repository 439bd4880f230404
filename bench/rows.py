"""The measurements. Each row is one function: (Context) -> a dict for the report.

A row's dict has `title`, `note`, and `tables`: each a list of records of one
comparison, made by one interleaved run. Times are in microseconds throughout.
"""
import ctypes
import platform
import json
import os
import shutil
import signal
import sys
import time

import peers as peers_module
import stage as stage_module

SLEEP = ("/bin/sleep", "3600")
EXTRA_BINDS = (0, 25, 50, 100, 175)
ALIVE = (0, 100, 500)
IN_FLIGHT = 8
GAP_US = 3000
DECLARED = 1000
CONFIGURED = 10_000


class Context:
    """What a row needs: where, with whom, for how long."""

    def __init__(self, stage, peers, options):
        self.stage = stage
        self.peers = peers
        self.rounds = options.rounds
        self.quick = options.quick
        self.carrel = options.carrel

    def present(self, *names):
        return [self.peers[name] for name in names if name in self.peers]


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def interleave(context, mode, commands, *options):
    """Run {name: argv} side by side as the user; the driver's records, by name."""
    path = context.stage.base / "commands"

    def record(name, argv):
        peer = context.peers.get(name)
        where = [f"@ {peer.cwd}"] if peer and peer.cwd else []
        return "\n".join([f"= {name}", *where, *argv])

    records = (record(name, argv) for name, argv in commands.items())
    path.write_text("\n\n".join(records) + "\n", errors="surrogateescape")
    ran = context.stage.run([str(context.stage.interleave), mode, *map(str, options),
                             str(path)], timeout=3600)
    if ran.returncode:
        raise RuntimeError(f"interleave: {ran.stderr.strip()}")
    return {r["name"]: r for r in json.loads(ran.stdout)["commands"]}


def timed(context, commands):
    return interleave(context, "rounds", commands, "-r", context.rounds, "-g", GAP_US)


def median(record, what="wall_us"):
    return record.get(what, {}).get("median") if record else None


def beside_plain(records, name):
    """How many times as long as a plain start, which was measured in turns with it."""
    return ratio(median(records[name]), median(records["plain"]))


def ratio(a, b):
    return a / b if a is not None and b else None


# ---- (1) cold start ---------------------------------------------------------------

def start(context):
    names = list(context.peers)
    records = timed(context, {n: context.peers[n].command("/bin/true") for n in names})
    return {"title": "Cold start of a full box, to exit",
            "note": "The box runs `/bin/true`; spawn to reaped. CPU is that of the "
                    "processes which the command itself waited for, so a box that is left "
                    "to the kernel to take down shows less than it used.",
            "tables": {"": list(records.values())}}


# ---- (2) per extra bind -----------------------------------------------------------

def least_squares(points):
    """Slope of the line through [(x, y)]."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    below = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / below


def with_binds(peer, paths):
    """The peer's command with these directories bound read-only at their own path."""
    flags = {"carrel": lambda p: ["--mount", p], "bwrap": lambda p: ["--ro-bind", p, p]}
    extra = [word for path in paths for word in flags[peer.name](str(path))]
    end = peer.prefix.index("--")
    return [*peer.prefix[:end], *extra, "--", "/bin/true"]


def binds(context):
    paths = context.stage.directories(max(EXTRA_BINDS))
    peers = context.present("carrel", "bwrap")
    commands = {"plain": ["/bin/true"]}
    for peer in peers:
        for count in EXTRA_BINDS:
            commands[f"{peer.name} +{count}"] = with_binds(peer, paths[:count])
    records = timed(context, commands)
    slopes = {}
    for peer in peers:
        points = [(n, median(records[f"{peer.name} +{n}"])) for n in EXTRA_BINDS]
        if all(y is not None for _, y in points):
            slopes[peer.name] = least_squares(points)
    default = context.peers["bwrap"].mounts if "bwrap" in context.peers else "?"
    return {"title": "Each further bind",
            "note": f"+0 is the default box, {default} mounts and /dev; +{max(EXTRA_BINDS)} "
                    "stands for the 200 of the target. Slope by least squares; bwrap's "
                    "curve is bent upwards, its slope is only the average.",
            "tables": {"": list(records.values())}, "slopes_us": slopes}


# ---- (3) start beside others that live --------------------------------------------

class Crowd:
    """Boxes that sleep. As a context manager: all of them are ended on the way out."""

    def __init__(self, context, argv, cwd=None):
        self.context, self.argv, self.cwd, self.started = context, argv, cwd, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def grow_to(self, count, patience=180):
        """Start more, until `count` sleep; a RuntimeError if they do not come up.

        At most a few come up at once: what is wanted is a crowd, not a stampede.
        """
        deadline = time.monotonic() + patience
        while (asleep := self.asleep()) < count:
            failed = [p.returncode for p in self.started if p.poll()]
            if failed or time.monotonic() > deadline:
                raise RuntimeError(f"{asleep} of {count} boxes came up, {len(failed)} failed: "
                                   + self.complaint())
            room = 16 - (len(self.started) - asleep)
            for _ in range(min(room, count - len(self.started))):
                self.started.append(self.context.stage.start(self.argv, self.cwd))
            time.sleep(0.05)
        time.sleep(0.5)

    def complaint(self):
        text = self.context.stage.errors.read_text(errors="replace")
        return peers_module.last_line(text)

    def below(self):
        """pid -> name of everything the crowd consists of, orphans included."""
        return stage_module.descendants(os.getpid())

    def asleep(self):
        return sum(name == "sleep" for name in self.below().values())

    def end(self, patience=30):
        """Politely, then the payload, then everything; each by pid."""
        for process in self.started:
            stage_module.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + patience
        while left := self.below():
            rest = deadline - time.monotonic()
            if rest < 0.9 * patience:
                for pid, name in left.items():
                    if name == "sleep" or rest < patience / 2:
                        stage_module.kill(pid, signal.SIGKILL)
            if rest < 0:
                break
            stage_module.reap()
            if self.only_pause(left):
                break
            time.sleep(0.05)
        stage_module.reap()
        self.started.clear()

    @staticmethod
    def only_pause(left):
        """podman keeps one process for all its containers; it belongs to no box."""
        return all(name in ("podman", "podman pause") for name in left.values())


def alive(context):
    """Each beside boxes of its own kind; none-alive measured just before its crowd.

    A crowd cannot be interleaved with none, and a machine changes its speed within minutes: so
    it is compared how many times as long as a plain start, measured in turns with it, each takes.
    """
    tables, growth = {}, {}
    levels = [n for n in ALIVE if not context.quick or n <= 100]
    timed_peers = {p.name: p.command("/bin/true") for p in
                   context.present("plain", "carrel", "bwrap")}
    for peer in context.present("carrel", "bwrap"):
        medians = {}
        with Crowd(context, peer.command(*SLEEP)) as crowd:
            for level in levels:
                label = f"{level} boxes of {peer.name} alive"
                try:
                    crowd.grow_to(level)
                except RuntimeError as error:
                    tables[f"{label}: {error}"] = []
                    break
                records = timed(context, timed_peers)
                tables[label] = list(records.values())
                medians[level] = beside_plain(records, peer.name)
        growth[peer.name] = {n: ratio(medians[n], medians[0]) for n in medians if n}
    return {"title": "Start with other boxes alive",
            "note": "The tables were measured one after the other, minutes apart: what is compared "
                    "between them is × plain.",
            "tables": tables,
            "growth": growth}


# ---- (4) boxes per second ---------------------------------------------------------

def flood(context):
    peers = context.present("plain", "namespaces", "carrel", "bwrap", "podman", "srt")
    rounds, seconds = (1, 2) if context.quick else (5, 4)
    records = interleave(context, "flood", {p.name: p.command("/bin/true") for p in peers},
                         "-r", rounds, "-c", IN_FLIGHT, "-t", seconds)
    return {"title": f"Boxes per second, {IN_FLIGHT} at once",
            "note": f"{rounds} × {seconds} s each, in shuffled order; teardown included. "
                    "All boxes of one peer work in one project; what fails does not count.",
            "tables": {"": list(records.values())}}


# ---- (5) memory of an idle box ----------------------------------------------------

def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def share_memory(pid, other):
    """Are the two processes one address space? Then its pages count once."""
    kcmp, kcmp_vm = 312, 1  # x86-64
    return platform.machine() == "x86_64" and ctypes.CDLL(None).syscall(
        kcmp, pid, other, kcmp_vm, 0, 0) == 0


def weigh(context, peer, count):
    """PSS of all that `count` idle boxes need beside their payload, per box."""
    detach = peer.payload.get("detach")
    argv = [*detach, *SLEEP] if detach else peer.command(*SLEEP)
    only = peer.payload.get("count")
    with Crowd(context, argv, peer.cwd) as crowd:
        crowd.grow_to(count, patience=60)
        names, counted, total = [], [], 0
        for pid, name in crowd.below().items():
            if name != "sleep" and (name == only if only else "podman" not in name):
                if not any(share_memory(pid, other) for other in counted):
                    total += pss_kb(pid)
                    counted.append(pid)
                names.append(name)
    kinds = sorted(set(names))
    return total / count, " + ".join(f"{names.count(k) / count:g} {k}" for k in kinds)


def memory(context):
    """One box alone bears the pages that many share; both figures are given."""
    records = []
    for peer in context.present("carrel", "bwrap", "podman", "codex", "srt"):
        record = {"name": peer.name}
        for count in (1, 8):
            try:
                record[f"pss_kb_{count}"], record["processes"] = weigh(context, peer, count)
            except (OSError, RuntimeError) as error:
                record["error"] = str(error)
        records.append(record)
    return {"title": "An idle box: supervisor and init",
            "note": "PSS of every process of the box except the payload, per box, with one "
                    "box alive and with eight. For podman conmon alone.",
            "tables": {"": records}}


# ---- (6) commands that start no box -----------------------------------------------

def commands(context):
    todo = {"plain": ["/bin/true"]}
    if "carrel" in context.peers:
        todo["carrel plan"] = [context.carrel, "plan", "--", "/bin/true"]
        todo["carrel version"] = [context.carrel, "version"]
    for peer in context.present("bwrap", "podman", "codex", "srt"):
        todo[f"{peer.name} --version"] = peer.version_argv
    if node := shutil.which("node"):
        todo["node --version"] = [node, "--version"]
    records = timed(context, todo)
    return {"title": "Commands that start no box", "note": "",
            "tables": {"": list(records.values())}}


# ---- (7) a large manifest ---------------------------------------------------------

def large_manifest(context):
    """A project whose manifest declares many agents and a library that is as large.

    The agent that is asked for is the last, extends another, and is given something of
    each family; all the others are read and checked as well.
    """
    top = context.stage.directories(1)[0] / "manifest"
    (top / "skill").mkdir(parents=True, exist_ok=True)
    (top / "skill" / "SKILL.md").write_text("---\ndescription: Sample.\n---\n")
    each = DECLARED // 4
    library = {
        "skills": {f"skill-{i}": {"source": "skill", "description": f"Skill {i}."}
                   for i in range(each)},
        "mcpServers": {f"server-{i}": {"command": "server", "args": ["--number", str(i)],
                                       "env": {"NUMBER": str(i)}} for i in range(each)},
        "plugins": {f"plugin-{i}": {"source": "skill"} for i in range(each)},
        "hooks": {f"hook-{i}": {"event": "Stop", "command": ["hook", str(i)]}
                  for i in range(each)},
    }
    agents = {
        f"agent-{i}": {
            "description": f"Agent {i}.", "harness": "command", "command": ["/bin/true"],
            "prompt": "Say what you see.", "skills": [f"skill-{i % each}"],
            "env": {"NUMBER": str(i)}, "network": "none", "limits": {"pids": 100},
            **({"extends": f"agent-{i - 1}"} if i == DECLARED - 1 else {}),
        } for i in range(DECLARED)}
    (top / "carrel.json").write_text(json.dumps({"library": library, "agents": agents},
                                                indent=2))
    (top / "small").mkdir(exist_ok=True)
    one = {"agents": {"agent": agents["agent-0"]}, "library": {
        "skills": {"skill-0": {"source": "../skill"}}}}
    (top / "small" / "carrel.json").write_text(json.dumps(one, indent=2))
    return top


def manifest(context):
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    top = large_manifest(context)
    plan = [context.carrel, "plan", "--workspace"]
    records = timed(context, {
        "plain": ["/bin/true"],
        "carrel plan, no agent": [context.carrel, "plan", "--", "/bin/true"],
        "carrel plan, 1 agent": [*plan, str(top / "small"), "agent"],
        f"carrel plan, {DECLARED} agents": [*plan, str(top), f"agent-{DECLARED - 1}"],
    })
    size = (top / "carrel.json").stat().st_size
    return {"title": "A plan from a manifest",
            "note": f"{DECLARED} agents and a library of {DECLARED} entries are "
                    f"{size // 1024} KB of JSON; all of it is read and checked, and the plan of "
                    "one agent made.",
            "tables": {"": list(records.values())}}


# ---- (8) a box with the user's configuration --------------------------------------

FILES = f"""set -e
mkdir -p ~/.claude/plugins && cd ~/.claude && echo '{{}}' >settings.json
seq -w {CONFIGURED} | split -l 100 - plugins/list-
for list in plugins/list-*; do
  mkdir "${{list#*-}}"
  while read -r n; do echo Sample. >"${{list#*-}}/$n.md"; done <"$list"
done
"""


def configure(context):
    """A user with many files in ~/.claude; the place of a client of theirs."""
    client = context.stage.directories(1)[0] / "client" / "claude"
    client.parent.mkdir(exist_ok=True)
    context.stage.run(["/bin/sh", "-c", FILES]).check_returncode()
    # The first session leaves something: later ones have a layer of the project's own.
    client.write_text("#!/bin/sh\nfor i in $(seq 100); do echo x >~/.claude/$i; done\n")
    client.chmod(0o755)
    return client


def instance(context):
    """What `carrel` alone costs beside the same box without the user's configuration."""
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    own = [context.carrel, "run", "-y"]
    client, path = configure(context), context.stage.env["PATH"]
    context.stage.env |= {"PATH": f"{client.parent}:{path}", "ANTHROPIC_API_KEY": "sample"}
    try:
        context.stage.run(own).check_returncode()
        client.unlink()
        shutil.copy("/bin/true", client)
        records = timed(context, {
            "plain": ["/bin/true"],
            "carrel": context.peers["carrel"].command("/bin/true"),
            "carrel, the client": [*own, "--mount", str(client), "--", str(client)],
            # The network is another row's matter: the same for all here.
            "carrel, instance": [*own, "--network", "none"],
        })
    finally:
        context.stage.env["PATH"] = path
        del context.stage.env["ANTHROPIC_API_KEY"]
    added = [median(records[name]) for name in ("carrel, instance", "carrel")]
    return {"title": "A box with the user's own configuration",
            "note": f"`~/.claude` has {CONFIGURED:,} files and the project a layer of 100 on "
                    "it; the client is a copy of `/bin/true`, which the third box runs without "
                    "any of that.",
            "tables": {"": list(records.values())},
            "added_us": added[0] - added[1] if None not in added else None}


# ---- a large project --------------------------------------------------------------

LARGE = """for a in $(seq 20); do for b in $(seq 20); do mkdir -p d$a/e$b
cd d$a/e$b && touch $(seq 250) && cd ../..; done; done"""


def large(context):
    """A start in 100,000 files, once carrel has them in its cache, beside an empty project."""
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    full, empty = context.stage.directories(2)
    context.stage.run(["/bin/sh", "-c", LARGE], cwd=full).check_returncode()
    time.sleep(4)  # a younger directory is not trusted
    own = [context.carrel, "run", "-y", "--workspace"]
    commands = {"empty": [*own, str(empty), "--", "/bin/true"],
                "100,000 files": [*own, str(full), "--", "/bin/true"]}
    for _ in range(2):
        context.stage.run(commands["100,000 files"]).check_returncode()
    records = timed(context, {"plain": ["/bin/true"], **commands})
    return {"title": "A start in a large project",
            "note": "100,000 files in 420 directories, which have not changed since the run "
                    "before.",
            "tables": {"": list(records.values())}}


MILLION = """import os, sys
for i in range(20_000):
    path = f"{i // 200:03}/{i % 200:03}"
    os.makedirs(path)
    for k in range(50):
        os.close(os.open(f"{path}/{k}", os.O_CREAT | os.O_WRONLY, 0o644))
"""


def million(context):
    """A start in a million files beside a `git status` that has its untracked cache."""
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    if context.quick:
        raise RuntimeError("it takes minutes to make the files: not in a quick run")
    (top,) = context.stage.directories(1)
    top = top / "million"
    git = ["git", "-C", str(top), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for step in (["git", "init", "-q", str(top)],
                 [*git, "config", "core.untrackedCache", "true"]):
        context.stage.run(step).check_returncode()
    context.stage.run([sys.executable, "-c", MILLION], cwd=top, timeout=900).check_returncode()
    for step in (["add", "-A"], ["commit", "-qm", "a million files"], ["status"]):
        context.stage.run([*git, *step], timeout=900).check_returncode()
    time.sleep(4)  # a younger directory is not trusted
    commands = {"carrel": [context.carrel, "run", "-y", "--workspace", str(top), "--", "/bin/true"],
                "git status": [shutil.which("git"), "-C", str(top), "status", "--porcelain"]}
    for _ in range(2):
        for argv in commands.values():
            context.stage.run(argv, timeout=900).check_returncode()
    records = timed(context, {"plain": ["/bin/true"], **commands})
    return {"title": "A start in a million files",
            "note": "1,000,000 tracked files in 20,100 directories, which have not changed since "
                    "the run before; `git status` has its untracked cache.",
            "tables": {"": list(records.values())}}



# ---- renames in a copy of the workspace -------------------------------------------

RENAMED = 1000
RENAMES = """
import json, os, subprocess, sys, time
def timed(act, times=1):
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) / times * 1e6
def files():
    for _ in range(500):
        os.rename("file", "elif")
        os.rename("elif", "file")
open("file", "w").close()
told = {"a file": timed(files, 1000)}
if sys.argv[1] == "copy":
    told["cp -r"] = timed(lambda: subprocess.run(["cp", "-r", "big", "again"], check=True))
    told["git mv"] = timed(lambda: subprocess.run(["git", "mv", "big", "moved"], check=True))
print(json.dumps(told))
"""


def spread(values):
    values = sorted(values)
    at = lambda part: values[min(len(values) - 1, int(len(values) * part))]
    return {"median": at(0.5), "p10": at(0.1), "p90": at(0.9), "n": len(values)}


def renames(context):
    """A directory of 1,000 files by git mv beside cp -r, and one file, in a copy and without."""
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    (top,) = context.stage.directories(1)
    made = f"""mkdir big; for i in $(seq {RENAMED}); do head -c 4000 /dev/urandom >big/$i; done
    git init -q; git add -A; git -c user.name=b -c user.email=b@b commit -qm b"""
    context.stage.run(["/bin/sh", "-c", made], cwd=top).check_returncode()
    seen = {}
    for number in range(3 if context.quick else 15):
        for kind, opts in (("copy", ["--overlay", "--name", f"bench-{number}"]), ("direct", [])):
            ran = context.stage.run([context.carrel, "run", "-y", *opts, "--workspace", str(top),
                                     "--", "/usr/bin/python3", "-c", RENAMES, kind], cwd=top)
            ran.check_returncode()
            for name, value in json.loads(ran.stdout).items():
                seen.setdefault(name if name != "a file" else f"a file, {kind}", []).append(value)
        context.stage.run([context.carrel, "rm", "-y", f"bench-{number}"])
    return {"title": "Renames in a copy of the workspace",
            "note": f"A directory of {RENAMED:,} files of 4 KB that is on the host: copied by "
                    "`cp -r`, then renamed by `git mv`, in a box with `--overlay`, once in each "
                    "box. A file: the mean of 1,000 renames, there and in a direct workspace.",
            "tables": {"": [{"name": name, "wall_us": spread(values), "fails": 0}
                            for name, values in seen.items()]}}


ROWS = {"start": start, "large": large, "million": million, "binds": binds, "alive": alive, "flood": flood,
        "memory": memory, "commands": commands, "manifest": manifest, "instance": instance,
        "renames": renames}
