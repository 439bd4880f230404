"""One lab for all tests of the network; each test begins with an empty log, and with the
names that are there for all."""

import lib
import pytest
from lab import Lab, NoLab
from world import World


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
