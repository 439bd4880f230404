"""Ways out that take two steps: leave something behind, and let the host walk into it."""

import os
import shutil
import stat

import lib
import pytest

EVIL = "touch ran-on-the-host"


def report(script, **how):
    """What carrel says about a run in which a shell script did its worst."""
    lib.settle()
    done = lib.box("sh", "-c", script, **how)
    lib.succeeded(done)
    return done.stderr.decode()


# ---- set-user-id programs -----------------------------------------------------------------


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
@pytest.mark.parametrize("mode", ["4755", "u+s", "6711"])
def test_no_setuid_program_is_left(place, mode, user):
    """chmod u+s on a copied program: others would run it as us. Outside it works."""
    there = lib.make_dir(place / "there", uid=None if user else 0)
    script = f"cp /bin/true made && chmod {mode} made"
    lib.box("sh", "-c", script, user=user, cwd=there)
    assert not os.stat(there / "made").st_mode & stat.S_ISUID
    os.remove(there / "made")
    lib.execute(["sh", "-c", script], user=user, cwd=there)
    assert os.stat(there / "made").st_mode & stat.S_ISUID


def test_ordinary_modes_still_work(project):
    lib.succeeded(lib.box("sh", "-c", "touch made && chmod 2751 made"))
    assert stat.S_IMODE(os.stat(project / "made").st_mode) == 0o2751


# ---- the core handler of the host ---------------------------------------------------------


def test_core_limit_stays_at_one_byte(project):
    """Only at exactly 1 does a crash not start the host's handler; 0 would."""
    code = (
        "import resource as r\n"
        "r.setrlimit(r.RLIMIT_CORE, (0, 0))\n"
        "r.prlimit(0, r.RLIMIT_CORE, (0, 0))\n"
        "print(*r.getrlimit(r.RLIMIT_CORE))"
    )
    assert lib.succeeded(lib.box("/usr/bin/python3", "-c", code)) == b"1 1\n"
    outside = lib.execute(["/usr/bin/python3", "-c", code], cwd=project)
    assert lib.succeeded(outside) == b"0 0\n"


def test_other_limits_can_be_set(project):
    script = "ulimit -c 0 && ulimit -n 77 && ulimit -n"
    assert lib.succeeded(lib.box("bash", "-c", script)) == b"77\n"


# ---- git, led astray ----------------------------------------------------------------------


@pytest.fixture
def submodule(project, place):
    """A project with a submodule `sub`."""
    lib.git("init", "-q", "other", cwd=place)
    for command in (["config", "user.name", "o"], ["config", "user.email", "o@example.org"],
                    ["commit", "-q", "--allow-empty", "-m", "one"]):
        lib.git(*command, cwd=place / "other")
    lib.git("-c", "protocol.file.allow=always", "submodule", "add", "-q",
            str(place / "other"), "sub", cwd=project)
    return project


def test_submodule_sent_elsewhere_is_reported(submodule):
    """The .git file of a submodule overwritten in place, and a repository for it to name."""
    said = report(
        "cp -r .git/modules/sub .git/modules/evil && "
        "git config -f .git/modules/evil/config core.fsmonitor evil && "
        "echo 'gitdir: ../.git/modules/evil' >sub/.git"
    )
    assert "sub/.git" in said and ".git/modules/evil/config" in said
    assert "sub" not in report("git status >status")


def test_module_made_in_advance_is_reported(project):
    said = report(
        "mkdir -p .git/modules/sub/hooks && git init -q --bare .git/modules/sub && "
        "echo x >.git/modules/sub/hooks/post-checkout"
    )
    assert ".git/modules/sub/hooks/post-checkout" in said


@pytest.mark.parametrize(
    "name",
    ["rebase-merge/git-rebase-todo", "rebase-apply/0001", "sequencer/todo", "BISECT_NAMES"],
)
def test_rebase_in_progress_is_reported(project, name):
    """git goes on with it at `git rebase --continue`, `git am --continue` and their like."""
    said = report(f"mkdir -p .git/{os.path.dirname(name)} && echo 'exec evil' >.git/{name}")
    assert name in said


def test_other_objects_are_reported(project):
    """Objects that git reads elsewhere; without such a file nothing is said about any."""
    assert "alternates" not in report("git gc -q && mkdir -p .git/objects/info")
    assert ".git/objects/info/alternates" in report("echo /evil >.git/objects/info/alternates")


@pytest.mark.parametrize("name", ["config", "commondir"])
def test_repository_without_a_name_is_reported(project, name):
    said = report(f"mkdir -p docs/objects docs/refs && echo x >docs/{name}")
    assert f"docs/{name}" in said


def test_other_version_control_is_reported(project):
    """Mercurial and its kin run what a file in the project says, as git does."""
    said = report("mkdir -p .hg lib/.sl lib/_darcs/prefs ready; echo x >.hg/hgrc; echo x >ready/hgrc")
    for name in (".hg", "lib/.sl", "lib/_darcs"):
        assert f"  {name}  (a repository" in said
    assert "ready" not in said
    said = report("echo y >.hg/hgrc; mv .hg h; echo y >.hg/store; mkdir d; mv ready d/.hg; echo y >lib/.sl/config")
    assert (project / ".hg/hgrc").read_text() == "x\n" and (project / ".hg/store").exists()
    assert "d/.hg  (a repository" in said and "lib/.sl/config  (Sapling" in said
    assert "  .hg" not in said
    # The control: a file that is not there yet can be made, and is reported.
    (project / ".hg/hgrc").unlink()
    assert "  .hg/hgrc  (Mercurial: runs" in report("echo y >.hg/hgrc")


CONFIGS = {
    "plain": "[core]\n\thooksPath = tools/hooks\n",
    "one line": "[core] hooksPath = tools/hooks\n",
    "comment": "[core]\n\thooksPath = tools/hooks # ours\n",
    "quoted": '[core]\n\thooksPath = "tools/hooks"\n',
    "included": "[include]\n\tpath = ../extra.cfg\n",
    "after many": "".join(f'[branch "b{n}"]\n\tremote = origin-number-{n}\n' for n in range(3000))
    + "[core]\n\thooksPath = tools/hooks\n",
}


@pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
def test_where_git_config_leads_is_protected(project, text):
    """core.hooksPath into the project: the host's next commit would run what is there."""
    lib.make_file(project / "tools/hooks/pre-commit", "#!/bin/sh\ntrue\n", mode=0o755)
    lib.make_file(project / "extra.cfg", "[core]\n\thooksPath = tools/hooks\n")
    with open(project / ".git/config", "a", encoding="ascii") as config:
        config.write(text)
    assert lib.git("config", "core.hooksPath", cwd=project).strip() in ("tools/hooks", b"tools/hooks")
    attack = f"echo '{EVIL}' >>tools/hooks/pre-commit; echo x >tools/hooks/new; mv tools away"
    lib.box("sh", "-c", attack)
    assert (project / "tools/hooks/pre-commit").read_text() == "#!/bin/sh\ntrue\n"
    assert not (project / "tools/hooks/new").exists()
    # The control: with a config that leads nowhere, all of it is the box's to change.
    lib.git("config", "--unset", "core.hooksPath", cwd=project, check=False)
    lib.git("config", "--unset", "include.path", cwd=project, check=False)
    lib.box("sh", "-c", attack)
    assert EVIL in (project / "away/hooks/pre-commit").read_text()
    assert (project / "away/hooks/new").exists()


@pytest.mark.parametrize(
    "name", ["first", "first.git", "all/.bare", "all/.git/modules/first", "all/x.git/first"]
)
def test_project_dressed_up_as_a_repository_is_not_mounted(place, name):
    """Two workspaces: files of one say that it is the git directory of the other."""
    first, second = lib.make_file(place / name / "objects/x").parent.parent, place / "second"
    lib.make_dir(second)
    lib.git("init", "-q", ".", cwd=first)
    lib.make_file(first / ".env", "SECRET=1\n")
    lib.make_file(first / "HEAD", "ref: refs/heads/main\n")
    lib.make_file(first / "config", f"[core]\n\tworktree = {second}\n")
    lib.make_file(second / ".git", f"gitdir: ../{name}\n")
    attack = ["sh", "-c", f"cat {first}/.env; echo x >{first}/.git/hooks/pre-commit"]
    done = lib.box(*attack, cwd=second)
    assert b"SECRET" not in done.stdout
    assert not (first / ".git/hooks/pre-commit").exists()
    # The control: without a box the files are the user's.
    assert b"SECRET" in lib.execute(attack, cwd=second).stdout
    assert (first / ".git/hooks/pre-commit").exists()


# ---- mounts -------------------------------------------------------------------------------


def test_whole_host_cannot_be_mounted(project):
    """--mount / would bring the host's proc along, and its processes."""
    read = ["--", "cat", "/host/proc/sys/kernel/ostype"]
    lib.failed_clearly(lib.carrel("run", "-y", "--mount", "/:/host", *read), "proc")
    seen = lib.carrel("run", "-y", "--mount", "/etc:/host", "--", "ls", "/host/passwd")
    assert lib.succeeded(seen) == b"/host/passwd\n"


@pytest.fixture
def secret(place):
    """A directory of the user's beside the project, with a file in it."""
    return lib.make_file(place / "private/key", "SECRET\n").parent


SWAP = "cat /data/key; mv data old; ln -s {} data; exit 1"


def test_a_link_of_the_box_does_not_lead_a_mount(project, secret):
    """The next start, with -y, would show what the link leads to; and with :rw, let it be written."""
    lib.make_dir(project / "data")
    mount = ("--mount", "data:/data:rw")
    lib.box("sh", "-c", SWAP.format(secret), opts=mount)
    assert os.readlink(project / "data") == str(secret)
    lib.failed_clearly(lib.box("cat", "/data/key", opts=mount), "a box could have made the link")
    seen = lib.box("cat", "/data/key", opts=("--mount", f"{secret}:/data"))
    assert lib.succeeded(seen) == b"SECRET\n"


def test_a_link_of_the_box_does_not_lead_its_restart(project, secret):
    """Nobody is asked about a restart. What the directory is by then is seen."""
    for link, want in ((secret, b""), (project / "mine", b"SECRET\n")):
        lib.make_file(project / "mine/key", "SECRET\n")
        lib.make_dir(project / "data")
        script = "cat /data/key >> seen; " + SWAP.format(link)
        opts = ("-d", "--foreground", "--restart", "on-failure:1", "--mount", "data:/data")
        done = lib.box("sh", "-c", script, opts=opts)
        assert (project / "seen").read_bytes() == want
        assert (b"a box could have made the link" in done.stderr) == (not want)
        os.remove(project / "data")
        shutil.rmtree(project / "old", ignore_errors=True)


def test_a_link_of_the_box_does_not_lead_the_workspace(place, secret):
    outer = lib.make_dir(place / "outer")
    lib.make_dir(outer / "inner")
    opts = ("--workspace", "inner", "--mount", f"{outer}:/up:rw")
    swap = f"cd /up && mv inner old && ln -s {secret} inner"
    lib.succeeded(lib.box("sh", "-c", swap, opts=opts, cwd=outer))
    lib.failed_clearly(lib.box("cat", "key", opts=opts, cwd=outer), "a box could have made the link")
    assert lib.succeeded(lib.box("cat", "key", opts=opts[:2], cwd=outer)) == b"SECRET\n"


def test_other_links_lead_mounts_as_ever(project, place, secret):
    """Links that no box can make, and links within the workspace."""
    lib.make_file(project / "mine/key", "MINE\n")
    for at in (project / "inside", place / "outside"):
        os.symlink(project / "mine" if at.name == "inside" else secret, at)
    opts = ("--mount", "inside:/a", "--mount", f"{place}/outside:/b")
    assert lib.succeeded(lib.box("cat", "/a/key", "/b/key", opts=opts)) == b"MINE\nSECRET\n"
