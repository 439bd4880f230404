"""ask.py udp|tcp SERVER EDNS NAME TYPE...: questions as bytes; a line for each answer.

EDNS is the size that is offered, or 0 for none. A line has rcode, flag TC, the number of
answers, whether there is an OPT record, and the time it took in ms.
"""

import ipaddress
import os
import socket
import struct
import sys
import time


def exactly(s, n):
    got = b""
    while len(got) < n:
        block = s.recv(n - len(got))
        assert block, "the end"
        got += block
    return got


def main(how, server, edns, name, *types):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if how == "udp" else socket.SOCK_STREAM)
    s.settimeout(10)
    s.connect((server, 53))
    for kind in types:
        begun = time.monotonic()
        opt = b"\0" + struct.pack(">HHIH", 41, int(edns), 0, 0) if int(edns) else b""
        labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
        head = os.urandom(2) + struct.pack(">5H", 0x100, 1, 0, 0, bool(opt))
        ask = head + labels + b"\0" + struct.pack(">HH", int(kind), 1) + opt
        if how == "udp":
            s.send(ask)
            said = s.recv(65536)
        else:
            s.sendall(struct.pack(">H", len(ask)) + ask)
            said = exactly(s, struct.unpack(">H", exactly(s, 2))[0])
        assert said[:2] == ask[:2] and said[2] & 0x80, "no answer to this"
        flags, _, answers, _, more = struct.unpack(">5H", said[2:12])
        took = int((time.monotonic() - begun) * 1000)
        address = ipaddress.ip_address(said[-4:]) if answers and not opt and kind == "1" else "-"
        print(flags & 15, flags >> 9 & 1, answers, more, address, took)


main(*sys.argv[1:])
