"""`carrel plan`: the plan says the truth. What is printed is what is executed."""

import json
import os
import re
import stat
from pathlib import Path

import jsonschema
import lib
import pytest

MOUNTS = {"bind", "proc", "pts", "pin", "protect", "config", "stub", "hide", "seal"}

ALL_OPTIONS = [
    ["-n"],
    ["--dry-run"],
    ["-y"],
    ["--yes"],
    ["--overlay"],
    ["--mount", "/usr:/mnt/usr"],
    ["--mount", "/usr/share:/mnt/share:ro"],
    ["--env", "GIVEN=x"],
    ["--env", "LANG"],
    ["--network", "none"],
    ["--network", "allow"],
    ["--network", "open"],
    ["--network", "host"],
    ["--allow", "example.org"],
    ["--allow", "@github", "--deny", "*.example.org", "--ask"],
    ["--network", "open", "--deny", "10.0.0.0/8"],
    ["--network", "open", "--port", "8080:80"],
    ["--network", "open", "--proxy"],
    ["--service", "5432"],
    ["--no-git-config"],
    ["--workspace", "src"],
    ["--protect", "src"],
    ["--protect", "absent"],
    ["--hide", "src/*.c"],
    ["--limit", "time=30m"],
    ["--limit", "pids=512"],
    ["--limit", "files=1024"],
    ["--limit", "scratch=2G"],
    ["--limit", "idle=10m"],
    ["--limit", "memory=64M?"],
    ["--limit", "swap=1M?"],
    ["--limit", "cpus=0.5?"],
    ["--limit", "io=50?"],
    ["--overlay", "--limit", "disk=2G"],
    ["--network", "open", "--limit", "connections=100"],
    ["--network", "open", "--limit", "traffic=5G"],
    ["--network", "open", "--limit", "rate=10M"],
    ["--name", "other"],
    ["--uid", "2002"],
    ["--engine", "native"],
    ["--record", "session.cast"],
    ["-d"],
    ["--detach", "--restart", "on-failure:3"],
    ["-d", "--foreground"],
    ["--nest"],
]

# Those that are for an agent, whose manifest is written by the test.
AGENT_OPTIONS = [
    ["-m", "other.json"],
    ["--manifest", "other.json"],
    ["-m", "other.json", "--headless"],
    ["-m", "other.json", "--events"],
    ["-m", "other.json", "--prompts"],
]

# Those that make no other box: defaults, and what is about the start only.
SAME_BOX = [
    ["-n"],
    ["--dry-run"],
    ["-y"],
    ["--yes"],
    ["--env", "LANG"],
    ["--network", "none"],
    ["--name", "other"],
    ["--engine", "native"],
    ["--record", "session.cast"],
    ["-d"],
    ["--detach", "--restart", "on-failure:3"],
    ["-d", "--foreground"],
]


def plan(*opts, cmd=("true",), **how):
    return json.loads(lib.succeeded(lib.carrel("plan", "--json", *opts, "--", *cmd, **how)))


@pytest.fixture(scope="module")
def schema(template):
    return json.loads(lib.succeeded(lib.carrel("schema", "plan", cwd="/")))


# ---- the document -----------------------------------------------------------------------


def test_schema_is_one(schema):
    assert schema["$schema"].endswith("/2020-12/schema")
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=" ".join)
def test_takes_every_option_of_run_and_fits_the_schema(project, schema, options):
    before = lib.snapshot(project)
    document = plan(*options)
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
    lib.succeeded(lib.carrel("run", "-n", *options, "--", "true"))
    assert lib.snapshot(project) == before


@pytest.mark.parametrize("options", AGENT_OPTIONS, ids=" ".join)
def test_takes_every_option_for_an_agent(project, schema, options):
    """From the file that was named, and to the letter what `run -n` says of it."""
    agent = {"harness": "claude", "prompt": "p", "network": "none", "description": "d"}
    lib.make_file(project / "other.json", json.dumps({"agents": {"x": agent}}))
    client = lib.make_file(project.parent / "bin/claude", "#!/bin/sh\n", mode=0o755)
    how = {"env": {"PATH": f"{client.parent}:/usr/bin:/bin"}}
    shown = lib.carrel("plan", "--json", *options, "x", **how)
    document = json.loads(lib.succeeded(shown))
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
    same = lib.carrel("run", "-n", "--json", *options, "x", **how)
    assert lib.succeeded(same) == shown.stdout


def test_no_option_and_no_limit_of_run_is_left_out():
    """As its help has them, so that one that is added is tried here."""
    text = lib.succeeded(lib.carrel("run", "--help")).decode().partition("Options:")[2]
    rows = re.findall(r"^ +(?:(-\w), )?(--[a-z-]+)", text, re.M)
    known = {word for row in rows for word in row if word} - {"-h", "--help"}
    known.remove("--over")  # needs a box that has ended: tests/cli/test_race.py
    tried = {word for options in ALL_OPTIONS + AGENT_OPTIONS for word in options}
    assert known == {word for word in tried if word.startswith("-")} | {"--json"}
    limits = set(re.findall(r"\b([a-z]+)=", text.partition("--limit")[2].partition("--name")[0]))
    assert limits == {word.partition("=")[0] for word in tried if "=" in word} - {"GIVEN"}
    assert len(known) > 20 and len(limits) > 4


def test_schema_is_strict(project, schema):
    """An unknown key, a missing one and a wrong type are seen, at the top and in the lists."""

    def broken(change):
        document = plan("--env", "X=1")
        change(document)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema, jsonschema.Draft202012Validator)

    for key in plan():
        broken(lambda d, key=key: d.pop(key))
        broken(lambda d, key=key: d.update({key: ["x", {"unknown": 1}]}))
    broken(lambda d: d.update(unknown=1))
    broken(lambda d: d["places"][0].update(unknown=1))
    broken(lambda d: d["places"][0].update(kind="unknown"))
    broken(lambda d: d["env"][0].update(value="x"))


def test_names_that_are_not_text_survive(place, schema):
    path = lib.make_dir(os.path.join(os.fsencode(place), b"\xff\xfe\nnew line\x1b"))
    document = plan(cwd=path, cmd=["echo", b"\xc3\x28"])
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
    assert os.fsencode(document["workspace"]) == path
    assert os.fsencode(document["argv"][1]) == b"\xc3\x28"


def test_person_sees_names_but_no_control_characters(place):
    path = lib.make_dir(os.path.join(os.fsencode(place), b"evil\x1b]0;x\x07\n"))
    text = lib.succeeded(lib.carrel("plan", "--", "echo", "\x1b[2J", cwd=path))
    assert b"evil" in text and b"\x1b" not in text and b"\x07" not in text


def test_shell_is_a_plan_too(project):
    document = json.loads(lib.succeeded(lib.carrel("shell", "-n", "--json")))
    assert document["places"] == plan()["places"]


# ---- the hash ---------------------------------------------------------------------------


def test_hash_is_stable(project):
    first, second = plan("--env", "X=1"), plan("--env", "X=1")
    assert first == second
    assert re.fullmatch("[0-9a-f]{64}", first["hash"])
    text = lib.succeeded(lib.carrel("plan", "--env", "X=1", "--", "true")).decode()
    assert first["hash"] in text


@pytest.mark.parametrize(
    "options",
    [options for options in ALL_OPTIONS if options not in SAME_BOX],
    ids=" ".join,
)
def test_hash_changes_with_what_the_box_is(project, options):
    lib.make_file(lib.current.home / ".gitconfig", "[user]\n\tname = A Tester\n")
    assert plan(*options)["hash"] != plan()["hash"]


def test_hash_changes_with_the_command(project):
    assert plan(cmd=["true"])["hash"] != plan(cmd=["true", ""])["hash"]


@pytest.mark.parametrize(
    "options", [options for options in SAME_BOX if options[0] != "--env"], ids=" ".join
)
def test_hash_is_of_the_box_alone(project, options):
    """The name, and how it was asked for, make no other box."""
    assert plan(*options)["hash"] == plan()["hash"]


def test_hash_does_not_depend_on_secret_values(project):
    """A hash over a value would let it be guessed."""
    assert plan("--env", "X=1")["hash"] == plan("--env", "X=2")["hash"]


# ---- what is printed is what is executed ------------------------------------------------

# Runs in the box and tells what it finds there.
LOOK = r"""
import json, os, resource, socket, sys
asked = json.load(sys.stdin)
status = dict(l.rstrip("\n").split(":", 1) for l in open("/proc/self/status"))
def look(path):
    path = os.fsencode(path)
    try:
        st = os.lstat(path)
    except OSError as e:
        return {"error": e.errno}
    found = {"dev": st.st_dev, "ino": st.st_ino, "mode": st.st_mode, "uid": st.st_uid}
    if os.path.islink(path):
        found["link"] = os.fsdecode(os.readlink(path))
    elif os.path.isfile(path):
        try:
            found["text"] = open(path, errors="surrogateescape").read(100000)
        except OSError as e:
            found["unreadable"] = e.errno
    return found
def walk(top, mounts):
    # All names that lie on the root of the box itself, down to what is mounted there.
    for name in os.listdir(top):
        path = os.path.join(top, name)
        yield path
        if path not in mounts and os.path.isdir(path) and not os.path.islink(path):
            yield from walk(path, mounts)
points = {l.split()[4].replace("\\040", " ") for l in open("/proc/self/mountinfo")}
scratch = os.statvfs("/tmp")
print(json.dumps({
    "mountinfo": open("/proc/self/mountinfo", errors="surrogateescape").read(),
    "places": {p: look(p) for p in asked},
    "names": sorted(walk("/", points)),
    "env": [e.split("=")[0] for e in open("/proc/self/environ").read().split("\0") if e],
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "caps": {k: v.strip() for k, v in status.items() if k.startswith("Cap")},
    "nnp": int(status["NoNewPrivs"]), "seccomp": int(status["Seccomp"]),
    "hostname": socket.gethostname(), "cwd": os.getcwd(), "argv": sys.orig_argv,
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "pids": resource.getrlimit(resource.RLIMIT_NPROC),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "processors": sorted(os.sched_getaffinity(0)),
    "scratch": [scratch.f_blocks * scratch.f_frsize, scratch.f_files],
    "namespaces": {n: os.readlink("/proc/self/ns/" + n) for n in os.listdir("/proc/self/ns")},
}))
"""

BOXES = {
    "plain": [],
    "everything": [
        "--mount", "{place}/data:/mnt/ro", "--mount", "{place}/data:/mnt/rw:rw",
        "--mount", "{place}/data/file:/etc/a file.conf",
        "--mount", "{place}/data:{project}/src",
        "--protect", "keep", "--protect", "absent", "--protect", "a/b/file",
        "--protect", "a/b/absent", "--hide", "keys", "--hide", "*.pem",
        "--env", "GIVEN=x", "--env", "COPIED", "--name", "seen",
        "--limit", "files=333", "--limit", "scratch=64000001", "--limit", "time=10m",
    ],
    "host network": ["--network", "host"],
    "nest": ["--nest"],
    "another user": ["--uid", "2002"],
    "parent": ["--mount", "{place}:/parent", "--mount", "{place}:/again:rw"],
}  # fmt: skip


@pytest.fixture
def furnished(project, place):
    """A project with something for every kind of rule."""
    for name in ("data/file", "project/keep", "project/a/b/file", "project/keys/k",
                 "project/deep/x.pem", "project/.vscode/tasks.json",
                 "project/with space/.env"):  # fmt: skip
        lib.make_file(place / name, "of the host\n")
    os.symlink("keep", project / "opencode.json")
    # A box may have the whole home to write to, but not the place where carrel's state comes to be.
    for name in (".local", ".local/state", ".local/state/carrel"):
        lib.make_dir(lib.current.home / name)
    lib.give(project / "opencode.json")
    return project


def look(options, user):
    """The plan's document, and what such a box looks like from within."""
    command = [lib.PYTHON, "-c", LOOK]
    how = {"env": {"COPIED": "c", "TERM": "xterm"}, "user": user}
    document = plan(*options, cmd=command, **how)
    asked = json.dumps([place["target"] for place in document["places"]]).encode()
    done = lib.box(*command, opts=options, input=asked, **how)
    return document, json.loads(lib.succeeded(done))


def mounts_of(text):
    """Mount point → options, from mountinfo; no two mounts lie at one point."""
    found = {}
    for line in text.splitlines():
        fields = line.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
        assert point not in found, line
        found[point] = fields[5].split(",")
    return found


def check_mounts(document, seen):
    """Every place that is a mount is one, with the right mode, and there is no other."""
    mounts = mounts_of(seen["mountinfo"])
    assert "nosuid" in mounts.pop("/")
    planned = {
        place["target"]: place["mode"]
        for place in document["places"]
        if place["kind"] in MOUNTS
        and not (place.get("optional") and "error" in seen["places"][place["target"]])
    }
    assert set(mounts) == set(planned)
    for target, mode in planned.items():
        assert mode in mounts[target], (target, mode, mounts[target])


def check_names(document, seen):
    """On the root itself lie the places and the ways to them, and nothing beside."""
    targets = {place["target"] for place in document["places"]}
    ways = {str(way) for target in targets for way in Path(target).parents}
    assert {"/etc/passwd", "/usr", "/dev/null"} <= set(seen["names"])
    assert set(seen["names"]) <= targets | ways
    assert not {"/etc/shadow", "/root", "/sys", "/boot", "/mnt/data"} & set(seen["names"])


def check_place(place, found):
    """One place is what the plan says."""
    kind = place["kind"]
    if place.get("optional") and "error" in found:
        return
    assert "error" not in found, place
    if kind in ("link", "config"):
        assert found["link"] == place["text"], place
    elif kind == "file" and "text" in place:
        assert found["text"] == place["text"], place
    elif kind == "copy":
        assert found["text"] == Path(place["source"]).read_text(), place
    elif kind in ("bind", "pin", "protect"):
        host = os.lstat(os.fsencode(place["source"]))
        assert (found["dev"], found["ino"]) == (host.st_dev, host.st_ino), place
    elif kind == "stub":
        nothing = "text" in place or found.get("text", "") in ("", "{}\n")
        assert nothing and found.get("text", "") == place.get("text", found.get("text", "")), place
    elif kind == "hide":
        assert "unreadable" in found or not found.get("text"), place
    if place["type"] == "dir":
        assert stat.S_ISDIR(found["mode"]), place


def check_identity(document, seen):
    user = document["user"]
    assert seen["ids"] == [[user["uid"]] * 3, [user["gid"]] * 3, seen["ids"][2]]
    assert set(seen["ids"][2]) <= {user["gid"], 65534}
    assert document["layers"]["capabilities"] == []
    assert len(seen["caps"]) == 5
    assert all(int(value, 16) == 0 for value in seen["caps"].values()), seen["caps"]
    assert document["layers"]["no_new_privs"] is True and seen["nnp"] == 1
    assert seen["seccomp"] == 2, "a filter is in force"


def check_namespaces(document, seen):
    """Those listed are the box's own, all others are the host's."""
    names = {"mount": "mnt"}
    own = {names.get(name, name) for name in document["namespaces"]}
    for name in ("user", "mnt", "pid", "ipc", "uts", "cgroup", "net", "time"):
        same = seen["namespaces"][name] == os.readlink(f"/proc/self/ns/{name}")
        assert same == (name not in own), name


def check_limits(document, seen):
    limits = document["limits"]
    if limits["files"]:
        assert seen["files"][0] == limits["files"]
    if limits["pids"]:
        assert seen["pids"] == [limits["pids"]] * 2
    assert seen["scratch"] == [limits["scratch"], limits["scratch_inodes"]]
    assert seen["processors"] == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
@pytest.mark.parametrize("options", BOXES)
def test_what_is_printed_is_what_is_executed(furnished, place, options, user):
    if not user and not lib.ROOT:
        pytest.skip("needs root")
    if not user and options == "nest":
        done = lib.carrel("plan", "--nest", "--", "true", user=False)
        lib.failed_clearly(done, "--nest")
        return
    words = [word.format(place=place, project=furnished) for word in BOXES[options]]
    document, seen = look(words, user)

    check_mounts(document, seen)
    check_names(document, seen)
    for entry in document["places"]:
        check_place(entry, seen["places"][entry["target"]])
    assert sorted(seen["env"]) == sorted(entry["name"] for entry in document["env"])
    check_identity(document, seen)
    check_namespaces(document, seen)
    check_limits(document, seen)
    assert seen["argv"] == document["argv"]
    assert seen["cwd"] == document["workdir"]
    assert seen["hostname"] == document["name"]


def test_provenance_of_the_environment(project):
    document = plan("--env", "GIVEN=x", "--env", "COPIED", env={"COPIED": "c", "TERM": "xterm"})
    origin = {entry["name"]: entry["from"] for entry in document["env"]}
    assert origin["TERM"] == origin["LANG"] == "host"
    assert origin["HOME"] == origin["PATH"] == origin["CARREL_BOX"] == "set"
    assert origin["GIVEN"] == origin["COPIED"] == "asked"


@pytest.mark.parametrize(
    "opts, said",
    [
        (["--network", "allow"], "allow: nothing is allowed"),
        (["--network", "allow", "--ask"], "allow: you are asked about every host"),
        (["--allow", "a.example"], "allow: these hosts and nothing else"),
        (["--allow", "a.example", "--ask"], "allow: these hosts; you are asked about others"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_may_be_reached_in_words(project, opts, said):
    shown = lib.succeeded(lib.carrel("plan", *opts, "--", "true")).decode()
    assert re.search(f"^network +{said}$", shown, re.M)
    assert shown.count("asked about") == said.count("asked about")


@pytest.mark.parametrize("n, ending", [(1, ""), (2, "s")])
def test_limits_in_words(project, n, ending):
    opts = [f"--limit={key}={n}" for key in ("pids", "files", "connections", "traffic", "rate")]
    shown = lib.carrel("plan", "--network", "open", *opts, "--", "true").stdout.decode()
    words = [f"{n} process{ending and 'es'} \\([a-z]+\\)", f"{n} open file{ending}", ".*"]
    words += [f"{n} connection{ending}", f"{n} byte{ending} of traffic", f"{n} byte{ending} a second\n"]
    assert re.search(", ".join(words).replace(", .*", "(?:, memory.*)?"), shown)


def test_where_nobody_could_answer_nothing_is_asked(project):
    opts = ["--allow", "a.example", "--ask"]
    assert plan(*opts)["egress"]["ask"] is True
    nowhere = plan(*opts, env={"XDG_RUNTIME_DIR": None})
    assert nowhere["egress"]["ask"] is False
    assert any("hosts in no list are refused" in notice for notice in nowhere["notices"])


def test_a_second_way_in_is_no_way_around(furnished, place):
    """Protected and hidden hold through every mount that shows the same files."""
    before = lib.snapshot(furnished)
    opts = [word.format(place=place) for word in BOXES["parent"]]
    script = """
        for p in /parent /again; do
            cat $p/project/.env "$p/project/with space/.env"
            for f in .git/hooks/x .git/config .vscode/tasks.json .claude/settings.json; do
                echo x >>$p/project/$f
            done
            mv $p/project/.git $p/project/moved
        done
    """
    done = lib.box("sh", "-c", script, opts=opts)
    assert b"SECRET" not in done.stdout and b"of the host" not in done.stdout
    assert lib.snapshot(furnished) == before
    lib.succeeded(lib.box("sh", "-c", "echo x >/again/project/a/b/file", opts=opts))
    assert (furnished / "a" / "b" / "file").read_text() == "x\n"
