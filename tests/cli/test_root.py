"""Which project a directory belongs to, compared with what git itself finds.

No command prints it by itself, so a helper beside the unit tests does: print-root. Layouts are
made by git, under names of all kinds; then some that git would never make, at random.
"""

import collections
import functools
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import time

import lib
import pytest

GIT_DIR = ["rev-parse", "--path-format=absolute", "--git-common-dir"]
Found = collections.namedtuple("Found", "root id common note fault")


@functools.lru_cache(None)
def helper():
    """print-root of the build under test, where the test user can execute it."""
    carrel = os.environ.get("CARREL") or lib.REPO / "build-test" / "carrel"
    path = pathlib.Path(carrel).resolve().parent / "tests" / "unit" / "print-root"
    assert path.exists(), f"there is no {path}: build with -Dunit_tests=true"
    copy = lib.root() / "print-root"
    shutil.copy(path, copy)
    copy.chmod(0o755)
    return copy


def fields(done, many):
    assert done.returncode == 0 and not done.stderr, done
    parts = done.stdout.split(b"\0")
    assert len(parts) == 5 * many + 1 and not parts[-1]
    return [Found(*parts[i : i + 5]) for i in range(0, 5 * many, 5)]


def find(cwd, env=None):
    """What carrel says of a directory, by its path and by being there."""
    done = lib.execute([helper()], cwd=cwd, env=env, input=b".\0" + os.fsencode(cwd) + b"\0")
    here, there = fields(done, 2)
    assert here == there and not here.fault
    assert here.id.decode() == hashlib.sha256(here.root).hexdigest()[:16]
    return here


def ask_git(cwd, env=None):
    """What git says of it, or None when it fails."""
    extra = {"GIT_CONFIG_NOSYSTEM": "1", **(env or {})}
    done = lib.execute(["git", *GIT_DIR], cwd=cwd, env=extra)
    if done.returncode != 0:
        assert done.stderr.startswith(b"fatal: "), done
        return None
    return os.path.realpath(done.stdout.removesuffix(b"\n"))


def root_of(common):
    return os.path.dirname(common) if os.path.basename(common) == b".git" else common


def agrees(cwd, env=None, note=False):
    """Both find the same repository, and the root follows from it."""
    common = ask_git(cwd, env)
    assert common is not None, "git finds nothing"
    found = find(cwd, env)
    assert found.common == common and found.root == root_of(common)
    assert bool(found.note) == note, found.note


def is_alone(cwd, root, env=None):
    """It has a root of its own, and the person is told why."""
    found = find(cwd, env)
    assert found.root == os.fsencode(root) and not found.common
    assert found.note and b"an instance of its own" in found.note


def is_outside(cwd, env=None):
    assert ask_git(cwd, env) is None
    found = find(cwd, env)
    assert found.root == os.path.realpath(os.fsencode(cwd))
    assert not found.common and not found.note


# ---- layouts that git makes -------------------------------------------------------------

NAMES = {
    "plain": "project",
    "space": "a b",
    "blank at the end": "end ",
    "newline": "a\nb",
    "newline at the end": "end\n",
    "quote": "a'b\"c",
    "backslash": "a\\b",
    "hash": "a#b;c",
    "dollar": "$HOME`id`*?[a]",
    "escape": "\x1b[31m",
    "utf-8": "é漢",
    "not utf-8": os.fsdecode(b"\xff\xfe"),
    "dash": "-rf",
    "looks like git": "x.git",
    "dots": "...",
    "long": "n" * 230,
}

# Below the directory of each name. "git": as git says; "moved": the same, with a note;
# "outside"; any other: with a note, and that is the root.
PLACES = {
    "repository": ("{n}/repo", "git"),
    "directory": ("{n}/repo/src", "git"),
    "deep directory": ("{n}/repo/src/a/b/c", "git"),
    "git directory": ("{n}/repo/.git", "git"),
    "in the git directory": ("{n}/repo/.git/refs/heads", "git"),
    "worktree": ("{n}/tree", "git"),
    "directory of a worktree": ("{n}/tree/src/a", "git"),
    "worktree in the repository": ("{n}/repo/inner", "git"),
    "admin directory": ("{n}/repo/.git/worktrees/tree", "git"),
    "moved by git": ("{n}/moved-by-git", "git"),
    "moved by hand": ("{n}/moved", "moved"),
    "directory moved by hand": ("{n}/moved/src", "moved"),
    "copied worktree": ("{n}/copy", "{n}/copy"),
    "main tree is gone": ("{n}/empty-tree", "git"),
    "main tree without files": ("{n}/empty", "git"),
    "repository is gone": ("{n}/gone-tree", "{n}/gone-tree"),
    "repository is gone, deeper": ("{n}/gone-tree/src/a", "{n}/gone-tree"),
    "submodule": ("{n}/super/sub", "git"),
    "directory of a submodule": ("{n}/super/sub/src", "git"),
    "around a submodule": ("{n}/super", "git"),
    "git directory of a submodule": ("{n}/super/.git/modules/sub", "git"),
    "worktree of a submodule": ("{n}/sub-tree", "git"),
    "sparse submodule": ("{n}/super/sparse", "git"),
    "nested repository": ("{n}/repo/nested", "git"),
    "directory of a nested one": ("{n}/repo/nested/src", "git"),
    "bare": ("{n}/bare", "git"),
    "in the bare one": ("{n}/bare/refs", "git"),
    "worktree of the bare one": ("{n}/bare-tree", "git"),
    "hidden bare": ("{n}/layout", "git"),
    "worktree of the hidden one": ("{n}/layout/main", "git"),
    "separate git directory": ("{n}/separate", "moved"),
    "worktree of the separate one": ("{n}/separate-tree", "git"),
    "copy of the separate one": ("{n}/separate-copy", "{n}/separate-copy"),
    "made separate later": ("{n}/later", "{n}/later"),
    "the same file elsewhere": ("{n}/same", "{n}/same"),
    "an old file by that name": ("{n}/renamed", "{n}/renamed"),
    "separate and moved": ("{n}/apart-moved", "moved"),
    "in the separate directory": ("{n}/separate-git/refs", "git"),
    "separate, but told": ("{n}/told", "git"),
    "through a link": ("{n}/link", "git"),
    "through a link to a worktree": ("{n}/tree-link", "git"),
    "linked git directory": ("{n}/linked", "{n}/linked"),
    "invalid file": ("{n}/repo/invalid", "{n}/repo/invalid"),
    "broken git directory": ("{n}/repo/broken", "{n}/repo/broken"),
    "outside": ("{n}", "outside"),
    "directory outside": ("{n}/outside/a", "outside"),
}


def do(cwd, *argv):
    """Run a program as the test user, who is to own all of it from the beginning."""
    done = lib.execute(argv, cwd=cwd, env={"GIT_CONFIG_NOSYSTEM": "1"})
    assert done.returncode == 0, done


def git(cwd, *args):
    do(cwd, "git", "-c", "protocol.file.allow=always", "-c", "user.name=A",
       "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *args)  # fmt: skip


def seed():
    return lib.root() / "roots" / "seed"


def clone(path, *options):
    git(lib.root(), "clone", "-q", *options, "--", seed(), path)


def make_trees(top):
    for name in ("repo", "empty", "gone", "later", "repo/nested"):
        clone(top / name)
    for name in ("tree", "old", "before", "repo/inner"):
        git(top / "repo", "worktree", "add", "-q", "-b", name, top / name)
    git(top / "repo", "worktree", "move", top / "before", top / "moved-by-git")
    do(top, "mv", "old", "moved")
    do(top, "cp", "-a", "tree", "copy")
    for name in ("empty", "gone"):
        git(top / name, "worktree", "add", "-q", top / f"{name}-tree")
    do(top, "rm", "-r", "gone", "empty/src")


def make_modules(top):
    clone(top / "super")
    for name in ("sub", "sparse"):
        git(top / "super", "submodule", "add", "-q", seed(), name)
    git(top / "super" / "sparse", "sparse-checkout", "set", "src")
    git(top / "super" / "sub", "worktree", "add", "-q", top / "sub-tree")


def make_separate(top):
    clone(top / "bare", "--bare")
    git(top / "bare", "worktree", "add", "-q", top / "bare-tree")
    clone(top / "layout" / ".bare", "--bare")
    lib.make_file(top / "layout" / ".git", "gitdir: ./.bare\n")
    git(top / "layout", "worktree", "add", "-q", "-b", "other", "main")
    for name in ("separate", "told", "twice", "apart"):
        clone(top / name, "--separate-git-dir", top / f"{name}-git")
    lib.make_file(top / "renamed" / "notes", "gitdir: ../apart-git\n")
    git(top / "told", "config", "core.worktree", top / "told")
    git(top / "separate", "worktree", "add", "-q", top / "separate-tree")


def make_later(top):
    """What looks like that, and was not made in one moment with the git directory."""
    made = max((top / name / ".git").stat().st_ctime for name in ("apart", "later"))
    time.sleep(max(0, made + 1.2 - time.time()))
    do(top, "cp", "-a", "separate", "separate-copy")
    do(top, "mv", "renamed/notes", "renamed/.git")
    do(top, "mv", "apart", "apart-moved")
    do(top, "mkdir", "same")
    do(top, "ln", "twice/.git", "same/.git")
    git(top / "later", "init", "-q", "--separate-git-dir", top / "later-git")


@functools.lru_cache(None)
def made(top, key):
    """The layouts under this name, made by the first who asks."""
    top = lib.make_dir(top / NAMES[key])
    make_trees(top)
    make_modules(top)
    make_separate(top)
    do(top, "mkdir", "-p", "outside/a", "linked")
    do(top, "ln", "-s", "repo/src", "link")
    do(top, "ln", "-s", top / "tree", "tree-link")
    do(top, "ln", "-s", top / "repo" / ".git", "linked/.git")
    lib.make_file(top / "repo" / "invalid" / ".git", "nonsense\n")
    lib.make_file(top / "repo" / "broken" / ".git" / "config", "")
    make_later(top)
    return top


def give_all(top):
    if lib.ROOT:
        subprocess.run(["chown", "-R", "-h", f"{lib.UID}:{lib.GID}", top], check=True)


@pytest.fixture(scope="module")
def layouts():
    """The directory that has all layouts under each name; they are only read."""
    top = lib.make_dir(lib.root() / "roots")
    lib.current.home = lib.current.cwd = top
    lib.make_dir(seed())
    lib.make_file(seed() / "src" / "a" / "b" / "c" / "file", "")
    git(seed(), "init", "-q")
    git(seed(), "add", "-A")
    git(seed(), "commit", "-q", "-m", "one")
    return top


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_layout(layouts, name, kind):
    top = made(layouts, name)
    path, verdict = (text.replace("{n}", str(top)) for text in PLACES[kind])
    if verdict in ("git", "moved"):
        agrees(path, note=verdict == "moved")
    elif verdict == "outside":
        is_outside(path)
    else:
        is_alone(path, verdict)


def test_there_are_many_layouts():
    assert len(NAMES) * len(PLACES) >= 600


def test_worktrees_share_one_id_and_strangers_do_not(layouts):
    top = made(layouts, "plain")
    shared = ("repo", "repo/src", "repo/.git", "tree", "moved", "moved-by-git", "repo/inner")
    assert len({find(top / name).id for name in shared}) == 1
    separate = ("separate", "separate/src", "separate-tree", "separate-git")
    assert len({find(top / name).id for name in separate}) == 1
    others = ["repo", "empty", "bare", "super", "super/sub", "repo/nested", "copy", "outside"]
    others += ["separate", "separate-copy", "later", "told"]
    assert len({find(top / name).id for name in others}) == len(others)


# ---- the environment --------------------------------------------------------------------

VARIABLES = {
    "GIT_DIR": ("outside", {"GIT_DIR": "{t}/repo/.git"}, "git"),
    "GIT_DIR elsewhere": ("empty", {"GIT_DIR": "{t}/repo/.git"}, "git"),
    "GIT_DIR, relative": ("outside", {"GIT_DIR": "../repo/.git"}, "git"),
    "GIT_DIR is a file": ("outside", {"GIT_DIR": "{t}/tree/.git"}, "git"),
    "GIT_DIR is an admin": ("outside", {"GIT_DIR": "{t}/repo/.git/worktrees/tree"}, "git"),
    "GIT_DIR is bare": ("outside", {"GIT_DIR": "{t}/bare"}, "git"),
    "GIT_DIR through a link": ("outside", {"GIT_DIR": "{t}/linked/.git"}, "git"),
    "GIT_DIR is nothing": ("repo", {"GIT_DIR": "{t}/none"}, "repo"),
    "GIT_DIR is empty": ("repo/src", {"GIT_DIR": ""}, "repo/src"),
    "GIT_DIR lies": ("outside", {"GIT_DIR": "{t}/copy/.git"}, "copy"),
    "GIT_COMMON_DIR": ("repo", {"GIT_COMMON_DIR": "{t}/empty/.git"}, "git"),
    "GIT_COMMON_DIR, relative": ("repo", {"GIT_COMMON_DIR": "../empty/.git"}, "git"),
    "GIT_COMMON_DIR is nothing": ("repo", {"GIT_COMMON_DIR": "{t}/none"}, "repo"),
    "GIT_COMMON_DIR is empty": ("repo", {"GIT_COMMON_DIR": ""}, "repo"),
    "both": ("linked", {"GIT_DIR": "../tree/.git", "GIT_COMMON_DIR": "{t}/empty/.git"}, "git"),
    "GIT_OBJECT_DIRECTORY": ("repo", {"GIT_OBJECT_DIRECTORY": "{t}/outside"}, "git"),
    "no GIT_OBJECT_DIRECTORY": ("repo", {"GIT_OBJECT_DIRECTORY": "{t}/none"}, "repo"),
    "GIT_WORK_TREE": ("repo", {"GIT_WORK_TREE": "{t}/outside"}, "git"),
    "ceiling": ("repo/src/a", {"GIT_CEILING_DIRECTORIES": "{t}/repo"}, "outside"),
    "ceiling further up": ("repo/src/a", {"GIT_CEILING_DIRECTORIES": "{t}"}, "git"),
    "ceiling here": ("repo", {"GIT_CEILING_DIRECTORIES": "{t}/repo"}, "git"),
    "ceiling below": ("repo/src", {"GIT_CEILING_DIRECTORIES": "{t}/repo/src/a"}, "git"),
    "ceiling, second": ("repo/src", {"GIT_CEILING_DIRECTORIES": "/x:{t}/repo:/y"}, "outside"),
    "ceiling, linked": ("repo/src/a", {"GIT_CEILING_DIRECTORIES": "{t}/link"}, "outside"),
    "ceiling, not resolved": ("repo/src/a", {"GIT_CEILING_DIRECTORIES": ":{t}/link"}, "git"),
    "ceiling, plain": ("repo/src/a", {"GIT_CEILING_DIRECTORIES": ":{t}/repo"}, "outside"),
    "ceiling, relative": ("repo/src", {"GIT_CEILING_DIRECTORIES": "repo:.:.."}, "git"),
    "ceiling is the root": ("repo/src", {"GIT_CEILING_DIRECTORIES": "/"}, "git"),
    "ceiling, slash": ("repo/src", {"GIT_CEILING_DIRECTORIES": "{t}/repo/"}, "outside"),
    "ceiling is a neighbour": ("repo/src", {"GIT_CEILING_DIRECTORIES": "{t}/rep"}, "git"),
    "ceiling between": ("repo/src/a/b", {"GIT_CEILING_DIRECTORIES": "{t}/repo/src"}, "outside"),
    "ceiling is empty": ("repo/src", {"GIT_CEILING_DIRECTORIES": ""}, "git"),
    "not asked": ("repo/src", {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "0"}, "git"),
}


@pytest.mark.parametrize("name", ["plain", "newline", "not utf-8"])
@pytest.mark.parametrize("case", VARIABLES)
def test_environment(layouts, name, case):
    where, env, verdict = VARIABLES[case]
    top = made(layouts, name)
    env = {key: text.replace("{t}", str(top)) for key, text in env.items()}
    cwd = top / where
    if verdict == "git":
        agrees(cwd, env)
    elif verdict == "outside":
        is_outside(cwd, env)
    else:
        is_alone(cwd, top / verdict, env)


@pytest.mark.parametrize("across", [None, "0", "1", "true", "no"])
def test_other_filesystem(layouts, place, across):
    """git stops at a mount point unless it is told not to."""
    repo = place / "repo"
    clone(repo)
    lib.make_dir(repo / "mnt")
    script = 'mount -t tmpfs none mnt && mkdir mnt/a && cd mnt/a && printf .\\\\0 | "$0"; "$@"'
    done = lib.execute(
        ["unshare", "-Urm", "sh", "-c", script, helper(), "git", *GIT_DIR],
        cwd=repo,
        env={"GIT_DISCOVERY_ACROSS_FILESYSTEM": across},
    )
    found, said = done.stdout.rsplit(b"\0", 1)
    root, _, common, _, _ = found.split(b"\0")[:5]
    passes = across in ("1", "true")
    assert (done.returncode == 0) == passes, done
    assert common == (said.removesuffix(b"\n") if passes else b"")
    assert root == os.fsencode(repo if passes else repo / "mnt" / "a")


def test_separate_on_another_filesystem(place):
    """Its times may be those of an image that somebody sent."""
    lib.make_dir(place / "mnt")
    made = "git init -q --separate-git-dir mnt/git tree && cd tree && printf .\\\\0 | "
    for mount, git in (("mount -t tmpfs none mnt && ", place / "mnt/git"), ("", None)):
        done = lib.execute(["unshare", "-Urm", "sh", "-c", f'{mount}{made}"$0"', helper()],
                           cwd=place)  # fmt: skip
        ((root, _, _, note, _),) = fields(done, 1)
        assert root == os.fsencode(place / "tree" if git else place / "mnt/git"), note
        lib.remove(place / "tree")


# ---- layouts that nobody would make -----------------------------------------------------


def random_git(rng, where, others):
    """Something by the name of .git, or what it consists of, in this directory."""
    other = rng.choice(others)
    target = other if rng.random() < 0.5 else os.path.relpath(other, where)
    kind = rng.choice(["file", "file", "link", "directory", "directory", "bare", "odd", ""])
    if kind == "file":
        end = rng.choice(["\n", "", "\r\n", "\n\n", "\nx\n"])
        lib.make_file(where / ".git", f"gitdir: {target}{end}")
    elif kind == "link":
        os.symlink(target, where / ".git")
    elif kind == "odd":
        make = rng.choice([os.mkfifo, os.mkdir, functools.partial(os.symlink, "/dev/null")])
        make(where / ".git")
    elif kind:
        random_parts(rng, where / ".git" if kind == "directory" else where, others)


def random_parts(rng, git_dir, others):
    """Most of the parts that a git directory has, and some that it should not have."""
    os.makedirs(git_dir, exist_ok=True)
    heads = ["ref: refs/heads/main\n"] * 6
    heads += ["ref:refs/x", "0" * 40, "a" * 64, "x", "", "ref: x"]
    if rng.random() < 0.9:
        lib.make_file(git_dir / "HEAD", rng.choice(heads))
    for part in ("objects", "refs"):
        if rng.random() < 0.9:
            os.makedirs(git_dir / part, exist_ok=True)
    other = rng.choice(others)
    if rng.random() < 0.25:
        near = os.path.relpath(other, git_dir)
        targets = [".", "..", "../..", str(other), near, "", "none/x"]
        lib.make_file(git_dir / "commondir", rng.choice(targets) + "\n")
    if rng.random() < 0.25:
        lib.make_file(git_dir / "gitdir", f"{other}/.git\n")
    if rng.random() < 0.25:
        lib.make_file(git_dir / "config", f"[core]\n\tworktree = {other}\n")


def random_tree(rng, top):
    """Directories, some nested, each perhaps a repository; they name each other."""
    dirs = [top / name for name in ("a", "a/b", "a/b/c", "d", "d/e", "d/worktrees/f", "g")]
    for path in dirs:
        os.makedirs(path)
    parts = [path / ".git" for path in dirs]
    admin = [path / "worktrees" / "w" for path in (*parts[:2], top / "d")]
    for path in dirs:
        random_git(rng, path, dirs + parts + admin)
    for path in admin:
        if path.parent.parent.is_dir() and not path.is_symlink() and rng.random() < 0.7:
            random_admin(rng, path, dirs)
    return dirs


def random_admin(rng, path, dirs):
    os.makedirs(path, exist_ok=True)
    lib.make_file(path / "HEAD", "ref: refs/heads/w\n")
    lib.make_file(path / "commondir", rng.choice(["../..\n", "../..", "..\n"]))
    lib.make_file(path / "gitdir", f"{rng.choice(dirs)}/.git\n")
    holder = rng.choice(dirs)
    if not os.path.lexists(holder / ".git"):
        lib.make_file(holder / ".git", f"gitdir: {path}\n")


def check_random(cwd, seen):
    """What is believed is what git says; what is not is told; else there is nothing."""
    common, found = ask_git(cwd), find(cwd)
    top = os.fsencode(cwd)
    if found.common:
        seen["believed"] += 1
        assert found.common == common and found.root == root_of(common)
    elif found.note:
        seen["told" if common else "git fails"] += 1
        assert top == found.root or top.startswith(found.root + b"/")
    else:
        seen["outside"] += 1
        assert common is None and found.root == top


def test_random_layouts(place):
    seed = int(os.environ.get("CARREL_TEST_SEED", "1"))
    seen = collections.Counter()
    for number in range(seed, seed + 40):
        top = lib.make_dir(place / f"random{number}")
        dirs = random_tree(random.Random(number), top)
        give_all(top)
        for path in dirs:
            try:
                check_random(path, seen)
            except AssertionError as error:
                raise AssertionError(f"CARREL_TEST_SEED={number}: {path}") from error
    assert min(seen[what] for what in ("believed", "told", "git fails", "outside")) > 0, seen
