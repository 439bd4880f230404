"""carrel apply: what a box changed comes to the host, and nothing of the host's is lost.

The oracles are rsync, where only the box has changed something, and `git merge-file`, where both
have. The box's side is known because the same edits are made on a copy outside.
"""

import json
import os
import pathlib
import random
import shutil
import stat
import subprocess

import lib
import pytest

SEED = int(os.environ.get("CARREL_APPLY_SEED", "7"))
ROUNDS = int(os.environ.get("CARREL_APPLY_ROUNDS", "2"))
OVERLAY = ("--overlay", "--name", "copy")


def boxes(name=""):
    return lib.current.home / ".local/state/carrel/boxes" / name


def upper(name="copy"):
    return boxes(name) / "layers/0/upper"


def edit(project, script, *argv, opts=()):
    argv = argv or ("sh", "-euc", script)
    done = lib.box(*argv, opts=(*OVERLAY, *opts), cwd=project)
    assert done.returncode == 0, done.stderr
    return done


def apply(*args, project, code=0, **how):
    done = lib.carrel("apply", "copy", *args, cwd=project, **how)
    assert done.returncode == code, done.stderr
    return done.stderr.decode()


def tree(top):
    """Path, type, mode and content of everything but git's own."""
    seen = {}
    top = os.fsencode(top)
    for where, dirs, files in os.walk(top):
        if where == top and b".git" in dirs:
            dirs.remove(b".git")
        for name in dirs + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                what = ("link", os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                what = ("dir", st.st_mode & 0o7777)
            else:
                what = ("file", st.st_mode & 0o7777, lib.digest(path))
            seen[os.path.relpath(path, top)] = what
    return seen


def leftovers(project):
    names = {path.name for path in boxes("copy").iterdir()} | {path.name for path in project.iterdir()}
    return {name for name in names if "apply-" in name}


# ---- one by one -------------------------------------------------------------------------


@pytest.fixture
def work(project):
    for name, text in {
        "text": "".join(f"{n}\n" for n in range(30)),
        "gone": "gone\n",
        "dir/in": "in\n",
        "dir/deep/er": "er\n",
        "mode": "mode\n",
    }.items():
        lib.make_file(project / name, text)
    lib.settle()
    return project


EDITS = """
sed -i 's/^3$/three/' text; rm gone; chmod 755 mode; mkdir -p new/er; echo new >new/er/file
chmod 700 new/er; mv dir moved; ln -s text link; ln new/er/file new/same
"""


def test_what_the_box_changed_is_applied(work):
    edit(work, EDITS)
    before = tree(work)
    assert "10 changes can be applied" in apply("--check", project=work)
    assert tree(work) == before, "--check changes nothing"
    assert "10 changes applied" in apply(project=work)
    after = tree(work)
    assert after[b"mode"][1] == 0o755 and after[b"new/er"] == ("dir", 0o700)
    assert b"gone" not in after and b"dir" not in after and b"moved/deep/er" in after
    assert after[b"link"] == ("link", b"text")
    assert os.stat(work / "new/er/file").st_ino == os.stat(work / "new/same").st_ino
    assert "three" in (work / "text").read_text()
    assert "nothing to apply" in apply(project=work)
    assert tree(work) == after and not leftovers(work)


def test_only_chosen_paths(work):
    edit(work, EDITS)
    before = tree(work)
    assert "2 changes applied" in apply("text", "new/er/file", project=work)
    after = tree(work)
    changed = {path for path in after | before if after.get(path) != before.get(path)}
    assert changed == {b"text", b"new", b"new/er", b"new/er/file"}
    done = lib.carrel("apply", "copy", "Makefile", cwd=work)
    assert done.returncode == 125 and b"did not change" in done.stderr
    done = lib.carrel("apply", "copy", "../x", cwd=work)
    assert done.returncode == 125 and b"is not in" in done.stderr
    apply("text", "new", "gone", "mode", "dir", "moved", "link", project=work)
    assert b", applied" in lib.carrel("ps", "-a").stdout, "all of it, if by names"


def test_both_sides_are_merged(work):
    edit(work, EDITS)
    text = (work / "text").read_text()
    lib.make_file(work / "text", text.replace("\n27\n", "\ntwenty-seven\n"))
    assert "text changed here since the box started; merged" in apply(project=work)
    merged = (work / "text").read_text()
    assert "three" in merged and "twenty-seven" in merged
    assert "nothing to apply" in apply(project=work)


def test_what_was_applied_still_shows(work):
    """Against the start it is what it was; against the present there is nothing left."""
    edit(work, EDITS + "mkdir -p also/new; echo x >also/new/file")
    forms = ([], ["--stat"], ["--name-only"], ["--format", "patch"])
    before = [lib.succeeded(lib.carrel("diff", "copy", *form, cwd=work)) for form in forms]
    assert b"also/new/file" in before[0]
    apply(project=work)
    assert [lib.succeeded(lib.carrel("diff", "copy", *form, cwd=work)) for form in forms] == before
    assert lib.succeeded(lib.carrel("diff", "copy", "--now", cwd=work)) == b""
    lib.make_file(work / "also/new/file", "mine\n")
    assert "made here and in the box" in apply(project=work, code=1)


def test_a_directory_deleted_here_comes_back_only_if_it_is_needed(work):
    lib.make_dir(work / "kept")
    lib.settle()
    edit(work, "echo 1 >kept/file; rm kept/file; echo 1 >dir/deep/more; rm dir/deep/more; echo 1 >dir/new")
    lib.remove(work / "kept")
    lib.remove(work / "dir")
    assert "1 change applied" in apply(project=work)
    assert tree(work).keys() >= {b"dir", b"dir/new"} and not (work / "kept").exists()
    assert not (work / "dir/deep").exists()


def test_a_conflict_changes_nothing_and_names_both(work):
    edit(work, EDITS)
    lib.make_file(work / "text", "all mine\n")
    lib.make_file(work / "new", "a file here, a directory there\n")
    before = lib.snapshot(work)
    told = apply(project=work, code=1)
    assert "text: changed here and in the box" in told and "nothing applied: 2 conflicts" in told
    assert str(work / "text") in told and str(upper() / "text") in told
    assert lib.snapshot(work) == before and not leftovers(work)
    assert "applied" in apply("mode", "gone", project=work), "the others can be had"


def test_deleted_on_one_side_and_changed_on_the_other(work):
    edit(work, "rm gone; echo more >>mode")
    lib.make_file(work / "gone", "not gone\n")
    os.unlink(work / "mode")
    told = apply(project=work, code=1)
    assert "gone: changed here, and deleted in the box" in told
    assert "mode: deleted here, and changed in the box" in told


# ---- changed on the host while the box ran: git has the base --------------------------------


def edit_meanwhile(project, script, here):
    """The box's edit and the host's, both between the start and the end of the box."""
    box = lib.start_box("sh", "-euc", f"{script}\necho up; read x", opts=OVERLAY, cwd=project)
    lib.read_until(box.stdout, b"up")
    here()
    box.communicate(b"\n", timeout=lib.TIMEOUT)
    assert box.returncode == 0


@pytest.fixture
def committed(work):
    lib.git("add", "-A", cwd=work)
    lib.git("commit", "-qm", "all", cwd=work)
    lib.settle()
    return work


def change_27(project, staged):
    text = (project / "text").read_text()
    lib.make_file(project / "text", text.replace("\n27\n", "\nmine\n"))
    if staged:
        lib.git("commit", "-qam", "mine", cwd=project)


@pytest.mark.parametrize("staged", [False, True])
def test_changed_meanwhile_is_merged_over_the_commit(committed, staged):
    """Also if the user has committed the change: the base is the commit of the start."""
    script = "sed -i 's/^3$/three/' text; chmod 755 text"
    edit_meanwhile(committed, script, lambda: change_27(committed, staged))
    told = apply(project=committed)
    assert "text changed here since the box started; merged over its committed version" in told
    merged = (committed / "text").read_text()
    assert "three" in merged and "mine" in merged and os.stat(committed / "text").st_mode & 0o100
    assert "nothing to apply" in apply(project=committed)


def test_changed_meanwhile_without_a_base(committed):
    """Not committed, or one side undid what had not been committed: nobody knows the base."""
    lib.make_file(committed / "loose", "1\n2\n3\n4\n5\n")
    lib.make_file(committed / "gone", "not committed\n")
    lib.settle()

    def here():
        lib.make_file(committed / "loose", "1\n2\n3\n4\nfive\n")
        lib.make_file(committed / "gone", "newer\n")

    edit_meanwhile(committed, "sed -i 's/1/one/' loose; git checkout -q gone", here)
    told = apply(project=committed, code=1)
    assert "loose: changed here and in the box" in told and "gone: changed here and in" in told


@pytest.mark.parametrize("script", ["echo more >>mode", "cp mode x; mv x mode"])
def test_deleted_meanwhile(committed, script):
    edit_meanwhile(committed, script, lambda: os.unlink(committed / "mode"))
    told = apply(project=committed, code=1)
    assert "mode: deleted here, and changed in the box" in told


def test_the_directory_was_deleted_here(work):
    """A new file brings its directory back, as in a merge of git's."""
    edit(work, "echo new >dir/new; echo more >>dir/in")
    lib.remove(work / "dir")
    assert "dir/in: deleted here, and changed in the box" in apply(project=work, code=1)
    assert not (work / "dir").exists()
    apply("dir/new", project=work)
    assert sorted(tree(work / "dir")) == [b"new"]


def test_what_the_box_only_touched_is_the_users(work):
    """Copied up, and as before: what the user writes later is neither a change nor a conflict."""
    edit(work, "chmod 600 text mode; chmod 644 text mode; rm gone; echo gone >gone; echo 1 >one")
    for name in ("text", "mode", "gone"):
        lib.make_file(work / name, "mine\n")
    assert "1 change applied" in apply(project=work)
    assert all((work / name).read_text() == "mine\n" for name in ("text", "mode", "gone"))
    found = json.loads(lib.succeeded(lib.carrel("diff", "copy", "--json", cwd=work)))
    assert [one["path"] for one in found["changes"]] in ([], ["one"])


@pytest.mark.parametrize("script", ["rm -r dir", "rm -r dir; mkdir dir", "rm -r dir; echo x >dir"])
def test_moved_into_a_deleted_directory(work, script):
    """Files in a directory that the user moves keep their times: they look old, and are new."""
    lib.make_file(work / "notes/precious", "precious\n")
    lib.settle()
    edit(work, script)
    os.rename(work / "notes", work / "dir/notes")
    assert "dir/notes" in apply(project=work, code=1)
    assert (work / "dir/notes/precious").read_text() == "precious\n"


def test_a_directory_here_and_a_file_there(work):
    edit(work, "echo 1 >same; echo 2 >dir/same")
    lib.make_dir(work / "same")
    lib.make_dir(work / "dir/same")
    told = apply(project=work, code=1)
    assert "2 conflicts" in told and (work / "same").is_dir() and (work / "dir/same").is_dir()


def test_made_beside_something_new(committed):
    """The control: a name of the box's own, in a directory that the host changed meanwhile."""
    edit_meanwhile(committed, "echo 1 >one", lambda: lib.make_file(committed / "two", "2\n"))
    assert "1 change applied" in apply(project=committed)


def test_a_deleted_directory_with_something_new_in_it(work):
    """Nobody knows whether it is new or was changed: a conflict, and the rest can be had."""
    edit(work, "rm -r dir")
    lib.make_file(work / "dir/mine", "mine\n")
    assert "dir/mine: changed here, and deleted in the box" in apply(project=work, code=1)
    apply("dir/in", "dir/deep", project=work)
    assert tree(work / "dir") == {b"mine": ("file", 0o644, lib.digest(work / "dir/mine"))}


def test_the_box_must_have_ended(work):
    box = lib.start_box("sh", "-c", "echo x >f; echo go; exec sleep 60", opts=OVERLAY, cwd=work)
    lib.read_until(box.stdout, b"go\n")
    before = lib.snapshot(work)
    done = lib.carrel("apply", "copy", cwd=work)
    assert done.returncode == 125 and b"copy" in done.stderr
    assert lib.snapshot(work) == before


def test_json(work):
    edit(work, "echo 1 >one; mkdir .vscode; echo '{}' >.vscode/tasks.json")
    done = lib.carrel("apply", "copy", "--json", "--check", cwd=work)
    told = json.loads(done.stdout)
    assert told["applied"] is False and told["box"] == "copy"
    verdicts = {change["path"]: change["verdict"] for change in told["changes"]}
    assert verdicts == {".vscode": "left", ".vscode/tasks.json": "left", "one": "taken"}


# ---- what is guarded --------------------------------------------------------------------


def test_protected_files_only_when_asked_for(work):
    edit(work, "mkdir .vscode .claude; echo '{}' >.vscode/tasks.json; echo '{}' >.claude/settings.json")
    told = apply(project=work)
    assert "left out .vscode/tasks.json: protected" in told and "nothing to apply" in told
    assert not (work / ".vscode").exists() and not (work / ".claude").exists()
    assert ".vscode/tasks.json is protected, and taken as you said" in apply(
        "--include-protected", project=work
    )
    assert (work / ".vscode/tasks.json").read_text() == "{}\n"


def test_the_rules_of_the_workspace_hold(work):
    opts = (*OVERLAY, "--protect", "infra/")
    lib.box("sh", "-euc", "mkdir -p infra/a; echo 1 >infra/a/b; echo 2 >c", opts=opts, cwd=work)
    assert "left out infra" in apply(project=work)
    assert not (work / "infra").exists() and (work / "c").exists()


def test_a_repository_in_disguise(work):
    edit(work, "git init -q --bare inner; mkdir plain; echo x >plain/HEAD")
    told = apply(project=work)
    assert "left out inner/HEAD: protected: git would take its directory" in told
    assert "left out inner/refs/heads" in told
    assert not (work / "inner/HEAD").exists() and (work / "plain/HEAD").exists()


def test_git_directories_are_never_touched(work):
    before = lib.snapshot(work / ".git")
    edit(work, "echo 1 >one; git add one; git commit -qm one; git config core.pager evil;"
               "echo evil >.git/hooks/pre-commit; git init -q sub; echo x >sub/f")  # fmt: skip
    assert "not applied" in apply("--include-protected", project=work)
    assert lib.snapshot(work / ".git") == before
    assert (work / "sub/f").exists() and not (work / "sub/.git").exists()


# ---- hostile layers ---------------------------------------------------------------------


def as_user(script, cwd):
    lib.succeeded(lib.execute(["sh", "-euc", script], cwd=cwd))


def test_nothing_special_and_no_set_id_bit(work):
    edit(work, "mkfifo fifo; python3 -c 'import socket as s; s.socket(s.AF_UNIX).bind(\"sock\")';"
               "echo x >run; chmod 2755 run; mkdir group; chmod 2775 group")  # fmt: skip
    as_user("chmod 6755 run", upper())
    told = apply(project=work)
    assert "left out fifo" in told and "left out sock" in told
    assert not (work / "fifo").exists() and not (work / "sock").exists()
    assert (work / "run").stat().st_mode & 0o7777 == 0o755
    assert (work / "group").stat().st_mode & 0o7777 == 0o775


@pytest.mark.parametrize("where", ["upper", "host"])
def test_a_link_in_the_way_is_not_followed(work, place, where):
    """A directory on the way to a change becomes a link that leads out, on either side."""
    outside = lib.make_dir(place / "outside")
    lib.make_file(outside / "in", "canary\n")
    edit(work, "echo changed >dir/in; echo more >dir/more")
    before = lib.snapshot(outside)
    top = upper() if where == "upper" else work
    as_user(f"rm -r dir; ln -s {outside} dir", top)
    lib.carrel("apply", "copy", "--include-protected", cwd=work)
    assert lib.snapshot(outside) == before


def test_crafted_marks_do_no_harm(work, place):
    canary = lib.make_file(place / "canary", "canary\n")
    edit(work, "echo a >dir/in; mkdir made; echo b >made/b")
    marks = """
    import os
    for path in ("dir", "made", "dir/in"):
        for mark, value in (("opaque", b"x"), ("redirect", b"/../../canary"), ("origin", b"\\0" * 40),
                            ("metacopy", b""), ("impure", b"y"), ("nlink", b"U+1"), ("upper", b"z")):
            os.setxattr(path, "user.overlay." + mark, value)
    open("whited", "w").close()
    os.setxattr("whited", "user.overlay.whiteout", b"y")
    """
    script = "\n".join(line[4:] for line in marks.splitlines())
    lib.succeeded(lib.execute([lib.PYTHON, "-c", script], cwd=upper()))
    apply(project=work)
    assert (work / "dir/in").read_text() == "a\n" and canary.read_text() == "canary\n"
    assert not [name for path in (work / "dir", work / "made") for name in os.listxattr(path)]


def test_names_drive_no_terminal(work):
    evil = b"\x1b]0;owned\x07\n\xff"
    lib.succeeded(lib.execute(["true"]))
    script = f"import os; open({evil!r}, 'w').write('x'); os.mkfifo(b'p' + {evil!r})"
    edit(work, "", lib.PYTHON, "-c", script)
    told = apply(project=work)
    assert "\x1b" not in told and "\x07" not in told and "left out p\\x1b" in told
    assert os.path.exists(os.fsencode(work) + b"/" + evil)


def test_a_deep_tree(work):
    script = "import os\nfor n in range(300):\n os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()"
    edit(work, "", lib.PYTHON, "-c", script)
    apply(project=work)
    assert (work / ("d/" * 300) / "f").exists()


# ---- killed, or failing, at every step --------------------------------------------------


def restore(backup, project):
    subprocess.run(["rsync", "-a", "--delete", f"{backup}/", f"{project}/"], check=True)


@pytest.mark.parametrize("how", ["CARREL_TEST_STOP", "CARREL_TEST_FAIL"])
def test_every_step_is_finished_or_undone(work, place, how):
    edit(work, EDITS)
    lib.make_file(work / "text", (work / "text").read_text().replace("\n27\n", "\nmine\n"))
    backup = place / "backup"
    subprocess.run(["cp", "-a", work, backup], check=True)
    before = tree(work)
    apply(project=work)
    after = tree(work)
    assert before != after
    seen = set()
    for step in range(1, 200):
        restore(backup, work)
        done = lib.carrel("apply", "copy", cwd=work, env={how: f"apply:{step}"})
        if done.returncode == 0:
            assert tree(work) == after
            break
        if how == "CARREL_TEST_FAIL":
            assert done.returncode == 125 and b"on purpose" in done.stderr
        else:
            assert done.returncode == -9
        apply("--check", project=work)  # and before that, what was left is cleaned up
        now = tree(work)
        assert now in (before, after), f"step {step}: half of it"
        assert not leftovers(work)
        seen.add(now == after)
    assert step > 25 and seen == {True, False}


# ---- random edits against the oracles ---------------------------------------------------


def random_text(rng):
    return "".join(f"{rng.randrange(8)}\n" for _ in range(rng.randrange(12)))


def mutate(rng, top):
    """One random edit of a tree, as a list that any Python can execute."""
    paths = sorted(p.relative_to(top) for p in top.rglob("*"))
    files = [str(p) for p in paths if (top / p).is_file() and not (top / p).is_symlink()]
    dirs = ["."] + [str(p) for p in paths if (top / p).is_dir() and not (top / p).is_symlink()]
    what = rng.choice(["write", "new", "line", "line", "line", "rm", "chmod", "mkdir", "link", "mv", "rmdir"])
    name = f"{rng.choice(dirs)}/{rng.choice('abcde')}"
    if what in ("write", "line", "rm", "chmod") and not files:
        return None
    if what == "line":
        return ["line", rng.choice(files), rng.randrange(12), rng.randrange(8)]
    if what == "chmod":
        return ["chmod", rng.choice(files), rng.choice([0o644, 0o755, 0o600])]
    if what in ("write", "rm"):
        return [what, rng.choice(files), random_text(rng)]
    if what in ("mv", "rmdir"):
        source = rng.choice(dirs)
        # Refused everywhere, but in the copy it makes the directory one of the box's own.
        return None if what == "mv" and f"./{name}/".startswith(f"./{source}/") else [what, source, name]
    return [what, name, random_text(rng)]


EXECUTE = r'''
import os, shutil
def run(top, edit):
    what, path, *more = edit
    path = os.path.join(top, path)
    try:
        if what in ("write", "new"):
            open(path, "w").write(more[0])
        elif what == "line":
            lines = open(path).read().splitlines(True)
            lines[more[0]:more[0] + 1] = [f"{more[1]} changed\n"]
            open(path, "w").write("".join(lines))
        elif what == "rm":
            os.unlink(path)
        elif what == "chmod":
            os.chmod(path, more[0])
        elif what == "mkdir":
            os.mkdir(path)
        elif what == "link":
            os.symlink("a", path)
        elif what == "mv":
            os.rename(path, os.path.join(top, more[0]))
        elif what == "rmdir" and os.path.normpath(path) != os.path.normpath(top):
            shutil.rmtree(path)
    except OSError:
        pass
'''
_space = {}
exec(EXECUTE, _space)


def make_case(rng, top):
    for _ in range(rng.randrange(4, 9)):
        _space["run"](top, ["new", rng.choice(["", "x/", "y/"]) + rng.choice("abcdef"), random_text(rng)])
    for name in ("x", "y"):
        os.makedirs(top / name, exist_ok=True)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def merged(base, ours, theirs):
    done = subprocess.run(["git", "merge-file", "-p", "-q", ours, base, theirs], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def is_deleted(path, base, box):
    """Did the box delete a directory that it is in?"""
    return bool(path) and ((path in base and path not in box) or is_deleted(os.path.dirname(path), base, box))


def expect(base, host, box):
    """What the tree must be, or None for a conflict; from three trees on disk."""
    b, h, x = (tree(top) for top in (base, host, box))
    want = {}
    for path in b | h | x:
        was, mine, theirs = b.get(path), h.get(path), x.get(path)
        if theirs == was and mine and not was and is_deleted(os.path.dirname(path), b, x):
            return None
        if theirs == was:
            want[path] = mine
        elif mine in (was, theirs):
            want[path] = theirs
        elif was and mine and theirs and was[0] == mine[0] == theirs[0] == "file":
            names = [os.path.join(os.fsencode(top), path) for top in (base, host, box)]
            text = merged(*names) if len({mine[2], theirs[2], was[2]}) == 3 else (
                content(names[1] if theirs[2] == was[2] else names[2]))
            if text is None:
                return None
            mode = theirs[1] if theirs[1] != was[1] else mine[1]
            want[path] = ("file", mode, lib.hashlib.sha256(text).hexdigest())
        else:
            return None
    want = {path: what for path, what in want.items() if what}
    for path in list(want):  # a directory with something in it stays, and so nothing else can be there
        while path := os.path.dirname(path):
            what = want.get(path, h.get(path)) or x[path]  # deleted here, and needed again
            if what[0] != "dir":
                return None
            want[path] = what
    return want


def test_random_edits_on_both_sides(project, place):
    for round in range(ROUNDS):
        rng = random.Random(SEED * 1000 + round)
        run_round(rng, project, lib.make_dir(place / f"round{round}"))


CASES, MERGES = 40, 300


def run_round(rng, project, scratch):
    cases = [f"case{n}" for n in range(CASES)]
    edits = {}
    for name in cases:
        top = project / name
        lib.remove(top)
        top.mkdir()
        make_case(rng, top)
    for kind in ("base", "box"):
        shutil.copytree(project, scratch / kind, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    for name in cases:
        edits[name] = []
        for _ in range(rng.randrange(6)):
            one = mutate(rng, scratch / "box" / name)
            if one:
                edits[name].append(one)
                _space["run"](str(scratch / "box" / name), one)
    own(project)
    lib.settle()
    script = EXECUTE + f"\nfor name, all in {edits!r}.items():\n for one in all:\n  run(name, one)"
    edit(project, "", lib.PYTHON, "-c", script)
    for name in cases:
        for _ in range(rng.choice([0, 0, 1, 3])):
            one = mutate(rng, project / name)
            if one:
                _space["run"](str(project / name), one)
    own(project)
    check_round(project, scratch, cases, edits)
    lib.remove(boxes("copy"))


def own(project):
    for where, dirs, files in os.walk(project):
        for name in dirs + files:
            lib.give(os.path.join(where, name))


def check_round(project, scratch, cases, edits):
    outcomes = set()
    for name in cases:
        host = scratch / f"host-{name}"
        shutil.copytree(project / name, host, symlinks=True)
        want = expect(scratch / "base" / name, host, scratch / "box" / name)
        same = tree(scratch / "base" / name) == tree(scratch / "box" / name)
        done = lib.carrel("apply", "copy", name, cwd=project)
        got = tree(project / name) if (project / name).is_dir() else {}
        outcomes.add("same" if same else "conflict" if want is None else "applied")
        if same:
            # A directory that was made again hides what is new on the host: a conflict, perhaps.
            assert got == tree(host), (name, edits[name], done.stderr)
        elif want is None:
            assert done.returncode == 1, (name, edits[name], done.stderr)
            assert got == tree(host), (name, edits[name])
        else:
            there = want == tree(host) and b"did not change" in done.stderr
            assert done.returncode == 0 or there, (name, edits[name], done.stderr)
            assert got == want, (name, edits[name], done.stderr)
    assert outcomes == {"same", "conflict", "applied"}


def test_rsync_agrees_where_only_the_box_changed(project, place):
    rng = random.Random(SEED)
    for name in "pq":
        (project / name).mkdir()
        make_case(rng, project / name)
    out, want = place / "out", place / "want"
    shutil.copytree(project, out, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    edits = []
    for _ in range(60):
        one = mutate(rng, out / "p")
        if one:
            edits.append(one)
            _space["run"](str(out / "p"), one)
    own(project)
    lib.settle()
    edit(project, "", lib.PYTHON, "-c", EXECUTE + f"\nfor one in {edits!r}: run('p', one)")
    shutil.copytree(project, want, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    subprocess.run(["rsync", "-rlpE", "--delete", "-c", f"{out}/", f"{want}/"], check=True)
    assert tree(want) != tree(project)
    apply(project=project)
    assert tree(project) == tree(want)


def test_merges_as_git_does(project, place):
    """Many files at once, changed on both sides in a few lines each."""
    rng = random.Random(SEED)
    top = lib.make_dir(project / "many")
    sides = {side: lib.make_dir(place / side) for side in ("base", "ours", "theirs")}
    names = [f"f{n}" for n in range(MERGES)]
    for name in names:
        lines = [f"line {n} {rng.randrange(6)}\n" for n in range(rng.randrange(1, 25))]
        texts = {"base": lines, "ours": lines[:], "theirs": lines[:]}
        for side in ("ours", "theirs"):
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(texts[side]) + 1)
                new = [f"{rng.randrange(6)} {side if rng.random() < 0.8 else 'both'}\n"] * rng.randrange(3)
                texts[side][at : at + rng.randrange(3)] = new
        texts["theirs"].append("the box's\n")
        for side, text in texts.items():
            lib.make_file(sides[side] / name, "".join(text))
        lib.make_file(top / name, "".join(lines))
    lib.settle()
    edit(project, f"cp {sides['theirs']}/* many/", opts=("--mount", f"{sides['theirs']}"))
    for name in names:
        lib.make_file(top / name, (sides["ours"] / name).read_bytes())
    want = {name: merged(*(str(sides[side] / name) for side in ("base", "ours", "theirs"))) for name in names}
    told = json.loads(lib.carrel("apply", "copy", "--check", "--json", "many", cwd=project).stdout)
    conflicts = {c["path"] for c in told["changes"] if c["verdict"] == "conflict"}
    assert conflicts == {f"many/{name}" for name in names if want[name] is None}
    changed = {c["path"] for c in told["changes"]}
    good = [path for path in sorted(changed - conflicts)]
    assert len(good) > MERGES / 4 and len(conflicts) > MERGES / 10
    apply(*good, project=project)
    for path in good:
        assert (project / path).read_bytes() == want[path.removeprefix("many/")], path
