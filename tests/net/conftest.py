"""One lab for all tests of the network; each test begins with an empty log, and with the
names that are there for all.

The stream of test_net_minutes.py lasts longer than any test: it begins before the first of them,
and the test that looks at it is the last.
"""

import pathlib

import lib
import pytest
from lab import Lab, NoLab
from minutes import Stream
from world import World


HERE = pathlib.Path(__file__).resolve().parent
LAST = "test_a_stream_of_minutes"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    last = [item for item in items if item.name == LAST]
    if last:
        items[:] = [item for item in items if item.name != LAST] + last
        first = next(item for item in items if HERE in item.path.parents)
        first.fixturenames.insert(0, "stream")


@pytest.fixture(scope="session")
def stream(template):
    """Where it is told that it goes on for minutes; see test_net_minutes.py."""
    try:
        made = Stream()
    except NoLab as why:
        if lib.ROOT:
            raise
        print(why)
        pytest.skip("needs network namespaces")
    yield made
    made.close()


@pytest.fixture(scope="session")
def _lab():
    try:
        made = Lab()
    except NoLab as why:
        if lib.ROOT:
            raise
        print(why)
        pytest.skip("needs network namespaces")
    yield made
    made.close()


@pytest.fixture
def lab(_lab, project):
    _lab.clear()
    names = dict(_lab.names)
    yield _lab
    _lab.names = names


@pytest.fixture(scope="session")
def _world(_lab, template):
    return World(_lab)


@pytest.fixture
def world(_world, lab):
    """The servers of world.py."""
    return _world
