"""Fixtures for the tests of instances and sessions."""

import pytest
from instance_files import State
from session_user import User


@pytest.fixture
def kept(place):
    return State(place)


@pytest.fixture
def one(kept, project):
    """The instance of the project."""
    return kept.instance(project)


@pytest.fixture
def user(place, home, project):
    return User(place, home, project)
