"""Suites: what public ones look like is read, what is wrong is reported whole."""

import json
import subprocess

import jsonschema
import lib
import pytest

BMAD = {
    "skill_name": "review",
    "_design_notes": "ignored",
    "evals": [
        {"id": "A1", "prompt": "One", "expected_output": "x", "expectations": ["It is so"],
         "timeout": 30},
        {"id": "B-2", "prompt": "Two", "files": ["data/in.csv"], "expectations": []},
    ],
}  # fmt: skip
BMAD_2 = {
    "cases": [
        {"id": "c1", "input": "Go on", "state_prefix": "We were here.", "rubric": ["It is"]}
    ]
}
CREATOR = {
    "skill_name": "review",
    "evals": [
        {"id": 0, "prompt": "Zero", "expectations": ["Yes"], "assertions": ["Yes"]},
        {"id": 1, "prompt": "One", "assertions": [{"id": "a", "text": "By text"},
                                                  {"name": "b", "description": "By words"}]},
        {"name": "third", "task": "Three", "expected_behavior": ["So"], "extra": {"x": [1]}},
    ],
}  # fmt: skip


def read(bench, *args):
    """The suite as carrel understood it."""
    done = lib.carrel("eval", "skills/review", "-n", "--json", *args, cwd=bench.project)
    return json.loads(lib.succeeded(done))


def refused(bench, *words, code=2):
    done = lib.carrel("eval", "skills/review", "-n", cwd=bench.project)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr.decode(), (word, done.stderr.decode())
    return done.stderr.decode()


def texts(case):
    return [grader["name"] for grader in case["graders"]]


def test_bmad(bench):
    bench.suite(BMAD)
    bench.write("data/in.csv", "a,b\n")
    bench.write("skills/review/evals/setup/all.txt", "all")
    bench.write("skills/review/evals/B-2/setup/one.txt", "one")
    suite = read(bench)
    first, second = suite["cases"]
    assert (first["id"], first["prompt"], texts(first)) == ("A1", "One", ["It is so"])
    assert first["limits"] == {"time": 30}
    assert second["files"] == [{"from": f"{bench.project}/data/in.csv", "to": "data/in.csv"}]
    assert [d.split("/evals/")[1] for d in second["setup"]] == ["setup", "B-2/setup"]
    assert [d.split("/evals/")[1] for d in first["setup"]] == ["setup"]
    assert list(suite["configurations"]) == ["with_skill", "without_skill"]
    assert suite["project"] == str(bench.project)


def test_bmad_2(bench):
    bench.suite(BMAD_2, "cases.json")
    (case,) = read(bench)["cases"]
    assert case["prompt"] == "We were here.\n\nGo on" and texts(case) == ["It is"]


def test_skill_creator(bench):
    """Ids 0 and 1, assertions of every form, each once; a task; keys that nobody knows."""
    bench.suite(CREATOR)
    zero, one, third = read(bench)["cases"]
    assert (zero["id"], texts(zero)) == ("0", ["Yes"])
    assert texts(one) == ["By text", "By words"]
    assert (third["id"], third["prompt"], texts(third)) == ("third", "Three", ["So"])


@pytest.mark.parametrize(
    "suite",
    [
        [{"query": "é – „ü“", "should_trigger": True}, {"query": "b", "should_trigger": False}],
        {"queries": [{"prompt": "a", "should_trigger": True}]},
        {"evals": [{"query": "a", "should_trigger": True}, {"id": 1, "prompt": "p"}]},
    ],
)
@pytest.mark.parametrize("name", ["evals.json", "triggers.json", "trigger_eval_set.json"])
def test_kind_by_content(bench, suite, name):
    bench.suite(suite, name)
    assert read(bench)["triggers"][0]["should_trigger"] is True


def test_what_is_written_can_be_read(bench):
    """And obeys the published schema."""
    bench.cases(
        {"id": "x/../y", "prompt": "p\n\"q\"", "turns": ["more"], "limits": {"time": "2m"},
         "network": {"allow": ["example.org"]}, "files": ["a.txt"],
         "graders": [{"type": "exists", "path": "a"},
                     {"type": "json", "path": "a", "at": "b[0]", "equals": {"c": [1, None]}},
                     {"type": "command", "command": ["true"], "exit": 1, "files": ["a.txt"]},
                     {"type": "tool_order", "tools": ["Read", "Write"]},
                     {"type": "max_usd", "value": 0.5}]},
    )  # fmt: skip
    bench.write("a.txt", "a")
    once = read(bench)
    bench.suite(once)
    assert read(bench) == once
    schema = json.loads(lib.succeeded(lib.carrel("schema", "suite")))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(once, schema)
    once["cases"][0]["graders"][0]["nonsense"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(once, schema)


def test_all_errors_at_once(bench):
    bench.suite(
        """{"evals": [
 {"id": 1, "prompt": "a", "files": ["/etc/passwd", "../x", "missing.txt"]},
 {"id": "1", "prompt": "  "},
 {"query": "q", "should_trigger": "false"},
 {"query": "q", "should_trigger": []},
 {"keywords": ["x"]},
 "text"
]}"""
    )
    said = refused(
        bench,
        'evals.json:2:37: files: "/etc/passwd" must be a relative path',
        'evals.json:2:52: files: "../x" must be',
        'evals.json:3:2: the id "1" is taken: line 2 has it, too',
        "evals.json:3:2: the prompt is empty",
        "evals.json:4:35: should_trigger: expected true or false, not a string",
        "evals.json:5:35: should_trigger: expected true or false, not a list",
        "evals.json:6:2: neither a case",
        "evals.json:7:2: expected an object, not a string",
    )
    assert "missing.txt" not in said  # what is not there is looked for when the text is right


def test_clients_of_configurations(bench):
    """Which there are, and what they cannot do, is said before anything starts."""
    case = {"id": "x", "prompt": "p", "turns": ["more"]}
    two = {"configurations": {"a": {}, "b": {"harness": "nosuch"}}, "agent": {"harness": "gpt"}}
    bench.suite({"version": 1, "cases": [case], **two})
    refused(bench, 'evals.json:15:15: harness: there is no client "nosuch"', 'client "gpt"')
    two = {"configurations": {"a": {}, "b": {"harness": "codex"}}}
    bench.suite({"version": 1, "cases": [case], **two})
    refused(bench, 'case x has "turns", which work with claude alone', "b is of codex")
    only = {**case, "configurations": ["a"], "limits": {"turns": 3}}
    bench.suite({"version": 1, "cases": [only], **two})
    done = lib.carrel("eval", "skills/review", "-n", cwd=bench.project)
    assert b"          b: codex" in lib.succeeded(done) and b"limits" not in done.stderr
    bench.suite({"version": 1, "cases": [{"prompt": "p"}], "limits": {"turns": 3}, **two})
    done = lib.carrel("eval", "skills/review", "-n", cwd=bench.project)
    assert done.returncode == 0 and b"held by claude alone, not by codex" in done.stderr
    two["configurations"]["b"]["harness"] = "command"
    bench.suite({"version": 1, "cases": [{"prompt": "p"}], **two})
    refused(bench, "configuration b: the client 'command' needs")


def test_a_file_that_is_not_there(bench):
    bench.suite([{"id": 1, "prompt": "a", "files": ["here.txt", "missing.txt"]}])
    bench.write("skills/review/evals/here.txt", "x")
    refused(bench, 'evals.json:7:4: files: "missing.txt" is neither in the project')


def test_a_link_that_leads_out(bench):
    bench.suite([{"id": 1, "prompt": "a", "files": ["out.txt"]}])
    (bench.project / "skills/review/evals/out.txt").symlink_to("/etc/passwd")
    refused(bench, "leads out of the suite's repository")


def test_a_suite_names_nothing_of_yours(bench):
    """It came with a repository, and what it names is shown to an agent."""
    bench.write("~/.ssh/id", "secret")
    case = {"id": "x", "prompt": "p"}
    for more, words in (
        ({"cases": [{**case, "files": [{"from": f"{bench.home}/.ssh/id", "to": "id"}]}]},
         "leads out of the suite's repository"),
        ({"cases": [{**case, "setup": "../../../../home/.ssh"}]},
         "evals.json:4:3: setup: there is no directory"),
        ({"cases": [{**case, "configurations": ["z"]}], "configurations": {"a": {}}},
         'evals.json:4:3: there is no configuration "z"'),
        ({"cases": [case], "configurations": {"a": {"skill": "../../../../other"}}},
         "leads out of the suite's repository"),
    ):  # fmt: skip
        lib.remove(bench.project.parent / "other")
        lib.make_file(bench.project.parent / "other/SKILL.md", "---\nname: other\n---\n")
        bench.suite({"version": 1, **more})
        refused(bench, words)
    path = bench.suite({"version": 1, "cases": [case], "project": str(bench.home)})
    done = lib.carrel("eval", path, "-n", cwd=bench.project)
    assert done.returncode == 2 and b"outside of its repository" in done.stderr
    done = lib.carrel("eval", path, "-n", "--project-root", bench.home, cwd=bench.project)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"review": ["keyword"], "other": {"route": 1}}', "no suite that carrel knows"),
        ("[]", "there is no case and no query in it"),
        ('{"evals": []}', "there is no case and no query in it"),
        ('"text"', "no suite that carrel knows"),
        ('{"evals": [{"id": 1, "prompt": "\\ud800"}]}', "half of a surrogate pair"),
        ("[1,", "evals.json:1:"),
        ('{"version": 2, "cases": []}', "version: this carrel reads version 1"),
        ('{"version": 1, "cases": [{"prompt": "x", "grader": []}]}', 'unknown key "grader"'),
        ('{"version": 1, "cases": [{"prompt": "x", "graders": [{"type": "regex", '
         '"pattern": "("}]}]}', "pattern: "),
    ],
)  # fmt: skip
def test_what_is_not_understood(bench, text, words):
    """Never zero cases and "pass"."""
    bench.suite(text)
    refused(bench, words)


def test_a_wrong_command_line(bench):
    done = lib.carrel("eval", "--no-such-option", "skills/review", cwd=bench.project)
    assert done.returncode == 2 and b"--no-such-option" in done.stderr


def test_nothing_found(bench):
    """It says where it looked, and eval init writes one to begin with."""
    said = refused(bench, "found no suite; looked in", "skills/review/evals")
    assert "carrel eval init" in said
    done = lib.carrel("eval", "init", "skills/review", cwd=bench.project)
    assert b"Wrote " in lib.succeeded(done)
    suite = read(bench)
    assert len(suite["cases"]) == 1 and len(suite["triggers"]) == 2
    again = lib.carrel("eval", "init", "skills/review", cwd=bench.project)
    assert again.returncode == 2 and b"is there already" in again.stderr


@pytest.mark.parametrize("where", ["evals/review", "evals/deep/er/review", "skills/review",
                                   "evals/called", "evals/deep/called"])  # fmt: skip
def test_places(bench, where):
    """By the directory's name, as BMAD's tools look, and by the one that the skill says."""
    bench.write("skills/review/SKILL.md", "---\nname: called\ndescription: d\n---\n")
    bench.write(f"{where}/evals.json", [{"id": 1, "prompt": "a"}])
    assert len(read(bench)["cases"]) == 1


def test_no_skill_is_named(bench):
    """The only one below, or the one that we are in; else it says which there are."""

    def plan(*args, cwd=bench.project, code=0):
        done = lib.carrel("eval", *args, cwd=cwd)
        assert done.returncode == code, done.stderr
        return (done.stdout + done.stderr).decode()

    assert "Wrote " in plan("init")
    assert "suite     skills/review/evals/evals.json (1 case, 2 queries)" in plan("-n")
    assert "suite     evals/evals.json" in plan("-n", cwd=bench.project / "skills/review")
    bench.write("node_modules/x/SKILL.md", "---\nname: x\n---\n")
    plan("-n")
    bench.write(".claude/skills/other/SKILL.md", "---\nname: other\n---\n")
    said = plan(code=2)
    assert ".claude/skills/other, skills/review" in said and "carrel eval .claude" in said
    said = plan(cwd=lib.make_dir(bench.project / "nothing"), code=2)
    assert "there is no skill in this directory or below it" in said


def test_controls_are_for_queries(bench):
    """What asks no query pays for no control."""
    bench.suite(BMAD["evals"][:1])
    bench.suite([{"query": "q", "should_trigger": True}], "triggers.json")
    for wanted, controls in (("A1", False), ("q001", True)):
        done = lib.carrel("eval", "-n", "--filter", wanted, cwd=bench.project)
        assert (b"2 controls" in lib.succeeded(done)) == controls


def test_two_candidates(bench):
    """It says which was taken."""
    bench.suite([{"id": 1, "prompt": "a"}])
    bench.suite([{"id": 1, "prompt": "b"}], "eval.json")
    done = lib.carrel("eval", "skills/review", "-n", cwd=bench.project)
    assert b"evals.json, not eval.json" in done.stderr


def test_options_go_over_the_suite(bench):
    bench.suite(BMAD["evals"][:1])
    suite = read(bench, "--model", "opus", "--no-baseline", "--harness", "codex")
    assert suite["agent"]["model"] == "opus" and suite["agent"]["harness"] == "codex"
    assert list(suite["configurations"]) == ["with_skill"]
    bench.write("skills/other/SKILL.md", "---\nname: other\n---\n")
    suite = read(bench, "--variant", "skills/other")
    assert suite["configurations"]["variant"] == {"skill": f"{bench.project}/skills/other"}


def test_usage(bench):
    for args, words in (
        (("skills/nothing",), "open the skill or suite skills/nothing: No such file"),
        (("skills/review", "--jobs", "0"), "from 1 to"),
        (("skills/review", "--threshold", "2"), "from 0 to 1"),
        (("a", "b", "c"), "takes nothing more"),
    ):
        done = lib.carrel("eval", *args, cwd=bench.project)
        assert done.returncode in (2, 125) and words in done.stderr.decode(), (args, done.stderr)
    # Nobody can be asked here.
    bench.suite([{"id": 1, "prompt": "a"}])
    clients = {"PATH": bench.env["PATH"]}
    done = lib.carrel("eval", "skills/review", cwd=bench.project, env=clients)
    assert done.returncode in (2, 3)
    assert subprocess.run(["ls", bench.out], capture_output=True, check=False).returncode
