"""git in a box as outside: each script runs on both sides, and the repositories are compared.

What a box writes to its copy of .git/config reaches the host's only where it is data: the
verdict is the host's file.
"""

import os

import lib
import pytest

DATES = {
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


def make_side(place, name):
    """A clone and its remote, which has a branch that the clone does not have."""
    side = lib.make_dir(place / name)
    lib.git("init", "-q", "--bare", "-b", "main", "remote.git", cwd=side)
    lib.git("init", "-q", "-b", "main", "project", cwd=side)
    project = side / "project"
    lib.git("config", "user.name", "A Tester", cwd=project)
    lib.git("config", "user.email", "tester@example.org", cwd=project)
    lib.make_file(project / "f", "one\n")
    lib.git("add", "f", cwd=project)
    script = (
        "git commit -q -m one; git remote add origin ../remote.git;"
        "git push -q origin main main:topic; git fetch -q"
    )
    lib.succeeded(lib.execute(["sh", "-euc", script], cwd=project, env=DATES))
    return side


@pytest.fixture
def sides(place):
    return make_side(place, "out"), make_side(place, "in")


def in_box(side, script, *opts, **how):
    opts = ("--mount", f"{side}/remote.git::rw", *opts)
    env = [word for name, value in DATES.items() for word in ("--env", f"{name}={value}")]
    return lib.box("sh", "-euc", script, opts=(*opts, *env), cwd=side / "project", **how)


def settings(side):
    return sorted(lib.git("config", "--local", "--list", cwd=side / "project").splitlines())


def whole(side):
    """All that git has to say of a repository and of its remote."""
    project = side / "project"
    refs = "for-each-ref", "--format=%(refname) %(objectname) %(upstream)"
    return {
        "settings": settings(side),
        "refs": lib.git(*refs, cwd=project),
        "remote": lib.git(*refs, cwd=side / "remote.git"),
        "status": lib.git("status", "--porcelain=v2", "--branch", "--show-stash", cwd=project),
        "config mode": (project / ".git/config").stat().st_mode,
        "of this worktree": of_worktree(side),
    }


def of_worktree(side):
    """The mode and the text of its own configuration, if it has one."""
    config = side / "project/.git/config.worktree"
    return config.exists() and (oct(config.stat().st_mode), config.read_text())


def notes(done):
    return [line for line in done.stderr.decode().splitlines() if line.startswith("carrel: ")]


# ---- as outside -------------------------------------------------------------------------

SCRIPTS = {
    "switch to a remote branch": "git switch -q topic",
    "checkout of a remote branch": "git checkout -q topic; echo x >f; git commit -qam x; git push -q",
    "push": "echo x >f; git commit -qam x; git push -q origin main",
    "push -u": "git switch -qc new; git commit -q --allow-empty -m x; git push -qu origin new",
    "push with autoSetupRemote": "git config push.autoSetupRemote true; git switch -qc new; git push -q",
    "remote add": "git remote add up https://example.org/x.git; git remote -v",
    "remote set-branches": "git remote set-branches origin main topic; git fetch -q",
    "branch -m": "git switch -q topic; git branch -m topic renamed; git config --local --list",
    "branch -d": "git switch -q topic; git switch -q main; git branch -qd topic",
    "branch description": "GIT_EDITOR='echo \"a; b # \\\"c\\\"\" >' git branch --edit-description",
    "upstream of a local branch": "git switch -qc new --track main; git branch --unset-upstream",
    "identity": "git config user.name 'X \"Y\" # Z'; git config user.email x@example.org",
    "user settings": "git config pull.rebase true; git config init.defaultBranch trunk",
    "stash": "echo x >f; git stash -q; git stash list; git stash pop -q; git stash -q",
    "rebase": "git switch -qc new; echo a >a; git add a; git commit -qm a; git switch -q main;"
    "echo b >b; git add b; git commit -qm b; git switch -q new; git rebase -q main",
    "clean": "echo x >x; mkdir d; echo y >d/y; git clean -nd",
    "pull": "git branch -q --set-upstream-to origin/main; git pull -q --rebase; git fetch -q --all",
    "tags": "git tag -a v1 -m v1; git push -q origin v1; git describe",
    "worktree inside": "git worktree add -q tree -b tree; git -C tree commit -q --allow-empty -m x;"
    "git worktree remove tree",
    "clone of the workspace": "git clone -q . c; git -C c config --list --local | wc -l; rm -rf c",
    "config in an editor": "GIT_EDITOR='sed -i s/Tester/Writer/' git config --local --edit",
    "sparse-checkout": "mkdir d e; echo x >d/x; echo y >e/y; git add .; git commit -qm two;"
    "git sparse-checkout set d; ls; git sparse-checkout list; git status",
    "sparse-checkout and back": "mkdir d; echo x >d/x; git add .; git commit -qm two;"
    "git sparse-checkout set --no-cone f; ls; git sparse-checkout disable; ls",
    "config --worktree": "git config extensions.worktreeConfig true; git config --worktree"
    " user.name X; git config --worktree --list; git config user.name",
    "notes and bisect": "git notes add -m n; git bisect start; git bisect reset",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_outside(sides, name):
    out, inside = sides
    there = lib.execute(["sh", "-euc", SCRIPTS[name]], cwd=out / "project", env=DATES)
    done = in_box(inside, SCRIPTS[name])
    assert (there.returncode, done.returncode) == (0, 0), (there.stderr, done.stderr)
    assert done.stdout.decode() == there.stdout.decode().replace(str(out), str(inside))
    assert b"could not" not in done.stderr and b"not taken over" not in done.stderr
    assert whole(inside) == whole(out)
    assert not (inside / "project/.git/config.lock").exists()


def test_new_urls_are_told(sides):
    _, side = sides
    done = in_box(side, "git remote add up https://example.org/x.git")
    line = "carrel: the box set remote.up.url = https://example.org/x.git in .git/config"
    assert notes(done) == [line]
    lib.settle()
    assert notes(in_box(side, "git switch -q topic")) == []


def test_nothing_changes_on_the_host_while_the_box_runs(sides):
    """The mount of another box on this very file would go with it, if it were replaced."""
    _, side = sides
    config = side / "project/.git/config"
    before = config.stat().st_ino
    lib.succeeded(in_box(side, "git remote add up https://example.org/x.git"))
    assert config.stat().st_ino == before and 'remote "up"' in config.read_text()


def test_comments_and_order_stay(sides):
    _, side = sides
    config = side / "project/.git/config"
    text = "# mine\n" + config.read_text() + '; more\n[branch "main"] rebase = true # why\n'
    lib.make_file(config, text)
    script = "git branch -q --set-upstream-to origin/main; git switch -q topic"
    lib.succeeded(in_box(side, script))
    new = config.read_text()
    assert new.startswith(text)
    assert new[len(text) :] == (
        "\tremote = origin\n\tmerge = refs/heads/main\n"
        '[branch "topic"]\n\tremote = origin\n\tmerge = refs/heads/topic\n'
    )
    lib.succeeded(in_box(side, "git switch -q main; git branch -qd topic"))
    assert config.read_text() == new[: new.index('[branch "topic"]')]


# ---- hostile ----------------------------------------------------------------------------

# What each leads a git outside to is of no matter: it must not be there.
EVIL = {
    "a command": "git config core.fsmonitor 'touch evil'",
    "hooks": "git config core.hooksPath .",
    "a pager": "git config core.pager evil; git config pager.log evil",
    "ssh": "git config core.sshCommand evil",
    "an editor": "git config core.editor evil; git config sequence.editor evil",
    "an alias": "git config alias.st '!evil'",
    "a filter": "git config filter.x.clean evil; git config filter.x.smudge evil",
    "a diff driver": "git config diff.x.textconv evil; git config diff.external evil",
    "a merge driver": "git config merge.x.driver evil",
    "a credential helper": "git config credential.helper '!evil'",
    "a signing program": "git config gpg.program evil; git config commit.gpgSign true",
    "an include": "git config include.path ../evil",
    "a conditional include": "git config includeIf.gitdir:/.path ../evil",
    "another worktree": "git config core.worktree /tmp",
    "another format": "git config core.repositoryformatversion 1",
    "a partial clone": "git config extensions.partialClone evil",
    "a rewritten URL": "git config url.ext::evil.insteadOf https://",
    "a helper's URL": "git remote add x 'ext::sh -c evil'",
    "an option for a host": "git config remote.x.url ssh://-oProxyCommand=evil/x",
    "an option as a host": "git config remote.x.url -oProxyCommand=evil:x",
    "an option as a user": "git config remote.x.url ssh://-evil@example.org/x",
    "a path": "git config remote.x.url ./evil.git",
    "an absolute path": "git config remote.x.url /tmp/evil.git",
    "a file URL": "git config remote.x.url file:///tmp/evil.git",
    "a password": "git config remote.x.url https://a:evil@example.org/x",
    "a helper of a remote": "git config remote.origin.vcs evil",
    "an upload-pack": "git config remote.origin.uploadpack evil",
    "a receive-pack": "git config remote.origin.receivepack evil",
    "a proxy": "git config remote.origin.proxy http://evil",
    "a remote that is a URL": "git config branch.main.remote 'ext::sh -c evil'",
    "a remote that is a path": "git config branch.main.remote evil.git",
    "a remote to push to that is a path": "git config branch.main.pushRemote ./evil",
    "a default to push to": "git config remote.pushDefault evil",
    "a remote without a URL": "git config remote.evil.fetch '+refs/heads/*:refs/x/*'",
    "merge options": "git config branch.main.mergeOptions '-s evil'",
    "an option as a branch": "git config branch.main.merge --evil",
    "a refspec": "git config remote.origin.fetch '--upload-pack=evil'",
    "a command for a submodule": "git config submodule.x.update '!evil'",
    "a submodule outside": "git config submodule.../../evil.url https://example.org/x",
    "an escape sequence": "git config user.name \"$(printf 'x\\033]0;evil\\007')\"",
    "a newline in a value": "git config user.name \"$(printf 'x\\n[core]\\npager = evil')\"",
    "a newline in a URL": "git config remote.x.url \"$(printf 'https://h/\\nevil')\"",
    "a quote in a name": "git config 'branch.\"]evil.merge' refs/heads/x",
    "a control character in a name": "printf '[branch \"e\\001vil\"]\\nmerge = refs/heads/x\\n' >>.git/config",
    "a broken file": "echo '[evil' >>.git/config",
    "no settings at all": ": >.git/config",
    "a large file": "yes '#evil' | head -c 10000000 >>.git/config",
    "many settings": "seq -f '[branch \"evil%.0f\"] merge = refs/heads/x' 30000 >>.git/config",
    "a long value": 'git config user.name "evil$(seq 5000)"',
    "no file": "rm /run/carrel/git/0/config; : evil",
    "a fifo": "rm /run/carrel/git/0/config; mkfifo /run/carrel/git/0/config; : evil",
    "a link": "ln -sf /proc/self/environ /run/carrel/git/0/config; : evil",
    "a directory": "rm /run/carrel/git/0/config; mkdir /run/carrel/git/0/config; : evil",
    "a link on the way": "mv /run/carrel/git/0 /run/x; ln -s /run/x /run/carrel/git/0; : evil",
    "an unreadable copy": "chmod 0 /run/carrel/git/0/config /run/carrel/git/0; : evil",
}


@pytest.mark.parametrize("name", EVIL)
def test_hostile(sides, name):
    """Not on the host, and the user hears of it. The control is that git outside takes it."""
    out, side = sides
    before, config = settings(side), side / "project/.git/config"
    text = config.read_bytes()
    done = in_box(side, EVIL[name])
    lib.succeeded(done)
    told = [line for line in notes(done) if "taken over" in line]
    assert told, done.stderr
    assert b"\x1b" not in done.stderr and len(done.stderr) < 4000
    assert config.read_bytes() == text
    assert settings(side) == before
    assert sorted(os.listdir(side / "project/.git")) == sorted(os.listdir(out / "project/.git"))


@pytest.mark.parametrize("name", [name for name in EVIL if "/run/carrel" not in EVIL[name]])
def test_hostile_without_a_box(sides, name):
    """The same changes the file outside of a box: the test above refuses something."""
    out, _ = sides
    config = out / "project/.git/config"
    text = config.read_bytes()
    done = lib.execute(["sh", "-euc", EVIL[name]], cwd=out / "project")
    assert done.returncode == 0, done.stderr
    assert config.read_bytes() != text


def test_good_beside_evil(sides):
    """What is plain data is taken over although something else is not."""
    _, side = sides
    script = (
        "git switch -q topic; git config core.pager evil; git remote add x 'ext::evil';"
        "git remote add up git@example.org:a/b.git"
    )
    done = in_box(side, script)
    new = set(settings(side))
    assert {
        "branch.topic.remote=origin",
        "remote.up.url=git@example.org:a/b.git",
        "remote.up.fetch=+refs/heads/*:refs/remotes/up/*",
    } <= new
    assert not [line for line in new if "evil" in line or line.startswith("remote.x.")]
    told = "\n".join(notes(done))
    assert "core.pager" in told and "remote.x.url" in told


def test_user_settings_cannot_be_removed(sides):
    _, side = sides
    before = settings(side)
    done = in_box(side, "git config --unset user.name; git remote remove origin")
    assert settings(side) == before
    assert b"user.name" in done.stderr and b"remote.origin.url" in done.stderr


# ---- the host meanwhile -----------------------------------------------------------------


def waiting(side, script):
    """A box that has run the script and waits for a line."""
    opts = ("--mount", f"{side}/remote.git::rw")
    box = lib.start_box("sh", "-euc", script + "; echo done; read x", opts=opts, cwd=side / "project")
    lib.read_until(box.stdout, b"done\n")
    return box


def end(box):
    _, err = box.communicate(b"x\n", timeout=lib.TIMEOUT)
    assert box.returncode == 0, err
    return err


def test_what_the_host_changed_stays(sides):
    _, side = sides
    box = waiting(side, "git switch -q topic; git config user.name box")
    lib.git("config", "user.name", "host", cwd=side / "project")
    lib.git("config", "core.abbrev", "9", cwd=side / "project")
    err = end(box)
    new = settings(side)
    assert "branch.topic.remote=origin" in new and "core.abbrev=9" in new
    assert "user.name=host" in new and "user.name=box" not in new
    assert b"user.name in .git/config was not taken over: it changed on the host" in err


def test_two_boxes_at_once(sides):
    """Each adds what it added, and the one that stays is protected after the other's end."""
    _, side = sides
    one = waiting(side, "git remote add one https://example.org/one.git")
    two = waiting(side, "git remote add two https://example.org/two.git; ls .git")
    end(one)
    assert "remote.one.url=https://example.org/one.git" in settings(side)
    end(two)
    new = settings(side)
    assert "remote.one.url=https://example.org/one.git" in new
    assert "remote.two.url=https://example.org/two.git" in new


def test_the_other_boxes_protection_stays(sides):
    _, side = sides
    two = lib.start_box("sh", "-c", "echo up; read x; echo evil >>.git/config; ls -l .git/config",
                        cwd=side / "project")
    lib.read_until(two.stdout, b"up\n")
    lib.succeeded(in_box(side, "git remote add one https://example.org/one.git"))
    out, _ = two.communicate(b"x\n", timeout=lib.TIMEOUT)
    assert b"-> /run/carrel/git/0/config" in out
    assert "evil" not in (side / "project/.git/config").read_text()


def test_locked_by_the_host(sides):
    """A git outside that writes at this moment: nothing is taken over, and the user hears so."""
    _, side = sides
    lock = lib.make_file(side / "project/.git/config.lock", "")
    before = settings(side)
    done = in_box(side, "git switch -q topic")
    assert settings(side) == before and lock.exists()
    assert b"not taken over: lock it with config.lock" in done.stderr
    lock.unlink()
    lib.succeeded(in_box(side, "git switch -q main; git branch -qd topic; git switch -q topic"))
    assert "branch.topic.remote=origin" in settings(side)


def test_lock_of_a_killed_carrel(sides):
    _, side = sides
    lock = lib.make_file(side / "project/.git/config.lock", "carrel\n")
    lib.succeeded(in_box(side, "git switch -q topic"))
    assert "branch.topic.remote=origin" in settings(side) and not lock.exists()


def test_hostile_for_this_worktree(sides):
    """Its own configuration, made in the box: values that run programs stay there."""
    _, side = sides
    script = (
        "git config extensions.worktreeConfig true; git config --worktree core.pager evil;"
        "git config --worktree core.fsmonitor evil; git config --worktree core.worktree /;"
        "git config --worktree include.path ../evil; git config --worktree user.name X"
    )
    done = in_box(side, script)
    lib.succeeded(done)
    assert of_worktree(side) == (oct(0o100644), "[user]\n\tname = X\n")
    for key in ("core.pager", "core.fsmonitor", "core.worktree", "include.path"):
        assert f"change of {key} in .git/config.worktree was not taken over" in done.stderr.decode()
    assert "appeared or changed" not in done.stderr.decode()
    # Another git has the file now: a box begins with what it says.
    done = in_box(side, "git config user.name; git config --worktree user.name Y")
    assert done.stdout == b"X\n" and of_worktree(side)[1] == "[user]\n\tname = Y\n"


def test_no_configuration_of_this_worktree_is_left(sides):
    """Where the box made none, or none that can be taken over."""
    _, side = sides
    for script in (
        "true",
        "git config extensions.worktreeConfig true; git config --worktree core.pager evil",
        "rm $(readlink .git/config.worktree)",
        "ln -sf /etc/passwd $(readlink .git/config.worktree)",
        "mv .git/config.worktree x || rm .git/config.worktree || echo evil >x; rm -f x",
    ):
        in_box(side, script)
        assert not of_worktree(side), script


def test_two_boxes_and_the_configuration_of_this_worktree(sides):
    """The first to end makes the file; the other keeps its mount on it, and adds to it."""
    _, side = sides
    lib.git("config", "extensions.worktreeConfig", "true", cwd=side / "project")
    one = waiting(side, "git config --worktree user.name one")
    two = waiting(side, "git config --worktree user.email two@example.org")
    end(one)
    assert of_worktree(side)[1] == "[user]\n\tname = one\n"
    end(two)
    assert of_worktree(side)[1] == "[user]\n\tname = one\n\temail = two@example.org\n"


def test_killed_supervisor_leaves_nothing(sides):
    _, side = sides
    before = lib.snapshot(side / "project/.git")
    box = waiting(side, "git config user.name box")
    box.kill()
    box.wait()
    lib.wait_for(lambda: lib.snapshot(side / "project/.git") == before, "the stubs to go")


# ---- other places -----------------------------------------------------------------------


def test_linked_worktree(sides):
    """Its configuration is that of the repository, which lies elsewhere."""
    _, side = sides
    lib.git("worktree", "add", "-q", "../tree", "-b", "tree", cwd=side / "project")
    done = lib.box("sh", "-euc", "git switch -q topic; git config core.pager evil", cwd=side / "tree")
    lib.succeeded(done)
    assert "branch.topic.merge=refs/heads/topic" in settings(side)
    assert "evil" not in (side / "project/.git/config").read_text()
    assert b"core.pager" in done.stderr


def test_submodule(sides):
    """A submodule that is there, and one that is set up in the box."""
    out, inside = sides
    script = (
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow"
        " GIT_CONFIG_VALUE_0=always; git submodule -q update --init; git -C sub switch -q topic;"
        "git -C sub config user.name S; git -C sub config core.pager evil; git submodule status"
    )
    for side in (out, inside):
        add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
        lib.git(*add, "../remote.git", "sub", cwd=side / "project")
        lib.git("commit", "-q", "-m", "sub", cwd=side / "project")
    there = lib.execute(["sh", "-euc", script], cwd=out / "project", env=DATES)
    done = in_box(inside, script)
    assert there.returncode == 0, there.stderr
    assert lib.succeeded(done).split()[1:] == there.stdout.split()[1:]
    outside = set(lib.git("config", "--local", "--list", cwd=out / "project/sub").splitlines())
    new = set(lib.git("config", "--local", "--list", cwd=inside / "project/sub").splitlines())
    plain = {line for line in outside if "/" not in line.partition("=")[2] or "refs/" in line}
    assert plain - {"core.pager=evil"} <= new and "core.pager=evil" not in new
    assert b"core.pager in .git/modules/sub/config" in done.stderr


def test_not_in_a_box_for_boxes(sides):
    """Where boxes are built in the box, the file is read-only as before."""
    _, side = sides
    before = settings(side)
    lib.box("git", "config", "user.name", "x", opts=("--nest",), cwd=side / "project")
    assert settings(side) == before


def test_protect_switches_it_off(sides):
    _, side = sides
    before = settings(side)
    opts = ("--protect", ".git/config")
    done = in_box(side, "git config user.name x || echo refused", *opts)
    assert done.stdout == b"refused\n" and settings(side) == before


def test_programs_that_write_in_place(sides):
    """As editors and other implementations of git do."""
    _, side = sides
    script = "printf '[branch \"main\"]\\n\\tremote = origin\\n' >>.git/config"
    lib.succeeded(in_box(side, script))
    assert "branch.main.remote=origin" in settings(side)


def test_read_only_for_the_user(sides):
    """What cannot be written is not taken over, and the user hears of it."""
    _, side = sides
    (side / "project/.git/config").chmod(0o444)
    before = settings(side)
    done = in_box(side, "git config user.name x")
    assert settings(side) == before and b"not taken over" in done.stderr


def test_copy_of_the_file_in_the_box(sides):
    """It is a link there, and programs read what it leads to."""
    _, side = sides
    script = "test -L .git/config; cp .git/config /tmp/copy; git config -f /tmp/copy user.name"
    assert lib.succeeded(in_box(side, script)) == b"A Tester\n"


# ---- the user's own configuration -------------------------------------------------------

OWN = """
[user]
\tname = Ada "the first" # Lovelace
\temail = ada@example.org
\tsigningKey = 0xSECRET
[commit]
\tgpgSign = true
[init]
\tdefaultBranch = trunk
[pull]
\trebase
[alias]
\tlast = log -1 --format=%s
\tshell = !echo SECRET
[credential]
\thelper = store --file SECRET
[credential "https://example.org"]
\tusername = SECRET
[http "https://example.org"]
\textraHeader = Authorization: SECRET
[sendemail]
\tsmtpPass = SECRET
[core]
\tpager = SECRET
\teditor = SECRET
\tsshCommand = SECRET
\tfsmonitor = SECRET
\thooksPath = /SECRET
\tattributesFile = /SECRET
\tabbrev = 9
\texcludesFile = ~/ignored
[diff "x"]
\ttextconv = SECRET
[diff]
\talgorithm = histogram
\texternal = SECRET
[filter "lfs"]
\tprocess = SECRET
[gpg]
\tprogram = SECRET
[url "git@example.org:"]
\tinsteadOf = https://example.org/
[url "https://ada:SECRET@example.net/"]
\tinsteadOf = net:
[url "https://SECRET@example.net/"]
\tinsteadOf = net2:
[url "ext::SECRET "]
\tinsteadOf = ext:
[github]
\ttoken = SECRET
[color "status"]
\tadded = green bold
"""
# What of it is in the box, as git says it.
OWN_IN = """alias.last=log -1 --format=%s
color.status.added=green bold
core.abbrev=9
diff.algorithm=histogram
init.defaultbranch=trunk
pull.rebase=true
url.git@example.org:.insteadof=https://example.org/
user.email=ada@example.org
user.name=Ada the first"""


def in_project(project, *words, opts=(), **how):
    return lib.succeeded(lib.box(*words, opts=opts, cwd=project, **how)).decode()


@pytest.fixture
def mine(place):
    """A repository without an identity, in the home, of a user who has one."""
    home = lib.current.home
    lib.make_file(home / ".gitconfig", OWN)
    lib.make_file(home / "ignored", "*.tmp\n")
    project = lib.make_dir(lib.make_dir(home / "src") / "project")
    lib.git("init", "-q", cwd=project)
    return project


def test_own_settings(mine):
    """All that is data, nothing else; the control is that git outside has both."""
    assert "SECRET" in lib.git("config", "--global", "--list", cwd=mine)
    inside = in_project(mine, "git", "config", "--global", "--list")
    assert "\n".join(sorted(inside.splitlines())) == OWN_IN
    everything = in_project(mine, "sh", "-c", "cat ~/.gitconfig; env; ls -AR ~; cat /etc/gitconfig /etc/carrel/*")
    assert "SECRET" not in everything


def test_commit_with_own_identity(mine):
    script = "git commit -q --allow-empty -m one; git last; touch x.tmp y; git status --short"
    assert in_project(mine, "sh", "-euc", script) == "one\n?? y\n"
    who = lib.git("log", "-1", "--format=%an %ae %cn %ce", cwd=mine)
    assert who == "Ada the first ada@example.org Ada the first ada@example.org\n"


def test_the_boxs_own_global_configuration(mine):
    """The agent may change it, in the box."""
    before = (lib.current.home / ".gitconfig").read_text()
    script = "git config --global user.name X; git config user.name; git config --global x.y z"
    assert in_project(mine, "sh", "-euc", script) == "X\n"
    assert (lib.current.home / ".gitconfig").read_text() == before


def test_own_settings_are_in_the_plan(mine):
    shown = lib.succeeded(lib.carrel("plan", "--", "true", cwd=mine)).decode()
    assert "\ngit        Ada the first <ada@example.org>, 7 settings\n" in shown
    shown = lib.succeeded(lib.carrel("plan", "--no-git-config", "--", "true", cwd=mine)).decode()
    assert "\ngit " not in shown and "ada@" not in shown


def test_without_own_settings(mine):
    script = "git config --global --list; ls -A ~"
    done = lib.box("sh", "-c", script, opts=("--no-git-config",), cwd=mine)
    assert lib.succeeded(done) == b"src\n" and b"ada@" not in done.stdout


@pytest.mark.parametrize("what", [".gitconfig", "."])
def test_own_file_mounted(mine, what):
    """What the user mounts there is what is there."""
    home = lib.current.home
    opts = ("--mount", f"{home}/.gitconfig") if what != "." else ("--mount", f"{home}:/h")
    inside = in_project(mine, "cat", f"{home if what != '.' else '/h'}/.gitconfig", opts=opts)
    assert inside == OWN


# Where the settings come from. Each must be in the box what it is outside.
WHERE = {
    "an include": {".gitconfig": "[include]\npath = more\n", "more": "[user]\nemail = i@x\n"},
    "the other file": {".config/git/config": "[user]\nemail = x@x\n"},
    "both files": {
        ".config/git/config": "[user]\nemail = x@x\nname = X\n",
        ".gitconfig": "[user]\nemail = y@x\n",
    },
    "a directory": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "gitdir:~/src/"]\npath = w\n'
        '[includeIf "gitdir:~/other/"]\npath = o\n',
        "w": "[user]\nemail = work@x\n",
        "o": "[user]\nemail = other@x\n",
    },
    "a directory, whatever its case": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "gitdir/i:~/SRC/"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "a directory of any place": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "gitdir:src/*/.git"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "a directory beside the file": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "gitdir:./src/"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "not this directory": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "gitdir:~/src/proj"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "a branch": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "onbranch:topic/"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "another branch": {
        ".gitconfig": '[user]\nemail = a@x\n[includeIf "onbranch:one"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "a remote": {
        ".gitconfig": '[user]\nemail = a@x\n'
        '[includeIf "hasconfig:remote.*.url:git@example.org:work/**"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "another remote": {
        ".gitconfig": '[user]\nemail = a@x\n'
        '[includeIf "hasconfig:remote.*.url:git@example.net:*/**"]\npath = w\n',
        "w": "[user]\nemail = work@x\n",
    },
    "an absent include": {".gitconfig": "[user]\nemail = a@x\n[include]\npath = none\n"},
    "quotes": {".gitconfig": '[user]\nemail = " a;b#c\\t\\"d "\nname = "  x  "\n'},
    "nothing": {},
}


@pytest.mark.parametrize("worktree", [False, True])
@pytest.mark.parametrize("where", WHERE)
def test_where_own_settings_come_from(mine, where, worktree):
    (lib.current.home / ".gitconfig").unlink()
    for name, text in WHERE[where].items():
        lib.make_file(lib.current.home / name, text)
    lib.git("remote", "add", "origin", "git@example.org:work/x/y.git", cwd=mine)
    lib.git("symbolic-ref", "HEAD", "refs/heads/topic/one", cwd=mine)
    if worktree:
        who = ("-c", "user.name=x", "-c", "user.email=x")
        lib.git(*who, "commit", "-q", "--allow-empty", "-m", "one", cwd=mine)
        lib.git("worktree", "add", "-q", "-b", "topic/two", "../tree", cwd=mine)
        mine = mine.parent / "tree"
    script = "git config user.email; git config user.name; true"
    outside = lib.execute(["sh", "-c", script], cwd=mine).stdout.decode()
    assert in_project(mine, "sh", "-c", script) == outside


def test_other_files_by_variables(mine):
    file = lib.make_file(lib.current.home / "other", "[user]\nemail = v@x\n")
    env = {"GIT_CONFIG_GLOBAL": str(file)}
    assert in_project(mine, "git", "config", "--get-all", "user.email", env=env) == "v@x\n"
    env = {"XDG_CONFIG_HOME": str(lib.current.home / "xdg")}
    lib.make_file(lib.current.home / "xdg/git/config", "[pull]\nff = only\n")
    assert in_project(mine, "git", "config", "pull.ff", env=env) == "only\n"


# ---- beside the workspace ---------------------------------------------------------------


@pytest.mark.parametrize("deep", [False, True])
def test_made_beside_the_workspace(mine, deep):
    """It is gone with the box, and the user hears so; the control stays within."""
    project = mine
    if not deep:
        project = lib.make_dir(lib.current.home / "project")
        lib.git("init", "-q", cwd=project)
    script = (
        "git commit -q --allow-empty -m x; git worktree add -q ../other; git init -q ../new;"
        "echo x >../notes; mkdir -p ~/.cache/x; mkdir ~/go; git init -q ~/far; {}"
    )
    done = lib.box("sh", "-euc", script.format("git worktree add -q within -b w"), cwd=project)
    lib.succeeded(done)
    (line,) = [line for line in notes(done) if "beside the workspace" in line]
    names = set(line.partition("the box: ")[2].split(", "))
    far = "../../far (a git repository)" if deep else "../far (a git repository)"
    assert names == {"../other (a git worktree)", "../new (a git repository)", "../notes", far}
    assert b"git worktree prune" in done.stderr
    assert not (project.parent / "other").exists() and (project / "within/.git").exists()
    lib.git("worktree", "prune", cwd=project)
    assert "other" not in lib.git("worktree", "list", cwd=project)


def test_nothing_beside_the_workspace(mine):
    done = lib.box("sh", "-c", "mkdir ~/.cache ~/go; echo x >x; echo x >/tmp/x", cwd=mine)
    assert lib.succeeded(done) == b"" and notes(done) == []


def test_names_beside_the_workspace_are_hostile(mine):
    script = "cd ..; touch \"$(printf 'a\\033]0;x\\007')\"; seq 5000 | xargs touch; ln -s / l"
    done = lib.box("sh", "-euc", script, cwd=mine)
    lib.succeeded(done)
    assert b"\x1b" not in done.stderr and len(done.stderr) < 1000
    assert b"gone with the box" in done.stderr
