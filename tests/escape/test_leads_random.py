"""What git's configuration leads to, with git as the judge.

Random configurations: of the repository, a submodule, a linked worktree and the user, with
includes, links and every spelling that the syntax has. git says in each working tree which files
it reads and where its hooks are. Whatever of that, or of the way to it, a box could write must be
protected in the plan.

The suite passes the same rounds each time. CARREL_TEST_SEED and CARREL_TEST_ROUNDS ask for others.
"""

import json
import os
import pathlib
import random

import lib

ROUNDS = int(os.environ.get("CARREL_TEST_ROUNDS", "150"))
TREES = ("", "part", "trees/two")
DIRS = ("a", "a/b", "conf", "tools", "part/deep", "trees/two/deep")
MAX_LINKS = 40


class World:
    """A project with a submodule and a linked worktree, a mount, a home, and what is outside."""

    def __init__(self, place, project, template, dice):
        self.dice, self.project = dice, project
        self.home = lib.current.home
        self.other = lib.make_dir(place / "other")
        self.outside = lib.make_dir(place / "outside")
        lib.git("config", "extensions.worktreeConfig", "true")
        lib.git("worktree", "add", "-q", "trees/two")
        add = ("submodule", "--quiet", "add", str(template), "part")
        lib.git("-c", "protocol.file.allow=always", *add)
        for name in DIRS:
            (project / name).mkdir(parents=True, exist_ok=True)
        self.places = [project / name for name in DIRS] + [project, self.other, self.home]
        self.places += [self.outside, self.other / "x", self.outside / "o"]
        for path in self.places:
            path.mkdir(exist_ok=True)
            lib.give(path)
        self.configs = [
            *(project / ".git" / name for name in ("config", "config.worktree")),
            project / ".git/worktrees/two/config.worktree",
            *(project / ".git/modules/part" / name for name in ("config",)),
            *(self.home / name for name in (".gitconfig", ".config/git/config")),
        ]
        self.first = {path: path.read_bytes() if path.exists() else b"" for path in self.configs}
        self.made = []

    # ---- a round ----

    def clear(self):
        for path in reversed(self.made):
            if path.is_dir() and not path.is_symlink():
                lib.remove(path)
            else:
                path.unlink(missing_ok=True)
        self.made = []
        for path, text in self.first.items():
            lib.make_file(path, text)

    def make_links(self):
        for n in range(self.dice.randrange(4)):
            at, to = self.dice.choice(self.places) / f"l{n}", self.dice.choice(self.places)
            text = str(to) if self.dice.random() < 0.4 else os.path.relpath(to, at.parent)
            if self.dice.random() < 0.3:
                text += "/../" + to.name
            os.symlink(text, at)
            lib.give(at)
            self.made.append(at)

    def way(self, base):
        """A way from base to some directory, as text, and which it is."""
        kind = self.dice.random()
        if kind < 0.2:
            text, at = "~", self.home
        elif kind < 0.4:
            at = self.dice.choice(self.places)
            text = str(at)
        else:
            text, at = "", base
        for _ in range(self.dice.randrange(5)):
            names = [e.name for e in os.scandir(at) if e.is_dir() and e.name != ".git"]
            name = self.dice.choice([*names, *names, "..", "."])
            there = pathlib.Path(os.path.realpath(at / name))
            if not there.is_relative_to(self.project.parent):
                continue
            text, at = f"{text}/{name}" if text else name, there
        return text, at

    def path(self, base, stem, make):
        text, at = self.way(base)
        name = f"{stem}{len(self.made)}"
        made = at / name
        if make:
            make(made)
            self.made.append(made)
        return f"{text}/{name}" if text else name

    def include(self, base, depth):
        def make(path):
            lib.make_file(path, self.text(path.parent, depth + 1))

        return self.path(base, "i", make)

    def hooks(self):
        tree = self.project / self.dice.choice(TREES)
        return self.path(tree, "h", lib.make_dir if self.dice.random() < 0.5 else None)

    # ---- configuration ----

    def spell(self, name, value):
        """One setting. Only what stands in quotes may have any byte in it."""
        section, _, key = name.rpartition(".")
        key = "".join(self.dice.choice((c.lower(), c.upper())) for c in key)
        if self.dice.random() < 0.3 and len(value) > 2:
            cut = self.dice.randrange(1, len(value))
            value = value[:cut] + "\\\n" + value[cut:]
        if self.dice.random() < 0.3:
            value = f'"{value}"'
        value += self.dice.choice(("", "", " ", " # x", ";y", "\t"))
        gap = self.dice.choice(("\n\t", "\n", " ", ""))
        before = self.dice.choice(("", "", "# c\n", "[empty]\n", '[a "]#"]\n\tb\n'))
        return f"{before}[{section}]{gap}{key}{self.dice.choice(('=', ' = '))}{value}\n"

    def text(self, base, depth=0):
        lines = []
        for _ in range(self.dice.randrange(3)):
            if self.dice.random() < 0.5 or depth > 2:
                lines.append(self.spell("core.hooksPath", self.hooks()))
            else:
                when = ("onbranch:**", "onbranch:never", "gitdir:~/", "gitdir:**/", "nonsense")
                section = f'includeIf "{self.dice.choice(when)}"'
                if self.dice.random() < 0.5:
                    section = "include"
                lines.append(self.spell(f"{section}.path", self.include(base, depth)))
        text = "".join(lines)
        if self.dice.random() < 0.3:
            text = text.replace("\n", "\r\n")
        return text

    def configure(self):
        self.clear()
        self.make_links()
        for path in self.configs:
            if self.dice.random() < 0.5:
                # git writes the file's real name where that counts, so take it, too.
                text = self.first[path] + self.text(path.parent).encode()
                mark = b"\xef\xbb\xbf" if self.dice.random() < 0.2 else b""
                lib.make_file(path, mark + text)

    # ---- what git says ----

    def ask_git(self):
        """The paths, from each tree, of files that git reads and of its hooks; None: it stops."""
        script = "for t in . part trees/two; do cd $1/$t && " + (
            "git config --list --show-origin --includes -z && printf '\\0\\0' && "
            "git rev-parse --git-path hooks && printf '\\0\\0' || exit 1; done"
        )
        done = lib.execute(["sh", "-c", script, "sh", str(self.project)])
        if done.returncode:
            return None
        parts = done.stdout.split(b"\0\0")
        said = []
        for tree, listed, hooks in zip(TREES, parts[0::2], parts[1::2]):
            words = listed.split(b"\0")
            files = {os.fsdecode(word[5:]) for word in words if word.startswith(b"file:")}
            said += [(self.project / tree, name, False) for name in files]
            said.append((self.project / tree, os.fsdecode(hooks.strip(b"\0\n")), True))
        return said

    # ---- what carrel does ----

    def plan(self):
        mount = ["--mount", f"{self.other}:{self.other}:rw"]
        done = lib.carrel("plan", "--json", *mount, "--", "true", cwd=self.project)
        places = json.loads(lib.succeeded(done))["places"]
        kinds = ("protect", "stub", "pin", "config")
        return {p["source"]: p["kind"] for p in places if p["kind"] in kinds}

    def writable(self, path):
        return any(path.is_relative_to(top) and path != top for top in (self.project, self.other))


def walk(path):
    """Every part of a path as the kernel meets it; the last is where it ends."""
    at, rest, links, met = pathlib.Path("/"), [p for p in path.split("/") if p], 0, []
    while rest:
        name = rest.pop(0)
        if name == ".":
            continue
        at = at.parent if name == ".." else at / name
        if name == "..":
            end = at
            continue
        met.append(at)
        end = at
        if at.is_symlink() and links < MAX_LINKS:
            links += 1
            text = os.readlink(at)
            rest = [p for p in text.split("/") if p] + rest
            at = pathlib.Path("/") if text[0] == "/" else at.parent
        elif not at.exists():
            break
    return met, end


def kept(places, path):
    """Is it read-only itself, or in something that is?"""
    if places.get(str(path)) in ("stub", "config"):  # the box writes a copy of the config
        return True
    return any(places.get(str(way)) == "protect" for way in (path, *path.parents))


def check(world, places, tree, name, hooks):
    met, end = walk(os.path.join(tree, name))
    for part in met:
        fixed = str(part) in places or kept(places, part)
        assert fixed or not world.writable(part), f"{part} on the way to {name} from {tree}"
    if hooks and end in (world.project, world.other):
        end = end / "pre-commit"
    assert not world.writable(end) or kept(places, end), f"{end}, that is {name} from {tree}"


def test_all_that_git_goes_by_is_protected(place, project, template):
    seed = int(os.environ.get("CARREL_TEST_SEED", "990847564"))
    print(f"CARREL_TEST_SEED={seed}")
    dice = random.Random(seed)
    world = World(place, project, template, dice)
    judged = led = 0
    for number in range(ROUNDS):
        world.configure()
        said = world.ask_git()
        if said is None:
            continue
        places = world.plan()
        for tree, name, hooks in said:
            try:
                check(world, places, tree, name, hooks)
            except AssertionError as error:
                raise AssertionError(f"round {number} of seed {seed}: {error}") from error
        judged += 1
        led += any(not name.endswith((".git/hooks", "part/hooks")) for _, name, h in said if h)
    assert judged > ROUNDS / 2, f"git stopped at too many of them: {judged} of {ROUNDS}"
    assert led > ROUNDS / 5, f"too few had hooks elsewhere: {led} of {ROUNDS}"
