"""The two network namespaces of a lab, and the process that holds them. Started by lab.py.

    far.py FD RESOLV-CONF HOSTS PASSWD TRUST
    far.py lab RESOLV-CONF HOSTS TRUST

The first is in "outside", where every address there is leads to lo; it starts the second, in
"lab", which knows nothing but the way there. Each ends when the pipe or socket from its
parent does, and with them the namespaces and all that was mounted: nothing is to be removed,
however the tests end. Through FD the tests ask for sockets of the outside.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys

LINK = {4: ("93.184.215.1", "93.184.215.2", 30), 6: ("2606:2800:215::1", "2606:2800:215::2", 126)}
_MS_BIND = 4096
_SO_RCVBUFFORCE = 33


def cover(path, by):
    """Another file in the place of this one, in this mount namespace alone."""
    path = os.path.realpath(path)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(by), os.fsencode(path), None, _MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {by} on {path}")


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, timeout=20)


def set_kernel(name, value):
    """A setting of this network namespace; not all kernels have all of them."""
    if os.path.exists(f"/proc/sys/net/{name}"):
        with open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write(str(value))


def prepare():
    set_kernel("ipv6/conf/all/disable_ipv6", 0)
    set_kernel("ipv6/conf/default/disable_ipv6", 0)
    set_kernel("ipv6/conf/default/accept_dad", 0)
    set_kernel("ipv4/ip_unprivileged_port_start", 0)
    ip("link", "set", "lo", "up")


def lab(resolv_conf, hosts, trust):
    """Hold the namespace where carrel will be started."""
    cover("/etc/resolv.conf", resolv_conf)
    cover("/etc/hosts", hosts)
    if os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
        cover("/etc/ssl/certs/ca-certificates.crt", trust)
    prepare()
    print("ready", flush=True)
    sys.stdin.read()


def connect(pid):
    """A cable from here to the lab, and routes."""
    ip("link", "add", "far0", "type", "veth", "peer", "name", "lab0", "netns", pid)
    enter = ["nsenter", "-t", str(pid), "-n", "ip"]
    for family, (far, near, bits) in LINK.items():
        ip("addr", "add", f"{far}/{bits}", "dev", "far0", *["nodad"][: family == 6])
        words = ["addr", "add", f"{near}/{bits}", "dev", "lab0", *["nodad"][: family == 6]]
        subprocess.run([*enter, *words], check=True, timeout=20)
    ip("link", "set", "far0", "up")
    subprocess.run([*enter, "link", "set", "lab0", "up"], check=True, timeout=20)
    for family, (far, _, _) in LINK.items():
        # All addresses are here, but for those of the cable, whose routes say more.
        ip(f"-{family}", "route", "add", "local", "default", "dev", "lo", "table", "main")
        words = [f"-{family}", "route", "add", "default", "via", far]
        subprocess.run([*enter, *words], check=True, timeout=20)


def change(near, words):
    """A command of ip(8), in one of the two; what it complains of."""
    enter = ["nsenter", "-t", str(near), "-n"] if near else []
    done = subprocess.run([*enter, "ip", *words], capture_output=True, timeout=20, check=False)
    return {"error": done.stderr.decode()} if done.returncode else {}


def serve(control, near):
    """Make what is asked for: sockets that are bound here, addresses and routes."""
    while True:
        words = control.recv(65536)
        if not words:
            return
        ask = json.loads(words)
        if "ip" in ask:
            said = change(near if ask["near"] else None, ask["ip"])
            control.send(json.dumps(said).encode())
            continue
        try:
            family = socket.AF_INET6 if ":" in ask["address"] else socket.AF_INET
            made = socket.socket(family, ask["type"])
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            with contextlib.suppress(PermissionError):  # hundreds of questions at once
                made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
            # Also of one with a zone, which bind() itself would forget.
            made.bind(socket.getaddrinfo(ask["address"], ask["port"], family)[0][4])
            socket.send_fds(control, [b"{}"], [made.fileno()])
            made.close()
        except OSError as error:
            control.send(json.dumps({"error": str(error)}).encode())


def outside(fd, resolv_conf, hosts, passwd, trust):
    control = socket.socket(fileno=fd)
    cover("/etc/passwd", passwd)
    prepare()
    set_kernel("ipv6/ip_nonlocal_bind", 1)  # for IPv4 the route to lo is enough
    argv = ["unshare", "--net", "--mount", "--", sys.executable, __file__, "lab"]
    with subprocess.Popen(
        [*argv, resolv_conf, hosts, trust], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        if holder.stdout.readline() != b"ready\n":
            sys.exit("the lab's namespace did not come to be")
        connect(holder.pid)
        control.send(json.dumps({"lab": holder.pid}).encode())
        serve(control, holder.pid)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end us, and only when they end
    if sys.argv[1] == "lab":
        lab(*sys.argv[2:])
    else:
        outside(int(sys.argv[1]), *sys.argv[2:])
