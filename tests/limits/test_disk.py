"""What a box may write to its copy of the workspace: held by looks of the supervisor.

The verdict is taken on the host: what the layer takes on disk, and what is left of the changes.
"""

import hashlib
import json
import re
import subprocess

import lib
import pytest

MIB = 1 << 20
SLOW_FILL = "for i in $(seq 1000); do head -c 1M /dev/urandom >f$i; sleep 0.05; done"


def boxes():
    return lib.current.home / ".local/state/carrel/boxes"


def layer_of(name):
    return boxes() / name / "layers/0/upper"


def bytes_of(path):
    done = subprocess.run(["du", "-s", "-B1", str(path)], stdout=subprocess.PIPE, check=False)
    return int(done.stdout.split()[0])


def overlay(script, limit, name="box", **how):
    return lib.box("sh", "-c", script, opts=["--overlay", "--name", name, f"--limit=disk={limit}"], **how)


def reached(limit):
    return f"carrel: the disk limit of {limit} was reached\n".encode()


def test_a_filler_is_ended_and_its_changes_are_kept(project):
    """Many files, so that no limit of a single file helps; the box below its limit goes on."""
    other = lib.start_box("sh", "-c", "echo x >mine; echo ready; exec cat",
                          opts=["--overlay", "--name", "other", "--limit=disk=64M"])  # fmt: skip
    lib.read_until(other.stdout, b"ready")
    done = overlay(f"echo kept >first; {SLOW_FILL}; echo all", "8M")
    assert done.returncode == 143 and b"all" not in done.stdout
    assert reached("8 MiB") in done.stderr
    assert 8 * MIB <= bytes_of(layer_of("box")) < 400 * MIB
    lib.succeeded(lib.carrel("apply", "box", "first"))
    assert (project / "first").read_text() == "kept\n" and not (project / "f1").exists()
    row = next(b for b in json.loads(lib.succeeded(lib.carrel("ps", "-a", "--json"))) if b["name"] == "box")
    assert row["code"] == 143
    other.stdin.write(b"still-here\n")
    lib.read_until(other.stdout, b"still-here")
    _, err = other.communicate(timeout=lib.TIMEOUT)
    assert b"disk limit" not in err


def test_one_file_stops_at_the_limit(project):
    """At once, whenever the supervisor looks. It is said also of a box that has ended already."""
    done = overlay("dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; echo dd $?", "8M")
    assert reached("8 MiB") in done.stderr and b"dd 0" not in done.stdout
    assert (layer_of("box") / "big").stat().st_size == 8 * MIB
    done = overlay("dd if=/dev/zero of=big bs=1M count=6 2>/dev/null", "8M", "fits")
    lib.succeeded(done)
    assert b"disk limit" not in done.stderr


HIDE = """
import os
os.mkdir("closed")
with open("closed/a", "wb") as f:
    f.write(os.urandom(3 << 20))
os.chmod("closed", 0)
at = os.open(".", os.O_RDONLY)
for i in range(%d):
    os.mkdir("d" * 100, dir_fd=at)
    below = os.open("d" * 100, os.O_RDONLY, dir_fd=at)
    os.close(at)
    at = below
with os.fdopen(os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=at), "wb") as f:
    f.write(os.urandom(6 << 20))
"""


@pytest.mark.parametrize("depth", (300, 10))
def test_what_is_hard_to_find_is_counted(project, depth):
    """In a directory without rights, and below more levels than a path or open files allow."""
    limit = 9 * MIB + depth * 4096
    for size, over in ((limit, True), (limit + 4 * MIB, False)):
        done = lib.box("python3", "-c", HIDE % depth, opts=["--overlay", f"--limit=disk={size}"])
        assert (b"the disk limit of" in done.stderr) is over, done.stderr
        assert (lib.current.home / "closed").exists() is False


def test_hard_links_and_holes_take_no_room(project):
    links = "head -c 2M /dev/urandom >a; for i in $(seq 50); do ln a a$i; done; truncate -s 7M hole"
    done = overlay(links, "8M")
    lib.succeeded(done)
    assert b"disk limit" not in done.stderr and len(list(layer_of("box").iterdir())) == 52


def test_a_detached_box_and_its_record(project):
    lib.succeeded(lib.carrel("run", "-d", "-y", "--overlay", "--name", "gone", "--limit=disk=4M",
                             "--", "sh", "-c", SLOW_FILL))  # fmt: skip
    assert lib.carrel("wait", "gone").returncode == 143
    assert json.loads((boxes() / "gone/result.json").read_text())["limits"] == ["disk"]
    assert b"reached its limit of disk" in lib.succeeded(lib.carrel("ps", "-a"))
    assert b"f1" in lib.succeeded(lib.carrel("diff", "gone", "--name-only"))


def test_the_race_goes_on_without_the_one_that_is_over(project):
    agent = {"harness": "command", "workspace": {"mode": "overlay"}, "limits": {"disk": "4M"},
             "command": ["bash", "-c", f'case $HOSTNAME in *-1) {SLOW_FILL};; *) echo x >small;; esac']}  # fmt: skip
    text = json.dumps({"agents": {"a": agent}})
    lib.make_file(project / "carrel.json", text)
    trust = hashlib.sha256(text.encode()).hexdigest()
    done = lib.carrel("race", "-y", "-n", "2", "--json", "a", env={"CARREL_TRUST": trust})
    assert sorted(box["code"] for box in json.loads(done.stdout)["boxes"]) == [0, 143], done


def test_without_a_copy_it_is_an_error(project):
    done = lib.box("touch", "started", opts=["--limit=disk=1G"])
    lib.failed_clearly(done, "--limit disk cannot be held here: the box works on the workspace itself",
                       "--overlay", "disk=VALUE?")  # fmt: skip
    assert not (project / "started").exists()
    done = lib.box("touch", "started", opts=["--limit=disk=1G?"])
    lib.succeeded(done)
    assert (project / "started").exists() and b"disk is not limited" in done.stderr


def test_the_plan_says_who_holds_it(project):
    opts = ["--overlay", "--limit=disk=2G"]
    limits = json.loads(lib.succeeded(lib.carrel("plan", "--json", *opts, "--", "true")))["limits"]
    assert limits["disk"] == 2 << 30 and limits["held"]["disk"] == "supervisor"
    text = lib.succeeded(lib.carrel("plan", *opts, "--", "true")).decode()
    assert re.search(r"disk 2 GiB \(supervisor\)", text)
