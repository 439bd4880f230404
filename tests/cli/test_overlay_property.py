"""Random edits in a copy of the workspace, and the same edits on a plain copy.

Each round runs one script of edits twice, in a box on an overlay and on a `cp -a`; it has a
sequence of edits for each of ten directories. What carrel
says has changed is compared with a plain comparison of the two trees, with `rsync -n --checksum`
and with `git apply` of the patch. CARREL_OVERLAY_SEED and CARREL_OVERLAY_ROUNDS ask for more.
"""

import json
import os
import random
import stat
import subprocess

import lib

SEED = int(os.environ.get("CARREL_OVERLAY_SEED", "21"))
ROUNDS = int(os.environ.get("CARREL_OVERLAY_ROUNDS", "20"))
TREES, EDITS = 10, 12  # in a round; in one of its directories, at most
NAMES = ["a", "b", "c d", "e\n", 'f"', "g\\", "ü", "\udcff", "-n", "h.txt", "\x1b[2J", ".x"]

# Run in the box and outside: edits as JSON lines on its standard input.
EDITOR = r'''
import json, os, shutil, sys
def clear(p):
    if os.path.isdir(p) and not os.path.islink(p): shutil.rmtree(p)
    elif os.path.lexists(p): os.unlink(p)
def write(p, text):
    clear(p)
    with open(p, "wb") as f: f.write(text.encode("latin-1"))
def append(p, text):
    with open(p, "ab") as f: f.write(text.encode("latin-1"))
def again(p):
    with open(p, "rb") as f: data = f.read()
    mode = os.stat(p).st_mode & 0o7777
    os.unlink(p)
    with open(p, "wb") as f: f.write(data)
    os.chmod(p, mode)
def remake(p):
    shutil.copytree(p, p + ".new", symlinks=True); shutil.rmtree(p); os.rename(p + ".new", p)
def move(p, q):
    clear(q); shutil.move(p, q)
def link(p, q):
    clear(q); os.link(p, q, follow_symlinks=False)
def symlink(p, text):
    clear(p); os.symlink(text, p)
def sparse(p, size):
    clear(p)
    with open(p, "wb") as f: f.truncate(size); f.seek(size // 2); f.write(b"x")
def attribute(p, value):
    os.setxattr(p, "user.test", value.encode())
def chmod(p, mode):
    os.chmod(p, mode | (0o700 if os.path.isdir(p) else 0))
calls = dict(write=write, append=append, again=again, remake=remake, move=move, link=link,
             symlink=symlink, sparse=sparse, attribute=attribute, clear=clear, mkdir=os.mkdir,
             chmod=chmod, touch=os.utime)
for line in sys.stdin:
    name, *args = json.loads(line)
    # Through a link it would be an edit of something else.
    if os.path.islink(args[0]) and name not in ("write", "move", "symlink", "sparse", "clear"): continue
    paths = args if name in ("move", "link") else args[:1]
    if any(os.path.realpath(os.path.dirname(p)) != os.path.abspath(os.path.dirname(p)) for p in paths): continue
    try: calls[name](*args)
    except (OSError, shutil.Error): pass
'''


def some_path(rng, depth=3):
    return "/".join(rng.choice(NAMES) for _ in range(rng.randint(1, depth)))


def some_text(rng):
    kind = rng.random()
    if kind < 0.15:
        return "".join(chr(rng.randrange(256)) for _ in range(rng.randrange(300)))
    lines = [rng.choice(["one", "two", "three", "  four\t", "\r", ""]) for _ in range(rng.randrange(30))]
    return "\n".join(lines) + ("\n" if kind < 0.8 else "")


def some_edit(rng, top, paths):
    """An edit of something that is there, as a rule."""
    known = rng.choice(paths) if paths and rng.random() < 0.7 else f"{top}/{some_path(rng)}"
    other = rng.choice(paths) if paths and rng.random() < 0.3 else f"{top}/{some_path(rng)}"
    return rng.choice(
        [
            ["write", known, some_text(rng)],
            ["append", known, some_text(rng)],
            ["again", known],
            ["remake", known],
            ["move", known, other],
            ["link", known, other],
            ["symlink", known, rng.choice(["a", "/etc/passwd", "../..", "x" * 200])],
            ["sparse", known, 1 << 20],
            ["attribute", known, "v"],
            ["clear", known],
            ["mkdir", known],
            ["chmod", known, rng.choice([0o600, 0o644, 0o755, 0o700])],
            ["touch", known],
        ]
    )


def tree(top):
    """{path: (type, mode, contents, attributes)} of all below."""
    top, seen = os.fsencode(top), {}
    for where, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            extra, attributes = b"", ()
            if stat.S_ISLNK(st.st_mode):
                extra = os.readlink(path)
            else:
                attributes = tuple((n, os.getxattr(path, n)) for n in sorted(os.listxattr(path)))
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    extra = file.read()
            mode = 0 if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode)
            key = os.fsdecode(os.path.relpath(path, top))
            seen[key] = (stat.S_IFMT(st.st_mode), mode, extra, attributes)
    return seen


def expected(before, after):
    changed = {path: "changed" for path in before if path in after and before[path] != after[path]}
    changed |= {path: "deleted" for path in before if path not in after}
    return changed | {path: "added" for path in after if path not in before}


def edit(rng, paths):
    edits = []
    for top in (f"t{number}" for number in range(TREES)):
        own = [path for path in paths if path.startswith(f"{top}/")]
        edits += [some_edit(rng, top, own) for _ in range(rng.randint(1, EDITS))]
    return "".join(json.dumps(one) + "\n" for one in edits).encode()


def by_rsync(old, new):
    """Names that differ, as rsync has it: in type, contents, mode, or there and not there."""
    done = lib.execute(
        ["rsync", "-nrlpc", "--delete", "--out-format=%i %n", "-8", f"{new}/", f"{old}/"]
    )
    assert done.returncode == 0, done.stderr
    found = set()
    for line in done.stdout.split(b"\n"):
        flags, _, name = line.partition(b" ")
        if name and name != b"./":
            found.add(name.strip().rstrip(b"/"))
    return found


def break_links(top):
    """In an overlay a write to one name of a file of the host does not reach its other names."""
    for path in top.rglob("*"):
        if not path.is_symlink() and path.is_file() and path.stat().st_nlink > 1:
            subprocess.run(["cp", "-p", "--preserve=xattr", path, f"{path}.new"], check=True)
            lib.give(f"{path}.new")
            os.rename(f"{path}.new", path)


def one_round(rng, place, number):
    old, new = place / f"old{number}", place / f"new{number}"
    lib.make_dir(old)
    for tree_number in range(TREES):
        lib.make_dir(old / f"t{tree_number}")
    run = [lib.PYTHON, "-c", EDITOR]
    lib.succeeded(lib.execute(run, cwd=old, input=edit(rng, []) + edit(rng, [])))
    break_links(old)
    subprocess.run(["cp", "-a", old, new], check=True)
    lib.settle()
    before = tree(old)
    edits = edit(rng, list(before))
    lib.succeeded(lib.execute(run, cwd=new, input=edits))
    name = f"r{number}"
    lib.succeeded(lib.box(*run, opts=["--overlay", "--name", name], cwd=old, input=edits))
    after = tree(new)
    assert tree(old) == before, "the host has changed"
    return old, new, before, after, name


def check_set(before, after, name):
    want = expected(before, after)
    if not want:
        assert lib.carrel("diff", name).returncode == 125
        return None
    said = json.loads(lib.succeeded(lib.carrel("diff", name, "--json")))
    found = {one["path"]: one["change"] for one in said["changes"]}
    assert found == want, {p: (before.get(p), after.get(p)) for p in set(found) ^ set(want)}
    assert all(one["base"] == "same" for one in said["changes"]) and not said["partial"]
    return want


def check_rsync(old, new, before, after, want):
    """rsync knows no attributes, and writes names with control characters in its own way."""
    plain = {p for p in want if p.isprintable() and p.isascii() and "\\" not in p}
    told = by_rsync(old, new)
    for path in plain:
        same = path in before and path in after and before[path][:3] == after[path][:3]
        assert (path.encode() in told) == (not same), path


def check_patch(old, after, name):
    """Applied to the tree at the start, the patch gives the box's files."""
    patch = lib.succeeded(lib.carrel("diff", name, "--format", "patch"))
    for where, _, _ in os.walk(os.fsencode(old), topdown=False):
        if not os.listdir(where):
            os.rmdir(where)  # git knows no empty ones, and would stop at them
    for words in (["--check"], []):
        done = lib.execute(["git", "apply", "--whitespace=nowarn", *words, "-"], cwd=old, input=patch)
        assert done.returncode == 0 or not patch, (done.stderr, patch)

    def in_git(one):
        kind, mode, extra, _ = one
        return kind, mode & 0o100 if kind == stat.S_IFREG else 0, extra

    files = {p: in_git(o) for p, o in tree(old).items() if o[0] != stat.S_IFDIR}
    assert files == {p: in_git(o) for p, o in after.items() if o[0] != stat.S_IFDIR}


def check_export(place, before, after, want, name):
    target = place / f"out-{name}"
    lib.succeeded(lib.carrel("diff", name, "--export", str(target)))
    found = tree(target / "files")
    for path, change in want.items():
        if change == "deleted":
            assert path not in found
        elif after[path][0] != stat.S_IFDIR:
            assert found[path][:3] == after[path][:3]
    assert {p for p, o in found.items() if o[0] != stat.S_IFDIR} <= set(want)


def test_random_edits(place):
    rng = random.Random(SEED)
    seen = 0
    for number in range(ROUNDS):
        try:
            old, new, before, after, name = one_round(rng, place, number)
            want = check_set(before, after, name)
            if want:
                seen += len(want)
                check_rsync(old, new, before, after, want)
                check_export(place, before, after, want, name)
                check_patch(old, after, name)
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, round {number}: {error}") from error
        for path in (old, new, place / f"out-{name}"):
            lib.remove(path)
    assert seen > ROUNDS
