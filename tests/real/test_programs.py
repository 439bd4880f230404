"""Programs people use, in the box, as a normal user: each does its work as it would outside."""

import os
import shutil
import subprocess

import lib
import pytest

MAKEFILE = """
CFLAGS = -O1 -g -Wall
OBJECTS = main.o add.o mul.o
prog: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
check: prog
\t./prog | grep -qx 42
"""
SOURCES = {
    "Makefile": MAKEFILE,
    "calc.h": "int add(int a, int b);\nint mul(int a, int b);\n",
    "add.c": '#include "calc.h"\nint add(int a, int b)\n{\n\treturn a + b;\n}\n',
    "mul.c": '#include "calc.h"\nint mul(int a, int b)\n{\n\treturn a * b;\n}\n',
    "main.c": '#include <stdio.h>\n#include "calc.h"\nint main(void)\n{\n'
    '\tint answer = add(mul(5, 8), 2);\n\tprintf("%d\\n", answer);\n\treturn 0;\n}\n',
}


def add_files(project, files, mode=0o644):
    for name, text in files.items():
        lib.make_file(project / name, text, mode=mode)


def run(script, *opts, **how):
    """A script in the box, stopped at its first failure; its output as text."""
    done = lib.box("bash", "-euc", script, opts=opts, **how)
    return lib.succeeded(done).decode()


def compiled(project, text, *flags):
    """A C program, built in the box."""
    lib.make_file(project / "prog.c", text)
    run(f"gcc -O1 -g -Wall -o prog prog.c {' '.join(flags)}")
    return "./prog"


# ---- building ---------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["", "-j4"])
def test_gcc_and_make(project, jobs):
    add_files(project, SOURCES)
    run(f"make {jobs} check")
    assert subprocess.run([project / "prog"], capture_output=True, check=True).stdout == b"42\n"
    assert "up to date" in run("make prog")


def test_compiler_with_temporary_files_and_ccache_like_home(project):
    """Temporary files, a cache in the home, precompiled headers, link-time optimisation."""
    add_files(project, SOURCES)
    text = run(
        "gcc -save-temps=cwd -c add.c; gcc -x c-header calc.h; gcc -flto -O2 -o lto *.c; ./lto;"
        " mkdir -p ~/.cache/x; echo hit >~/.cache/x/y; cat ~/.cache/x/y"
    )
    assert text == "42\nhit\n"


def test_gdb_on_a_child(project):
    """ptrace of one's own children: breakpoint, run, print, backtrace."""
    add_files(project, SOURCES)
    commands = ["break add", "run", "print a", "print b", "backtrace", "finish", "continue"]
    words = [word for command in commands for word in ("-ex", command)]
    run("make prog")
    done = lib.box("gdb", "-nx", "-batch", *words, "./prog")
    text = lib.succeeded(done).decode()
    assert "Breakpoint 1, add" in text and "$1 = 40" in text and "$2 = 2" in text
    assert "in main" in text and "exited normally" in text


def test_strace(project):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    done = lib.box("strace", "-f", "-e", "trace=execve", "sh", "-c", "/bin/true; echo done")
    assert lib.succeeded(done) == b"done\n"
    assert b'execve("/bin/true"' in done.stderr


# ---- git --------------------------------------------------------------------------------


def test_git(project):
    """Commit, branch, merge, stash, worktree, gc, clone of the repository into the home."""
    run(
        "git checkout -q -b feature; echo one >f; git add f; git commit -q -m feature;"
        "git checkout -q main; echo two >g; git add g; git commit -q -m main;"
        "git merge -q -m merge feature; git worktree add -q ./tree -b third;"
        "cd tree; echo three >h; git add h; git commit -q -m third; cd ..;"
        "echo four >>f; git stash -q; git stash pop -q; git commit -qam four;"
        "git gc -q; git fsck --strict; git clone -q . ~/clone; git -C ~/clone log >/dev/null"
    )
    log = lib.git("log", "--format=%s", "main", cwd=project).split()
    assert sorted(log) == sorted(["four", "merge", "main", "feature", "one"])
    assert lib.git("log", "-1", "--format=%s %an", "third", cwd=project) == "third A Tester\n"
    assert lib.git("status", "--short", "-uno", cwd=project) == ""


# ---- languages --------------------------------------------------------------------------


def test_python_venv(project):
    """With pip in it, which venv installs by running it."""
    text = run(
        f"{lib.PYTHON} -m venv env; . env/bin/activate; command -v python pip;"
        "python -c 'import sys; print(sys.prefix != sys.base_prefix)'; pip --version"
    ).splitlines()
    assert text[:3] == [f"{project}/env/bin/python", f"{project}/env/bin/pip", "True"]
    assert text[3].startswith("pip ") and f"{project}/env/lib" in text[3]


def test_python_multiprocessing(project):
    """Processes, semaphores, shared memory and sockets between them."""
    lib.make_file(
        project / "pool.py",
        "import multiprocessing as mp\n"
        "from multiprocessing import shared_memory\n"
        "def square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        with mp.get_context(method).Pool(4) as pool:\n"
        "            print(method, sum(pool.map(square, range(100))))\n"
        "    block = shared_memory.SharedMemory(create=True, size=1 << 20)\n"
        "    block.buf[:3] = b'shm'\n"
        "    again = shared_memory.SharedMemory(block.name)\n"
        "    print(bytes(again.buf[:3]).decode())\n"
        "    again.close()\n    block.close()\n    block.unlink()\n",
    )
    text = run(f"{lib.PYTHON} pool.py")
    assert text == "fork 328350\nspawn 328350\nforkserver 328350\nshm\n"


def test_python_threads_and_loopback(project):
    """A server and a client on the box's own loopback, IPv4 and Unix socket, with asyncio."""
    lib.make_file(
        project / "net.py",
        "import asyncio\n"
        "async def serve(r, w):\n"
        "    w.write((await r.readline()).upper())\n    await w.drain()\n    w.close()\n"
        "async def ask(opening):\n"
        "    r, w = await opening\n    w.write(b'hello\\n')\n"
        "    print((await r.readline()).decode().strip())\n    w.close()\n"
        "async def main():\n"
        "    s = await asyncio.start_server(serve, '127.0.0.1', 0)\n"
        "    await ask(asyncio.open_connection(*s.sockets[0].getsockname()))\n"
        "    u = await asyncio.start_unix_server(serve, '/tmp/s')\n"
        "    await ask(asyncio.open_unix_connection('/tmp/s'))\n"
        "    print(await asyncio.to_thread(sum, range(10)))\n"
        "    p = await asyncio.create_subprocess_exec('echo', 'child')\n    await p.wait()\n"
        "asyncio.run(main())\n",
    )
    assert run(f"{lib.PYTHON} -u net.py") == "HELLO\nHELLO\n45\nchild\n"


def test_node_and_npm(project):
    """`npm test` on a package without dependencies, with workers and child processes."""
    add_files(
        project,
        {
            "package.json": '{"name": "p", "version": "1.0.0",'
            ' "scripts": {"test": "node --test test/"}}\n',
            "test/a.test.js": "const test = require('node:test');\n"
            "const assert = require('node:assert');\n"
            "const { Worker } = require('node:worker_threads');\n"
            "const { execFileSync } = require('node:child_process');\n"
            "test('sum', () => assert.strictEqual(1 + 1, 2));\n"
            "test('child', () => assert.match(execFileSync('uname').toString(), /Linux/));\n"
            "test('worker', () => new Promise((resolve, reject) => {\n"
            "  const w = new Worker('process.exit(0)', { eval: true });\n"
            "  w.on('exit', resolve);\n  w.on('error', reject);\n}));\n",
        },
    )
    text = run("npm test 2>&1")
    assert "# pass 3" in text or "pass 3" in text
    assert "fail 0" in text


def test_perl_and_awk(project):
    assert run("perl -e 'print join(\",\", map { $_ * 2 } 1..3), \"\\n\"'") == "2,4,6\n"
    assert run("seq 10 | awk '{ s += $1 } END { print s }'") == "55\n"


# ---- shells and terminals ---------------------------------------------------------------


def test_bash_job_control(project):
    """Without a terminal, with monitor mode: stop, continue, wait."""
    text = run(
        "set -m; sleep 1000 & kill -STOP $!;"
        " while ! jobs | grep -q Stopped; do sleep 0.05; done; echo stopped;"
        " kill -CONT $!; while ! jobs -r | grep -q sleep; do sleep 0.05; done;"
        " kill $!; wait $! || echo rc=$?; (exit 3) & wait $! || echo rc=$?;"
        " diff <(echo a) <(echo a) && echo same"
    )
    assert text == "stopped\nrc=143\nrc=3\nsame\n"


def test_script(project):
    """A program that makes a terminal of its own, in a box that has none."""
    text = run("script -qec 'tty; stty size; echo in-script' typescript </dev/null")
    assert "/dev/pts/" in text and "in-script" in text
    assert "in-script" in (project / "typescript").read_text()


def test_tmux_server(project):
    """A server in the background, driven from outside of its terminals."""
    text = run(
        "tmux -f /dev/null new-session -d -s work -x 80 -y 24 'echo inside-tmux; cat';"
        " while ! tmux capture-pane -p -t work | grep inside-tmux; do sleep 0.05; done;"
        " tmux send-keys -t work typed Enter;"
        " while ! tmux capture-pane -p -t work | grep -x typed | head -1; do sleep 0.05; done;"
        " tmux kill-server"
    )
    assert text.split()[:2] == ["inside-tmux", "typed"]


# ---- tools ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_ssh_keygen(project, kind):
    run(f"ssh-keygen -q -t {kind} -N '' -f key; ssh-keygen -l -f key.pub")
    assert (project / "key").stat().st_mode & 0o777 == 0o600


def test_sqlite_with_a_write_ahead_log(project):
    """Shared memory maps and locks on the host's file system, two processes at once."""
    sql = (
        "pragma journal_mode=wal; create table t(x); "
        "with recursive n(i) as (select 1 union all select i+1 from n where i<1000) "
        "insert into t select i from n;"
    )
    script = (
        f"sqlite3 data.db '{sql}';"
        "sqlite3 -cmd '.timeout 30000' data.db 'insert into t values (1)' &"
        "sqlite3 -cmd '.timeout 30000' data.db 'insert into t values (1)'; wait;"
        "sqlite3 data.db 'select count(*) from t; pragma integrity_check'"
    )
    assert run(script) == "wal\n1002\nok\n"


def test_tar_keeps_mode_owner_and_times(project):
    for name, mode in (("a", 0o640), ("b", 0o755), ("c", 0o400)):
        lib.make_file(project / "in" / name, name, mode=mode)
    os.symlink("a", project / "in" / "link")
    lib.give(project / "in" / "link")
    run("ln in/a in/hard; touch -d 2001-02-03 in/b; tar --numeric-owner -czf x.tgz in;"
        "mkdir out; tar -xpzf x.tgz -C out --same-owner")  # fmt: skip
    for name in ("a", "b", "c", "link"):
        source, copy = os.lstat(project / "in" / name), os.lstat(project / "out" / "in" / name)
        for field in ("st_mode", "st_uid", "st_gid", "st_size"):
            assert getattr(source, field) == getattr(copy, field), (name, field)
        assert name == "link" or int(source.st_mtime) == int(copy.st_mtime)
    hard = (project / "out" / "in" / "hard").stat()
    assert hard.st_ino == (project / "out" / "in" / "a").stat().st_ino
    listing = run("tar --numeric-owner -tvzf x.tgz in/a")
    assert f"{lib.UID}/{lib.GID}" in listing


def test_find_and_grep(project):
    """Over the system and the project; the box's own /proc gives no endless walk."""
    text = run("find . -name '*.c'; grep -rl 'return 0' src; find /usr/include/stdio.h")
    assert text.split() == ["./src/main.c", "src/main.c", "/usr/include/stdio.h"]
    run("find / -xdev >/dev/null 2>&1 || true")
    assert int(run("find /proc -maxdepth 1 -name '[0-9]*' | wc -l")) <= 6


# ---- programs that need shared memory ---------------------------------------------------

SHARED = r"""
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int fd = shm_open("/shared", O_RDWR | O_CREAT | O_EXCL, 0600);
	sem_t *ready = sem_open("/ready", O_CREAT | O_EXCL, 0600, 0);
	int *value;

	if (fd < 0 || ftruncate(fd, 4096) < 0 || ready == SEM_FAILED)
		return 1;
	value = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fork() == 0) {
		*value = 42;
		sem_post(ready);
		_exit(0);
	}
	sem_wait(ready);
	wait(NULL);
	printf("%d\n", *value);
	return shm_unlink("/shared") || sem_unlink("/ready");
}
"""

SYSTEM_V = r"""
#include <stdio.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
int main(void)
{
	int shm = shmget(4711, 4096, IPC_CREAT | IPC_EXCL | 0600);
	int sem = semget(4711, 1, IPC_CREAT | IPC_EXCL | 0600);
	int msg = msgget(4711, IPC_CREAT | IPC_EXCL | 0600);
	int *value = shmat(shm, NULL, 0);

	if (shm < 0 || sem < 0 || msg < 0)
		return 1;
	*value = 42;
	printf("%d\n", *value);
	return 0;
}
"""


def test_posix_shared_memory_and_semaphores(project):
    prog = compiled(project, SHARED, "-pthread", "-lrt")
    before = set(os.listdir("/dev/shm"))
    assert run(prog) == "42\n"
    assert run(prog) == "42\n", "nothing of the first run is left"
    assert not {"shared", "sem.ready"} & (set(os.listdir("/dev/shm")) - before)


def test_system_v_ipc_is_the_boxs_own(project):
    """Made and never removed, twice with one key: each box has its own, the host none."""
    prog = compiled(project, SYSTEM_V)
    assert run(prog) == run(prog) == "42\n"
    with open("/proc/sysvipc/shm", encoding="ascii") as file:
        assert " 4711 " not in file.read()
