"""carrel-network(7): every example of what decides is tried in a box, and the record agrees."""

import json

import lab as labs
import lib
import page
import pytest

OWN = "an address of this machine"

# Looks a name up and dials; it matters not what comes of it here: the record is asked.
TRY = """
import socket, sys
host, port = sys.argv[1:]
for address in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[:1]:
    with socket.socket(address[0]) as s:
        s.settimeout(20)
        s.connect(address[4])
        s.recv(1)
"""


def examples():
    """(options, what is dialled, what is said of it), as the page has them."""
    options = None
    for row in page.rows(page.section("Examples")):
        if row.terms[0].startswith("--"):
            options = row.terms[0].split()
            continue
        for term in row.terms:
            yield pytest.param(options, term, row.text, id=" ".join([*options, term]))


def verdict(lab, name):
    """What was decided last in a box."""
    text = lib.succeeded(lab.run(["events", name, "--json"])).decode()
    made = [json.loads(line) for line in text.splitlines()]
    made = [e for e in made if e["event"] in ("lookup", "connect")]
    return made[-1]


@pytest.mark.parametrize("options, what, said", examples())
def test_example(lab, options, what, said):
    target, _, at = (f"{labs.OWN[0]}:443" if what == OWN else what).partition(" at ")
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    lab.dns({host: [at or "93.184.216.34"]})
    lab.run(["run", "-y", "--name", "page", *options, "--", lib.PYTHON, "-c", TRY, host, port])
    last = verdict(lab, "page")
    if said.startswith("Allowed."):
        assert last["verdict"] in ("allowed", "failed"), "nobody need listen there"
    else:
        assert last["verdict"] == "refused"
        assert said.startswith(f"Refused: {last['reason']}.")
    if last["event"] == "lookup":
        assert not lab.heard("dns"), "a refused name was asked for outside"


def test_there_are_both():
    said = [p.values[2].split(".")[0].split(":")[0] for p in examples()]
    assert set(said) == {"Allowed", "Refused"} and len(said) > 40
