"""The generator: random lists of hostile operations on a project and its git directories.

An attack is one or two runs, each a list of operations of deeds.py. It is a mixture: templates of
attacks that are known, with random places and names, and raw operations on the names that git uses.
A path may begin with a {name} of shapes.py. A payload is the {trip} program with a number, which
leaves a mark on the host when it is run there.
"""

import random
import re

import rig
import shapes

# What git makes, reads or writes in its directory.
GIT_NAMES = """
COMMIT_EDITMSG HEAD ORIG_HEAD FETCH_HEAD MERGE_MSG MERGE_HEAD MERGE_MODE SQUASH_MSG TAG_EDITMSG
CHERRY_PICK_HEAD REVERT_HEAD AUTO_MERGE NOTES_EDITMSG EDIT_DESCRIPTION BISECT_LOG BISECT_START
BISECT_NAMES BISECT_TERMS BISECT_RUN BISECT_HEAD BISECT_ANCESTORS_OK BISECT_EXPECTED_REV
REBASE_HEAD addp-hunk-edit.diff
index index.lock HEAD.lock config config.lock config.worktree commondir gitdir description
packed-refs packed-refs.lock packed-refs.new shallow shallow.lock gc.pid gc.log gc.log.lock
logs logs/HEAD logs/refs logs/refs/heads logs/refs/heads/main logs/refs/stash logs/refs/heads/work
logs/refs/heads/tripwire logs/refs/remotes/origin/main
refs refs/heads refs/heads/main refs/heads/x refs/heads/tripwire refs/heads/main.lock refs/stash
refs/tags refs/tags/tripped refs/remotes refs/remotes/origin/main refs/bisect refs/bisect/bad
refs/worktree refs/rewritten refs/original
info info/exclude info/attributes info/grafts info/refs info/sparse-checkout info/commit-graphs
objects objects/info objects/info/alternates objects/info/packs objects/info/commit-graph
objects/pack objects/pack/multi-pack-index objects/00 objects/e6 objects/tmp_obj_x
hooks hooks/pre-commit hooks/post-checkout hooks/post-index-change hooks/reference-transaction
hooks/fsmonitor-watchman hooks/post-commit hooks/post-merge hooks/pre-rebase hooks/commit-msg
rebase-merge rebase-merge/git-rebase-todo rebase-merge/head-name rebase-merge/onto
rebase-merge/orig-head rebase-merge/interactive rebase-merge/done rebase-merge/msgnum
rebase-merge/end rebase-merge/autostash rebase-merge/message rebase-merge/strategy
rebase-apply rebase-apply/applying rebase-apply/head-name rebase-apply/onto rebase-apply/orig-head
rebase-apply/next rebase-apply/last rebase-apply/abort-safety rebase-apply/autostash
rebase-apply/rebasing sequencer sequencer/todo sequencer/opts sequencer/head sequencer/abort-safety
worktrees worktrees/new worktrees/new/gitdir worktrees/new/commondir worktrees/new/HEAD
worktrees/new/locked worktrees/work/gitdir worktrees/work/commondir worktrees/work/HEAD
worktrees/work/logs/HEAD worktrees/work/config.worktree worktrees/work/index
worktrees/project/commondir worktrees/project/gitdir worktrees/project/HEAD
modules modules/sub modules/sub/config modules/sub/HEAD modules/sub/hooks
modules/sub/hooks/post-checkout modules/sub/index modules/sub/logs/HEAD modules/new
modules/new/config modules/deep modules/deep/er/config modules/deep/config modules/deep/HEAD
rr-cache rr-cache/x branches remotes remotes/origin lfs svn fsmonitor--daemon.ipc
rebased-patches lost-found lost-found/other lost-found/commit sharedindex.x index.stash.1
fsmonitor--daemon fsmonitor--daemon/cookies
""".split()
GIT_DIRECTORIES = """
logs refs refs/heads objects objects/pack objects/info info hooks logs/refs logs/refs/heads modules
worktrees rebase-merge rebase-apply sequencer refs/remotes refs/tags rr-cache objects/00 objects/ff
""".split()
# Of these, what ordinary commands write.
WRITTEN = """
COMMIT_EDITMSG COMMIT_EDITMSG logs/HEAD logs/HEAD logs/refs/heads/main logs/refs/heads/work
logs/refs/stash FETCH_HEAD MERGE_MSG TAG_EDITMSG ORIG_HEAD MERGE_HEAD AUTO_MERGE refs/stash
refs/heads/main refs/tags/tripped packed-refs index HEAD gc.log gc.pid info/refs objects/info/packs
rebased-patches addp-hunk-edit.diff lost-found lost-found/other
logs logs/refs logs/refs/heads refs/heads refs/tags refs objects/pack objects/e2 objects/info
""".split()
# Names in a working tree that somebody obeys.
PROJECT_NAMES = """
.git .gitmodules .gitattributes .gitconfig .gitignore .mailmap .git-blame-ignore-revs .lfsconfig
.husky/pre-commit .githooks/pre-commit .envrc .mcp.json .claude/settings.json
.claude/settings.local.json .claude/hooks/x .claude/agents/x.md .vscode/tasks.json .vscode/settings.json
.idea/workspace.xml .codex/config.toml .gemini/settings.json opencode.json opencode.jsonc
.cursor/mcp.json .devcontainer/devcontainer.json carrel.json HEAD config objects refs hooks
hooks/pre-commit commondir packed-refs gitdir index conf/git.inc more.inc .bare x.git host.txt
""".split()
SUBDIRECTORIES = ["lib", "deep/er/place", "a b", "lib/more", "node_modules/x", "new"]
# Where a link may lead: files of the user's, names that are not there, another repository.
TARGETS = ["{home}/.bashrc", "{home}/.profile", "{home}/.ssh/authorized_keys", "{home}/made-by-a-link",
           "{home}/.config/app/settings.json", "{home}/.config/git/config", "{home}/.gitconfig",
           "{home}/other/notes.txt", "{home}/other/.git/config", "{home}/other/.git/index",
           "../../../.bashrc", "../../../../.bashrc"]
DIRECTORY_TARGETS = ["{home}", "{home}/.config", "{home}/other", "{home}/other/.git", "{home}/.ssh",
                     "{home}/other/.git/hooks", "{home}/other/.git/refs/heads", "{home}/.config/git",
                     "{home}/other/.git/objects", "{home}/other/.git/logs"]
OLD = 1_000_000_000
MAIN = "ref: refs/heads/main\n"


class Maker:
    """The hostile one, with its dice."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.shape = shapes.made(self.dice.choice(shapes.NAMES))
        self.number = 0
        self.there = shapes.existing(self.shape.name)
        self.base = "{common}" if self.shape.git_dirs[0] == "{common}" else self.shape.git_dirs[0]

    # ---- small parts

    def pick(self, *things):
        return self.dice.choice(things)

    def run(self):
        """A command that leaves a mark."""
        self.number += 1
        return f"{{trip}} m{self.number}"

    def git_dir(self):
        return self.dice.choice(self.shape.git_dirs)

    def tree(self):
        return self.dice.choice([t for t in self.shape.trees if "{" not in t] or ["."])

    def below(self):
        return self.tree() if self.dice.random() < 0.5 else self.dice.choice(SUBDIRECTORIES)

    def existing(self):
        """A name that is there, and more often one of git's."""
        gits = [n for n in self.there if ".git" in n or ".bare" in n or "{common}" in n]
        return self.dice.choice(gits if gits and self.dice.random() < 0.7 else self.there)

    def module(self):
        return self.pick(*(self.shape.modules or ["new"]), *self.shape.modules, "new", "deep", "a/b/c/d/e/f/g/h/i/j")

    def target(self, name=""):
        if name.split("/")[-1] in ("logs", "refs", "heads", "tags", "objects", "pack", "e2", "info"):
            return self.dice.choice(DIRECTORY_TARGETS)
        return self.dice.choice(TARGETS if self.dice.random() < 0.5 else TARGETS[:4])

    def hook(self):
        return f"#!/bin/sh\n{self.run()}\nexit 0\n"

    def evil_config(self, bare=False, tree=None):
        """A configuration with one, or with all of the keys that name a command."""
        run = self.run()
        keys = {
            "core": ["fsmonitor", "sshCommand", "pager", "editor", "askPass", "gitProxy",
                     "alternateRefsCommand"],
            'filter "x"': ["clean", "smudge", "process"],
            "diff": ["external"],
            'diff "x"': ["textconv", "command"],
            'merge "x"': ["driver"],
            "gpg": ["program"],
            "credential": ["helper"],
            "sequence": ["editor"],
            'remote "origin"': ["uploadpack", "receivepack", "vcs"],
            'submodule "sub"': ["update"],
            "alias": ["st", "status"],
            "interactive": ["diffFilter"],
            'trailer "x"': ["command", "cmd"],
            "pager": ["log", "status", "diff"],
        }
        if self.dice.random() < 0.4:
            section = self.dice.choice(sorted(keys))
            keys = {"core": ["fsmonitor"], section: [self.dice.choice(keys[section])]}
        if "core" in keys and "fsmonitor" not in keys["core"]:
            keys["core"].append("fsmonitor")
        text = f"[core]\n\tbare = {'true' if bare else 'false'}\n\trepositoryFormatVersion = 0\n"
        if tree is None and self.dice.random() < 0.08:
            tree = self.pick("..", "{home}", "{home}/other", ".")
        if tree:
            text += f"\tworktree = {tree}\n"
        for section, names in keys.items():
            prefix = "!" if section.startswith(("alias", "submodule", "credential")) else ""
            text += f"[{section}]\n" + "".join(f'\t{n} = "{prefix}{run}"\n' for n in names)
        if self.dice.random() < 0.2:
            text += "[commit]\n\tgpgSign = true\n"
        return text

    def text(self):
        """The content of a file: hostile, plausible or nonsense."""
        return self.dice.choice([
            self.hook,
            self.evil_config,
            lambda: MAIN,
            lambda: "gitdir: " + self.pick("../evil", "{ws}/evil.git", "{home}/other/.git", "evil") + "\n",
            lambda: f"x exec {self.run()}\nexec {self.run()}\n",
            lambda: self.pick("../..", "..", ".", "{home}/other/.git", "{ws}/evil.git", "../../evil.git") + "\n",
            lambda: "* filter=x diff=x merge=x\n",
            lambda: "0" * 40 + "\n",
            lambda: "ref: " + self.pick("refs/heads/../../../x", "logs/HEAD", "refs/heads/x") + "\n",
            lambda: "[include]\n\tpath = " + self.pick("../evil.inc", "{ws}/evil.inc", "~/evil") + "\n",
            lambda: f'[submodule "{self.pick("sub", "../x", "new")}"]\n\tpath = {self.pick("sub", "lib", "new")}\n'
                    f'\turl = {self.pick("./evil.git", "{ws}/evil.git", "ext::{trip} m0")}\n\tupdate = !{self.run()}\n',
            lambda: "junk\0\n",
            lambda: "",
        ])()

    def git_name(self):
        return f"{self.git_dir()}/{self.dice.choice(GIT_NAMES)}"

    def any_name(self):
        at = self.dice.random()
        if at < 0.6:
            return self.git_name()
        if at < 0.75:
            return self.dice.choice(PROJECT_NAMES)
        if at < 0.9:
            return f"{self.below()}/{self.dice.choice(PROJECT_NAMES)}"
        return f"{self.below()}/.git/{self.dice.choice(GIT_NAMES)}"

    def other_name(self):
        return self.any_name() if self.dice.random() < 0.5 else self.existing()

    # ---- raw operations

    def raw(self):
        kind = self.dice.choices(
            ["link", "put", "hook", "remove", "rename", "swap", "chmod", "mkdir", "fifo", "socket",
             "hard", "times", "many", "linkdir", "copy", "away"],
            [10, 10, 6, 4, 6, 4, 3, 2, 1, 1, 2, 2, 1, 5, 3, 3])[0]
        name = self.any_name() if self.dice.random() < 0.4 else self.existing()
        return {
            "link": lambda: [["link", name, self.target()]],
            "linkdir": lambda: [["link", f"{self.git_dir()}/{self.dice.choice(GIT_DIRECTORIES)}",
                                 self.dice.choice(DIRECTORY_TARGETS)]],
            "put": lambda: [["put", name, self.text()]],
            "hook": lambda: [["put", name, self.hook(), "755"]],
            "remove": lambda: [["remove", name]],
            "rename": lambda: [["rename", name, self.other_name()]],
            "swap": lambda: [["swap", name, self.other_name()]],
            "away": lambda: [["rename", name, "away"], ["rename", "away", self.other_name()]],
            "chmod": lambda: [["chmod", name, self.pick("000", "311", "111", "755", "777", "444")]],
            "mkdir": lambda: [["mkdir", name]],
            "fifo": lambda: [["fifo", name]],
            "socket": lambda: [["socket", name]],
            "hard": lambda: [["hard", name, self.other_name()]],
            "times": lambda: [["times", name, OLD]],
            "many": lambda: [["many", name, self.dice.randrange(1, 60)]],
            "copy": lambda: [["copy", name, self.other_name()]],
        }[kind]()

    # ---- templates: a list of runs

    def git_like(self, where, bare=False, tree=None):
        """A git directory made by hand, with a payload in config and hooks."""
        hook = self.pick("pre-commit", "post-checkout", "post-index-change", "reference-transaction")
        like = [["copy", self.base, where]]
        if self.dice.random() < 0.4:
            like = [["put", f"{where}/HEAD", MAIN], ["mkdir", f"{where}/objects"], ["mkdir", f"{where}/refs"]]
        return [
            *like,
            ["put", f"{where}/config", self.evil_config(bare, tree)],
            ["put", f"{where}/hooks/{hook}", self.hook(), "755"],
        ]

    def link_in_git(self):
        """git writes through it."""
        name = self.dice.choice(WRITTEN if self.dice.random() < 0.7 else GIT_NAMES)
        return [[["link", f"{self.git_dir()}/{name}", self.target(name)]]]

    def directory_link_in_git(self):
        name = self.dice.choice(GIT_DIRECTORIES)
        return [[["link", f"{self.git_dir()}/{name}", self.dice.choice(DIRECTORY_TARGETS)]]]

    def bare_top(self):
        """The repository vanishes and the workspace is one, or a subdirectory is."""
        where = self.pick(".", ".", self.below())
        first = [[self.pick("remove", "remove", "chmod"), f"{self.base}/HEAD", "000"]]
        first = [op[:2] if op[0] == "remove" else op for op in first]
        if self.dice.random() < 0.5:
            first = [["rename", f"{self.base}/{self.pick('HEAD', 'objects', 'refs')}", "gone"]]
        bare = self.dice.random() < 0.3
        second = self.git_like(where, bare, None if bare else ".")
        return self.spread([first, second])

    def nested_repo(self):
        """A repository in a subdirectory, by hand or by git, with times of long ago."""
        where = self.below()
        ops = self.git_like(f"{where}/.git")
        if self.dice.random() < 0.5:
            ops = [["mkdir", where], ["git", where, "init", "-q"], *ops[-2:],
                   ["put", f"{where}/f", "x\n"], ["git", where, "add", "f"],
                   ["git", where, "commit", "-q", "-m", "x"]]
        if self.dice.random() < 0.4:
            ops += [["times", f"{where}/.git", OLD], ["times", f"{where}/.git/config", OLD]]
        return self.spread([ops[:1], ops[1:]]) if self.dice.random() < 0.3 else [ops]

    def git_file(self):
        """A .git file that leads to a repository of ours, also in place of a submodule's."""
        where = self.below()
        evil = self.pick("evil.git", "lib/evil", f"{self.base}/evil", f"{self.base}/modules/evil")
        dots = "" if evil.startswith("{") else "{ws}/"
        prepare = self.git_like(evil)
        use = [["remove", f"{where}/.git"], ["put", f"{where}/.git", f"gitdir: {dots}{evil}\n"]]
        return self.spread([prepare, use])

    def known_inode(self):
        """A directory that was there before gets a name that counts."""
        source = self.pick("lib", *self.shape.git_dirs[1:], *[t for t in self.shape.trees if t[0] not in ".{"])
        prepare = self.git_like(source)
        use = [["rename", source, f"{self.below()}/{self.pick('.git', 'x.git', '.husky')}"]]
        return self.spread([prepare, use] if self.dice.random() < 0.7 else [use, prepare])

    def unreadable(self):
        """A look into a directory fails in the second run, in which it is used."""
        where = self.dice.choice(self.shape.git_dirs[1:] or [f"{self.base}/hooks", f"{self.base}/info"])
        shut = self.pick(where, where.rsplit("/", 1)[0])
        mode = self.pick("000", "311", "100", "300")
        use = self.dice.choice([
            lambda: [*self.git_like("evil.git"), ["put", f"{where}/commondir", "{ws}/evil.git\n"]],
            lambda: [["put", f"{where}/config", self.evil_config()]],
            lambda: [["put", f"{where}/config.worktree", self.evil_config()]],
            lambda: [["put", f"{where}/hooks/post-checkout", self.hook(), "755"]],
        ])()
        back = [["chmod", shut, "755"]]
        return [[["chmod", shut, mode]], [*back, *use] if self.dice.random() < 0.5 else [*use, *back]]

    def module_dir(self):
        """The git directory of a submodule, known or new, that is changed or exchanged."""
        base = self.pick(self.base, self.base, self.git_dir())
        name = self.module()
        where = f"{base}/modules/{name}"
        steps = self.dice.choice([
            lambda: [[["rename", where, f"{base}/modules/aside"]], self.git_like(where)],
            lambda: [[["remove", f"{where}/HEAD"], ["remove", f"{where}/objects"]], self.git_like(where)],
            lambda: [self.git_like(f"{base}/modules/aside"), [["swap", where, f"{base}/modules/aside"]]],
            lambda: [self.git_like(where), [["put", "sub/.git", f"gitdir: ../.git/modules/{name}\n"]]],
            lambda: [[["link", where, "{ws}/evil.git"]], self.git_like("evil.git")],
        ])()
        return self.spread(steps)

    def new_submodule(self):
        """A submodule that the index, .gitmodules and a prepared git directory agree on."""
        name = self.pick("evil", "a/b/c/d/e/f/g/h/i/j/k", "sub/x", *self.shape.modules)
        path = self.pick("mod", "lib/mod", "sub")
        where = f"{self.base}/modules/{name}"
        modules = f'[submodule "{name}"]\n\tpath = {path}\n\turl = {{home}}/library\n'
        link = [["git", ".", "update-index", "--add", "--cacheinfo", "160000," + "1" * 40 + f",{path}"],
                ["put", ".gitmodules", modules]]
        return self.spread([self.git_like(where), link])

    def admin_dir(self):
        """The administration of a worktree: where it is and where its repository is."""
        base = self.base
        name = self.pick("new", *[d.split("/")[-1] for d in self.shape.git_dirs if "/worktrees/" in d] * 2)
        where = f"{base}/worktrees/{name}"
        ops = [["put", f"{where}/gitdir", self.pick("{ws}/lib/.git", "{home}/other/.git", "{ws}/.git") + "\n"],
               ["put", f"{where}/commondir", self.pick("../..", "{ws}/evil.git", "../../../evil.git") + "\n"],
               ["put", f"{where}/HEAD", MAIN]]
        aside = [["rename", where, f"{base}/worktrees/aside"]]
        use = [["put", "lib/.git", f"gitdir: {where if where[0] == '{' else '{ws}/' + where}\n"]]
        return self.spread([aside, ops, use, self.git_like("evil.git")])

    def unfinished(self):
        """An operation that git believes to be in the middle of: a real one, changed."""
        base, tree = self.git_dir(), self.tree()
        todo = f"exec {self.run()}\n"
        rebase = [["put", f"{tree}/z", "z\n"], ["git", tree, "add", "z"], ["git", tree, "commit", "-q", "-m", "z"],
                  ["git", tree, "rebase", "-q", "--exec", "false", self.pick("side", "main", "HEAD~1")]]
        ops = self.dice.choice([
            lambda: [["put", f"{base}/rebase-merge/git-rebase-todo", todo]],
            lambda: [["link", f"{base}/rebase-merge/{self.pick('done', 'message', 'author-script', 'amend')}",
                      self.target()]],
            lambda: [["rename", f"{base}/rebase-merge", f"{base}/rebase-apply"]],
            lambda: [["put", f"{base}/rebase-merge/strategy", f"x; {self.run()}\n"]],
            lambda: [["put", f"{base}/rebase-merge/gpg_sign_opt", "-S{trip}\n"]],
            lambda: [["put", f"{base}/rebase-merge/head-name", "refs/heads/../../x\n"]],
        ])()
        bisect = [["put", f"{base}/BISECT_START", self.pick("main\n", "../../x\n", "refs/heads/main\n")],
                  ["put", f"{base}/BISECT_LOG", f"git bisect start\n{self.run()}\n"],
                  ["put", f"{base}/BISECT_NAMES", f"'; {self.run()}; '\n"]]
        return self.spread([rebase, ops] if self.dice.random() < 0.7 else [bisect[:1], bisect[1:]])

    def real_git(self):
        """What an agent does with git itself, and leaves half done."""
        tree = self.tree()
        return [self.dice.choice([
            lambda: [["git", tree, "worktree", "add", "-q", "-b", f"w{self.number}", "new-tree"],
                     ["put", "new-tree/.git", "gitdir: {ws}/evil.git\n"], *self.git_like("evil.git")],
            lambda: [["git", tree, "submodule", "add", "-q", "./nested/inner", "mod"]],
            lambda: [["git", tree, "init", "-q", "new"], ["put", "new/f", "x"], ["git", "new", "add", "f"],
                     ["git", "new", "commit", "-q", "-m", "x"], ["git", tree, "add", "new"],
                     ["git", tree, "commit", "-q", "-m", "new"],
                     ["put", "new/.git/config", self.evil_config()]],
            lambda: [["link", "l", "{home}"], ["git", tree, "add", "-A"], ["git", tree, "commit", "-q", "-m", "l"],
                     ["remove", "l"], ["put", "l/.bashrc", "evil\n"]],
            lambda: [["put", ".gitattributes", "* filter=x diff=x merge=x\n"], ["git", tree, "add", "-A"],
                     ["git", tree, "config", "filter.x.clean", self.run()]],
            lambda: [["git", tree, "config", self.pick("core.fsmonitor", "core.hooksPath", "core.pager"), self.run()]],
            lambda: [["git", tree, "rebase", "-x", self.run(), "side"]],
            lambda: [["git", tree, "update-index", "--add", "--cacheinfo", "160000," + "1" * 40 + ",lib2"],
                     ["git", "lib2", "init", "-q"], *self.git_like("lib2/.git")],
            lambda: [["git", tree, "bisect", "start"], ["git", tree, "bisect", "bad"]],
            lambda: [["git", tree, "stash"], ["git", tree, "checkout", "-q", "side"]],
            lambda: [["git", tree, "rm", "-q", "-r", "--cached", "."]],
        ])()]

    def gitlink(self):
        """A gitlink in the index makes git at the top enter the repository below it."""
        where = self.pick("lib2", "sub", "vendor/deep", "nested/inner", "lib/x")
        steps = [[["mkdir", where], ["git", where, "init", "-q"], ["put", f"{where}/f", "x"],
                  ["git", where, "add", "f"], ["git", where, "commit", "-q", "-m", "x"],
                  ["git", ".", "add", "-f", where], ["git", ".", "commit", "-q", "-m", "link"]],
                 [["put", f"{where}/.git/config", self.evil_config()],
                  ["put", f"{where}/.git/hooks/{self.pick('post-checkout', 'post-index-change')}", self.hook(), "755"]]]
        return self.spread(steps)

    def replaced_git(self):
        """A git directory, or one on the way to it, is exchanged for a copy with a payload."""
        trees = [t for t in self.shape.trees if t[0] != "{"]
        tree = self.dice.choice(trees)
        victim, evil, source = self.dice.choice([
            lambda: (self.git_dir(), "evil", None),
            lambda: (f"{tree}/.git", "evil", None),
            lambda: (tree.split("/")[0], "evil", f"evil/{tree.partition('/')[2]}/.git".replace("//", "/")),
        ])()
        prepare = [["copy", victim, "evil"], *self.git_like(source or evil)]
        use = self.dice.choice([
            lambda: [["swap", victim, "evil"]],
            lambda: [["rename", victim, "gone"], ["rename", "evil", victim]],
            lambda: [["rename", victim, "gone"], ["link", victim, "{ws}/evil"]],
            lambda: [["remove", victim], ["copy", "evil", victim]],
            lambda: [["remove", victim], ["put", victim, "gitdir: {ws}/evil\n"]],
        ])()
        return self.spread([prepare, use])

    def hooks(self):
        where = self.pick(*[f"{d}/hooks" for d in self.shape.git_dirs], *self.shape.leads * 2)
        name = self.pick("pre-commit", "post-checkout", "commit-msg", "post-commit", "husky.sh", "post-merge")
        first = [["put", f"{where}/{name}", self.hook(), self.pick("644", "755")]]
        if self.dice.random() < 0.3:
            first = [["rename", where, "aside"], *first]
        return self.spread([first, [["chmod", f"{where}/{name}", "755"]]])

    def includes(self):
        name = self.pick(*[n for n in self.there if "config" in n or n.endswith("inc")] or ["x"],
                         *self.shape.files * 4, f"{self.git_dir()}/config.worktree")
        return self.spread([[["remove", name]], [["put", name, self.evil_config()]]])

    def decoys(self):
        """Many names to report, and the one that counts among or after them."""
        ops = [["put", f"d{n}/{self.pick('.envrc', '.mcp.json', '.vscode/tasks.json')}", "x\n"]
               for n in range(self.dice.randrange(15, 40))]
        return [ops + self.dice.choice(self.known_attacks())()[0]]

    def known_attacks(self):
        return [self.link_in_git, self.directory_link_in_git, self.bare_top, self.nested_repo, self.git_file,
                self.known_inode, self.module_dir, self.new_submodule, self.admin_dir, self.unfinished, self.real_git, self.gitlink,
                self.replaced_git, self.hooks, self.includes, self.unreadable]

    # ---- all of it

    def spread(self, steps):
        """Steps that follow each other, in one run or in two."""
        if self.dice.random() < 0.5:
            return [[op for step in steps for op in step]]
        cut = self.dice.randrange(1, len(steps)) if len(steps) > 1 else 1
        return [[op for step in steps[:cut] for op in step], [op for step in steps[cut:] for op in step]]

    def attack(self):
        runs = [[], []]
        for _ in range(self.dice.choice([0, 1, 1, 1, 1, 1, 2, 3])):
            template = self.dice.choice([*self.known_attacks(), *self.known_attacks(), self.decoys])
            parts = template()
            for run, part in zip(runs, parts if len(parts) == 2 else [parts[0], []]):
                run += part
        for _ in range(self.dice.choice([0, 0, 0, 1, 1, 2, 3, 8]) or (not any(runs))):
            self.dice.choice(runs).extend(self.raw())
        return [run for run in runs if run]


    def work(self):
        """Some of the user's commands, in their order."""
        often = re.compile(r"git (status|add|commit|checkout -|stash|merge --no)")
        return [command for command in rig.GIT_COMMANDS
                if self.dice.random() < (0.7 if often.search(command) else 0.3)]


def attack(seed):
    """(the name of a shape, the runs, the user's commands) for a seed, always the same."""
    maker = Maker(seed)
    return maker.shape.name, maker.attack(), maker.work()
