"""The projects that are attacked: each a home with a project in it, made once and copied.

A round always happens at the same path, as linked worktrees have absolute paths in their files.
"""

import dataclasses
import functools
import os
import pathlib
import shutil
import subprocess

import lib

HOME_FILES = {
    ".bashrc": "# the user's own\n",
    ".profile": "# the user's own\n",
    ".ssh/authorized_keys": "# the user's own\n",
    ".config/app/settings.json": "{}\n",
    ".gitconfig": "[user]\n\tname = A User\n\temail = user@example.org\n"
    '[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n'
    "[gc]\n\tautoDetach = false\n[advice]\n\tdetachedHead = false\n",
}
# Leaves a mark on the host; from a box neither it nor the marks can be reached.
TRIPPED = """#!/bin/sh
{ printf '%s: ' "$1"; tr '\\0' ' ' <"/proc/$PPID/cmdline"; echo; } >>"${0%/bin/*}/marks/$1"
"""


@dataclasses.dataclass
class Shape:
    """A project. git_dirs and trees are what it had before: relative to it, or with {names}."""

    name: str
    git_dirs: list
    trees: list
    modules: list = dataclasses.field(default_factory=list)
    leads: list = dataclasses.field(default_factory=list)  # where hooks are by the configuration
    files: list = dataclasses.field(default_factory=list)  # that the configuration includes
    own: list = dataclasses.field(default_factory=lambda: ["home/src/project"])


@functools.lru_cache(None)
def top():
    return lib.make_dir(lib.root() / "tripwire")


def now():
    return top() / "now"


def names():
    """What the {names} in operations stand for."""
    home = now() / "home"
    return {
        "home": home,
        "ws": home / "src" / "project",
        "main": home / "src" / "main",
        "common": home / "src" / "main" / ".git",
        "trip": now() / "bin" / "tripped",
    }


def filled(text):
    """The text with its {names} replaced; other braces stay as they are."""
    for name, value in names().items():
        text = text.replace("{" + name + "}", str(value))
    return text


def project():
    return names()["ws"]


# ---- making them ----------------------------------------------------------------------------


def git(*args, cwd=None):
    home = now() / "home"
    done = lib.execute(["git", *args], cwd=cwd or project(), env={"HOME": str(home)})
    assert done.returncode == 0, (args, done.stderr)


def make_home():
    base = now()
    lib.make_dir(base)
    lib.make_file(base / "bin" / "tripped", TRIPPED, mode=0o755)
    lib.make_dir(base / "marks")
    for name, text in HOME_FILES.items():
        lib.make_file(base / "home" / name, text)
    lib.make_dir(base / "home" / "src")


def make_repo(path):
    """Two branches that merge without a conflict, and a remote that has one commit more."""
    lib.make_file(path / "README", "a project\n")
    lib.make_file(path / "lib" / "code.py", "print(1)\n")
    lib.make_file(path / ".gitignore", "*.o\n")
    git("init", "-q", "-b", "main", cwd=path)
    git("add", "-A", cwd=path)
    git("commit", "-q", "-m", "one", cwd=path)
    git("checkout", "-q", "-b", "side", cwd=path)
    lib.make_file(path / "side.txt", "side\n")
    git("add", "-A", cwd=path)
    git("commit", "-q", "-m", "side", cwd=path)
    git("checkout", "-q", "main", cwd=path)


def add_remote(path):
    remote = now() / "home" / "remote.git"
    git("clone", "-q", "--bare", "--no-hardlinks", path, remote, cwd=now() / "home")
    git("remote", "add", "origin", remote, cwd=path)
    git("fetch", "-q", "origin", cwd=path)


def make_other():
    """Another project of the user's, to be written to through a link."""
    other = now() / "home" / "other"
    lib.make_file(other / "notes.txt", "another project\n")
    git("init", "-q", cwd=other)
    git("add", "-A", cwd=other)
    git("commit", "-q", "-m", "other", cwd=other)


def plain():
    make_repo(project())
    add_remote(project())
    return Shape("plain", [".git"], [".", "lib"])


def with_submodules():
    library = now() / "home" / "library"
    make_repo(library)
    make_repo(project())
    git("submodule", "--quiet", "add", f"file://{library}", "sub")
    git("submodule", "--quiet", "add", "--name", "deep/er", f"file://{library}", "vendor/deep")
    git("commit", "-q", "-m", "submodules")
    add_remote(project())
    modules = [".git/modules/sub", ".git/modules/deep/er"]
    return Shape("submodules", [".git", *modules], [".", "sub", "vendor/deep"], ["sub", "deep/er"])


def linked():
    main = names()["main"]
    make_repo(main)
    add_remote(main)
    git("worktree", "add", "-q", "-b", "work", project(), cwd=main)
    return Shape(
        "linked",
        ["{common}", "{common}/worktrees/project"],
        [".", "{main}"],
        own=["home/src/project", "home/src/main"],
    )


def linked_with_submodule():
    library = now() / "home" / "library"
    main = names()["main"]
    make_repo(library)
    make_repo(main)
    git("submodule", "--quiet", "add", f"file://{library}", "sub", cwd=main)
    git("commit", "-q", "-m", "submodule", cwd=main)
    git("worktree", "add", "-q", "-b", "work", project(), cwd=main)
    git("submodule", "--quiet", "update", "--init")
    own = "{common}/worktrees/project"
    return Shape(
        "linked_with_submodule",
        ["{common}", own, own + "/modules/sub", "{common}/modules/sub"],
        [".", "sub", "{main}", "{main}/sub"],
        ["sub"],
        own=["home/src/project", "home/src/main"],
    )


def worktree_inside():
    make_repo(project())
    git("worktree", "add", "-q", "-b", "work", "trees/work")
    return Shape("worktree_inside", [".git", ".git/worktrees/work"], [".", "trees/work"])


def nested():
    make_repo(project())
    add_remote(project())
    make_repo(project() / "nested" / "inner")
    lib.make_file(project() / ".gitignore", "*.o\nnested/\n")
    return Shape("nested", [".git", "nested/inner/.git"], [".", "nested/inner"])


def bare_inside():
    """Worktrees beside their bare repository, and a bare one with any name."""
    seed = now() / "home" / "seed"
    make_repo(seed)
    lib.make_dir(project())
    git("clone", "-q", "--bare", "--no-hardlinks", seed, ".bare")
    git("clone", "-q", "--bare", "--no-hardlinks", seed, "data/x.git")
    lib.make_file(project() / ".git", "gitdir: ./.bare\n")
    git("worktree", "add", "-q", "main", "main")
    return Shape(
        "bare_inside",
        [".bare", "data/x.git", ".bare/worktrees/main"],
        ["main", "data/x.git"],
    )


def no_repo():
    lib.make_file(project() / "README", "no repository\n")
    lib.make_file(project() / "lib" / "code.py", "print(1)\n")
    return Shape("no_repo", [".git"], ["."])


def hooks_path():
    make_repo(project())
    lib.make_file(project() / ".githooks" / "pre-commit", "#!/bin/sh\nexit 0\n", mode=0o755)
    git("config", "core.hooksPath", ".githooks")
    git("add", "-A")
    git("commit", "-q", "-m", "hooks")
    return Shape("hooks_path", [".git"], ["."], leads=[".githooks"])


def husky():
    make_repo(project())
    hook = '#!/bin/sh\n. "${0%/*}/_/husky.sh"\n'
    lib.make_file(project() / ".husky" / "pre-commit", hook, mode=0o755)
    lib.make_file(project() / ".husky" / "_" / "husky.sh", "true\n", mode=0o755)
    git("config", "core.hooksPath", ".husky")
    git("add", "-A")
    git("commit", "-q", "-m", "hooks")
    return Shape("husky", [".git"], ["."], leads=[".husky", ".husky/_"])


def includes():
    make_repo(project())
    lib.make_file(project() / "conf" / "git.inc", "[core]\n\tquotePath = false\n")
    git("config", "include.path", "../conf/git.inc")
    git("config", "includeIf.onbranch:main.path", "more.inc")
    return Shape("includes", [".git"], ["."], files=["conf/git.inc", ".git/more.inc"])


def worktree_config():
    make_repo(project())
    git("config", "extensions.worktreeConfig", "true")
    git("config", "--worktree", "core.quotePath", "false")
    git("worktree", "add", "-q", "-b", "work", "trees/work")
    return Shape("worktree_config", [".git", ".git/worktrees/work"], [".", "trees/work"])


def leads_below():
    """Configurations with names of their own: of a worktree inside, a submodule, a nested one."""
    library = now() / "home" / "library"
    make_repo(library)
    make_repo(project())
    git("submodule", "--quiet", "add", f"file://{library}", "sub")
    git("commit", "-q", "-m", "submodule")
    make_repo(project() / "nested" / "inner")
    git("worktree", "add", "-q", "-b", "work", "trees/work")
    git("config", "core.hooksPath", "tools/hk")
    git("config", "core.hooksPath", "own/hk", cwd=project() / "sub")
    git("config", "include.path", "../../../conf/sub.inc", cwd=project() / "sub")
    git("config", "core.hooksPath", "hk", cwd=project() / "nested" / "inner")
    git("config", "include.path", "../inner.inc", cwd=project() / "nested" / "inner")
    return Shape(
        "leads_below",
        [".git", ".git/modules/sub", ".git/worktrees/work", "nested/inner/.git"],
        [".", "sub", "trees/work", "nested/inner"],
        ["sub"],
        ["tools/hk", "trees/work/tools/hk", "sub/own/hk", "sub/tools/hk", "nested/inner/hk"],
        files=["conf/sub.inc", "nested/inner/inner.inc"],
    )


MAKERS = [
    plain,
    with_submodules,
    linked,
    linked_with_submodule,
    worktree_inside,
    nested,
    bare_inside,
    no_repo,
    hooks_path,
    husky,
    includes,
    worktree_config,
    leads_below,
]
NAMES = [
    "plain",
    "submodules",
    "linked",
    "linked_with_submodule",
    "worktree_inside",
    "nested",
    "bare_inside",
    "no_repo",
    "hooks_path",
    "husky",
    "includes",
    "worktree_config",
    "leads_below",
]


@functools.lru_cache(None)
def made(name):
    """The shape of that name, kept beside the place of the rounds."""
    maker = MAKERS[NAMES.index(name)]
    lib.remove(now())
    make_home()
    make_other()
    shape = maker()
    assert shape.name == name
    os.rename(now(), top() / name)
    return shape


def fresh(name):
    """Put a copy of that project in place; what is written from now on is newer."""
    shape = made(name)
    lib.remove(now())
    subprocess.run(["cp", "-a", top() / name, now()], check=True)
    lib.settle()
    return shape


def end():
    if top.cache_info().currsize:
        shutil.rmtree(top(), ignore_errors=True)


@functools.lru_cache(None)
def existing(name):
    """The names in a project and its git directories, but for objects and sample hooks."""
    found = []
    base = top() / name / "home" / "src"
    for start, prefix in (("project", ""), ("main/.git", "{common}/")):
        for where, dirs, files in os.walk(base / start):
            at = os.path.relpath(where, base / start)
            if "objects" in dirs:
                dirs.remove("objects")
                files.append("objects")
            names = [os.path.normpath(os.path.join(at, n)) for n in dirs + files]
            found += [prefix + n for n in names if not n.endswith(".sample")]
    return sorted(found)


def outside(shape):
    """All that the user has that is not this project's: name -> what a write would change."""
    own = {now() / pathlib.Path(name) for name in shape.own}
    seen = {}
    todo = [now() / "home"]
    while todo:
        where = todo.pop()
        for entry in os.scandir(where):
            path = pathlib.Path(entry.path)
            if path in own:
                continue
            st = entry.stat(follow_symlinks=False)
            is_dir = entry.is_dir(follow_symlinks=False)
            kept = (st.st_mode, st.st_ino)
            if not is_dir:
                kept += (st.st_size, st.st_mtime_ns, st.st_ctime_ns)
            seen[str(path.relative_to(now()))] = kept
            if is_dir:
                todo.append(path)
    return seen
