"""carrel-network(7): every entry that the page has is given to carrel, which does what it says."""

import json

import lib
import page
import pytest

OPTION = {False: ["--network", "allow", "--allow"], True: ["--network", "open", "--deny"]}


def rules(entry, deny=False):
    """What the plan makes of an entry."""
    done = lib.carrel("plan", "--json", *OPTION[deny], entry, "--", "true")
    return json.loads(lib.succeeded(done))["egress"]["deny" if deny else "allow"]


def each(*headings):
    made = [pair for heading in headings for pair in page.entries(heading)]
    return pytest.mark.parametrize("entry, row", made, ids=[entry for entry, _ in made])


def test_page_has_no_warnings():
    argv = ["mandoc", "-T", "lint", "-W", "warning", page.PAGE]
    done = lib.execute(argv, user=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@each("Forms", "Ports")
def test_form(project, entry, row):
    assert rules(entry)


@each("Taken for another")
def test_taken_for_another(project, entry, row):
    assert rules(entry) == row.bold[:1]


@each("To deny")
def test_denied(project, entry, row):
    assert rules(entry, deny=True) == row.bold[:1]


@each("Refused in allow")
def test_refused(project, entry, row):
    done = lib.carrel("plan", "--json", *OPTION[False], entry, "--", "true")
    lib.failed_clearly(done, f"'{entry}'", *row.bold)
    assert done.stdout == b""


def test_presets(project):
    """The page has the very hosts of every preset, and every preset."""
    made = {term: row.text for term, row in page.entries("PRESETS")}
    done = lib.carrel("plan", *OPTION[False], "@zzzzzzzz", "--", "true")
    known = done.stderr.decode().split("There are ")[1].rstrip(".\n").split(", ")
    assert set(known) == {*made, "@npm", "@debian"}
    for name, hosts in made.items():
        assert rules(name) == hosts.split(", "), name


def test_reasons():
    """All that the record can say, by the table in the code."""
    code = (lib.REPO / "src" / "net" / "policy" / "policy.c").read_text().split("text[] = {")[1]
    said = [line.split('"')[1] for line in code.split("};")[0].splitlines() if '"' in line]
    text = " ".join(page.plain(line) for line in page.section("THE RECORD"))
    assert "is one of: " + "; ".join(said) + "." in text
