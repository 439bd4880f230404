#!/usr/bin/python3
"""Break the code that holds the wall, one place at a time, and see whether a test notices.

    tests/mutants/run.py                 all of them
    tests/mutants/run.py seccomp jail    those whose name contains one of the words
    tests/mutants/run.py --resume        those that no earlier run killed
    tests/mutants/run.py --list

Run it by hand: it is no part of the suite. Each mutant of table.py replaces a text that occurs
once in a file. The tree is copied, the mutant applied there, what its tests need is built, the
tests are run, and the file is put back. A mutant that no test notices has survived: a guard
that could be lost without anybody hearing of it. Tests that fail without a mutant prove
nothing, so all of them run once before the first.

The copy and its build directory are kept in $CARREL_MUTANTS (default: /tmp/carrel-mutants), so
that the next run builds little. The rows that were killed are noted there too, each with what
it breaks, where, and by which tests, so that a run that was stopped can be resumed. At least 95 %
must be killed.
"""

import argparse
import fnmatch
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

from table import MUTANTS

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
WHERE = pathlib.Path(os.environ.get("CARREL_MUTANTS", "/tmp/carrel-mutants"))
TREE, BUILD = WHERE / "tree", WHERE / "build"
ENOUGH = 0.95
# A mutant may make a test wait for ever, which is one way to be noticed. A build only takes long.
SECONDS, BUILD_SECONDS = 300, 3600


def copy_tree():
    """What git knows of, and what it would: changes that are not committed are tried too."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO, check=True, stdout=subprocess.PIPE,
    ).stdout.decode().split("\0")
    names = {name for name in names if name and (REPO / name).is_file()}
    for name in names:
        source, target = REPO / name, TREE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # One that is the same keeps its time, so that it is not built again.
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in [path for path in TREE.rglob("*") if path.is_file()]:
        if str(path.relative_to(TREE)) not in names and "__pycache__" not in path.parts:
            path.unlink()
    for path in (WHERE, TREE):
        path.chmod(0o755)


def quietly(argv, seconds=SECONDS, **how):
    """Run to the end; the exit code, or None for one that had to be stopped."""
    env = dict(os.environ, CCACHE_NOHASHDIR="1", PYTHONDONTWRITEBYTECODE="1",
               CARREL=str(BUILD / "carrel"))
    with open(WHERE / "log", "ab") as log:
        log.write(f"\n$ {' '.join(map(str, argv))}\n".encode())
        log.flush()
        try:
            return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  timeout=seconds, env=env, check=False, **how).returncode
        except subprocess.TimeoutExpired:
            return None


def build(tests):
    """The program, and of the unit tests those that are asked for."""
    units = [f"tests/unit/test_{t.removeprefix('unit/')}" for t in tests if t.startswith("unit/")]
    # Built where its library is installed; a detached box needs it.
    known = (BUILD / "build.ninja").read_text(encoding="utf-8")
    screen = ["carrel-screen"] if "build carrel-screen:" in known else []
    ninja = ["ninja", "-C", BUILD, "carrel", *screen, "tests/unit/print-root", *units]
    return quietly(ninja, BUILD_SECONDS) == 0


def passes(tests):
    """Do all of them? The first that does not is enough."""
    for test in (t for t in tests if t.startswith("unit/")):
        if quietly([BUILD / "tests/unit" / f"test_{test.removeprefix('unit/')}"], cwd=TREE) != 0:
            return False
    rest = [t for t in tests if not t.startswith("unit/")]
    pytest = ["/usr/bin/python3", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    return not rest or quietly([*pytest, *rest], cwd=TREE) == 0


def try_one(mutant):
    """killed, survived, does not apply, or does not build."""
    path = TREE / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1 or mutant.old == mutant.new:
        return "does not apply"
    try:
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        if not build(mutant.tests):
            return "does not build"
        return "survived" if passes(mutant.tests) else "killed"
    finally:
        path.write_text(text, encoding="utf-8")


def failing(mutants):
    """The tests that fail although nothing is broken."""
    every = sorted({test for m in mutants for test in m.tests})
    if not build(every):
        sys.exit(f"the tree does not build: see {WHERE / 'log'}")
    units = {t for t in every if t.startswith("unit/") and not passes([t])}
    rest = [t for t in every if not t.startswith("unit/")]
    if passes(rest):
        return units
    return units | {t for t in rest if not passes([t])}


def wanted(words):
    return [m for m in MUTANTS
            if not words or any(fnmatch.fnmatch(m.name, f"*{word}*") for word in words)]


def mark(mutant):
    """One row and the file that it breaks: a row is tried again once either has changed."""
    text = (TREE / mutant.file).read_bytes()
    return hashlib.sha256(repr(mutant).encode() + text).hexdigest()


def killed_before():
    path = WHERE / "killed"
    return set(path.read_text(encoding="ascii").split()) if path.exists() else set()


def note_killed(mutant):
    with open(WHERE / "killed", "a", encoding="ascii") as file:
        file.write(mark(mutant) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of them in their name")
    parser.add_argument("--list", action="store_true", help="only print their names")
    parser.add_argument("--no-control", action="store_true", help="the tests are known to pass")
    parser.add_argument("--resume", action="store_true", help="skip what was killed before")
    args = parser.parse_args()
    mutants = wanted(args.words)
    if args.list:
        print("\n".join(f"{m.name:40} {m.file}" for m in mutants))
        return 0
    WHERE.mkdir(parents=True, exist_ok=True)
    copy_tree()
    if not (BUILD / "build.ninja").exists():
        setup = ["meson", "setup", BUILD, TREE, "-Dtest_hooks=true", "-Dunit_tests=true"]
        if quietly(setup) != 0:
            sys.exit(f"meson setup failed: see {WHERE / 'log'}")
    before = killed_before() if args.resume else set()
    found = {"killed": [m.name for m in mutants if mark(m) in before]}
    left = [m for m in mutants if mark(m) not in before]
    bad = set() if args.no_control else failing(left)
    for mutant in left:
        broken = bad.intersection(mutant.tests)
        result = "its tests fail without it" if broken else try_one(mutant)
        found.setdefault(result, []).append(mutant.name)
        if result == "killed":
            note_killed(mutant)
        print(f"{result:16} {mutant.name}{': ' + ' '.join(broken) if broken else ''}", flush=True)
    killed = len(found["killed"])
    print(f"{killed} of {len(mutants)} killed, {100 * killed / max(1, len(mutants)):.1f} %")
    for result, names in found.items():
        if result != "killed":
            print(f"{result}: {', '.join(names)}")
    return 0 if killed >= ENOUGH * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
