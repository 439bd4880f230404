"""Layers that a hostile box, or somebody worse, has left: what looks at them does no harm.

Each layer is made by hand in the record of a box that has ended, with things in it that no box
could make through its overlay. The verdict is on the host.
"""

import json
import os
import stat
import subprocess

import lib
import pytest

BOX = "carrel-project"


def layer():
    return lib.current.home / ".local/state/carrel/boxes" / BOX / "layers/0"


@pytest.fixture
def upper(project):
    lib.succeeded(lib.box("sh", "-c", "echo 1 >one", opts=["--overlay"]))
    return layer() / "upper"


def as_user(script, where):
    return lib.succeeded(lib.execute([lib.PYTHON, "-c", script], cwd=where))


def changes():
    return json.loads(lib.succeeded(lib.carrel("diff", BOX, "--json")))


def paths():
    return {one["path"]: one for one in changes()["changes"]}


def test_links_out_are_never_followed(upper, place):
    secret = lib.make_file(place / "secret", "the secret of the host\n")
    as_user(
        f"""
import os
os.symlink({str(place)!r}, 'way'); os.symlink({str(secret)!r}, 'file')
os.symlink({str(place)!r}, 'src')
""",
        upper,
    )
    for args in ([], ["--stat"], ["--json"], ["--format", "patch"], ["--now"]):
        assert b"the secret of the host" not in lib.succeeded(lib.carrel("diff", BOX, *args))
    out = place / "out"
    lib.succeeded(lib.carrel("diff", BOX, "--export", str(out)))
    assert os.readlink(out / "files" / "way") == str(place)
    lib.succeeded(lib.carrel("discard", "-y", BOX))
    assert secret.read_text() == "the secret of the host\n"
    assert not upper.exists()


def test_layer_replaced_by_a_link(upper, place):
    """A link where the layer should be is no layer, and what it leads to stays."""
    target = lib.make_dir(place / "precious")
    lib.make_file(target / "file", "x\n")
    layers = layer().parent
    as_user(f"import os; os.rename('layers', 'old'); os.symlink({str(target)!r}, 'layers')",
            layers.parent)
    assert lib.carrel("diff", BOX).returncode == 125
    lib.carrel("discard", "-y", BOX)
    lib.succeeded(lib.carrel("rm", "-y", BOX))
    assert (target / "file").read_text() == "x\n"
    assert not layers.parent.exists()


def test_crafted_marks(upper, project):
    as_user(
        """
import os, stat
os.mknod('src', stat.S_IFCHR, 0)  # a white-out
os.mkdir('d'); os.setxattr('d', 'user.overlay.redirect', b'/../../../etc')
os.mkdir('o'); os.setxattr('o', 'user.overlay.opaque', b'y')
open('m', 'w').close(); os.setxattr('m', 'user.overlay.metacopy', b'')
os.setxattr('m', 'user.overlay.redirect', b'/.env')
os.mknod('o/gone', stat.S_IFCHR, 0)  # a white-out of nothing
""",
        upper,
    )
    found = paths()
    assert found["src"]["change"] == found["src/main.c"]["change"] == "deleted"
    assert found["m"]["after"]["size"] == 0
    assert set(found) == {"src", "src/main.c", "d", "o", "m", "one"}
    assert (project / "src" / "main.c").exists()


def test_special_files_and_modes(upper, place):
    as_user(
        """
import os, socket
os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock')
open('suid', 'w').close(); os.chmod('suid', 0o6755)
open('closed', 'w').close(); os.chmod('closed', 0)
os.mkdir('locked'); open('locked/x', 'w').close(); os.chmod('locked', 0)
""",
        upper,
    )
    found = changes()
    by = {one["path"]: one for one in found["changes"]}
    assert by["fifo"]["after"]["type"] == by["sock"]["after"]["type"] == "special"
    assert by["suid"]["after"]["mode"] == "6755" and by["locked"]["unlisted"]
    assert found["partial"]
    out = place / "out"
    lib.execute([lib.program(), "diff", BOX, "--export", str(out), "suid", "fifo", "sock"])
    assert stat.S_IMODE((out / "files" / "suid").stat().st_mode) == 0o755
    assert sorted(os.listdir(out / "files")) == ["suid"]
    lib.succeeded(lib.carrel("rm", "-y", BOX))
    assert not upper.exists()


def test_depth_and_number(upper):
    as_user(
        """
import os
for i in range(20000): open(f'many-{i}', 'w').close()
here = os.open('.', os.O_RDONLY)
for _ in range(2000):
    os.mkdir('dddd', dir_fd=here)
    here = os.open('dddd', os.O_RDONLY, dir_fd=here)
""",
        upper,
    )
    found = changes()
    assert found["added"] == 20001 and found["partial"]
    lib.succeeded(lib.carrel("discard", "-y", BOX))
    assert not upper.exists()


def test_the_layer_is_out_of_reach(project):
    """The path of the upper directory shows in the mount table; the box cannot go there."""
    script = """
        up=$(sed -n 's/.*upperdir=\\([^,]*\\).*/\\1/p' /proc/self/mountinfo | head -1)
        echo "$up"; ls "$up" 2>&1; mkdir -p "$up" 2>&1; echo x >"$up/planted" 2>&1
        """
    done = lib.box("sh", "-c", script, opts=["--overlay"])
    where = done.stdout.decode().splitlines()[0]
    assert where.endswith("/layers/0/upper")
    assert b"changed nothing" in done.stderr
    kept = subprocess.run(["find", lib.current.home, "-name", "planted"], capture_output=True, check=True)
    assert kept.stdout == b""
