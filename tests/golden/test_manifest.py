"""Manifests and what must come of them, word for word.

A case is a file `manifests/NAME.case`. It begins with what it is about; then come sections, each
from a line `== WHAT` to the next:

    == carrel.json          a file of the project; with ~/ of the home, with ../ beside both
    == program PATH         the same, executable
    == private PATH         the same, for nobody else to read
    == dir PATH             an empty directory
    == link PATH -> TEXT    a symbolic link
    == env                  lines NAME=VALUE for carrel's environment
    == run                  the arguments, one per line; `plan`, `--json`, `a` if not given
    == expect plan          last: the plan; or
    == expect error         the exit code and what standard error said

@W@ is the project, @H@ the home, @T@ where both are, @xNN@ a byte, @N*TEXT@ that text N times.
A program `claude` is on the PATH: it is looked for, never run.

`bare` is the plan of an agent that declares nothing, as far as it is not that of a plain box;
the other cases have only what is not the same there, and under "without" what is missing.
UPDATE_GOLDEN=1 writes the expectations anew: read the diff.
"""

import json
import os
import pathlib
import re

import lib
import pytest
import test_golden as golden

CASES = pathlib.Path(__file__).parent / "manifests"
NAMES = sorted(path.stem for path in CASES.glob("*.case"))
USUAL = ["plan", "--json", "a"]
PLAIN = ["plan", "--json", "--", "/bin/true"]
NOTE = re.compile(rb"(carrel: [^\n]* is not approved: it can be shown, not started\n)?")
# C0 without newline, DEL, and C1 as UTF-8 has it.
CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


# ---- cases ------------------------------------------------------------------------------


def sections(name):
    """[(what, text)] of a case, without what is expected."""
    parts = re.split(r"(?m)^== (.*)\n", golden.split_case(CASES / f"{name}.case")[0])
    assert parts[0].strip(), "a case says what it is about"
    return list(zip(parts[1::2], parts[2::2]))


def expand(text, top):
    """A section's text as bytes."""
    for letter, path in (("@W@", top / "project"), ("@H@", top / "home"), ("@T@", top)):
        text = text.replace(letter, str(path))
    text = re.sub(r"@(\d+)\*([^@]*)@", lambda m: int(m[1]) * m[2], text)
    return re.sub(rb"@x(..)@", lambda m: bytes([int(m[1], 16)]), text.encode())


def where(path, top):
    """~/x, ../x and x."""
    path = os.fsdecode(expand(path, top))
    if path.startswith("~/"):
        return top / "home" / path[2:]
    return top / path[3:] if path.startswith("../") else top / "project" / path


def put(what, text, top):
    """Make what one section says."""
    kind, _, rest = what.partition(" ")
    if kind == "link":
        path, _, target = rest.partition(" -> ")
        path = where(path, top)
        lib.make_file(path)  # for the directories on the way
        path.unlink()
        os.symlink(expand(target, top), path)
    elif kind == "dir":
        lib.make_file(where(rest, top) / "x").unlink()
    elif kind == "program":
        lib.make_file(where(rest, top), expand(text, top), mode=0o755)
    elif kind == "private":
        lib.make_file(where(rest, top), expand(text, top), mode=0o600)
    else:
        lib.make_file(where(what, top), expand(text, top))


class World:
    """The places of one case, and carrel there."""

    def __init__(self, top):
        self.top, self.project = top, lib.make_dir(top / "project")
        lib.make_file(top / "bin" / "claude", "#!/bin/sh\nexit 1\n", mode=0o755)
        self.env = {"PATH": f"{top}/bin:/usr/bin:/bin", "SHELL": "/bin/sh", "TERM": "xterm"}
        self.args = USUAL

    def build(self, name):
        for what, text in sections(name):
            if what == "run":
                self.args = [expand(line, self.top) for line in text.splitlines()]
            elif what == "env":
                lines = expand(text, self.top).decode().splitlines()
                self.env |= dict(line.split("=", 1) for line in lines)
            else:
                put(what, text, self.top)

    def carrel(self, args=None):
        return lib.carrel(*(args or self.args), cwd=self.project, env=self.env)

    def shown(self, text):
        """Without the places of this run."""
        return golden.without_places(text, self.project)

    def plan(self, args=None):
        raw = json.loads(lib.succeeded(self.carrel(args)))
        limits = {key: value for key, value in raw["limits"].items() if key not in golden.CGROUPS}
        text = json.dumps(raw, ensure_ascii=False).encode()
        plan = golden.normal_plan(text, [], self.project)
        return {**plan, "limits": limits}


@pytest.fixture
def world(place):
    return World(place)


# ---- what is compared -------------------------------------------------------------------


def less(plan, base):
    """Only what the base has not, and the names of what it has and this one lacks."""
    rest = {key: value for key, value in plan.items() if value != base.get(key)}
    without = [key for key in base if key not in plan]
    for key, name in (("places", "target"), ("env", "name")):
        here = {entry[name] for entry in plan[key]}
        without += [entry[name] for entry in base[key] if entry[name] not in here]
        if key in rest:
            rest[key] = [entry for entry in plan[key] if entry not in base[key]]
    for key in ("limits", "agent"):
        if key in rest:
            known = base.get(key, {})
            rest[key] = {k: v for k, v in plan[key].items() if v != known.get(k)}
    return {**rest, **({"without": without} if without else {})}


def bare(world):
    """The plan of an agent that declares nothing, in a project that has nothing else."""
    top = lib.make_dir(world.top / "bare")
    lib.make_dir(top / "home")
    other, home = World(top), lib.current.home
    lib.current.home = top / "home"
    other.build("bare")
    plan, plain = other.plan(), other.plan(PLAIN)
    lib.current.home = home
    lib.remove(top)
    return plan, plain


def is_harmless(done):
    """Nothing of a manifest drives the terminal, and all of it is UTF-8."""
    text = done.stdout + done.stderr
    text.decode()
    return not CONTROL.search(text)


def outcome(name, world):
    """The kind of the expectation, and its text."""
    done = world.carrel()
    as_text = world.carrel([arg for arg in world.args if arg not in ("--json", b"--json")])
    assert is_harmless(done) and is_harmless(as_text)
    assert as_text.returncode == done.returncode and as_text.stderr == done.stderr
    if done.returncode == 0:
        assert NOTE.fullmatch(done.stderr)
        base, plain = bare(world)
        plan = less(world.plan(), plain if name == "bare" else base)
        return "expect plan", golden.as_text(plan)
    assert done.stdout == b""
    return "expect error", f"exit {done.returncode}\n{world.shown(done.stderr.decode())}"


# ---- the tests --------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_case(name, world):
    world.build(name)
    before = lib.snapshot(world.top)
    golden.check_case(CASES / f"{name}.case", *outcome(name, world))
    assert lib.snapshot(world.top) == before, "planning changes nothing"


def test_there_is_nothing_but_cases():
    assert {path.suffix for path in CASES.iterdir()} == {".case"}
    assert len(NAMES) >= 60


def keys():
    """The names in the key table, and in that of limits."""
    room = lib.REPO / "src" / "manifest"
    known = set(re.findall(r'\{ "([^"]+)", KEY_', (room / "schema.c").read_text()))
    limits = set(re.findall(r"X\((\w+), KEY_", (room / "limits.h").read_text()))
    assert len(known) > 30 and len(limits) > 10
    return sorted(known | limits)


@pytest.mark.parametrize("key", keys())
def test_every_key_was_tried(key):
    """A key is in a plan, or refused as not there yet; and somewhere it has a bad value."""
    cases = {name: golden.split_case(CASES / f"{name}.case") for name in NAMES}
    used = [name for name, (given, _, _) in cases.items() if f'"{key}":' in given]
    bad = [name for name in used if cases[name][1] == "expect error"]
    assert bad and (set(used) - set(bad) or any(name.startswith("later") for name in bad))


# ---- what a plan does not say -----------------------------------------------------------

SECRETS = """
{"agents": {"a": {
  "prompt": "The first line.\\nThe second-line of it.",
  "role": "role.md",
  "env": {"LITERAL": "literal-value", "COPIED": "${HERE}", "ASKED": "?",
          "PRINTED": "!true printed-argument"},
  "mcpServers": ["m"]}},
 "library": {"mcpServers": {"m": {"command": "m",
   "env": {"COPIED": "${HERE}", "DOLLAR": "$literal-value"}}}}}
"""
LOGIN = '{"claudeAiOauth": {"accessToken": "access-token", "refreshToken": "refresh-token"}}'


@pytest.fixture
def secrets(world):
    lib.make_file(world.project / "carrel.json", SECRETS)
    lib.make_file(world.project / "role.md", "The role-text.\n")
    lib.make_file(world.top / "home" / ".claude" / ".credentials.json", LOGIN, mode=0o600)
    world.env["HERE"] = "copied-value"
    return world


@pytest.mark.parametrize("form", ["--json", None])
def test_a_plan_has_names_and_no_values(secrets, form):
    args = ["plan", *([form] if form else []), "a"]
    text = lib.succeeded(secrets.carrel(args)).decode()
    for name in ("LITERAL", "COPIED", "ASKED", "PRINTED"):
        assert name in text
    assert "printed-argument" in text, "what runs outside is shown"
    for value in ("literal-value", "copied-value", "access-token",
                  "refresh-token", "role-text", "second-line"):
        assert value not in text
    assert ("The first line." in text) == (form is None)


def test_a_plan_names_the_prompt_by_its_hash(secrets):
    """The same with other words is another plan, and the JSON says only that."""
    plans = []
    for text in (SECRETS, SECRETS.replace("second", "other!")):
        lib.make_file(secrets.project / "carrel.json", text)
        plans.append(json.loads(lib.succeeded(secrets.carrel())))
    prompts = [next(p for p in plan["places"] if p["why"] == "prompt") for plan in plans]
    length = len("The first line.\nThe second-line of it.")
    assert [prompt["bytes"] for prompt in prompts] == [length, length]
    assert prompts[0]["sha256"] != prompts[1]["sha256"]
    assert plans[0]["hash"] != plans[1]["hash"]


def test_a_long_first_line_is_cut(world):
    manifest = json.dumps({"agents": {"a": {"prompt": "word " * 1000}}})
    lib.make_file(world.project / "carrel.json", manifest)
    text = lib.succeeded(world.carrel(["plan", "a"])).decode()
    assert "5000 characters: word word" in text
    assert max(map(len, text.splitlines())) < 1000
