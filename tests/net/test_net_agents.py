"""The real clients, each with its own hosts allowed and no other.

Under the names of the APIs answers the mock, outside, with a certificate of the lab's CA. The
agent tries to reach another host, by way of its shell; that must fail in the same session in
which the client itself is answered.
"""

import hashlib
import json
import sys

import lib
import pytest

sys.path.insert(0, str(lib.REPO / "tests" / "mock"))
import mock as mock_api  # noqa: E402

HOST = {"claude": "api.anthropic.com", "codex": "api.openai.com"}
OWN = {
    "claude": {"api.anthropic.com", "platform.claude.com"},
    "codex": {"api.openai.com", "chatgpt.com", "auth.openai.com"},
}
MODEL = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.5"}
KEY = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}
# With the provider that it has built in, Codex tries WebSockets first, for ten seconds.
PROVIDER = '{name="x",base_url="https://api.openai.com/v1",env_key="CODEX_API_KEY"}'
ARGS = {
    "claude": [],
    "codex": ["-c", f"model_providers.x={PROVIDER}", "-c", "model_provider=x"],
}
API = ("93.184.216.60", "2606:2800:220::60")


@pytest.fixture(scope="module")
def api(_lab):
    """The mock, at both addresses of both names."""
    with mock_api.Mock() as mock:
        _lab.dns({name: API for name in HOST.values()})
        for address in API:
            tls = list(HOST.values())
            _lab.http(address, 443, tls=tls, handler=mock_api.Handler).mock = mock
        yield mock


def run(lab, project, harness, prompt, *opts, **more):
    """An agent of this client."""
    agent = {"harness": harness, "prompt": prompt, "model": MODEL[harness], **more}
    agent["args"] = ARGS[harness]
    env = {"NODE_EXTRA_CA_CERTS": "/ca.pem", "SSL_CERT_FILE": "/ca.pem"}
    agent["env"] = env | {KEY[harness]: "${" + KEY[harness] + "}"}
    path = lib.make_file(project / "carrel.json", json.dumps({"agents": {"one": agent}}))
    outer = {"PATH": f"/usr/local/bin:/usr/bin:/bin:{lib.clients()}",
             "CARREL_TRUST": hashlib.sha256(path.read_bytes()).hexdigest(),
             KEY[harness]: "sk-ant-test-0123456789abcdefghijklmnopqrstuvwxyz"}  # fmt: skip
    args = ["run", "-y", "--mount", f"{lab.ca}:/ca.pem", *opts, "one"]
    return lab.run(args, env=outer, timeout=90)


@pytest.mark.parametrize("harness", HOST)
def test_client_reaches_its_own_hosts(lab, world, api, client, project, harness):
    client(harness)
    api.requests.clear()
    command = "touch from-the-agent; curl -sS -m 10 http://www.example.org/ >got"
    done = run(lab, project, harness, f"MOCK:bash:{command}")
    lib.succeeded(done)
    assert [r for r in api.requests if r["method"] == "POST"], "the model was asked"
    assert (project / "from-the-agent").exists() and (project / "got").read_text() == ""
    assert lab.heard("tcp", port=443) and not lab.heard("http")
    assert {e.address for e in lab.heard("tcp")} <= {*API}
    assert HOST[harness] in {e.name for e in lab.heard("dns")} <= OWN[harness]
    assert b"refused: www.example.org" in done.stderr

    done = run(lab, project, harness, f"MOCK:bash:{command}", "--allow", "www.example.org")
    lib.succeeded(done)
    assert lab.heard("http", host="www.example.org"), "the same where it is allowed"


@pytest.mark.parametrize("harness", HOST)
def test_client_without_its_hosts(lab, world, api, client, project, harness):
    """An empty list of hosts is a list: the client hears that its host is not there."""
    client(harness)
    api.requests.clear()
    limit = ["--limit", "time=5s"]
    done = run(lab, project, harness, "MOCK:text:hello", *limit, network={"allow": []})
    assert done.returncode != 0 and HOST[harness].encode() in done.stderr, done.stderr
    assert not api.requests and not lab.heard("tcp") and not lab.heard("dns")
