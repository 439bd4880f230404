"""One browser for all tests of the report's page."""

import lib
import pytest
from browser import Browser


@pytest.fixture(scope="session")
def chromium():
    home = lib.make_dir(lib.root() / "browser")
    lib.current.home = home
    browser = Browser(home)
    yield browser
    browser.close()


@pytest.fixture
def page(chromium):
    """The browser as a desktop with light colours."""
    chromium.size(1200, 1000)
    chromium.dark(False)
    return chromium
