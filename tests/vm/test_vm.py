"""The machine of tests/vm: that it is the one meant, and a way out of a box on its kernel.

The lab of tests/net needs root, so the network's servers are on this machine's 127.0.0.1 here.
"""

import contextlib
import json
import platform
import socketserver
import threading

import lib


class Hello(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.met += 1
        self.request.sendall(b"hello\n")


@contextlib.contextmanager
def server():
    with socketserver.TCPServer(("127.0.0.1", 0), Hello) as one:
        one.met = 0
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


def ask(port, *opts, name="host.internal"):
    code = "import socket, sys; print(socket.create_connection((sys.argv[1], sys.argv[2])).recv(9))"
    words = ["run", "-y", *opts, "--", lib.PYTHON, "-c", code, name, str(port)]
    return lib.carrel(*words)


def test_every_layer_works_here(project):
    found = json.loads(lib.succeeded(lib.carrel("check", "--json")))
    assert found["works"] and not [one for one in found["layers"] if one["state"] != "ok"]
    assert platform.release().startswith(("6.1.", "6.12."))
    plan = lib.succeeded(lib.carrel("plan", "--", "true")).decode()
    assert f"Landlock ABI {lib.LANDLOCK}," in plan


def test_only_what_is_allowed_is_reached(project):
    with server() as one, server() as other:
        good, bad = one.server_address[1], other.server_address[1]
        done = ask(good, "--allow", f"host.internal:{good}")
        assert done.stdout == b"b'hello\\n'\n" and one.met == 1, done
        assert ask(bad, "--allow", f"host.internal:{good}").returncode != 0 and other.met == 0
        assert ask(good, "--network", "none").returncode != 0 and one.met == 1
        assert ask(good, "--network", "none", name="127.0.0.1").returncode != 0 and one.met == 1
        done = ask(good, "--service", str(good), name="127.0.0.1")
        assert done.stdout == b"b'hello\\n'\n" and one.met == 2, done
