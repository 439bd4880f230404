"""Directories are renamed in an overlay workspace as they are outside.

Each script runs on both sides, on trees that are alike, and afterwards each side describes its
tree: names, types, modes, times, attributes, contents, and which names are one file. The
control is a file system without help: an overlay that is mounted by hand answers EXDEV.

One thing differs: a file with one name in the directory and another outside becomes two, as in
every overlay when one of its names is changed.
"""

import os

import lib
import pytest

DESCRIBE = r"""
import hashlib, os, stat
seen = {}
for where, dirs, files in sorted(os.walk(b".")):
    for name in sorted(dirs + files):
        path = os.path.join(where, name)
        if path.startswith((b"./.git/", b"./.carrel")):
            continue
        st = os.lstat(path)
        out = [path, oct(st.st_mode)]
        out.append(st.st_mtime_ns if st.st_mtime < 1.5e9 else "new")
        if stat.S_ISREG(st.st_mode):
            data = open(path, "rb").read() if st.st_mode & 0o400 else b"?"
            out += [st.st_size, hashlib.sha256(data).hexdigest()]
            if st.st_nlink > 1:
                out.append(seen.setdefault(st.st_ino, path))
        elif stat.S_ISLNK(st.st_mode):
            out.append(os.readlink(path))
        if not stat.S_ISLNK(st.st_mode):
            out += [(k, os.getxattr(path, k)) for k in os.listxattr(path)]
        print(out)
"""

PRELUDE = r"""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def rename2(a, b, flags):
    done = libc.renameat2(-100, a.encode(), -100, b.encode(), flags)
    print(a, b, flags, errno.errorcode[ctypes.get_errno()] if done else "ok")
def rename(a, b, **how):
    try:
        os.rename(a, b, **how)
        print(a, b, "ok")
    except OSError as e:
        print(a, b, errno.errorcode[e.errno])
"""
NOREPLACE, EXCHANGE = 1, 2


def fill(top):
    """A tree with all that a directory can have in it."""
    lib.make_file(top / "full/sub/deep/leaf", "leaf\n")
    lib.make_file(top / "full/run", "#!/bin/sh\n", mode=0o755)
    lib.make_file(top / "full/shut", "shut\n", mode=0o000)
    lib.make_file(top / b"full/odd \xff\n name".decode("utf-8", "surrogateescape"), "odd")
    os.link(top / "full/run", top / "full/sub/same")
    os.symlink("../nowhere", top / "full/link")
    os.mkfifo(top / "full/fifo")
    with open(top / "full/sparse", "wb") as file:
        file.truncate(1 << 20)
    os.setxattr(top / "full/run", "user.note", b"of a file")
    os.setxattr(top / "full/sub", "user.note", b"of a directory")
    lib.make_file(top / "full/kept/only", "ro\n")
    lib.make_file(top / "other/one", "1\n")
    lib.make_file(top / "taken/two", "2\n")
    lib.make_dir(top / "empty")
    lib.make_file(top / "file", "plain\n")
    for where, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(where, name)
            lib.give(path)
            os.utime(path, ns=(10**18, 10**18 + 7), follow_symlinks=False)
    os.chmod(top / "full/kept", 0o555)
    os.chmod(top / "full", 0o2750)
    return top


@pytest.fixture
def sides(place):
    return fill(lib.make_dir(place / "out")), fill(lib.make_dir(place / "in"))


def same(sides, argv):
    """Run it outside and in a box with an overlay; the box's side of what both printed."""
    out, inside = sides
    before = lib.snapshot(inside)
    script = ["sh", "-c", '"$@"; echo "exit $?"; exec python3 -c "$0"', DESCRIBE, *argv]
    outside = lib.execute(script, cwd=out)
    box = lib.box(*script, opts=("--overlay",), cwd=inside)
    assert box.returncode == 0, box.stderr
    assert box.stdout.decode().splitlines() == outside.stdout.decode().splitlines()
    assert lib.snapshot(inside) == before, "nothing of it is on the host"
    return box.stdout.decode()


def python(text):
    return [lib.PYTHON, "-c", PRELUDE + text]


def test_without_help_the_kernel_refuses(place):
    """The control: what the kernel answers where nobody listens."""
    fill(lib.make_dir(place / "in"))
    script = """
    mkdir upper work mnt
    mount -t overlay none -o lowerdir=in,upperdir=upper,workdir=work,userxattr mnt
    cd mnt && python3 -c 'import os; os.rename("full", "moved")'
    """
    done = lib.execute(["unshare", "-Urm", "sh", "-c", script], cwd=place)
    assert b"Invalid cross-device link" in done.stderr


RENAMES = {
    "to a new name": "rename('full', 'moved')",
    "there and back": "rename('full', 'moved'); rename('moved', 'full')",
    "into a directory": "rename('full', 'other/full')",
    "out of a directory": "rename('full/sub/deep', 'deep')",
    "a read-only one's parent": "rename('full', 'moved'); rename('moved/sub/deep', 'deep')",
    "with slashes": "rename('full//', './other/../moved/')",
    "absolute": "os.rename(os.getcwd() + '/full', os.getcwd() + '/moved')",
    "by descriptors": "a = os.open('full/sub', os.O_PATH); b = os.open('other', os.O_PATH);"
    "rename('deep', 'new', src_dir_fd=a, dst_dir_fd=b)",
    "onto an empty one": "rename('full', 'empty')",
    "onto one that is full": "rename('full', 'taken')",
    "onto a file": "rename('full', 'file')",
    "into itself": "rename('full', 'full/sub/x')",
    "onto itself": "rename('full', 'full')",
    "into what is not there": "rename('full', 'nowhere/x')",
    "what is not there": "rename('nowhere', 'x')",
    "a link to a directory": "os.symlink('full', 'l'); rename('l', 'k'); rename('l/', 'm')",
    "after a change": "open('full/new', 'w').write('n'); os.utime('full/new', ns=(5, 5));"
    "os.unlink('full/run'); os.utime('full', ns=(6, 6)); rename('full', 'moved')",
    "one of its own": "os.makedirs('made/in'); rename('made', 'again'); rename('again', 'empty')",
    "one in place of a deleted one": "import shutil; shutil.rmtree('other'); os.mkdir('other');"
    "rename('other', 'moved'); rename('full', 'other')",
    "unless it is there": f"rename2('full', 'taken', {NOREPLACE});"
    f"rename2('full', 'moved', {NOREPLACE})",
    "exchanged": f"rename2('full', 'taken', {EXCHANGE})",
    "exchanged with a file": f"rename2('full', 'file', {EXCHANGE})",
    "a file exchanged with it": f"rename2('file', 'full', {EXCHANGE})",
    "exchanged with one of its own": f"os.mkdir('made'); rename2('made', 'full', {EXCHANGE})",
    "with flags that are none": "rename2('full', 'moved', 64); rename2('full', 'moved', 3)",
    "files": "rename('file', 'elif'); rename('other/one', 'taken/two');"
    f"rename2('elif', 'taken/two', {EXCHANGE})",
}


@pytest.mark.parametrize("name", RENAMES)
def test_a_rename_as_outside(sides, name):
    same(sides, python(RENAMES[name]))


def test_it_was_really_renamed(sides):
    printed = same(sides, python("rename('full', 'moved')"))
    assert "full moved ok" in printed and "./moved/sub/deep/leaf" in printed
    assert "./full'" not in printed and ".carrel-move" not in printed


def test_node(sides):
    same(sides, ["node", "-e", "require('fs').renameSync('full', 'moved')"])


def test_mv_and_a_shell(sides):
    same(sides, ["sh", "-ec", "mv full moved; mv moved/sub other; mv other empty; mv -n taken t"])


def test_what_npm_does(sides):
    """Packages are moved aside, new ones unpacked and moved into their places."""
    script = """
    mkdir -p node_modules/.new-1 node_modules/@a/.new-2; echo 1 >node_modules/.new-1/f
    mv full node_modules/.old-1; mv node_modules/.new-1 full; mv node_modules/@a/.new-2 node_modules/b
    chmod -R u+w node_modules/.old-1; rm -rf node_modules/.old-1
    """
    same(sides, ["sh", "-ec", script])


def test_git_moves_a_directory(project):
    for name in range(30):
        lib.make_file(project / f"src/sub{name % 3}/f{name}", f"{name}\n")
    lib.git("add", "-A", cwd=project)
    lib.git("commit", "-q", "-m", "more", cwd=project)
    lib.git("checkout", "-q", "-b", "topic", cwd=project)
    lib.git("mv", "src", "elsewhere", cwd=project)
    lib.git("commit", "-q", "-m", "moved", cwd=project)
    lib.git("checkout", "-q", "main", cwd=project)
    script = """
    git mv src lib; git commit -qm lib; git status --porcelain; git ls-files
    git checkout -q topic; git status --porcelain; ls -R elsewhere
    git checkout -q main; git mv lib/sub1 lib/sub9; git status --porcelain; git diff --stat HEAD
    """
    box = lib.box("sh", "-euc", script, opts=("--overlay",), cwd=project)
    copy = project.parent / "copy"
    lib.execute(["cp", "-a", project, copy])
    out = lib.execute(["sh", "-euc", script], cwd=copy)
    assert out.returncode == 0 and b"lib/sub9" in out.stdout
    assert (box.returncode, box.stdout) == (0, out.stdout), box.stderr
    assert lib.git("status", "--porcelain", cwd=project) == ""


def test_what_others_write_meanwhile_is_kept(project):
    """Files that come while the directory is renamed, and files that are open."""
    for name in range(300):
        lib.make_file(project / f"src/d{name % 7}/f{name}", f"{name}\n")
    script = r"""
import os, threading
log = open("src/d0/f0", "a")
go = threading.Event()
made = []
def write():
    for n in range(2000):
        try:
            open(f"src/d{n % 7}/new{n}", "w").close()
            made.append(n)
        except FileNotFoundError:
            if go.is_set():
                return
thread = threading.Thread(target=write)
thread.start()
os.rename("src", "lib")
go.set()
thread.join()
log.write("still open\n")
log.close()
names = {name for where, _, files in os.walk("lib") for name in files}
lost = [n for n in made if f"new{n}" not in names]
left = sum(len(files) for _, _, files in os.walk("src"))
print(len([n for n in names if n.startswith("f")]), len(lost) <= left)
print(open("lib/d0/f0").read())
"""
    box = lib.box(lib.PYTHON, "-c", script, opts=("--overlay",), cwd=project)
    assert box.stdout.decode() == "300 True\n0\nstill open\n\n", box.stderr


def test_many_at_once(project):
    """More callers than there are threads that serve them."""
    for name in range(200):
        lib.make_file(project / f"d{name % 20}/f{name}", f"{name}\n")
    script = 'for i in $(seq 0 19); do (mv d$i e$i && mv e$i/f$i g$i) & done; wait; ls -d e* g* | wc -l'
    box = lib.box("bash", "-c", script, opts=("--overlay",), cwd=project)
    assert box.stdout == b"40\n", box.stderr


LANDLOCK = r"""
class Attr(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64)]
libc.prctl(38, 1, 0, 0, 0)
ruleset = libc.syscall(444, ctypes.byref(Attr((1 << 4) | (1 << 5) | (1 << 7))), 8, 0)
assert ruleset >= 0 and libc.syscall(446, ruleset, 0) == 0
"""


def test_a_program_that_confined_itself_stays_confined(sides):
    """init may rename here, and the caller may not: the kernel judges the caller."""
    printed = same(sides, python(LANDLOCK + "rename('full', 'moved'); rename('file', 'elif')"))
    assert "full moved EACCES" in printed and "file elif EACCES" in printed


def test_a_mount_below_is_left_alone(project):
    """What cannot be moved stays whole, and so does all beside it."""
    lib.make_file(project / "src/.env", "SECRET=1\n")
    lib.make_file(project / "src/a/b", "b\n")
    script = "mv -T src lib 2>/dev/null; find src lib -type f | sort; ls -a | grep carrel-move"
    box = lib.box("sh", "-c", script, opts=("--overlay",), cwd=project)
    assert b"/a/b\n" in box.stdout and b"/main.c\n" in box.stdout
    assert b"carrel-move" not in box.stdout
