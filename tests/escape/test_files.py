"""Attacks on files: what is protected, what is hidden, and what lies outside the workspace.

Every test first attacks from inside a box and looks at the host, then runs the same attack
where nothing forbids it and expects the same look to find the damage.
"""

import contextlib
import ctypes
import os
import pathlib
import stat
import subprocess
import threading
import time

import arena
import lib
import pytest
from arena import face, held, inside, naive, outside

pytestmark = pytest.mark.usefixtures("home", "tool")

GIT = (".git/hooks", ".git/config")
SECRET = "from-the-env-file"


# ---- protected names that exist -----------------------------------------------------------

# Each row must change what the host finds at .git/hooks or .git/config.
ON_EXISTING = {
    "write": ["write .git/config EVIL"],
    "truncate": ["truncate .git/config"],
    "new file in the directory": ["put .git/hooks/pre-commit EVIL"],
    "chmod": ["chmod .git/config 666"],
    "xattr": ["setxattr .git/config user.x EVIL"],
    "unlink and create": ["unlink .git/config", "create .git/config EVIL"],
    "rename onto": ["put c EVIL", "rename c .git/config"],
    "lock file and rename": [
        "create .git/config.lock EVIL",
        "rename .git/config.lock .git/config",
    ],
    "rename away": ["rename .git/config .git/c", "create .git/config EVIL"],
    "exchange": ["put c EVIL", "exchange c .git/config"],
    "exchange of directories": ["mkdir h", "put h/pre-commit EVIL", "exchange h .git/hooks"],
    "whiteout": ["put c EVIL", "whiteout .git/config c2"],
    "hard link out": ["link .git/config c", "write c EVIL"],
    "hard link of the descriptor": ["linkfd .git/config c", "write c EVIL"],
    "replaced by a symlink": [
        "rename .git/hooks .git/h",
        "mkdir planted",
        "put planted/pre-commit EVIL",
        "symlink ../planted .git/hooks",
    ],
    "exchanged for a symlink": [
        "mkdir planted",
        "put planted/pre-commit EVIL",
        "symlink ../planted l",
        "exchange l .git/hooks",
    ],
    "ancestor renamed": [
        "rename .git x",
        "mkdir .git",
        "mkdir .git/hooks",
        "put .git/hooks/pre-commit EVIL",
    ],
    "ancestor exchanged": [
        "mkdir x",
        "mkdir x/hooks",
        "put x/hooks/pre-commit EVIL",
        "exchange x .git",
    ],
    "ancestor replaced by a symlink": [
        "rename .git g",
        "symlink g .git",
        "put g/hooks/pre-commit EVIL",
    ],
    "kept descriptor": ["hold .git/hooks", "putat pre-commit EVIL"],
    "kept descriptor of an ancestor": ["hold .git", "putat hooks/pre-commit EVIL"],
    "working directory": ["chdir .git/hooks", "put pre-commit EVIL"],
    "/proc/self/cwd": ["put /proc/self/cwd/.git/hooks/pre-commit EVIL"],
    "unnamed file": ["open .git/hooks tmp", "linkfd attack .git/hooks/pre-commit"],
}


@pytest.mark.parametrize("steps", ON_EXISTING.values(), ids=ON_EXISTING)
def test_protected_name_is_unchanged(project, steps):
    """Every way to change a file or directory in place or by its name (rule 4)."""
    before = face(project, *GIT)
    inside(*steps)
    assert face(project, *GIT) == before
    subprocess.run(["rm", "-rf", project / "c", project / "c2", project / "h"], check=True)
    for name in ("planted", "x", "l"):
        subprocess.run(["rm", "-rf", project / name], check=True)
    outside(*steps)
    assert face(project, *GIT) != before


def test_protected_through_proc_root(project):
    """/proc/self/root is not a way around a mount."""
    before = face(project, *GIT)
    step = f"put /proc/self/root{project}/.git/hooks/pre-commit EVIL"
    inside(step)
    assert face(project, *GIT) == before
    outside(step)
    assert face(project, *GIT) != before


ON_MOUNTS = {
    "remount": ["remount .git/hooks", "put .git/hooks/pre-commit EVIL"],
    "mount_setattr": ["setattr .git/hooks", "put .git/hooks/pre-commit EVIL"],
    "umount": ["umount .git/hooks", "put .git/hooks/pre-commit EVIL"],
    "umount all": [
        "umount .git/hooks",
        "umount .git",
        "umount .",
        "put .git/hooks/pre-commit EVIL",
    ],
    "clone without what is on top": ["peel .", "putat .git/hooks/pre-commit EVIL"],
    "bind elsewhere": ["mkdir m", "bind . m", "umount m/.git/hooks", "put m/.git/hooks/p EVIL"],
    # Reproduced with bubblewrap: no process is left in the old mount namespace, so it is
    # taken apart and the read-only bind falls off what the descriptor still reaches.
    "nested user namespace, kept descriptor": [
        "hold .",
        "usermount",
        "sleep 1",
        "putat .git/hooks/pre-commit EVIL",
    ],
}


@pytest.mark.parametrize("steps", ON_MOUNTS.values(), ids=ON_MOUNTS)
def test_protection_cannot_be_unmounted(project, steps):
    """The mounts that protect stay (rules 4 and 5); they fall in a sandbox that only binds."""
    before = face(project, *GIT)
    inside(*steps)
    assert face(project, *GIT) == before
    if "m" in os.listdir(project):
        (project / "m").rmdir()
    naive(*steps, read_only=[str(project / ".git/hooks")])
    assert face(project, *GIT) != before


def test_protection_holds_where_nesting_is_allowed(project):
    """--nest gives user namespaces back, but not the right to take the box's mounts off."""
    before = face(project, *GIT)
    nested = [["usermount", *steps] for steps in ON_MOUNTS.values()]
    for steps in [*ON_MOUNTS.values(), *nested]:
        said = inside(*steps, opts=["--nest"])
        assert face(project, *GIT) == before, (steps, said)
        subprocess.run(["rm", "-rf", project / "m"], check=True)
    naive(*ON_MOUNTS["remount"], read_only=[str(project / ".git/hooks")])
    assert face(project, *GIT) != before


# ---- protected names that are absent ------------------------------------------------------

ABSENT = [
    ".vscode",
    ".idea",
    ".codex",
    ".gemini",
    ".cursor",
    "opencode.json",
    "opencode.jsonc",
    ".git/config.worktree",
    ".git/commondir",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    "given/by/option",
]

MAKING = {
    "create": ["create {} EVIL"],
    "mkdir": ["mkdir {}", "put {}/x EVIL"],
    "symlink": ["put c EVIL", "symlink c {}"],
    "rename onto": ["put c EVIL", "rename c {}"],
    "rename a directory onto": ["mkdir d", "put d/x EVIL", "rename d {}"],
    "link onto": ["put c EVIL", "link c {}"],
    "exchange": ["put c EVIL", "exchange c {}"],
    "whiteout": ["put c EVIL", "whiteout c {}"],
    "fifo": ["mknod {} p 0 0"],
    "remove the stand-in": ["rmdir {}", "unlink {}", "create {} EVIL"],
    "open up the stand-in": ["chmod {} 777", "put {}/x EVIL"],
    "move the stand-in": ["rename {} away", "create {} EVIL"],
}


# What the host may find at such a name while a box runs: nothing, nothing that can be read,
# or what git takes for nothing (a common directory of "." is the git directory itself).
STAND_IN = oct(stat.S_IFREG | stat.S_ISVTX | 0o444)
NOTHING = (None, [], oct(stat.S_IFSOCK), (STAND_IN, b"", []), (STAND_IN, b".\n", []))


def making(name):
    """All attacks on one name, and then on the way to it."""
    steps = [step.format(name) for kind in MAKING.values() for step in kind]
    parents = [str(p) for p in reversed(pathlib.PurePath(name).parents)][1:]
    way = [f"mkdir {p}" for p in parents]
    if parents:
        steps += [f"rename {parents[0]} old", *way, f"create {name} EVIL"]
    return way + steps


def own_files(project, name):
    """The tree without the directories on the way to a name, which a box may make."""
    parents = {os.fsencode(str(p)) for p in pathlib.PurePath(name).parents}
    return {n: e for n, e in lib.snapshot(project).items() if n not in parents}


@pytest.mark.parametrize("name", ABSENT)
def test_absent_protected_name_cannot_be_made(project, name):
    """A protected file that is absent at start (CVE-2026-25725), during and after the run."""
    lib.use_clients()
    opts = ["--protect", "given/by/option"]
    listing = own_files(project, name)
    with held(*making(name), project=project, opts=opts) as box:
        assert face(project, name)[name] in NOTHING
    assert face(project, name)[name] is None, box.said
    subprocess.run("rm -rf c d away old", shell=True, cwd=project, check=True)
    assert own_files(project, name) == listing

    for kind, steps in MAKING.items():
        if "stand-in" in kind or kind == "exchange":
            continue
        control = lib.make_dir(project / "control")
        lib.make_file(control / name).unlink()
        outside(*[s.format(name) for s in steps], cwd=control, tool=project / "attack")
        assert face(control, name)[name] is not None, kind
        lib.remove(control)


@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("ends", ["the elder", "the younger"])
def test_absent_name_while_another_box_ends(project, ends, end):
    """Two boxes in one project: the end of one must not take the other's protection off.

    Removing a directory that is a mount point in another namespace detaches the mount there.
    """
    attack = ["put here yes", "await go", "create .claude EVIL", "rmdir .claude", "put .claude/x EVIL"]
    attack += ["mkdir .vscode", "put .vscode/x EVIL"]
    with contextlib.ExitStack() as stack:
        if ends == "the elder":
            other = stack.enter_context(held(project=project))
        process = lib.start_box("./attack", *arena.words(attack))
        arena.await_file(process, project / "here")
        if ends == "the younger":
            other = stack.enter_context(held(project=project))
        if end == "kill":
            other.kill()
            other.wait()
            time.sleep(0.5)
    lib.make_file(project / "go")
    said = process.communicate(timeout=lib.TIMEOUT)
    lib.wait_for(lambda: not (project / ".claude").exists(), "the stand-ins to go", 10)
    assert face(project, ".claude", ".vscode") == {".claude": None, ".vscode": None}, said
    outside("create .claude EVIL")
    assert face(project, ".claude")[".claude"]


# ---- links in the way of a protected name -------------------------------------------------


def link_inside(project):
    lib.make_file(project / "conf" / "envrc", "good")
    os.symlink("conf/envrc", project / ".envrc")
    return ".envrc"


def link_intermediate(project):
    lib.make_file(project / "conf" / "claude" / "settings.json", "good")
    os.symlink("conf/claude", project / ".claude")
    return ".claude/settings.json"


def link_dangling(project):
    lib.make_dir(project / "conf")
    os.symlink("conf/envrc", project / ".envrc")
    return ".envrc"


def link_outside(project):
    lib.make_file(project.parent / "outside" / "envrc", "good")
    os.symlink(project.parent / "outside" / "envrc", project / ".envrc")
    return ".envrc"


def link_chain(project):
    lib.make_file(project / "conf" / "envrc", "good")
    os.symlink("envrc", project / "conf" / "second")
    os.symlink("conf/second", project / ".envrc")
    return ".envrc"


LINK_STEPS = [
    "put conf/envrc EVIL",
    "put conf/claude/settings.json EVIL",
    "rename conf c",
    "mkdir conf",
    "put conf/envrc EVIL",
    "mkdir conf/claude",
    "put conf/claude/settings.json EVIL",
    "unlink conf/second",
    "symlink ../attack conf/second",
    "unlink .envrc",
    "unlink .claude",
    "mkdir .claude",
    "put .envrc EVIL",
    "put .claude/settings.json EVIL",
    "put e EVIL",
    "rename e .envrc",
]


@pytest.mark.parametrize(
    "make", [link_inside, link_intermediate, link_dangling, link_outside, link_chain]
)
def test_protected_name_that_is_or_passes_a_link(project, make):
    """What a host tool finds behind the links is protected, and so are the links (rule 4)."""
    name = make(project)
    for path in project.rglob("*"):
        lib.give(path)
    lib.give(project / ".envrc") if name == ".envrc" else lib.give(project / ".claude")
    before = face(project, name)
    inside(*LINK_STEPS)
    assert face(project, name) == before
    subprocess.run(["rm", "-f", project / "e"], check=True)
    outside(*LINK_STEPS)
    assert face(project, name) != before


# ---- git on the host, after the box -------------------------------------------------------


def evil_config(marker):
    return f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {marker}; false\n"


def git_hook(project, marker):
    return project, [["put", ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {marker}\n"]]


def git_config(project, marker):
    return project, [["write", ".git/config", evil_config(marker)]]


def git_renamed(project, marker):
    steps = ["rename .git x", "mkdir .git", "mkdir .git/objects", "mkdir .git/refs"]
    steps += [["put", ".git/HEAD", "ref: refs/heads/main"]]
    return project, [*steps, ["put", ".git/config", evil_config(marker)]]


def planted_common(marker):
    return ["mkdir evil", "mkdir evil/objects", "mkdir evil/refs"] + [
        ["put", "evil/config", evil_config(marker)]
    ]


def git_commondir(project, marker):
    return project, [*planted_common(marker), "put .git/commondir ../evil"]


def git_worktree_config(project, marker):
    lib.git("config", "extensions.worktreeConfig", "true", cwd=project)
    return project, [["put", ".git/config.worktree", evil_config(marker)]]


def git_submodule(project, marker):
    add_submodule(project, "sub")
    return project, [["put", ".git/modules/sub/config", evil_config(marker)]]


def git_submodule_slash(project, marker):
    """A submodule's name is its path: one `*` does not cover `libs/sub`."""
    add_submodule(project, "libs/sub")
    return project, [["put", ".git/modules/libs/sub/config", evil_config(marker)]]


def git_submodule_commondir(project, marker):
    add_submodule(project, "sub")
    return project, [*planted_common(marker), "put .git/modules/sub/commondir ../../../evil"]


def git_submodule_hook(project, marker):
    add_submodule(project, "sub")
    hook = ".git/modules/sub/hooks/pre-commit"
    return project / "sub", [["put", hook, f"#!/bin/sh\ntouch {marker}\n"]]


def git_linked_worktree(project, marker):
    """The user works in a linked worktree elsewhere; its git directory lies in this project."""
    tree = project.parent / "tree"
    lib.git("worktree", "add", "-q", str(tree), cwd=project)
    return tree, [*planted_common(marker), "put .git/worktrees/tree/commondir ../../../evil"]


def git_linked_worktree_config(project, marker):
    lib.git("config", "extensions.worktreeConfig", "true", cwd=project)
    tree = project.parent / "tree"
    lib.git("worktree", "add", "-q", str(tree), cwd=project)
    return tree, [["put", ".git/worktrees/tree/config.worktree", evil_config(marker)]]


def add_submodule(project, path):
    library = project.parent / "library"
    lib.git("clone", "-q", str(project), str(library), cwd=project.parent)
    allow = ["-c", "protocol.file.allow=always"]
    lib.git(*allow, "submodule", "add", "-q", str(library), path, cwd=project)
    lib.git("commit", "-q", "-m", "submodule", cwd=project)
    for name in ("name=A Tester", "email=tester@example.org"):
        key, value = name.split("=")
        lib.git("config", f"user.{key}", value, cwd=project / path)


GIT_ATTACKS = [
    git_hook,
    git_config,
    git_renamed,
    git_commondir,
    git_worktree_config,
    git_submodule,
    git_submodule_slash,
    git_submodule_commondir,
    git_submodule_hook,
    git_linked_worktree,
    git_linked_worktree_config,
]


@pytest.mark.parametrize("attack", GIT_ATTACKS)
def test_git_on_the_host_runs_nothing_planted(project, attack):
    """The user types `git status` and `git commit` after the box: nothing of it is executed."""
    marker = project.parent / "executed"
    where, steps = attack(project, marker)
    inside(*steps)
    use_git(where)
    assert not marker.exists()
    subprocess.run(["rm", "-rf", project / "evil", project / "x"], check=True)
    outside(*steps)
    use_git(where)
    assert marker.exists()


def use_git(where):
    lib.git("status", cwd=where, check=False)
    lib.git("commit", "--allow-empty", "-m", "two", cwd=where, check=False)


@pytest.mark.parametrize("extension", ["false", "true"])
def test_git_works_meanwhile(project, extension):
    """What stands in for absent names must not break git, neither inside nor on the host."""
    lib.git("config", "extensions.worktreeConfig", extension, cwd=project)
    with held(project=project):
        assert "nothing to commit" in lib.git("status", "--untracked-files=no", cwd=project)
        lib.git("commit", "-q", "--allow-empty", "-m", "on the host", cwd=project)
    done = lib.box("git", "commit", "-q", "--allow-empty", "-m", "in the box")
    assert done.returncode == 0, done
    log = lib.git("log", "--format=%s", cwd=project).split("\n")
    assert log[:2] == ["in the box", "on the host"]
    with held(project=project):
        lib.git("worktree", "add", "-q", str(project.parent / "tree"), cwd=project)
        assert "main" in lib.git("branch", cwd=project)


def test_repository_of_a_linked_worktree(project):
    """The workspace is a linked worktree: what the box has of its repository is protected."""
    marker = project.parent / "executed"
    tree = project.parent / "tree"
    lib.git("worktree", "add", "-q", str(tree), cwd=project)
    subprocess.run(["cp", "-p", project / "attack", tree], check=True)
    own = f"{project}/.git/worktrees/tree"
    steps = [
        ["put", ".git", f"gitdir: {tree}/evil"],
        ["rename", ".git", "g"],
        ["put", f"{project}/.git/hooks/pre-commit", f"#!/bin/sh\ntouch {marker}\n"],
        ["write", f"{project}/.git/config", evil_config(marker)],
        *planted_common(marker),
        ["put", f"{own}/commondir", f"{tree}/evil"],
        ["put", f"{own}/config.worktree", evil_config(marker)],
        ["rename", f"{project}/.git", f"{project}/x"],
    ]
    before = face(project, *GIT), face(tree, ".git")
    inside(*steps, cwd=tree)
    assert (face(project, *GIT), face(tree, ".git")) == before
    use_git(project)
    use_git(tree)
    assert not marker.exists()
    outside(steps[3], cwd=tree)
    use_git(project)
    assert marker.exists()


# ---- hidden files -------------------------------------------------------------------------

HIDDEN = {
    "read": ["read .env"],
    "O_PATH and reopen": ["opathread .env"],
    "mmap": ["mmapread .env"],
    "hard link": ["link .env e", "read e"],
    "hard link of the descriptor": ["linkfd .env e", "read e"],
    "rename": ["rename .env e", "read e"],
    "exchange": ["put e x", "exchange .env e", "read e"],
    "rename of its directory": ["rename sub s", "read s/.env"],
    "exchange of its directory": ["mkdir s", "exchange sub s", "read s/.env"],
    "in a directory below": ["read sub/.env"],
    "another name of the pattern": ["read .env.production"],
    "chmod": ["chmod .env 644", "read .env"],
    "/proc/self/cwd": ["read /proc/self/cwd/.env"],
    "kept descriptor": ["hold .", "readat .env"],
    "through dots": ["read src/../.env"],
    "another mount of the workspace": ["read /view/.env"],
    "another mount of its directory": ["read /part/.env"],
    "another mount of the parent": ["read /above/project/.env"],
}


@pytest.mark.parametrize("steps", HIDDEN.values(), ids=HIDDEN)
def test_hidden_file_is_not_read(project, steps):
    """A hidden .env by every name and every mount of it; `--hide !...` is the control."""
    for name in ("sub/.env", ".env.production"):
        lib.make_file(project / name, f"SECRET={SECRET}\n")
    views = {"/view": project, "/part": project / "sub", "/above": project.parent}
    word = steps[-1].split()[-1]
    opts = [f"--mount={s}:{t}:ro" for t, s in views.items() if word.startswith(t)]
    files = lib.snapshot(project)
    done = lib.box("./attack", *arena.words(steps), opts=opts)
    assert done.returncode in (0, 125), done
    assert SECRET.encode() not in done.stdout + done.stderr
    assert all(lib.snapshot(project)[n] == files[n] for n in files if b".env" in n)
    for junk in ("e", "s"):
        subprocess.run(["rm", "-rf", project / junk], check=True)
    shown = ["--hide", "!**/.env", "--hide", "!**/.env.*"]
    assert SECRET in "".join(inside(*steps, opts=opts + shown))


def test_hidden_through_proc_root(project):
    """The same through /proc/self/root and the path of the workspace."""
    step = f"read /proc/self/root{project}/.env"
    assert SECRET not in "".join(inside(step))
    assert SECRET in "".join(outside(step))


def test_hidden_through_a_peeled_mount(project):
    """A clone of the workspace's mount without what covers the secret."""
    steps = ["peel .", "readat .env"]
    assert SECRET not in "".join(inside(*steps))
    assert SECRET not in "".join(inside("usermount", *steps, opts=["--nest"]))
    cover = f"mount --bind /dev/null {project}/.env"
    assert SECRET in "".join(naive(*steps, setup=cover))


def test_hidden_file_behind_a_link(project):
    """`.env` is a link into the workspace: what it leads to is the secret."""
    (project / ".env").rename(project / "real")
    os.symlink("real", project / ".env")
    lib.give(project / ".env")
    steps = ["read real", "read .env", "link real r", "read r", "rename real r", "read r"]
    assert SECRET not in "".join(inside(*steps))
    assert SECRET in "".join(inside(*steps, opts=["--hide", "!**/.env"]))


def test_hidden_file_is_not_written(project):
    """Nor can it be changed or removed."""
    steps = ["write .env EVIL", "truncate .env", "unlink .env", "put .env EVIL"]
    inside(*steps)
    assert SECRET in (project / ".env").read_text()
    outside(*steps)
    assert SECRET not in (project / ".env").read_text()


def test_protected_through_another_mount(project):
    """A second, writable view of the workspace or of what is above it opens no way around."""
    before = face(project, *GIT, ".vscode")
    for source, target in ((project, "/view"), (project.parent, "/above")):
        top = target if source == project else f"{target}/project"
        steps = [f"put {top}/.git/hooks/pre-commit EVIL", f"put {top}/.vscode/x EVIL"]
        steps += [f"rename {top}/.git {top}/g"]
        opts = ["--mount", f"{source}:{target}:rw"]
        done = lib.box("./attack", *arena.words(steps), opts=opts)
        assert done.returncode in (0, 125), done
        assert face(project, *GIT, ".vscode") == before, (target, done.stdout)
    outside("put .git/hooks/pre-commit EVIL")
    assert face(project, *GIT, ".vscode") != before


# ---- outside the workspace ----------------------------------------------------------------


def clean(targets):
    """Which of these files are there? And then they are not."""
    there = [t for t in targets if t.exists()]
    for target in there:
        target.unlink()
    return there


def test_nothing_is_written_outside(project, home, place):
    """Home, the neighbours, the system and the root: the host sees no new file."""
    lib.make_dir(place / "neighbour")
    unique = f"planted-{place.parent.name}"
    targets = [home / "planted", place / "neighbour" / "planted", place / "planted"]
    targets += [pathlib.Path(d, unique) for d in ("/tmp", "/var/tmp", "/dev/shm", "/run")]
    system = [pathlib.Path(d, unique) for d in ("/", "/usr", "/usr/bin", "/etc", "/opt")]
    steps = [f"put {t} EVIL" for t in targets + system] + ["put ../neighbour/planted EVIL"]
    steps += [f"put {home}/secret.txt EVIL", f"unlink {home}/secret.txt"]
    inside(*steps)
    assert not clean(targets + system)
    assert "secret" in (home / "secret.txt").read_text()
    # The control: a mount that was asked for, and the user without a box.
    inside("put /n/planted EVIL", opts=["--mount", f"{place}/neighbour:/n:rw"])
    assert (place / "neighbour" / "planted").exists()
    outside(f"put {home}/planted EVIL")
    assert (home / "planted").exists()


def test_read_only_mount_is_not_written(place):
    """--mount without :rw, and what it gives when it has it."""
    lib.make_dir(place / "data")
    step = ["put /data/x EVIL", "remount /data", "setattr /data", "put /data/x EVIL"]
    inside(*step, opts=["--mount", f"{place}/data:/data"])
    assert not (place / "data" / "x").exists()
    inside(*step, opts=["--mount", f"{place}/data:/data:rw"])
    assert (place / "data" / "x").exists()


def test_nothing_is_read_outside(home, place):
    """The home's secret and a neighbour's, by path, by dots, by /proc/1 and by links."""
    lib.make_file(place / "neighbour" / "secret", "the secret of the home")
    os.symlink(home / "secret.txt", place / "project" / "link")
    steps = [f"read {home}/secret.txt", "read ../neighbour/secret", "read link"]
    steps += ["read ../home/secret.txt"]
    for link in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root/../.."):
        steps += [f"read {link}{home}/secret.txt"]
    assert "the secret" not in "".join(inside(*steps))
    assert "".join(outside(*steps[:4])).count("the secret") == 4
    opts = ["--mount", f"{place}/neighbour:/n"]
    assert "the secret" in inside("read /n/secret", opts=opts)[0]


def test_new_root_is_not_a_way_out(place, home):
    """chroot, pivot_root and mounting over system paths (rule 3); unshare(1) can do it all."""
    steps = ["chroot /", "mkdir n", "tmpfs n", "pivot n n", "bind . /usr", "tmpfs /etc"]
    assert not [line for line in inside(*steps) if line.startswith("ok")][1:]
    os.rmdir(place / "project" / "n")
    said = naive(*steps[:3], "bind . /usr", "tmpfs /etc")
    assert [line for line in said if line != "ok"] == []
    escape = ["chroot src", "chdir ../../../../../../..", f"read .{home}/secret.txt"]
    assert "the secret" not in "".join(inside(*escape))
    assert "the secret" in naive(*escape)[2]


def test_no_ghost_files(project, home, place):
    """A run that protects, hides and mounts leaves both trees as they were, to the inode."""
    lib.make_dir(place / "data")
    opts = ["--mount", f"{place}/data:{project}/mounted", "--mount", f"{place}/data:/a/b/c:rw"]
    opts += ["--protect", "no/such/thing", "--hide", "no/such/secret", "--protect", "*.lock"]
    before = lib.snapshot(project), lib.snapshot(home)
    done = lib.box("./attack", "read", "src/main.c", opts=opts)
    assert (lib.snapshot(project), lib.snapshot(home)) == before, done.stderr
    lib.succeeded(lib.box("./attack", "read", "src/main.c", opts=opts[2:]))
    assert (lib.snapshot(project), lib.snapshot(home)) == before
    inside("put made x")
    assert lib.snapshot(project) != before[0]


# ---- started by root ----------------------------------------------------------------------

# Root's box is uid 1000 inside, which is still root's own uid to the files of the kernel.


@pytest.fixture
def root_project(project):
    if not lib.ROOT:
        pytest.skip("needs root")
    subprocess.run(["chown", "-R", "0:0", project], check=True)
    return project


GLOBALS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/printk",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/fs/pipe-max-size",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/kcore",
]


def test_kernel_settings_when_root_starts_the_box(root_project):
    """core_pattern and its like belong to kuid 0 (CVE-2022-0811, CVE-2025-31133)."""
    there = [path for path in GLOBALS[:7] if os.path.exists(path)]
    before = {path: pathlib.Path(path).read_text(encoding="ascii") for path in there}
    every = [path for path in GLOBALS if os.path.exists(path)]
    try:
        inside(*[["write", path, "1"] for path in there], user=False)
        changed = [p for p in there if pathlib.Path(p).read_text(encoding="ascii") != before[p]]
    finally:
        for path, value in before.items():
            if pathlib.Path(path).read_text(encoding="ascii") != value:
                pathlib.Path(path).write_text(value, encoding="ascii")
    assert not changed
    said = inside(*[f"open {path} w" for path in every], user=False)
    assert "ok" not in said, dict(zip(every, said))
    # The control: root outside opens them all (kcore is not writable by anybody).
    said = outside(*[f"open {path} w" for path in every if "kcore" not in path], user=False)
    assert set(said) == {"ok"}, dict(zip(every, said))


def test_kernel_memory_when_root_starts_the_box(root_project):
    """Kernel memory, the kernel's log and disks cannot be opened by root's box."""
    paths = ["/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/loop0", "/dev/fuse"]
    steps = [f"open {path} r" for path in paths]
    assert "ok" not in inside(*steps, user=False)
    assert "ok" in outside(*steps, user=False)


def test_nothing_is_written_outside_when_root_starts_the_box(root_project, home):
    """Files of root are the box's own uid: only mounts and Landlock stand before them."""
    unique = f"planted-{root_project.parent.parent.name}"
    tops = ("/", "/usr", "/usr/bin", "/etc", "/opt", "/root")
    targets = [pathlib.Path(top, unique) for top in tops]
    inside(*[f"put {t} EVIL" for t in targets], user=False)
    assert not clean(targets)
    outside(f"put {targets[-1]} EVIL", user=False)
    assert clean(targets) == targets[-1:]
    assert "root:" not in "".join(inside("read /etc/shadow", user=False))
    assert "root:" in "".join(outside("read /etc/shadow", user=False))


def test_protected_when_root_starts_the_box(root_project):
    """The whole of the protected and hidden names again, with root's uid."""
    before = face(root_project, *GIT, ".vscode")
    for steps in [*ON_EXISTING.values(), *ON_MOUNTS.values()]:
        inside(*steps, "put .vscode/x EVIL", user=False)
        assert face(root_project, *GIT, ".vscode") == before, steps
        subprocess.run("rm -rf c c2 h m planted x l", shell=True, cwd=root_project, check=True)
    assert SECRET not in "".join(inside("chmod .env 777", "read .env", user=False))
    outside("put .git/hooks/pre-commit EVIL", user=False)
    assert face(root_project, *GIT, ".vscode") != before


def test_device_nodes(root_project, place):
    """Nodes can neither be made nor, when they lie in a mount, be opened."""
    subprocess.run(["mknod", "-m", "666", place / "node", "c", "1", "5"], check=True)
    made = root_project / "disk"
    inside("mknod disk b 8 0", user=False)
    assert not made.exists()
    opts = ["--mount", f"{place}/node:/node:rw"]
    assert inside("open /node rw", opts=opts, user=False) == ["EACCES"]
    assert inside("open /node rw", opts=opts, cwd=root_project) == ["EACCES"]
    outside("mknod disk b 8 0", user=False)
    assert stat.S_ISBLK(made.stat().st_mode)
    assert outside(f"open {place}/node rw", user=False) == ["ok"]


def test_device_nodes_of_the_host_keep_their_modes(root_project):
    """/dev/null in the box is the host's own node, and root's box its owner."""
    paths = [f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")]
    before = {path: os.stat(path) for path in paths}
    inside(*[f"chmod {path} 600" for path in paths], user=False)
    changed = [path for path, st in before.items() if os.stat(path).st_mode != st.st_mode]
    for path in changed:
        os.chmod(path, stat.S_IMODE(before[path].st_mode))
    assert not changed
    subprocess.run(["mknod", root_project / "null", "c", "1", "3"], check=True)
    outside("chmod null 600", user=False)
    assert stat.S_IMODE(os.stat(root_project / "null").st_mode) == 0o600


@pytest.mark.parametrize("how", ["setuid", "file capability"])
def test_privileged_programs_gain_nothing(project, place, how):
    """A set-uid root program and one with CAP_DAC_OVERRIDE, in a mounted directory (rule 7)."""
    if not lib.ROOT:
        pytest.skip("needs root")
    data = place / "data"
    data.mkdir()
    data.chmod(0o755)
    (data / "secret").write_text("the secret of root")
    (data / "secret").chmod(0o600)
    program = data / "program"
    subprocess.run(["cp", project / "attack", program], check=True)
    program.chmod(0o4755 if how == "setuid" else 0o755)
    os.chown(program, 0, 0)
    program.chmod(0o4755 if how == "setuid" else 0o755)
    if how != "setuid":
        subprocess.run(["setcap", "cap_dac_override+ep", program], check=True)
    opts = ["--mount", f"{data}:/data"]
    said = inside("run /data/program read /data/secret", "run /data/program uids", opts=opts)
    assert said == ["EACCES", f"ok {lib.UID} {lib.UID}"]
    said = outside(f"run {program} read {data}/secret")
    assert said == ["ok the secret of root"]


@pytest.mark.parametrize(
    "path",
    ["/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/sys/power/state", "/sys"],
)
def test_no_sys_and_no_cgroups(root_project, path):
    """No /sys in the box, so neither release agents nor uevent helpers (CVE-2022-0492)."""
    group = f"/sys/fs/cgroup/carrel-test-{os.getpid()}"
    said = inside(f"open {path} path", f"mkdir {group}", user=False)
    if made := os.path.exists(group):
        os.rmdir(group)
    assert "ok" not in said and not made
    assert outside("open /sys path", user=False) == ["ok"]


# ---- races --------------------------------------------------------------------------------


class Flipper(threading.Thread):
    """Exchange two names as fast as possible until told to stop."""

    def __init__(self, a, b):
        super().__init__(daemon=True)
        self.call = ctypes.CDLL(None, use_errno=True).renameat2
        self.names, self.flips, self.going = (os.fsencode(a), os.fsencode(b)), 0, True

    def run(self):
        while self.going:
            if self.call(-100, self.names[0], -100, self.names[1], 2) == 0:
                self.flips += 1

    def __exit__(self, *_):
        self.going = False
        self.join()

    def __enter__(self):
        self.start()
        return self


def test_workspace_swapped_for_a_link_during_start(project, place):
    """The workspace changes places with a link to another directory (CVE-2021-30465).

    Whatever is resolved, the box is in the directory that its path names: it is never in the
    victim under the workspace's name, and the protections hold wherever it is.
    """
    victim = lib.make_dir(place / "victim")
    subprocess.run(["cp", "-p", project / "attack", victim], check=True)
    os.symlink(victim, place / "link")
    lib.give(place / "link")
    ran = 0
    with Flipper(project, place / "link") as flipper:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            steps = arena.words(["cwd", "put planted x", "put .claude EVIL"])
            opts = ["--workspace", str(project)]
            done = lib.box("./attack", *steps, opts=opts, cwd=place)
            assert done.returncode in (0, 125, 126, 127), done
            if done.returncode:
                continue
            ran += 1
            said = done.stdout.decode().splitlines()[0].removeprefix("ok ")
            assert said == str(victim) or not (victim / "planted").exists(), done
            (victim / "planted").unlink(missing_ok=True)
            assert face(victim, ".claude") == {".claude": None}
    assert flipper.flips > 100 and ran > 0, (flipper.flips, ran)
    # The control: the victim is the user's to write, and one of the two names leads there.
    for path in (project, place / "link"):
        outside("put planted x", "put .claude EVIL", cwd=path)
    assert (victim / "planted").exists() and face(victim, ".claude") != {".claude": None}


def test_protected_ancestor_swapped_during_start(project, place):
    """An ancestor of a protected path changes places with a link that leads out."""
    victim = lib.make_dir(place / "victim")
    lib.make_file(victim / "conf" / "keep", "victim")
    lib.make_file(project / "sub" / "conf" / "keep", "good")
    os.symlink(victim, project / "link")
    lib.give(project / "link")
    before, ran = lib.snapshot(victim), 0
    with Flipper(project / "sub", project / "link") as flipper:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            steps = ["put sub/planted x", "put sub/conf/keep EVIL", "put link/planted x"]
            done = lib.box("./attack", *arena.words(steps), opts=["--protect", "sub/conf/keep"])
            assert done.returncode in (0, 125), done
            ran += done.returncode == 0
            assert lib.snapshot(victim) == before, done
    assert flipper.flips > 100 and ran > 0, (flipper.flips, ran)
    outside("put link/planted x", "put sub/planted x")
    assert lib.snapshot(victim) != before
