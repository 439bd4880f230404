"""Command lines and what must come of them, word for word.

A case is a file `cases/NAME.case`: one argument per line, and then what is expected. Behind a
line `== expect plan` that is the plan, behind `== expect error` the exit code and standard error.
The workspace is always the same small project (made below) and stands as @W@, its parent as @T@,
the home as @H@. A line `#cd DIR` starts carrel somewhere else, `#env NAME=VALUE` adds to its
environment.

What differs between machines is taken out of a plan. What is in every plan is written down
once, in `default`; the other cases have only what is not the same there, and under "without"
what is missing. UPDATE_GOLDEN=1 writes the expectations anew: read the diff.
"""

import json
import os
import pathlib
import re

import lib
import pytest

CASES = pathlib.Path(__file__).parent / "cases"
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"
NAMES = sorted(path.stem for path in CASES.glob("*.case"))
EXPECT = re.compile(r"(?m)^== (expect (?:plan|error))\n")
CGROUPS = ("memory", "swap", "cpus", "io", "cgroup", "held")  # tests/limits has these
SYSTEM = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}  # links on some machines


@pytest.fixture
def world(place):
    """A project with something for every rule, at a path whose length does not matter."""
    w = lib.make_dir(place / "my project")
    for name, text in {
        ".env": "A=1\n",
        ".env.example": "A=\n",
        "app/.env.local": "B=1\n",
        "app/key.pem": "key\n",
        "app/main.c": "int main;\n",
        "docs/secret.txt": "s\n",
        "secret.txt": "s\n",
        "[odd]": "o\n",
        "back\\slash": "b\n",
        ".git/config": "[core]\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/objects/info/packs": "\n",
        ".git/refs/heads/main": "0" * 40 + "\n",
        ".git/hooks/pre-commit": "#!/bin/sh\n",
        ".vscode/settings.json": "{}\n",
        "node_modules/x/.env": "N=1\n",
    }.items():
        lib.make_file(w / name, text)
    os.symlink("app", w / "link")
    lib.make_file(place / "data" / "file", "d\n")
    lib.make_file(place / "a:b", "d\n")
    return w


def split_case(path):
    """(what is done, "expect plan" or "expect error", what is expected) of a case."""
    parts = EXPECT.split(path.read_text())
    return tuple(parts) if len(parts) == 3 else (parts[0], "", "")


def check_case(path, kind, text):
    """Compare an outcome with what the case expects, or write it there."""
    given, expected_kind, expected = split_case(path)
    if UPDATE:
        path.write_text(f"{given}== {kind}\n{text}")
        return
    assert kind == expected_kind, f"{path.name} was to come out otherwise:\n{text}"
    assert text == expected


def read_case(name, world):
    """(arguments, working directory, environment)"""
    args, cwd, env = [], world, {"SHELL": "/bin/sh", "USER": None, "TERM": "xterm"}
    for line in split_case(CASES / f"{name}.case")[0].splitlines():
        line = line.replace("@W@", str(world)).replace("@T@", str(world.parent))
        if line.startswith("#cd "):
            cwd = line[4:]
        elif line.startswith("#env "):
            key, _, value = line[5:].partition("=")
            env[key] = value
        else:
            args.append(with_bytes(line))
    return args, cwd, env


def with_bytes(line):
    """\\xNN is that byte."""
    return re.sub(rb"\\x(..)", lambda m: bytes([int(m[1], 16)]), line.encode())


def run_case(name, world):
    args, cwd, env = read_case(name, world)
    return args, lib.carrel(*args, cwd=cwd, env=env)


# ---- what is compared -------------------------------------------------------------------


def without_places(text, world):
    """Paths of this run by their letters. The longest first: each lies in the next."""
    places = [(world, "@W@"), (lib.current.home, "@H@"), (world.parent, "@T@")]
    for path, letter in (*places, (lib.runtime(), "@R@")):
        text = text.replace(str(path), letter)
    return re.sub(r"/instances/[0-9a-f]{16}\b", "/instances/@ID@", text)


def normal_plan(raw, args, world):
    plan = json.loads(without_places(raw.decode(), world))
    plan.pop("hash")
    plan["instance"]["id"] = "@ID@"
    plan["user"] = "@USER@"
    plan["layers"]["landlock"] = "@ABI@" if plan["layers"]["landlock"] else 0
    if not any(b"scratch=" in arg for arg in args):
        plan["limits"]["scratch"] = "@RAM/4@"
    if not any(b"files=" in arg for arg in args):
        plan["limits"]["files"] = "@FILES@"
    for name in CGROUPS:
        plan["limits"].pop(name)
    plan["places"] = [normal_place(p) for p in plan["places"] if is_ours(p)]
    machine = ("Landlock ABI", "is not limited")
    plan["notices"] = [text for text in plan["notices"] if not any(word in text for word in machine)]
    return plan


def is_ours(entry):
    return (
        entry["why"] not in ("system", "toolchain")
        and entry["target"] not in SYSTEM
        # A link of the system's /etc to the system's /usr.
        and not (entry["kind"] == "link" and re.match(r"/etc/(?!mtab$)", entry["target"]))
    )


def normal_place(entry):
    if entry["target"] in ("/etc/passwd", "/etc/group"):
        others = r"(?m)^(?!root:|nobody:|nogroup:).*$"
        entry["text"] = re.sub(others, "@USER@", entry["text"].rstrip("\n")) + "\n"
    return entry


def less_default(plan, default):
    """Only what the default has not, and the names of what it has and this one lacks."""
    rest = {key: value for key, value in plan.items() if value != default.get(key)}
    without = []
    for key, name in (("places", "target"), ("env", "name")):
        known, here = default[key], {entry[name] for entry in plan[key]}
        without += [entry[name] for entry in known if entry[name] not in here]
        if key in rest:
            rest[key] = [entry for entry in plan[key] if entry not in known]
    return {**rest, **({"without": without} if without else {})}


def as_text(plan):
    """JSON with a line for each place."""
    rows = [f"\n  {json.dumps(key)}: {as_value(value)}" for key, value in plan.items()]
    return "{" + ",".join(rows) + "\n}\n"


def as_value(value):
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
    return json.dumps(value)


@pytest.fixture
def default(world):
    args, done = run_case("default", world)
    return normal_plan(lib.succeeded(done), args, world)


def outcome(name, world, default):
    """The kind of the expectation, and its text."""
    args, done = run_case(name, world)
    if done.returncode == 0:
        assert done.stderr == b""
        plan = normal_plan(done.stdout, args, world)
        if name != "default":
            plan = less_default(plan, default)
        return "expect plan", as_text(plan)
    assert done.stdout == b""
    text = without_places(done.stderr.decode(), world)
    return "expect error", f"exit {done.returncode}\n{text}"


# ---- the tests --------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_case(name, world, default):
    before = lib.snapshot(world)
    check_case(CASES / f"{name}.case", *outcome(name, world, default))
    assert lib.snapshot(world) == before, "planning changes nothing"


def test_there_is_nothing_but_cases():
    assert {path.suffix for path in CASES.iterdir()} == {".case"}
    assert len(NAMES) >= 40


def test_every_option_has_a_bad_case():
    """An option whose bad values nobody wrote down is an option nobody tried."""
    text = lib.succeeded(lib.carrel("run", "--help")).decode().partition("Options:")[2]
    options = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.M)) - {"help"}
    cases = [split_case(path) for path in CASES.glob("*.case")]
    bad = [args for args, kind, _ in cases if kind == "expect error"]
    tried = {o for o in options if any(re.search(rf"^--{o}\b", text, re.M) for text in bad)}
    assert tried == options and len(options) > 20
