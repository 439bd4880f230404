"""What is done in the box: a list of plain operations, read as JSON from standard input.

It runs as `python3 -I -S -c TEXT` in the project. An operation that is refused is passed over: the
attacker does what can be done. The answer is one word per operation, for whoever reads a round.
"""

import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
_RENAME_EXCHANGE = 2


def clear(path):
    """Take away whatever has the name."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def ready(path):
    """Make the directories above, and take away what is there and is no file or directory."""
    above = os.path.dirname(path)
    if above:
        os.makedirs(above, exist_ok=True)


def put(path, text, mode="644"):
    ready(path)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        clear(path)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.chmod(path, int(mode, 8))


def append(path, text):
    with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def link(path, target):
    ready(path)
    clear(path)
    os.symlink(target, path)


def hard(path, existing):
    ready(path)
    clear(path)
    os.link(existing, path)


def fifo(path):
    ready(path)
    clear(path)
    os.mkfifo(path)


def sock(path):
    ready(path)
    clear(path)
    here = os.getcwd()
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(path) or ".")
    try:
        listener.bind(os.path.basename(path))
    finally:
        os.chdir(here)


def rename(old, new):
    ready(new)
    os.rename(old, new)


def swap(one, other):
    done = _LIBC.renameat2(-100, one.encode(), -100, other.encode(), _RENAME_EXCHANGE)
    if done != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def chmod(path, mode):
    os.chmod(path, int(mode, 8))


def times(path, seconds):
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def many(path, count):
    """Names that hide others among them."""
    os.makedirs(path, exist_ok=True)
    for number in range(count):
        with open(os.path.join(path, f"n{number}"), "w", encoding="utf-8"):
            pass


def copy(old, new):
    """By way of a third name: a directory may be copied into itself."""
    ready(new)
    for source, target in ((old, ".copied"), (".copied", new)):
        subprocess.run(["cp", "-aT", source, target], stderr=subprocess.DEVNULL, timeout=10, check=False)
    clear(".copied")


def git(where, *args):
    name = ["-c", "user.name=Agent", "-c", "user.email=agent@example.org"]
    subprocess.run(
        ["git", *name, *args],
        cwd=where,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=10,
        check=True,
    )


DEEDS = {
    "put": put,
    "append": append,
    "link": link,
    "hard": hard,
    "fifo": fifo,
    "socket": sock,
    "mkdir": lambda path: os.makedirs(path, exist_ok=True),
    "remove": clear,
    "rename": rename,
    "swap": swap,
    "chmod": chmod,
    "times": times,
    "many": many,
    "copy": copy,
    "git": git,
}


def main():
    for name, *args in json.load(sys.stdin):
        try:
            DEEDS[name](*args)
            print(name, "done")
        except (OSError, ValueError, RecursionError, subprocess.SubprocessError) as problem:
            print(name, "refused", str(problem).replace("\n", " "))


if __name__ == "__main__":
    main()
