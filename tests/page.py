"""carrel-network(7), read as data: its lists are executed by the tests that import this."""

import collections
import re

import lib

PAGE = lib.REPO / "man" / "carrel-network.7"

# What stands on the left, the text on the right, and the words of it that are bold.
Row = collections.namedtuple("Row", "terms text bold")


def plain(text):
    for roff, char in (("\\-", "-"), ("\\(ti", "~"), ("\\~", " "), ("\\[:u]", "ü")):
        text = text.replace(roff, char)
    assert "\\" not in text, text
    return text


def section(heading):
    """The lines of a section or of a part of one."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines)
                 if re.fullmatch(rf'\.S[HS] "?{re.escape(heading)}"?', line))  # fmt: skip
    rest = lines[start + 1 :]
    ends = [i for i, line in enumerate(rest) if line.startswith((".SH ", ".SS "))]
    return rest[: ends[0]] if ends else rest


def bold(line):
    """The bold words of a line and the line without its macro: .B, and .BR where B comes first."""
    macro, _, rest = plain(line).partition(" ")
    if macro not in (".B", ".BR", ".IR"):
        return [], plain(line)
    first = re.match(r'"([^"]*)"|(\S+)', rest)
    word = rest if macro == ".B" else first[1] or first[2]
    return ([] if macro == ".IR" else [word]), rest


def rows(lines):
    """The rows of .TP lists; .TQ adds a term."""
    found, term = [], False
    for line in lines:
        if line in (".TP", ".TQ"):
            if line == ".TP":
                found.append(Row([], [], []))
            term = True
        elif term:
            found[-1].terms.append(bold(line)[1])
            term = False
        elif line in (".PP", ".RS", ".RE"):
            if line == ".PP" and found:
                break
        elif found:
            words, text = bold(line)
            found[-1].text.append(text)
            found[-1].bold.extend(words)
    return [Row(r.terms, " ".join(r.text), r.bold) for r in found]


def entries(heading):
    """Each entry of a list, with its row."""
    made = [(term, row) for row in rows(section(heading)) for term in row.terms]
    assert made, heading
    return made
