"""The project that has something of everything."""

import os
import pathlib
import subprocess

import lib
import pair
import pytest

collect_ignore = ["project"]
HERE = pathlib.Path(__file__).parent

# What git does not keep in this repository, or must not obey here.
DOT_FILES = {
    ".gitignore": ".env\nnode_modules\nout\ndist\ntarget\nprog\n__pycache__\n.mypy_cache\n",
    ".env.development": "VITE_TITLE=development\nDEBUG=1\n",
    ".env.example": "SECRET=\n",
    ".npmignore": "target\n",
    ".prettierignore": "py\ndocs\n",
}
SECRET = "SECRET='from the env file'\nPORT=5432\n"


def copied(source, path):
    """A copy that is the test user's, of what only we may be able to read."""
    subprocess.run(["cp", "-r", source, path], check=True)
    subprocess.run(["chown", "-RP", f"{lib.UID}:{lib.GID}", path], check=True)
    return path


@pytest.fixture(scope="session")
def modules():
    """A node_modules of the test user."""
    if os.environ.get("CARREL_NO_CLIENTS") == "1":
        pytest.skip("needs clients")
    assert (pair.tools() / ".bin/vite").exists(), "there are no tools: run tests/install.sh tools"
    top = lib.make_dir(lib.root() / "modules")
    return copied(pair.tools(), top / "node_modules")


@pytest.fixture(scope="session")
def everything():
    """The project, made once and copied for each run."""
    top = lib.make_dir(lib.root() / "everything")
    lib.current.home = lib.current.cwd = top
    lib.make_file(top / ".gitconfig", pair.GITCONFIG)
    path = copied(HERE / "project", top / "project")
    for name, text in DOT_FILES.items():
        lib.make_file(path / name, text)
    for name, target in {"link.md": "docs/README.md", "docs/up": "../src"}.items():
        os.symlink(target, path / name)
        lib.give(path / name)
    lib.git("init", "-q", "-b", "main", cwd=path)
    lib.git("add", "-A", cwd=path)
    lib.git("commit", "-q", "-m", "one", cwd=path)
    lib.make_file(path / ".env", SECRET)
    return path
