"""A real sshd on the loopback, keys, and a user who has an account, as OpenSSH wants it."""

import contextlib
import pathlib
import pwd
import shutil
import socket
import subprocess
import textwrap

import lib
import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")


def keygen(path, *more, passphrase=""):
    args = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", path]
    subprocess.run([*args, *more], check=True, stdin=subprocess.DEVNULL)
    for file in (path, f"{path}.pub"):
        lib.give(file)
    return path


def public(path):
    """TYPE BLOB"""
    return " ".join((path.parent / f"{path.name}.pub").read_text().split()[:2])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# OpenSSH wants its user to have an account, which the user of the tests may lack.
ACCOUNT = "tester"
MOUNT = f'{shutil.which("mount")} --bind "$1" /etc/passwd && shift && exec "$@"'


def user():
    return ACCOUNT if lib.ROOT else pwd.getpwuid(lib.UID).pw_name


def known(argv):
    """argv such that it runs as a user with an account."""
    if not lib.ROOT:
        return list(argv)
    passwd = lib.root() / "passwd"
    if not passwd.exists():
        line = f"{ACCOUNT}:x:{lib.UID}:{lib.GID}::{lib.root()}:/bin/sh\n"
        passwd.write_text(pathlib.Path("/etc/passwd").read_text() + line)
    unshare = [shutil.which("unshare"), "-m", "sh", "-c", MOUNT, "sh", passwd]
    return [*unshare, *lib.as_user(argv)]


class Server:
    """An sshd on the loopback, run by the user of the tests, for one key."""

    def __init__(self, top, authorized):
        self.top, self.port, self.user = lib.make_dir(top), free_port(), user()
        self.key = keygen(top / "host")
        lib.make_file(top / "authorized", authorized + "\n")
        lib.make_file(
            top / "config",
            textwrap.dedent(f"""\
                ListenAddress 127.0.0.1
                Port {self.port}
                HostKey {top}/host
                PidFile none
                AuthorizedKeysFile {top}/authorized
                StrictModes no
                UsePAM no
                PasswordAuthentication no
                KbdInteractiveAuthentication no
                LogLevel VERBOSE
                """),
        )
        args = [SSHD, "-D", "-f", top / "config", "-E", top / "log"]
        self.process = subprocess.Popen(known(args), stdin=subprocess.DEVNULL)
        lib.wait_for(self.answers, "sshd")

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def log(self):
        return (self.top / "log").read_text()

    def accepted(self):
        return self.log().count("Accepted publickey")

    def entry(self, key, name="there", **more):
        return {
            "Host": name,
            "IdentityFile": str(key),
            "Hostname": "127.0.0.1",
            "User": self.user,
            "Port": self.port,
            "KnownHostKey": public(self.key),
            **more,
        }

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def key(home):
    lib.make_dir(home / ".ssh", mode=0o700)
    return keygen(home / ".ssh" / "id")


@pytest.fixture
def serve(place, key):
    """serve(): one more sshd that takes the key."""
    servers = []

    def one(authorized=key):
        servers.append(Server(place / f"sshd{len(servers)}", public(authorized)))
        return servers[-1]

    yield one
    for server in servers:
        server.end()
