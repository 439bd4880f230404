"""Package managers in a box: npm, pip and go fetch a package from the registry that is allowed.

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
MODULE = "example.org/one"


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


@pytest.fixture(scope="module")
def registry(_lab):
    files = {**npm_registry(), **pip_index(), **go_proxy()}

    def serve(handler):
        content = files.get(handler.path)
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


@pytest.mark.parametrize("script, mark, allow", [(NPM, b"of npm", "@npm"), (PIP, b"of pip", HOST),
                                                 (GO, b"of go", HOST)], ids=["npm", "pip", "go"])  # fmt: skip
def test_a_package_is_fetched(lab, world, registry, script, mark, allow):
    lab.dns({HOST: [ADDRESS]})
    lib.make_file(lib.current.home / ".npmrc", f"registry={URL}/\n")
    cmd = ["sh", "-ec", f"rm -rf work; mkdir work; cd work; {script}"]
    assert mark in lib.succeeded(boxed(lab, world, *cmd, allow=[allow]))
    heard = {e.path for e in lab.heard("http", host=HOST, tls=True)}
    assert len(heard) >= 2 and heard <= set(registry), heard
    assert {e.name for e in lab.heard("dns")} == {HOST}

    lab.clear()
    assert mark in lib.succeeded(bare(lab, world, *cmd))
    assert {e.path for e in lab.heard("http", host=HOST)} == heard

    lab.clear()
    refused = boxed(lab, world, *cmd, allow=["git.example.org"])
    assert refused.returncode != 0 and nothing_heard(lab)
