"""From records to Markdown: a table per row, and the targets with their verdict."""
import operator


def at(data, *path):
    """data[path[0]][path[1]]…, or None as soon as something is not there."""
    for key in path:
        if data is None:
            return None
        data = data.get(key)
    return data


def find(results, row, name, table=""):
    for record in at(results, row, "tables", table) or []:
        if record["name"] == name:
            return record
    return None


def wall(results, row, name):
    return at(find(results, row, name), "wall_us", "median")


def in_table(results, row, name, table):
    return at(find(results, row, name, table), "wall_us", "median")


def rate(results, name):
    return at(find(results, "flood", name), "per_s", "median")


def over(a, b):
    return a / b if a is not None and b else None


def growth_at_most(results, peer):
    """Only at 500 boxes: fewer, as in a quick run, would not answer the question."""
    return at(results, "alive", "growth", peer, 500)


# The two tables of a connection.
APART, TOGETHER = "the server on a processor of its own", "all on all processors"


def net(results, what, unit, peer, table=""):
    """carrel's figure of a network row over that of another."""
    row = f"egress-{what}"
    return over(at(find(results, row, "carrel", table), unit, "median"),
                at(find(results, row, peer, table), unit, "median"))


def broker_kb(results):
    for record in at(results, "broker-memory", "memory") or []:
        if record["name"] == "open, 8 alive":
            return record["broker_kb"]
    return None


# What, how it is measured, the comparison and the limit: the performance targets.
TARGETS = [
    ("cold start ÷ bwrap with the same mounts",
     lambda r: over(wall(r, "start", "carrel"), wall(r, "start", "bwrap")), "≤", 0.30, "×"),
    ("cold start ÷ plain",
     lambda r: over(wall(r, "start", "carrel"), wall(r, "start", "plain")), "≤", 4, "×"),
    ("start in 100,000 files ÷ in none",
     lambda r: over(wall(r, "large", "100,000 files"), wall(r, "large", "empty")), "≤", 2, "×"),
    ("start in a million files ÷ git status",
     lambda r: over(wall(r, "million", "carrel"), wall(r, "million", "git status")), "≤", 0.5, "×"),
    ("each further bind", lambda r: at(r, "binds", "slopes_us", "carrel"), "≤", 20, " µs"),
    ("about 200 binds (+175) ÷ bwrap",
     lambda r: over(wall(r, "binds", "carrel +175"), wall(r, "binds", "bwrap +175")),
     "≤", 0.08, "×"),
    ("start with 500 alive ÷ with none",
     lambda r: growth_at_most(r, "carrel"), "≤", 1.4, "×"),
    ("boxes per second ÷ bwrap",
     lambda r: over(rate(r, "carrel"), rate(r, "bwrap")), "≥", 4, "×"),
    ("boxes per second ÷ podman",
     lambda r: over(rate(r, "carrel"), rate(r, "podman")), "≥", 60, "×"),
    ("boxes per second ÷ srt",
     lambda r: over(rate(r, "carrel"), rate(r, "srt")), "≥", 75, "×"),
    ("idle box of eight, supervisor + init",
     lambda r: at(find(r, "memory", "carrel"), "pss_kb_8"), "≤", 100, " KB"),
    ("carrel plan ÷ plain",
     lambda r: over(wall(r, "commands", "carrel plan"), wall(r, "commands", "plain")),
     "≤", 3, "×"),
    ("carrel version ÷ plain",
     lambda r: over(wall(r, "commands", "carrel version"), wall(r, "commands", "plain")),
     "≤", 3, "×"),
    ("carrel plan of one of 1,000 agents ÷ plain",
     lambda r: over(wall(r, "manifest", "carrel plan, 1000 agents"),
                    wall(r, "manifest", "plain")), "≤", 10, "×"),
    ("added by the user's own configuration, 10,000 files",
     lambda r: at(r, "instance", "added_us"), "≤", 1000, " µs"),
    ("git mv of a directory of 1,000 files in a copy ÷ cp -r",
     lambda r: over(wall(r, "renames", "git mv"), wall(r, "renames", "cp -r")), "≤", 3, "×"),
    ("a copy of 100,000 files, added to the start",
     lambda r: at(r, "copies", "added_us", "100,000 files"), "≤", 1000, " µs"),
    ("rsync -n ÷ the list of 20 changes in 100,000 files",
     lambda r: over(in_table(r, "changes", "rsync -n", "the list"),
                    in_table(r, "changes", "carrel diff --name-only", "the list")), "≥", 50, "×"),
    ("1,000 changed files taken over ÷ rsync",
     lambda r: over(in_table(r, "changes", "carrel apply", "taken over"),
                    in_table(r, "changes", "rsync -a", "taken over")), "≤", 2, "×"),
    *[(f"{what} in a copy ÷ plain",
       lambda r, what=what: over(in_table(r, "inside", "carrel, --overlay", what),
                                 in_table(r, "inside", "plain", what)), "≤", 1.3, "×")
      for what in ("build", "git status", "rm -rf")],
    ("cold start with a way out ÷ bwrap, 25 binds",
     lambda r: over(wall(r, "egress-start", "carrel"), wall(r, "egress-start", "bwrap, 25 binds")),
     "≤", 0.30, "×"),
    ("cold start with a way out ÷ plain",
     lambda r: over(wall(r, "egress-start", "carrel"), wall(r, "egress-start", "plain")),
     "≤", 4, "×"),
    ("connect and one byte ÷ direct, " + APART,
     lambda r: net(r, "connect", "us", "direct", APART), "≤", 2.3, "×"),
    ("connect and one byte ÷ direct, " + TOGETHER,
     lambda r: net(r, "connect", "us", "direct", TOGETHER), "≤", 2.3, "×"),
    ("srt's ÷ that of carrel, " + APART,
     lambda r: over(1, net(r, "connect", "us", "srt", APART)), "≥", 12, "×"),
    ("download ÷ pasta", lambda r: net(r, "download", "mb_s", "pasta"), "≥", 1.2, "×"),
    ("download ÷ srt", lambda r: net(r, "download", "mb_s", "srt"), "≥", 5, "×"),
    ("set-up of the way out", lambda r: at(r, "egress-setup", "egress_us"), "≤", 200, " µs"),
    ("an attempt of an evaluation, beyond its box",
     lambda r: at(r, "eval-attempt", "own_ms"), "≤", 10, " ms"),
    ("attempts a second, 8 at a time ÷ 1",
     lambda r: at(r, "eval-jobs", "speed_up"), "≥", 4, "×"),
    ("an attempt of Claude Code ÷ in a plain loop",
     lambda r: at(r, "eval-clients", "beside_loop"), "≤", 1.2, "×"),
    ("an idle broker, of eight", broker_kb, "≤", 200, " KB"),
]
COMPARE = {"≤": operator.le, "≥": operator.ge}


def judge(results):
    """The targets as records: what, limit, measured, met (None: not measured)."""
    verdicts = []
    for what, measure, sign, limit, unit in TARGETS:
        value = measure(results)
        verdicts.append({"what": what, "target": f"{sign} {limit:g}{unit}",
                         "limit": limit, "measured": value, "unit": unit,
                         "met": None if value is None else COMPARE[sign](value, limit)})
    return verdicts


# ---- Markdown ---------------------------------------------------------------------

def number(value, suffix=""):
    if value is None:
        return "–"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{suffix}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def rounds_table(records):
    base = {name: at(next((r for r in records if r["name"] == name), None),
                     "wall_us", "median") for name in ("plain", "bwrap", "bwrap +0")}
    bwrap = base["bwrap"] or base["bwrap +0"]
    head = ["", "median µs", "p10", "p90", "CPU µs", "× plain", "× bwrap", "n", "failed"]
    rows = []
    for r in records:
        median = at(r, "wall_us", "median")
        rows.append([r["name"], number(median), number(at(r, "wall_us", "p10")),
                     number(at(r, "wall_us", "p90")), number(at(r, "cpu_us", "median")),
                     number(over(median, base["plain"])), number(over(median, bwrap)),
                     str(at(r, "wall_us", "n") or 0), str(r["fails"])])
    return table(head, rows)


def flood_table(records):
    rates = {r["name"]: at(r, "per_s", "median") for r in records}
    head = ["", "per second", "p10", "p90", "carrel is", "failed"]
    return table(head, [
        [r["name"], number(rates[r["name"]]), number(at(r, "per_s", "p10")),
         number(at(r, "per_s", "p90")),
         number(over(rates.get("carrel"), rates[r["name"]]), " ×"), str(r["fails"])]
        for r in records])


def memory_table(records):
    return table(["", "one box, KB", "of eight, KB each", "processes per box"], [
        [r["name"], number(r.get("pss_kb_1")), number(r.get("pss_kb_8")),
         r.get("processes", "") + (f" ({r['error']})" if "error" in r else "")]
        for r in records])


def connect_table(records):
    base = {r["name"]: at(r, "us", "median") for r in records}
    return table(["", "median µs", "at 95 %", "p10", "× direct", "carrel is", "rounds", "failed"], [
        [r["name"], number(at(r, "us", "median")),
         f'{number(at(r, "us", "from"))} to {number(at(r, "us", "to"))}',
         number(at(r, "low", "median")),
         number(over(base[r["name"]], base.get("direct"))),
         number(over(base.get("carrel"), base[r["name"]]), " ×"),
         str(at(r, "us", "n") or 0), str(r["fails"])] for r in records])


def download_table(records):
    base = {r["name"]: at(r, "mb_s", "median") for r in records}
    return table(["", "MB/s", "p10", "p90", "carrel is", "rounds", "failed"], [
        [r["name"], *(number(at(r, "mb_s", what)) for what in ("median", "p10", "p90")),
         number(over(base.get("carrel"), base[r["name"]]), " ×"),
         str(at(r, "mb_s", "n") or 0), str(r["fails"])] for r in records])


def brokers_table(records):
    return table(["", "a box, KB", "its broker, KB", "MemAvailable, KB each", "processes"], [
        [r["name"], number(r["total_kb"]), number(r["broker_kb"]), number(r["available_kb"]),
         r["processes"]] for r in records])


def attempts_table(records):
    return table(["", "ms of an attempt", "of processor time", "a second"], [
        [r["name"], number(r["wall_ms"]), number(r["cpu_ms"]), number(r["per_s"])]
        for r in records])


DRAW = {"eval-attempt": attempts_table, "eval-jobs": attempts_table,
        "eval-clients": attempts_table, "flood": flood_table, "memory": memory_table, "egress-connect": connect_table,
        "egress-download": download_table}


def row_markdown(key, row):
    draw = DRAW.get(key, rounds_table)
    lines = ["", f"## {row['title']}", ""]
    if row.get("error"):
        return lines + [f"Not measured: {row['error']}"]
    if row["note"]:
        lines += [row["note"], ""]
    lines += [*brokers_table(row["memory"]), ""] if "memory" in row else []
    for label, records in row["tables"].items():
        lines += [f"**{label}**", ""] if label else []
        lines += [*draw(records), ""] if records else []
    for name, slope in row.get("slopes_us", {}).items():
        lines.append(f"- {name}: {number(slope)} µs per further bind")
    for name, levels in row.get("growth", {}).items():
        for level, growth in levels.items():
            lines.append(f"- {name}: with {level} alive {number(growth)} × as long as with none")
    lines += [f"- {line}" for line in row.get("lines", [])]
    return lines


def targets_markdown(verdicts):
    met = {None: "not measured", True: "yes", False: "**no**"}
    return ["", "## Targets", "", *table(["what", "target", "measured", "met"], [
        [v["what"], v["target"], number(v["measured"], v["unit"]), met[v["met"]]]
        for v in verdicts])]


def facts_markdown(facts):
    return [f"- {key}: {value}" for key, value in facts.items()]


def peers_markdown(peers, absent):
    rows = [[name, p["version"] or "–", p["note"]] for name, p in peers.items()]
    rows += [[name, "**absent**", why] for name, why in absent.items()]
    return ["", "## Who takes part", "", *table(["", "version", "how"], rows)]


def markdown(document):
    lines = ["# carrel beside its peers", "", *facts_markdown(document["facts"]),
             *targets_markdown(document["targets"])]
    for key, row in document["rows"].items():
        lines += row_markdown(key, row)
    lines += peers_markdown(document["peers"], document["absent"])
    return "\n".join(lines) + "\n"
