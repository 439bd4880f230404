"""What a hostile project, or a box that was here before, must not get from starting an agent."""

import json
import os

import lib
import pytest
from test_agent import write

LEAK = "nobody-may-read-this"


def agent(**more):
    return {"agents": {"x": {"harness": "command", "command": ["true"], **more}}}


def refused(project, manifest, *words, **how):
    lib.failed_clearly(lib.carrel("run", "-y", "x", env=write(project, manifest), **how), *words)


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_nothing_is_made_through_a_mount_over_the_home(project, home, mode):
    """What is made for the box would be made on the host, through the project's links."""
    trap = lib.make_dir(project / "trap")
    os.symlink(home, trap / home.name)
    lib.make_file(project / "role.md", "role")
    mount = {"source": "./trap", "target": str(home.parent), "mode": mode}
    before = lib.snapshot(home)
    done = lib.carrel("run", "-y", "x", env=write(project, agent(role="./role.md", mounts=[mount])))
    assert done.returncode == 125, done.stderr
    assert lib.snapshot(home) == before
    mount["target"] = "/elsewhere"
    lib.succeeded(
        lib.carrel("run", "-y", "x", env=write(project, agent(role="./role.md", mounts=[mount])))
    )


def test_a_path_of_the_project_is_what_it_says(project):
    """A link could make it another after the text was approved."""
    assert (project / ".git/hooks").is_dir()
    lib.make_file(project / ".env", LEAK)
    lib.make_file(project / "real/role.md", "role")
    for name, to in {"out": ".git/hooks", "notes.md": ".env", "link": "real"}.items():
        os.symlink(to, project / name)
    for more in (
        {"mounts": [{"source": "./out", "target": "/out", "mode": "rw"}]},
        {"mounts": [{"source": "./notes.md", "target": "/notes"}]},
        {"role": "./notes.md"},
        {"role": "./link/role.md"},
    ):
        refused(project, agent(**more), "must be what it says")
    lib.succeeded(
        lib.carrel("run", "-y", "x", env=write(project, agent(role="./real/role.md")))
    )


@pytest.mark.parametrize(
    "source, mode, word",
    [
        (".git/hooks", "rw", "protected"),
        (".git/hooks/pre-commit", "rw", "protected"),
        (".env", "ro", "hidden"),
    ],
)
def test_a_manifest_mounts_nothing_bare_that_is_guarded(project, source, mode, word):
    lib.make_file(project / ".git/HEAD", "ref: refs/heads/main\n")
    lib.make_file(project / ".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
    lib.make_file(project / ".env", LEAK)
    mount = {"source": f"./{source}", "target": "/here", "mode": mode}
    refused(project, agent(mounts=[mount]), word)
    # What the user says on the command line is another matter.
    opts = ["--mount", f"{source}:/here:{mode}"]
    lib.succeeded(lib.box("test", "-e", "/here", opts=opts, cwd=project))


def test_a_manifest_is_approved_where_it_was_found(project, place):
    """Its relative paths begin there: a link to an approved one is another."""
    other = lib.make_dir(place / "good")
    text = json.dumps(agent(command=["./tool"]))
    for where in (other, project):
        lib.make_file(where / "tool", "#!/bin/sh\npwd\n", 0o755)
    lib.make_file(other / "carrel.json", text)
    os.symlink(other / "carrel.json", project / "carrel.json")
    child = lib.terminal([lib.program(), "trust"], cwd=other)
    child.expect_exact("[y/N] ")
    child.sendline("y")
    assert lib.finish(child) == 0
    lib.succeeded(lib.carrel("run", "-y", "x", cwd=other))
    lib.failed_clearly(lib.carrel("run", "-y", "x", cwd=project), "not approved")


def test_what_carrel_goes_by_cannot_be_changed_in_a_box(place, home):
    """Nor what the user's own clients do, where all of it is in one directory of dotfiles."""
    dotfiles = lib.make_dir(home / "dotfiles")
    own = {"agents": {"x": {"harness": "command", "command": ["true"]}}}
    lib.make_file(dotfiles / "carrel/carrel.json", json.dumps(own))
    lib.make_file(dotfiles / "claude/settings.json", "{}")
    lib.make_file(dotfiles / "other", "")
    lib.make_dir(home / ".config")
    os.symlink("../dotfiles/carrel", home / ".config/carrel")
    os.symlink("dotfiles/claude", home / ".claude")
    script = "for f in carrel/carrel.json claude/settings.json other; do echo evil >>$f; done"
    lib.box("sh", "-c", script, cwd=dotfiles)
    assert json.loads((dotfiles / "carrel/carrel.json").read_text()) == own
    assert (dotfiles / "claude/settings.json").read_text() == "{}"
    assert (dotfiles / "other").read_text() == "evil\n"
    state = lib.make_dir(home / "state")
    env = {"XDG_STATE_HOME": str(state)}
    lib.failed_clearly(lib.box("true", cwd=state, env=env), "what carrel itself goes by")


def test_a_box_that_runs_keeps_nobody_from_starting_another(project):
    """The absent carrel.json is kept absent by a stub, which is no manifest."""
    one = lib.start_box("sh", "-c", "echo up; read x")
    lib.read_until(one.stdout, b"up")
    assert not (project / "carrel.json").is_file()
    lib.failed_clearly(lib.carrel("run", "-y", "x"), "no manifest")
    one.stdin.close()
    assert one.wait(timeout=lib.TIMEOUT) is not None


def test_what_was_typed_before_the_question_is_no_answer(project):
    """A paste of several lines, say."""
    write(project, agent())
    child = lib.terminal(["sh", "-c", f"sleep 0.5; exec {lib.program()} run x"], size=(60, 200))
    child.sendline("y")
    child.expect_exact("[y/N/?] ")
    child.sendline("")
    child.expect_exact("not started")
    assert lib.finish(child) == 125


def test_a_login_made_while_a_box_runs_is_not_seen(project, home, place):
    """With its refresh token it would be worth more than the box was given."""
    login = home / ".claude/.credentials.json"
    lib.make_file(home / ".claude/x", "")
    client = "#!/bin/sh\necho up\nread x\ncat ~/.claude/.credentials.json\n"
    tools = lib.make_file(place / "tools/claude", client, 0o755).parent
    env = {"PATH": f"{tools}:/usr/bin:/bin", "ANTHROPIC_API_KEY": "k"}
    child = lib.terminal([lib.program(), "-y"], env=env)
    child.expect_exact("up")
    lib.make_file(login, json.dumps({"claudeAiOauth": {"refreshToken": LEAK}}))
    child.sendline("")
    child.expect_exact("{}")
    assert LEAK.encode() not in child.before
    assert lib.finish(child) == 0
