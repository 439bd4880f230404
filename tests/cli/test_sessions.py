"""What boxes keep for a project: one after the other, many at once, killed at every step.

The verdict is on the host: the user's files, the instance's, and what the next box is shown.
"""

import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import stat
import subprocess
import textwrap
import time

import arena
import lib
import pytest
from session_user import CLIENT

# ---- one after the other ----------------------------------------------------------------

CHANGE = """
cd ~/.claude
echo changed >settings.json; echo new >new; rm -r old; mkdir old; echo 3 >old/third
rm CLAUDE.md; mkdir -p deep/er; echo x >deep/er/x; ln -s settings.json link; chmod 600 new
echo '{"line": 1}' >>history.jsonl; mkdir projects/p; echo said >projects/p/1.jsonl
"""
LOOK = "cd ~/.claude; find . -path './.c*.json' -o -print | sort; "
LOOK += "cat settings.json new old/* link history.jsonl projects/p/* 2>/dev/null; true\n"


def test_changes_are_kept_and_the_users_files_are_not_changed(user):
    first = lib.succeeded(user.run(CHANGE + LOOK))
    user.assert_tidy()
    assert b"third" in first and b"CLAUDE.md" not in first and b"first" not in first
    assert user.see(LOOK).encode() == first
    assert user.see(LOOK).encode() == first, "also when nothing was changed in between"
    user.assert_tidy()
    assert (user.part() / "own/history.jsonl").read_text() == '{"line": 1}\n'
    assert (user.part() / "own/projects/p/1.jsonl").read_text() == "said\n"


def test_overlays_take_no_devices_and_no_set_uid_programs(user):
    """As the host sees the mounts of a running box."""
    process = user.hold()
    mounts = pathlib.Path(f"/proc/{arena.in_box(process.pid)[1]}/mountinfo").read_text()
    user.release(process)
    overlays = [line.split() for line in mounts.splitlines() if " - overlay " in line]
    assert any(words[4].endswith("/.claude") for words in overlays), mounts
    for words in overlays:
        assert {"nosuid", "nodev"} <= set(words[5].split(",")), words


@pytest.mark.parametrize("own", [False, True], ids=["project", "own settings over it"])
def test_command_of_a_project_that_is_not_approved(user, own):
    """A value that is a command's output: nothing of a manifest runs before it is approved."""
    ran = user.place / "ran"
    tool = lib.make_file(user.place / "tool", f"#!/bin/sh\ntouch {ran}\necho x\n", mode=0o755)
    text = json.dumps({"mine": {"env": {"A": f"!{tool}"}}})
    lib.make_file(user.project / "carrel.json", text)
    if own:
        lib.succeeded(user.carrel("instances", "set", "model=opus", "env.B=1"))
    lib.failed_clearly(user.run("true\n"), "not approved")
    assert not ran.exists()
    approved = {"CARREL_TRUST": hashlib.sha256(text.encode()).hexdigest()}
    lib.succeeded(user.run("true\n", env=approved))
    assert ran.exists(), "the control: approved, it runs"


def test_what_the_user_changes_is_seen(user):
    """Unless the project has its own version of it."""
    user.see("echo mine >~/.claude/settings.json\n")
    user.file("settings.json", "later\n")
    user.file("CLAUDE.md", "later\n")
    user.file("added", "later\n")
    seen = user.see("cd ~/.claude; cat settings.json CLAUDE.md added\n")
    assert seen == "mine\nlater\nlater\n"


def test_what_box_and_user_have_both_changed_is_said(user):
    """Only what the user changed after the box, and not what every box gets anew."""
    said = b"a box changed it, then you did"
    user.see("cd ~/.claude; echo box | tee settings.json CLAUDE.md skills/one/SKILL.md\n")
    assert said not in user.run("true\n").stderr, "nothing has changed since"
    later = time.time() + 10  # two changes can fall into one tick of the clock
    os.utime(user.file("settings.json", "user\n"), (later, later))
    done = user.run("cat ~/.claude/settings.json; touch ~/.claude/.credentials.json\n")
    assert done.stdout == b"box\n"
    assert b"note: ~/.claude/settings.json: " + said in done.stderr, done.stderr
    os.utime(user.file("skills/one/SKILL.md", "user\n"), (later, later))
    (note,) = json.loads(lib.succeeded(user.carrel("plan", "--json")))["notices"]
    assert note.startswith("~/.claude/settings.json (and 1 more): ")
    for name in ("settings.json", "skills/one/SKILL.md"):
        lib.succeeded(user.carrel("instances", "drop", "-y", name))
    done = user.run("cd ~/.claude; cat settings.json CLAUDE.md skills/one/SKILL.md\n")
    assert done.stdout == b"user\nbox\nuser\n" and said not in done.stderr


def test_another_project_sees_nothing_of_it(user, place):
    other = lib.make_dir(place / "other")
    before = user.see(LOOK, cwd=other)
    user.see(CHANGE)
    assert user.see(LOOK, cwd=other) == before
    assert "third" in user.see(LOOK), "the control"


def test_two_worktrees_are_one_project(user, place):
    lib.git("worktree", "add", "-q", str(place / "tree"), cwd=user.project)
    user.see(CHANGE)
    assert user.see(LOOK, cwd=place / "tree") == user.see(LOOK)
    assert os.listdir(user.instance().parent) == [user.instance().name]
    plans = []
    for cwd in (user.project, place / "tree", user.project / "src"):
        for command in ((), ("--", "true")):
            done = user.carrel("plan", "--json", *command, cwd=cwd)
            plans.append(json.loads(lib.succeeded(done))["instance"])
    root = str(user.project)
    assert plans == [{"id": user.instance().name, "root": root}] * 6
    other = lib.make_dir(place / "other")
    elsewhere = json.loads(lib.succeeded(user.carrel("plan", "--json", cwd=other)))
    assert elsewhere["instance"]["root"] == str(other)


def test_a_configuration_that_is_a_link(user, place):
    """As those have it who keep their settings in a repository."""
    user.claude.rename(user.home / "dotfiles")
    user.claude.symlink_to("dotfiles")
    before = lib.snapshot(user.home / "dotfiles")
    assert "a skill" in user.see("cat ~/.claude/skills/one/SKILL.md; echo x >~/.claude/added\n")
    assert user.see("cat ~/.claude/added\n") == "x\n"
    assert lib.snapshot(user.home / "dotfiles") == before


def test_a_user_without_configuration(user):
    lib.remove(user.claude)
    (user.home / ".claude.json").unlink()
    lib.succeeded(user.carrel("plan"))
    assert "projects" in user.see("ls ~/.claude; echo x >~/.claude/added\n")
    assert user.see("cat ~/.claude/added\n") == "x\n"
    assert not user.claude.exists()
    assert user.names("sessions") == []


def test_an_instance_that_hides_less(user):
    """Of a version that did not know of some traces: they are hidden from the next box on."""
    user.see("true\n")
    hiding = user.part() / "hiding"
    names = set(os.listdir(hiding))
    assert "daemon" in names
    for name in ("daemon", "shares", "traces"):
        (hiding / name).unlink()
    user.file("daemon/control.key", "a secret\n")
    assert "daemon" not in user.see("ls ~/.claude\n")
    assert set(os.listdir(hiding)) == names
    assert "skills" in user.see("ls ~/.claude\n"), "the control"


def test_files_of_another_group(user):
    """As of a user who is in several: seen, said, not writable, replaceable; nothing lost."""
    if not lib.ROOT:
        pytest.skip("needs root")
    foreign = ("settings.json", "skills", "skills/one/SKILL.md", "old/first")
    for name in foreign:
        os.chown(user.claude / name, lib.UID, 4321)
    user.before = lib.snapshot(user.claude)
    done = user.run("cat ~/.claude/settings.json ~/.claude/skills/one/SKILL.md\n")
    assert lib.succeeded(done).decode() == '{"model": "of-the-user"}\na skill\n'
    said = done.stderr.decode()
    assert f"{user.claude}/s" in said and "and 1 more there are another user's or group's" in said
    tries = ["echo x >settings.json", "echo x >skills/new", "echo x >>old/first"]
    tries = "; ".join(f"({word}) 2>/dev/null || echo no" for word in tries)
    assert user.see(f"cd ~/.claude; {tries}; echo 3 >old/third\n") == "no\nno\nno\n"
    look = "cd ~/.claude; cat settings.json skills/one/SKILL.md old/*; ls skills\n"
    assert user.see(look) == '{"model": "of-the-user"}\na skill\n1\n2\n3\none\n'
    # As clients write their settings: a new file in its place. Or it is removed.
    user.see("cd ~/.claude; echo new >.s; mv .s settings.json; rm old/first\n")
    assert user.see(look) == "new\na skill\n2\n3\none\n"
    user.assert_tidy()
    for name in foreign:
        lib.give(user.claude / name)
    user.before = lib.snapshot(user.claude)
    done = user.run("cd ~/.claude; echo x >skills/new; ls skills\n")
    assert lib.succeeded(done) == b"new\none\n" and b"group" not in done.stderr
    user.assert_tidy()


# Where a client keeps what is configured, and a file of what is the project's alone.
DIRECT = {
    "claude": (".claude", ".claude/history.jsonl"),
    "codex": (".codex", ".codex/history.jsonl"),
    "gemini": (".gemini", ".gemini/tmp/said"),
    "opencode": (".config/opencode", ".local/share/opencode/said"),
}


@pytest.mark.parametrize("name", DIRECT)
def test_direct(user, name):
    """The user's real directory, with a warning at each start; what is said stays private."""
    part, own = DIRECT[name]
    if name != "claude":
        lib.make_file(user.bin / name, CLIENT, mode=0o755)
    mine = user.home / ".config/carrel/carrel.json"
    lib.make_file(user.home / part / "there", "of the user\n")
    script = f"cat ~/{part}/there; echo new >~/{part}/added; echo of-the-project >~/{own}\n"
    for kind in ("mine", "direct"):
        lib.make_file(mine, json.dumps({"mine": {"harness": name, "home": kind}}))
        done = user.run(script)
        assert lib.succeeded(done) == b"of the user\n"
        assert (b'home "direct"' in done.stderr) == (kind == "direct"), done.stderr
        assert (user.home / part / "added").exists() == (kind == "direct")
        assert not holders(user.home / part, b"of-the-project")
        assert holders(user.instance() / name, b"of-the-project")


# ---- a dry run --------------------------------------------------------------------------


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_a_dry_run_makes_nothing(user, used):
    if used:
        user.see(CHANGE)
    before = lib.snapshot(user.place)
    for words in (("plan",), ("plan", "--json"), ("run", "-n"), ("run", "-y", "-n", "--json")):
        lib.succeeded(user.carrel(*words))
    lib.succeeded(user.carrel("run", "-y", env={"CARREL_DRY_RUN": "1"}))
    lib.succeeded(user.carrel("plan", "--", "true"))
    assert lib.snapshot(user.place) == before
    user.see("true\n")
    assert used or lib.snapshot(user.place) != before, "the control"


def test_a_no_makes_no_session(user):
    """Nor does it lose anything: what is shown before the question makes nothing."""
    user.see(CHANGE)
    child = lib.terminal([lib.program(), "run"], cwd=user.project, env=user.env())
    child.expect_exact("Start this box? [y/N/?] ")
    user.assert_tidy()
    child.sendline("n")
    assert lib.finish(child) == 125
    user.assert_tidy()
    assert "third" in user.see(LOOK)


# ---- many at once -----------------------------------------------------------------------

# Each begins when all are there. A line is one write, as clients append.
WRITER = """
import json, os, pathlib, sys, time

who, rounds = int(sys.argv[1]), int(sys.argv[2])
home = pathlib.Path.home() / ".claude"


def append(path, line):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    data = (json.dumps(line) + "\\n").encode()
    assert os.write(fd, data) == len(data)
    os.close(fd)


open(f"ready-{who}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for i in range(rounds):
    append(home / "history.jsonl", {"who": who, "i": i, "filler": "h" * (i * 37 % 900)})
    append(home / "projects" / "x.jsonl", {"who": who, "i": i, "filler": "p" * 3000})
    new = home / f"settings.json.{who}"
    new.write_text(json.dumps({"who": who, "i": i, "filler": "s" * 20000}))
    new.rename(home / "settings.json")
    (home / "many").mkdir(exist_ok=True)
    (home / "many" / f"{who}-{i}").write_text(f"{who} {i}")
    if i % 2:
        (home / "many" / f"{who}-{i - 1}").unlink()
    (home / "old" / "first").unlink(missing_ok=True)
    (home / "old" / "first").write_text(f"{who}")
(home / "old" / "second").unlink(missing_ok=True)
open(f"done-{who}", "w").close()
"""


def write_at_once(user, count, rounds):
    """Boxes that write at the same time; what carrel said."""
    lib.make_file(user.project / "writer.py", textwrap.dedent(WRITER))
    processes = [
        user.start(f"exec {lib.PYTHON} writer.py {who} {rounds}\n") for who in range(count)
    ]

    def all_ready():
        return all((user.project / f"ready-{who}").exists() for who in range(count))

    lib.wait_for(all_ready, "all the boxes")
    assert len(user.names("sessions")) == count
    lib.make_file(user.project / "go")
    for process in processes:
        out, err = process.communicate(timeout=lib.TIMEOUT)
        assert process.returncode == 0, (out, err)


def lines_of(path):
    return [(line["who"], line["i"]) for line in map(json.loads, path.read_text().splitlines())]


@pytest.mark.parametrize("count", [2, 20])
def test_many_write_at_once(user, count, rounds=50):
    """No line is lost or torn, files that are replaced are whole, all ends in one layer."""
    write_at_once(user, count, rounds)
    user.assert_tidy()
    every = sorted((who, i) for who in range(count) for i in range(rounds))
    for name in ("history.jsonl", "projects/x.jsonl"):
        found = lines_of(user.part() / "own" / name)
        assert sorted(found) == every
        for who in range(count):
            assert [i for w, i in found if w == who] == list(range(rounds))
    (layer,) = (user.part() / "layers").iterdir()
    settings = json.loads((layer / "settings.json").read_text())
    assert settings["i"] == rounds - 1 and settings["filler"] == "s" * 20000
    kept = sorted(f"{who}-{i}" for who in range(count) for i in range(1, rounds, 2))
    seen = user.see("cd ~/.claude; ls many; echo -; ls old; echo -; ls | grep settings\n")
    many, old, top = seen.split("-\n")[0], *[p.split() for p in seen.rsplit("-\n", 2)[1:]]
    assert sorted(many.split()) == kept
    assert old == ["first"] and top == ["settings.json"]


CLASHES = {
    "removed and added to": ("rm -r old", "echo 3 >old/third"),
    "added to and removed": ("echo 3 >old/third", "rm -r old"),
    "replaced by a file": ("rm -r old; echo file >old", "echo 3 >old/third"),
    "replaced by a directory": ("rm CLAUDE.md; mkdir CLAUDE.md", "echo 2 >CLAUDE.md"),
    "made twice": ("mkdir made; echo 1 >made/one", "mkdir made; echo 2 >made/two"),
    "remade and added to": ("rm -r old; mkdir old; echo 1 >old/one", "echo 3 >old/third"),
    "removed twice": ("rm -r old settings.json", "rm -r old settings.json"),
}


@pytest.mark.parametrize("one, two", CLASHES.values(), ids=CLASHES)
def test_merging_changes_nothing_that_is_seen(user, one, two):
    """Two boxes change the same directory; layers that become one show what they showed."""
    first = user.hold(f"cd ~/.claude; {one}; cd - >/dev/null", name="first")
    second = user.hold(f"cd ~/.claude; {two}; cd - >/dev/null", name="second")
    user.release(first, name="first")
    keeper = user.hold(name="keeper")  # of the first one's layer
    user.release(second, name="second")
    names = "old CLAUDE.md settings.json $(ls -d made 2>/dev/null)"
    look = f"cd ~/.claude; find {names} 2>/dev/null | sort; "
    look += f"cat $(find {names} -type f 2>/dev/null | sort) </dev/null\n"
    during = user.see(look)
    assert len(user.names("layers")) > 1, "nothing was merged yet"
    user.release(keeper, name="keeper")
    assert len(user.names("layers")) == 1
    assert user.see(look) == during
    user.assert_tidy()


def test_many_sessions_beside_one_that_lasts(user, count=80):
    """A box that stays open all day must not keep others from starting."""
    process = user.hold()
    for i in range(count):
        done = user.run(f"echo {i} >~/.claude/n-{i}; ls ~/.claude | grep -c ^n-\n")
        assert lib.succeeded(done) == f"{i + 1}\n".encode(), i
    user.release(process)
    user.assert_tidy()
    assert user.see("ls ~/.claude | grep -c ^n-\n") == f"{count}\n"


def test_a_running_box_keeps_what_it_sees(user):
    """Others end, and layers are only merged when nobody looks at them."""
    user.see("echo 1 >~/.claude/one\n")
    process = user.hold("cat ~/.claude/one >before; ls ~/.claude >names")
    user.see("rm ~/.claude/one; echo 2 >~/.claude/two\n")
    user.see("echo 3 >~/.claude/three\n")
    assert len(user.names("layers")) > 1, "nothing was merged yet"
    user.release(process)
    user.assert_tidy()
    seen = user.see("cd ~/.claude; ls -d t*; [ -e one ] || cat two three\n")
    assert seen == "three\ntwo\n2\n3\n"


# ---- removed meanwhile ------------------------------------------------------------------


def test_gc_beside_a_box_that_runs(user):
    """Its root is gone, and it is kept all the same, until the box has ended."""
    process = user.hold("echo 1 >~/.claude/one")
    moved = user.project.rename(user.place / "moved")
    lib.make_file(user.place / "here")
    before = {n: e for n, e in lib.snapshot(user.instance()).items() if b"upper" not in n}
    done = user.carrel("gc", cwd=user.place)
    assert lib.succeeded(done) == b"0 removed (0), 1 kept\n" and b"a box runs in it" in done.stderr
    lib.failed_clearly(user.carrel("instances", "reset", "-y", user.instance().name,
                                   cwd=user.place), "runs")  # fmt: skip
    after = {n: e for n, e in lib.snapshot(user.instance()).items() if b"upper" not in n}
    assert after == before
    moved.rename(user.project)
    user.release(process)
    assert user.see("cat ~/.claude/one\n") == "1\n"
    user.project.rename(moved)
    assert lib.succeeded(user.carrel("gc", cwd=user.place)).startswith(b"1 removed")
    assert not user.instance().exists()


def test_a_reset_that_comes_late(user):
    """Another was faster, and a box has a new instance of that name: it is not touched."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    reset = ["instances", "reset", "-y"]
    lib.succeeded(user.carrel("instances", "set", "model=x"))
    trace = lib.make_file(user.place / "trace")
    late = ["strace", "-o", trace, "-e", "trace=flock", "-e", "inject=flock:delay_enter=1s"]
    child = lib.terminal([*late, lib.program(), *reset], cwd=user.project, env=user.env())
    lib.wait_for(lambda: "flock" in trace.read_text(), "the lock")
    lib.succeeded(user.carrel(*reset))
    box = user.hold("echo 1 >~/.claude/one")
    assert lib.finish(child) == 0
    assert user.instance().exists()
    user.release(box)
    assert user.see("cat ~/.claude/one\n") == "1\n"


def test_starts_while_others_reset(user):
    """A box has a whole instance, and the reset is done or refused."""
    known = ("removed", "runs", "in use", "nothing is kept", "has no project-root")
    said = collections.Counter()
    for i in range(40):
        many = [lib.start("instances", "reset", "-y", cwd=user.project, env=user.env())
                for _ in range(2)]  # fmt: skip
        look = f"echo {i} >~/.claude/n; cat ~/.claude/n ~/.claude/skills/one/SKILL.md\n"
        assert user.see(look) == f"{i}\na skill\n"
        for process in many:
            line = b"".join(process.communicate(timeout=lib.TIMEOUT)).decode()
            (word,) = [word for word in known if word in line.splitlines()[0]] or [line]
            said[word] += 1
    assert set(said) <= set(known) and said["removed"], said
    user.see(CHANGE)
    user.assert_tidy()


# ---- what a box can do to its own layer -------------------------------------------------

HARM = {
    "its top cannot be read": "chmod 000 ~/.claude",
    "its top cannot be written": "chmod 500 ~/.claude",
    "a directory cannot be read": "cd ~/.claude; mkdir d; echo x >d/x; chmod 000 d",
    "a file cannot be read": "chmod 000 ~/.claude/kept",
    "links to the host": "cd ~/.claude; ln -s / root; ln -s ../../../../../project-root up",
    "a link for a directory": "rm -r ~/.claude/skills; ln -s /etc ~/.claude/skills",
    "a pipe": "mkfifo ~/.claude/pipe ~/.claude/history.db",
    "deep": "cd ~/.claude; for i in $(seq 300); do mkdir d && cd d; done; echo x >x",
    "files put there for it": "cd ~/.claude; rm .c*.json; mkdir .claude.json",
    "links for files put there": "cd ~/.claude; ln -sf CLAUDE.md .credentials.json",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_box_cannot_spoil_the_next(user, harm):
    """Nothing outside is changed, what else was written is kept, and a next box starts."""
    user.see("echo before >~/.claude/earlier\n")
    outside = lib.snapshot(user.project)
    lib.succeeded(user.run(f"echo kept >~/.claude/kept; {harm}\n"))
    for _ in range(2):
        user.assert_tidy()
        look = "ls ~/.claude | grep -x kept; cat ~/.claude/earlier\n"
        assert user.see(look) == "kept\nbefore\n"
    assert lib.snapshot(user.project) == outside


def test_a_deep_tree_with_names_in_the_way(user):
    """To remove it, what is deep in it is moved to its top; no box can know under what name."""
    taken = "for i in $(seq 0 999); do mkdir lifted-$i; : >lifted-$i/x; done"
    deep = "mkdir a; cd a; for i in $(seq 150); do mkdir d; cd d; done"
    user.see(f"mkdir ~/.claude/tree; cd ~/.claude/tree; {taken}; {deep}\n")
    done = user.run("cd ~/.claude; rm -r tree; echo 1 >one\n")
    assert lib.succeeded(done) == b"" and b"not kept" not in done.stderr, done
    user.assert_tidy()
    assert user.see("cd ~/.claude; [ -e tree ] || cat one\n") == "1\n"


# ---- killed -----------------------------------------------------------------------------


def engine_steps():
    done = subprocess.run(
        [lib.program(), "check", "--json"], stdout=subprocess.PIPE, check=False, timeout=60
    )
    try:
        return json.loads(done.stdout)["steps"]
    except (ValueError, KeyError, TypeError):
        return []


def pytest_generate_tests(metafunc):
    if "step" in metafunc.fixturenames:
        metafunc.parametrize("step", engine_steps())


def test_steps_are_listed():
    assert len(engine_steps()) >= 5


def killed(process):
    process.kill()
    process.communicate(timeout=lib.TIMEOUT)


def test_killed_at_a_step(user, step):
    """The next start works, and what earlier sessions wrote is there."""
    user.see("echo 1 >~/.claude/one\n")
    process = user.start("echo 2 >~/.claude/two\n", env={"CARREL_TEST_STOP": step})
    lib.wait_for(lambda: user.names("sessions"), "the session")
    time.sleep(0.1)
    assert process.poll() is None, process.communicate()
    killed(process)
    assert len(user.names("sessions")) == 1, "this test has an object"
    assert user.see("cat ~/.claude/one\n") == "1\n"
    assert "two" not in user.see("ls ~/.claude\n")
    user.assert_tidy()


WHO = ["supervisor", "init", "command"]


@pytest.mark.parametrize("who", WHO)
def test_killed_while_running(user, who):
    """What the box had written is kept, and a next session starts at once."""
    script = "echo 1 >~/.claude/one; rm -r ~/.claude/old; echo l >>~/.claude/history.jsonl"
    process = user.hold(script)
    init, command = arena.in_box(process.pid)[:2]
    os.kill({"supervisor": process.pid, "init": init, "command": command}[who], signal.SIGKILL)
    process.communicate(timeout=lib.TIMEOUT)
    assert user.see("cd ~/.claude; [ -e old ] || cat one history.jsonl\n") == "1\nl\n"
    user.assert_tidy()


def test_killed_at_once_by_group(user):
    """With everything else of its group, many times, while it writes."""
    for i in range(5):
        process = user.hold(f"echo {i} >~/.claude/n-{i}", name=f"held-{i}")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=lib.TIMEOUT)
    assert user.see("cat ~/.claude/n-*\n") == "0\n1\n2\n3\n4\n"
    user.assert_tidy()


def test_a_login_is_not_kept_after_a_kill(user):
    """A token that was put there for one box is not the next one's, which may be newer."""
    killed(user.hold("cat ~/.claude/.credentials.json >login; echo x >~/.claude/kept"))
    assert "access-of-the-user" in (user.project / "login").read_text()
    (user.project / "login").unlink()
    user.login("a-later-token")
    lib.make_file(user.home / ".claude.json", '{"theme": "light"}\n', mode=0o600)
    seen = user.see("cd ~/.claude; cat .credentials.json .claude.json kept\n")
    assert "a-later-token" in seen and "light" in seen and seen.endswith("x\n")
    user.assert_tidy()
    assert not holders(user.state, b"access-of-the-user")
    assert not holders(user.state, b"a-later-token")
    assert holders(user.claude, b"a-later-token"), "the search can find"


def holders(top, word):
    return [p for p in pathlib.Path(top).rglob("*") if p.is_file() and word in p.read_bytes()]


def test_a_login_is_never_on_the_disk(user):
    """Neither while the box runs, nor after it opened the file to write and left it as it was."""
    process = user.hold("(cd ~/.claude; : >>.credentials.json; : >>.claude.json; cat .cred* >&2)")
    upper = next((user.part() / "sessions").glob("0*/upper"))
    assert {".credentials.json", ".claude.json"} <= set(os.listdir(upper)), "it copies up"
    assert b"access-of-the-user" in user.release(process)
    assert not holders(user.state, b"access-of-the-user")
    user.assert_tidy(layers=0)
    process = user.hold()
    assert not holders(user.state, b"access-of-the-user")
    user.release(process)


# ---- what a box leaves for the next ------------------------------------------------------


def is_gone(rest):
    """Has the init of that box let go of its mounts? Nobody need have waited for it."""
    try:
        stat = pathlib.Path("/proc", rest.name.removeprefix("rest-"), "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(")", 1)[1][1] == "Z"


def rested(user):
    """The one session at rest, when nothing of its box is left."""
    one, = user.at_rest()
    lib.wait_for(lambda: is_gone(one), "the end of the box's init")
    return one


def test_the_next_box_takes_what_the_last_left(user):
    """But for the upper directory, of which somebody may have a descriptor."""
    user.see("true\n")
    one = rested(user)
    assert set(os.listdir(one)) == {"upper", "work", "begun"} and os.listdir(one / "upper") == []
    inodes = [(one / name).lstat().st_ino for name in ("work", "begun")]
    user.see("true\n")
    one = rested(user)
    assert [(one / name).lstat().st_ino for name in ("work", "begun")] == inodes
    user.see("echo x >~/.claude/x\n")
    one = rested(user)
    assert (one / "work").stat().st_ino == inodes[0]
    assert os.listdir(one / "upper") == [] and not os.path.lexists(one / "begun")
    assert user.see("cat ~/.claude/x\n") == "x\n"
    user.assert_tidy()


SEND = """python3 -c '
import os, socket
with socket.socket(socket.AF_UNIX) as s:
    s.connect("door")
    socket.send_fds(s, [b"x"], [os.open(os.path.expanduser("~/.claude"), os.O_RDONLY)])
    s.recv(1)
'
"""
TAKE = """python3 -c '
import os, socket, time
with socket.socket(socket.AF_UNIX) as s:
    s.bind("door")
    s.listen()
    open("listens", "w").close()
    peer, _ = s.accept()
    with peer:
        _, fds, *_ = socket.recv_fds(peer, 1, 1)
        print(sorted(os.listdir(fds[0])), flush=True)
        peer.send(b"x")
while not os.path.exists("runs"):
    time.sleep(0.02)
print("secret" in os.listdir(fds[0]))
for change in (lambda: os.fchmod(fds[0], 0o777), lambda: os.setxattr(fds[0], "user.x", b"y")):
    try:
        change()
    except OSError:
        pass
'
touch tried
"""


def test_a_descriptor_of_the_last_box(user):
    """Sent to another box of the project, it must not be one of the next box's directory."""
    taker = user.start(TAKE)
    lib.wait_for((user.project / "listens").exists, "the one who takes")
    user.see(SEND)
    rested(user)
    last = user.hold("echo x >~/.claude/secret", name="runs")
    lib.wait_for((user.project / "tried").exists, "what it tries")
    out, err = taker.communicate(timeout=lib.TIMEOUT)
    first, second = out.decode().splitlines()
    assert "settings.json" in first, "it has a descriptor that works"
    assert second == "False", (out, err)
    upper = next(p for p in (user.part() / "sessions").glob("0*/upper") if (p / "secret").exists())
    assert upper.stat().st_mode & 0o7777 == 0o700 and "user.x" not in os.listxattr(upper)
    user.release(last, name="runs")


def test_another_login_than_the_last_had(user):
    user.see("true\n")
    begun = os.readlink(rested(user) / "begun")
    user.login("a-later-token")
    assert "a-later-token" in user.see("cat ~/.claude/.credentials.json\n")
    later = os.readlink(rested(user) / "begun")
    assert later != begun and later.splitlines()[0] == begun.splitlines()[0]


@pytest.mark.parametrize("change", [
    "chmod 777 ~/.claude",
    "chmod 0 ~/.claude",
    "python3 -c 'import os; os.setxattr(os.path.expanduser(\"~/.claude\"), \"user.x\", b\"y\")'",
])  # fmt: skip
def test_what_a_box_did_to_the_directory_is_not_left(user, change):
    user.see(f"{change}\n")
    upper = rested(user) / "upper"
    assert upper.stat().st_mode & 0o7777 == 0o700 and os.listxattr(upper) == []
    assert user.see("stat -c %a ~/.claude\n") == "700\n"
    user.assert_tidy(layers=0)


def test_the_layers_that_the_last_box_lay_on_are_not_said_again(user):
    """What a session says of the layers in use is true from the moment it is there."""
    user.see("true\n")
    assert os.readlink(rested(user) / "begun").startswith("on \n")
    number = user.part() / "layers" / "000001"
    lib.make_file(number / "x", "x\n")
    process = user.start("cat ~/.claude/x\n", env={"CARREL_TEST_STOP": "places"})
    lib.wait_for(lambda: user.names("sessions"), "the session")
    begun = user.part() / "sessions" / user.names("sessions")[0] / "begun"
    lib.wait_for(lambda: os.path.lexists(begun), "its notes")
    assert os.readlink(begun).startswith("on 000001\n")
    killed(process)
    assert user.see("cat ~/.claude/x\n") == "x\n"


def test_one_that_still_ends_is_not_taken(user):
    """By the process id in its name; overlayfs would have it in use twice."""
    user.see("true\n")
    one = rested(user)
    held = one.rename(one.with_name(f"rest-{os.getpid()}"))
    user.see("true\n")
    assert held in user.at_rest() and len(user.at_rest()) == 2
    held.rename(one)
    lib.wait_for(lambda: all(map(is_gone, user.at_rest())), "the end of both")
    user.see("true\n")
    assert len(user.at_rest()) == 1, "more than one is of no use"


@pytest.mark.parametrize("lost", ["upper", "work", "begun"])
def test_one_that_lacks_something(user, lost):
    user.see("true\n")
    one = rested(user)
    (one / lost).unlink() if lost == "begun" else lib.remove(one / lost)
    assert "first" in user.see("ls ~/.claude/old\n")
    user.assert_tidy(layers=0)


# What changes the state directory. strace counts each of them by itself.
CHANGES = (
    "mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,mknod,mknodat,fsync,flock,"
    "fchmod,fchmodat,chmod,write,symlink,symlinkat"
).split(",")


def killed_before(call, number, argv):
    """argv such that it is killed just before its nth such call; without what it starts."""
    inject = f"inject={call}:signal=KILL:when={number}"
    return ["strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject, *argv]


def change_and_kill(user, call, number, count):
    """Was carrel killed, and had the box written?"""
    # Two layers, so that there is something to merge.
    keeper = user.hold(name=f"k{count}")
    remake = "cd ~/.claude; rm -rf old; mkdir old; echo"
    user.see(f"{remake} {count} >old/a; echo 1 >n-{count}\n")
    user.release(keeper, name=f"k{count}")
    script = f"{remake} {count} >old/b; echo 2 >w-{count}\n"
    script += f"cd - >/dev/null; touch done-{count}\n"
    argv = killed_before(call, number, [lib.program(), "run", "-y"])
    done = lib.execute(argv, cwd=user.project, env=user.env(), input=script.encode())
    assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done
    return done.returncode != 0, (user.project / f"done-{count}").exists()


def test_killed_before_each_change(user):
    """Before the first call of each kind, the second, until it ends: begin, end and merge."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    count, kills, written = 0, collections.Counter(), []
    for call in CHANGES:
        killed = True
        while killed:
            count += 1
            killed, wrote = change_and_kill(user, call, kills[call] + 1, count)
            kills[call] += killed
            written += [count] * wrote
            seen = user.see("cd ~/.claude; echo n-* w-* old/*; cat old/* .claude.json\n").split()
            where = (call, kills, seen)
            assert '"theme":' in seen, where
            assert {f"n-{i}" for i in range(1, count + 1)} <= set(seen), where
            assert {f"w-{i}" for i in written} <= set(seen), where
            assert f"old/{'b' if wrote else 'a'}" in seen and str(count) in seen, where
            user.assert_tidy()
    assert kills.total() > 30 and len(kills) > 5, kills
    assert 0 < len(written) - len(CHANGES) < kills.total(), (kills, written)


def test_killed_at_any_moment(user):
    """After a random time, many times over: start, run and end; what was acknowledged stays."""
    chance = random.Random(1)
    acknowledged, ends = [], 0
    for i in range(60):
        ack = user.project / f"ack-{i}"
        process = user.start(f"echo {i} >~/.claude/n-{i}; touch ack-{i}; sleep 0.00{i % 10}\n")
        if i % 2:
            lib.wait_for(lambda: ack.exists() or process.poll() is not None, "the box")
            assert ack.exists(), (process.returncode, process.communicate())
        time.sleep(chance.uniform(0, 0.02))
        killed(process)
        ends += process.returncode == -signal.SIGKILL
        if ack.exists():
            acknowledged.append(i)
    seen = user.see("cat ~/.claude/n-*\n").split()
    assert set(map(str, acknowledged)) <= set(seen)
    assert ends > 5 and len(acknowledged) > 20, (ends, acknowledged)
    user.assert_tidy()
