import pathlib

from calc import add


def test_add():
    assert add(40, 2) == 42


def test_temporary(tmp_path):
    assert pathlib.Path(tmp_path).is_dir()
