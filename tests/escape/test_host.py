"""Attacks on the person at the host: what a box, a name or an argument says on the terminal.

Names come from a hostile repository and go to a terminal, to JSON and to a host name. None
of them may carry control characters there, and each test first proves that the name is real.
"""

import json
import os
import pathlib
import re
import subprocess
import time

import arena
import lib
import pytest
from arena import inside, outside

pytestmark = pytest.mark.usefixtures("tool")

# A title, a colour, a bell, a carriage return, a newline with a forged line, an 8-bit CSI,
# its UTF-8 form, a right-to-left override, a backspace, DEL.
HOSTILE = {
    "escape": b"\x1b]0;pwned\x07\x1b[31m",
    "carriage return": b"a\rcarrel: all is well",
    "newline": b"a\ncarrel: all is well",
    "8-bit": b"\x9b31m\x90",
    "C1 in UTF-8": b"\xc2\x9b31m",
    "backspace": b"abc\x08\x08\x08\x7f",
    "bidi": "a\u202egpj\u2066".encode(),
}
NAMES = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
RAW = re.compile(
    rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\x9f]"
    rb"|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)


def assert_clean(output, forged=b"\ncarrel: all is well"):
    """Nothing a terminal obeys, and no line that only looks like one of carrel's."""
    assert not RAW.search(output), output
    assert forged not in b"\n" + output, output


@NAMES
def test_name_of_the_workspace(place, project, name):
    """A repository cloned to a hostile name: plan, JSON, errors and the box's name."""
    path = os.path.join(os.fsencode(place), name)
    os.rename(project, path)
    opts = ["--workspace", path]
    for words in (["plan", *opts, "--", "true"], ["run", "-n", *opts, "--", "true"]):
        done = lib.carrel(*words, cwd=place)
        assert done.returncode == 0, done
        assert_clean(done.stdout + done.stderr)
    document = json.loads(lib.carrel("plan", "--json", *opts, "--", "true", cwd=place).stdout)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", document["name"]), document["name"]
    done = lib.box("./attack", "uids", opts=opts, cwd=path)
    assert done.stdout == f"ok {lib.UID} {lib.UID}\n".encode(), done
    assert_clean(done.stderr)
    done = lib.carrel("plan", "--workspace", path + b"-none", "--", "true", cwd=place)
    assert done.returncode == 125 and b"none" in done.stderr
    assert_clean(done.stdout + done.stderr)


@NAMES
def test_name_on_a_terminal(place, project, name):
    """The same on a terminal, where carrel may use colours, but not the name."""
    path = os.path.join(os.fsencode(place), name)
    os.rename(project, path)
    words = ["plan", "--workspace", os.fsdecode(path), "--", "true"]
    child = lib.terminal([lib.program(), *words], cwd=place)
    child.expect(lib.pexpect.EOF)
    seen = re.sub(rb"\x1b\[[0-9;]*m", b"", child.before).replace(b"\r\n", b"\n")
    assert b"attack" in seen or len(seen) > 100
    assert b"\x1b[31m" not in child.before or name != HOSTILE["escape"]
    assert_clean(seen)


@NAMES
@pytest.mark.parametrize(
    "where", ["command", "mount", "option", "limit", "env", "protect", "name"]
)
def test_words_of_the_command_line(name, where):
    """What an error repeats of the command line is made harmless first."""
    words = {
        "command": ["run", "-y", "--", b"/none/" + name],
        "mount": ["run", "-y", "--mount", b"/none/" + name, "--", "true"],
        "option": ["run", b"--" + name],
        "limit": ["run", "-y", "--limit", name, "--", "true"],
        "env": ["run", "-y", "--env", name, "--", "true"],
        "protect": ["plan", "--protect", b"x/" + name, "--", name],
        "name": ["run", "-y", "--name", name, "--", "true"],
    }[where]
    done = lib.carrel(*words)
    assert_clean(done.stdout + done.stderr)
    assert done.returncode == {"command": 127, "protect": 0}.get(where, 125), done
    assert done.stdout + done.stderr


def reported(done, path):
    """Does the report name this file, or a directory on the way to it?"""
    names = [path, *map(str, pathlib.PurePath(path).parents)][:-1]
    return any(f"  {name}  (".encode() in done.stderr for name in names)


@NAMES
def test_names_in_the_report_of_planted_files(project, name):
    """What the box left is told after the run, by names that the box has chosen."""
    safe = name.replace(b"/", b"_")
    os.mkdir(os.path.join(os.fsencode(project), safe))
    lib.give(os.path.join(os.fsencode(project), safe))
    config = os.path.join(safe, b".git/config")
    steps = [b"mkdir", safe + b"/.git", b",", b"mkdir", safe + b"/.git/hooks", b","]
    steps += [b"put", safe + b"/.git/hooks/post-checkout", b"EVIL", b","]
    steps += [b"put", config, b"EVIL"]
    done = lib.box("./attack", *steps)
    assert os.path.exists(os.path.join(os.fsencode(project), config)), done
    assert b"/.git  (" in done.stderr
    assert_clean(done.stderr)


@NAMES
def test_text_of_a_git_file(project, place, name):
    """A repository's own `.git` file says where its git directory is, in hostile words."""
    subprocess.run(["rm", "-rf", project / ".git"], check=True)
    lib.make_file(project / ".git", b"gitdir: /none/" + name + b"\n")
    for words in (["plan", "--", "true"], ["run", "-y", "--", "./attack", "uids"]):
        done = lib.carrel(*words)
        assert_clean(done.stdout + done.stderr)
        assert done.returncode == 0, done


PLANTED = {
    "hook of a nested repository": "a/.git/hooks/post-checkout",
    "config of a nested repository": "a/.git/config",
    "nested .envrc": "a/.envrc",
    "husky": ".husky/pre-commit",
    "below a directory that looks like a repository": "x.git/a/.git/config",
    "below node_modules": "node_modules/a/.git/config",
    "where cargo comes from": "rust-toolchain.toml",
    "what a language server runs": "a/hie.yaml",
    "what a server for Python runs": "a/.ropeproject/config.py",
    "what an interpreter runs": ".Rprofile",
}


@pytest.mark.parametrize("path", PLANTED.values(), ids=PLANTED)
def test_planted_files_are_reported(project, path):
    """Files that host tools would execute, made or changed by the box, and only those."""
    parents = [str(p) for p in reversed(pathlib.PurePath(path).parents)][1:]
    make = [*[f"mkdir {p}" for p in parents], f"put {path} EVIL"]
    done = lib.box("./attack", *arena.words(make))
    assert (project / path).read_text() == "EVIL"
    assert reported(done, path), done
    time.sleep(0.05)  # times in the file system advance in ticks
    done = lib.box("./attack", "put", "ordinary", "text")
    assert (project / "ordinary").exists() and not done.stderr, done.stderr
    done = lib.box("./attack", "put", path, "EVIL, but different")
    changed = (project / path).read_text() != "EVIL"
    assert changed == reported(done, path), done


def test_planted_file_dressed_as_a_stand_in(project):
    """What stands in for absent names is not reported; a file that looks like it must be."""
    lib.make_dir(project / "a")
    done = lib.box("./attack", *arena.words(["put a/.envrc EVIL", "chmod a/.envrc 1444"]))
    assert (project / "a/.envrc").read_text() == "EVIL"
    assert reported(done, "a/.envrc"), done


def test_nested_repository_that_the_hosts_git_would_enter(project, place):
    """A gitlink in the index makes `git status` run the nested repository's configuration."""
    marker = place / "executed"
    build = (
        "git init -q nested && git -C nested -c user.name=a -c user.email=a@b "
        "commit -q --allow-empty -m x && git add nested && "
        f"git -C nested config core.fsmonitor 'touch {marker}; false'"
    )
    done = lib.box("/bin/sh", "-c", build)
    assert done.returncode == 0, done
    assert reported(done, "nested/.git/config"), done.stderr
    lib.git("status", cwd=project, check=False)
    assert marker.exists(), "the threat that is reported is no threat"


def test_repository_made_by_the_box(project, place):
    """There was no .git to protect: one that the box makes is reported."""
    subprocess.run(["rm", "-rf", project / ".git"], check=True)
    marker = place / "executed"
    evil = f"git init -q . && git config core.fsmonitor 'touch {marker}; false'"
    done = lib.box("/bin/sh", "-c", evil)
    assert done.returncode == 0, done
    lib.git("status", cwd=project, check=False)
    assert marker.exists() and reported(done, ".git/config"), done.stderr


@pytest.mark.parametrize(
    "key, value, path",
    [
        ("include.path", "../shared.cfg", "shared.cfg"),
        ("core.hooksPath", "tools/hooks", "tools/hooks/pre-commit"),
    ],
    ids=["include", "hooks"],
)
def test_configuration_that_leads_into_the_workspace(project, key, value, path):
    """The repository's configuration names files of the workspace: protected or reported."""
    lib.make_file(project / path, "")
    lib.git("config", key, value, cwd=project)
    done = lib.box("./attack", "put", path, "EVIL")
    assert (project / path).read_text() == "" or reported(done, path), done
    outside(f"put {path} EVIL")
    assert (project / path).read_text() == "EVIL"


INSIDE = ["hooks/pre-commit", "config", "config.worktree", "commondir", "worktrees/tree/commondir",
          "worktrees/tree/gitdir"]  # fmt: skip


@pytest.mark.parametrize("path", INSIDE)
@pytest.mark.parametrize("how", ["file", "link"])
def test_a_git_directory_of_another_name_in_the_workspace(project, how, path):
    """`.git` leads to .bare beside it, as many keep their worktrees: git outside obeys that one."""
    lib.git("config", "user.email", "x@example.org", cwd=project)
    lib.git("config", "user.name", "x", cwd=project)
    lib.git("commit", "-q", "--allow-empty", "-m", "1", cwd=project)
    (project / ".git").rename(project / ".bare")
    make = "echo gitdir: ./.bare >.git" if how == "file" else "ln -s .bare .git"
    lib.succeeded(lib.execute(["sh", "-c", make], cwd=project))
    lib.git("worktree", "add", "-q", "tree", cwd=project)
    before = lib.snapshot(project / ".bare")
    lib.box("./attack", "put", f".bare/{path}", "EVIL")
    lib.box("./attack", "rename", ".bare", "moved")
    assert lib.snapshot(project / ".bare") == before
    assert b"On branch" in lib.succeeded(lib.box("git", "status"))
    outside(f"put .bare/{path} EVIL")
    assert (project / ".bare" / path).read_text() == "EVIL"


BARE_STEPS = {
    "a new one": ["put {}/hooks/post-checkout EVIL"],
    "one that was there": ["put {}/hooks/old EVIL"],
    "all of them": ["mkdir kept", "rename {}/hooks x", "rename tools {}/hooks"],
    "its configuration": ["put {}/config EVIL"],
}


@pytest.mark.parametrize("how", BARE_STEPS)
@pytest.mark.parametrize("name", [".bare", "mirror.git", "deep/in/it/any"])
def test_hooks_of_a_repository_in_the_workspace(project, name, how):
    """A bare one, as worktrees in the workspace may belong to: what the box changed is told."""
    lib.git("clone", "-q", "--bare", project, project / name, cwd=project)
    lib.make_file(project / name / "hooks" / "old", "")
    lib.make_file(project / "tools" / "post-checkout", "EVIL")
    lib.settle()
    steps = [step.format(name) for step in BARE_STEPS[how]]
    done = lib.box("./attack", *arena.words(steps))
    changed = {"a new one": "hooks/post-checkout", "one that was there": "hooks/old",
               "all of them": "hooks/post-checkout", "its configuration": "config"}  # fmt: skip
    assert (project / name / changed[how]).read_text() == "EVIL", "the control"
    assert reported(done, f"{name}/{changed[how]}"), done
    lib.settle()
    again = lib.box("true")
    assert not reported(again, f"{name}/{changed[how]}"), again


def test_protected_file_replaced_on_the_host(project):
    """`git config` on the host renames a new file over .git/config: the kernel then takes the
    mount of the old one off. What a box makes of that is stopped or at least told."""
    steps = ["put up x", "await go", "put .git/config EVIL"]
    process = lib.start_box("./attack", *arena.words(steps))
    arena.await_file(process, project / "up")
    lib.git("config", "a.b", "c", cwd=project)
    lib.make_file(project / "go")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    config = (project / ".git/config").read_text()
    assert "EVIL" not in config or b"  .git/config  (" in told, told


@pytest.mark.parametrize("name", ["opencode.json", "own.conf", ".git/config.worktree"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another box"])
def test_absent_name_replaced_on_the_host(project, name, beside):
    """Somebody outside takes the stub away and puts a file there: it stays, and is told of."""
    lib.use_clients()
    opts = ["--protect", "own.conf"]
    others = []
    if beside:
        words = arena.words(["put there x", "await never"])
        others.append(lib.start_box("./attack", *words, opts=opts))
        arena.await_file(others[0], project / "there")
    process = lib.start_box("./attack", *arena.words(["put up x", "await go"]), opts=opts)
    arena.await_file(process, project / "up")
    (project / name).unlink()
    lib.make_file(project / name, "of the host")
    lib.make_file(project / "go")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    line = f"  {name}  (protected, but replaced from outside meanwhile)\n"
    assert told.count(line.encode()) == 1 and told.count(name.encode()) == 1, told
    for other in others:
        lib.make_file(project / "never")
        assert line.encode() in other.communicate(timeout=lib.TIMEOUT)[1]
    assert (project / name).read_text() == "of the host"
    (project / name).unlink()
    assert b"replaced" not in lib.box("true", opts=opts).stderr


def test_directory_of_an_absent_name_replaced_on_the_host(project):
    """Somebody outside puts the stub's directory aside and makes another: what a box makes at the
    protected name there is told of."""
    lib.make_file(project / "conf/other")
    steps = ["put up x", "await go", "put conf/hook.sh EVIL"]
    opts = ["--protect", "conf/hook.sh"]
    process = lib.start_box("./attack", *arena.words(steps), opts=opts)
    arena.await_file(process, project / "up")
    (project / "conf").rename(project / "conf.old")
    lib.make_dir(project / "conf")
    lib.make_file(project / "go")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    assert (project / "conf/hook.sh").read_text() == "EVIL", "the control"
    assert b"  conf/hook.sh  (protected, but replaced from outside meanwhile)\n" in told, told
    assert not (project / "conf.old/hook.sh").exists()


def test_directory_of_an_absent_name_removed_on_the_host(project):
    """The user cleans up while a box runs, and the box makes what it could not: the user hears of
    the first at once, and of the second at the end."""
    steps = ["put up x", "await go", "mkdir .claude", "put .claude/settings.json EVIL",
             "put done x", "await end"]
    process = lib.start_box("./attack", *arena.words(steps))
    arena.await_file(process, project / "up")
    lib.git("clean", "-fdq", "--", ".claude", cwd=project)
    told = lib.read_until(process.stderr, b"start no client or editor here\n")
    assert b"carrel: removed from outside, so that box " in told and b": .claude\n" in told, told
    lib.make_file(project / "go")
    arena.await_file(process, project / "done")
    assert (project / ".claude/settings.json").read_text() == "EVIL", "the control"
    lib.make_file(project / "end")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    assert b"  .claude/settings.json  (Claude Code: " in told, told


def test_git_config_replaced_on_the_host(project):
    """The same for git's configuration, which git outside replaces by renaming."""
    steps = ["put up x", "await go", "put .git/config #EVIL", "put done x", "await end"]
    process = lib.start_box("./attack", *arena.words(steps))
    arena.await_file(process, project / "up")
    lib.git("config", "user.name", "the user", cwd=project)
    lib.git("config", "user.name", "another", cwd=project)
    told = lib.read_until(process.stderr, b"git here may obey the box\n")
    assert told.count(b"replaced from outside, so that box ") == 1, told
    lib.make_file(project / "go")
    arena.await_file(process, project / "done")
    assert "EVIL" in (project / ".git/config").read_text(), "the control"
    lib.make_file(project / "end")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    assert b"  .git/config  (protected, but replaced from outside meanwhile)\n" in told, told


def test_other_directories_may_go(project):
    """Neither what else is removed beside a stub is reported, nor the end of another box."""
    process = lib.start_box("./attack", *arena.words(["put up x", "await go"]))
    arena.await_file(process, project / "up")
    lib.make_dir(project / "other")
    (project / "other").rmdir()
    lib.succeeded(lib.box("sh", "-c", "mkdir a; rmdir a; rmdir .claude 2>/dev/null || true"))
    lib.make_file(project / "go")
    _, told = process.communicate(timeout=lib.TIMEOUT)
    assert b"removed from outside" not in told, told


# Trees that a hostile repository or box leaves, and a walk has to survive.
TREES = {
    "fifos": "mkdir a a/.git .husky; mkfifo a/.envrc a/.git/config .husky/pre-commit a/.env",
    "links out": "mkdir a; ln -s / .husky; ln -s / a/.git; ln -s /etc b; ln -s /proc/1/root c",
    "link loops": "ln -s . a; ln -s b c; ln -s c b; mkdir d; ln -s .. d/.git",
    "unreadable": "mkdir a a/.git; : > a/.git/config; mkdir b; chmod 0 a b",
    "deep": "i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i+1)); done; : > .envrc",
    "wide": "mkdir w; i=0; while [ $i -lt 3000 ]; do : > w/.env.$i; i=$((i+1)); done; rm -r w",
    "long names": "n=$(printf %0250d 0); for i in 1 2 3 4 5 6 7 8 9; do mkdir $n && cd $n; done"
    "; : > .envrc",
    "newlines": "mkdir 'a\n' 'a\n/.git'; : > 'a\n/.git/config'",
}


@pytest.mark.parametrize("script", TREES.values(), ids=TREES)
def test_hostile_trees(project, home, place, script):
    """A walk over what a box left, and over it again at the next start, ends."""
    env = {"XDG_STATE_HOME": str(place / "state")}  # which has the record of the report
    secret = lib.snapshot(home)
    done = lib.box("/bin/sh", "-c", script, timeout=20, env=env)
    assert done.returncode == 0, done
    assert_clean(done.stderr)
    done = lib.box("./attack", "uids", timeout=20, env=env)
    assert done.returncode in (0, 125), done
    assert done.returncode == 0 or done.stderr.startswith(b"carrel: ")
    assert_clean(done.stderr)
    assert lib.snapshot(home) == secret


@pytest.mark.parametrize("name", [".git", ".envrc", ".env", ".mcp.json", ".claude", ".vscode"])
@pytest.mark.parametrize("kind", ["fifo", "loop", "link to /", "huge", "directory"])
def test_hostile_kinds_at_start(project, name, kind):
    """A special file, a loop or a huge file where carrel looks: it starts or says no, soon."""
    path = project / name
    subprocess.run(["rm", "-rf", path], check=True)
    make = {
        "fifo": lambda: os.mkfifo(path),
        "loop": lambda: os.symlink(name, path),
        "link to /": lambda: os.symlink("/", path),
        "huge": lambda: os.truncate(lib.make_file(path), 1 << 32),
        "directory": lambda: lib.make_dir(path),
    }
    make[kind]()
    lib.give(path)
    before = os.lstat(path)[:4]
    done = lib.box("./attack", "put", name, "EVIL", timeout=20)
    assert done.returncode in (0, 125), done
    assert os.lstat(path)[:4] == before


BAD_NAMES = ["../x", "a/b", "-x", "", ".", "..", "a" * 300, "a b", "$(id)", "A\nB", "x;y", "é"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_of_boxes(place, name):
    """A box's name is a host name and will be a directory: nothing else is taken for one."""
    before = arena.traces(place, lib.UID)
    done = lib.carrel("run", "-y", "--name", name, "--", "./attack", "uids")
    lib.failed_clearly(done)
    assert not done.stdout
    assert arena.traces(place, lib.UID) == before
    said = inside("read /proc/sys/kernel/hostname", opts=["--name", "good-1"])
    assert said == ["ok good-1\\x0a"]


def test_forged_host_facts(project):
    """A forged home, user or shell in the environment does not become more than a string."""
    env = {"HOME": "/etc", "USER": "x:0:0", "LOGNAME": "a\nroot::0:0::/:/bin/sh"}
    env |= {"SHELL": "/no;ne"}
    done = lib.box("/bin/cat", "/etc/passwd", env=env)
    assert done.returncode in (0, 125), done
    rows = [line.split(":") for line in done.stdout.decode().splitlines()]
    assert all(len(row) == 7 for row in rows), rows
    assert [row[2] for row in rows].count("0") <= 1
    assert inside("open /etc/passwd w")[0] != "ok"
    assert outside("uids") == [f"ok {lib.UID} {lib.UID}"]
