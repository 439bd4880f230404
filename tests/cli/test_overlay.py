"""Boxes that work on a copy of the workspace: what they see, what stays, what is kept."""

import hashlib
import json
import os
import stat
import subprocess

import lib
import pytest


def overlay(*cmd, opts=(), **how):
    return lib.box(*cmd, opts=("--overlay", *opts), **how)


def sh(script, opts=(), **how):
    return overlay("sh", "-ec", script, opts=opts, **how)


def records():
    return lib.current.home / ".local" / "state" / "carrel" / "boxes"


def diff(*args, name="carrel-project", **how):
    return lib.succeeded(lib.carrel("diff", name, *args, **how)).decode()


def changes(*args, name="carrel-project"):
    return json.loads(diff("--json", *args, name=name))


def listed(*args, name="carrel-project"):
    """{path: change} without directories."""
    found = changes(*args, name=name)["changes"]
    return {
        one["path"]: one["change"]
        for one in found
        if (one["after"] or one["before"])["type"] != "directory"
    }


# ---- the copy ---------------------------------------------------------------------------


def test_nothing_on_the_host_changes(project):
    before = lib.snapshot(project)
    done = sh(
        """
        pwd; echo more >>src/main.c; rm .gitignore; mkdir new; echo x >new/file
        chmod 755 src/main.c; ln -s main.c src/link; mkdir -p .vscode .claude
        echo '{}' >.vscode/tasks.json; echo '{}' >.claude/settings.json; cat src/main.c
        """
    )
    out = lib.succeeded(done).decode()
    assert out.startswith(f"{project}\n") and out.endswith("more\n")
    assert lib.snapshot(project) == before
    assert b"changed 1 file, added 4, deleted 1; nothing on the host has changed yet" in done.stderr
    assert b"see it with `carrel diff carrel-project`" in done.stderr


def test_direct_is_the_default(project):
    lib.succeeded(lib.box("sh", "-c", "echo x >made"))
    assert (project / "made").read_text() == "x\n"


def test_a_box_that_changes_nothing_keeps_nothing(project):
    done = sh("cat src/main.c >/dev/null; touch src/main.c; echo x >new; rm new")
    lib.succeeded(done)
    assert b"carrel-project changed nothing" in done.stderr
    assert not (records() / "carrel-project" / "layers").exists()
    lib.failed_clearly(lib.carrel("diff", "carrel-project"), "has no copy")


def test_what_the_agent_is_told(project, home, place):
    client = lib.make_file(place / "bin" / "claude", "#!/bin/sh\nexec cat\n", mode=0o755)
    lib.make_file(home / ".claude" / "settings.json", "{}\n")
    path = {"PATH": f"{client.parent}:/usr/bin:/bin"}
    for opts, there in ([["--overlay"], True], [[], False]):
        plan = json.loads(lib.succeeded(lib.carrel("plan", "--json", *opts, env=path)))
        (told,) = [p["text"] for p in plan["places"] if p["target"] == "/etc/carrel/SANDBOX.md"]
        assert ("You work on a copy of these." in told) == there and f"- `{project}`" in told
        assert ("the user sees it at once" in told) != there


def test_manifest(project):
    fixer = {
        "harness": "command",
        "command": ["sh", "-c", "echo x >made"],
        "workspace": {"mode": "overlay"},
    }
    text = json.dumps({"agents": {"fixer": fixer}})
    lib.make_file(project / "carrel.json", text)
    trust = {"CARREL_TRUST": hashlib.sha256(text.encode()).hexdigest()}
    done = lib.carrel("run", "-y", "fixer", env=trust)
    lib.succeeded(done)
    assert not (project / "made").exists()
    assert b"carrel-fixer added 1 file; nothing on the host" in done.stderr
    assert listed(name="carrel-fixer") == {"made": "added"}


def test_hidden_stays_hidden(project):
    script = "cat .env; cat x/.env 2>&1; mv .env y 2>&1 || true; ln .env z 2>&1 || true; cat y z"
    done = overlay("sh", "-c", script)
    assert b"from-the-env-file" not in done.stdout
    assert b"from-the-env-file" in lib.box("cat", ".env", opts=["--hide", "!**/.env"]).stdout
    lib.make_file(project / "deep" / "er" / ".env", "SECRET=deep\n")
    script = "cat deep/er/.env; cp -r deep copy; cat copy/er/.env; mv deep/er away; cat away/.env"
    done = overlay("sh", "-c", script)
    assert b"SECRET" not in done.stdout
    kept = subprocess.run(["grep", "-r", "SECRET", records()], capture_output=True, check=False)
    assert kept.stdout == b""


def test_protected_by_name_is_read_only(project):
    lib.make_file(project / "infra" / "main.tf", "x\n")
    done = sh(
        "! echo y >infra/main.tf; ! echo y >infra/new; ! mv infra x; ! rm -rf infra; echo ok",
        opts=["--protect", "infra"],
    )
    assert lib.succeeded(done) == b"ok\n"
    assert lib.succeeded(sh("echo y >infra/main.tf; echo ok")) == b"ok\n"
    assert (project / "infra" / "main.tf").read_text() == "x\n"


def test_what_programs_obey_is_marked(project):
    """It may be written in the copy: `carrel apply` will not take it over unasked."""
    lib.succeeded(sh("mkdir .vscode; echo 1 >.vscode/tasks.json; echo 1 >.mcp.json; echo 1 >x"))
    marked = {one["path"]: one["protected"] for one in changes()["changes"]}
    assert marked == {".vscode": True, ".vscode/tasks.json": True, ".mcp.json": True, "x": False}
    assert not (project / ".vscode").exists()


def test_no_stubs_while_it_runs(project):
    lib.use_clients()
    before = sorted(os.listdir(project))
    process = lib.start_box("sh", "-c", "echo up; read x", opts=["--overlay"])
    lib.read_until(process.stdout, b"up")
    assert sorted(os.listdir(project)) == before
    process.communicate(b"\n", timeout=lib.TIMEOUT)


@pytest.mark.skipif(not lib.ROOT, reason="needs root")
def test_a_mount_below_is_refused(project):
    target = lib.make_dir(project / "a b")
    command = f"mount -t tmpfs t '{target}' && exec " + " ".join(
        lib.as_user([lib.program(), "run", "-y", "--overlay", "--", "true"])
    )
    done = lib.execute(["unshare", "-m", "sh", "-c", command], user=False)
    lib.failed_clearly(done, "holds another mount", "a b")


# ---- git --------------------------------------------------------------------------------


def test_git_works_inside(project):
    lib.git("pack-refs", "--all", cwd=project)
    head = lib.git("rev-parse", "HEAD", cwd=project)
    done = sh(
        """
        git config branch.x.remote origin; git checkout -q -b feature; echo 1 >one; git add one
        git commit -qm two; git branch other; git tag t; echo 2 >>one; git stash -q; git stash pop -q
        git worktree add -q wt other; git -C wt commit -q --allow-empty -m three
        git gc -q; git fsck --strict --no-dangling; git log --oneline --all | wc -l; git status --short
        """
    )
    out = lib.succeeded(done).decode()
    assert out.startswith("3\n") and " M one" in out
    assert lib.git("rev-parse", "HEAD", cwd=project) == head
    assert lib.git("branch", "--list", cwd=project).strip() == "* main"
    assert lib.git("status", "--short", cwd=project) == ""
    assert lib.git("fsck", cwd=project) == ""
    found = changes()
    assert found["git"] > 5
    assert not any("/.git/" in f"/{one['path']}/" for one in found["changes"])
    assert ".git/refs/heads/feature" in listed("--git") or ".git/packed-refs" in listed("--git")


def test_submodules(place, project):
    lib.git("init", "-q", "-b", "main", str(place / "lib"), cwd=place)
    lib.make_file(place / "lib" / "f", "1\n")
    for words in (["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "1"]):
        lib.git(*words, cwd=place / "lib")
    lib.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(place / "lib"),
            "sub", cwd=project)
    lib.git("commit", "-qm", "sub", cwd=project)
    before = lib.snapshot(project)
    done = sh("""
        cd sub; git config user.name x; git config user.email x@y; echo 2 >>f; git commit -qam 2
        cd ..; git add sub; git commit -qm bump; git submodule status; git fsck
        """)
    lib.succeeded(done)
    assert lib.snapshot(project) == before
    assert listed() == {"sub/f": "changed"}


def test_linked_worktree(place, project):
    """The repository is outside of the workspace: it has a layer of its own."""
    lib.git("worktree", "add", "-q", str(place / "linked"), "-b", "side", cwd=project)
    before = lib.snapshot(project / ".git")
    lib.settle()
    done = sh("echo 1 >one; git add one; git commit -qm two; git log --oneline | wc -l",
              cwd=place / "linked")
    assert lib.succeeded(done) == b"2\n"
    assert lib.snapshot(project / ".git") == before
    assert listed(name="carrel-linked") == {"one": "added"}
    shown = listed("--git", name="carrel-linked")
    assert any(path.startswith(f"{project}/.git/") for path in shown)
    assert lib.git("log", "--oneline", "side", cwd=project).count("\n") == 1


# ---- diff -------------------------------------------------------------------------------


def test_diff_forms(project):
    lib.succeeded(
        sh("echo more >>src/main.c; chmod 755 src/main.c; rm .gitignore; printf 'a\\0b' >bin; mkdir e")
    )
    stat_lines = diff("--stat").splitlines()
    assert any(line.startswith(" D .gitignore") for line in stat_lines)
    assert any(" M src/main.c" in line and "mode 0644 → 0755" in line for line in stat_lines)
    assert any(" A bin" in line and "binary" in line for line in stat_lines)
    assert diff("--name-only").splitlines() == [".gitignore", "bin", "e/", "src/main.c"]
    text = diff()
    assert "+more" in text and "Binary files differ" in text and "new directory e" in text
    assert "\033" not in text and "\033[32m+more" in diff("--color", "always")
    assert diff("--name-only", "src") == "src/main.c\n"
    lib.failed_clearly(lib.carrel("diff", "nobody"), "no box named 'nobody'")
    lib.failed_clearly(lib.carrel("diff", "carrel-project", "--stat", "--json"), "exclude")


def test_stat_says_the_most_first(project):
    """Changed, added, deleted; of each the most lines first."""
    for name, lines in {"README.md": 9, "a.py": 9, "z.c": 30, "old.c": 3}.items():
        lib.make_file(project / name, "".join(f"{n}\n" for n in range(lines)))
    lib.settle()
    edits = "sed -i s/1/one/ z.c; sed -i s/3/three/ README.md; sed -i '/[34]/s/^/x/' a.py; rm old.c"
    lib.succeeded(sh(f"{edits}; mkdir docs; seq 2 >docs/b; seq 31 >docs/c"))
    got = diff("--stat").splitlines()
    assert [line.split()[:3] for line in got[:-1]] == [
        ["M", "z.c", "24"], ["M", "a.py", "4"], ["M", "README.md", "2"],
        ["A", "docs/c", "31"], ["A", "docs/b", "2"]]  # fmt: skip
    assert got[-1] == " D old.c" and got[2] == " M README.md    2 +-"


def test_escape_sequences_are_shown(project):
    lib.succeeded(
        overlay("python3", "-c", "open(b'a\\x1b[2J\\n\\xff','w').write('x\\x1b]0;t\\x07\\n')")
    )
    for args in ([], ["--stat"], ["--name-only"]):
        text = lib.carrel("diff", "carrel-project", *args).stdout
        assert b"\x1b" not in text and b"\x07" not in text and b"033[2J" in text
    assert os.fsencode(next(iter(listed()))) == b"a\x1b[2J\n\xff"


def test_patch_is_not_for_terminals(project):
    lib.succeeded(sh("echo x >x"))
    child = lib.terminal([lib.program(), "diff", "carrel-project", "--format", "patch"])
    child.expect("this is a terminal")
    assert lib.finish(child) == 125


def test_pager(project):
    lib.succeeded(sh("echo x >x"))
    child = lib.terminal([lib.program(), "diff", "carrel-project"],
                         env={"PAGER": "sed s/^/paged:/", "GIT_PAGER": None})
    child.expect("paged:")
    lib.finish(child)


def test_diff_while_it_runs(project):
    process = lib.start_box("sh", "-c", "echo 1 >one; echo up; read x", opts=["--overlay"])
    lib.read_until(process.stdout, b"up")
    assert listed() == {"one": "added"} and changes()["running"]
    lib.failed_clearly(lib.carrel("discard", "-y", "carrel-project"), "runs")
    process.communicate(b"\n", timeout=lib.TIMEOUT)
    assert not changes()["running"]


def test_the_host_changes_meanwhile(project):
    lib.make_file(project / "during", "1\n")
    lib.make_file(project / "after", "1\n")
    lib.settle()
    process = lib.start_box(
        "sh", "-c", "echo 2 >>during; echo 2 >>after; echo up; read x", opts=["--overlay"]
    )
    lib.read_until(process.stdout, b"up")
    lib.make_file(project / "during", "host\n")
    process.communicate(b"\n", timeout=lib.TIMEOUT)
    lib.settle()
    lib.make_file(project / "after", "host\n")
    found = {one["path"]: one for one in changes()["changes"]}
    assert found["during"]["base"] == "unsure"
    # A copy was kept at the end of the box, when nobody had changed it yet.
    assert found["after"]["base"] == "kept" and found["after"]["linesAdded"] == 1
    now = {one["path"]: one for one in changes("--now")["changes"]}
    assert now["after"]["base"] == "same" and now["after"]["linesRemoved"] == 1
    assert "changed on the host since" in diff("--stat")


def test_export(project, place):
    lib.succeeded(
        sh("""echo more >>src/main.c; rm .gitignore; mkdir -p n/e; echo 1 >n/f; ln -s /etc/passwd n/l
           chmod 750 n/f; mkfifo n/p; ln n/f n/h; truncate -s 1G n/sparse""")
    )
    target = place / "out"
    done = lib.carrel("diff", "carrel-project", "--export", str(target))
    lib.succeeded(done)
    files = target / "files"
    found = {str(p.relative_to(files)) for p in files.rglob("*")}
    assert found == {"src", "src/main.c", "n", "n/e", "n/f", "n/h", "n/l", "n/sparse"}
    assert (files / "n" / "f").read_text() == "1\n" and os.readlink(files / "n/l") == "/etc/passwd"
    assert stat.S_IMODE((files / "n" / "f").stat().st_mode) == 0o750
    assert (files / "n" / "sparse").stat().st_blocks < 100
    written = json.loads((target / "changes.json").read_text())
    gone = [one["path"] for one in written["changes"] if one["change"] == "deleted"]
    assert gone == [".gitignore"]
    assert b"1 left out" in done.stderr
    lib.failed_clearly(lib.carrel("diff", "carrel-project", "--export", str(target)), "not there")


# ---- the record -------------------------------------------------------------------------


def test_names_are_kept_while_changes_are(project):
    for name in ("carrel-project", "carrel-project-2"):
        assert f"{name} added 1 file".encode() in sh("echo 1 >one").stderr
    done = sh("true", opts=["--name", "carrel-project"])
    lib.failed_clearly(done, "holds changes that are neither applied nor discarded")
    lib.succeeded(lib.carrel("discard", "-y", "carrel-project"))
    assert b"carrel-project added 1 file" in sh("echo 1 >one").stderr
    assert listed(name="carrel-project-2") == {"one": "added"}


def test_ps_gc_discard_rm(project):
    sh("echo 1 >one; exit 3")
    listing = lib.succeeded(lib.carrel("ps", "-a")).decode()
    assert "carrel-project" in listing and "1 added" in listing and "not applied" in listing
    assert "ended 3" in listing
    assert "carrel-project" not in lib.succeeded(lib.carrel("ps")).decode()
    row = json.loads(lib.succeeded(lib.carrel("ps", "-a", "--json")))[0]
    assert (row["name"], row["running"], row["code"]) == ("carrel-project", False, 3)
    record = records() / "carrel-project"
    assert json.loads((record / "result.json").read_text())["added"] == 1
    assert json.loads((record / "plan.json").read_text())["name"] == "carrel-project"
    old = 100 * 86400
    for path in [record, *record.iterdir()]:
        os.utime(path, (path.stat().st_mtime - old,) * 2)
    done = lib.carrel("gc")
    assert b"1 box holds" in lib.succeeded(done) and record.exists()
    assert json.loads(lib.succeeded(lib.carrel("gc", "--json")))["heldBytes"] > 0
    lib.failed_clearly(lib.carrel("discard", "carrel-project"), "no terminal")
    lib.failed_clearly(lib.carrel("rm", "carrel-project"), "no terminal")
    assert listed() == {"one": "added"}
    lib.succeeded(lib.carrel("gc", "--unapplied"))
    assert not record.exists()
    sh("echo 1 >one")
    lib.succeeded(lib.carrel("rm", "-y", "carrel-project"))
    assert not record.exists()
    lib.failed_clearly(lib.carrel("rm", "-y", "carrel-project"), "no record")
    for _ in range(2):
        sh("echo 1 >one")
    names = ("carrel-project", "no-such", "carrel-project-2")
    for command in ("discard", "rm"):
        done = lib.carrel(command, "-y", *names)
        assert done.returncode == 125 and b"no-such" in done.stderr
    assert not list(records().iterdir())


def test_a_failed_start_leaves_no_layers(project):
    done = overlay("/no/such/program")
    assert done.returncode == 127
    assert not (records() / "carrel-project" / "layers").exists()


def test_killed_with_its_supervisor(project):
    process = lib.start_box("sh", "-c", "echo 1 >one; echo up; sleep 600", opts=["--overlay"])
    lib.read_until(process.stdout, b"up")
    process.kill()
    process.wait(timeout=lib.TIMEOUT)
    assert listed() == {"one": "added"}
    assert "not applied" in lib.succeeded(lib.carrel("ps", "-a")).decode()
    assert not (project / "one").exists()


def test_many_on_one_tree(project):
    before = lib.snapshot(project)
    boxes = [
        lib.start_box("sh", "-c", f"echo {n} >>src/main.c; echo up; read x", opts=["--overlay"])
        for n in range(50)
    ]
    for process in boxes:
        lib.read_until(process.stdout, b"up")
    for process in boxes:
        process.communicate(b"\n", timeout=lib.TIMEOUT)
        assert process.returncode == 0
    assert lib.snapshot(project) == before
    rows = json.loads(lib.succeeded(lib.carrel("ps", "-a", "--json")))
    assert len(rows) == 50
    ends = {diff("src", name=row["name"]).splitlines()[-1] for row in rows}
    assert ends == {f"+{n}" for n in range(50)}
