"""Where carrel is started: by whom, with which home, in which directory."""

import json
import os
import re
import shutil

import lib
import pytest

needs_root = pytest.mark.skipif(not lib.ROOT, reason="needs root")
GAMES = 5  # a user with a passwd entry on every Debian


def whoami(**how):
    done = lib.box("sh", "-c", 'id -u; id -g; id -un; echo "$USER"; echo "$HOME"', **how)
    return lib.succeeded(done).decode().splitlines()


# ---- by whom ----------------------------------------------------------------------------


def test_user_without_a_passwd_entry(project):
    """The ids are the host's, and inside there is a name for them."""
    uid, gid, name, user, home = whoami()
    assert (int(uid), int(gid), home) == (lib.UID, lib.GID, str(lib.current.home))
    assert name and name == user


@needs_root
def test_user_with_a_passwd_entry(place):
    there = lib.make_dir(place / "theirs", GAMES)
    assert whoami(uid=GAMES, cwd=there)[0:4:2] == ["5", "games"]
    lib.succeeded(lib.box("touch", "made", uid=GAMES, cwd=there))
    assert (there / "made").stat().st_uid == GAMES


@needs_root
def test_root_is_uid_1000_inside(place):
    """Outside what it writes is root's; inside it has no more power than anybody."""
    there = lib.make_dir(place / "roots", 0)
    uid, gid, *_ = whoami(user=False, cwd=there)
    assert (uid, gid) == ("1000", "1000")
    lib.succeeded(lib.box("touch", "made", user=False, cwd=there))
    assert (there / "made").stat().st_uid == 0
    script = 'for f in /proc/sys/kernel/hostname /proc/sysrq-trigger; do echo x >>"$f"; done'
    assert lib.box("sh", "-c", script, user=False, cwd=there).returncode != 0
    assert lib.box("chown", "1", "made", user=False, cwd=there).returncode != 0
    assert (there / "made").stat().st_uid == 0


# ---- which home -------------------------------------------------------------------------


@pytest.mark.parametrize("home", [None, "", "/nonexistent", "relative/home", "/etc/passwd"])
def test_home_that_is_none(project, home):
    """HOME unset or leading nowhere: it works, and HOME in the box can be written."""
    done = lib.box("sh", "-c", 'echo x >"$HOME/new" && cat "$HOME/new"', env={"HOME": home})
    assert lib.succeeded(done) == b"x\n"


def test_home_that_is_a_link(project, place, home):
    link = place / "link"
    link.symlink_to(home)
    script = 'echo x >"$HOME/new" && cat "$HOME/new" "$HOME/secret.txt"'
    done = lib.box("sh", "-c", script, env={"HOME": str(link)})
    assert done.stdout == b"x\n"
    assert os.listdir(home) == ["secret.txt"]


@needs_root
def test_home_on_another_mount(project, home):
    """The home is a file system of its own, and the workspace lies in it."""
    script = f"""
        mount -t tmpfs -o mode=0755,uid={lib.UID},gid={lib.GID} none {home} || exit 99
        echo secret >{home}/secret && mkdir {home}/work || exit 99
        chown {lib.UID} {home}/work || exit 99
        cd {home}/work && "$@" && cat made
    """
    inside = "pwd && echo made >made && ls -A ~ && cat ~/secret; test $? = 1"
    inner = lib.as_user([lib.program(), "run", "-y", "--", "sh", "-c", inside])
    outer = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *inner]
    done = lib.execute(outer, user=False)
    assert lib.succeeded(done).decode().split() == [f"{home}/work", "work", "made"]


@pytest.mark.parametrize("below", ["work", "a/b/c/work"])
def test_workspace_below_the_home(home, below):
    """The usual case: the project is there at its own path, its neighbours are not."""
    lib.make_file(home / below / "file", "of the host\n")
    script = f'cat {home}/secret.txt; cat file && echo new >new && cat "$HOME/{below}/new"'
    done = lib.box("sh", "-c", script, cwd=home / below)
    assert lib.succeeded(done) == b"of the host\nnew\n"
    assert (home / below / "new").read_text() == "new\n"


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("where", ["home", "above", "root"])
def test_workspace_that_holds_the_home_is_refused(home, where, asked):
    path = {"home": home, "above": home.parent, "root": "/"}[where]
    if asked:
        done = lib.box("touch", "made", opts=["--workspace", path])
    else:
        done = lib.box("touch", "made", cwd=path)
    lib.failed_clearly(done, str(path))
    assert not os.path.exists(os.path.join(path, "made"))


def test_toolchains_of_the_home(project, home):
    """What PATH finds below the home is there to be run, read-only, with what it needs."""
    hello = "#!/bin/sh\ncat ~/.rustup/lib\n"
    lib.make_file(home / ".cargo/bin/hello", hello, mode=0o755)
    lib.make_file(home / ".rustup/lib", "of the toolchain\n")
    lib.make_file(home / ".cargo/credentials.toml", "token\n")
    lib.make_file(home / ".pyenv/shims/unasked", hello, mode=0o755)
    before = lib.snapshot(home)
    env = {"PATH": f"{home}/.cargo/bin:/usr/bin:/bin"}
    assert lib.succeeded(lib.box("hello", env=env)) == b"of the toolchain\n"
    lib.failed_clearly(lib.box("hello"), "hello", code=127)
    seen = lib.succeeded(lib.box("sh", "-c", 'echo "$PATH"; find ~ -type f', env=env))
    assert seen.decode().split()[0].split(":")[0] == f"{home}/.cargo/bin"
    files = {f"{home}/.cargo/bin/hello", f"{home}/.rustup/lib"}
    assert set(seen.decode().split()[1:]) == files
    attack = "for f in ~/.cargo/bin ~/.rustup; do echo x >$f/new; rm -rf $f; mv $f $f.old; done"
    lib.box("sh", "-c", f"echo x >>~/.cargo/bin/hello; {attack}", env=env)
    assert lib.snapshot(home) == before
    lib.execute(["sh", "-c", "echo x >>~/.cargo/bin/hello"], env=env)
    assert lib.snapshot(home) != before


# What a tool keeps beside its programs, in the same directory of the home, and is secret.
BESIDE = {
    ".pub-cache/bin": ".pub-cache/credentials.json",
    ".nimble/bin": ".nimble/github_api_token",
    ".luarocks/bin": ".luarocks/upload_config.lua",
    ".conda/envs/a/bin": ".conda/token",
    ".gem/ruby/3.1.0/bin": ".gem/credentials",
    "bin": "notes",
}


def test_toolchains_without_their_secrets(project, home):
    for programs, secret in BESIDE.items():
        lib.make_file(home / programs / f"x{len(programs)}", "#!/bin/sh\necho $0\n", mode=0o755)
        lib.make_file(home / secret, "secret\n")
    site = lib.execute([lib.PYTHON, "-c", "import site; print(site.getusersitepackages())"])
    lib.make_file(lib.succeeded(site).decode().strip() + "/mine.py", "X = 'of --user'\n")
    lib.make_file(home / ".local/bin/mine", f"#!{lib.PYTHON}\nimport mine; print(mine.X)\n", mode=0o755)
    path = ":".join(str(home / name) for name in [*BESIDE, ".local/bin"])
    env = {"PATH": f"{path}:/usr/bin:/bin"}
    run = "; ".join(f"x{len(programs)}" for programs in BESIDE)
    seen = lib.succeeded(lib.box("sh", "-ec", f"mine; {run}", env=env)).decode().split("\n")
    assert seen[:-1] == ["of --user", *(str(home / n / f"x{len(n)}") for n in BESIDE)]
    script = "cd ~; for f in $0; do test -e $f && echo $f; done; true"
    found = ["sh", "-c", script, " ".join(BESIDE.values())]
    assert lib.succeeded(lib.box(*found, env=env)) == b""
    assert len(lib.succeeded(lib.execute(found, env=env)).split()) == len(BESIDE)


# What a tool keeps among its programs, and is secret; and what lies beside it.
AMONG = {
    "miniconda3/etc/conda/activate.d/env_vars.sh": "miniconda3/etc/conda/activate.d/libs.sh",
    "miniconda3/envs/a/conda-meta/state": "miniconda3/envs/a/conda-meta/history",
    ".conda/envs/b/pip.conf": ".conda/envs/b/lib/x",
    ".dotnet/corefx/cryptography/x509stores/my/key.pfx": ".dotnet/sdk/x",
    ".npm-global/etc/npmrc": ".npm-global/lib/x",
    ".nvm/versions/node/v22/etc/npmrc": ".nvm/versions/node/v22/lib/x",
}


def test_secrets_inside_of_toolchains(project, home):
    for secret, shown in AMONG.items():
        lib.make_file(home / secret, "SECRET\n")
        lib.make_file(home / shown, "shown\n")
    roots = ["miniconda3", ".conda/envs/b", ".dotnet", ".npm-global", ".nvm/versions/node/v22"]
    env = {"PATH": ":".join(str(home / root / "bin") for root in roots) + ":/usr/bin:/bin"}
    read = ["sh", "-c", "cd ~; cat $0 $1 2>&-; true", " ".join(AMONG), " ".join(AMONG.values())]
    assert lib.succeeded(lib.box(*read, env=env)) == b"shown\n" * len(AMONG)
    outside = lib.succeeded(lib.execute(read, env=env))
    assert outside == b"SECRET\n" * len(AMONG) + b"shown\n" * len(AMONG)
    # Through a mount that the user asks for, too.
    again = lib.box("sh", "-c", "cat /m/etc/npmrc /m/lib/x", opts=("--mount", f"{home}/.npm-global:/m"), env=env)
    assert lib.succeeded(again) == b"shown\n"


# Links of /usr into /etc and /var that end at nothing in a box, and should: secrets and settings
# of this machine. (/etc/maven has passwords of servers; what Maven needs to start is there.)
PRIVATE = r"/etc/(ssl/private|environment|maven|default|skel|machine-id)(/.*)?|/var/log.*"
LINKS = r"""find /usr -xdev -type l \( -lname '/etc/*' -o -lname '/var/*' -o -lname '*../etc/*' -o \
-lname '*../var/*' \) ! -lname '/etc/alternatives/*' -exec sh -c '
for l; do test ! -r "$l" || echo "$l"; done' sh {} + 2>&-; true"""


def test_links_of_the_systems_programs_lead_to_what_they_lead_to_outside(project):
    """What programs of /usr need of /etc and /var is in the box, by the rule in plan/layout.c."""
    words = ["sh", "-c", LINKS]
    outside, inside = (
        set(lib.succeeded(done).decode().split()) for done in (lib.execute(words), lib.box(*words))
    )
    assert outside, "there are such links on every system"
    missing = {link: os.path.realpath(link) for link in outside - inside}
    assert not {k: v for k, v in missing.items() if not re.fullmatch(PRIVATE, v)}


INSTALLED = {  # what a link leads to below ~/.local/share, and what belongs to it
    "claude/versions/2.1.0": "claude/versions/1.0",
    "pipx/venvs/black/bin/black": "pipx/venvs/black/lib/data",
    "app/bin/app": "app/bin/helper",
}


@pytest.mark.parametrize("target", INSTALLED)
def test_links_of_local_bin_lead_to_their_programs(project, home, target):
    share = home / ".local/share"
    lib.make_file(share / target, "#!/bin/sh\necho started\n", mode=0o755)
    lib.make_file(share / INSTALLED[target], "beside it\n")
    secrets = [share / target.split("/")[0] / "auth.json", share / "other/file"]
    for path in secrets:
        lib.make_file(path, "secret\n")
    lib.make_file(home / ".local/bin/x").unlink()
    os.symlink(share / target, home / ".local/bin/prog")
    env = {"PATH": f"{home}/.local/bin:/usr/bin:/bin"}
    assert lib.succeeded(lib.box("prog", env=env)) == b"started\n"
    assert lib.succeeded(lib.box("cat", share / INSTALLED[target], env=env)) == b"beside it\n"
    for path in secrets:
        assert b"secret" not in lib.box("cat", path, env=env).stdout
    assert lib.box("sh", "-c", f"echo bad > {share / target}", env=env).returncode != 0
    # Where ~/.local/bin is not on the PATH, the box has none of it.
    assert lib.box("test", "-e", share / target).returncode == 1


# ---- which directory --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        b"with space",
        b" ",
        b"new\nline",
        b"\xff\xfe not UTF-8",
        "\u00fcml\u00e4ut \u2603".encode(),
        b"quote'\"`",
        b"colon:ro",
        b"comma,back\\slash",
        b"$(touch x);&|*?[]{}",
        b"-leading-dash",
        b"\x1b]0;title\x07",
        b"\\040octal",
        b"...",
        b"n" * 255,
    ],
)
def test_directory_names(place, name):
    """Whatever the directory is called, it is there under that name, and is protected."""
    path = lib.make_dir(os.path.join(os.fsencode(place), name))
    lib.make_file(os.path.join(path, b".env"), "SECRET\n")
    lib.make_file(os.path.join(path, b".vscode/tasks.json"), "of the host\n")
    before = lib.snapshot(path)
    attack = "cat .env; echo x >.vscode/tasks.json; mkdir .claude; echo x >.claude/x; mv .vscode v"
    done = lib.box("sh", "-c", f"{attack}; pwd; echo made >made", cwd=path)
    assert lib.succeeded(done) == path + b"\n"
    after = lib.snapshot(path)
    assert after.pop(b"made")
    assert after == before


def test_directory_given_by_a_link(project, place):
    """The working directory was reached through a link: the box is in the real one."""
    (place / "link").symlink_to(project)
    done = lib.box("sh", "-c", "pwd -P; touch made", opts=["--workspace", place / "link"])
    assert lib.succeeded(done) == os.fsencode(project) + b"\n"
    assert (project / "made").exists()


def test_deep_directory(place):
    path = place / "/".join(["d" * 100] * 20)
    lib.make_file(path / "file", "deep\n")
    assert lib.succeeded(lib.box("cat", "file", cwd=path)) == b"deep\n"


def test_directory_that_is_gone(place):
    """The working directory was removed: a clear line."""
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    argv = [lib.program(), "run", "-y", "--", "true"]
    lib.failed_clearly(lib.execute(["sh", "-c", script, "sh", *argv]))


@needs_root
def test_directory_of_somebody_else(place):
    """A workspace the user may only read can be read, and nothing is left in it."""
    there = lib.make_dir(place / "theirs", 0)
    lib.make_file(there / "file", "of root\n", uid=0)
    before = lib.snapshot(there)
    assert lib.succeeded(lib.box("cat", "file", cwd=there)) == b"of root\n"
    assert lib.box("sh", "-c", "echo x >file; echo x >new", cwd=there).returncode != 0
    assert lib.snapshot(there) == before


def test_directory_without_write_permission(project):
    """Its owner may change that in the box, so what is absent could not be kept so: refused."""
    project.chmod(0o555)
    before = lib.snapshot(project)
    lib.failed_clearly(lib.box("sh", "-c", "chmod u+w .; echo x >.claude"), "writable")
    assert lib.snapshot(project) == before
    project.chmod(0o755)
    lib.box("sh", "-c", "chmod u+w .; echo x >.claude")
    assert lib.snapshot(project) == before


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400], ids=oct)
def test_directory_that_may_not_be_read(place, mode):
    """The reason is said, and with the right to read it the same works."""
    there = lib.make_dir(place / "closed")
    os.chmod(there, mode)
    done = lib.carrel("run", "-y", "--workspace", there, "--", "true")
    lib.failed_clearly(done, f"workspace {there}: you may not read it")
    os.chmod(there, 0o755)
    lib.succeeded(lib.carrel("run", "-y", "--workspace", there, "--", "true"))


def test_the_home_cannot_be_mounted_onto_the_box_s_own(project, home):
    """The advice that comes with it works."""
    lib.make_file(home / "data" / "file", "d\n")
    done = lib.box("true", opts=["--mount", home])
    lib.failed_clearly(done, "the box has a home of its own there", "~/DIR", f"{home}:/mnt/home")
    assert lib.succeeded(lib.box("cat", home / "data/file", opts=["--mount", home / "data"])) == b"d\n"
    done = lib.box("cat", "/mnt/home/data/file", opts=["--mount", f"{home}:/mnt/home"])
    assert lib.succeeded(done) == b"d\n"


@pytest.mark.parametrize("words", [["ps"], ["allow", "x", "example.org"], ["port", "x", "3000"]])
def test_a_runtime_directory_that_is_not_there_is_said(place, words):
    gone = place / "gone"
    said = lib.carrel(*words, env={"XDG_RUNTIME_DIR": str(gone)}).stderr.decode()
    assert f"XDG_RUNTIME_DIR is {gone}, which is not there" in said
    said = lib.carrel(*words, env={"XDG_RUNTIME_DIR": str(lib.make_dir(gone))}).stderr.decode()
    assert "which is not there" not in said


def test_no_detached_box_that_nobody_could_reach(project, place):
    words = ["run", "-y", "-d", "--", "touch", "made"]
    gone = place / "gone"
    lib.failed_clearly(lib.carrel(*words, env={"XDG_RUNTIME_DIR": str(gone)}), f"{gone}, which is not there")
    lib.failed_clearly(lib.carrel(*words, env={"XDG_RUNTIME_DIR": None}), "is not set", "where you attach")
    assert not (project / "made").exists()
    lib.succeeded(lib.carrel(*words))
    lib.wait_for((project / "made").exists, "the detached box")


@needs_root
@pytest.mark.parametrize("what", ["workspace", "state", "recording"])
def test_full_disk(place, project, home, what):
    """A file system that has no entry left: the start stops, and names the cause."""
    full = lib.make_dir(place / "full")
    words = {"workspace": ["--workspace", full / "w"], "recording": ["--record", full / "w/x"],
             "state": ["--allow", "example.org"]}[what]  # fmt: skip
    script = (
        'mount -t tmpfs -o size=1M,nr_inodes=3 none "$0" && mkdir "$0/w" && chown $1 "$0/w" &&'
        ' touch "$0/last" || exit 99; shift; "$@"; code=$?; mount -o remount,nr_inodes=1000 "$0"; "$@" || exit 98; exit $code'
    )
    env = {"XDG_STATE_HOME": str(full / "w")} if what == "state" else {}
    inner = lib.as_user([lib.program(), "run", "-y", *words, "--", "true"])
    outer = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, full, str(lib.UID)]
    done = lib.execute([*outer, *inner], user=False, cwd=project, env=env)
    assert done.returncode == 125, done.stderr
    assert b"No space left on device\n  Make room there: " in done.stderr


@needs_root
def test_read_only_file_system(project, place):
    """The workspace lies on a file system mounted read-only."""
    before = lib.snapshot(project)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; cd "$0"; "$@"'
    inside = "cat src/main.c; touch x"
    inner = lib.as_user([lib.program(), "run", "-y", "--", "sh", "-c", inside])
    outer = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, project, *inner]
    done = lib.execute(outer, user=False)
    assert b"int main" in done.stdout and b"Read-only" in done.stderr
    assert lib.snapshot(project) == before


@pytest.mark.parametrize("top", ["/tmp", "/var/tmp"])
def test_workspace_in_a_shared_directory(top):
    """The rest of /tmp is not in the box, the workspace is."""
    path = os.path.join(top, f"carrel-workspace-{os.getpid()}")
    beside = lib.make_file(f"{path}-beside", "beside\n")
    lib.make_dir(path)
    try:
        done = lib.box("sh", "-c", f"echo made >made; cat {beside}; ls {top}", cwd=path)
        seen = set(lib.succeeded(done).decode().split()) - {lib.root().name}
        assert seen == {os.path.basename(path)}
        assert os.listdir(path) == ["made"]
    finally:
        lib.remove(path)
        beside.unlink()


# ---- box in a box -----------------------------------------------------------------------


@pytest.fixture
def inside(project):
    """carrel itself, where a box can run it."""
    copy = project / "carrel"
    shutil.copy(lib.program(), copy)
    copy.chmod(0o755)
    return copy


def test_nested_box(project, inside):
    """In a box that allows it, carrel builds another one, and its rules hold there."""
    script = "echo inner >made; cat /proc/self/status; cat .env; echo x >.claude/x; exit 7"
    command = ["./carrel", "run", "-y", "--name", "inner", "--", "sh", "-c", script]
    done = lib.box(*command, opts=["--nest"])
    assert done.returncode == 7, done.stderr
    assert (project / "made").read_text() == "inner\n"
    assert b"Seccomp:\t2" in done.stdout and b"SECRET" not in done.stdout
    assert not os.path.lexists(project / ".claude")


def test_nested_box_must_be_allowed(project, inside):
    """Without --nest the inner carrel says clearly that it cannot."""
    done = lib.box("./carrel", "run", "-y", "--", "touch", "made")
    lib.failed_clearly(done)
    assert not (project / "made").exists()


# ---- linked worktrees -------------------------------------------------------------------


@pytest.fixture
def worktree(project, place):
    """A second working tree of the project's repository, elsewhere."""
    path = place / "linked"
    lib.git("worktree", "add", "-q", "-b", "linked", path, cwd=project)
    return path


def test_worktree_can_be_worked_in(project, worktree):
    script = "git status --short && echo x >f && git add f && git commit -q -m two"
    lib.succeeded(lib.box("sh", "-c", script, cwd=worktree))
    assert lib.git("log", "--format=%s", "linked", cwd=project) == "two\none\n"
    assert lib.git("status", "--short", cwd=worktree) == ""


def test_worktree_cannot_change_what_the_repository_executes(project, worktree):
    """Hooks, configuration and the links between the two trees stay as they are."""
    lib.make_file(project / ".git" / "hooks" / "pre-push", "#!/bin/sh\n", mode=0o755)
    main, own = project / ".git", project / ".git" / "worktrees" / "linked"
    before = lib.snapshot(project)
    for path in (main / "hooks" / "pre-push", main / "hooks" / "new", main / "config",
                 main / "config.worktree", main / "commondir", own / "commondir",
                 own / "gitdir", own / "config.worktree", worktree / ".git"):  # fmt: skip
        script = 'echo x >>"$0"; rm -f "$0"; echo x >"$0"; mv "$1" "$1-moved"'
        lib.box("sh", "-c", script, path, path.parent, cwd=worktree)
        assert lib.snapshot(project) == before, path
        assert (worktree / ".git").read_text() == f"gitdir: {own}\n"
    lib.succeeded(lib.box("sh", "-c", f"echo x >{main}/description", cwd=worktree))
    assert (main / "description").read_text() == "x\n"


@pytest.mark.parametrize("name", [".bare", "project.git"])
def test_worktrees_beside_their_repository(project, place, name):
    """There is no main tree, and git works in each of them; hooks stay as they are."""
    bare = place / "layout" / name
    lib.git("clone", "-q", "--bare", project, bare, cwd=place)
    lib.git("worktree", "add", "-q", "-b", "linked", "../linked", cwd=bare)
    tree = place / "layout" / "linked"
    script = "git status --short && echo x >f && git add f && git -c user.name=A -c user.email=a@b "
    lib.succeeded(lib.box("sh", "-c", script + "commit -q -m two", cwd=tree))
    assert lib.git("log", "--format=%s", "linked", cwd=bare) == "two\none\n"
    before = lib.state(bare, "config"), lib.state(bare, "hooks")
    evil = 'echo EVIL >>"$0/config"; echo EVIL >"$0/hooks/post-commit"; mv "$0/hooks" "$0/x"; true'
    lib.succeeded(lib.box("sh", "-c", evil, bare, cwd=tree))
    assert (lib.state(bare, "config"), lib.state(bare, "hooks")) == before
    assert not (bare / "hooks/post-commit").exists()


def test_worktree_does_not_show_the_main_tree(project, worktree):
    """Only the repository is in the box, not the other working tree with its secrets."""
    done = lib.box("sh", "-c", f"cat {project}/.env; cat {project}/src/main.c", cwd=worktree)
    assert done.returncode != 0 and done.stdout == b""


@pytest.mark.parametrize("lie", ["worktree", "commondir", "directory", "nowhere"])
def test_git_file_that_lies(project, place, lie):
    """A .git file that points into a repository which does not point back opens nothing."""
    liar = lib.make_dir(place / "liar")
    target = {
        "worktree": project / ".git" / "worktrees" / "fake",
        "commondir": liar / "gitdir",
        "directory": project / ".git",
        "nowhere": place / "nowhere",
    }[lie]
    if lie == "commondir":
        lib.make_file(target / "commondir", f"{project}/.git\n")
        lib.make_file(target / "gitdir", f"{liar}/.git\n")
        lib.make_file(target / "HEAD", "ref: refs/heads/main\n")
    lib.make_file(liar / ".git", f"gitdir: {target}\n")
    before = lib.snapshot(project)
    script = "cat $0/.git/config; echo x >$0/.git/hooks/x; echo x >$0/.git/HEAD"
    done = lib.box("sh", "-c", script, project, cwd=liar)
    assert b"[core]" not in done.stdout
    assert lib.snapshot(project) == before


def notices(cwd):
    return json.loads(lib.succeeded(lib.carrel("plan", "--json", "--", "true", cwd=cwd)))["notices"]


def test_git_file_that_lies_is_noted_once(project, place):
    """And nobody is told how to make somebody's repository the liar's."""
    lib.make_file(place / "liar" / ".git", f"gitdir: {project}/.git\n")
    (note,) = notices(place / "liar")
    assert "does not point back" in note and "boxes there do not see" in note
    assert "git config" not in note
    assert notices(project) == []


@pytest.mark.parametrize("name", ["own.git", "an own.git", "$HOME`id`'\".git"])
def test_separate_git_directory(place, name):
    """It is left out until it is told, in the note's own words, whose it is."""
    tree, git = place / f"of {name}", place / name
    lib.git("init", "-q", "--separate-git-dir", git, tree, cwd=place)
    script = 'git status --short && echo EVIL >>"$0/hooks/x"; echo EVIL >>"$0/config"; ls "$0"'
    done = lib.box("sh", "-c", script, git, cwd=tree)
    assert done.returncode != 0 and b"HEAD" not in done.stdout
    taken, left_out = notices(tree)
    assert "made in one moment" in taken and "left out of the box" in left_out
    (remedy,) = re.findall("`(git config core.worktree [^`]*)` in this directory", taken)
    assert lib.execute(["sh", "-c", remedy], cwd=tree).returncode == 0
    assert notices(tree) == []
    before = lib.state(git, "config"), lib.state(git, "hooks/x")
    assert b"HEAD" in lib.succeeded(lib.box("sh", "-c", script, git, cwd=tree))
    assert (lib.state(git, "config"), lib.state(git, "hooks/x")) == before


def test_separate_git_directory_of_another_name(place):
    """By its name it could be anybody's directory: one project, but not in the box."""
    tree, git = place / "tree", place / "other"
    lib.git("init", "-q", "--separate-git-dir", git, tree, cwd=place)
    lib.git("config", "core.worktree", tree, cwd=tree)
    (note,) = notices(tree)
    assert "left out of the box" in note and "ends in .git" in note
    assert lib.box("ls", git, cwd=tree).returncode != 0


def test_git_file_of_a_worktree_that_was_copied(project, worktree, place):
    """A copy of a worktree's .git file elsewhere is no worktree: the back link says so."""
    liar = lib.make_dir(place / "liar")
    lib.make_file(liar / ".git", (worktree / ".git").read_text())
    assert b"[core]" not in lib.box("cat", project / ".git" / "config", cwd=liar).stdout
    assert b"[core]" in lib.box("cat", project / ".git" / "config", cwd=worktree).stdout
