"""`carrel run`: files that a box cannot change, and files that it cannot read."""

import os

import lib
import pytest

# ---- protected --------------------------------------------------------------------------


def change(path):
    """Everything that would change a file or put one there, tried one after the other."""
    return (
        f"echo x >>{path}; rm -rf {path}; mkdir -p $(dirname {path}); echo x >{path};"
        f" mv {path} {path}.moved; ln -sf /etc/passwd {path};"
        f" mkdir -p {path} && echo x >{path}/in"
    )


PROTECTED = [".git/hooks/pre-commit", ".git/config", ".claude/settings.json",
             ".claude/settings.local.json", ".claude/agents/a.md", ".claude/commands/c.md",
             ".claude/skills/s/SKILL.md", ".codex/config.toml", ".gemini/settings.json",
             "opencode.json", "opencode.jsonc", ".cursor/hooks.json",
             ".cursor/mcp.json", ".vscode/tasks.json", ".idea/workspace.xml"]  # fmt: skip

# Programs outside ask before they obey one that is new.
GATED = [".mcp.json", ".envrc", "carrel.json", ".devcontainer/devcontainer.json",
         ".opencode/plugin/p.ts", ".github/hooks/h.json", ".zed/settings.json", "mise.toml"]  # fmt: skip


# Below directories that may have any name: protected where they exist.
PROTECTED_IF_PRESENT = [".git/modules/sub/config", ".git/modules/sub/hooks/post-checkout",
                        ".git/modules/lib/deep/config", ".git/modules/lib/deep/hooks/x",
                        ".git/modules/.dot/config",
                        ".git/worktrees/w/commondir", ".git/worktrees/w/gitdir",
                        ".git/worktrees/w/config.worktree"]  # fmt: skip


@pytest.mark.parametrize("present", [True, False])
def test_protected_by_default(project, present):
    """What host tools execute or obey can neither be changed nor be made."""
    lib.use_clients()
    names = PROTECTED + (PROTECTED_IF_PRESENT + GATED if present else [])
    for name in names if present else []:
        if not (project / name).exists():
            lib.make_file(project / name, "of the host\n")
    for name in ("sub", "lib/deep", ".dot") if present else []:
        lib.make_file(project / ".git" / "modules" / name / "HEAD", "ref: refs/heads/main\n")
    before = lib.snapshot(project)
    for name in names:
        lib.box("sh", "-c", change(name))
        assert lib.snapshot(project) == before, name


def test_submodule_is_protected_or_reported_over_two_runs(project):
    """The first run makes it look like no repository, the second changes what git obeys."""
    module = project / ".git" / "modules" / "sub"
    lib.make_file(module / "HEAD", "ref: refs/heads/main\n")
    lib.make_file(module / "config", "of the host\n")
    lib.box("sh", "-c", "mv .git/modules/sub/HEAD head")
    script = "cd .git/modules/sub && echo evil >config; mv ../../../head HEAD"
    done = lib.box("sh", "-c", script)
    same = (module / "config").read_text() == "of the host\n"
    assert same or b".git/modules/sub/config" in done.stderr


def test_unprotected_is_changed_by_the_same_attempts(project):
    """The control of every test here: what is not protected does change."""
    lib.box("sh", "-c", change("free/file"))
    assert (project / "free").exists()
    lib.make_file(project / "plain", "of the host\n")
    before = lib.state(project, "plain")
    lib.box("sh", "-c", change("plain"))
    assert lib.state(project, "plain") != before


@pytest.mark.parametrize(
    "options, protected",
    [
        (["infra/main.tf"], ["infra/main.tf"]),
        (["infra"], ["infra/main.tf", "infra/new", "infra/deep/er.tf", "infra"]),
        (["infra/"], ["infra/main.tf", "infra/new"]),
        (["*.tf"], ["infra/main.tf", "top.tf", "infra/deep/er.tf"]),
        (["infra/**"], ["infra/main.tf", "infra/deep/er.tf"]),
        (["infra/*.tf"], ["infra/main.tf"]),
        (["top.tf", "infra/main.tf"], ["top.tf", "infra/main.tf"]),
        (["absent"], ["absent", "absent/file"]),
        (["absent/deeper/file"], ["absent/deeper/file"]),
        (["infra/absent"], ["infra/absent"]),
    ],
)
def test_protect_option(project, options, protected):
    """Neither the path itself nor anything above it can be used to change it."""
    for name in ("infra/main.tf", "infra/deep/er.tf", "top.tf", "free"):
        lib.make_file(project / name, "of the host\n")
    before = {name: lib.state(project, name) for name in protected}
    opts = [word for option in options for word in ("--protect", option)]
    for name in protected:
        for above in (name, os.path.dirname(name)):
            lib.box("sh", "-c", change(above) if above else "true", opts=opts)
            after = {name: lib.state(project, name) for name in protected}
            assert after == before, above
    lib.succeeded(lib.box("sh", "-c", "echo x >>free", opts=opts))
    assert (project / "free").read_text() == "of the host\nx\n"


def test_protected_can_be_read_and_executed(project):
    lib.make_file(project / "tool", "#!/bin/sh\necho run\n", mode=0o755)
    assert lib.succeeded(lib.box("./tool", opts=["--protect", "tool"])) == b"run\n"


def test_protection_taken_back(project):
    lib.make_file(project / ".mcp.json", "{}\n")
    lib.succeeded(lib.box("sh", "-c", "echo x >.mcp.json", opts=["--protect", "!.mcp.json"]))
    assert (project / ".mcp.json").read_text() == "x\n"


def test_protected_through_a_link(project):
    """A protected name that is a symlink: neither the link nor what it leads to changes."""
    lib.make_file(project / "real" / "settings.json", "of the host\n")
    os.symlink("../real/settings.json", lib.make_dir(project / ".claude") / "settings.json")
    lib.give(project / ".claude" / "settings.json")
    names = (".claude/settings.json", "real/settings.json")
    before = [lib.state(project, name) for name in names]
    for name in (*names, ".claude", "real"):
        lib.box("sh", "-c", change(name))
        assert [lib.state(project, name) for name in names] == before, name


def test_git_works_beside_its_protected_parts(project):
    script = "git checkout -q -b new && echo x >f && git add f && git commit -q -m two"
    lib.succeeded(lib.box("sh", "-c", script))
    assert lib.git("log", "--format=%s", "new", cwd=project) == "two\none\n"


# ---- hidden -----------------------------------------------------------------------------


def hidden_from(project, *opts):
    """The names whose content the box could not read."""
    script = 'find . -path ./.git -prune -o -type f -exec grep -l MARK {} + 2>/dev/null'
    seen = lib.box("sh", "-c", script, opts=opts).stdout.decode().split()
    names = [p.relative_to(project) for p in project.rglob("*") if p.is_file()]
    names = [str(n) for n in names if "MARK" in (project / n).read_text(errors="replace")]
    return sorted(set(names) - {name.removeprefix("./") for name in seen})


SECRETS = [".env", ".env.local", ".env.example", "sub/.env", "sub/deep/.env.prod", "keys/a.pem",
           "keys/b.txt", "plain", "sub/plain"]  # fmt: skip


@pytest.mark.parametrize(
    "options, more",
    [
        ([], []),
        (["plain"], ["plain"]),
        (["keys"], ["keys/a.pem", "keys/b.txt"]),
        (["keys/"], ["keys/a.pem", "keys/b.txt"]),
        (["*.pem"], ["keys/a.pem"]),
        (["keys/*"], ["keys/a.pem", "keys/b.txt"]),
        (["sub/**"], ["sub/plain"]),
        (["**/plain"], ["plain", "sub/plain"]),
        (["keys/a.pem", "keys/b.txt"], ["keys/a.pem", "keys/b.txt"]),
        (["absent", "absent/too", "*.absent"], []),
        (["keys/*", "!keys/b.txt"], ["keys/a.pem"]),
    ],
)
def test_hide(project, options, more):
    """Hidden by default and by option; the host sees nothing of it, nothing is made."""
    for name in SECRETS:
        lib.make_file(project / name, f"MARK {name}\n")
    before = lib.snapshot(project)
    default = [".env", ".env.local", "sub/.env", "sub/deep/.env.prod"]
    opts = [word for option in options for word in ("--hide", option)]
    assert hidden_from(project, *opts) == sorted(default + more)
    assert lib.snapshot(project) == before


def test_hiding_taken_back(project):
    done = lib.box("cat", ".env", opts=["--hide", "!.env"])
    assert lib.succeeded(done) == b"SECRET=from-the-env-file\n"
    assert b"SECRET" not in lib.box("cat", ".env").stdout


@pytest.mark.parametrize("name", [".env", "sub/.env"])
def test_hidden_cannot_be_moved_aside(project, name):
    lib.make_file(project / "sub" / ".env", "SECRET=from-the-env-file\n")
    before = lib.snapshot(project)
    script = f"mv sub moved; mv {name} seen; ln {name} seen; cat {name} seen moved/.env"
    done = lib.box("sh", "-c", f"{script}; rm -f {name}")
    assert b"SECRET" not in done.stdout
    (project / "seen").unlink(missing_ok=True)  # mv copies what it cannot move: nothing
    assert lib.snapshot(project) == before


def test_tracked_file_is_not_hidden(project):
    """What it says is in the history anyway; git in the box works with it as outside."""
    lib.make_file(project / ".env.development", "PUBLIC=1\n")
    lib.git("add", "-f", ".env.development", cwd=project)
    lib.git("commit", "-q", "-m", "two", cwd=project)
    script = """
        git diff --exit-code && cat .env.development && echo B=2 >>.env.development &&
        git commit -qam three && git switch -q -c other && git switch -q -
    """
    assert b"PUBLIC=1\n" in lib.succeeded(lib.box("sh", "-c", script))
    assert lib.git("show", "HEAD:.env.development", cwd=project) == "PUBLIC=1\nB=2\n"
    asked = lib.box("cat", ".env.development", opts=["--hide", ".env.*"])
    assert lib.succeeded(asked) == b"", "hidden where it was asked for"


def test_tracked_file_with_local_changes(project):
    """Shown as long as git tracks it, once it was seen as git has it."""
    path = project / ".env.development"
    lib.make_file(path, "PUBLIC=1\n")
    lib.git("add", "-f", ".env.development", cwd=project)
    lib.git("commit", "-q", "-m", "two", cwd=project)
    lib.make_file(path, "PUBLIC=2\n")
    done = lib.box("cat", ".env.development")
    assert lib.succeeded(done) == b"", "not known yet"
    assert b".env.development is tracked by git, but its content is not in the index" in done.stderr
    lib.make_file(path, "PUBLIC=1\n")
    assert lib.succeeded(lib.box("cat", ".env.development")) == b"PUBLIC=1\n"
    lib.make_file(path, "PUBLIC=2\n")
    done = lib.box("sh", "-c", "cat .env.development; git diff --stat | cat; git commit -qam three")
    assert b"PUBLIC=2\n" in lib.succeeded(done) and b"1 insertion(+), 1 deletion(-)" in done.stdout
    assert lib.git("show", "HEAD:.env.development", cwd=project) == "PUBLIC=2\n"
    lib.git("rm", "-q", "--cached", ".env.development", cwd=project)
    lib.make_file(path, "SECRET=1\n")
    assert lib.succeeded(lib.box("cat", ".env.development")) == b"", "git tracks it no more"


def test_the_index_cannot_claim_a_hidden_file(project):
    """A box adds what it finds at the name, and any content it likes: the next is shown none."""
    script = """
        git add -f .env && git commit -qm claimed
        echo guess >g && id=$(git hash-object -w g) &&
            git update-index --add --cacheinfo 100644,$id,.env
    """
    lib.box("sh", "-c", script)
    assert ".env" in lib.git("ls-files", cwd=project), "the control: it is in the index"
    assert b"SECRET" not in lib.box("cat", ".env").stdout
    lib.git("add", "-f", ".env", cwd=project)
    assert b"SECRET" in lib.succeeded(lib.box("cat", ".env")), "the control: by the user"


READ_ENV = {
    "cat": "cat .env",
    "shell": ". ./.env; echo $SECRET",
    "node": "node --env-file=.env -p process.env.SECRET",
    "python": "/usr/bin/python3 -c 'print([*map(str.strip, open(\".env\"))])'",
    "grep": "grep -R SECRET . --include=.env || test $? = 1",
    "cp": "cp .env copy && cat copy && rm -f copy",
    "tar": "tar -cf - .env | tar -xOf -",
}


@pytest.mark.parametrize("script", READ_ENV.values(), ids=READ_ENV)
def test_hidden_file_reads_as_empty(project, script):
    """A program that reads `.env` if there is one goes on as with an empty one."""
    shown = lib.succeeded(lib.box("sh", "-c", script, opts=["--hide", "!.env"]))
    assert b"from-the-env-file" in shown
    assert b"from-the-env-file" not in lib.succeeded(lib.box("sh", "-c", script))


def test_hidden_file_is_written_with_an_error(project):
    """What a program writes there must not vanish without a word."""
    before = lib.snapshot(project)
    script = "test -r .env && test ! -s .env && ! { echo x >>.env; } 2>/dev/null && stat -c%A .env"
    assert lib.succeeded(lib.box("sh", "-c", script)) == b"-r--r--r--\n"
    assert lib.snapshot(project) == before


def test_hidden_directory_is_an_empty_one(project):
    lib.make_file(project / "keys/a.pem", "MARK\n")
    script = "ls -A keys; test -r keys && test -x keys && ! touch keys/x 2>/dev/null"
    assert lib.succeeded(lib.box("sh", "-c", script, opts=["--hide", "keys"])) == b""
    assert lib.succeeded(lib.box("ls", "keys")) == b"a.pem\n"
