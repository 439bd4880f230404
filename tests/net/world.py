"""What is outside in the tests of compatibility: servers that ordinary programs speak to.

    www.example.org   HTTP and HTTPS on both families; echo on port 7
    v4.example.org, v6.example.org   the same, with addresses of one family
    git.example.org   git by HTTP, HTTPS and ssh
    db.example.org    PostgreSQL with TLS
"""

import base64
import glob
import hashlib
import mmap
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

import lib

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
WWW = ("93.184.216.34", "2606:2800:220::34")
GIT, DB = "93.184.216.22", "93.184.216.54"
BLOCK = 1 << 26
AT_ONCE = 200
IDLE = 20  # seconds in which a stream says nothing


class World:
    def __init__(self, lab):
        self.lab = lab
        self.blocks = os.memfd_create("blocks")
        os.write(self.blocks, os.urandom(1 << 20))
        for i in range(1, BLOCK >> 20):
            same = os.pread(self.blocks, (1 << 20) - 8, 8)
            os.pwrite(self.blocks, struct.pack(">Q", i) + same, i << 20)
        self.barrier = threading.Barrier(AT_ONCE)
        self.routes = {"/big/": self.big, "/upload": self.upload, "/events": self.events,
                       "/ws": self.web_socket, "/together": self.together, "/git/": self.git}
        self._names()
        self._web()
        self._tools()
        self._make_repos()
        self._start_sshd()
        self._start_postgres()

    def _names(self):
        self.lab.dns({
            "www.example.org": WWW,
            "v4.example.org": WWW[:1],
            "v6.example.org": WWW[1:],
            "git.example.org": [GIT],
            "db.example.org": [DB],
        })  # fmt: skip

    def _web(self):
        names = ["www.example.org", "v4.example.org", "v6.example.org"]
        for address in WWW:
            self.lab.http(address, 80, routes=self.routes)
            self.lab.http(address, 443, tls=names, routes=self.routes)
            self.lab.tcp(address, 7, _echo)
        self.lab.http(GIT, 80, routes=self.routes)
        self.lab.http(GIT, 443, tls=["git.example.org"], routes=self.routes)

    def _tools(self):
        """Programs that are compiled; the box sees them in /tools."""
        self.tools = lib.make_dir(self.lab.top / "tools")
        for path in PROGRAMS.iterdir():
            shutil.copy(path, self.tools)
        shutil.copy(self.lab.ca, self.tools / "ca.pem")
        run = {"cwd": self.tools, "check": True, "timeout": 300}
        subprocess.run(["musl-gcc", "-static", "-O1", "-o", "lookup-musl", "lookup.c"], **run)
        subprocess.run(["cc", "-O1", "-o", "lookup-glibc", "lookup.c"], **run)
        # What Go compiles of its own library takes long: it is kept.
        for cgo, name in (("0", "lookup"), ("1", "fetch")):
            env = {"PATH": os.environ["PATH"], "HOME": str(self.tools), "GO111MODULE": "off",
                   "CGO_ENABLED": cgo, "GOCACHE": str(lib.kept("go"))}  # fmt: skip
            subprocess.run(["go", "build", "-o", f"{name}-go", f"{name}.go"], env=env, **run)
        subprocess.run(["javac", "-d", ".", "Fetch.java"], **run)
        subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "test", "-file", "ca.pem",
                        "-keystore", "trust.p12", "-storepass", "changeit"],
                       capture_output=True, **run)  # fmt: skip

    # ---- HTTP ----

    def big(self, handler):
        """That many bytes."""
        size = int(handler.path.split("/")[2])
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        handler.wfile.flush()
        with os.fdopen(os.dup(self.blocks), "rb") as file:
            for start, count in _pieces(size):
                handler.connection.sendfile(file, start, count)

    def sum_of_big(self, size):
        """As b2sum(1) has it, which is the fastest of those that are everywhere."""
        whole = hashlib.blake2b()
        with mmap.mmap(self.blocks, BLOCK, prot=mmap.PROT_READ) as blocks:
            for start, count in _pieces(size):
                whole.update(memoryview(blocks)[start : start + count])
        return whole.hexdigest()

    def upload(self, handler):
        """The sum of what was sent goes to the log and back."""
        whole, left = hashlib.sha256(), int(handler.headers["Content-Length"])
        if handler.headers.get("Expect"):
            handler.send_response_only(100)
            handler.end_headers()
        while left:
            block = handler.rfile.read(min(left, 1 << 20))
            whole.update(block)
            left -= len(block)
        handler.entry.sum = whole.hexdigest()
        handler.reply(handler.entry.sum + "\n")

    def together(self, handler):
        """Nobody is answered before all have asked."""
        self.barrier.wait(30)
        handler.reply("all are here\n")

    def events(self, handler):
        """Server-sent events: one, a long silence, another, the end."""
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for wait, word in ((0, "first"), (IDLE, "last")):
            time.sleep(wait)
            handler.wfile.write(f"data: {word} {time.time()}\n\n".encode())
            handler.wfile.flush()
        handler.close_connection = True

    def web_socket(self, handler):
        """Echoes messages (RFC 6455)."""
        key = handler.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        handler.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", accept)):  # fmt: skip
            handler.send_header(name, value)
        handler.end_headers()
        handler.close_connection = True
        whole, kind = b"", 0
        while True:
            final, code, data = _read_frame(handler.rfile)
            if code == 8:
                _write_frame(handler.wfile, 8, data)
                handler.entry.closed = True
                return
            kind = code or kind
            whole += data
            if final:
                handler.entry.echoed = len(whole)
                _write_frame(handler.wfile, kind, whole)
                whole = b""

    # ---- git ----

    def git(self, handler):
        """git-http-backend, as a web server would run it."""
        path, _, query = handler.path.removeprefix("/git").partition("?")
        body = handler.body()
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.repos),
               "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": handler.command, "REMOTE_USER": "tester",
               "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING":
               handler.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": handler.headers.get("Git-Protocol", "")}  # fmt: skip
        argv = lib.as_user(["git", "http-backend"])
        done = subprocess.run(argv, input=body, env=env, capture_output=True, timeout=60,
                              check=False)  # fmt: skip
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        code = int(fields.pop("Status", "200").split()[0])
        handler.reply(content, code, fields.pop("Content-Type", "text/plain"), fields)

    def _make_repos(self):
        self.repos = lib.make_dir(self.lab.top / "repos")
        work = lib.make_dir(self.lab.top / "work")
        lib.make_file(work / "README", "a file of the repository\n")
        lib.make_file(work / "large", os.urandom(3000000))
        lib.git("init", "-q", "-b", "main", cwd=work)
        lib.git("add", "-A", cwd=work)
        who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
        lib.git(*who, "commit", "-q", "-m", "one", cwd=work)
        lib.git("clone", "-q", "--bare", work, self.repos / "one.git", cwd=self.lab.top)
        lib.git("config", "http.receivepack", "true", cwd=self.repos / "one.git")

    # ---- daemons ----

    def _start_sshd(self):
        lab = self.lab
        for name in ("host", "user"):
            path = lab.top / f"ssh-{name}"
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]
            lib.succeeded(lab.outside(argv))
        public = (lab.top / "ssh-user.pub").read_text()
        lib.make_file(lab.top / "authorized", public, mode=0o600)
        config = lib.make_file(lab.top / "sshd_config", f"""
ListenAddress {GIT}
HostKey {lab.top}/ssh-host
AuthorizedKeysFile {lab.top}/authorized
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
LogLevel VERBOSE
""")
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
        lab.daemon([sshd, "-D", "-e", "-f", config], log="sshd.log")
        log = lab.top / "sshd.log"
        lib.wait_for(lambda: "listening" in log.read_text(), "sshd")
        shutil.copy(lab.top / "ssh-user", self.tools / "key")
        host = (lab.top / "ssh-host.pub").read_text()
        (self.tools / "known_hosts").write_text(f"git.example.org {host}")
        lib.give(self.tools / "key")

    def _start_postgres(self):
        lab = self.lab
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")) or [shutil.which("initdb")]
        assert found[-1], "there is no PostgreSQL"
        binaries, data = pathlib.Path(found[-1]).parent, lab.top / "postgres"
        lib.succeeded(lab.outside([binaries / "initdb", "-D", data, "-A", "trust", "--no-sync",
                                   "-E", "UTF8", "--locale", "C", "-U", "tester"]))  # fmt: skip
        stem = lab.context(["db.example.org"]).stem
        for end in ("key", "pem"):
            shutil.copy(f"{stem}.{end}", data / f"server.{end}")
            (data / f"server.{end}").chmod(0o600)
            lib.give(data / f"server.{end}")
        with open(data / "pg_hba.conf", "a", encoding="ascii") as file:
            file.write("hostssl all all 0.0.0.0/0 trust\n")
        settings = {"listen_addresses": DB, "ssl": "on", "ssl_cert_file": "server.pem",
                    "ssl_key_file": "server.key", "unix_socket_directories": "",
                    "fsync": "off", "log_connections": "on"}  # fmt: skip
        argv = [binaries / "postgres", "-D", data]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        lab.daemon(argv, log="postgres.log")
        log = lab.top / "postgres.log"
        lib.wait_for(lambda: "ready to accept" in log.read_text(), "PostgreSQL")


def _pieces(size):
    """Parts of the blocks that make so many bytes, each with another beginning."""
    for start in range(0, BLOCK, 4099):
        if size <= 0:
            return
        yield start, min(size, BLOCK - start)
        size -= BLOCK - start


def _echo(connection, entry):
    """Say back what is said, until the end."""
    entry.size = 0
    while block := connection.recv(65536):
        entry.size += len(block)
        connection.sendall(block)
    connection.shutdown(socket.SHUT_WR)


def _read_frame(stream):
    first, second = stream.read(2)
    size = second & 127
    if size > 125:
        size = struct.unpack(">H" if size == 126 else ">Q", stream.read(2 if size == 126 else 8))[0]
    mask = stream.read(4)
    data = stream.read(size)
    keys = (mask * (size // 4 + 1))[:size]
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(keys, "big")
    return bool(first & 128), first & 15, mixed.to_bytes(size, "big")


def _write_frame(stream, code, data):
    size = len(data)
    head = bytes([128 | code])
    if size < 126:
        head += bytes([size])
    elif size < 65536:
        head += struct.pack(">BH", 126, size)
    else:
        head += struct.pack(">BQ", 127, size)
    stream.write(head + data)
    stream.flush()
