"""What programs outside run or obey, wherever it leads.

Each attack writes into a file that git, carrel or a client would go by later, and the verdict is
what that program then does on the host. The control is the same attack without a box.
"""

import os
import subprocess

import lib
import pytest

MARK = "ran-on-the-host"
HOOK = f"#!/bin/sh\\necho x >$HOME/{MARK}\\n"


def ran():
    """Has the attack come to run on the host? The mark is taken away again."""
    mark = lib.current.home / MARK
    there = mark.exists()
    if there:
        mark.unlink()
    return there


def write_hook(path):
    """A script that puts a pre-commit hook at path, by whatever means."""
    where = os.path.dirname(path)
    return (
        f"mkdir -p '{where}'; rm -f '{path}'; printf '{HOOK}' >'{path}'; chmod 755 '{path}'; true"
    )


def commit(tree):
    """The user's next commit."""
    lib.git("commit", "-q", "--allow-empty", "-m", "x", cwd=tree, check=False)


def configure(file, text):
    with open(file, "ab") as config:
        config.write(text if isinstance(text, bytes) else text.encode())
    lib.give(file)


def link(to, at):
    os.symlink(to, at)
    lib.give(at)


def check_commit(project, attack, tree=None):
    """Of one attack that plants a hook: nothing in the box, the hook without one."""
    for user, value in (("user.name", "N"), ("user.email", "n@example.org")):
        lib.git("config", user, value, cwd=tree or project)
    lib.box("sh", "-c", attack, cwd=project)
    commit(tree or project)
    assert not ran()
    lib.execute(["sh", "-c", attack], cwd=project)
    commit(tree or project)
    assert ran(), "the control: without a box the attack works"


# ---- hooks --------------------------------------------------------------------------------

SPELLINGS = {
    "byte-order mark": b"\xef\xbb\xbf[core]\n\thooksPath = tools/hooks\n",
    "continued": b"[core]\n\thooksPath = tools\\\n/hooks\n",
    "continued in quotes": b'[core]\r\n\thooksPath = "too\\\r\nls/"hooks ; x\r\n',
    "behind a bracket": b"[core]bare=false\n[CORE]HOOKSPATH=tools/hooks#x\n",
    "behind a quoted bracket": b'[a "]"]\n[core] hooksPath=tools/hooks\n',
    "dots": b"[core]\n\thooksPath = ./tools/../tools/./hooks\n",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_any_spelling_of_a_hooks_path(project, text):
    config = project / ".git/config"
    config.write_bytes(text + config.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    check_commit(project, write_hook("tools/hooks/pre-commit"))


def test_hooks_path_in_the_home(project, home):
    """~/ in the repository's configuration, and a link in the home that leads back."""
    link(project / "tools", home / "tools")
    configure(project / ".git/config", "[core]\n\thooksPath = ~/tools/hooks\n")
    check_commit(project, write_hook("tools/hooks/pre-commit"))


def test_hooks_path_of_the_users_own(project, home):
    lib.make_file(home / ".gitconfig", "[core]\n\thooksPath = .githooks\n")
    check_commit(project, write_hook(".githooks/pre-commit"))


def test_hooks_path_in_xdg(project, home):
    lib.make_file(home / ".config/git/config", "[core]\n\thooksPath = .githooks\n")
    check_commit(project, write_hook(".githooks/pre-commit"))


def test_hooks_at_the_top_of_the_project(project):
    """A directory that no mount can make read-only as a whole."""
    configure(project / ".git/config", f"[core]\n\thooksPath = {project}\n")
    check_commit(project, write_hook("pre-commit"))
    lib.succeeded(lib.box("sh", "-c", "echo x >made"))
    assert (project / "made").exists()


def test_hook_that_is_a_link(project):
    lib.make_file(project / "scripts/pre-commit", "#!/bin/sh\n", mode=0o755)
    link("../../scripts/pre-commit", project / ".git/hooks/pre-commit")
    check_commit(project, write_hook("scripts/pre-commit"))


@pytest.mark.parametrize("section", ["include", 'includeIf "onbranch:**"'])
@pytest.mark.parametrize("path", ["~/conf/extra", "../conf/extra"])
def test_included_file(project, home, section, path):
    link(project / "conf", home / "conf")
    lib.make_file(project / "conf/extra", "[user]\n\tname = x\n")
    configure(project / ".git/config", f"[{section}]\n\tpath = {path}\n")
    attack = "printf '[core]\\nhooksPath = evil\\n' >conf/extra;" + write_hook("evil/pre-commit")
    check_commit(project, attack)


def test_worktree_configuration(project):
    lib.git("config", "extensions.worktreeConfig", "true", cwd=project)
    lib.make_file(project / ".git/config.worktree", "[core]\n\thooksPath = tools/hooks\n")
    check_commit(project, write_hook("tools/hooks/pre-commit"))


@pytest.mark.parametrize("shared", [True, False], ids=["config", "config.worktree"])
def test_linked_worktree_inside(project, shared):
    """A relative hooksPath counts from the top of each working tree."""
    lib.git("worktree", "add", "-q", "trees/two", cwd=project)
    lib.git("config", "extensions.worktreeConfig", "true", cwd=project)
    where = "config" if shared else "worktrees/two/config.worktree"
    configure(project / ".git" / where, "[core]\n\thooksPath = tools/hooks\n")
    check_commit(project, write_hook("trees/two/tools/hooks/pre-commit"), project / "trees/two")


@pytest.mark.parametrize("value", ["tools/hooks", "../tools/hooks"])
def test_submodule(project, place, template, value):
    lib.git(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet"),
        *("add", str(template), "part"),
        cwd=project,
    )
    configure(project / ".git/modules/part/config", f"[core]\n\thooksPath = {value}\n")
    attack = write_hook(os.path.normpath(f"part/{value}/pre-commit"))
    check_commit(project, attack, project / "part")


def test_directory_of_a_larger_repository(project):
    """The box has only a part of the project; git at the top is sent into it."""
    part = lib.make_dir(project / "part")
    configure(project / ".git/config", "[core]\n\thooksPath = part/tools\n")
    check_commit(part, write_hook("tools/pre-commit"), project)


def test_repository_that_is_left_out(project, place):
    """A .git file that names a repository which does not point back: git obeys it all the same."""
    there = lib.make_dir(place / "there")
    lib.make_file(there / ".git", f"gitdir: {project}/.git\n")
    configure(project / ".git/config", "[core]\n\thooksPath = tools/hooks\n")
    check_commit(there, write_hook("tools/hooks/pre-commit"))


def test_configuration_that_git_stops_at(project):
    """What it leads to cannot be known, so nothing starts until it is mended."""
    before = (project / ".git/config").read_bytes()
    configure(project / ".git/config", "[core\n")
    lib.failed_clearly(lib.box("true"), ".git/config", "git would stop at line")
    assert lib.git("status", check=False) == "", "the control: git stops"
    (project / ".git/config").write_bytes(before)
    lib.succeeded(lib.box("true"))


# ---- programs that a setting names --------------------------------------------------------

COMMANDS = {
    "alias": ("alias.go", "!./scripts/go.sh", ["go"]),
    "alias with a shell": ("alias.go", "!sh scripts/go.sh", ["go"]),
    "alias from the top": (
        *("alias.go", '!"$(git rev-parse --show-toplevel)/scripts/go.sh"'),
        ["go"],
    ),
    "fsmonitor": ("core.fsmonitor", "scripts/go.sh", ["status"]),
    "editor": ("core.editor", "./scripts/go.sh", ["commit", "--allow-empty"]),
}


def check_program(project, name, value, command):
    """Of one setting that names a program: what the user's next use of it runs."""
    lib.git("config", name, value, cwd=project)
    attack = write_hook("scripts/go.sh")
    lib.box("sh", "-c", attack)
    lib.git(*command, check=False)
    assert not ran()
    lib.execute(["sh", "-c", attack], cwd=project)
    lib.git(*command, check=False)
    assert ran(), "the control: without a box the attack works"


@pytest.mark.parametrize("name, value, command", COMMANDS.values(), ids=COMMANDS)
def test_program_of_a_setting(project, name, value, command):
    lib.make_file(project / "scripts/go.sh", "#!/bin/sh\n", mode=0o755)
    check_program(project, name, value, command)


@pytest.mark.parametrize("which", ["alias", "fsmonitor", "editor"])
def test_absent_program_of_a_setting(project, which):
    check_program(project, *COMMANDS[which])


# ---- hidden files behind links ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["relative", "absolute", "by a directory"])
def test_hidden_link_that_leaves_and_comes_back(project, kind):
    secret = lib.make_file(project / "conf/one", "SECRET=1\n", mode=0o600)
    (project / ".env").unlink()
    if kind == "by a directory":
        link(f"../{project.name}/conf", project / "way")
    to = {
        "relative": f"../{project.name}/conf/one",
        "absolute": f"{project.parent}/./{project.name}/../{project.name}/conf/one",
        "by a directory": f"way/../../{project.name}/conf/one",
    }[kind]
    link(to, project / ".env")
    assert lib.execute(["cat", ".env"]).stdout == secret.read_bytes(), "the control"
    assert lib.box("sh", "-c", "cat .env conf/one; echo done").stdout == b"done\n"
    lib.box("sh", "-c", "mv conf away; cat away/one >copy; ln -sf /dev/null .env")
    assert not (project / "copy").exists() or b"SECRET" not in (project / "copy").read_bytes()
    assert os.readlink(project / ".env") == to


def test_hidden_link_into_another_mount(project, place):
    other = lib.make_dir(place / "other")
    lib.make_file(other / "secret", "SECRET=1\n")
    link(f"../{project.name}/b", other / "back")
    lib.make_file(project / "b/deep", "SECRET=2\n")
    (project / ".env").unlink()
    link("../other/secret", project / ".env")
    link(str(other / "back/deep"), project / ".env.local")
    opts = ["--mount", f"{other}:{other}:rw"]
    words = ["sh", "-c", f"cat .env .env.local {other}/secret b/deep; echo done"]
    assert lib.box(*words, opts=opts).stdout == b"done\n"
    done = lib.box(*words, opts=[*opts, "--hide", "!**/.env", "--hide", "!**/.env.*"])
    assert done.stdout.count(b"SECRET") == 4, "the control: what nobody hides is read"


# ---- the user's own files -----------------------------------------------------------------

EVIL = '{"agents":{"x":{"harness":"command","command":["true"],"env":{"A":"!touch $HOME/ran"}}}}'


def check_kept(project, path, text="evil", env=None, opts=()):
    """A box cannot make path, as the project has it, say something else; the user can."""
    before = (project / path).read_bytes() if (project / path).exists() else None
    where = os.path.dirname(path) or "."
    attack = (
        f"mkdir -p {where}; echo '{text}' >{path}; mv {path.split('/')[0]} moved;"
        f"rm -rf {path.split('/')[0]}; mkdir -p {where}; echo '{text}' >{path}; true"
    )
    lib.succeeded(lib.box("sh", "-c", attack, env=env, opts=opts, cwd=project))
    now = (project / path).read_bytes() if (project / path).exists() else None
    assert now == before
    lib.execute(["sh", "-c", attack], cwd=project)
    assert (project / path).read_text() == text + "\n", "the control: without a box it works"


def test_own_manifest_that_is_a_link(project, home):
    lib.make_file(project / "dots/carrel.json", "{}\n")
    lib.make_dir(home / ".config")
    lib.make_dir(home / ".config/carrel")
    link(project / "dots/carrel.json", home / ".config/carrel/carrel.json")
    check_kept(project, "dots/carrel.json", EVIL)
    assert b'"x"' in lib.succeeded(lib.carrel("agents", "--json", cwd=home)), "carrel obeys it"


def test_own_manifest_that_is_a_link_to_nothing(project, home):
    lib.make_dir(home / ".config")
    lib.make_dir(home / ".config/carrel")
    link("../../../project/dots/carrel.json", home / ".config/carrel/carrel.json")
    check_kept(project, "dots/carrel.json", EVIL)


def test_config_directory_that_is_a_link(project, home):
    """~/.config leads into the project, and carrel's directory is not there yet."""
    lib.make_dir(project / "config")
    link(project / "config", home / ".config")
    check_kept(project, "config/carrel/carrel.json", EVIL)


def test_config_home_in_the_project(project):
    """XDG_CONFIG_HOME names a directory of the project that is not there yet."""
    env = {"XDG_CONFIG_HOME": str(project / "etc/config")}
    check_kept(project, "etc/config/carrel/carrel.json", EVIL, env=env)


def test_state_that_would_come_to_be_in_the_project(project, home):
    lib.make_dir(project / "local")
    link(project / "local", home / ".local")
    lib.failed_clearly(lib.box("true"), "carrel's own state", "local/state")
    (home / ".local").unlink()
    lib.succeeded(lib.box("true"))


def test_own_configuration_in_a_mount(project, home, place):
    """A writable mount has the directory that ~/.config leads to."""
    dots = lib.make_dir(place / "dots")
    link(dots, home / ".config")
    attack = f"mkdir -p {dots}/carrel; echo x >{dots}/carrel/carrel.json; echo x >{dots}/made"
    lib.box("sh", "-c", attack, opts=["--mount", f"{dots}:{dots}:rw"])
    assert (dots / "made").exists(), "the control: the mount can be written"
    assert not (dots / "carrel").exists()


@pytest.mark.parametrize("what", [".config/carrel", ".config/carrel/carrel.json"])
def test_own_configuration_as_a_mount(project, home, what):
    lib.make_file(home / ".config/carrel/carrel.json", "{}\n")
    lib.make_dir(home / ".config/other")
    mount = ["--mount", f"{home}/{what}:/there:rw"]
    lib.failed_clearly(lib.box("true", opts=mount), "what carrel goes by")
    for other in (f"{home}/.config/other:/there:rw", f"{home}/{what}:/there"):
        lib.succeeded(lib.box("true", opts=["--mount", other]))


LINKS = {
    "settings of a client": (".claude/settings.json", "dots/settings.json"),
    "hooks of a client": (".claude/hooks", "dots/hooks"),
    "a command of a client": (".claude/commands/x.md", "dots/x.md"),
    "a client's directory": (".codex", "dots/codex"),
    "git": (".gitconfig", "dots/gitconfig"),
    "git in xdg": (".config/git/config", "dots/gitconfig"),
    "shell": (".bashrc", "dots/bashrc"),
    "anything with a dot": (".some-programs-rc", "dots/rc"),
    "ssh": (".ssh/config", "dots/ssh"),
    "fish": (".config/fish/config.fish", "dots/config.fish"),
}


@pytest.mark.parametrize("there", [True, False], ids=["there", "dangling"])
@pytest.mark.parametrize("at, to", LINKS.values(), ids=LINKS)
def test_link_of_the_home(project, home, at, to, there):
    lib.make_file(home / at, "").unlink()
    link(project / to, home / at)
    if there:
        lib.make_file(project / to, "")
    check_kept(project, to)


def test_deep_link_of_a_home_with_dotfiles(project, home):
    """Beside one link into the project there may be others, in directories of any program."""
    lib.make_file(home / ".config/term/themes/x.toml", "").unlink()
    link(project / "dots/x.toml", home / ".config/term/themes/x.toml")
    lib.make_file(project / "dots/x.toml", "")
    lib.succeeded(lib.box("sh", "-c", "echo control >dots/x.toml"))
    assert (project / "dots/x.toml").read_text() == "control\n"
    link(project / "dots/rc", home / ".some-programs-rc")
    lib.make_file(project / "dots/rc", "")
    check_kept(project, "dots/x.toml")


def test_link_of_the_home_that_is_no_configuration(project, home):
    """A name without a dot is the user's own way into the project."""
    lib.make_file(project / "notes", "")
    link(project / "notes", home / "notes")
    link(project, home / ".here")
    lib.succeeded(lib.box("sh", "-c", "echo x >notes; echo x >made"))
    assert (project / "notes").read_text() == "x\n"
    assert (project / "made").exists()


# ---- a write that leaves the times as they are ----------------------------------------------

# A page that was read before it is written: on tmpfs the kernel does not hear of the store.
STORE = """
import mmap, os, sys
for path in sys.argv[1:]:
    before = os.stat(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        page[0]
        page[0:1] = b"#"
    print(path, os.stat(path).st_ctime_ns == before.st_ctime_ns)
"""
STORED = [
    "CLAUDE.md", "sub/.envrc", "sub/.vscode/settings.json", "sub/.vscode/x/y", ".husky/pre-commit",
    "bare/hooks/pre-commit", ".git/rebase-merge/git-rebase-todo",
]  # fmt: skip


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
@pytest.mark.parametrize("kind", ["tmpfs", "other"])
def test_store_to_a_mapped_page_is_reported(place, kind):
    """Where times do not tell of it, contents do; and a run that changes nothing is quiet."""
    work = lib.make_dir(place / "work")
    if kind == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"uid={lib.UID}", "none", work], check=True)
    try:
        lib.git("init", "-q", cwd=work)
        lib.git("init", "-q", "--bare", str(work / "bare"), cwd=work)
        for name in [*STORED, "node_modules/a/.npmrc", ".claude/settings.json"]:
            lib.make_file(work / name, "text\n")
        lib.make_file(work / "closed/.envrc", "text\n", mode=0)
        lib.make_file(work / "large/.envrc", "x" * (1 << 20))
        lib.settle()
        quiet = lib.box("true", cwd=work)
        assert lib.succeeded(quiet) == b"" and not quiet.stderr, quiet
        done = lib.box(lib.PYTHON, "-c", STORE, *STORED, "large/.envrc", cwd=work)
        same = lib.succeeded(done).decode().split()[1::2]
        assert kind == "other" or set(same) == {"True"}, "the kernel tells of it by now"
        said = done.stderr.decode()
        for name in STORED:
            assert name in said or f"{os.path.dirname(name)}  (" in said, (name, said)
        assert "large/.envrc" in said and "closed" not in said and "node_modules" not in said
        assert not lib.box("true", cwd=work).stderr
        # An old file below a directory that got another name: known by its inode.
        rename = "mv sub old; python3 -c \"$0\" old/.envrc; mv old sub"
        lib.make_file(work / "sub/.envrc", "other\n")
        lib.settle()
        done = lib.box("sh", "-c", rename, STORE, cwd=work)
        assert b"sub/.envrc" in done.stderr, done
        # One that the start did not look at, because it lay where nobody works.
        moved = 'mv node_modules/a out; python3 -c "$0" out/.npmrc'
        done = lib.box("sh", "-c", moved, STORE, cwd=work)
        assert b"out/.npmrc" in done.stderr, done
    finally:
        if kind == "tmpfs":
            subprocess.run(["umount", "-l", work], check=True)
