"""Fixtures of the whole-program tests, and the rule that nothing is skipped unnoticed."""

import itertools
import os
import shutil
import signal
import subprocess

import lib
import pytest

# Why a test may be skipped, and when that is to be expected. Any other skip is a failure.
EXPECTED_SKIPS = {
    "needs root": lambda: not lib.ROOT,
    "needs strace": lambda: shutil.which("strace") is None,
    "needs FUSE": lambda: shutil.which("bindfs") is None or not os.path.exists("/dev/fuse"),
    "needs clang-format": lambda: shutil.which("clang-format") is None,
    "needs clients": lambda: os.environ.get("CARREL_NO_CLIENTS") == "1",
    "needs network namespaces": lambda: not lib.ROOT,
    "needs carrel-screen": lambda: not os.path.exists(f"{os.path.dirname(lib.program())}/carrel-screen"),
    # One of these two, on every machine.
    "needs a delegated cgroup": lambda: True,
    "needs a machine without a delegated cgroup": lambda: True,
}

# A shell's `&` and nohup ignore some for all their children; boxes would inherit it.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

_unexpected = []
_number = itertools.count()


def pytest_runtest_logreport(report):
    if not report.skipped:
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    expected = EXPECTED_SKIPS.get(why.removeprefix("Skipped: "))
    if expected is None or not expected():
        _unexpected.append(f"{report.nodeid}: {why}")


def pytest_sessionfinish(session):
    if _unexpected and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for line in _unexpected:
        terminalreporter.write_line(f"UNEXPECTED SKIP {line}", red=True)


def pytest_unconfigure():
    if lib.root.cache_info().currsize:
        lib.remove(lib.root())


# ---- fixtures ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def template():
    """A git repository with one commit, made once and copied for each test."""
    top = lib.make_dir(lib.root() / "template")
    lib.current.home = lib.current.cwd = top
    repo = lib.make_dir(top / "project")
    lib.make_file(repo / "src" / "main.c", "int main(void)\n{\n\treturn 0;\n}\n")
    lib.make_file(repo / ".gitignore", ".env\n")
    lib.git("init", "-q", "-b", "main", cwd=repo)
    lib.git("config", "user.name", "A Tester", cwd=repo)
    lib.git("config", "user.email", "tester@example.org", cwd=repo)
    lib.git("add", "-A", cwd=repo)
    lib.git("commit", "-q", "-m", "one", cwd=repo)
    lib.make_file(repo / ".env", "SECRET=from-the-env-file\n")
    return repo


@pytest.fixture(autouse=True)
def place():
    """The test's own directory; HOME and the working directory of what it runs lie there."""
    top = lib.make_dir(lib.root() / f"t{next(_number)}")
    lib.current.home = lib.make_dir(top / "home")
    lib.current.cwd = top
    yield top
    lib.end_started()
    lib.remove(top)


@pytest.fixture
def home(place):
    """The user's home on the host, with something to steal."""
    lib.make_file(lib.current.home / "secret.txt", "the secret of the home\n", mode=0o600)
    return lib.current.home


@pytest.fixture
def project(place, template):
    """A project to work in: a repository with one commit, and an ignored .env."""
    path = place / "project"
    subprocess.run(["cp", "-a", template, path], check=True)
    lib.current.cwd = path
    lib.settle()
    return path


@pytest.fixture(scope="session")
def _attack():
    if "CARREL_TEST_ATTACK" in os.environ:
        return os.environ["CARREL_TEST_ATTACK"]
    path = lib.root() / "attack"
    source = lib.REPO / "tests" / "escape" / "attack.c"
    subprocess.run(["cc", "-O1", "-static", "-pthread", "-o", path, source], check=True)
    return path


@pytest.fixture
def tool(_attack, project):
    """The attack tool, in the project so that it can be run in the box."""
    path = project / "attack"
    shutil.copy(_attack, path)
    path.chmod(0o755)
    lib.give(path)
    return path


@pytest.fixture(scope="session")
def client():
    """client(NAME): the program, or the test fails."""

    def find(name):
        path = lib.clients() / name
        if os.environ.get("CARREL_NO_CLIENTS") == "1":
            pytest.skip("needs clients")
        found = lib.execute(["test", "-x", path], cwd="/").returncode == 0
        assert found, f"there is no client {path}: run tests/install.sh clients"
        return str(path)

    return find
