"""The measurements of a box's way out, and the little network they are made in.

    outside ── 93.184.215.1 ═ veth ═ 93.184.215.2 ── lab

Two network namespaces of our own: in "outside" a server has an address that looks public, in
"lab" the commands are started, as if that were the machine. Nothing leaves the machine. It
takes root to make them.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import time

import peers as peers_module
import report
import rows as rows_module
import stage as stage_module

SERVER, PORT = "93.184.216.34", "80"
FAR, NEAR = "93.184.215.1", "93.184.215.2"
CONNECTS, MEGABYTES = 200, 1000
CROWD = 1000
HOST_PORT = 18080
SETTLE = 2   # seconds, after which all have let go of what they do not need
SETUP_SOURCES = ("box/native/redirect.c", "base/fd.c", "base/fault.c", "base/mem.c",
                 "base/path.c", "base/str.c")
# srt's way out is a proxy in its environment, with a password; netload wants that apart.
BY_PROXY = ('p=${HTTPS_PROXY#http://}; export PROXY=${p#*@}; '
            'PROXY_USER=$(printf %s "${p%@*}" | base64 -w0); export PROXY_USER; exec "$@"')


# ---- the network ------------------------------------------------------------------

class Lab:
    """As a context manager: meanwhile all that the stage runs is in the lab."""

    def __init__(self, stage):
        self.stage, self.open = stage, contextlib.ExitStack()

    def __enter__(self):
        if not self.stage.root:
            raise RuntimeError("to make two network namespaces takes root")
        with contextlib.ExitStack() as self.open:
            far, lab = self._namespace(), self._namespace()
            self._connect(far, lab)
            self._serve(far)
            self.stage.inside = ["nsenter", "-t", str(lab), "--net", "--"]
            self.open.callback(setattr, self.stage, "inside", [])
            self.open = self.open.pop_all()
        return self

    def __exit__(self, *_):
        self.open.close()

    def _start(self, argv):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

        def end():
            process.kill()
            process.wait()

        self.open.callback(end)
        process.stdout.readline()
        return process.pid

    def _namespace(self):
        return self._start(["unshare", "--net", "--", "/bin/sh", "-c",
                            "ip link set lo up; echo ready; exec sleep 86400"])

    def _connect(self, far, lab):
        def ip(pid, *words):
            subprocess.run(["nsenter", "-t", str(pid), "--net", "--", "ip", *words], check=True)

        ip(far, "link", "add", "far0", "type", "veth", "peer", "name", "lab0", "netns", str(lab))
        ip(far, "addr", "add", f"{FAR}/30", "dev", "far0")
        ip(lab, "addr", "add", f"{NEAR}/30", "dev", "lab0")
        ip(far, "addr", "add", f"{SERVER}/32", "dev", "lo")
        ip(far, "link", "set", "far0", "up")
        ip(lab, "link", "set", "lab0", "up")
        ip(lab, "route", "add", "default", "via", FAR)

    def _serve(self, far):
        self.server = self._start(["nsenter", "-t", str(far), "--net", "--",
                                   str(self.stage.compiled("netload")), "serve", SERVER, PORT])

    @contextlib.contextmanager
    def apart(self):
        """The server on one processor, all that is measured on the others: it stands for another
        machine, with which no client shares any. Left to the scheduler it may do both."""
        every = sorted(os.sched_getaffinity(0))
        if len(every) < 2:
            raise RuntimeError("to keep the server apart takes two processors")
        os.sched_setaffinity(self.server, every[-1:])
        os.sched_setaffinity(0, every[:-1])
        try:
            yield
        finally:
            os.sched_setaffinity(0, every)
            os.sched_setaffinity(self.server, every)


# ---- who takes part ---------------------------------------------------------------

def direct(_context):
    return peers_module.Peer("direct", [], None, "no box")


def carrel(context):
    argv = [context.carrel, "run", "-y", "--network", "open", "--"]
    if "carrel" not in context.peers:
        raise peers_module.Absent("does not run")
    return peers_module.Peer("carrel", argv, None, "--network open")


def pasta_version(program):
    """Debian's does not know its own version; its package does."""
    ask = [program, "--version"]
    package = ["dpkg-query", "-W", "-f", "pasta ${Version}\n", "passt"]
    said = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    return package if "unknown" in said and shutil.which(package[0]) else ask


def pasta(_context):
    program = peers_module.tool("pasta")
    return peers_module.Peer("pasta", [program, "--config-net", "--"], pasta_version(program),
                             "pasta --config-net")


def slirp4netns(_context):
    program = peers_module.tool("slirp4netns")
    script = pathlib.Path(__file__).resolve().parent / "slirp.sh"
    return peers_module.Peer("slirp4netns", ["/bin/sh", script], [program, "--version"],
                             "unshare, slirp4netns --configure --mtu=65520")


def srt(context):
    if "srt" not in context.peers:
        raise peers_module.Absent("not installed, or does not run")
    base = context.peers["srt"]
    at = base.prefix.index("--settings") + 1
    settings = json.loads(pathlib.Path(base.prefix[at]).read_text(encoding="utf-8"))
    settings["network"]["allowedDomains"] = [SERVER]
    path = context.stage.base / "srt-egress.json"
    path.write_text(json.dumps(settings))
    prefix = [*base.prefix[:at], path, *base.prefix[at + 1:]]
    return peers_module.Peer("srt", prefix, base.version_argv, "by its proxy, with CONNECT")


MAKERS = {"direct": direct, "carrel": carrel, "pasta": pasta, "slirp4netns": slirp4netns,
          "srt": srt}


def load_command(peer, program, *words):
    argv = [str(program), *map(str, words)]
    if peer.name == "srt":
        argv = ["/bin/sh", "-c", BY_PROXY, "sh", *argv]
    return peer.command(*argv)


def place(context, peer):
    """A project of its own for each, with the client in it; where the command runs."""
    peer.cwd = context.stage.base / f"project-egress-{peer.name}"
    if not peer.cwd.exists():
        context.stage.twin(f"egress-{peer.name}")
        shutil.copy(context.stage.compiled("netload"), peer.cwd / "netload")
        (peer.cwd / "netload").chmod(0o755)
    return peer.cwd / "netload"


def find(context):
    """({name: Peer} that reach the server, lines about who takes part and who does not)."""
    working, lines = {}, []
    for name, make in MAKERS.items():
        try:
            peer = make(context)
            program = place(context, peer)
            ran = context.stage.run(load_command(peer, program, "connect", SERVER, PORT, 1),
                                    cwd=peer.cwd)
            if ran.returncode:
                raise peers_module.Absent(f"exit {ran.returncode}: "
                                          + peers_module.last_line(ran.stderr))
            version = peers_module.versions_line(context.stage, peer)
            working[name] = peer
            lines.append(f"{name}: {', '.join(filter(None, (version, peer.note)))}")
        except (peers_module.Absent, OSError, subprocess.SubprocessError) as why:
            lines.append(f"{name} is **absent**: {why}")
    return working, lines


# ---- start ------------------------------------------------------------------------

def egress_start(context):
    with Lab(context.stage):
        found, lines = find(context)
        plain = {"plain": ["/bin/true"], **{n: context.peers[n].command("/bin/true")
                 for n in ("bwrap", "bwrap, 25 binds") if n in context.peers}}
        if "carrel" in found:
            plain["carrel, none"] = [context.carrel, "run", "-y", "--network", "none", "--",
                                     "/bin/true"]
            plain["carrel, allow"] = [context.carrel, "run", "-y", "--allow", "example.org",
                                      "--", "/bin/true"]
            plain["carrel, a port"] = [context.carrel, "run", "-y", "--network", "open", "--port",
                                       f"{HOST_PORT}:80", "--", "/bin/true"]
        plain |= {n: p.command("/bin/true") for n, p in found.items() if n != "direct"}
        records = rows_module.timed(context, plain)
    return {"title": "Cold start of a box with a way out, to exit",
            "note": "`carrel` is `--network open`: its broker is executed when the box first asks "
                    "for anything, which `true` does not. With a port of the host it is executed "
                    "and shut in at once. bwrap has no network at all.",
            "tables": {"": list(records.values())}, "lines": lines}


# ---- connect and download ---------------------------------------------------------

def side_by_side(context, found, rounds, *words):
    """What the client said, by peer, a list: in each round all of them, shuffled."""
    said = {name: [] for name in found}
    fails = dict.fromkeys(found, 0)
    for _ in range(rounds):
        for name in random.sample(list(found), len(found)):
            peer = found[name]
            ran = context.stage.run(load_command(peer, peer.cwd / "netload", *words),
                                    cwd=peer.cwd)
            try:
                said[name].append(json.loads(ran.stdout))
            except ValueError:
                fails[name] += 1
    return said, fails


def spread(values):
    """Of the rounds: median, where that is at 95 % (by ranks), the best and the worst tenth."""
    values, n = sorted(values), len(values)
    if not n:
        return {}
    off = round(0.98 * n ** 0.5)
    return {"median": statistics.median(values), "p10": values[n // 10], "p90": values[n * 9 // 10],
            "from": values[max(n // 2 - off, 0)], "to": values[min(n // 2 + off, n - 1)], "n": n}


def egress_connect(context):
    # In each the scheduler has put them somewhere once, and that is what it hangs on: 85 to
    # 180 µs for one program. It takes many to know the median within a twentieth.
    rounds = 4 if context.quick else context.rounds * 3
    words = ["connect", SERVER, PORT, CONNECTS]
    with Lab(context.stage) as lab:
        found, lines = find(context)
        with lab.apart():
            apart = side_by_side(context, found, rounds, *words)
        together = side_by_side(context, found, rounds, *words)

    def records(said, fails):
        return [{"name": n, "fails": fails[n], "us": spread([s["median"] for s in said[n]]),
                 "low": spread([s["p10"] for s in said[n]])} for n in found]

    return {"title": "A connection: connect, and one byte there and back",
            "note": f"{rounds} rounds of {CONNECTS} connections each, one after the other by one "
                    "client: medians of the rounds' medians, and of their p10. The server stands "
                    "for another machine, so it has a processor of its own, and client, broker or "
                    "proxy share the rest. Below that once more with all of them where the "
                    "scheduler puts them: a direct client and its server then often share one.",
            "tables": {report.APART: records(*apart), report.TOGETHER: records(*together)},
            "lines": lines}


def egress_download(context):
    rounds = 2 if context.quick else max(context.rounds // 6, 3)
    with Lab(context.stage):
        found, lines = find(context)
        said, fails = side_by_side(context, found, rounds, "download", SERVER, PORT, MEGABYTES)
    records = [{"name": n, "fails": fails[n],
                "mb_s": spread([s["bytes"] / s["seconds"] / 1e6 for s in said[n]])}
               for n in found]
    return {"title": "A download", "note": f"{rounds} × {MEGABYTES} MB of zeros, one connection.",
            "tables": {"": records}, "lines": lines}


# ---- set-up -----------------------------------------------------------------------

def egress_setup(context):
    program = context.stage.compiled("egress-setup", SETUP_SOURCES)
    ran = context.stage.run([program, str(context.rounds * 5)])
    if ran.returncode:
        raise RuntimeError(peers_module.last_line(ran.stderr))
    said = json.loads(ran.stdout)
    records = [{"name": name, "wall_us": said[key], "fails": 0} for key, name in
               (("namespace", "the namespace, with loopback up"),
                ("egress", "the namespace, with a way out"))]
    return {"title": "Set-up of a box's network", "note":
            "Loopback, or that with addresses, routes, rules and the broker's sockets by "
            "carrel's own code, in a fresh network namespace; the target is for the difference. "
            "In a box all of it is done beside the mounts.",
            "tables": {"": records},
            "egress_us": said["egress"]["median"] - said["namespace"]["median"]}


# ---- memory -----------------------------------------------------------------------

def kind_of(pid, name):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    return "broker" if words[0] == b"carrel-broker" else name


def weigh_kinds(crowd):
    """Kind -> (how many, PSS in KB of all), of all that is not the payload."""
    time.sleep(SETTLE)
    weights, parents = {}, stage_module.process_table()
    for pid, name in crowd.below().items():
        if name == "sleep" or "podman" in name:
            continue
        kind = kind_of(pid, name)
        # Who is in its parent's memory (the janitor is) has been weighed with it.
        shared = rows_module.share_memory(pid, parents[pid][0])
        count, total = weights.get(kind, (0, 0))
        weights[kind] = (count + 1, total + (0 if shared else rows_module.pss_kb(pid)))
    return weights


def available_kb():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))


def crowd_of(context, argv, level):
    """One crowd: what it weighs, and what one more costs to start."""
    start = {"plain": ["/bin/true"], "carrel": [*argv[:argv.index("--") + 1], "/bin/true"]}
    with rows_module.Crowd(context, argv) as crowd:
        before, none = available_kb(), rows_module.timed(context, start)
        crowd.grow_to(level, patience=600)
        weights, used = weigh_kinds(crowd), before - available_kb()
        many = rows_module.timed(context, start)
    return weights, used, none, many


# What is refused without a question to anybody wakes the broker, too.
PAYLOAD = {"none": rows_module.SLEEP,
           "open": ["bash", "-c", f": </dev/tcp/10.0.0.1/80; exec {' '.join(rows_module.SLEEP)}"]}


def broker_memory(context):
    if "carrel" not in context.peers:
        raise RuntimeError("there is no carrel")
    records, tables, growth = [], {}, {}
    levels = (1, 8, 100 if context.quick else CROWD)
    for mode in ("none", "open"):
        argv = [context.carrel, "run", "-y", "--network", mode, "--", *PAYLOAD[mode]]
        for level in levels:
            weights, used, none, many = crowd_of(context, argv, level)
            total = sum(kb for _, kb in weights.values())
            count, broker = weights.get("broker", (0, 0))
            records.append({"name": f"{mode}, {level} alive", "total_kb": total / level,
                            "broker_kb": broker / count if count else None,
                            "available_kb": used / level if level > 8 else None,
                            "processes": " + ".join(f"{n / level:g} {kind}" for kind, (n, _)
                                                    in sorted(weights.items()))})
        for label, table in ((0, none), (level, many)):
            tables[f"{label} boxes with network {mode} alive"] = list(table.values())
        growth[f"carrel, {mode}"] = {level: rows_module.ratio(
            *(rows_module.beside_plain(table, "carrel") for table in (many, none)))}
    return {"title": "Brokers at rest", "note":
            "PSS of all processes of a box except the payload, of its broker alone, and by how "
            "much MemAvailable fell (which counts the kernel's part and the payload, and whatever "
            "else happened on the machine).",
            "memory": records, "tables": tables, "growth": growth}


ROWS = {"egress-start": egress_start, "egress-connect": egress_connect,
        "egress-download": egress_download, "egress-setup": egress_setup,
        "broker-memory": broker_memory}
