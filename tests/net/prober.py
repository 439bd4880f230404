"""What somebody in a box tries with the network. Run by test_attacks.py, in the box and outside.

    prober.py '[["tcp", "192.0.2.1", 80], ["lookup", "example.org"], ...]'

One line of JSON is the answer: what each step said, an error's name when it failed. Standard
library only, and nothing of the tests: it is copied into the box.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys

WAIT = 1.5


def tcp(address, port, say="x"):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(WAIT)
        s.connect((address, port))
        s.sendall(say.encode())
        return s.recv(100).decode() or "closed"


def udp(address, port, say="x"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(say.encode(), (address, port))
        return "sent"


def lookup(name):
    return sorted({a[4][0] for a in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})


def name(host, port, say="x"):
    """The ordinary way: look it up, connect."""
    with socket.create_connection((host, port), WAIT) as s:
        s.sendall(say.encode())
        return s.recv(100).decode() or "closed"


kept = []


def keep(host, port):
    """A connection that stays open."""
    kept.append(socket.create_connection((host, port), WAIT))
    return kept[-1].recv(100).decode()


def use():
    """Is there anybody at the other end of it?"""
    kept[-1].sendall(b"still there")
    kept[-1].settimeout(WAIT)
    return kept[-1].recv(100).decode() or "closed"


def pipeline(packet, n):
    """So many questions over one connection, at once; how many are answered."""
    packet, got, answers = bytes.fromhex(packet), b"", 0
    with socket.create_connection(("198.18.0.1", 53), WAIT) as s:
        s.sendall((struct.pack(">H", len(packet)) + packet) * n)
        while answers < n:
            block = s.recv(65536)
            if not block:
                break
            got += block
            while len(got) >= 2 and len(got) >= 2 + struct.unpack(">H", got[:2])[0]:
                got = got[2 + struct.unpack(">H", got[:2])[0] :]
                answers += 1
    return answers


def proxy(packet):
    """To the box's explicit proxy; all that comes back."""
    got = b""
    with socket.create_connection(("127.0.0.1", 3128), WAIT) as s:
        s.settimeout(0.5)
        try:
            s.sendall(bytes.fromhex(packet))
            while block := s.recv(4096):
                got += block
                if b"hello" in got:
                    break
        except OSError:
            pass
    return got.decode("latin-1")


def crowd(n):
    """So many connections to the proxy that say half of something; how many there are."""
    for _ in range(n):
        kept.append(socket.create_connection(("127.0.0.1", 3128), WAIT))
        kept[-1].send(b"CONNECT ")
    return len(kept)


def shell(host, port):
    """/dev/tcp of bash."""
    done = subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/{host}/{port} && head -c 5 <&3"],
                          capture_output=True, timeout=5, check=False)  # fmt: skip
    return done.stdout.decode() or f"exit {done.returncode}"


def dns(server, packet, via="udp"):
    """A question made by hand; the rcode of the answer, and how many records it has."""
    packet = bytes.fromhex(packet)
    kind = socket.SOCK_DGRAM if via == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(0.4)
        s.connect((server, 53))
        s.send(packet if via == "udp" else struct.pack(">H", len(packet)) + packet)
        said = s.recv(4096)[0 if via == "udp" else 2 :]
        return [said[3] & 15, struct.unpack(">H", said[6:8])[0]]


def ping(address):
    """With a raw socket, or with one that needs no privilege where the kernel allows it."""
    v6 = ":" in address
    family, protocol = (socket.AF_INET6, 58) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    # Of IPv6 the kernel makes the sum.
    packet = struct.pack(">BBHHH", 128 if v6 else 8, 0, 0xF7FF - 7, 0, 7)
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as s:
                s.sendto(packet, (address, 0))
                return "sent"
        except PermissionError:
            pass
    raise PermissionError(errno.EPERM, "no socket for it")


def bind(port, kind="tcp", address="0.0.0.0"):
    kind = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((address, port))
        return "bound"


def netlink(protocol, packet):
    """A request to the kernel; 0 or the errno that it answers with."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as s:
        s.settimeout(WAIT)
        s.send(bytes.fromhex(packet))
        error = -struct.unpack("=i", s.recv(4096)[16:20])[0]
        return errno.errorcode.get(error, error)


def link_down():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 0))
        return "down"


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
        return "written"


def family(number, kind=1, protocol=0):
    socket.socket(number, kind, protocol).close()
    return "made"


def descriptors():
    return sorted(os.readlink(f"/proc/self/fd/{n}").partition(":")[0]
                  for n in os.listdir("/proc/self/fd") if n not in ("0", "1", "2")
                  and os.path.exists(f"/proc/self/fd/{n}"))  # fmt: skip


def unix_sockets():
    with open("/proc/net/unix", encoding="ascii") as file:
        return [line.split()[7:] for line in file.readlines()[1:]]


def wait(word):
    """Say a word, and go on when somebody answers."""
    print(word, flush=True)
    sys.stdin.readline()
    return "on"


def run(step):
    try:
        return globals()[step[0]](*step[1:])
    except OSError as e:
        number = e.errno if isinstance(e.errno, int) else 0
        if isinstance(e, socket.gaierror):
            return "no name"
        return errno.errorcode.get(number, type(e).__name__)
    except (UnicodeError, ValueError) as e:
        return type(e).__name__


if __name__ == "__main__":
    print(json.dumps([run(step) for step in json.loads(sys.argv[1])]), flush=True)
