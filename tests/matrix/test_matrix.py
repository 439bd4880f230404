"""A matrix of what people run in their projects: each in a box as outside.

A row is a script. It runs in the project without a box, in a box, and (where `beside` is set) on
the host while a box runs; exit codes, what it printed and all files of the project must be the
same. Twenty more of git are in tests/real/test_git.py; links of ~/.local/bin in
tests/cli/test_where.py; brokered networks in tests/net.

Rows do not show what is known to differ: .env reads as an empty file, and `git clean -dx` lists
the empty directories that stand for absent names, in a box and beside one. What is left is
compared when the box has ended: then there is no difference at all, but where carrel has said
that it did not take over a setting of git's.
"""

import contextlib
import dataclasses
import re

import lib
import pytest
from pair import GITCONFIG, TIMEOUT, alone, fresh, left, said, same


@dataclasses.dataclass(frozen=True)
class Row:
    """code: what it must exit with, so that a row cannot pass by failing twice. refused: a setting
    that the box's git has, and the host's does not get, with a word about it."""

    script: str
    code: int = 0
    js: bool = False
    streams: tuple = ("stdout", "stderr")
    beside: bool = False
    refused: str = ""


OUT = ("stdout",)
BIN = "PATH=$PWD/node_modules/.bin:$PATH; "

# Lists a copy in $OUT. Contents of .env are left out, and so is what git keeps for itself.
COPY = 'OUT=$(mktemp -d)/c; mkdir "$OUT"; '
LIST = (
    '; cd "$OUT"; find . -path ./.git -prune -o -type l -print -o -name .env -print -o'
    " -type f -exec sha256sum {} + | sort"
)

# Starts a server, waits for the address that it prints, and asks it for $2.
SERVE = """
serve() {
	: >log
	$1 >log 2>&1 & server=$!
	until url=$(sed 's/\\x1b\\[[0-9;]*m//g' log | grep -o 'http://[a-z0-9.]*:[0-9]*' | head -1) &&
		[ -n "$url" ]; do
		kill -0 $server || { cat log; exit 9; }
		sleep 0.05
	done
	curl -sSf "$url/$2"
	kill $server; wait $server || :
	rm log
}
"""

JS = {
    "vite build": Row("vite build --logLevel warn; cat dist/index.html"),
    "vite dev server": Row(SERVE + "serve vite js/main.js", streams=OUT),
    "vite dev server for all": Row(SERVE + "serve 'vite --host' index.html", streams=OUT),
    "vite preview": Row("vite build --logLevel warn;" + SERVE + "serve 'vite preview' index.html",
                        streams=OUT),
    "vitest": Row("vitest run --reporter=tap"),
    "jest": Row("jest --ci=false"),
    "jest --coverage": Row("jest --coverage --coverageReporters=text"),
    "fixers": Row("eslint --fix --cache . || prettier --write --log-level warn .; git diff"),
    "npx": Row("npx tsc --version; npx prettier --version; npm exec -- eslint --version"),
    "eslint": Row("eslint .", 1, beside=True),
    "prettier": Row("prettier --check .", 1, beside=True),
    "tsc": Row("tsc; cat out/*.d.ts", 2),
    "npm run": Row("npm run --silent hello"),
}  # fmt: skip
JS = {
    name: dataclasses.replace(row, script=BIN + row.script, js=True) for name, row in JS.items()
}

PY = f"{lib.PYTHON} "
# A browser that asks nobody: its own requests go to a port where nobody listens.
CHROMIUM = (
    "chromium --headless --no-sandbox --disable-background-networking --disable-component-update"
    " --proxy-server=127.0.0.1:9 "
)
WALKERS = {
    "ls": Row("ls; ls -R docs src"),
    "tar": Row(COPY + 'tar -cf - . | tar -xf - -C "$OUT"' + LIST),
    "rsync": Row(COPY + 'rsync -a ./ "$OUT"' + LIST),
    "rsync --copy-links": Row(COPY + 'rsync -rL --exclude .env ./ "$OUT"' + LIST),
    "cp -r": Row(COPY + 'cp -r . "$OUT"' + LIST),
    "cp -rL": Row(COPY + 'cp -rL . "$OUT"' + LIST),
    "cp -a": Row(COPY + 'cp -a . "$OUT"' + LIST),
    "copytree": Row(
        COPY + PY + "-c 'import shutil, sys; shutil.copytree(\".\", sys.argv[1],"
        ' dirs_exist_ok=True)\' "$OUT"' + LIST
    ),
    "grep -R": Row("grep -R TODAY . | sort"),
    "grep -r --include": Row("grep -rn sum --include='*.js' --include='*.json' . | sort"),
    "rg": Row("rg --no-heading --sort path -n sum ."),
    "rg of everything": Row("rg --no-ignore --hidden --sort path -g '!.git' --files"),
    "find": Row("find . -path ./.git -prune -o -type f -print | sort"),
    "find -L": Row("find -L . -name '*.c' -exec cat {} + | sort"),
    "find of the newer": Row("find . -newer package.json -name '*.nothing'"),
    "du": Row("du -s --apparent-size src docs | cut -f2"),
    "git status": Row("git status --porcelain --ignored"),
    "git ls-files": Row("git ls-files -co --exclude-standard"),
    "git clean -nd": Row("echo x >x; mkdir d; git clean -nd"),
    "git clean -ndx": Row("echo x >x; mkdir d; git clean -ndx"),
    "mkdir": Row("mkdir -p out/a/b; echo x >out/a/b/x"),
}
WALKERS = {name: dataclasses.replace(row, beside=True) for name, row in WALKERS.items()}

OTHERS = {
    "node --test": Row("node --test --test-reporter=tap"),
    "node --env-file": Row("node --env-file=.env --env-file=.env.development js/hello.js"),
    "npm pack": Row("npm pack --silent; tar -tzf everything-1.2.3.tgz | sort;"
                    "rm everything-1.2.3.tgz"),
    "pytest": Row("export TMPDIR=$HOME; " + PY + "-m pytest -q"),
    "pytest -p no:cacheprovider": Row("export TMPDIR=$HOME; " + PY + "-m pytest -v -p no:cacheprovider py"),
    "unittest": Row("cd py; " + PY + "-m unittest discover", streams=OUT),
    "python-dotenv": Row(PY + "py/app.py"),
    "compileall": Row(PY + "-m compileall -q ."),
    "mypy": Row("mypy py", 1),
    "go test": Row("go test -count=1 ./..."),
    "go vet and build": Row("go vet ./... && go build ./... && go list ./..."),
    "cargo test": Row("cargo test --offline"),
    "make": Row("make"),
    "sh": Row('set -a; . ./.env; . ./.env.development; set +a; sh -c \'echo "$VITE_TITLE"\''),
    "source in bash": Row("bash -euc 'source .env; source .env.development; echo $DEBUG'"),
    "loop over all": Row('for f in * */*; do [ -d "$f" ] || wc -c "$f" || exit 1; done'),
    "a service": Row(SERVE + "serve '" + PY + "-u -m http.server --bind 127.0.0.1 0' go.mod",
                     streams=OUT),
    "chromium": Row(CHROMIUM + '--dump-dom "file://$PWD/public/page.html"', streams=OUT),
}  # fmt: skip

# What a project's directory and the box's own machine are good for.
MACHINE = {
    "special files": "mkfifo f; (echo x >f) & cat f; rm f; ln Makefile m; ln -s x y; rm m y",
    "a socket in the project": PY
    + "-c \"import socket as s; l = s.socket(s.AF_UNIX); l.bind('s');"
    "l.listen(); c = s.socket(s.AF_UNIX); c.connect('s'); print(l.accept()[1])\"; rm s",
    "attributes": "chown $(id -u):$(id -g) Makefile; touch -d 2001-01-01 Makefile;"
    "chmod 755 Makefile; cp -a Makefile m; stat -c '%a %Y' m; truncate -s 10 m;"
    "fallocate -l 20 m; stat -c %s m; rm m",
    "renames": "mkdir a; echo x >a/x; mv a b; mv b src; mv js js2; mv js2 js; mv package.json p;"
    "mv p package.json; sed -i s/40/41/ src/main.c; git mv docs papers; git status --short",
    "removal": "rm -rf [a-n]*; git checkout -q .; git rm -rq .; ls; git reset -q --hard; ls",
    "sqlite": "sqlite3 db 'pragma journal_mode=wal; create table t(a); insert into t values (1);"
    "select * from t'; rm db*",
    "locks": "flock package.json echo x; flock -n .env echo y",
    "new files for settings": "mkdir -p apps/web; echo A=1 >apps/web/.env; echo B=2 >.env.local;"
    "echo fund=false >.npmrc; cat apps/web/.env .env.local .npmrc; npm config get fund",
    "interfaces": "node -p 'os.networkInterfaces().lo.length > 0';"
    + PY + "-c 'import socket; print(socket.if_nameindex()[0][1])'",
    "a server on ::1": "node -e 'const s = http.createServer((q, r) => r.end());"
    "s.listen(0, \"::1\", () => http.get({ host: \"::1\", port: s.address().port }, (r) => {"
    "console.log(r.statusCode); s.close() }))'",
    "a server on all addresses": "node -e 'const s = http.createServer((q, r) => r.end());"
    "s.listen(0, () => http.get({ host: \"localhost\", port: s.address().port }, (r) => {"
    "console.log(r.statusCode); s.close() }))'",
    "a watcher": "node -e 'const w = fs.watch(\"src\", (e, n) => { console.log(n); process.exit() });"
    'fs.writeFileSync("src/new", "")\'',
    "venv": PY + "-m venv --without-pip out; out/bin/python -c 'import sys; print(sys.prefix)'",
    "npm install": "mkdir pkg; echo '{\"name\":\"pkg\",\"version\":\"1.0.0\"}' >pkg/package.json;"
    "npm install --silent ./pkg; npm ls; cat package-lock.json",
    "npm init": "mkdir new; cd new; npm init -y >log; npm pkg set a=b;"
    "npm version patch; cat package.json",
    "cargo new": "cargo new --quiet out/new; cd out/new; git status -s; cargo run --offline -q",
}  # fmt: skip
MACHINE = {name: Row(script) for name, script in MACHINE.items()}

DATES = "export GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z; "
TRACKED = "echo MORE=1 >>.env.development; "
GIT = {
    "commit -am": TRACKED + "git commit -qam two; git show --stat --format=%H",
    "diff": TRACKED + "git diff; git diff --stat HEAD",
    "switch": "git switch -qc two; " + TRACKED + "git commit -qam two; git switch -q main;"
    "cat .env.development; git switch -q two; cat .env.development; git log --format=%H",
    "stash": TRACKED + "git stash -q; cat .env.development; git stash pop; git diff",
    "rebase": "git switch -qc two; " + TRACKED + "git commit -qam two; git switch -q main;"
    "echo x >x; git add x; git commit -qm x; git rebase -q main two; git log --format=%H",
    "restore and rm": TRACKED + "git restore .; git rm -q .env.development; git commit -qm rm;"
    "git checkout -q HEAD^ .env.development; git status --short",
    "archive": "git archive HEAD | tar -t",
    "add of everything": "echo x >x; git add -A -v; git status --short",
    "merge": "git switch -qc two; " + TRACKED + "git commit -qam two; git switch -q main;"
    "git merge -q --no-ff -m merge two; git log --format=%H",
    "hook": "mkdir .husky; printf '#!/bin/sh\\necho hook\\n' >.husky/pre-commit; chmod +x .husky/*;"
    "git config core.hooksPath .husky; echo x >x; git add x; git commit -qm x",
    "init": "git init -q -b new new; cd new; echo x >x; git add x; git commit -qm x; ls -A .git;"
    "git config --local --list",
    "clone": "git clone -q . new; cd new; git status -sb; git config --local --list; ls -A .git",
    "submodule add": "git clone -q --bare . out/r.git; git -c protocol.file.allow=always submodule"
    " add -q ./out/r.git sub; git commit -qm sub; cat .gitmodules; git submodule status; ls -A sub",
    "am, revert, cherry-pick": "echo x >x; git add x; git commit -qm x; git format-patch -q -1;"
    "git reset -q --hard HEAD^; git am -q *.patch; rm *.patch; git revert --no-edit HEAD;"
    "git cherry-pick HEAD^; git log --format=%H",
    "rebase -i": "echo x >x; git add x; git commit -qm x; GIT_EDITOR='sed -i s/x/y/' git commit -q"
    " --amend -e; GIT_SEQUENCE_EDITOR=true git rebase -q -i --root; git log --format=%H",
    "gc": "git gc -q; git fsck; git maintenance run; git repack -adq; git pack-refs --all;"
    "git reflog",
    "identity": "git var GIT_AUTHOR_IDENT; git config user.email; git config pull.rebase",
    "blame and grep": "git blame -s .env.development; git grep -n VITE",
}
# A program, and a URL that is a path.
REFUSED = {"hook": "core.hookspath", "submodule add": "submodule.sub.url"}
GIT = {
    f"git {name}": Row(DATES + script, refused=REFUSED.get(name, ""))
    for name, script in GIT.items()
}

# What users do on the host while a box runs, and a box may not.
HOST = {
    "mkdir -p": "mkdir -p .claude/worktrees/x; echo x >.claude/worktrees/x/f; ls .claude",
    "settings": "mkdir -p .vscode; echo '{}' >.vscode/settings.json; echo '{}' >.mcp.json",
    "git commit": DATES + "echo x >x; git add x; git commit -qm x; git status --short",
    "git config": "git config core.editor vi; git remote add up ../up; git config --list --local",
    "git stash -u": "echo x >x; git stash -qu; git stash pop -q; git status --short",
    "git switch": "git switch -qc two; git switch -q main; git branch",
    "git worktree": "git worktree add -q out/tree; ls -A out/tree; git worktree remove out/tree",
}
HOST = {name: Row(script) for name, script in HOST.items()}

ROWS = {**JS, **WALKERS, **OTHERS, **MACHINE, **GIT}
BESIDE = {name: row for name, row in ROWS.items() if row.beside} | HOST


@pytest.fixture
def at(place, everything, request):
    """at(ROW): a new project for it, which is the working directory."""
    lib.make_file(lib.current.home / ".gitconfig", GITCONFIG)

    @contextlib.contextmanager
    def make(row):
        modules = request.getfixturevalue("modules") if row.js else None
        with fresh(everything, place / "project", modules) as path:
            lib.current.cwd = path
            yield path

    return make


# Nothing here may ask a registry.
QUIET = "export npm_config_offline=true npm_config_update_notifier=false; "


def outside(row, path):
    """Temporary files go where they are removed with the test."""
    temporary = path.parent / "tmp"
    if not temporary.exists():
        lib.make_dir(temporary)
    done = lib.execute(alone(QUIET + row.script), timeout=TIMEOUT, env={"TMPDIR": str(temporary)})
    assert done.returncode == row.code, (done.stdout, done.stderr)
    return said(done, row.streams)


def without_config(lines, row):
    return [x for x in lines if not (row.refused and x.endswith(" .git/config"))]


def in_box_as_outside(at, row):
    with at(row) as path:
        wanted = outside(row, path) + left(path)
    with at(row) as path:
        done = lib.box("sh", "-euc", QUIET + row.script, timeout=TIMEOUT)
        if row.refused:
            line = f"change of {row.refused} in .git/config was not taken over"
            assert line in done.stderr.decode()
        found = said(done, row.streams) + left(path)
        same(without_config(found, row), without_config(wanted, row))


@pytest.mark.parametrize("name", ROWS)
def test_in_a_box_as_outside(at, name):
    """Also where clients and editors are in use, whose absent directories are kept."""
    for client in lib.CLIENTS:
        if "opencode" not in client:
            lib.make_dir(lib.current.home / client)
    in_box_as_outside(at, ROWS[name])


def test_where_opencode_is_in_use(at):
    """It obeys files without a question: the box has two that settle nothing, and git sees none."""
    lib.use_clients()
    in_box_as_outside(at, Row("git status --porcelain --ignored; git ls-files -o; git stash -u"))
    with at(Row("")) as path:
        done = lib.box("sh", "-c", "cat opencode.json opencode.jsonc; ls")
        assert lib.succeeded(done).startswith(b"{}\n{}\n")
        assert not (path / "opencode.json").exists()


@pytest.mark.parametrize("name", BESIDE)
def test_beside_a_box_as_without_one(at, name):
    row = BESIDE[name]
    with at(row) as path:
        wanted = outside(row, path) + left(path)
    with at(row) as path:
        box = lib.start_box("sh", "-c", "echo up; read x")
        lib.read_until(box.stdout, b"up\n")
        found = outside(row, path)
        _, err = box.communicate(b"x\n", timeout=TIMEOUT)
        assert box.returncode == 0, err
        same(found + left(path), wanted)


def test_clean_of_everything_in_a_box(at):
    """It removes what is there, and says of the stand-ins that it cannot: the one known failure."""
    script = "echo x >x; mkdir d; git clean -ffdx -e .env"
    with at(Row(script)) as path:
        outside(Row(script), path)
        wanted = left(path)
    with at(Row(script)) as path:
        done = lib.box("sh", "-c", script)
        assert done.returncode == 1
        names = re.findall(rb"failed to remove (\S+?)/?: Device or resource busy", done.stderr)
        assert names == [b".claude", b".codex", b".gemini", b".idea", b".vscode"]
        same(left(path), wanted)
