"""Help, manual, completion and schema: all made from the tables, each read by what reads it."""

import json
import os
import pathlib
import re
import tempfile

import jsonschema
import lib
import pexpect
import pytest

BOX_OPTIONS = ["-n", "--dry-run", "-y", "--yes", "--json", "-m", "--manifest",
               "-d", "--detach", "--foreground", "--restart", "--headless", "--prompts", "--events", "--workspace", "--overlay", "--over", "--mount", "--env",
               "--network", "--allow", "--deny", "--proxy", "--ask", "--port", "--service", "--protect", "--hide", "--limit", "--name", "--uid", "--engine", "--record",
               "--no-git-config", "--nest"]  # fmt: skip

# Written down by hand: an option that leaves the tables leaves a test that fails.
COMMANDS = {
    "run": BOX_OPTIONS,
    "plan": BOX_OPTIONS,
    "shell": BOX_OPTIONS,
    "claude": BOX_OPTIONS,
    "codex": BOX_OPTIONS,
    "gemini": BOX_OPTIONS,
    "opencode": BOX_OPTIONS,
    "race": ["-n", "--count", "--check", "--apply", "--name", "-m", "--manifest", "-y", "--yes",
             "--json"],
    "ps": ["-a", "--all", "--json", "--watch"],
    "top": [],
    "attach": ["--read-only", "--detach-keys"],
    "exec": [],
    "logs": ["-f", "--follow"],
    "send": ["-n", "--no-return"],
    "stop": ["-t", "--time"],
    "restart": ["-t", "--time"],
    "wait": [],
    "unit": ["-m", "--manifest", "--workspace", "--name"],
    "diff": ["--stat", "--name-only", "--json", "--format", "--export", "--now", "--git",
             "--color", "--no-pager"],
    "apply": ["--check", "--include-protected", "--as-branch", "--json"],
    "discard": ["-y", "--yes"],
    "rm": ["-y", "--yes"],
    "events": ["-f", "--follow", "--json"],
    "found": ["--json"],
    "allow": ["--deny", "--always"],
    "port": ["--remove"],
    "agents": ["-m", "--manifest", "--json", "--names"],
    "init": ["--print"],
    "trust": ["--show", "--json", "--revoke"],
    "eval": [
        *("-y", "--yes", "-n", "--dry-run", "--json", "--evals", "--skill", "--variant"),
        *("--no-baseline", "--project-root", "--output-dir", "--resume", "--mode", "--filter"),
        *("--repeat", "-j", "--jobs", "--harness", "--model", "--grader-model", "--profile"),
        *("--control", "--timeout", "--max-usd", "--max-time", "--retries", "--threshold"),
        *("--min-n", "--fail-fast", "--until-sure", "--prompts", "--allow", "--service"),
        *("--junit", "--markdown", "--csv", "--inspect"),
    ],
    "report": ["-o", "--output", "--files", "--open", "--json", "--junit", "--markdown", "--csv", "--inspect"],
    "instances": ["--json", "-n", "--dry-run", "-y", "--yes"],
    "gc": ["-n", "--dry-run", "--unapplied", "--json"],
    "check": ["--json"],
    "help": [],
    "version": [],
    "completion": [],
    "schema": [],
    "man": [],
}

every_command = pytest.mark.parametrize("command", COMMANDS)


def output(*args, **how):
    return lib.succeeded(lib.carrel(*args, **how)).decode()


def words(text):
    return set(re.findall(r"(?<![\w-])-{1,2}[a-z][a-z-]*", text))


# ---- help -------------------------------------------------------------------------------


def test_program_help_lists_every_command():
    text = output("--help")
    assert text == output("help") == output("-h")
    listed = re.findall(r"^  ([a-z]+) ", text.partition("Commands:")[2], re.M)
    assert listed == list(COMMANDS)
    assert {"--help", "--version"} <= words(text)


@every_command
def test_command_help_lists_every_option(command):
    text = output(command, "--help")
    assert text == output("help", command) == output(command, "-h")
    assert text.startswith(f"Usage: carrel {command}")
    listed = re.findall(r"^ +(?:(-\w), )?(--[a-z-]+)", text.partition("Options:")[2], re.M)
    listed = [word for row in listed for word in row if word]
    assert listed == [*COMMANDS[command], "-h", "--help"]


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_fits_in_80_columns(args):
    assert max(map(len, output(*args).splitlines())) <= 80


def test_no_arguments_is_my_own_client():
    """Which is not installed here, so that is said, and what else there is."""
    lib.failed_clearly(lib.carrel("run", "-y"), "no program 'claude'", "carrel run -- CMD")
    assert lib.carrel().stderr == lib.carrel("run").stderr == lib.carrel("run", "-y").stderr


@pytest.mark.parametrize(
    "env, bold",
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_bold_only_on_a_terminal_that_wants_it(env, bold):
    child = lib.terminal([lib.program(), "--help"], env=env)
    child.expect(pexpect.EOF)
    assert (b"\x1b[" in child.before) == bold
    assert b"\x1b" not in lib.carrel("--help", env={"TERM": "xterm"}).stdout


def test_version():
    text = output("version")
    assert re.fullmatch(r"carrel \d+\.\d+\.\d+\S*\n", text)
    assert text == output("--version") == output("-V")


# ---- mistakes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, said",
    [
        (["rnu"], ["'rnu'", "'run'"]),
        (["help", "pln"], ["'pln'", "'plan'"]),
        (["--verison"], ["'--verison'", "carrel run"]),
        (["run", "--netwrok=none", "--", "true"], ["'--netwrok'", "'--network'"]),
        (["run", "--network=hots", "--", "true"], ["'hots'", "none, allow, open or host", "'host'"]),
        (["run", "--limit=tiem=3", "--", "true"], ["'tiem'", "'time'", "scratch"]),
        (["run", "--mount=/a:rw", "--", "true"], ["'/a:rw'", "'/a::rw'"]),
        (["run", "--mount=/a:/b:ro:x", "--", "true"], ["SRC[:DST[:ro|rw]]", "\\:"]),
        (["run", "--env=1X", "--", "true"], ["'1X'", "NAME"]),
        (["run", "--yes=no", "--", "true"], ["--yes", "no value"]),
        (["run", "--json", "-y", "--", "true"], ["--json", "-n"]),
        (["run"], ["command", "carrel run -- CMD"]),
        (["run", "-y", "--"], ["command", "carrel run -- CMD"]),
        (["run", "-y", "true"], ["'true'", "`carrel run -- CMD`"]),
        (["run", "-y", "ls", "-l", "--color"], ["'-l'", "-- CMD"]),
        (["run", "-y", "one", "two"], ["'two'", "after '--'"]),
        (["shell", "bash"], ["'bash'"]),
        (["shell", "--", "bash"], ["'bash'", "takes no command"]),
        (["version", "extra"], ["'extra'"]),
        (["completion"], ["bash|zsh|fish"]),
        (["completion", "bsh"], ["'bsh'", "'bash'"]),
        (["completion", "bash", "zsh"], ["'zsh'"]),
        (["schema", "plna"], ["'plna'", "'plan'"]),
        (["schema", "plan", "manifest"], ["'manifest'"]),
        (["agents", "extra"], ["'extra'"]),
        (["init", "extra"], ["'extra'"]),
        (["trust", "a", "b"], ["'b'"]),
        (["trust", "-y"], ["'-y'"]),
        (["trust", "--yes"], ["'--yes'"]),
        (["\x1b[31m"], ["'\\x1b[31m'"]),
    ],
)
def test_mistakes_are_named(args, said):
    done = lib.carrel(*args)
    lib.failed_clearly(done, *said)
    assert done.stdout == b""
    assert b"\x1b" not in done.stderr


def test_bytes_that_are_no_text():
    done = lib.carrel(b"run", b"--\xff\x9b", b"--", b"true")
    lib.failed_clearly(done, "\\xff\\x9b")


@pytest.mark.parametrize("args", [["help"], ["version"], ["man"], ["schema"],
                                  ["completion", "zsh"]])  # fmt: skip
def test_output_that_cannot_be_written(args):
    with open("/dev/full", "wb") as full:
        lib.failed_clearly(lib.carrel(*args, stdout=full), "standard output")
    closed = lib.execute(["sh", "-c", 'exec "$@" >&-', "sh", lib.program(), *args])
    lib.failed_clearly(closed, "standard output")


# ---- manual -----------------------------------------------------------------------------


def test_manual_has_no_warnings():
    page = output("man").encode()
    done = lib.execute(["mandoc", "-T", "lint", "-W", "warning"], input=page)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_manual_lists_each_key_of_the_manifest_once():
    text = lib.succeeded(lib.carrel("man")).decode()
    part = text.split("THE MANIFEST")[1].split("EXIT STATUS")[0]
    keys = re.findall(r"(?m)^\.TP\n\\fB(\S+)\\fR$", part)
    assert "agents.NAME.workspace.protect" in keys and "mine" in keys
    assert not [key for key in keys if key.startswith("mine.")]
    assert len(set(keys)) == len(keys) > 60


def test_manual_is_complete():
    page = output("man").encode()
    text = lib.succeeded(lib.execute(["mandoc", "-T", "ascii", "-O", "width=200"], input=page))
    text = re.sub(rb".\x08", b"", text).decode()
    headings = re.findall(r"^[A-Z ]+$", text, re.M)
    assert headings == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "THE MANIFEST",
                        "EXIT STATUS",
                        "ENVIRONMENT", "FILES", "SEE ALSO"]  # fmt: skip
    for command, options in COMMANDS.items():
        assert re.search(rf"^   carrel {command}\b", text, re.M), command
        assert set(options) <= words(text)
    for word in ("CARREL_DRY_RUN", "NO_COLOR", "125", "126", "127", "128+n"):
        assert word in text


# ---- completion -------------------------------------------------------------------------

PRESETS = {f"@{name}" for name in ("anthropic", "openai", "google", "github", "pypi", "crates",
                                   "go", "npm", "debian")}  # fmt: skip

# What is typed, and what must be among the offers.
TYPED = [
    ("carrel ", set(COMMANDS)),
    ("carrel ru", {"run"}),
    ("carrel --v", {"--version"}),
    ("carrel run --", {word for word in BOX_OPTIONS if word.startswith("--")} | {"--help"}),
    ("carrel run --network ", {"none", "allow", "open", "host"}),
    ("carrel plan --engine ", {"native"}),
    ("carrel shell --limit ", {"time=", "pids=", "files=", "scratch="}),
    ("carrel run --env CARREL_TE", {"CARREL_TESTING"}),
    ("carrel completion ", {"bash", "zsh", "fish"}),
    ("carrel schema ", {"manifest", "plan"}),
    ("carrel trust --", {"--show", "--json", "--revoke", "--help"}),
    ("carrel help pl", {"plan"}),
    ("carrel check --", {"--json", "--help"}),
    ("carrel allow a", {"a-box"}),
    ("carrel allow ", {"a-box", "b-box"}),
    ("carrel allow a-box @", PRESETS),
    ("carrel allow a-box @gi", {"@github"}),
    ("carrel port b", {"b-box"}),
    ("carrel events ", {"a-box", "b-box", "old-box"}),
    ("carrel found o", {"old-box"}),
    ("carrel run --allow @", PRESETS),
    ("carrel plan --deny @np", {"@npm"}),
    ("carrel run re", {"reviewer"}),
    ("carrel shell ", {"reviewer", "mine", "claude", "codex", "gemini", "opencode"}),
    ("carrel plan -y ", {"reviewer"}),
]

# What must not be among them.
NEVER = {
    "carrel allow ": {"old-box", "@github"},
    "carrel port ": {"old-box", "@github"},
    "carrel allow a-box ": {"b-box"},
    "carrel claude ": {"reviewer", "codex"},
    "carrel ps ": {"a-box", "reviewer"},
}

ENV = {"CARREL_TESTING": "1"}


@pytest.fixture(autouse=True, scope="module")
def boxes():
    """Two that run, as far as a shell can see, and one that has left a record."""
    with tempfile.TemporaryDirectory(prefix="carrel-boxes-") as top:
        os.chmod(top, 0o755)
        os.mkdir(top + "/carrel")
        for name in ("a-box", "b-box"):
            pathlib.Path(top, "carrel", name + ".sock").touch()
        os.makedirs(top + "/state/carrel/boxes/old-box")
        os.mkdir(top + "/bin")
        os.symlink(lib.program(), top + "/bin/carrel")
        ENV["XDG_RUNTIME_DIR"] = top
        ENV["XDG_STATE_HOME"] = top + "/state"
        ENV["PATH"] = f"{top}/bin:/usr/local/bin:/usr/bin:/bin"
        yield
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "PATH"):
            del ENV[name]


@pytest.fixture
def script(place, request):
    """The completion script of a shell, in a file, where an agent is declared."""
    lib.make_file(place / "carrel.json", '{"agents": {"reviewer": {}}}')
    text = output("completion", request.param)
    return lib.make_file(place / f"carrel.{request.param}", text)


for_shell = {
    name: pytest.mark.parametrize("script", [name], indirect=True)
    for name in ("bash", "zsh", "fish")
}


@for_shell["bash"]
@pytest.mark.parametrize("typed, offered", TYPED)
def test_bash_completes(script, place, typed, offered):
    """The function is called as bash calls it; compopt has no meaning outside of that."""
    assert offered <= bash_offers(script, place, typed)


@for_shell["bash"]
@pytest.mark.parametrize("typed", NEVER)
def test_bash_offers_nothing_else(script, place, typed):
    assert not NEVER[typed] & bash_offers(script, place, typed)


@for_shell["bash"]
def test_bash_runs_nothing_that_a_name_says(script, place):
    """It expands what it offers; a name of a box or an agent may be anybody's."""
    bad = {"agents": {"$(touch ran)": {}, "re$(touch ran)": {}}}
    lib.make_file(place / "carrel.json", json.dumps(bad))
    fake = '#!/bin/sh\nprintf "%s\\n" \'$(touch ran)\' \'re`touch ran`\' good\n'
    lib.make_file(place / "bin" / "carrel", fake, mode=0o755)
    state = lib.make_file(place / "state/carrel/boxes/$(touch ran)/x").parents[3]
    env = {"PATH": f"{place}/bin:/usr/bin:/bin", "XDG_STATE_HOME": str(state)}
    assert "good" in bash_offers(script, place, "carrel run ", env)
    bash_offers(script, place, "carrel events ", env)
    assert not (place / "ran").exists()


def bash_offers(script, place, typed, env=None):
    program = f"""
        set -eu
        compopt() {{ :; }}
        source {script}
        complete -p carrel >/dev/null
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _carrel carrel
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    argv = ["bash", "--norc", "-c", program, "bash", *typed.split(" ")]
    done = lib.execute(argv, env=ENV | (env or {}), cwd=place)
    assert done.stderr == b""
    return set(lib.succeeded(done).decode().splitlines())


@for_shell["fish"]
@pytest.mark.parametrize("typed, offered", TYPED)
def test_fish_completes(script, place, typed, offered):
    assert offered <= fish_offers(script, place, typed)


@for_shell["fish"]
@pytest.mark.parametrize("typed", NEVER)
def test_fish_offers_nothing_else(script, place, typed):
    assert not NEVER[typed] & fish_offers(script, place, typed)


def fish_offers(script, place, typed):
    program = f"source {script}; complete -C '{typed}'"
    done = lib.execute(["fish", "--no-config", "-c", program], env=ENV, cwd=place)
    assert done.stderr == b""
    return {line.split("\t")[0] for line in lib.succeeded(done).decode().splitlines()}


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_that_are_offered_are_presets(project, preset):
    lib.succeeded(lib.carrel("plan", "--network", "allow", "--allow", preset, "--", "true"))
    bad = lib.carrel("plan", "--network", "allow", "--allow", preset + "x", "--", "true")
    lib.failed_clearly(bad, preset + "x")


@for_shell["fish"]
def test_fish_completes_files_and_command_lines(script, place):
    lib.make_file(place / "recording.cast")
    lib.make_dir(place / "recordings")
    for typed, offered in [
        ("carrel run --record rec", {"recording.cast", "recordings/"}),
        ("carrel run --workspace rec", {"recordings/"}),
        ("carrel run -y -- ls rec", {"recording.cast", "recordings/"}),
        ("carrel run -y -- setpri", {"setpriv"}),
        ("carrel version rec", set()),
    ]:
        program = f"source {script}; complete -C '{typed}'"
        done = lib.execute(["fish", "--no-config", "-c", program])
        assert {line.split("\t")[0] for line in done.stdout.decode().splitlines()} == offered


# How to start a shell with nothing of the user's, and to make it ready.
INTERACTIVE = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='$ '; setopt no_beep; unset zle_bracketed_paste; "
        "autoload -Uz compinit; compinit -u -D",
    ),
}


def completes(shell, typed, added):
    """A key that comes while the shell sets the terminal up may be lost: try again then."""
    for _ in range(4):
        shell.send(typed + "\t")
        found = shell.expect_exact([typed + added, pexpect.TIMEOUT], timeout=15) == 0
        if interrupted(shell) and found:
            return True
    return False


def interrupted(shell):
    """As completes(): zsh that is still busy with the completion takes no ^C."""
    for _ in range(4):
        shell.sendcontrol("c")
        if shell.expect_exact(["$ ", pexpect.TIMEOUT], timeout=15) == 0:
            return True
    return False


@pytest.mark.parametrize("script", INTERACTIVE, indirect=True)
def test_completes_on_a_terminal(script, place):
    """Commands, options, choices, files and what is behind the dashes, as a person has them."""
    argv, setup = INTERACTIVE[script.suffix[1:]]
    lib.make_file(place / "recording.cast")
    lib.make_dir(place / "recordings")
    env = {**ENV, "PS1": "$ ", "TERM": "dumb"}
    shell = lib.terminal(argv, env=env, size=(50, 200))
    shell.sendline(f"{setup}; source {script}; echo read''y")
    shell.expect_exact("ready\r\n")
    shell.expect_exact("$ ")
    for typed, added in [
        ("carrel ru", "n "),
        ("carrel --ver", "sion "),
        ("carrel run --netw", "ork"),
        ("carrel run --network ho", "st "),
        ("carrel run --network=ho", "st "),
        ("carrel plan --limit scr", "atch="),
        ("carrel run --env CARREL_TESTI", "NG "),
        ("carrel run --record recording.", "cast "),
        ("carrel run --workspace reco", "rdings/"),
        ("carrel completion z", "sh "),
        ("carrel help sche", "ma "),
        ("carrel allow b-", "box "),
        ("carrel allow b-box @gi", "thub "),
        ("carrel run --allow @gi", "thub "),
        ("carrel run --allow=@gi", "thub "),
        ("carrel run --deny @deb", "ian "),
        ("carrel events old", "-box "),
        ("carrel run revi", "ewer "),
        ("carrel shell --network host revi", "ewer "),
        ("carrel run -- setpri", "v "),
        ("carrel run -y -- ls recording.", "cast "),
    ]:
        assert completes(shell, typed, added), typed


@for_shell["zsh"]
def test_zsh_loads_both_ways(script, place):
    """Sourced, and found as _carrel in the path of functions."""
    lib.make_file(place / "functions" / "_carrel", script.read_text())
    start = "autoload -Uz compinit; "
    for load in (
        f"{start} compinit -u -D; source {script}",
        f"fpath=({place}/functions $fpath); {start} compinit -u -D; autoload +X _carrel",
    ):
        program = f"{load}; print -r -- $_comps[carrel] $+functions[_carrel]"
        done = lib.execute(["zsh", "-f", "-c", program])
        assert (done.stdout, done.stderr) == (b"_carrel 1\n", b"")


# ---- schema -----------------------------------------------------------------------------


def objects(schema):
    """Every description of an object in a schema."""
    if schema.get("type") == "object":
        yield schema
    for inner in [*schema.get("properties", {}).values(), schema.get("items")]:
        yield from objects(inner) if inner else ()


def test_schema_is_one_and_strict():
    schema = json.loads(output("schema", "plan"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    found = list(objects(schema))
    assert len(found) == 11
    for each in found:
        assert each["additionalProperties"] is False
        assert set(each["required"]) <= set(each["properties"])


@pytest.mark.parametrize("spoil", [lambda plan: plan.pop("argv"),
                                   lambda plan: plan.update(extra=1),
                                   lambda plan: plan.update(version=2),
                                   lambda plan: plan["places"][0].update(kind="odd"),
                                   lambda plan: plan["limits"].update(time=-1)])  # fmt: skip
def test_schema_knows_a_plan_from_none(project, spoil):
    checker = jsonschema.Draft202012Validator(json.loads(output("schema", "plan")))
    plan = json.loads(output("plan", "--json", "--", "true"))
    checker.validate(plan)
    spoil(plan)
    assert not checker.is_valid(plan)
