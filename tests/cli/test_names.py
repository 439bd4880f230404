"""Names that are protected and absent: nobody notices, in the box or beside it.

Each program is run in the project without a box, in a box, and on the host while a box runs; it
must come out the same. What a box sees of an absent file of settings is an empty one, so names are
compared without those.
"""

import contextlib
import os
import shutil
import subprocess

import arena
import lib
import pytest

KEPT = {".claude", ".vscode", ".codex", ".gemini", ".cursor", ".idea",
        "opencode.json", "opencode.jsonc"}  # fmt: skip

# Each says on its standard output what it came to. Copies go to $OUT.
WALKERS = {
    "ls": "ls",
    "sh": 'for f in *.json; do [ -d "$f" ] || cat "$f" >/dev/null || exit 1; done; echo done',
    "cp -r": "cp -r . $OUT/c && ls $OUT/c",
    "cp -a": "cp -a . $OUT/c && ls $OUT/c",
    "cp -rL": "cp -rL . $OUT/c && ls $OUT/c",
    "tar": "tar -cf $OUT/t . && mkdir $OUT/x && tar -xf $OUT/t -C $OUT/x && ls $OUT/x",
    "find": "find -L . -name '*.c' -exec cat {} +",
    "grep": "grep -R main . --include='*.c'",
    "os.walk": """/usr/bin/python3 -c '
import os
for top, dirs, files in os.walk("."):
    for name in dirs + files:
        os.stat(os.path.join(top, name))
print("done")'""",
    "copytree": """/usr/bin/python3 -c '
import os, shutil
shutil.copytree(".", os.environ["OUT"] + "/c")
print(sorted(n for n in os.listdir(os.environ["OUT"] + "/c") if n[0] != "."))'""",
    "glob": "/usr/bin/python3 -c 'import glob; print(glob.glob(\"**/*.c\", recursive=True))'",
    "node --test": "node --test t >/dev/null && echo passed",
    "node": """node -e '
const fs = require("fs");
for (const n of fs.readdirSync(".", { recursive: true })) fs.statSync(n);
console.log("done")'""",
    "npm pack": "npm pack --dry-run --json --offline 2>/dev/null | grep path | grep -v opencode",
    "make": "make -s all",
    "git status": "git status --porcelain --ignored",
    "git add": "git add -A -n",
    "git clean": "git clean -nd",
    "git clean -x": "git clean -ndx | grep -v '/$'",
    "git stash": "echo y >>src/main.c && git stash -q -u && git stash pop -q && git checkout src",
}


@pytest.fixture
def furnished(project):
    lib.use_clients()
    lib.make_file(project / "package.json", '{"name": "p", "version": "1.0.0"}\n')
    lib.make_file(project / "t/a.test.js", 'require("node:test")("a", () => {});\n')
    lib.make_file(project / "Makefile", "all:\n\t@echo $(wildcard src/*.c) $(wildcard *.js)\n")
    lib.git("add", "-A", cwd=project)
    lib.git("commit", "-q", "-m", "two", cwd=project)
    return project


def names(text):
    lines = text.decode().splitlines()
    return [line for line in lines if line not in KEPT and "held-" not in line]


def outside(script, out):
    shutil.rmtree(out, ignore_errors=True)
    lib.make_dir(out)
    done = lib.execute(["sh", "-c", script], env={"OUT": str(out)})
    return done.returncode, names(done.stdout)


@pytest.mark.parametrize("kind", WALKERS)
def test_programs_in_a_box_do_as_outside(furnished, place, kind):
    wanted = outside(WALKERS[kind], place / "out")
    assert wanted[0] == 0
    script = f"export OUT=/tmp/out; mkdir $OUT; {WALKERS[kind]}"
    done = lib.box("sh", "-c", script)
    said = names(done.stdout)
    if kind == "copytree":
        said = [line.replace(", 'opencode.json', 'opencode.jsonc'", "") for line in said]
    assert (done.returncode, said) == wanted, done.stderr


@contextlib.contextmanager
def running(project):
    with arena.held(project=project) as box:
        yield box


@pytest.mark.parametrize("kind", sorted(set(WALKERS) - {"copytree", "git clean", "sh"}))
def test_programs_on_the_host_do_as_without_a_box(furnished, place, tool, kind):
    """But for these: where opencode is in use, what opens everything stops at the socket that
    stands at opencode.json, and `git clean -d` lists the empty directories."""
    wanted = outside(WALKERS[kind], place / "out")
    with running(furnished):
        assert outside(WALKERS[kind], place / "out") == wanted


def test_no_special_file_where_opencode_is_not_in_use(project, place, tool):
    """Then every program on the host finds plain empty directories, and copytree() works too."""
    with running(project):
        kinds = {n: os.lstat(project / n).st_mode >> 12 for n in os.listdir(project)}
        assert set(kinds.values()) <= {0o10, 0o04}, kinds
        assert {name for name in KEPT - {".cursor"} if name[0] == "."} <= set(kinds)
        assert outside(WALKERS["copytree"], place / "out")[0] == 0


def test_the_user_works_beside_a_box(project, tool):
    """What is usual in a project works while a box runs, and stays when it ends."""
    (project / ".mcp.json").unlink(missing_ok=True)
    with running(project):
        run = "mkdir -p .claude/worktrees/x && echo '{}' >.mcp.json && echo '{}' >.vscode/s.json"
        assert lib.execute(["sh", "-c", run]).returncode == 0
        assert lib.carrel("init").returncode == 0
    assert (project / ".claude/worktrees/x").is_dir() and (project / "carrel.json").exists()
    assert (project / ".vscode/s.json").read_text() == "{}\n"
    assert (project / ".claude").stat().st_mode & 0o7777 == 0o755, "it is the user's now"
    assert not (project / ".idea").exists()


def test_the_users_own_empty_directory_stays(project):
    lib.make_dir(project / ".vscode")
    lib.make_dir(project / "tmp")
    (project / "tmp").chmod(0o1777)
    before = lib.snapshot(project)
    lib.succeeded(lib.box("true"))
    assert lib.snapshot(project) == before


def test_left_by_a_power_cut(project):
    """What nobody could take away is recognised by the next box, and goes with it."""
    before = lib.snapshot(project)
    lib.make_dir(project / ".vscode")
    (project / ".vscode").chmod(0o1755)
    done = lib.box("sh", "-c", "mkdir .vscode; echo x >.vscode/x")
    assert done.returncode != 0
    assert lib.snapshot(project) == before


def test_one_directory_of_a_protected_one_is_opened(project):
    """`--protect '!.claude/skills'`, whether `.claude` is there or not."""
    for _ in range(2):
        script = "echo x >.claude/skills/s; echo x >.claude/settings.json; mv .claude c; true"
        lib.box("sh", "-c", script, opts=["--protect", "!.claude/skills"])
        assert (project / ".claude/skills/s").read_text() == "x\n"
        assert not (project / ".claude/settings.json").exists()
    lib.box("sh", "-c", "echo y >.claude/skills/s")
    assert (project / ".claude/skills/s").read_text() == "x\n"
    subprocess.run(["rm", "-r", project / ".claude"], check=True)
    lib.box("true", opts=["--protect", "!.claude/skills"])
    assert not (project / ".claude").exists()


def test_a_link_in_a_protected_directory(project):
    """What it leads to in the workspace is obeyed like the rest, and protected."""
    lib.make_file(project / "shared/skill/SKILL.md", "of the host\n")
    lib.make_dir(project / ".claude")
    os.symlink("../../shared/skill", lib.make_dir(project / ".claude/skills") / "s")
    lib.give(project / ".claude/skills/s")
    lib.box("sh", "-c", "echo evil >shared/skill/SKILL.md; mv shared s; echo x >free")
    assert (project / "shared/skill/SKILL.md").read_text() == "of the host\n"
    assert (project / "free").exists()


@pytest.mark.parametrize("name", [".mcp.json", ".envrc", "carrel.json", "mise.toml"])
def test_a_name_with_a_gate_of_its_own(project, name):
    """One that is there cannot be changed. A new one can be made, and is reported."""
    done = lib.box("sh", "-c", f"echo x >{name}")
    assert (project / name).read_text() == "x\n"
    if name != "mise.toml":
        assert f"  {name}  (".encode() in done.stderr, done
    lib.box("sh", "-c", f"echo y >{name}; rm {name}")
    assert (project / name).read_text() == "x\n"
