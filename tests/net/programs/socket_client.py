"""socket_client.py WHAT HOST PORT [FAMILY]: what sockets do that no protocol shows."""

import asyncio
import hashlib
import os
import signal
import socket
import struct
import sys

what, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def half_close():
    """All that is to be said, then the end of it, and only then the answer."""
    with socket.create_connection((host, port), 20) as s:
        s.sendall(b"x" * 3000000)
        s.shutdown(socket.SHUT_WR)
        print(s.makefile("rb").read().decode())


def reset():
    """Only reads. Half an answer and then a reset is not the end of an answer; nor is none."""
    got = b""
    try:
        with socket.create_connection((host, port), 20) as s:
            while block := s.recv(65536):
                got += block
        print("an orderly end after", len(got))
    except ConnectionResetError:
        print("reset")


def urgent():
    """Bytes before and behind an urgent one, and no end: what is heard meanwhile."""
    for _ in range(50):
        with socket.create_connection((host, port), 20) as s:
            s.sendall(b"one")
            s.send(b"!", socket.MSG_OOB)
            s.sendall(b"two")
            got = b""
            while len(got) < 6 and (block := s.recv(100)):
                got += block
            print(got.decode())


def urgent_bulk():
    """The same in the middle of much, with an end, and without one before the answer."""
    with socket.create_connection((host, port), 20) as s:
        s.sendall(b"x" * 400000)
        s.send(b"!", socket.MSG_OOB)
        s.sendall(b"the end")
        print(s.recv(3).decode(), end=" ")
        s.shutdown(socket.SHUT_WR)
        got = b""
        while block := s.recv(65536):
            got += block
        print(len(got), got[-7:].decode())


def talking():
    """A connection whose server has heard us, and has answered; the answer is not read yet."""
    s = socket.create_connection((host, port), 20)
    s.sendall(b"said")
    s.recv(1, socket.MSG_PEEK)
    return s


def end_half():
    """The end of what is said: what is still to come is heard."""
    with talking() as s:
        s.shutdown(socket.SHUT_WR)
        print(s.makefile("rb").read().decode())


def end_close():
    with talking() as s:
        s.recv(100)


def end_close_unread():
    talking().close()


def end_linger():
    with talking() as s:
        s.recv(100)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def end_killed():
    with talking() as s:
        s.recv(100)
        os.kill(os.getpid(), signal.SIGKILL)


def end_killed_unread():
    with talking():
        os.kill(os.getpid(), signal.SIGKILL)


def end_child_killed():
    """The program goes on, until it is told to end."""
    pid = os.fork()
    if pid == 0:
        end_killed()
    os.waitpid(pid, 0)
    sys.stdin.read()


def only_v6():
    """A program that knows IPv6 alone."""
    for *how, to in socket.getaddrinfo(host, port, socket.AF_INET6, socket.SOCK_STREAM):
        with socket.socket(*how[:3]) as s:
            s.settimeout(20)
            s.connect(to)
            print(s.getpeername()[0], s.recv(1000).decode())


async def echo(i):
    reader, writer = await asyncio.open_connection(host, port)
    data = os.urandom(200000)

    async def send():
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    got, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    return hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


async def many():
    """Fifty echoes at once, both directions at the same time."""
    print(sum(await asyncio.gather(*map(echo, range(50)))), "echoed")


def echoes():
    asyncio.run(many())


globals()[what]()
