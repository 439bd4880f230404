"""Rows about a copy of the workspace (`--overlay`), beside the ways that people have today.

Peers: `cp -a`, `rsync -a`, `git worktree add`, and fuse-overlayfs in a user namespace. What is
compared with a plain directory is timed inside of the box, or of the mount, by one script.
"""
import json
import os
import shutil
import statistics
import time

FILES = 100_000
CHANGED, MANY = 20, 1000
BUILT, KEPT = 60, 1000
LARGE = """for a in $(seq 20); do for b in $(seq 20); do mkdir -p d$a/e$b
cd d$a/e$b && for c in $(seq 250); do echo $a $b $c >$c; done; cd ../..; done; done
git init -q && git config gc.auto 0 && git config maintenance.auto false && git add -A
git -c user.name=b -c user.email=b@b commit -qm all"""
CHANGE = "i=0; for f in d1*/e1*/1*; do echo more >>$f; i=$((i+1)); [ $i -lt {} ] || break; done"
SMALL = """int f{0}(int x)
{{
	int s = 0;
	for (int i = 0; i < x; i++)
		s += i * {0};
	return s;
}}
"""
MAKEFILE = """all: $(patsubst %.c,%.o,$(wildcard src/*.c))
%.o: %.c
\tcc -O2 -c -o $@ $<
"""
# Run in a plain directory, in a box and on a FUSE mount: each on files that were there before.
INSIDE = """
import json, os, shutil, subprocess, sys, time
def timed(*argv):
    begun = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1e6
print(json.dumps({"build": timed("make", "-s", "all"), "git status": timed("git", "status"),
                  "rm -rf": timed("rm", "-rf", "kept")}))
"""


def spread(values):
    values = sorted(values)
    return {"median": statistics.median(values), "p10": values[len(values) // 10],
            "p90": values[min(len(values) - 1, len(values) * 9 // 10)], "n": len(values)}


def records(seen):
    return [{"name": name, "wall_us": spread(values), "fails": 0}
            for name, values in seen.items()]


def clock(context, argv, cwd=None):
    begun = time.perf_counter()
    ran = context.stage.run(argv, cwd=cwd, timeout=900)
    took = (time.perf_counter() - begun) * 1e6
    if ran.returncode:
        raise RuntimeError(f"{argv[0]} {argv[1:3]}: {ran.stderr.strip()[-300:]}")
    return took


def carrel_of(context):
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    return context.carrel


def tree_of(context, name, script):
    """A directory of the user with what the script makes; it is older than carrel doubts."""
    (top,) = context.stage.directories(1)
    top = top / name
    context.stage.run(["mkdir", "-p", str(top)]).check_returncode()
    clock(context, ["sh", "-euc", script], cwd=top)
    time.sleep(4)
    return top


def drop(context, *paths):
    context.stage.run(["rm", "-rf", *map(str, paths)], timeout=900)


def fuse(top, scratch, command):
    """The command on a FUSE overlay of top, in a user and a mount namespace of the user."""
    script = f"""mkdir -p {scratch}/up {scratch}/work {scratch}/mnt
fuse-overlayfs -o lowerdir={top},upperdir={scratch}/up,workdir={scratch}/work {scratch}/mnt
cd {scratch}/mnt && {command}"""
    return ["unshare", "-Urm", "--kill-child", "-pf", "sh", "-euc", script]


def copies(context):
    """What it costs to have a copy: of a project of 100,000 files, and of an empty one."""
    carrel = carrel_of(context)
    full = tree_of(context, "full", LARGE)
    empty = tree_of(context, "empty", "git init -q")
    scratch = full.parent
    run = [carrel, "run", "-y", "--name", "bench-copy"]
    seen = {}
    for _ in range(2):
        clock(context, [*run, "--workspace", str(full), "--", "/bin/true"])

    def add(name, argv, cwd=None):
        seen.setdefault(name, []).append(clock(context, argv, cwd))

    for number in range(5 if context.quick else 30):
        for name, top in (("empty", empty), ("100,000 files", full)):
            add(f"carrel, {name}, direct", [*run, "--workspace", str(top), "--", "/bin/true"])
            add(f"carrel, {name}, --overlay",
                [*run, "--overlay", "--workspace", str(top), "--", "/bin/true"])
        if number < (1 if context.quick else 3):
            add("cp -a", ["cp", "-a", str(full), str(scratch / "cp")])
            add("rsync -a", ["rsync", "-a", f"{full}/", str(scratch / "rsync")])
            add("git worktree add", ["git", "worktree", "add", "-q", "--detach",
                                     str(scratch / "tree")], full)
            context.stage.run(["git", "worktree", "remove", "-f", str(scratch / "tree")], cwd=full)
            drop(context, scratch / "cp", scratch / "rsync", scratch / "tree")
        if shutil.which("fuse-overlayfs"):
            add("fuse-overlayfs", fuse(full, scratch / "fuse", "true"))
            drop(context, scratch / "fuse")
    medians = {name: statistics.median(values) for name, values in seen.items()}
    added = {name: medians[f"carrel, {name}, --overlay"] - medians[f"carrel, {name}, direct"]
             for name in ("empty", "100,000 files")}
    drop(context, full, empty)
    return {"title": "A copy of the project",
            "note": "100,000 files in a repository. carrel: a whole start and end of a box, "
                    "without and with a copy; the others make the copy alone (fuse-overlayfs "
                    "with the namespace that it needs). git worktree has no ignored and no "
                    "untracked files.",
            "tables": {"": records(seen)}, "added_us": added,
            "lines": [f"the copy adds {value:.0f} µs to the start: {name}"
                      for name, value in added.items()]}


def changes(context):
    """Which of 100,000 files differ, and 1,000 changed files taken over, beside rsync."""
    carrel = carrel_of(context)
    full = tree_of(context, "full", LARGE)
    other = full.parent / "other"
    seen, applied = {}, {}
    run = [carrel, "run", "-y", "--overlay", "--workspace", str(full), "--name"]
    clock(context, ["cp", "-a", str(full), str(other)])
    clock(context, [*run, "bench-few", "--", "sh", "-c", CHANGE.format(CHANGED)])
    clock(context, ["sh", "-c", CHANGE.format(CHANGED)], other)
    for number in range(3 if context.quick else 15):
        for name, argv in (
                ("carrel diff --name-only", [carrel, "diff", "--name-only", "bench-few"]),
                ("rsync -n", ["rsync", "-na", "--delete", "-i", f"{other}/", f"{full}/"])):
            seen.setdefault(name, []).append(clock(context, argv))
    clock(context, ["sh", "-c", CHANGE.format(MANY)], other)
    listed = full.parent / "list"
    clock(context, ["sh", "-c", f"rsync -na -i --delete {other}/ {full}/ | sed -n 's/^>f[^ ]* //p' "
                                f">{listed}"])
    for number in range(3 if context.quick else 10):
        name = f"bench-many-{number}"
        clock(context, [*run, name, "--", "sh", "-c", CHANGE.format(MANY)])
        applied.setdefault("carrel apply", []).append(clock(context, [carrel, "apply", name], full))
        context.stage.run([carrel, "rm", "-y", name])
        clock(context, ["git", "checkout", "-q", "."], full)
        # rsync is told which files, so that it need not look for them.
        applied.setdefault("rsync -a", []).append(clock(
            context, ["rsync", "-a", f"--files-from={listed}", f"{other}/", f"{full}/"]))
        clock(context, ["git", "checkout", "-q", "."], full)
        time.sleep(0.1)
    context.stage.run([carrel, "rm", "-y", "bench-few"])
    drop(context, full, other)
    return {"title": "What a box changed",
            "note": f"100,000 files, {CHANGED} of them changed; then {MANY:,} changed files "
                    "taken over. rsync is told which those are.",
            "tables": {"the list": records(seen), "taken over": records(applied)}}


def make_project(top):
    os.makedirs(top / "src")
    for i in range(BUILT):
        (top / "src" / f"f{i}.c").write_text(SMALL.format(i))
    (top / "Makefile").write_text(MAKEFILE)
    for i in range(KEPT):
        path = top / "kept" / f"{i // 100}"
        path.mkdir(parents=True, exist_ok=True)
        (path / str(i)).write_text(f"{i}\n" * 20)


def inside(context):
    """A build, git status and rm -rf of what was there, in a plain directory and in copies."""
    carrel = carrel_of(context)
    made = context.stage.base / "made"
    make_project(made)
    top = tree_of(context, "project", f"cp -r {made}/. . && git init -q && git config gc.auto 0 && git add -A && "
                                      "git -c user.name=b -c user.email=b@b commit -qm b")
    script = ["/usr/bin/python3", "-c", INSIDE]
    box = [carrel, "run", "-y", "--workspace"]
    seen = {}

    def add(kind, argv, cwd):
        ran = context.stage.run(argv, cwd=cwd, timeout=300)
        if ran.returncode:
            raise RuntimeError(f"{kind}: {ran.stderr.strip()[-300:]}")
        for what, value in json.loads(ran.stdout.splitlines()[-1]).items():
            seen.setdefault(what, {}).setdefault(kind, []).append(value)

    for number in range(3 if context.quick else 15):
        plain, direct = top.parent / "plain", top.parent / "direct"
        for copy in (plain, direct):
            clock(context, ["cp", "-a", str(top), str(copy)])
        add("plain", script, plain)
        add("carrel, direct", [*box, str(direct), "--", *script], direct)
        add("carrel, --overlay", [*box, str(top), "--overlay", "--name", "bench-in", "--",
                                  *script], top)
        context.stage.run([carrel, "rm", "-y", "bench-in"])
        if shutil.which("fuse-overlayfs"):
            scratch = top.parent / "fuse"
            add("fuse-overlayfs", fuse(top, scratch, f"/usr/bin/python3 -c '{INSIDE}'"), top)
            drop(context, scratch)
        drop(context, plain, direct)
    return {"title": "Work in a copy",
            "note": f"A build of {BUILT} files, a first `git status`, `rm -rf` of {KEPT:,} files "
                    "that were there, once each in a fresh copy.",
            "tables": {what: records(kinds) for what, kinds in seen.items()}}


ROWS = {"copies": copies, "changes": changes, "inside": inside}
