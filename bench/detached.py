#!/usr/bin/python3
"""How much memory idle detached boxes take, each with its screen: PSS of all their processes but
the payload's, and how long a start and a `ps` take beside them.

    bench/detached.py [CARREL [COUNT]]

Not part of the tests. Boxes are those of a directory of its own below /tmp, and end with it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

CARREL = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/carrel").resolve())
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 500


def pss_kb(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def main():
    with tempfile.TemporaryDirectory(prefix="carrel-bench-") as top:
        project, runtime = os.path.join(top, "project"), os.path.join(top, "runtime")
        os.mkdir(project)
        os.mkdir(runtime, 0o700)
        env = os.environ | {"XDG_RUNTIME_DIR": runtime, "HOME": top}

        def carrel(*args):
            return subprocess.run([CARREL, *args], env=env, cwd=project, check=True,
                                  stdout=subprocess.PIPE).stdout

        starts = []
        names = []
        try:
            for n in range(COUNT):
                before = time.monotonic()
                carrel("run", "-d", "-y", "--name", f"idle-{n}", "--", "sleep", "100000")
                starts.append(time.monotonic() - before)
                names.append(f"idle-{n}")
            time.sleep(3)
            kinds = {"supervisor": [], "screen": [], "init": []}
            boxes = json.loads(carrel("ps", "--json"))
            time.sleep(3)  # until all rest again
            for box in boxes:
                kinds["supervisor"].append(pss_kb(box["pid"]))
                for child in children(box["pid"]):
                    name = pathlib.Path(f"/proc/{child}/comm").read_text(encoding="ascii").strip()
                    kinds["screen" if name == "carrel-screen" else "init"].append(pss_kb(child))
            before = time.monotonic()
            carrel("ps")
            listed = time.monotonic() - before
        finally:
            for name in names:
                subprocess.run([CARREL, "stop", "-t", "0", name], env=env, check=False)
        total = sum(map(sum, kinds.values())) / COUNT
        print(f"{COUNT} idle detached boxes: {total:.0f} KB each (at most 250)")
        for kind, sizes in kinds.items():
            print(f"  {kind:10} {sum(sizes) / COUNT:6.0f} KB")
        tenth = max(1, COUNT // 10)
        first, last = (sorted(part)[len(part) // 2] for part in (starts[:tenth], starts[-tenth:]))
        print(f"a start: median {first * 1000:.0f} ms of the first tenth, {last * 1000:.0f} ms of the last")
        print(f"carrel ps: {listed * 1000:.0f} ms")


main()
