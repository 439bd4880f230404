"""A small Internet on this machine: a network namespace to start carrel in, and one behind it.

    lab = Lab()
    lab.dns({"example.org": ["93.184.216.34", "2606:2800:220::34"]})
    lab.http("93.184.216.34", 80)
    lab.http("93.184.216.34", 443, tls=["example.org"])
    done = lab.run(["run", "-y", "--allow", "example.org", "--", "curl", "http://example.org/"])
    assert lab.heard("http", host="example.org")
    lab.close()

The outside has every address there is, so a server may be given any, public, private or a
cloud's own. In the lab /etc/resolv.conf names our DNS server, and the bundle of certificates
has our CA in it (also in lab.ca); nothing of the machine is changed. The servers' threads are
the tests' own, their sockets are from outside (far.py). What they hear is in lab.log.

As root, carrel is started by a normal user, as in all tests. As anybody else the namespaces are
those of a user namespace, with the same user in it and no capabilities.
"""

import contextlib
import http.server
import ipaddress
import json
import os
import pathlib
import pwd
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import types

import lib

HERE = pathlib.Path(__file__).resolve().parent
NAMESERVER = "93.184.216.53"
OWN = ("93.184.215.2", "2606:2800:215::2")  # addresses of the machine where carrel runs
USER = "tester"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
TYPES = {1: "A", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV",
         64: "SVCB", 65: "HTTPS", 255: "ANY"}  # fmt: skip


class NoLab(Exception):
    """This machine does not let us make one."""


class Name(types.SimpleNamespace):
    """How our DNS server answers for a name, where a list of addresses does not say enough.

    addresses; rcode; delay in seconds; cut: over UDP the answer is "ask over TCP"; silent: no
    answer at all; cname: another name that has the addresses.
    """

    def __init__(self, addresses=(), rcode=0, delay=0, cut=False, silent=False, cname=None, ttl=60):
        super().__init__(addresses=list(addresses), rcode=rcode, delay=delay, cut=cut,
                         silent=silent, cname=cname, ttl=ttl)  # fmt: skip


class Lab:
    def __init__(self):
        self.top = lib.make_dir(lib.root() / f"lab-{time.monotonic_ns()}")
        self.log = []  # SimpleNamespace(kind="dns"|"tcp"|"http"|..., ...)
        self.names = {}
        self._open = contextlib.ExitStack()
        self._asking = threading.Lock()
        self._contexts = {}
        try:
            self._make_ca()
            self._start()
            self.serve_dns(NAMESERVER)
        except BaseException:
            self.close()
            raise

    def close(self):
        """End all servers and processes; the namespaces go with them."""
        self._open.close()

    # ---- setting up ----

    def _write(self, name, text, mode=0o644):
        return str(lib.make_file(self.top / name, text, mode=mode))

    def _make_ca(self):
        self.ca = str(self.top / "ca.pem")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", "2", "-subj", "/CN=carrel test CA", "-keyout", "ca.key",
                      "-out", "ca.pem")  # fmt: skip
        known = pathlib.Path(BUNDLE).read_text() if os.path.exists(BUNDLE) else ""
        self.trust = self._write("trust.pem", known + pathlib.Path(self.ca).read_text())

    def _openssl(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.top, capture_output=True, timeout=60,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr

    def _passwd(self):
        text = pathlib.Path("/etc/passwd").read_text()
        try:
            self.user = pwd.getpwuid(lib.UID).pw_name
        except KeyError:
            self.user = USER
            text += f"{USER}:x:{lib.UID}:{lib.GID}::{self.top}:/bin/sh\n"
        return self._write("passwd", text)

    def _start(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(30)
        self._control = self._open.enter_context(ours)
        namespaces = ["--net", "--mount"]
        if not lib.ROOT:
            namespaces += ["--user", "--map-current-user", "--keep-caps"]
        files = [self._write("resolv.conf", f"nameserver {NAMESERVER}\n"),
                 self._write("hosts", pathlib.Path("/etc/hosts").read_text()),
                 self._passwd()]  # fmt: skip
        argv = ["unshare", *namespaces, "--", sys.executable, HERE / "far.py",
                str(theirs.fileno()), *files, self.trust]  # fmt: skip
        with theirs, open(self.top / "far.log", "wb") as log:
            self._far = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         pass_fds=[theirs.fileno()], start_new_session=True)
        self._open.callback(self._end, self._far)
        self._open.callback(ours.close)
        said = ours.recv(65536)
        if not said:
            raise NoLab((self.top / "far.log").read_text()[-1000:])
        self._lab = json.loads(said)["lab"]

    @staticmethod
    def _end(process):
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _enter(self, pid):
        user = [] if lib.ROOT else ["--user", "--preserve-credentials"]
        return ["nsenter", "-t", str(pid), *user, "--net", "--mount", "--"]

    # ---- running ----

    def _command(self, argv, pid, cwd):
        drop = lib.as_user(["env", "-C", str(cwd or lib.current.cwd), *map(str, argv)])
        return self._enter(pid) + drop

    def bare(self, argv, cwd=None, **how):
        """A program in the lab as the user, in no box: the control."""
        return lib.execute(self._command(argv, self._lab, cwd), user=False, **how)

    def run(self, args, **how):
        """carrel in the lab, to its end."""
        return self.bare([lib.program(), *args], **how)

    def start(self, args, cwd=None, env=None, **more):
        """carrel in the lab; ends with the test."""
        for stream in ("stdin", "stdout", "stderr"):
            more.setdefault(stream, subprocess.PIPE)
        process = subprocess.Popen(
            self._command([lib.program(), *args], self._lab, cwd), start_new_session=True,
            bufsize=0, env=lib.environment(env), **more)  # fmt: skip
        lib.started.append(process)
        return process

    def daemon(self, argv, cwd=None, log="daemon.log", **more):
        """A server of its own, outside, as the user; ends with the lab."""
        with open(self.top / log, "ab") as file:
            process = subprocess.Popen(
                self._command(argv, self._far.pid, cwd or self.top), stdin=subprocess.DEVNULL,
                stdout=file, stderr=file, start_new_session=True, **more)  # fmt: skip

        def end():
            process.terminate()
            self._end(process)

        self._open.callback(end)
        return process

    def outside(self, argv, cwd=None, **how):
        """A program outside, to its end."""
        argv = self._command(argv, self._far.pid, cwd or self.top)
        return lib.execute(argv, user=False, cwd=self.top, **how)

    # ---- servers ----

    def listen(self, address, port, kind=socket.SOCK_STREAM):
        """A socket that is bound outside; TCP listens."""
        ask = {"address": address, "port": port, "type": int(kind)}
        with self._asking:
            self._control.send(json.dumps(ask).encode())
            said, fds, _, _ = socket.recv_fds(self._control, 65536, 1)
        if not fds:
            raise OSError(f"{address} port {port}: {json.loads(said)['error']}")
        made = socket.socket(fileno=fds[0])
        if kind == socket.SOCK_STREAM:
            made.listen(1024)
        self._open.callback(made.close)
        return made

    def ip(self, *words, near=False):
        """A command of ip(8) outside, or near: where carrel is started."""
        ask = {"ip": words, "near": near}
        with self._asking:
            self._control.send(json.dumps(ask).encode())
            said = json.loads(self._control.recv(65536))
        assert not said, (words, said)

    @contextlib.contextmanager
    def etc(self, name, text):
        """Another text of resolv.conf or hosts, for a carrel that is started meanwhile."""
        before = (self.top / name).read_text()
        self._write(name, text)
        try:
            yield
        finally:
            self._write(name, before)

    def blackhole(self, network):
        """Addresses that are silent: neither an answer nor a refusal."""
        self.ip("route", "replace", "blackhole", network, "table", "local")

    def _thread(self, work, *args):
        threading.Thread(target=work, args=args, daemon=True).start()

    def note(self, kind, **what):
        entry = types.SimpleNamespace(kind=kind, **what)
        self.log.append(entry)
        return entry

    def heard(self, kind, **match):
        """What the servers heard of that kind."""
        return [e for e in list(self.log)
                if e.kind == kind and all(getattr(e, k, None) == v for k, v in match.items())]  # fmt: skip

    def clear(self):
        self.log.clear()

    def tcp(self, address, port, handler=None):
        """A TCP server; handler(connection, entry), in a thread. By default it greets."""
        listener = self.listen(address, port)

        def one(connection, peer):
            entry = self.note("tcp", address=address, port=port, peer=peer[0], got=b"")
            with connection, contextlib.suppress(OSError):
                connection.settimeout(lib.TIMEOUT)
                (handler or _greet)(connection, entry)

        def accept():
            while True:
                try:
                    self._thread(one, *listener.accept())
                except OSError:
                    return

        self._thread(accept)
        return listener

    def udp(self, address, port):
        """Notes datagrams."""
        receiver = self.listen(address, port, socket.SOCK_DGRAM)

        def receive():
            with contextlib.suppress(OSError):
                while True:
                    got, peer = receiver.recvfrom(65536)
                    self.note("udp", address=address, port=port, peer=peer[0], got=got)

        self._thread(receive)
        return receiver

    def context(self, names):
        """TLS with a certificate of our CA for these names."""
        key = tuple(names)
        if key not in self._contexts:
            stem = f"tls{len(self._contexts)}"
            alt = ",".join(f"{'IP' if _is_address(n) else 'DNS'}:{n}" for n in names)
            self._write(f"{stem}.ext", f"subjectAltName={alt}\n")
            self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                          "-subj", f"/CN={names[0]}", "-keyout", f"{stem}.key", "-out",
                          f"{stem}.csr")  # fmt: skip
            self._openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                          "-set_serial", str(time.monotonic_ns()), "-days", "2", "-extfile",
                          f"{stem}.ext", "-out", f"{stem}.pem")  # fmt: skip
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.load_cert_chain(self.top / f"{stem}.pem", self.top / f"{stem}.key")
            made.names, made.stem = key, self.top / stem
            self._contexts[key] = made
        return self._contexts[key]

    def http(self, address, port, tls=None, routes=None, handler=None):
        """An HTTP server; with the names in tls, HTTPS. See Handler for routes."""
        server = _Server(self, self.listen(address, port), tls and self.context(tls), routes)
        server.RequestHandlerClass = handler or Handler
        self._thread(server.serve_forever, 0.1)
        self._open.callback(server.shutdown)
        return server

    # ---- names ----

    def dns(self, names):
        """Names and their addresses, or Name(...); more than before."""
        for name, what in names.items():
            self.names[name.lower()] = what if isinstance(what, Name) else Name(what)

    def serve_dns(self, address):
        """All servers give the same answers."""
        datagrams = self.listen(address, 53, socket.SOCK_DGRAM)

        def receive():
            with contextlib.suppress(OSError):
                while True:
                    self._thread(answer, *datagrams.recvfrom(65536))

        def answer(question, peer):
            said = self._answer(question, "udp", peer)
            with contextlib.suppress(OSError):
                if said:
                    datagrams.sendto(said, peer)

        def stream(connection, _):
            while True:
                size = struct.unpack(">H", _exactly(connection, 2))[0]
                said = self._answer(_exactly(connection, size), "tcp", ("tcp",))
                if said:
                    connection.sendall(struct.pack(">H", len(said)) + said)

        self._thread(receive)
        self.tcp(address, 53, stream)

    def _known(self, name):
        """The name's entry, or that of a `*.` above it."""
        if name in self.names:
            return self.names[name]
        labels = name.split(".")
        above = ("*." + ".".join(labels[i:]) for i in range(1, len(labels)))
        return next((self.names[a] for a in above if a in self.names), None)

    def _answer(self, question, via, peer):
        try:
            name, kind, end = _parse(question)
        except (IndexError, struct.error, UnicodeDecodeError):
            self.note("dns", name=None, type=None, via=via, peer=peer[0])
            return None
        self.note("dns", name=name, type=TYPES.get(kind, str(kind)), via=via, peer=peer[0])
        known = self._known(name) or Name(rcode=3)
        time.sleep(known.delay)
        if known.silent:
            return None
        cut = known.cut and via == "udp"
        records = [] if cut or known.rcode else _records(known, kind)
        flags = 0x8580 | (0x200 if cut else 0) | known.rcode
        head = question[:2] + struct.pack(">5H", flags, 1, len(records), 0, 0)
        return head + question[12:end] + b"".join(records)


# ---- DNS messages -----------------------------------------------------------------------


def _parse(message):
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("ascii"))
        at += 1 + message[at]
    return ".".join(labels).lower(), struct.unpack(">H", message[at + 1 : at + 3])[0], at + 5


def encode_name(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


def _records(known, kind):
    owner, records = b"\xc0\x0c", []
    if known.cname:
        target = encode_name(known.cname)
        records.append(owner + struct.pack(">HHIH", 5, 1, known.ttl, len(target)) + target)
        owner = target
    for text in known.addresses:
        packed = ipaddress.ip_address(text).packed
        if kind == (1 if len(packed) == 4 else 28):
            records.append(owner + struct.pack(">HHIH", kind, 1, known.ttl, len(packed)) + packed)
    return records


# ---- TCP and HTTP -----------------------------------------------------------------------


def _is_address(text):
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False


def _exactly(connection, size):
    got = b""
    while len(got) < size:
        block = connection.recv(size - len(got))
        if not block:
            raise OSError("the end")
        got += block
    return got


def _greet(connection, entry):
    """Say who we are, and note what is said to us."""
    connection.sendall(f"hello from {entry.address} port {entry.port}\n".encode())
    while block := connection.recv(65536):
        entry.got += block


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, lab, listener, context, routes):
        self.address, self.port = listener.getsockname()[:2]
        super().__init__((self.address, self.port), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.lab, self.context, self.routes = lab, context, routes or {}
        self.server_name, self.server_port = self.address, self.port
        if context:
            context.sni_callback = lambda s, name, _: setattr(s, "asked_for", name)

    def finish_request(self, request, client_address):
        """In the connection's own thread: so TLS is begun here."""
        self.lab.note("tcp", address=self.address, port=self.port, peer=client_address[0])
        request.settimeout(lib.TIMEOUT)
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.context:
            self.RequestHandlerClass(request, client_address, self)
            return
        with self.context.wrap_socket(request, server_side=True) as wrapped:
            self.RequestHandlerClass(wrapped, client_address, self)

    def shutdown_request(self, request):
        if request.fileno() >= 0:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        self.lab.note("error", address=self.address, port=self.port, error=sys.exc_info()[1])


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the route with the longest beginning of the path; without one it greets.

    A route is a function of the handler; reply() is what most of them need.
    """

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _any(self):
        host = self.headers.get("Host", "").rpartition("]")[2].partition(":")[0]
        self.entry = self.server.lab.note(
            "http", host=host, method=self.command, path=self.path, headers=self.headers,
            address=self.server.address, port=self.server.port, peer=self.client_address[0],
            sni=getattr(self.connection, "asked_for", None),
            tls=isinstance(self.connection, ssl.SSLSocket))  # fmt: skip
        found = max((r for r in self.server.routes if self.path.startswith(r)), key=len,
                    default=None)  # fmt: skip
        if found is not None:
            self.server.routes[found](self)
        else:
            self.reply(f"hello from {host}\n")

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = _any

    def body(self):
        """What was sent, whichever way it came."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        got = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            got += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return got

    def reply(self, content, code=200, kind="text/plain", headers=None):
        content = content.encode() if isinstance(content, str) else content
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": len(content),
                            **(headers or {})}.items():  # fmt: skip
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
