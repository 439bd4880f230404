"""Fixtures of the tests that start real clients: where they are, a mock of their API, a host.

Clients are installed by tests/install.sh, which test.sh calls. One that is missing is a failure
unless CARREL_NO_CLIENTS=1 says that it is meant to be. The verdict of these tests is what the
mock was asked and what is on the host.
"""

import hashlib
import json
import os
import sys

import lib
import pytest
import sshd

sys.path.insert(0, str(lib.REPO / "tests" / "mock"))
import mock as mock_api  # noqa: E402

BIN = lib.clients()


@pytest.fixture
def mock():
    with mock_api.Mock() as server:
        yield server


class Host:
    """A user's machine: home and project of the test, and carrel with the clients on PATH."""

    def __init__(self, mock, home, project):
        self.mock, self.home, self.project = mock, home, project
        self.env = {"PATH": f"/usr/local/bin:/usr/bin:/bin:{BIN}", "TERM": "xterm-256color"}

    def write(self, name, content, mode=0o644):
        """A file of the project (or, with ~/, of the home); what is no text is JSON."""
        top = self.home if name.startswith("~/") else self.project
        text = content if isinstance(content, (str, bytes)) else json.dumps(content, indent=1)
        return lib.make_file(top / name.removeprefix("~/"), text, mode=mode)

    def manifest(self, agents, library=None, network="host", **shared):
        """A carrel.json that the user has approved."""
        for agent in agents.values():
            for key, value in shared.items():
                agent.setdefault(key, value)
            if network:
                agent.setdefault("network", network)
        return self.approve({"library": library or {}, "agents": agents})

    def approve(self, manifest):
        path = self.write("carrel.json", manifest)
        self.env["CARREL_TRUST"] = hashlib.sha256(path.read_bytes()).hexdigest()

    def _environment(self, env):
        return {"ANTHROPIC_BASE_URL": self.mock.url, **self.env, **(env or {})}

    def run(self, *args, env=None, **how):
        """`carrel run -y` without a terminal, to its end."""
        lib.settle()  # what was declared just now is no change that the box made
        return lib.carrel(
            "run", "-y", *args, cwd=self.project, env=self._environment(env), **how
        )

    def start(self, *args, env=None, **how):
        lib.settle()
        return lib.start(
            "run", "-y", *args, cwd=self.project, env=self._environment(env), **how
        )

    def terminal(self, *args, env=None, **how):
        """`carrel run -y` on a terminal."""
        lib.settle()
        argv = [lib.program(), "run", "-y", *args]
        return lib.terminal(argv, cwd=self.project, env=self._environment(env), **how)

    def terminal_as_known(self, *args, env=None):
        """carrel on a terminal, by a user who has an account."""
        argv = sshd.known([lib.program(), *args])
        return lib.terminal(argv, user=False, cwd=self.project, env=self._environment(env))

    def direct(self, *argv, env=None, **how):
        """A client itself, in no box: the control."""
        return lib.execute(argv, cwd=self.project, env=self._environment(env), **how)


@pytest.fixture
def host(mock, home, project):
    return Host(mock, home, project)
