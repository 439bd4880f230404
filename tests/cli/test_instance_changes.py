"""`carrel instances diff`, `take` and `drop`: what boxes changed in the user's configuration.

The verdict is taken on the disk.
"""

import fcntl
import hashlib
import json
import os
import stat
import time

import lib
import pytest
from instance_files import (
    CLIENT,
    killed_before_each,
    listed,
    locked,
    opaque,
    output,
    whiteout,
)


# ---- diff -------------------------------------------------------------------------------


def changes(*args, **how):
    return {row["name"]: row for row in json.loads(output("instances", "diff", "--json", *args))}


def test_diff(kept, one, project):
    layer = kept.layer(one)
    for name, text in [("same", "s\n"), ("changed", "1\n2\n"), ("deleted", "d\n"),
                       ("below/kept", "k"), ("hidden/old", "o"), ("hidden/both", "b"),
                       ("dir/x", ""), ("linked", "l")]:  # fmt: skip
        lib.make_file(kept.claude / name, text)
    lib.make_file(layer / "same", "s\n")
    lib.make_file(layer / "changed", "1\n3\n")
    whiteout(layer / "deleted")
    whiteout(layer / "never-there")
    lib.make_file(layer / "below" / "new", "n")
    lib.make_file(layer / "hidden" / "both", "b")
    opaque(layer / "hidden")
    whiteout(layer / "dir")
    (layer / "linked").symlink_to("/etc/passwd")
    lib.make_dir(layer / "empty")  # clients make such for later: no change of anything
    lib.make_file(layer / "binary", b"\0\1\2")
    lib.make_file(layer / "big", b"x\n" * 800000)
    found = {name.removeprefix("~/.claude/"): row for name, row in changes().items()}
    assert {name: row["change"] for name, row in found.items()} == {
        "changed": "changed", "deleted": "deleted", "below/new": "added",
        "hidden/old": "deleted", "dir": "deleted", "linked": "changed",
        "binary": "added", "big": "added",
    }  # fmt: skip
    assert found["changed"]["diff"] == "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    assert found["linked"]["boxes"] == {"type": "link", "link": "/etc/passwd"}
    assert found["binary"]["diff"] is None and found["big"]["diff"] is None
    text = output("instances", "diff")
    assert "    -2\n    +3\n" in text and "root:" not in text
    assert "a file of 1.5M" in text and "a link to /etc/passwd" in text


def test_diff_of_nothing(kept, one):
    done = lib.carrel("instances", "diff")
    assert (done.returncode, done.stdout) == (0, b"") and b"no box has changed" in done.stderr
    assert output("instances", "diff", "--json") == "[]\n"


def test_diff_sees_all_layers_as_one(kept, project):
    one = kept.instance(project, layers=("000001", "000002", "000003"))
    lib.make_file(kept.claude / "user", "u")
    for number, name, text in [(1, "a", "old"), (2, "a", "new"), (1, "b", "b"), (1, "user", "x"),
                               (2, "d/x", "x"), (1, "d/y", "y")]:  # fmt: skip
        lib.make_file(kept.layer(one, f"00000{number}") / name, text)
    whiteout(kept.layer(one, "000003") / "b")
    whiteout(kept.layer(one, "000003") / "user")
    opaque(kept.layer(one, "000002") / "d")
    found = changes()
    assert {name: row["change"] for name, row in found.items()} == {
        "~/.claude/a": "added", "~/.claude/d/x": "added", "~/.claude/user": "deleted",
    }  # fmt: skip
    assert "+new" in found["~/.claude/a"]["diff"]


def test_diff_of_sessions(kept, one):
    """What a dead one left is seen without what was put there; a running one's is not."""
    dead, runs = kept.session(one, "000001"), kept.session(one, "000002")
    unborn = kept.session(one, "000003")
    (unborn / "begun").unlink()
    lib.make_file(unborn / "upper" / "of-no-box", "x")
    lib.make_file(dead / "upper" / "put.json", "{}")
    kept.begin(dead, f"{hashlib.sha256(b'{}').hexdigest()} put.json")
    lib.make_file(dead / "upper" / "left", "x")
    lib.make_file(runs / "upper" / "running", "x")
    with locked(runs):
        assert set(changes()) == {"~/.claude/left"}
        assert b"1 running" in lib.carrel("instances", "diff").stderr
    assert set(changes()) == {"~/.claude/left", "~/.claude/running"}
    lib.make_file(dead / "upper" / "put.json", '{"mcpServers": {}}')
    assert "~/.claude/put.json" in changes()


def test_diff_is_of_the_configuration(kept, one):
    """Not what a client writes down of its sessions, nor a file that every box gets anew."""
    lib.make_dir(one / CLIENT / "hiding")
    whiteout(one / CLIENT / "hiding" / "plans")
    for name in ("plans/one.md", ".claude.json", "skills/plans/SKILL.md"):
        lib.make_file(kept.layer(one) / name, "x\n")
    assert set(changes()) == {"~/.claude/skills/plans/SKILL.md"}
    assert "plans/one.md" not in output("instances", "diff")
    lib.failed_clearly(lib.carrel("instances", "take", ".claude.json"), "anew", "~/.claude.json")
    assert taking("plans/one.md", answers="y")[0] == 0
    assert (kept.claude / "plans" / "one.md").read_text() == "x\n"
    lib.remove(kept.layer(one) / "skills")
    assert b"no box has changed" in lib.carrel("instances", "diff").stderr


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_diff_leaves_out_what_clients_note_about_themselves(kept, project, client):
    """Unless somebody asks for it by name; and only at the top."""
    noted = {"codex": ".sandbox_migration", "gemini": "state.json"}[client]
    layer = kept.instance(project, client=f"{client}/{client}") / client / client / "layers/000001"
    for name in ("installation_id", noted, f"below/{noted}"):
        lib.make_file(layer / name, "x\n")
    assert set(changes()) == {f"~/.{client}/below/{noted}"}
    output("instances", "drop", "-y", f"~/.{client}/{noted}")
    assert not (layer / noted).exists() and (layer / "installation_id").exists()


LOUD = ["settings.json", "settings.local.json", "hooks/x.sh", "CLAUDE.md", "skills/a/CLAUDE.md",
        "plugins/a/b.json", "commands/x.md", "agents/x.md", "skills/x/SKILL.md", ".mcp.json",
        "output-styles/x.md", "workflows/x.js", "local/node_modules/x.js", "loop.md", ".env",
        "agent-memory/a/MEMORY.md", "policies/x.toml", "trustedFolders.json", "system.md",
        "trusted_hooks.json", "package.json", "node_modules/x/y.js", "mode/x.md", "modes/x.md",
        "skill/x/SKILL.md"]  # fmt: skip


def test_diff_is_loud(kept, one):
    layer = kept.layer(one)
    for name in LOUD:
        lib.make_file(layer / name, "x\n")
    lib.make_file(layer / "program", "x\n", mode=0o755)
    (layer / "link").symlink_to("/x")
    lib.make_file(layer / "todos" / "x.json", "x\n")
    found = changes()
    for name in [*LOUD, "program", "link"]:
        assert found[f"~/.claude/{name}"]["danger"], name
    assert found["~/.claude/todos/x.json"]["danger"] is None
    text = output("instances", "diff")
    assert "! added    ~/.claude/settings.json\n  ! settings: hooks" in text
    assert "  added    ~/.claude/todos/x.json\n    @@" in text


def test_diff_cannot_drive_the_terminal(kept, one):
    lib.make_file(kept.layer(one) / "a\x1b[2J\nb", "\x1b[31mred\n\u202e\n")
    lib.make_file(kept.layer(one) / "esc", "x\n")
    done = lib.carrel("instances", "diff")
    assert b"\x1b" not in done.stdout and b"\\x1b[2J\\nb" in done.stdout


def test_diff_shows_no_login(kept, one):
    lib.make_file(kept.claude / ".credentials.json", '{"token": "the-users-secret"}')
    lib.make_file(kept.layer(one) / ".credentials.json", '{"token": "the-boxes-secret"}')
    for args in ([], ["--json"]):
        text = output("instances", "diff", *args)
        assert ".credentials.json" in text and "secret" not in text


def test_diff_changes_nothing(kept, one, project):
    lib.make_file(kept.layer(one) / "x", "x")
    lib.make_dir(kept.layer(one) / "closed", mode=0)
    kept.session(one)
    before = lib.snapshot(lib.current.home)
    assert set(changes()) == {"~/.claude/x", "~/.claude/closed"}
    assert lib.snapshot(lib.current.home) == before
    lib.failed_clearly(lib.carrel("instances", "diff", cwd=kept.place), "nothing is kept for")


# ---- take -------------------------------------------------------------------------------


def taking(*args, answers, **how):
    child = lib.terminal([lib.program(), "instances", "take", *args], **how)
    for answer in answers:
        child.expect_exact("? [y/N] ")
        child.sendline(answer)
    code = lib.finish(child)
    return code, child.before.decode()


def test_take(kept, one):
    layer = kept.layer(one)
    lib.make_file(kept.claude / "settings.json", "old\n", mode=0o600)
    lib.make_file(layer / "settings.json", "new\n", mode=0o6755)
    lib.make_file(layer / "hooks" / "x.sh", "hook\n", mode=0o777)
    lib.make_file(kept.claude / "deleted", "d")
    whiteout(layer / "deleted")
    lib.make_file(layer / "other", "o")
    child = lib.terminal([lib.program(), "instances", "take", "settings.json"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert "-old" in shown and "+new" in shown and "! settings: hooks" in shown
    assert (kept.claude / "settings.json").read_text() == "old\n"
    child.sendline("y")
    assert lib.finish(child) == 0
    assert (kept.claude / "settings.json").read_text() == "new\n"
    assert stat.S_IMODE((kept.claude / "settings.json").stat().st_mode) == 0o755
    assert not (layer / "settings.json").exists()
    code, _ = taking("~/.claude/hooks/x.sh", kept.claude / "deleted", answers="yy")
    assert code == 0
    assert (kept.claude / "hooks" / "x.sh").read_text() == "hook\n"
    assert stat.S_IMODE((kept.claude / "hooks" / "x.sh").stat().st_mode) == 0o755
    assert not (kept.claude / "deleted").exists() and not os.path.lexists(layer / "deleted")
    assert set(changes()) == {"~/.claude/other"}
    assert sorted(os.listdir(kept.claude)) == ["hooks", "settings.json"]


@pytest.mark.parametrize("answer", ["n", "", "yep"])
def test_only_yes_takes(kept, one, answer):
    lib.make_file(kept.layer(one) / "a", "x")
    lib.make_file(kept.layer(one) / "b", "x")
    before = lib.snapshot(kept.home)
    code, said = taking("a", "b", answers=[answer, answer])
    assert code == 125 and "not taken over" in said
    assert lib.snapshot(kept.home) == before
    code, _ = taking("a", "b", answers=[answer, "y"])
    assert code == 125 and os.listdir(kept.claude) == ["b"]


def test_a_short_name_is_a_file_not_an_id(kept, one):
    """Whatever the instance's id begins with."""
    for name in one.name[:3], "other":
        lib.make_file(kept.layer(one) / name, "x")
    assert taking(one.name[:3], "other", answers=["y", "y"])[0] == 0
    assert sorted(os.listdir(kept.claude)) == sorted([one.name[:3], "other"])
    lib.make_file(kept.layer(one) / "more", "x")
    assert taking(one.name[:4], "more", answers=["y"], cwd=kept.place)[0] == 0


def test_take_needs_a_person(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    lib.failed_clearly(lib.carrel("instances", "take", "a"), "no terminal")
    lib.failed_clearly(lib.carrel("instances", "take", "-y", "a"), "takes no --yes")
    lib.failed_clearly(lib.carrel("instances", "take", "nope"), "nope", "no box has changed")
    lib.failed_clearly(lib.carrel("instances", "take", "../../x"), "no box has changed")
    lib.failed_clearly(lib.carrel("instances", "take"), "which file")
    assert os.listdir(kept.claude) == []


def test_take_is_refused_while_a_box_runs(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    with locked(kept.session(one)):
        lib.failed_clearly(lib.carrel("instances", "take", "a"), "runs")
    child = lib.terminal([lib.program(), "instances", "take", "a"])
    child.expect_exact("? [y/N] ")
    with locked(one / CLIENT / "busy", how=fcntl.LOCK_SH):  # it begins while we think
        child.sendline("y")
        child.expect_exact("runs, and its layers are in use")
        assert lib.finish(child) == 125
    assert os.listdir(kept.claude) == [] and (kept.layer(one) / "a").exists()
    assert taking("a", answers="y")[0] == 0


def links(kept, how):
    if how == "the file":
        lib.make_file(kept.place / "bait", "mine")
        (kept.claude / "dir").mkdir()
        lib.give(kept.claude / "dir")
        (kept.claude / "dir" / "a").symlink_to(kept.place / "bait")
    else:
        lib.make_file(kept.place / "baits" / "a", "mine")
        (kept.claude / "dir").symlink_to(kept.place / "baits")


@pytest.mark.parametrize("how", ["the file", "the way"])
def test_take_goes_through_no_link(kept, one, how):
    links(kept, how)
    lib.make_file(kept.layer(one) / "dir" / "a", "box\n")
    before = lib.snapshot(kept.place)
    for word, answers in (("dir/a", "y"), ("dir", "")):
        code, said = taking(word, answers=answers if how == "the way" else "")
        assert code == 125 and ("link" in said or "plain" in said), said
    after = lib.snapshot(kept.place)
    assert {n: e for n, e in before.items() if b"bait" in n} == {
        n: e for n, e in after.items() if b"bait" in n
    }
    assert os.path.islink(kept.claude / "dir") or os.path.islink(kept.claude / "dir" / "a")


@pytest.mark.parametrize("side", ["box", "user"])
def test_take_takes_what_was_shown(kept, one, side):
    lib.make_file(kept.claude / "a", "old\n")
    lib.make_file(kept.layer(one) / "a", "new\n")
    child = lib.terminal([lib.program(), "instances", "take", "a"])
    child.expect_exact("? [y/N] ")
    lib.make_file((kept.layer(one) if side == "box" else kept.claude) / "a", "evil\n")
    child.sendline("y")
    child.expect_exact("has changed in the meantime")
    assert lib.finish(child) == 125
    assert (kept.claude / "a").read_text() == ("old\n" if side == "box" else "evil\n")


def put_strange(path, what):
    lib.make_file(path.parent / "plain", "x")
    if what == "a link":
        path.symlink_to("/etc/passwd")
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "too big":
        os.truncate(lib.make_file(path), (64 << 20) + 1)
    if not path.is_symlink():
        lib.give(path)
    else:
        os.chown(path, lib.UID, lib.GID, follow_symlinks=False)


@pytest.mark.parametrize("what", ["a link", "a pipe", "too big"])
def test_take_of_what_is_no_plain_file_is_refused(kept, one, what):
    """By its name, and in a directory that is asked for: of that nothing is taken."""
    put_strange(kept.layer(one) / "dir" / "deep" / "strange", what)
    before = lib.snapshot(kept.home)
    for name in ("dir/deep/strange", "dir/deep", "dir"):
        code, said = taking(name, answers="")
        assert code == 125 and ("only plain files" in said or "too large" in said), said
        assert "strange" in said
    assert lib.snapshot(kept.home) == before
    assert taking("dir/deep/plain", answers="y")[0] == 0, "the control"


UNSEEN = "a directory that cannot be looked into: what is in it is not listed"


@pytest.mark.parametrize("mode", [0, 0o400, 0o100, 0o300])
def test_a_directory_that_cannot_be_looked_into(kept, one, mode):
    """It is said, not passed over; and nothing of it, or around it, is taken."""
    lib.make_file(kept.claude / "both/closed/file", "old")
    for top in ("new", "both"):
        lib.make_file(kept.layer(one) / top / "closed/file", "x")
        lib.make_file(kept.layer(one) / top / "beside", "x")
        (kept.layer(one) / top / "closed").chmod(mode)
    found, before = changes(), lib.snapshot(kept.claude)
    assert {name: row["change"] for name, row in found.items()} == {
        "~/.claude/new/closed": "added", "~/.claude/new/beside": "added",
        "~/.claude/both/closed": "changed", "~/.claude/both/beside": "added",
    }  # fmt: skip
    for top in ("new", "both"):
        row = found[f"~/.claude/{top}/closed"]
        assert row["boxes"] == {"type": "directory", "unseen": True}
        assert row["danger"] == "it may hold anything"
        for name in (top, f"{top}/closed", f"{top}/closed/file"):
            code, said = taking(name, answers="")
            assert code == 125, said
            assert f"{top}/closed: a directory that cannot be looked into" in said
    text = output("instances", "diff")
    assert f"({UNSEEN})" in text and f"(a directory → {UNSEEN})" in text
    assert lib.snapshot(kept.claude) == before
    assert taking("new/beside", answers="y")[0] == 0, "the control"
    for top in ("new", "both"):
        (kept.layer(one) / top / "closed").chmod(0o700)
    assert {name for name in changes() if "closed" in name} == {
        "~/.claude/new/closed/file", "~/.claude/both/closed/file"
    }  # fmt: skip
    assert taking("new", answers="y")[0] == 0
    assert (kept.claude / "new/closed/file").read_text() == "x"


def test_a_directory_that_is_closed_further_down(kept, project):
    """The newest layer's can be read; what an older one has is not seen, and that is said."""
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "dir/old", "x")
    lib.make_file(kept.layer(one, "000002") / "dir/new", "x")
    assert set(changes()) == {"~/.claude/dir/old", "~/.claude/dir/new"}, "the control"
    (kept.layer(one, "000001") / "dir").chmod(0)
    assert set(changes()) == {"~/.claude/dir", "~/.claude/dir/new"}
    assert changes()["~/.claude/dir"]["boxes"]["unseen"] is True


def test_take_of_a_directory(kept, one):
    """A skill that an agent made: all is shown, loudly, then asked once."""
    layer = kept.layer(one)
    lib.make_file(layer / "skills/new/SKILL.md", "a skill\n")
    lib.make_file(layer / "skills/new/scripts/run.sh", "#!/bin/sh\n", mode=0o6777)
    lib.make_dir(layer / "skills/new/empty", mode=0o777)
    lib.make_file(layer / "skills/newer/SKILL.md", "another\n")
    lib.make_file(kept.claude / "skills/new/gone", "x")
    lib.make_file(kept.claude / "skills/new/kept", "k")
    whiteout(layer / "skills/new/gone")
    child = lib.terminal([lib.program(), "instances", "take", "~/.claude/skills/new/"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert shown.count("a skill that sessions of yours would use") == 4
    assert "+a skill" in shown and "#!/bin/sh" in shown and "deleted" in shown
    assert "Make these 4 changes in" in shown and "newer" not in shown
    child.sendline("y")
    assert lib.finish(child) == 0
    new = kept.claude / "skills/new"
    assert sorted(os.listdir(new)) == ["SKILL.md", "empty", "kept", "scripts"]
    assert stat.S_IMODE((new / "scripts/run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((new / "scripts").stat().st_mode) == 0o755
    assert stat.S_IMODE((new / "empty").stat().st_mode) == 0o755
    assert set(changes()) == {"~/.claude/skills/newer/SKILL.md"}
    assert not (kept.claude / "skills/newer").exists()


def test_take_of_a_directory_is_refused_whole(kept, one):
    """Something in it is another while the person reads: nothing of it is taken."""
    for name in ("a", "b", "c"):
        lib.make_file(kept.layer(one) / "dir" / name, name)
    child = lib.terminal([lib.program(), "instances", "take", "dir"])
    child.expect_exact("? [y/N] ")
    lib.make_file(kept.layer(one) / "dir" / "c", "evil")
    child.sendline("y")
    child.expect_exact("dir/c has changed in the meantime")
    assert lib.finish(child) == 125
    assert os.listdir(kept.claude) == []
    assert taking("dir", answers="n")[0] == 125 and os.listdir(kept.claude) == []
    assert taking("dir", answers="y")[0] == 0
    assert sorted(os.listdir(kept.claude / "dir")) == ["a", "b", "c"]


def test_take_where_a_directory_is_in_the_way(kept, one):
    """The user has a file, the box a directory of that name; and the other way round."""
    lib.make_file(kept.claude / "one", "file")
    lib.make_file(kept.layer(one) / "one" / "x", "x")
    lib.make_file(kept.claude / "two" / "x", "x")
    lib.make_file(kept.layer(one) / "two", "file")
    before = lib.snapshot(kept.claude)
    for name in ("one", "two"):
        code, said = taking(name, answers="")
        assert code == 125 and "only plain files" in said, said
    assert lib.snapshot(kept.claude) == before


def test_take_does_not_wait_for_a_lock(kept, one):
    """A box that sees the directory, even read-only, could hold it for ever."""
    lib.make_file(kept.layer(one) / "new", "x")
    directory = os.open(kept.claude, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    code, said = taking("new", answers="y")
    assert code == 125 and "locked its directory" in said, said
    assert os.listdir(kept.claude) == []
    os.close(directory)
    assert taking("new", answers="y")[0] == 0 and os.listdir(kept.claude) == ["new"]


def test_take_of_what_a_dead_box_left(kept, project):
    """It is frozen first, and older layers do not show again."""
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "a", "1")
    lib.make_file(kept.layer(one, "000002") / "a", "2")
    lib.make_file(kept.session(one) / "upper" / "a", "3")
    assert taking(one.name[:8], "a", answers="y", cwd=kept.place)[0] == 0
    assert (kept.claude / "a").read_text() == "3"
    assert changes(one.name) == {}
    left = os.listdir(one / CLIENT / "sessions")
    assert [name for name in left if not name.startswith("rest-")] == []


def test_take_out_of_a_directory_that_hides(kept, one):
    """The next box must still see it."""
    lib.make_file(kept.claude / "d" / "old", "x")
    lib.make_file(kept.layer(one) / "d" / "new", "n")
    opaque(kept.layer(one) / "d")
    assert taking("d/new", answers="y")[0] == 0
    assert (kept.claude / "d" / "new").read_text() == "n"
    assert (kept.layer(one) / "d" / "new").exists()
    assert set(changes()) == {"~/.claude/d/old"}


# ---- drop -------------------------------------------------------------------------------


def later(path, seconds=10):
    """As if it had been changed later than all else: two changes can fall into one tick."""
    now = time.time() + seconds
    os.utime(path, (now, now))
    return path


def test_what_the_user_changed_since_is_marked(kept, one):
    layer = kept.layer(one)
    for name in ("settings.json", "older", "alike", ".credentials.json"):
        lib.make_file(kept.claude / name, "of the user\n")
        lib.make_file(layer / name, "of the box\n")
    lib.make_file(layer / "alike", "of the user\n")
    lib.make_file(layer / "added", "of the box\n")
    assert not any(row["outdated"] for row in changes().values())
    later(layer / "older", 20)
    for name in ("settings.json", "alike", ".credentials.json"):
        later(kept.claude / name)
    assert [name for name, row in changes().items() if row["outdated"]] == [
        "~/.claude/settings.json"
    ]
    text = output("instances", "diff")
    assert text.count("changed by you since") == 1
    assert "    -of the user\n    +of the box\n" in text


@pytest.mark.parametrize("how", ["mtime", "ctime"])
def test_both_times_tell_what_was_changed_since(kept, one, how):
    """A file that was put there with its old mtime has a new ctime."""
    lib.make_file(kept.layer(one) / "a", "of the box\n")
    path = lib.make_file(kept.claude / "a", "of the user\n")
    os.utime(path, (0, 0))
    os.utime(kept.layer(one) / "a", (0, 1))
    if how == "mtime":
        assert changes()["~/.claude/a"]["outdated"] is False  # its ctime is the later one
        later(path)
    else:
        layered = os.stat(kept.layer(one) / "a").st_ctime_ns
        lib.wait_for(lambda: touched(path) > layered, "a later ctime")
    assert changes()["~/.claude/a"]["outdated"] is True


def touched(path):
    path.chmod(0o644)
    return os.stat(path).st_ctime_ns


def dropping(*args, answers, **how):
    child = lib.terminal([lib.program(), "instances", "drop", *args], **how)
    for answer in answers:
        child.expect_exact("? [y/N] ")
        child.sendline(answer)
    code = lib.finish(child)
    return code, child.before.decode()


def test_drop(kept, one):
    layer = kept.layer(one)
    lib.make_file(kept.claude / "settings.json", "of the user\n")
    lib.make_file(layer / "settings.json", "of the box\n")
    lib.make_file(kept.claude / "deleted", "d")
    whiteout(layer / "deleted")
    lib.make_file(layer / "skills" / "new" / "SKILL.md", "x")
    (layer / "skills" / "link").symlink_to(kept.claude)
    lib.make_dir(layer / "skills" / "closed", mode=0)
    lib.make_file(layer / "other", "o")
    users = lib.snapshot(kept.claude)
    child = lib.terminal([lib.program(), "instances", "drop", "settings.json"])
    child.expect_exact("? [y/N] ")
    shown = child.before.decode()
    assert "-of the user" in shown and "+of the box" in shown
    child.sendline("y")
    assert lib.finish(child) == 0
    assert not (layer / "settings.json").exists()
    assert "yours" in output("instances", "drop", "-y", "~/.claude/deleted", "skills")
    assert os.listdir(layer) == ["other"] and set(changes()) == {"~/.claude/other"}
    assert lib.snapshot(kept.claude) == users


@pytest.mark.parametrize("answer", ["n", "", "yep"])
def test_only_yes_drops(kept, one, answer):
    lib.make_file(kept.layer(one) / "a", "x")
    before = lib.snapshot(kept.home)
    code, said = dropping("a", answers=[answer])
    assert code == 125 and "not dropped" in said
    assert lib.snapshot(kept.home) == before
    lib.failed_clearly(lib.carrel("instances", "drop", "a"), "no terminal", "-y")
    assert lib.snapshot(kept.home) == before
    assert dropping("a", answers="y")[0] == 0 and changes() == {}


def test_drop_is_refused_while_a_box_runs(kept, one):
    lib.make_file(kept.layer(one) / "a", "x")
    with locked(kept.session(one)):
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", "a"), "runs")
    with locked(one / CLIENT / "busy", how=fcntl.LOCK_SH):  # one that just begins
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", "a"), "runs")
    assert (kept.layer(one) / "a").exists()
    output("instances", "drop", "-y", "a")
    assert not (kept.layer(one) / "a").exists()


def test_drop_goes_through_no_link(kept, one):
    bait = lib.make_file(kept.place / "baits" / "a", "mine")
    (kept.layer(one) / "dir").symlink_to(bait.parent)
    for name in ("dir/a", "../../../baits/a", "nope", "."):
        lib.failed_clearly(lib.carrel("instances", "drop", "-y", name), "no box has changed")
    output("instances", "drop", "-y", "dir")
    assert bait.read_text() == "mine" and not os.path.lexists(kept.layer(one) / "dir")


def test_drop_drops_what_was_shown(kept, one):
    lib.make_file(kept.layer(one) / "a", "shown\n")
    child = lib.terminal([lib.program(), "instances", "drop", "a"])
    child.expect_exact("? [y/N] ")
    lib.make_file(kept.layer(one) / "a", "newer\n")
    child.sendline("y")
    child.expect_exact("has changed in the meantime")
    assert lib.finish(child) == 125
    assert (kept.layer(one) / "a").read_text() == "newer\n"


def test_drop_out_of_a_directory_that_hides(kept, one):
    """Without the box's file nobody's would be seen: the whole directory goes, or nothing."""
    lib.make_file(kept.claude / "d" / "a", "of the user")
    lib.make_file(kept.layer(one) / "d" / "a", "of the box")
    opaque(kept.layer(one) / "d")
    lib.failed_clearly(lib.carrel("instances", "drop", "-y", "d/a"), "replaced", "Drop d instead")
    assert (kept.layer(one) / "d" / "a").exists()
    output("instances", "drop", "-y", "d")
    assert not (kept.layer(one) / "d").exists() and changes() == {}


def test_drop_of_what_a_dead_box_left(kept, project):
    one = kept.instance(project, layers=("000001", "000002"))
    lib.make_file(kept.layer(one, "000001") / "a", "1")
    lib.make_file(kept.layer(one, "000002") / "a", "2")
    lib.make_file(kept.session(one) / "upper" / "a", "3")
    output("instances", "drop", "-y", one.name[:8], "a", cwd=kept.place)
    assert changes(one.name) == {}


# ---- killed -----------------------------------------------------------------------------


def test_take_killed_before_each_change(kept, one):
    """The user's file is the old one or the new one, and nothing else is left beside it."""
    def prepare():
        lib.make_file(kept.claude / "hooks" / "x", "old\n", mode=0o755)
        lib.make_file(kept.layer(one) / "hooks" / "x", "new\n", mode=0o755)

    prepare()
    for _ in killed_before_each("instances", "take", "hooks", answers="y"):
        assert (kept.claude / "hooks" / "x").read_text() in ("old\n", "new\n")
        if changes():
            assert taking("hooks", answers="y")[0] == 0
        assert (kept.claude / "hooks" / "x").read_text() == "new\n"
        assert os.listdir(kept.claude / "hooks") == ["x"] and changes() == {}
        prepare()
