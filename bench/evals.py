"""What an evaluation costs: each attempt, several at a time, and beside other ways to do it.

The agent of the first three rows is a shell command, so that what is left is the cost of the
runner and of its box. The clients row runs Claude Code against the mock of the tests.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
JOBS = (1, 2, 4, 8)
WAIT = 0.25     # of an agent that waits for its model
KEY = "sk-ant-bench-0123456789abcdefghijklmnopqrstuvwxyz"


def suite(context, name, command, cases, harness="command", prompt="p"):
    """A project with one skill and a suite of cases; where the skill is."""
    top = context.stage.base / f"evals-{name}"
    skill = top / "skills" / "s"
    (skill / "evals").mkdir(parents=True)
    (top / "work").mkdir()
    (top / "work" / "README.md").write_text("# sample\n")
    (skill / "SKILL.md").write_text("---\nname: s\ndescription: A sample.\n---\nDo it.\n")
    agent = {"harness": harness, **({"command": command} if command else {})}
    document = {"version": 1, "agent": agent, "project": "../../../work", "repeat": 1,
                "configurations": {"only": {"skill": False}},
                "cases": [{"id": f"k{i}", "prompt": prompt,
                           "graders": [{"type": "exists", "path": "done"}]}
                          for i in range(cases)]}
    (skill / "evals" / "evals.json").write_text(json.dumps(document))
    if context.stage.root:
        subprocess.run(["chown", "-R", f"{context.stage.uid}", top], check=True)
    context.stage.run(["git", "init", "-q", str(top)]).check_returncode()
    return top


class Meter:
    """Processor time of a command and of all that it leaves to the kernel, by a cgroup.

    carrel does not wait for the processes of a box, so what the kernel adds up for a parent
    lacks them. Only root can make the cgroup; else there is no figure.
    """

    def __init__(self, stage):
        self.dir = None
        path = pathlib.Path(f"/sys/fs/cgroup/carrel-bench-{os.getpid()}")
        try:
            if stage.root:
                path.mkdir()
                self.dir = path if (path / "cpu.stat").exists() else None
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + 10
        while self.dir and time.monotonic() < deadline:
            try:
                self.dir.rmdir()
                self.dir = None
            except OSError:
                time.sleep(0.05)

    def argv(self, argv):
        if not self.dir:
            return argv
        return ["/bin/sh", "-c", f'echo $$ >{self.dir}/cgroup.procs && exec "$@"', "sh", *argv]

    def seconds(self):
        if not self.dir:
            return None
        deadline = time.monotonic() + 10
        while (self.dir / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        return int((self.dir / "cpu.stat").read_text().split()[1]) / 1e6


def cost(context, argv, cwd, env=None):
    """(seconds, processor seconds or None) of one command, to its end."""
    with Meter(context.stage) as meter:
        start = time.monotonic()
        ran = subprocess.run(meter.argv(context.stage.as_user(argv)), cwd=cwd,
                             env={**context.stage.env, **(env or {})}, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=1800, check=False)
        wall, cpu = time.monotonic() - start, meter.seconds()
    if ran.returncode:
        raise RuntimeError(f"{argv[:3]}: exit {ran.returncode}: {(ran.stderr or ran.stdout)[-300:]}")
    return wall, cpu


def less(a, b):
    return None if a is None or b is None else a - b


def eval_argv(context, top, jobs, *more):
    out = context.stage.tmp / f"runs-{os.urandom(4).hex()}"
    return [context.carrel, "eval", str(top / "skills" / "s"), "-y", "--jobs", str(jobs),
            "--output-dir", str(out), *more]


def in_turns(context, rounds, attempts, ways):
    """Each way in turns; per attempt the medians, in milliseconds."""
    seen = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            seen[name].append(way())
    return [{"name": name,
             "wall_ms": 1000 * statistics.median(w for w, _ in costs) / attempts,
             "cpu_ms": None if None in (c for _, c in costs)
                       else 1000 * statistics.median(c for _, c in costs) / attempts,
             "per_s": attempts / statistics.median(w for w, _ in costs)}
            for name, costs in seen.items()]


def loop(context, attempts, line):
    """A shell that does the same line for each attempt, one after the other."""
    script = f"set -e; i=0; while [ $i -lt {attempts} ]; do i=$((i+1)); {line}; done"
    return ["/bin/sh", "-c", script]


def by_name(records):
    return {r["name"]: r for r in records}


def attempt(context):
    """One attempt after the other, beside its box alone and beside what people write by hand."""
    attempts, rounds = (50, 1) if context.quick else (100, 3)
    top = suite(context, "attempt", ["touch", "done"], attempts)
    work, place = top / "work", context.stage.tmp / "attempt"
    fresh = f"rm -rf {place}; cp -r {work} {place}; cd {place}"
    box = f"{context.carrel} run -y --network none --workspace {place} -- touch done"
    ways = {
        "a loop, a copy each": lambda: cost(
            context, loop(context, attempts, f"{fresh}; touch done"), top),
        "a loop, a box of carrel each": lambda: cost(
            context, loop(context, attempts, f"cd {place}; {box}"), top),
        "a loop, a copy and a box each": lambda: cost(
            context, loop(context, attempts, f"{fresh}; {box}"), top),
        "carrel eval": lambda: cost(context, eval_argv(context, top, 1), top),
    }
    if "podman" in context.peers:
        # Its --rootfs has no touch: `true` makes nothing, which favours it.
        flags = context.peers["podman"].prefix
        mount = [*flags[:2], "--volume", f"{place}:/tmp", *flags[2:], "/bin/true"]
        few = max(1, attempts // 10)
        ways["a loop, a copy and a podman container each"] = lambda: tuple(
            x and x * attempts / few for x in cost(context, loop(context, few, f"{fresh}; " + " ".join(mount)), top))
    records = in_turns(context, rounds, attempts, ways)
    rows = by_name(records)
    own = less(rows["carrel eval"]["cpu_ms"], rows["a loop, a box of carrel each"]["cpu_ms"])
    return {"title": "One attempt after the other",
            "note": f"{attempts} attempts of `touch done`, each in a copy of a small project. None of "
                    "the loops keeps, compares or grades anything.",
            "tables": {"": records}, "own_ms": own,
            "lines": [f"carrel eval's own processor time beyond the box: {own:.1f} ms"] if own else []}


def jobs(context):
    """Agents that wait for their model, as all do: how much does it help to run several?"""
    attempts = 16 if context.quick else 64
    top = suite(context, "jobs", ["/bin/sh", "-c", f"sleep {WAIT}; touch done"], attempts)
    ways = {f"{n} at a time": lambda n=n: cost(context, eval_argv(context, top, n), top) for n in JOBS}
    records = in_turns(context, 1 if context.quick else 3, attempts, ways)
    rate = {r["name"]: r["per_s"] for r in records}
    return {"title": "Several attempts at a time",
            "note": f"{attempts} attempts of an agent that waits {WAIT:g} s.",
            "tables": {"": records},
            "speed_up": rate["8 at a time"] / rate["1 at a time"],
            "lines": [f"{n}: {rate[n] / rate['1 at a time']:.2f} × as fast as one" for n in rate]}


def clients(context):
    """Claude Code by hand and by carrel eval, with the same prompt and the same answers."""
    sys.path[:0] = [str(TESTS), str(TESTS / "mock")]
    import mock  # pylint: disable=import-outside-toplevel,import-error
    where = os.environ.get("CARREL_CLIENTS", "/var/cache/carrel-tests/clients")
    claude = shutil.which("claude", path=f"{where}/node_modules/.bin:{where}:/usr/local/bin:/usr/bin")
    if not claude:
        raise RuntimeError("Claude Code is not installed (tests/install.sh fetches it)")
    attempts, rounds = (3, 1) if context.quick else (6, 3)
    prompt = "MOCK:bash:touch done"
    top = suite(context, "clients", None, attempts, "claude", prompt)
    place = context.stage.tmp / "clients"
    fresh = f"rm -rf {place}; cp -r {top / 'work'} {place}; cd {place}"
    hand = f"{claude} -p '{prompt}' --output-format stream-json --verbose --dangerously-skip-permissions"
    with mock.Mock() as server:
        env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url,
               "PATH": f"{pathlib.Path(claude).parent}:{context.stage.env['PATH']}"}
        ways = {"a loop over claude -p": lambda: cost(
            context, loop(context, attempts, f"{fresh}; {hand} >/dev/null"), top, env)}
        for n in (1, 4):
            ways[f"carrel eval, {n} at a time"] = lambda n=n: cost(
                context, eval_argv(context, top, n), top, env)
        records = in_turns(context, rounds, attempts, ways)
    rows = by_name(records)
    return {"title": "Claude Code, beside a loop over `claude -p`",
            "note": f"{attempts} attempts of two turns against a mock that answers at once. The loop "
                    "keeps the user's own configuration, has no box and grades nothing.",
            "tables": {"": records},
            "beside_loop": rows["carrel eval, 1 at a time"]["wall_ms"] / rows["a loop over claude -p"]["wall_ms"]}


ROWS = {"eval-attempt": attempt, "eval-jobs": jobs, "eval-clients": clients}
