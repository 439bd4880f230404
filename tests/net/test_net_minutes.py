"""A stream that lasts for minutes lives.

It begins with the first test of the network and is looked at after the last one (conftest.py),
so it costs no time; alone it takes as long as it lasts.
"""

import json

import lib
from minutes import HOST, SILENCE, TIMES


def arrived(out, scheme):
    """When which event arrived, and how the client ended."""
    rows = [line.split() for line in out.decode().splitlines() if line.startswith(f"{scheme} ")]
    assert rows[-1][1] == "ended", rows
    return [(int(n), float(at)) for _, n, at in rows[:-1]], rows[-1][2]


def test_a_stream_that_is_cut_is_seen(stream):
    """The control: the last test would fail."""
    done = stream.lab.run(stream.command("cut", "cut"), **stream.how())
    for scheme in ("http", "https"):
        came, ended = arrived(lib.succeeded(done), scheme)
        assert [n for n, _ in came] == [0, 1] and ended != "0"


def test_a_stream_of_minutes(stream):
    stream.reader.join(TIMES[-1] + 60)
    assert not stream.reader.is_alive(), "the stream has not ended"
    assert stream.process.returncode == 0, stream.err
    assert stream.lasted >= TIMES[-1] >= 150 and SILENCE >= 60
    for scheme in ("http", "https"):
        came, ended = arrived(stream.out, scheme)
        assert [n for n, _ in came] == list(range(len(TIMES))), "none is lost, none comes twice"
        assert ended == "0", "and it ends as it should"
        late = [at - came[0][1] - sent for (_, at), sent in zip(came, TIMES, strict=True)]
        assert max(late) < 5, "none is kept back"
        gaps = [b - a for (_, a), (_, b) in zip(came, came[1:], strict=False)]
        assert max(gaps) > SILENCE - 5
    _check_record(stream)


def _check_record(stream):
    """Each is one connection, from the first event to the last."""
    done = stream.lab.run(["events", "minutes", "--json"], **stream.how())
    record = [json.loads(line) for line in lib.succeeded(done).splitlines()]
    closed = [e for e in record if e["event"] == "close"]
    assert sorted(e["port"] for e in closed) == [80, 443]
    assert all(e["ms"] >= 1000 * TIMES[-1] and e["name"] == HOST for e in closed)
    assert b"1 host reached" in stream.err, stream.err
