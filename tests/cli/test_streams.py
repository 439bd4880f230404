"""Standard streams without a terminal: three pipes that neither lose, mix nor change a byte."""

import hashlib
import os
import signal
import socket
import threading

import lib
import pytest

ALL_BYTES = bytes(range(256)) * 5
GIGABYTE = 1 << 30


def test_output_and_errors_stay_separate(project):
    done = lib.box("sh", "-c", "echo out; echo err >&2; echo out2; echo err2 >&2")
    assert (done.stdout, done.stderr) == (b"out\nout2\n", b"err\nerr2\n")


def test_every_byte_passes_in_both_directions(project):
    done = lib.box("sh", "-c", "tee /dev/stderr", input=ALL_BYTES)
    assert done.stdout == ALL_BYTES and done.stderr == ALL_BYTES


def test_no_stream_is_a_terminal_or_the_hosts(project):
    """They are pipes to carrel, not the descriptors carrel was given."""
    mine = os.stat(project / "src" / "main.c")
    with open(project / "src" / "main.c", "rb") as file:
        done = lib.box("sh", "-c", "stat -L -c '%F %d %i' /dev/fd/0 /dev/fd/1 /dev/fd/2; tty",
                       stdin=file)  # fmt: skip
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["fifo"] * 3
    assert all(line.split()[1:] != [str(mine.st_dev), str(mine.st_ino)] for line in lines[:3])
    assert lines[3] == "not a tty"


def test_end_of_input(project):
    assert lib.succeeded(lib.box("cat")) == b""
    assert lib.succeeded(lib.box("cat", input=b"no newline")) == b"no newline"


def test_input_that_stays_open_does_not_hold_carrel(project):
    """The command does not read, the writer does not close: carrel ends with the command."""
    running = lib.start_box("true")
    assert running.wait(timeout=lib.TIMEOUT) == 0


def test_input_nobody_reads(project):
    """More input than fits a pipe, for a command that closes it at once."""
    done = lib.box("sh", "-c", "exec <&-; echo ok", input=b"x" * (4 << 20))
    assert lib.succeeded(done) == b"ok\n"


def test_output_written_last_arrives(project):
    script = "head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2; exit 3"
    done = lib.box("sh", "-c", script)
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (3, 3000000, 100000)


def test_what_is_left_behind_does_not_hold_carrel(project):
    """A process in the background keeps the streams open; the box ends with the command."""
    word = f"1000.{os.getpid()}7"
    done = lib.box("sh", "-c", f"setsid sleep {word} & echo hi")
    assert lib.succeeded(done) == b"hi\n"
    lib.wait_gone(word)


def test_streams_flow_while_the_command_runs(project):
    """A conversation: each answer comes before the next question."""
    running = lib.start_box("cat")
    for line in (b"one\n", b"two\n", b"three\n"):
        running.stdin.write(line)
        assert lib.read_until(running.stdout, line) == line
    out, _ = running.communicate(timeout=lib.TIMEOUT)
    assert (out, running.returncode) == (b"", 0)


# ---- the other ends ---------------------------------------------------------------------


def shell(script, **how):
    """A shell on the host; $0 is carrel."""
    return lib.execute(["bash", "-c", script, lib.program()], **how)


@pytest.mark.parametrize(
    "script, out",
    [
        ("$0 run -y -- cat <src/main.c | cksum; cksum <src/main.c", None),
        ("$0 run -y -- cat </dev/null; echo $?", b"0\n"),
        ("$0 run -y -- cat <&-; echo $?", b"0\n"),
        ("$0 run -y -- true >&-; echo $?", b"0\n"),
        ("$0 run -y -- true 2>&-; echo $?", b"0\n"),
        ("$0 run -y -- true <&- >&- 2>&-; echo $?", b"0\n"),
        ("$0 run -y -- sh -c 'exit 3' <&- >&- 2>&-; echo $?", b"3\n"),
        ("$0 run -y -- sh -c 'echo x >file; cat file' 0<&-", b"x\n"),
        ("$0 run -y -- echo x >file; cat file", b"x\n"),
        ("echo a >file; $0 run -y -- echo b >>file; echo c >>file; cat file", b"a\nb\nc\n"),
        ("$0 run -y -- sh -c 'echo o; echo e >&2' >file 2>&1; sort file", b"e\no\n"),
        ("(echo 1; $0 run -y -- echo 2; echo 3) | cat", b"1\n2\n3\n"),
        ("echo in | $0 run -y -- cat | $0 run -y -- cat | $0 run -y -- tr a-z A-Z", b"IN\n"),
        ("$0 run -y -- echo x <>/dev/null 1>&0; echo $?", b"0\n"),
    ],
)  # fmt: skip
def test_other_ends(project, script, out):
    """Files, /dev/null, closed descriptors, appending, pipelines."""
    done = shell(script)
    assert done.stderr == b""
    if out is None:
        first, second = lib.succeeded(done).splitlines()
        assert first == second
    else:
        assert lib.succeeded(done) == out


def test_closed_output_is_not_somebody_elses_file(project):
    """With 0 to 2 closed, nothing that carrel opens takes their place in the box."""
    script = "echo x; echo y >&2; ls -l /proc/self/fd >listing"
    shell(f"$0 run -y -- sh -c '{script}' <&- >&- 2>&-")
    text = (project / "listing").read_text()
    assert "listing" in text, "the control: the listing itself is open"
    for line in text.splitlines():
        assert "->" not in line or "listing" in line or "/proc/" in line or "/dev/" in line or (
            "pipe:" in line), line  # fmt: skip


def test_output_position_of_a_shared_file_is_kept(project):
    """Several writers share one open file: each continues where the last one stopped."""
    with open(project / "log", "wb") as log:
        log.write(b"a\n")
        log.flush()
        assert lib.box("echo", "b", stdout=log).returncode == 0
        os.write(log.fileno(), b"c\n")
    assert (project / "log").read_bytes() == b"a\nb\nc\n"


def test_socket_as_streams(project):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        running = lib.start_box("cat", stdin=theirs, stdout=theirs)
        theirs.close()
        ours.sendall(ALL_BYTES)
        ours.shutdown(socket.SHUT_WR)
        got = b""
        while more := ours.recv(65536):
            got += more
        assert running.wait(timeout=lib.TIMEOUT) == 0
    assert got == ALL_BYTES


def test_flags_of_the_callers_descriptors_are_left_alone(project):
    """carrel must not leave O_NONBLOCK on a pipe that others share."""
    script = (
        "import fcntl, os, subprocess, sys\n"
        "flags = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (0, 1, 2)]\n"
        "subprocess.run([sys.argv[1], 'run', '-y', '--', 'cat'])\n"
        "assert flags == [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (0, 1, 2)]\n"
    )
    done = lib.execute([lib.PYTHON, "-c", script, lib.program()], input=b"x")
    assert lib.succeeded(done) == b"x"


# ---- lost readers -----------------------------------------------------------------------


def test_reader_goes_away(project):
    """SIGPIPE reaches the writer in the box: 128 + 13."""
    done = shell('$0 run -y -- yes | head -1; echo "${PIPESTATUS[0]}"')
    assert lib.succeeded(done) == b"y\n141\n"


def test_reader_goes_away_while_the_writer_is_silent(project):
    """The loss is noticed by the box's next write, and before that ends nothing."""
    running = lib.start_box("sh", "-c", "echo ready; read -r _; echo x; echo y")
    lib.read_until(running.stdout, b"ready")
    running.stdout.close()
    running.stdin.write(b"go\n")
    assert running.wait(timeout=lib.TIMEOUT) in (0, 1, 2, 141)


# ---- much -------------------------------------------------------------------------------


def blocks(total):
    """Bytes that nowhere repeat within a megabyte's distance."""
    block = os.urandom(1 << 20)
    for number in range(total >> 20):
        yield number.to_bytes(8, "big") + block[8:]


def feed(stream, total):
    """Write that much from a thread; the digest is in the list when it is done."""
    result = []

    def work():
        digest = hashlib.sha256()
        for block in blocks(total):
            digest.update(block)
            view = memoryview(block)
            while view:
                view = view[stream.write(view):]
        stream.close()
        result.append(digest.hexdigest())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, result


def drain(stream):
    digest, count = hashlib.sha256(), 0
    while block := stream.read(1 << 20):
        digest.update(block)
        count += len(block)
    return digest.hexdigest(), count


def test_gigabyte_in(project):
    running = lib.start_box("sha256sum", stderr=None)
    thread, digest = feed(running.stdin, GIGABYTE)
    text = running.stdout.read().decode()
    thread.join(lib.TIMEOUT)
    assert running.wait(timeout=lib.TIMEOUT) == 0
    assert text.split()[0] == digest[0]


def test_gigabyte_out_and_back(project):
    """In and out at once through cat: what comes back is what went in."""
    running = lib.start_box("cat", stderr=None)
    thread, digest = feed(running.stdin, GIGABYTE)
    back, count = drain(running.stdout)
    thread.join(lib.TIMEOUT)
    assert running.wait(timeout=lib.TIMEOUT) == 0
    assert (back, count) == (digest[0], GIGABYTE)


def test_many_lines_on_both_outputs(project):
    done = lib.box("sh", "-c", "seq 1 200000 & seq 1 200000 >&2; wait")
    lines = b"".join(b"%d\n" % number for number in range(1, 200001))
    assert done.stdout == lines and done.stderr == lines


def test_slow_reader_of_one_stream_does_not_block_the_other(project):
    """Nobody reads stdout; stderr still flows."""
    running = lib.start_box("sh", "-c", "head -c 4000000 /dev/zero & echo err >&2; wait")
    lib.read_until(running.stderr, b"err\n")
    assert len(running.stdout.read()) == 4000000
    assert running.wait(timeout=lib.TIMEOUT) == 0


def test_large_argument_list(project):
    words = ["x" * 100_000] * 12 + [str(number) for number in range(10_000)]
    script = "import sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])))"
    done = lib.box(lib.PYTHON, "-c", script, *words)
    assert lib.succeeded(done).decode() == f"{len(words)} {sum(map(len, words))}\n"


# ---- signals ----------------------------------------------------------------------------

FORWARDED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2]  # fmt: skip


@pytest.mark.parametrize("number", FORWARDED)
def test_signal_is_forwarded(project, number):
    """The command sees the signal and may answer it as it likes."""
    script = f"trap 'echo got; exit 9' {int(number)}; echo ready; while :; do sleep 0.1; done"
    running = lib.start_box("bash", "-c", script)
    lib.read_until(running.stdout, b"ready")
    running.send_signal(number)
    out, _ = running.communicate(timeout=lib.TIMEOUT)
    assert (out, running.returncode) == (b"got\n", 9)


@pytest.mark.parametrize("number", FORWARDED)
def test_signal_that_is_not_handled_ends_the_command(project, number):
    running = lib.start_box("sh", "-c", "echo ready; exec sleep 1000")
    lib.read_until(running.stdout, b"ready")
    lib.wait_for(lambda: b"sleep" in comm_below(running.pid), "the command to be exec'd")
    running.send_signal(number)
    running.communicate(timeout=lib.TIMEOUT)
    assert running.returncode == 128 + number


def comm_below(pid):
    """Names of the processes two levels down: carrel → init → the command."""
    names = []
    for child in lib.children(pid):
        for grandchild in lib.children(child):
            try:
                with open(f"/proc/{grandchild}/comm", "rb") as file:
                    names.append(file.read().strip())
            except OSError:
                pass
    return names


def test_signal_state_of_the_command_is_clean(project):
    """What carrel ignores or blocks for itself does not leak into the command."""
    text = lib.succeeded(lib.box("cat", "/proc/self/status")).decode()
    state = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    for name in ("SigBlk", "SigIgn"):
        assert int(state[name], 16) == 0, name


def test_short_lines_do_not_fill_a_pipe_that_nobody_reads(project):
    """Until the end, as many callers do: there is room for 64 KiB, not for sixteen writes."""
    script = "for i in $(seq 1000); do echo a short line >&2; done; echo end"
    box = lib.start_box("sh", "-c", script)
    assert box.wait(timeout=lib.TIMEOUT) == 0, box.stderr.read()
    assert box.stdout.read() == b"end\n"
    assert box.stderr.read() == b"a short line\n" * 1000
