"""Server-sent events that last for minutes, with more than a minute of silence in them."""

import threading
import time

import lib
from lab import Lab

HOST, ADDRESS = "minutes.example.org", "93.184.219.1"
SILENCE = 70
TIMES = [*range(0, 45, 5), *range(40 + SILENCE, 166, 5)]  # seconds at which an event is sent
ALLOW = ["--allow", HOST]

# What arrived and when, and how the client ended: 0 is a whole stream.
CLIENT = r"""
stamp='import sys, time
for line in sys.stdin.buffer:
    if line.startswith(b"data: "):
        print(sys.argv[1], line.decode().split()[1], time.time(), flush=True)'
one() {
    curl -sSN --cacert "$SSL_CERT_FILE" "$1://HOST/PATH" | python3 -c "$stamp" "$1"
    echo "$1 ended ${PIPESTATUS[0]}"
}
one http & one https & wait
"""


def _events(handler, times, whole=True):
    """Chunked, so that a client knows a stream that was cut from one that ended."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    began = time.monotonic()
    for i, at in enumerate(times):
        time.sleep(max(0, began + at - time.monotonic()))
        _chunk(handler, f"data: {i} {time.time()}\n\n")
    if whole:
        _chunk(handler, "")
    handler.close_connection = True


def _chunk(handler, text):
    handler.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
    handler.wfile.flush()


class Stream:
    """A box in which a client listens, plain and with TLS, in a lab of its own."""

    def __init__(self):
        self.lab = Lab()
        self.lab.dns({HOST: [ADDRESS]})
        routes = {"/long": lambda h: _events(h, TIMES),
                  "/cut": lambda h: _events(h, [0, 1], whole=False)}  # fmt: skip
        self.lab.http(ADDRESS, 80, routes=routes)
        self.lab.http(ADDRESS, 443, tls=[HOST], routes=routes)
        top = lib.make_dir(lib.root() / "minutes")
        self.project, self.home = lib.make_dir(top / "project"), lib.make_dir(top / "home")
        (self.project / "ca.pem").write_bytes(open(self.lab.ca, "rb").read())
        self.began = time.monotonic()
        self.process = self.lab.start(self.command("minutes", "long"), **self.how())
        lib.started.remove(self.process)  # no test ends it but the last
        # Read from now on: it must not wait for us.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def how(self):
        return {"cwd": self.project, "env": {"HOME": str(self.home)}}

    def command(self, name, path):
        opts = ["--name", name, *ALLOW, "--env", f"SSL_CERT_FILE={self.project}/ca.pem"]
        script = CLIENT.replace("HOST", HOST).replace("PATH", path)
        return ["run", "-y", *opts, "--", "bash", "-c", script]

    def _read(self):
        self.out, self.err = self.process.communicate()
        self.lasted = time.monotonic() - self.began

    def close(self):
        self.process.kill()
        self.reader.join()
        self.lab.close()
