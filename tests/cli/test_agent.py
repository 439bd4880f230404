"""Starting a declared agent: the question, trust, values, names. Clients are in tests/clients."""

import hashlib
import json
import os
import shutil
import signal
import subprocess

import lib
import pytest

SECRET = "s3cret-value-nobody-should-see"


def declare(project, **agent):
    """An agent `x` that is any command; what to give for CARREL_TRUST."""
    agent = {"harness": "command", "command": ["true"], **agent}
    return write(project, {"agents": {"x": agent}})


def write(project, manifest):
    text = json.dumps(manifest)
    lib.make_file(project / "carrel.json", text)
    return {"CARREL_TRUST": hashlib.sha256(text.encode()).hexdigest()}


def on_terminal(*args, env=None):
    return lib.terminal([lib.program(), "run", *args], env=env, size=(60, 200))


# ---- the question -----------------------------------------------------------------------


def test_the_question_has_what_counts_and_no_values(project):
    lib.make_file(project / "skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n")
    manifest = {
        "library": {"skills": {"s": {"source": "./skills/s"}}},
        "agents": {
            "x": {
                "harness": "command",
                "command": ["cat", "/etc/carrel/prompt.md"],
                "prompt": "First \x1b]0;evil\x07line\nand SECOND line",
                "skills": ["s"],
                "env": {"PLAIN": SECRET, "COPIED": "${HOST_ONE}"},
                "mounts": [{"source": "/var", "target": "/data"}],
                "limits": {"time": "20m"},
            }
        },
    }
    env = write(project, manifest) | {"HOST_ONE": SECRET + "2"}
    child = on_terminal("x", env=env)
    child.expect_exact("Start this box? [y/N/?] ")
    short = child.before.decode()
    assert "cat /etc/carrel/prompt.md (agent x)" in short and "/var at /data" in short
    assert "PLAIN COPIED" in short and SECRET not in short
    child.sendline("?")
    child.expect_exact("Start this box? [y/N/?] ")
    shown = child.before.decode()
    lines = {line.split()[0]: line for line in shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines() if line}
    for label, text in {
        "agent": "x (command)",
        "box": "carrel-x (native engine, image host)",
        "skills": " s",
        "prompt": "35 characters: First \\x1b]0;evil\\x07line",
        "declared:": "PLAIN COPIED",
        "network": "allow: nothing is allowed",
        "limits": "1200 s",
    }.items():
        assert text in lines[label], (label, lines[label])
    assert "/var at /data" in shown
    assert SECRET not in shown and "SECOND" not in shown and "\x1b]" not in shown
    child.sendline("y")
    child.expect_exact("SECOND line")
    assert lib.finish(child) == 0


@pytest.mark.parametrize("dry", [("-n",), ()])
def test_a_dry_run_makes_nothing_and_asks_nothing(project, home, dry):
    env = declare(project, env={"A": "?", "B": "!/bin/touch ran"})
    runtime = lib.make_dir(home.parent / "runtime", mode=0o700)
    before = lib.snapshot(home.parent)
    env |= {"XDG_RUNTIME_DIR": str(runtime)} | ({} if dry else {"CARREL_DRY_RUN": "1"})
    lib.succeeded(lib.carrel("run", *dry, "x", env=env))
    assert lib.snapshot(home.parent) == before
    # The control: a start does ask, and does take its name.
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=env | {"CARREL_DRY_RUN": "0"}), "A")
    assert lib.snapshot(home.parent) != before


# ---- trust ------------------------------------------------------------------------------


def test_yes_does_not_approve_but_y_does(project):
    declare(project, env={"ONE": "1"})
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "not approved", "CARREL_TRUST=")
    child = on_terminal("x")
    child.expect_exact("Approve the manifest and start this box? [y/N/?] ")
    assert b"agents.x.env.ONE: 1" in child.before
    child.sendline("y")
    assert lib.finish(child) == 0
    lib.succeeded(lib.carrel("run", "-y", "x"))
    declare(project, env={"ONE": "1"}, network="host")
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "has changed")
    child = on_terminal("x")
    child.expect_exact("Approve the manifest and start this box? [y/N/?] ")
    assert b"+ agents.x.network: host" in child.before
    assert b"agents.x.env.ONE" not in child.before
    child.sendline("n")
    assert lib.finish(child) == 125
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "has changed")


def test_a_hash_approves_this_content_alone(project):
    env = declare(project)
    lib.succeeded(lib.carrel("run", "-y", "x", env=env))
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "not approved")
    declare(project, network="host")
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=env), "not approved")


def test_an_unapproved_manifest_runs_nothing(project):
    """Its commands for values least of all."""
    declare(project, env={"A": f"!/bin/touch {project}/ran"})
    for args in (["run", "-y", "x"], ["plan", "x"], ["shell", "-y", "x"], ["agents"]):
        lib.carrel(*args)
    assert not (project / "ran").exists()
    env = declare(project, env={"A": f"!/bin/touch {project}/ran"})
    lib.succeeded(lib.carrel("run", "-y", "x", env=env))
    assert (project / "ran").exists()


# ---- values -----------------------------------------------------------------------------


def test_values_arrive_by_every_way(project):
    env = declare(
        project,
        command=["sh", "-c", 'echo "$A|$B|$C|$D"'],
        env={"A": "\\?literal", "B": "${HOST}", "C": "!printf %s 'a  $(b)'", "D": "!pwd"},
    )
    done = lib.carrel("run", "-y", "x", env=env | {"HOST": "h"}, cwd=project)
    assert lib.succeeded(done) == b"?literal|h|a  $(b)|/\n"


def test_an_agent_has_a_user_of_its_own(project):
    """In the box, in all places that tell; on the host its files are the user's."""
    script = "id -u; id -g; touch mine; stat -c %u:%g mine; getent passwd $(id -u) | cut -d: -f3"
    env = declare(project, command=["sh", "-c", script], uid=2001)
    done = lib.carrel("run", "-y", "x", env=env, cwd=project)
    assert lib.succeeded(done).split() == [b"2001", b"2001", b"2001:2001", b"2001"]
    assert (project / "mine").stat().st_uid == project.stat().st_uid
    done = lib.carrel("run", "-y", "--uid", "2002", "x", env=env, cwd=project)
    assert lib.succeeded(done).split()[0] == b"2002"
    bad = lib.carrel("run", "-y", "--uid", "0", "x", env=env, cwd=project)
    assert bad.returncode == 125 and b"--uid '0': expected a number from 1 to 60000" in bad.stderr


def test_a_value_is_asked_for_without_echo(project):
    env = declare(project, command=["sh", "-c", 'echo "<$A>"'], env={"A": "?Token \x1b[2Jplease"})
    child = on_terminal("-y", "x", env=env | {"A": "ignored"})
    child.expect_exact("Token \\x1b[2Jplease (input hidden): ")
    child.sendline(SECRET)
    child.expect("<(.*)>")
    assert child.match[1].decode() == SECRET
    assert SECRET.encode() not in child.before
    assert lib.finish(child) == 0


@pytest.mark.parametrize("value", ["?", "?Give it"])
def test_without_a_terminal_the_variable_is_named(project, value):
    env = declare(project, env={"TOKEN": value})
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=env), "TOKEN", "terminal")


@pytest.mark.parametrize("command", ["false", "sh -c 'echo x; exit 3'", "no-such-program"])
def test_a_command_that_fails_stops_the_start(project, command):
    env = declare(project, command=["touch", "started"], env={"TOKEN": f"!{command}"})
    done = lib.carrel("run", "-y", "x", env=env, cwd=project)
    lib.failed_clearly(done, "TOKEN")
    assert not (project / "started").exists()


def test_a_program_of_the_project_gives_no_values(project):
    """PATH may lead there, and an agent may have written it."""
    bin_dir = lib.make_dir(project / "bin")
    lib.make_file(bin_dir / "pass", "#!/bin/sh\ntouch ran\necho evil\n", 0o755)
    env = declare(project, env={"TOKEN": "!pass show db"})
    path = {"PATH": f"{bin_dir}:/usr/bin:/bin"}
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=env | path, cwd=project), "pass")
    assert not (project / "ran").exists()
    outside = lib.make_file(project.parent / "tools/pass", "#!/bin/sh\necho good\n", 0o755)
    path["PATH"] += f":{outside.parent}"
    env = declare(project, command=["sh", "-c", "echo $TOKEN"], env={"TOKEN": "!pass show db"})
    done = lib.carrel("run", "-y", "x", env=env | path, cwd=project)
    assert lib.succeeded(done) == b"good\n"


def linked(project):
    lib.git("worktree", "add", "-q", project.parent / "linked", cwd=project)
    return project.parent / "linked"


def apart(project):
    place = project.parent
    lib.git("clone", "-q", "--separate-git-dir", place / "apart.git", project, place / "apart",
            cwd=place)  # fmt: skip
    return place / "apart"


def below(project):
    lib.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", project, "src/sub",
            cwd=project)  # fmt: skip
    return project


def without(project):
    shutil.rmtree(project / ".git")
    return project


# The working tree, where in it one is, what a box has done there before, and the environment.
AROUND = {
    "a directory of it": (None, "src", "", {}),
    "a linked worktree": (linked, "src", "", {}),
    "a separate git directory": (apart, "src", "", {}),
    "a submodule": (below, "src/sub", "", {}),
    "no repository": (without, "src", "", {}),
    "a new repository in it": (None, "src", "git init -q src", {}),
    "a .git file in it": (None, "src", "echo x >src/.git", {}),
    "a bare one in it": (None, "src", "cd src; mkdir objects refs; echo ref: refs/x >HEAD", {}),
    "GIT_DIR": (None, "src", "", {"GIT_DIR": "/nowhere"}),
    "a ceiling": (None, "src", "", {"GIT_CEILING_DIRECTORIES": "{tree}"}),
}


@pytest.mark.parametrize("case", AROUND)
def test_no_program_is_taken_from_around_the_workspace(project, case):
    """A box in a directory around it may have written one. Nor do others find one there."""
    make, where, before, env = AROUND[case]
    tree = make(project) if make else project
    tools, own = lib.make_dir(tree / "tools"), lib.make_dir(project.parent / "own")
    evil = "printf '#!/bin/sh\\necho evil\\n' >tools/pass; chmod 755 tools/pass; cp tools/pass tools/inner; "
    lib.succeeded(lib.box("sh", "-c", evil + before, cwd=tree))
    assert os.access(tools / "pass", os.X_OK)
    manifest = lib.make_dir(project.parent / "manifest")
    env = {key: text.format(tree=tree) for key, text in env.items()}
    env["PATH"] = f"{tools}:{own}:/usr/bin:/bin"

    def run(value):
        trust = declare(manifest, command=["sh", "-c", "echo $TOKEN"], env={"TOKEN": value})
        argv = ["run", "-y", "-m", manifest / "carrel.json", "x"]
        return lib.carrel(*argv, env=trust | env, cwd=tree / where)

    for value in ("!pass show db", f"!{tools}/pass"):
        lib.failed_clearly(run(value), "TOKEN", "pass")
    # The control: one of the user's own, and what that calls by name.
    lib.make_file(own / "pass", "#!/bin/sh\ninner || echo good\n", 0o755)
    assert lib.succeeded(run("!pass show db")) == b"good\n"


def test_no_program_is_taken_from_the_main_working_tree(project):
    """Of the worktree that one is in: boxes of the same project work there."""
    lib.make_file(project / "tools/pass", "#!/bin/sh\necho evil\n", 0o755)
    env = {"PATH": f"{project / 'tools'}:/usr/bin:/bin"}
    tree = linked(project)
    env |= declare(tree, env={"TOKEN": "!pass show db"})
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=env, cwd=tree), "TOKEN", "pass")


def test_a_program_of_the_home_is_taken_also_if_that_is_a_repository(place):
    """Many keep their settings in one; no box has ever had all of the home."""
    home = lib.current.home
    lib.git("init", "-q", cwd=home)
    lib.make_file(home / "bin/pass", "#!/bin/sh\necho good\n", 0o755)
    work = lib.make_dir(home / "work")
    env = declare(work, command=["sh", "-c", "echo $TOKEN"], env={"TOKEN": "!pass show db"})
    env["PATH"] = f"{home / 'bin'}:/usr/bin:/bin"
    assert lib.succeeded(lib.carrel("run", "-y", "x", env=env, cwd=work)) == b"good\n"


# ---- names ------------------------------------------------------------------------------

WAIT = ["sh", "-c", "hostname; read x || true"]


def running(env, *args):
    process = lib.start("run", "-y", *args, env=env)
    return process, lib.read_until(process.stdout, b"\n").decode().strip()


@pytest.fixture(params=["runtime", "no runtime"])
def named(request, project, place):
    """An agent that says its box's name and waits, with and without a runtime directory."""
    env = declare(project, command=WAIT)
    runtime = None
    if request.param == "runtime":
        runtime = str(lib.make_dir(place / "runtime", mode=0o700))
    return env | {"XDG_RUNTIME_DIR": runtime}


def end(process):
    process.stdin.close()
    assert process.wait(timeout=lib.TIMEOUT) is not None


def test_names_follow_each_other_and_come_back(named):
    one, first = running(named, "x")
    two, second = running(named, "x")
    assert (first, second) == ("carrel-x", "carrel-x-2")
    end(one)
    three, third = running(named, "x")
    assert third == "carrel-x"
    os.killpg(three.pid, signal.SIGKILL)
    three.wait()
    lib.wait_for(lambda: plan_name(named) == "carrel-x", "the name to be free after a crash")
    end(two)


def plan_name(env):
    return json.loads(lib.succeeded(lib.carrel("plan", "x", "--json", env=env)))["name"]


def test_a_pinned_name_is_strict(named):
    one, name = running(named, "--name", "mine", "x")
    assert name == "mine"
    lib.failed_clearly(lib.carrel("run", "-y", "--name", "mine", "x", env=named), "'mine'")
    end(one)
    done = lib.carrel("run", "-y", "--name", "mine", "x", env=named)
    assert lib.succeeded(done) == b"mine\n"


def test_two_hundred_starts_at_once_get_two_hundred_names(named):
    boxes = [
        lib.start("run", "-y", "x", env=named, stderr=subprocess.DEVNULL) for _ in range(200)
    ]
    names = [lib.read_until(box.stdout, b"\n", 300).decode().strip() for box in boxes]
    assert len(set(names)) == 200
    assert set(names) == {"carrel-x"} | {f"carrel-x-{i}" for i in range(2, 201)}
    for box in boxes:
        end(box)
    assert plan_name(named) == "carrel-x"


# ---- one's own client -------------------------------------------------------------------


@pytest.fixture
def mine(place):
    """A program that is taken for the user's Claude Code; says what it was started with."""
    script = '#!/bin/sh\nprintf "%s\\n" "$0" "$@"\n'
    return {"PATH": f"{lib.make_file(place / 'tools/claude', script, 0o755).parent}:/usr/bin:/bin"}


@pytest.mark.parametrize("words", [["-y"], ["run", "-y"], ["run", "-y", "mine"]])
def test_carrel_alone_is_my_own_client(project, mine, words):
    args = lib.succeeded(lib.carrel(*words, env=mine)).decode().splitlines()
    assert args[0].endswith("/claude") and "--append-system-prompt-file" in args


@pytest.mark.parametrize("words", [["-y", "--"], ["run", "-y", "mine", "--"]])
def test_words_after_the_dashes_are_for_my_client(project, mine, words):
    args = lib.succeeded(lib.carrel(*words, "--continue", "a b", env=mine)).decode().splitlines()
    assert args[-2:] == ["--continue", "a b"]


def test_no_agent_can_be_called_mine(project):
    write(project, {"agents": {"mine": {}}})
    lib.failed_clearly(lib.carrel("plan", "mine"), "agents.mine", "choose another")


def test_what_the_user_wrote_down_is_not_the_projects_to_say(project, home):
    """Nor does it need the project's approval then."""
    own = {"harness": "command", "command": ["echo", "own"]}
    mine = {"agents": {"own": own, "base": {}}}
    lib.make_file(home / ".config/carrel/carrel.json", json.dumps(mine))
    write(project, {"agents": {"base": {"command": ["echo", "evil"]}, "more": {}}})
    assert lib.succeeded(lib.carrel("run", "-y", "own")) == b"own\n"
    own["extends"] = "base"
    del own["command"]
    mine["agents"]["base"]["command"] = ["echo", "base"]
    lib.make_file(home / ".config/carrel/carrel.json", json.dumps(mine))
    assert lib.succeeded(lib.carrel("run", "-y", "own")) == b"base\n"
    # The project's own agents may build on the user's, once it is approved.
    env = write(project, {"agents": {"more": {"extends": "own"}}})
    lib.failed_clearly(lib.carrel("run", "-y", "more"), "not approved")
    assert lib.succeeded(lib.carrel("run", "-y", "more", env=env)) == b"base\n"


def test_a_plan_is_the_same_in_a_file_as_on_the_terminal(project, mine):
    """Of a conversation, if that is where it was asked for."""
    child = lib.terminal([lib.program(), "plan"], env=mine, size=(200, 300))
    child.expect(r"command +([^\r]*)\r")
    shown = child.match[1].decode().replace("\x1b[0m", "")
    child = lib.terminal(["sh", "-c", f"{lib.program()} plan > file"], env=mine)
    assert lib.finish(child) == 0
    assert shown in (project / "file").read_text() and " -p " not in shown
    piped = lib.succeeded(lib.carrel("plan", env=mine)).decode()
    assert " -p " in piped


def test_what_does_nothing_is_refused(project, mine):
    lib.failed_clearly(lib.carrel("run", "-y", "--events", "--", "true"), "--events")
    env = declare(project)
    lib.failed_clearly(lib.carrel("run", "-y", "--events", "x", env=env), "--events")
    env = write(project, {"mine": {"harness": "gemini", "effort": "high"}})
    lib.failed_clearly(lib.carrel("run", "-y", env=env | mine), "mine.effort")


def test_settings_that_name_what_is_nowhere(project, mine):
    plan = json.loads(lib.succeeded(lib.carrel("plan", "--json", "--", "true")))
    where = lib.current.home / ".local/state/carrel/instances" / plan["instance"]["id"]
    lib.make_file(where / "settings.json", '{"home": "declared", "skills": ["none"]}')
    done = lib.carrel("run", "-y", env=mine)
    lib.failed_clearly(done, '"none" is not declared', "settings.json:1:33: skills:", "set skills=")


def test_a_warning_comes_before_the_box(project, mine):
    env = write(project, {"mine": {"home": "direct"}}) | mine
    child = lib.terminal([lib.program(), "-y"], env=env, size=(60, 300))
    child.expect_exact("can change your own configuration")
    child.expect_exact("--append-system-prompt-file")
    assert lib.finish(child) == 0
