#!/usr/bin/python3
"""bench/run.py - measure carrel beside its peers, and say which targets are met

    bench/run.py [--rounds N] [--rows start,binds,…] [--quick] [--carrel PATH]

Prints a Markdown table, and writes it to bench/out/bench.md and all figures to
bench/out/bench.json. The exit code says whether it could measure, not whether the
targets are met: a loaded machine is no reason for a build to fail.

    stage.py        the normal user, the sample project, cleaning up
    peers.py        how each peer is asked to run a program in a box
    rows.py         the measurements; egress.py: those of a box's network;
                    evals.py: those of evaluations
    report.py       targets and tables
    interleave.c    the driver that runs the commands of one comparison
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# pylint: disable=wrong-import-position
import copies
import egress
import evals
import peers as peers_module
import report
import rows as rows_module
import stage as stage_module

HERE = pathlib.Path(__file__).resolve().parent
ROWS = {**rows_module.ROWS, **copies.ROWS, **egress.ROWS, **evals.ROWS}


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="rounds of each comparison (60; quick: 10)")
    parser.add_argument("--rows", default=",".join(ROWS),
                        help="which, with commas between: %(default)s")
    parser.add_argument("--quick", action="store_true", help="rough figures, soon")
    parser.add_argument("--carrel", default=str(HERE.parent / "build" / "carrel"),
                        help="the program to measure (%(default)s)")
    options = parser.parse_args()
    options.rounds = options.rounds or (10 if options.quick else 60)
    options.rows = options.rows.split(",")
    options.carrel = str(pathlib.Path(options.carrel).resolve())
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    return options


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def facts(stage, options):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        mounts = len(file.readlines())
    version, digest = "absent", "–"
    if os.access(options.carrel, os.X_OK):
        version = stage.run([options.carrel, "version"]).stdout.strip()
        digest = hashlib.sha256(pathlib.Path(options.carrel).read_bytes()).hexdigest()[:12]
    commit = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return {
        "carrel": f"{version.splitlines()[0] if version else '?'} (tree {commit or '?'}, "
                  f"sha256 {digest})",
        "kernel": platform.release(),
        "CPU": f"{cpu_model()}, {os.cpu_count()} usable",
        "load at the start": " ".join(f"{x:.2f}" for x in os.getloadavg()),
        "mounts of the host": mounts,
        "run as": f"uid {stage.uid}" + (", by root" if stage.root else ""),
        "rounds": f"{options.rounds}, shuffled, {rows_module.GAP_US / 1000:g} ms between runs"
                  + (" (quick)" if options.quick else ""),
        "date": datetime.date.today().isoformat(),
    }


def measure(context, names):
    results = {}
    for name in names:
        rows_module.say(f"row {name}")
        try:
            results[name] = ROWS[name](context)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            rows_module.say(f"row {name}: {error}")
            results[name] = {"title": name, "note": "", "tables": {}, "error": str(error)}
        stage_module.reap()
    return results


def write(document, text):
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "bench.md").write_text(text, encoding="utf-8")
    (out / "bench.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n",
                                    encoding="utf-8")
    print(text)


def main():
    options = read_options()
    stage_module.enter_namespace()
    stage = stage_module.Stage()
    stage.prepare()
    options.carrel = str(stage.keep(options.carrel))
    about = facts(stage, options)
    rows_module.say("looking for peers")
    working, absent = peers_module.find_all(stage, options.carrel)
    for name, why in absent.items():
        rows_module.say(f"absent: {name}: {why}")
    context = rows_module.Context(stage, working, options)
    results = measure(context, options.rows)
    document = {
        "facts": about,
        "peers": {n: {"version": p.version, "note": p.note, "argv": p.prefix}
                  for n, p in working.items()},
        "absent": absent,
        "targets": report.judge(results),
        "rows": results,
    }
    write(document, report.markdown(document))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
