"""@npm where no file configures a registry: npm itself is asked, once, outside of any box."""

import json

import lib
import pytest

NPM = """#!/bin/sh
echo "$PWD $*" >> "{calls}"
echo "npm warn something is odd" >&2
echo "https://packages.example.org/path/"
"""


@pytest.fixture
def npm(place):
    """An npm outside of the project that writes down each call; its directory and that record."""
    calls = lib.make_file(place / "calls")
    lib.make_file(place / "bin" / "npm", NPM.format(calls=calls), mode=0o755)
    return place / "bin", calls


def hosts(bin, **env):
    env = {"PATH": f"{bin}:/usr/bin:/bin", "npm_config_globalconfig": "/dev/null", **env}
    return lib.carrel("plan", "--json", "--allow", "@npm", "--", "true", env=env)


def allowed(done):
    return json.loads(lib.succeeded(done))["egress"]["allow"]


def test_npm_is_asked_once(project, npm):
    bin, calls = npm
    for _ in range(2):
        assert "packages.example.org" in allowed(hosts(bin))
    assert calls.read_text() == "/ config get registry\n"
    # Another npm may have another default.
    text = (bin / "npm").read_text().replace("packages", "others")
    (bin / "npm").unlink()
    lib.make_file(bin / "npm", text, mode=0o755)
    assert "others.example.org" in allowed(hosts(bin))


def test_npm_is_not_asked_where_a_file_says_it(project, npm):
    bin, calls = npm
    lib.make_file(lib.current.home / ".npmrc", "registry=https://mine.example.org/\n")
    assert "mine.example.org" in allowed(hosts(bin))
    assert calls.read_text() == ""


def test_no_npm_of_the_project_is_run(project, npm):
    bin, calls = npm
    planted = project / "bin"
    lib.make_file(planted / "npm", (bin / "npm").read_text(), mode=0o755)
    (bin / "npm").unlink()
    lib.failed_clearly(hosts(f"{planted}:{bin}", PATH=f"{planted}:/nowhere"), "@npm", "npm")
    assert calls.read_text() == ""
    # The same program outside of the project is asked.
    (planted / "npm").rename(bin / "npm")
    assert "packages.example.org" in allowed(hosts(bin))
    assert calls.read_text() != ""
