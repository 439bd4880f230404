"""`carrel run`: what it promises on its command line, seen from the host."""

import json
import os
import re
import signal
import socket
import time

import lib
import pytest
from test_protected import change

# ---- exit codes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script, code",
    [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 42", 42),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + signal.SIGTERM),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("kill -SEGV $$", 128 + signal.SIGSEGV),
        ("kill -INT $$", 128 + signal.SIGINT),
    ],
)
def test_exit_code_is_the_commands(project, script, code):
    """The command's exit code, or 128+n, and not a word more."""
    done = lib.box("sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize("command", ["no-such-command", "/no/such", "./missing", "src/gone/x"])
def test_command_not_found(project, command):
    lib.failed_clearly(lib.box(command), command, code=127)


@pytest.mark.parametrize("what", ["plain", "directory", "nonsense"])
def test_command_cannot_be_executed(project, what):
    """Present, but no execute permission, a directory, or nothing the kernel knows."""
    path = project / what
    if what == "directory":
        lib.make_dir(path)
    else:
        lib.make_file(path, b"\x00\x01\x02", mode=0o755 if what == "nonsense" else 0o644)
    lib.failed_clearly(lib.box(f"./{what}"), what, code=126)


def test_command_found_on_path_and_by_relative_path(project):
    lib.make_file(project / "hello", "#!/bin/sh\necho hello\n", mode=0o755)
    assert lib.succeeded(lib.box("./hello")) == b"hello\n"
    assert lib.succeeded(lib.box("echo", "hi")) == b"hi\n"


# ---- the command line -------------------------------------------------------------------


def test_words_after_the_dashes_are_the_commands(project):
    """Options, quotes and shell characters after `--` arrive untouched."""
    words = ["-n", "--yes", "--", "--mount", ";$(id)", "*", "", "a b", "\udcff\u00e9", "'\""]
    done = lib.box("printf", "[%s]", *words)
    assert lib.succeeded(done) == b"".join(b"[" + os.fsencode(w) + b"]" for w in words)


@pytest.mark.parametrize("form", [["--name", "x1"], ["--name=x1"]])
def test_long_options_take_both_forms(project, form):
    assert lib.succeeded(lib.box("hostname", opts=form)) == b"x1\n"


@pytest.mark.parametrize(
    "options, named",
    [
        (["--no-such-option"], "no-such-option"),
        (["--network", "bogus"], "bogus"),
        (["--engine", "bogus"], "bogus"),
        (["--limit", "time=soon"], "soon"),
        (["--limit", "time"], "time"),
        (["--limit", "bogus=1"], "bogus"),
        (["--limit", "pids=-1"], "-1"),
        (["--limit", "pids=99999999999999999999999"], "99999999999999999999999"),
        (["--limit", "files=1x"], "1x"),
        (["--limit", "scratch=1Q"], "1Q"),
        (["--name", ""], "name"),
        (["--name", "a/b"], "a/b"),
        (["--name", "a b"], "a b"),
        (["--name", "n" * 65], "nnn"),
        (["--env", ""], "env"),
        (["--env", "=x"], "env"),
        (["--mount", ""], "mount"),
        (["--mount", "/usr:/data:bogus"], "bogus"),
        (["--mount", "/usr:relative"], "relative"),
        (["--mount", "/no/such/source"], "/no/such/source"),
        (["--mount", "/no/such/source:/data:rw"], "/no/such/source"),
        (["--workspace", "/no/such/workspace"], "/no/such/workspace"),
        (["--workspace", "/etc/passwd"], "/etc/passwd"),
        (["--protect", "/etc/passwd"], "/etc/passwd"),
        (["--protect", "../out"], "../out"),
        (["--hide", "a/../../out"], "a/../../out"),
        (["--hide", ""], "hide"),
    ],
)
def test_bad_value_is_one_clear_line(project, options, named):
    """Exit 125, one line that names what is wrong, and the command did not run."""
    done = lib.box("touch", "ran", opts=options)
    lib.failed_clearly(done, named)
    assert done.stdout == b""
    assert not (project / "ran").exists()


def test_option_without_its_value(project):
    lib.failed_clearly(lib.carrel("run", "-y", "--name"), "name")


def test_control_characters_of_an_argument_do_not_reach_the_terminal(project):
    done = lib.box("true", opts=["--mount", "/no/\x1b]0;owned\x07"])
    assert done.returncode == 125
    assert b"\x1b" not in done.stderr and b"\x07" not in done.stderr


# ---- dry run and confirmation -----------------------------------------------------------


@pytest.mark.parametrize(
    "args, env",
    [
        (["run", "-n", "--"], {}),
        (["run", "--dry-run", "--"], {}),
        (["run", "-y", "-n", "--"], {}),
        (["run", "-ny", "--"], {}),
        (["run", "-y", "--"], {"CARREL_DRY_RUN": "1"}),
        (["run", "--"], {"CARREL_DRY_RUN": "1"}),
        (["plan", "--"], {}),
    ],
)
def test_dry_run_shows_the_plan_and_stops(project, args, env):
    before = lib.snapshot(project)
    done = lib.carrel(*args, "touch", "ran", env=env)
    text = lib.succeeded(done).decode()
    assert "touch" in text and str(project) in text
    assert lib.snapshot(project) == before


def test_dry_run_with_json(project):
    done = lib.carrel("run", "-n", "--json", "--", "touch", "ran")
    assert json.loads(lib.succeeded(done))
    assert done.stdout == lib.succeeded(lib.carrel("plan", "--json", "--", "touch", "ran"))
    assert not (project / "ran").exists()


@pytest.mark.parametrize("typed", [b"", b"y\n", b"yes\n" * 100])
def test_without_a_terminal_it_must_be_told(project, typed):
    """No terminal to ask on and no -y: refused, whatever stands on standard input."""
    done = lib.carrel("run", "--", "touch", "ran", input=typed)
    lib.failed_clearly(done, "-y")
    assert not (project / "ran").exists()
    lib.succeeded(lib.carrel("run", "-y", "--", "touch", "ran"))
    assert (project / "ran").exists()


def asked(*cmd, **how):
    """carrel on a terminal, having shown the plan and asked."""
    child = lib.terminal([lib.program(), "run", "--", *cmd], **how)
    child.expect_exact("y/N")
    return child


@pytest.mark.parametrize("answer", ["y\r", "Y\r", "yes\r"])
def test_confirmed(project, answer):
    child = asked("sh", "-c", "echo made >ran")
    assert str(project) in child.before.decode(), "the plan is shown before the question"
    assert not (project / "ran").exists()
    child.send(answer)
    assert lib.finish(child) == 0
    assert (project / "ran").read_text() == "made\n"


@pytest.mark.parametrize("answer", ["n\r", "N\r", "\r", "no\r", "maybe\r", "\x04", "\x03"])
def test_not_confirmed(project, answer):
    """Anything but a yes, the end of input and Ctrl-C: nothing runs."""
    before = lib.snapshot(project)
    child = asked("touch", "ran")
    child.send(answer)
    assert lib.finish(child) != 0
    assert lib.snapshot(project) == before


def test_answer_is_not_input_of_the_command(project):
    """What was typed as an answer does not arrive in the box."""
    child = asked("sh", "-c", 'read -r line; echo "got <$line>"')
    child.send("y\r")
    child.send("second\r")
    child.expect_exact("got <second>")
    assert lib.finish(child) == 0


# ---- environment ------------------------------------------------------------------------

KEPT = {
    "TERM": "xterm",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_TIME": "C",
    "TZ": "Europe/Berlin",
    "COLORTERM": "truecolor",
    "NO_COLOR": "1",
    "EDITOR": "vi",
}
DROPPED = ["SECRET", "LD_PRELOAD", "LD_LIBRARY_PATH", "GIT_DIR", "BASH_ENV", "PYTHONPATH",
           "SSH_AUTH_SOCK", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "LCX"]  # fmt: skip


def environ(*opts, **how):
    """The command's environment."""
    done = lib.box("cat", "/proc/self/environ", opts=opts, **how)
    lines = lib.succeeded(done).decode().rstrip("\0").split("\0")
    return dict(line.split("=", 1) for line in lines)


def test_environment_is_the_allow_list(project):
    seen = environ(env=KEPT | {name: "/nonexistent/x" for name in DROPPED})
    assert set(seen) == set(KEPT) | {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "CARREL_BOX"}
    assert {name: seen[name] for name in KEPT} == KEPT
    assert seen["HOME"] == str(lib.current.home)
    assert seen["USER"] == seen["LOGNAME"] != "" and os.access(seen["SHELL"], os.X_OK)
    assert "/usr/bin" in seen["PATH"].split(":")


def test_allow_list_is_the_documented_one(project):
    """What the manual says is copied is copied, and what it says is made is the rest."""
    page = lib.succeeded(lib.carrel("man")).decode().replace("\n", " ")
    told = page.partition("starts with an empty environment.")[2].partition("everything else")[0]
    copied, made = (
        set(re.findall(r"\b[A-Z][A-Z_]+\b\*?", re.sub(r"\\f.|\\", "", half)))
        for half in told.split(";")[:2]
    )
    assert {"TERM", "LANG", "LC_*", "TZ", "COLORTERM", "NO_COLOR", "EDITOR"} <= copied
    assert made == {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "CARREL_BOX"}
    here = {name.replace("*", "ALL"): "C" for name in copied}
    others = ["LC", "TERMINFO", "TZDIR", "VISUAL", "PAGER", "LANGUAGES", "EDITORS", "MAIL"]
    seen = environ(env={**here, **dict.fromkeys(others, "C")})
    assert set(seen) == set(here) | made


def test_environment_asked_for(project):
    opts = ["--env", "SECRET", "--env", "GIVEN=a=b c\n$x", "--env", "EMPTY="]
    seen = environ(*opts, env={"SECRET": "s3 cret"})
    assert seen["SECRET"] == "s3 cret"
    assert seen["GIVEN"] == "a=b c\n$x"
    assert seen["EMPTY"] == ""


def test_environment_asked_for_but_unset(project):
    lib.failed_clearly(lib.box("touch", "ran", opts=["--env", "NOT_THERE"]), "NOT_THERE")
    assert not (project / "ran").exists()


@pytest.mark.parametrize("args", [["plan"], ["plan", "--json"], ["run", "-n"]])
def test_plan_never_shows_values(project, args):
    opts = ["--env", "SECRET", "--env", "GIVEN=hush-given"]
    env = {"SECRET": "hush-host", "TERM": "hush-term"}
    text = lib.succeeded(lib.carrel(*args, *opts, "--", "true", env=env))
    assert b"SECRET" in text and b"GIVEN" in text
    assert b"hush" not in text


def test_values_are_on_no_command_line(project):
    """While the box runs, no process on the machine shows the value as an argument."""
    value = f"hush-{os.getpid()}-{os.urandom(4).hex()}"
    running = lib.start_box(
        "sh", "-c", "printenv SECRET; cat", opts=["--env", "SECRET"], env={"SECRET": value}
    )
    lib.read_until(running.stdout, value.encode())
    assert lib.processes(value) == []
    running.communicate()


# ---- mounts -----------------------------------------------------------------------------


@pytest.fixture
def data(place):
    lib.make_file(place / "data" / "file", "of the host\n")
    return place / "data"


def test_unmounted_is_not_there(project, data):
    assert lib.box("cat", data / "file").returncode != 0


@pytest.mark.parametrize(
    "form, target",
    [("{}", None), ("{}:/mnt/in", "/mnt/in"), ("{}:/mnt/in:ro", "/mnt/in"), ("{}:/x", "/x")],
)
def test_mount_is_read_only(project, data, form, target):
    target = target or str(data)
    opts = ["--mount", form.format(data)]
    assert lib.succeeded(lib.box("cat", f"{target}/file", opts=opts)) == b"of the host\n"
    done = lib.box("sh", "-c", f"echo x >{target}/file; echo y >{target}/new", opts=opts)
    assert b"Read-only" in done.stderr
    assert (data / "file").read_text() == "of the host\n"
    assert os.listdir(data) == ["file"]


def test_mount_writable(project, data):
    opts = ["--mount", f"{data}:/mnt/in:rw"]
    lib.succeeded(lib.box("sh", "-c", "echo x >/mnt/in/file && echo y >/mnt/in/new", opts=opts))
    assert (data / "file").read_text() == "x\n"
    assert (data / "new").stat().st_uid == lib.UID


def test_mount_of_a_file(project, data):
    opts = ["--mount", f"{data}/file:/etc/extra.conf"]
    assert lib.succeeded(lib.box("cat", "/etc/extra.conf", opts=opts)) == b"of the host\n"


def test_mount_repeated(project, data):
    lib.make_file(data.parent / "more" / "file", "more\n")
    opts = ["--mount", f"{data}:/a", "--mount", f"{data.parent}/more:/b:rw"]
    done = lib.box("cat", "/a/file", "/b/file", opts=opts)
    assert lib.succeeded(done) == b"of the host\nmore\n"


def test_mount_below_the_workspace_needs_its_target(project, data):
    """The workspace is the host's: carrel makes no directory there to mount on."""
    before = lib.snapshot(project)
    opts = ["--mount", f"{data}:{project}/data"]
    lib.failed_clearly(lib.box("true", opts=opts), f"{project}/data")
    assert lib.snapshot(project) == before
    lib.make_dir(project / "data")
    assert lib.succeeded(lib.box("cat", "data/file", opts=opts)) == b"of the host\n"
    assert os.listdir(project / "data") == []


def test_mounts_carry_no_setuid_and_no_devices(project, data):
    """nosuid and nodev hold for every mount except the nodes of /dev."""
    text = lib.succeeded(
        lib.box("cat", "/proc/self/mountinfo", opts=["--mount", f"{data}:/mnt/in:rw"])
    )
    for line in text.decode().splitlines():
        options = line.split()[5].split(",")
        assert "nosuid" in options, line
        assert "nodev" in options or line.split()[4].startswith("/dev"), line


# ---- workspace --------------------------------------------------------------------------


def test_workspace_is_the_working_directory(project):
    assert lib.succeeded(lib.box("pwd")) == os.fsencode(project) + b"\n"
    lib.succeeded(lib.box("sh", "-c", "echo edited >>src/main.c"))
    assert (project / "src" / "main.c").read_text().endswith("edited\n")


@pytest.mark.parametrize("form", ["absolute", "relative"])
def test_workspace_option(project, place, form):
    """Another directory becomes the workspace, and this one is not in the box."""
    other = lib.make_dir(place / "other")
    name = "../other" if form == "relative" else str(other)
    opts = ["--workspace", name]
    assert lib.succeeded(lib.box("pwd", opts=opts)) == os.fsencode(other) + b"\n"
    lib.succeeded(lib.box("touch", "made", opts=opts))
    assert (other / "made").exists()
    assert lib.box("ls", project, opts=opts).returncode != 0
    lib.succeeded(lib.box("ls", project))


def test_nothing_else_can_be_written(project, place, home):
    """The home is an empty one of the box's own; what is written there is gone with it."""
    before = lib.snapshot(place)
    script = 'echo x >"$HOME/new" && cat "$HOME/new" && ls -A "$HOME" && ls -A "$HOME/.."'
    text = lib.succeeded(lib.box("sh", "-c", script)).decode().split()
    assert text == ["x", "new", "home", "project"]
    for path in ("/new", "/usr/new", "/etc/new", "/home/new", "/dev/new"):
        assert lib.box("touch", path).returncode != 0, path
        assert not os.path.exists(path)
    assert lib.snapshot(place) == before


# ---- limits -----------------------------------------------------------------------------


def test_time_limit_ends_the_command(project):
    done = lib.box("sleep", "1000", opts=["--limit", "time=1s"])
    assert done.returncode == 128 + signal.SIGTERM
    assert b"time" in done.stderr


def test_time_limit_lets_the_command_tidy_up(project):
    script = "trap 'echo tidy; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    done = lib.box("bash", "-c", script, opts=["--limit", "time=1s"])
    assert done.returncode == 3
    assert done.stdout == b"ready\ntidy\n"


def test_time_limit_ends_a_command_that_ignores_it(project):
    word = f"1000.{os.getpid()}"
    script = f"trap '' TERM; setsid sleep {word} & sleep {word}; sleep {word}; sleep {word}"
    done = lib.box("bash", "-c", script, opts=["--limit", "time=1s"])
    assert done.returncode == 128 + signal.SIGKILL
    lib.wait_gone(word)


def test_time_limit_not_reached(project):
    lib.succeeded(lib.box("true", opts=["--limit", "time=30m"]))


def test_open_files_limit(project):
    done = lib.box("sh", "-c", "ulimit -n", opts=["--limit", "files=77"])
    assert lib.succeeded(done) == b"77\n"


def test_process_limit(project):
    """More processes than the limit cannot be made; fewer can."""
    script = (
        "import os\nn = 0\ntry:\n while n < 100:\n"
        "  if os.fork() == 0: os.read(0, 1); os._exit(0)\n  n += 1\n"
        "except OSError: pass\nprint(n)"
    )
    counts = []
    for limit in (20, 60):
        running = lib.start_box(lib.PYTHON, "-c", script, opts=["--limit", f"pids={limit}"])
        counts.append(int(lib.read_until(running.stdout, b"\n")))
        running.communicate(timeout=lib.TIMEOUT)
    assert 1 <= counts[0] <= 20 < counts[1] <= 60


@pytest.mark.parametrize("where", ["/tmp", "$HOME", "/dev/shm", "/run", "/var/tmp"])
def test_scratch_limit(project, where):
    script = f"dd if=/dev/zero of={where}/big bs=1M count=%d 2>&1"
    opts = ["--limit", "scratch=8M"]
    assert b"No space left" in lib.box("sh", "-c", script % 20, opts=opts).stdout
    lib.succeeded(lib.box("sh", "-c", script % 4, opts=opts))


# ---- name -------------------------------------------------------------------------------


def test_name_is_the_host_name(project):
    done = lib.box("sh", "-c", 'hostname; echo "$CARREL_BOX"', opts=["--name", "my-box"])
    assert lib.succeeded(done) == b"my-box\nmy-box\n"
    assert socket.gethostname() != "my-box"


@pytest.mark.parametrize(
    "directory", ["Some Project", "a_b.c", "\u00fcml\u00e4ut", "---", "x" * 200]
)
def test_name_comes_from_the_workspace(place, directory):
    lib.make_dir(place / directory)
    name = lib.succeeded(lib.box("hostname", cwd=place / directory)).decode().strip()
    assert name.startswith("carrel-") and len(name) <= 63
    assert all(c.isascii() and (c.isalnum() or c == "-") for c in name), name


# ---- nothing is left --------------------------------------------------------------------


def test_nothing_is_left_in_the_project(project):
    """What keeps absent names from being made is on the host only while the box runs."""
    before = lib.snapshot(project)
    running = lib.start_box("sh", "-c", "echo ready; cat")
    lib.read_until(running.stdout, b"ready")
    during = lib.snapshot(project)
    assert set(during) - set(before), "the control: something is there now"
    assert {name: during[name] for name in before} == before
    running.communicate(timeout=lib.TIMEOUT)
    assert lib.snapshot(project) == before


def test_programs_on_the_host_do_not_stumble(project):
    """While a box runs, git outside sees no new files, and commits."""
    running = lib.start_box("sh", "-c", "echo ready; cat")
    lib.read_until(running.stdout, b"ready")
    assert lib.git("status", "--short", cwd=project) == ""
    lib.make_file(project / "new", "new\n")
    lib.git("add", "-A", cwd=project)
    lib.git("commit", "-q", "-m", "two", cwd=project)
    running.communicate(timeout=lib.TIMEOUT)
    assert lib.git("show", "--format=", "--name-only", cwd=project) == "new\n"


def test_programs_in_the_box_see_absent_names_as_absent(project):
    script = """
        test ! -e .envrc && test ! -e .mcp.json && test ! -e .claude/settings.json || exit 1
        git status --short && echo new >new && git add -A && git commit -q -m two
        git clean -ndx | grep -v /
    """
    assert lib.succeeded(lib.box("sh", "-c", script)) == b"Would remove .env\n"
    assert lib.git("show", "--format=", "--name-only", cwd=project) == "new\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_carrel_is_killed(project, number):
    """No process, no mount and no file outlives carrel, however it ends."""
    before = lib.snapshot(project)
    word = f"1000.{os.getpid()}{number:02}"
    script = f"(trap '' TERM HUP; setsid sleep {word}) & echo ready; exec sleep {word}"
    running = lib.start_box("sh", "-c", script)
    lib.read_until(running.stdout, b"ready")
    os.kill(running.pid, number)
    running.communicate(timeout=lib.TIMEOUT)
    lib.wait_gone(word)
    lib.wait_for(lambda: lib.snapshot(project) == before, "the project to be as it was")
    lib.succeeded(lib.box("true"))
    assert lib.snapshot(project) == before


def test_nothing_is_left_when_init_is_killed(project):
    before = lib.snapshot(project)
    word = f"1000.{os.getpid()}99"
    running = lib.start_box("sh", "-c", f"echo ready; exec sleep {word}")
    lib.read_until(running.stdout, b"ready")
    inits = [pid for pid in lib.children(running.pid) if pid_in_namespace(pid) == 1]
    assert len(inits) == 1
    os.kill(inits[0], signal.SIGKILL)
    running.communicate(timeout=lib.TIMEOUT)
    assert running.returncode != 0
    lib.wait_gone(word)
    assert lib.snapshot(project) == before


def pid_in_namespace(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None


def test_boxes_that_come_and_go_in_one_workspace(project):
    """Boxes that start while others end in the same directory do not disturb each other."""
    before = lib.snapshot(project)
    for _ in range(10):
        boxes = [lib.start_box("true") for _ in range(4)]
        for running in boxes:
            _, errors = running.communicate(timeout=lib.TIMEOUT)
            assert running.returncode == 0, errors
    assert lib.snapshot(project) == before


def test_two_boxes_at_once_in_one_workspace(project):
    """The first to end does not take away what the other still needs, the last one does."""
    before = lib.snapshot(project)
    first, second = (lib.start_box("sh", "-c", "echo ready; cat") for _ in range(2))
    for running in (first, second):
        lib.read_until(running.stdout, b"ready")
    first.communicate(timeout=lib.TIMEOUT)
    lib.box("sh", "-c", change(".vscode"))
    second.communicate(b"", timeout=lib.TIMEOUT)
    assert (first.returncode, second.returncode) == (0, 0)
    assert lib.snapshot(project) == before


ORPHANS = """
import glob, os, time
def there():
    return len(glob.glob("/proc/[0-9]*"))
for n in range(50):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.01)
        os._exit(0)
    os.wait()
own = os.fork() or os._exit(0)
os.waitid(os.P_PID, own, os.WEXITED | os.WNOWAIT)
end = time.monotonic() + 10
while there() > 3 and time.monotonic() < end:
    time.sleep(0.01)
print(there())
"""


def test_orphans_are_reaped(project):
    """By init, as everywhere. It is left, and we, and a dead child that we do not wait for."""
    assert lib.succeeded(lib.box(lib.PYTHON, "-c", ORPHANS)) == b"3\n"


# ---- report of planted files ------------------------------------------------------------


@pytest.mark.parametrize(
    "script, named",
    [
        ("git init -q sub && echo x >sub/.git/hooks/pre-push", "sub/.git "),
        ("git init -q sub && git -C sub config core.pager evil", "sub/.git "),
        ("mkdir deep && echo x >deep/.envrc", "deep/.envrc"),
        ("mkdir .husky && echo x >.husky/pre-commit", ".husky "),
        ("git init -q --bare bare && git -C bare config core.pager evil", "bare/config"),
        ("mkdir sub && echo 'gitdir: ../elsewhere' >sub/.git", "sub/.git"),
        ("mkdir sub && mv dir sub/.git", "sub/.git"),
        ("mv dir .husky", ".husky"),
        ("ln -s dir .husky", ".husky"),
        ("mkdir sub && mv dir/config sub/.envrc", "sub/.envrc"),
    ],
)
def test_planted_files_are_reported(project, script, named):
    """Made, moved there, or linked to: what a tool outside would run is named."""
    for name in ("HEAD", "config", "hooks/post-checkout", "pre-commit"):
        lib.make_file(project / "dir" / name, "from the repository\n")
    lib.settle()
    done = lib.box("sh", "-c", script)
    lib.succeeded(done)
    assert named in done.stderr.decode()


def test_what_changed_in_a_nested_repository_is_reported(project):
    """One that was there before is no news; its config and hooks are."""
    lib.git("init", "-q", "sub", cwd=project)
    lib.settle()
    script = "git -C sub config core.pager evil; echo x >sub/.git/hooks/pre-push; touch sub/a"
    told = lib.box("sh", "-c", script).stderr.decode()
    assert "sub/.git/config" in told and "sub/.git/hooks/pre-push" in told


def test_repository_made_in_a_workspace_without_one_is_reported(place):
    there = lib.make_dir(place / "plain")
    done = lib.box("sh", "-c", "git init -q . && git config core.pager evil", cwd=there)
    lib.succeeded(done)
    assert "  .git  (a repository" in done.stderr.decode()


def test_changed_files_are_reported(project):
    lib.make_file(project / "deep" / ".envrc", "of the host\n")
    done = lib.box("sh", "-c", "echo evil >>deep/.envrc")
    assert "deep/.envrc" in done.stderr.decode()


def test_harmless_files_are_not_reported(project):
    lib.make_file(project / "deep" / ".envrc", "of the host\n")
    lib.settle()
    done = lib.box("sh", "-c", "echo x >new; cat deep/.envrc >/dev/null")
    lib.succeeded(done)
    assert done.stderr == b""


def test_report_shows_no_control_characters(project):
    script = "d=$(printf 'e\\033]0;x\\007'); mkdir \"$d\"; echo x >\"$d/.envrc\""
    done = lib.box("sh", "-c", script)
    lib.succeeded(done)
    assert b".envrc" in done.stderr
    assert b"\x1b" not in done.stderr and b"\x07" not in done.stderr


def test_report_is_ranked_and_whole_in_the_record(project):
    """Twenty lines on the terminal, what git runs first; all of them by `carrel found`."""
    script = (
        "for i in $(seq 30); do mkdir a$i && echo x >a$i/.envrc; done; git init -q zz;"
        "for i in $(seq 50); do echo x >0/.vscode/$i; done"
    )
    lib.make_dir(project / "0")
    lib.make_dir(project / "0" / ".vscode")
    lib.settle()
    done = lib.box("sh", "-c", script, opts=["--name", "full"])
    lib.succeeded(done)
    lines = done.stderr.decode().splitlines()
    assert "zz/.git " in lines[1], lines
    assert any("0/.vscode  (50 files" in line for line in lines), lines
    assert len(lines) == 22 and lines[-1].endswith("and 12 more: carrel found full"), lines
    told = lib.succeeded(lib.carrel("found", "full")).decode().splitlines()
    assert len(told) == 1 + 1 + 30 + 50, told
    entries = [json.loads(line) for line in
               lib.succeeded(lib.carrel("found", "--json", "full")).splitlines()]
    assert entries[0]["found"] == 81 and entries[0]["workspace"] == str(project)
    assert entries[1] == {"path": "zz/.git", "why": entries[1]["why"], "rank": "git"}
    assert {e["path"] for e in entries[1:]} >= {f"a{i}/.envrc" for i in range(1, 31)}


def test_record_of_what_was_left_is_that_of_the_newest_box(project):
    lib.succeeded(lib.box("sh", "-c", "mkdir d; echo x >d/.envrc", opts=["--name", "twice"]))
    lib.succeeded(lib.carrel("found", "twice"))
    lib.settle()
    lib.succeeded(lib.box("true", opts=["--name", "twice"]))
    lib.failed_clearly(lib.carrel("found", "twice"), "has left nothing")


def test_report_that_cannot_be_kept_is_shown(project, place):
    """Nothing is lost when there is no place for the record: all of it is on the terminal."""
    state = lib.make_dir(place / "state", mode=0o500)
    script = "for i in $(seq 30); do mkdir a$i && echo x >a$i/.envrc; done"
    done = lib.box("sh", "-c", script, env={"XDG_STATE_HOME": str(state)})
    lib.succeeded(done)
    told = done.stderr.decode()
    assert all(f"  a{i}/.envrc  (" in told for i in range(1, 31)), told
    assert "not kept in the box's record" in told


def test_instructions_for_agents_are_named_quietly(project):
    """One line and no alarm: boxes write them as part of their work."""
    script = "mkdir docs; echo x >docs/AGENTS.md; echo x >CLAUDE.md; echo x >package.json; echo x >Makefile"
    done = lib.box("sh", "-c", script)
    lib.succeeded(done)
    assert done.stderr == b"carrel: instructions for agents changed: CLAUDE.md, docs/AGENTS.md\n"


# ---- other commands ---------------------------------------------------------------------


def test_check_finds_every_layer(project):
    done = lib.carrel("check", "--json")
    assert json.loads(lib.succeeded(done))["steps"]
    lib.succeeded(lib.carrel("check"))


# ---- a network that was missed ----------------------------------------------------------

MISSED = (
    b"carrel: this box had no network, and a program seems to have looked up a name; "
    b"to let it reach a host: carrel run --allow HOST ...\n"
)
LOOKUP = "import socket\ntry: socket.getaddrinfo('example.org', 443)\nexcept OSError: raise SystemExit({})"


@pytest.mark.parametrize("words", [
    [lib.PYTHON, "-c", LOOKUP.format(3)],
    ["getent", "hosts", "example.org"],
    ["curl", "-sS", "http://example.org/"],
], ids=["python", "getent", "curl"])  # fmt: skip
def test_a_box_without_a_network_says_that_one_was_missed(project, words):
    done = lib.box(*words)
    assert done.returncode not in (0, 125) and MISSED in done.stderr, done.stderr


@pytest.mark.parametrize("words", [
    ["sh", "-c", "exit 3"],
    ["sh", "-c", "cat /etc/hosts /etc/passwd >/dev/null; ls -l /etc/resolv.conf; git status; id; exit 3"],
    [lib.PYTHON, "-c", "import socket; socket.getaddrinfo('127.0.0.1', 80); raise SystemExit(3)"],
    [lib.PYTHON, "-c", LOOKUP.format(0)],
], ids=["exit", "other files", "address", "success"])  # fmt: skip
def test_nothing_is_said_of_a_network_that_nobody_missed(project, words):
    done = lib.box(*words)
    assert done.returncode in (0, 3) and b"no network" not in done.stderr, done.stderr


def test_a_box_with_the_network_of_the_host_did_not_miss_one(project):
    done = lib.box("sh", "-c", "cat /etc/resolv.conf; exit 3", opts=["--network", "host"])
    assert done.returncode == 3 and b"had no network" not in done.stderr
