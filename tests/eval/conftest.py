"""Fixtures of the tests of carrel eval: a skill with a suite, the real clients, a mock.

Verdicts are read from the run's directory and from what the mock was asked.
"""

import json
import sys

import lib
import pytest

sys.path.insert(0, str(lib.REPO / "tests" / "mock"))
import mock as mock_api  # noqa: E402

KEY = "sk-ant-test-0123456789abcdefghijklmnopqrstuvwxyz"
CONTROL = "MOCK:autoskill:control-word"
SKILL = "---\nname: review\ndescription: Reviews a diff.\n---\nDo it.\n"


@pytest.fixture
def mock():
    with mock_api.Mock() as server:
        yield server


class Run:
    """A run that has ended: its exit code, what was printed, its directory."""

    def __init__(self, done, parent):
        self.code = done.returncode
        self.out, self.err = done.stdout.decode(), done.stderr.decode()
        found = sorted(parent.glob("*")) if parent.exists() else []
        self.dir = found[-1] if found else None

    def json(self, name):
        return json.loads((self.dir / name).read_text())

    def attempts(self):
        """attempt.json of all, by the path of its directory."""
        return {
            str(path.parent.relative_to(self.dir)): json.loads(path.read_text())
            for path in sorted(self.dir.rglob("attempt.json"))
            if "replaced" not in path.parts
        }

    def verdicts(self):
        """Of trigger evals: the query's words, and what came of it."""
        return {
            a["query"]: a["verdict"] for a in self.attempts().values() if a["kind"] == "trigger"
        }


class Bench:
    """A user with a project that has a skill."""

    def __init__(self, mock, home, project):
        self.mock, self.home, self.project = mock, home, project
        self.out = project.parent / "runs"
        self.env = {
            "PATH": f"/usr/local/bin:/usr/bin:/bin:{lib.clients()}",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": mock.url,
        }
        self.write("skills/review/SKILL.md", SKILL)

    def write(self, name, content, mode=0o644):
        top = self.home if name.startswith("~/") else self.project
        text = content if isinstance(content, (str, bytes)) else json.dumps(content, indent=1)
        return lib.make_file(top / name.removeprefix("~/"), text, mode=mode)

    def suite(self, suite, name="evals.json"):
        return self.write(f"skills/review/evals/{name}", suite)

    def triggers(self, *queries, **more):
        """A suite of carrel's own with these queries, which should all fire."""
        rows = [{"query": query, "should_trigger": True} for query in queries]
        self.suite({"version": 1, "control": CONTROL, "triggers": rows, **more})

    def cases(self, *cases, **more):
        self.suite({"version": 1, "repeat": 1, "cases": list(cases), **more})

    def arguments(self, args):
        word = () if "--resume" in args else ("skills/review",)
        return ("eval", *word, "-y", "--output-dir", str(self.out), *args)

    def run(self, *args, env=None, **how):
        done = lib.carrel(
            *self.arguments(args), cwd=self.project, env={**self.env, **(env or {})}, **how
        )
        return Run(done, self.out)

    def start(self, *args, **how):
        return lib.start(*self.arguments(args), cwd=self.project, env=self.env, **how)

    def asked(self):
        """What the model was asked."""
        return [r["body"] for r in self.mock.requests if r["path"].startswith("/v1/messages")]


@pytest.fixture
def bench(mock, home, project):
    return Bench(mock, home, project)


def script(*lines):
    """An agent of the harness `command`: a shell script."""
    return ["/bin/sh", "-c", "\n".join(lines)]
