"""carrel unit: an agent as a service of the user's systemd, and how a service says it is ready."""

import hashlib
import json
import os
import re
import shutil
import signal
import socket

import lib
import pytest

VERIFY = shutil.which("systemd-analyze")
AGENTS = {"agents": {
    "reviewer": {"harness": "command", "env": {"TOKEN": "${TOKEN}"},
                 "command": ["sh", "-c", "trap 'exit 143' TERM; echo up; while :; do sleep 0.1; done"]},
    "asker": {"harness": "command", "command": ["true"], "env": {"TOKEN": "?"}},
}}  # fmt: skip


@pytest.fixture(params=["plain", "with  two %h $HOME \"quotes\" \\n 'x'"])
def place(project, request):
    where = lib.make_dir(project / request.param)
    lib.make_file(where / "carrel.json", json.dumps(AGENTS))
    return where


ENV = {"TOKEN": "t", "CARREL_TRUST": hashlib.sha256(json.dumps(AGENTS).encode()).hexdigest()}


def unit(*args, **how):
    return lib.carrel("unit", *args, env=ENV | how.pop("env", {}), **how)


def verify(path):
    """As the user's own manager would read it."""
    done = lib.execute([VERIFY, "--user", "verify", str(path)])
    return done.returncode, (done.stdout + done.stderr).decode()


def setting(text, key):
    (value,) = re.findall(rf"^{key}=(.*)$", text, re.M)
    return value.replace("%%", "%")


def words(line):
    """systemd's quoting, as far as carrel uses it."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    return [re.sub(r"\\(.)", r"\1", quoted).replace("$$", "$") or bare for quoted, bare in found]


def listen(address):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(address)
    manager.settimeout(lib.TIMEOUT)
    return manager


def test_the_unit_is_one_that_systemd_takes_and_that_runs(place):
    extra = "an \"odd\" $WORD\\ 100%"
    text = lib.succeeded(unit("reviewer", "--", extra, cwd=place)).decode()
    file = lib.make_file(lib.current.home / "carrel-reviewer.service", text)
    code, said = verify(file)
    assert (code, said) == (0, "")
    broken = lib.make_file(lib.current.home / "broken.service", text.replace("ExecStart=", "ExecStart=no"))
    assert verify(broken)[0] != 0
    # What it says is what runs.
    assert setting(text, "WorkingDirectory") == str(place)
    line = words(setting(text, "ExecStart"))
    assert line[0] == lib.program() and line[-1] == extra
    address = str(lib.current.home / "notify")
    with listen(address) as manager:
        os.chmod(address, 0o777)
        service = lib.start(*line[1:], cwd=place, env=ENV | {"NOTIFY_SOCKET": address})
        assert manager.recv(4096).splitlines()[0] == b"READY=1"
        (box,) = json.loads(lib.carrel("ps", "--json").stdout)
        assert (box["name"], box["pid"], box["agent"]) == ("carrel-reviewer", service.pid, "reviewer")
        lib.wait_for(lambda: b"up" in lib.carrel("logs", box["name"]).stdout, "the agent")
        # A second one is refused rather than given another name.
        lib.failed_clearly(lib.carrel(*line[1:], cwd=place, env=ENV), "carrel-reviewer")
        service.send_signal(signal.SIGTERM)
        assert service.wait(lib.TIMEOUT) == 143
    assert "TimeoutStopSec" in text and "StartLimitBurst" in text and "Type=notify" in text


def test_values_of_the_environment_are_not_in_the_unit(project):
    lib.make_file(project / "carrel.json", json.dumps(AGENTS))
    text = lib.succeeded(unit("reviewer", env={"TOKEN": "the-secret"})).decode()
    assert "the-secret" not in text and "TOKEN" in text and "EnvironmentFile=-" in text


def test_what_cannot_be_a_service(project):
    lib.make_file(project / "carrel.json", json.dumps(AGENTS))
    lib.failed_clearly(unit("asker"), "TOKEN", "terminal")
    lib.failed_clearly(unit("nobody"), "nobody")
    lib.failed_clearly(unit(), "agent")
    lib.failed_clearly(lib.carrel("run", "-y", "--foreground", "--", "true"), "-d")
    for name, fails in (("line\nfeed", True), ("c\u009b1m", True), ("caf\u00e9 %n", False)):
        odd = lib.make_dir(project / name)
        lib.make_file(odd / "carrel.json", json.dumps(AGENTS))
        if fails:
            lib.failed_clearly(unit("reviewer", cwd=odd), "bytes")
        else:
            assert "caf\u00e9 %%n".encode() in lib.succeeded(unit("reviewer", cwd=odd))


def test_an_abstract_socket_and_none_at_all(project):
    name = f"carrel-test-{os.getpid()}"
    with listen(f"\0{name}") as manager:
        done = lib.carrel("run", "-d", "--foreground", "-y", "--", "sh", "-c", "exit 6",
                          env={"NOTIFY_SOCKET": f"@{name}"})
        assert done.returncode == 6
        assert manager.recv(4096).startswith(b"READY=1\n")
    for address in (None, "", "x", "/nowhere", "/" + "x" * 200):
        done = lib.carrel("run", "-d", "--foreground", "-y", "--", "true", env={"NOTIFY_SOCKET": address})
        assert done.returncode == 0
