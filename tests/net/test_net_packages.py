"""Package managers in a box: npm, pip, go and cargo fetch a package from the registry that is allowed.

As in test_net_programs.py each runs in a box that may reach it, in the lab without a box, and
in one that may not.
"""

import base64
import hashlib
import io
import json
import tarfile
import zipfile

import lib
import pytest
from test_net_programs import bare, boxed, nothing_heard

HOST, ADDRESS = "packages.example.org", "93.184.216.70"
URL = f"https://{HOST}"
MODULE, INDEX = "example.org/one", "/index.git/"


def tar(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def pack(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def npm_registry():
    package = {"name": "one", "version": "1.0.0"}
    archive = tar({"package/package.json": json.dumps(package), "package/index.js": "// of npm\n"})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    package["dist"] = {"tarball": f"{URL}/one/-/one-1.0.0.tgz", "integrity": integrity}
    index = {"name": "one", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": package}}
    return {"/one": json.dumps(index), "/one/-/one-1.0.0.tgz": archive}


def pip_index():
    about = "one-1.0.dist-info"
    wheel = pack({
        "one.py": "# of pip\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    })  # fmt: skip
    file = "one-1.0-py3-none-any.whl"
    return {"/simple/one/": f'<a href="/files/{file}">{file}</a>', f"/files/{file}": wheel}


def go_proxy():
    there, top = f"/go/{MODULE}/@v/v1.0.0", f"{MODULE}@v1.0.0"
    module = f"module {MODULE}\n"
    files = {f"{top}/go.mod": module, f"{top}/one.go": "package one // of go\n"}
    return {f"{there}.info": '{"Version": "v1.0.0"}', f"{there}.mod": module,
            f"{there}.zip": pack(files)}  # fmt: skip


def cargo_index(top):
    """The crate, and a repository that says so: git reads it as files, without a program."""
    crate = tar({"one-1.0.0/Cargo.toml": '[package]\nname = "one"\nversion = "1.0.0"\n',
                 "one-1.0.0/src/lib.rs": "// of cargo\n"})  # fmt: skip
    entry = {"name": "one", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
             "cksum": hashlib.sha256(crate).hexdigest()}  # fmt: skip
    index = lib.make_dir(top / "index")
    lib.git("init", "-q", cwd=index)
    for name, what in {"config.json": {"dl": f"{URL}/crates"}, "3/o/one": entry}.items():
        lib.make_file(index / name, json.dumps(what) + "\n")
    lib.git("add", ".", cwd=index)
    lib.git("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "1", cwd=index)
    lib.git("update-server-info", cwd=index)
    git = index / ".git"
    files = {f"{INDEX}{p.relative_to(git)}": p.read_bytes() for p in git.rglob("*") if p.is_file()}
    return {**files, "/crates/one/1.0.0/download": crate}


@pytest.fixture(scope="module")
def registry(_lab):
    files = {**npm_registry(), **pip_index(), **go_proxy(), **cargo_index(_lab.top)}

    def serve(handler):
        content = files.get(handler.path.partition("?")[0])
        kind = "text/html" if handler.path.startswith("/simple") else "application/octet-stream"
        handler.reply(content or "", 200 if content else 404, kind)

    _lab.http(ADDRESS, 443, tls=[HOST], routes={"/": serve})
    return files


NPM = f"""export npm_config_cache=$PWD/cache npm_config_update_notifier=false npm_config_fetch_retries=0
    npm install --registry={URL}/ --no-audit --no-fund one && cat node_modules/one/*.js"""
# To make an environment takes seconds; one is enough.
PIP = f"""[ -d ../env ] || {lib.PYTHON} -m venv ../env
    ../env/bin/pip install --cert $SSL_CERT_FILE --no-cache-dir --disable-pip-version-check \
    --retries 0 --index-url {URL}/simple --target . one && cat one.py"""
GO = f"""export GOPATH=$PWD/go GOCACHE=$PWD/cache GOPROXY={URL}/go GONOSUMDB='*' GO111MODULE=on
    GOFLAGS=-modcacherw go mod download {MODULE}@v1.0.0 && cat go/pkg/mod/{MODULE}@v1.0.0/one.go"""

# git fetches the index, cargo itself the crate.
CARGO = f"""export CARGO_HOME=$PWD/home CARGO_REGISTRIES_LAB_INDEX={URL}{INDEX} \
    CARGO_NET_GIT_FETCH_WITH_CLI=true CARGO_HTTP_CAINFO=$SSL_CERT_FILE CARGO_NET_RETRY=0
    mkdir src; : >src/lib.rs
    printf '[package]\\nname="x"\\nversion="1.0.0"\\n[dependencies.one]\\n' >Cargo.toml
    printf 'version="1"\\nregistry="lab"\\n' >>Cargo.toml
    /usr/bin/cargo fetch && cat home/registry/src/*/one-1.0.0/src/lib.rs"""


def is_there(path, registry):
    """What git looks for in an index besides may be missing."""
    return path in registry or path.startswith(INDEX)


@pytest.mark.parametrize(
    "script, mark, allow",
    [(NPM, b"of npm", "@npm"), (PIP, b"of pip", HOST), (GO, b"of go", HOST),
     (CARGO, b"of cargo", HOST)],
    ids=["npm", "pip", "go", "cargo"],
)  # fmt: skip
def test_a_package_is_fetched(lab, world, registry, script, mark, allow):
    lab.dns({HOST: [ADDRESS]})
    lib.make_file(lib.current.home / ".npmrc", f"registry={URL}/\n")
    cmd = ["sh", "-ec", f"rm -rf work; mkdir work; cd work; {script}"]
    assert mark in lib.succeeded(boxed(lab, world, *cmd, allow=[allow]))
    heard = {e.path for e in lab.heard("http", host=HOST, tls=True)}
    assert len(heard) >= 2 and all(is_there(path, registry) for path in heard), heard
    assert {e.name for e in lab.heard("dns")} == {HOST}

    lab.clear()
    assert mark in lib.succeeded(bare(lab, world, *cmd))
    assert {e.path for e in lab.heard("http", host=HOST)} == heard

    lab.clear()
    refused = boxed(lab, world, *cmd, allow=["git.example.org"])
    assert refused.returncode != 0 and nothing_heard(lab)
