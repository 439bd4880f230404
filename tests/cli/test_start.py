"""What a start shows and asks: the short form, what was agreed to before, one's own clients."""

import base64
import hashlib
import json
import os
import time

import lib
import pytest

ASKED = "Start this box? [y/N/?] "
# A client that says how it was started, and in which box.
CLIENT = '#!/bin/sh\necho "NAME is up: $*"\n'


@pytest.fixture
def clients(place, project):
    """One of each name on the PATH; the environment that has them."""
    for name in ("claude", "codex", "gemini", "opencode"):
        lib.make_file(place / "bin" / name, CLIENT.replace("NAME", name), mode=0o755)
    return {"PATH": f"/usr/local/bin:/usr/bin:/bin:{place}/bin"}


def on_terminal(*args, env=None, **how):
    return lib.terminal([lib.program(), *args], env=env, **how)


def plain(child):
    """What was shown since the last look, without colours."""
    return child.before.decode().replace("\x1b[1m", "").replace("\x1b[0m", "")


def lines(child):
    """The short form by label."""
    found = {}
    for line in plain(child).splitlines():
        label = line[:11].strip()
        if label:
            found[label] = line[11:]
            last = label
        elif line.strip():
            found[last] += " " + line.strip()
    return found


def answer(*args, env=None, word="y", code=0, **how):
    """Asked once, and answered so; the short form by label."""
    child = on_terminal(*args, env=env, **how)
    child.expect_exact(ASKED)
    shown = lines(child)
    child.sendline(word)
    assert lib.finish(child) == code
    return shown


def unasked(*args, env=None, code=0, **how):
    """Not asked at all; what was printed."""
    child = on_terminal(*args, env=env, **how)
    assert lib.finish(child) == code, child.before
    assert ASKED not in plain(child)
    return plain(child)


def state(home, *names):
    return home.joinpath(".local/state/carrel", *names)


# ---- the short form ---------------------------------------------------------------------


def test_the_short_form_has_what_matters(project, clients):
    shown = answer(env=clients | {"ANTHROPIC_API_KEY": "k" * 60}, word="n", code=125)
    assert list(shown) == ["box", "runs", "writes", "reaches", "login", "prompts"]
    assert shown["box"] == "carrel-project"
    assert shown["runs"] == "your own Claude Code"
    assert shown["writes"].startswith(f"{project}; except ")
    assert shown["reaches"] == "api.anthropic.com, platform.claude.com; no other host"
    assert shown["login"] == "ANTHROPIC_API_KEY"
    assert shown["prompts"].startswith("off: Claude Code asks for no permission")


def test_a_command_has_no_login_and_no_prompts(project):
    shown = answer("run", "--env", "A=secret", "--mount", "/var:/data", "--", "true", "a b")
    assert list(shown) == ["box", "runs", "writes", "reads", "reaches", "variables"]
    assert shown["runs"] == "true 'a b'" and shown["variables"] == "A"
    assert shown["reads"] == "also /var at /data"
    assert shown["reaches"] == "nothing: it has no network"


def test_a_question_mark_shows_all_of_it_and_asks_again(project):
    child = on_terminal("run", "--", "echo", "it", "ran", size=(60, 120))
    child.expect_exact(ASKED)
    short = plain(child)
    child.sendline("?")
    child.expect_exact(ASKED)
    whole = plain(child)
    assert "layers " not in short and ".git/hooks" not in short
    assert "seccomp strict" in whole and ".git/hooks" in whole
    child.sendline("y")
    child.expect_exact("it ran")
    assert lib.finish(child) == 0


def test_no_line_is_wider_than_a_terminal(project):
    child = on_terminal("run", "--", "true", *["word"] * 60)
    child.expect_exact(ASKED)
    assert max(len(line) for line in plain(child).splitlines()) < 80
    child.sendline("n")
    assert lib.finish(child) == 125


def test_what_runs_on_this_machine_stands_last(project):
    """After all that a new manifest grants, however long that is."""
    env = {"TOKEN": "!/bin/echo secret", **{f"A{i}": "v" for i in range(50)}}
    agent = {"harness": "command", "command": ["true"], "env": env}
    lib.make_file(project / "carrel.json", json.dumps({"agents": {"x": agent}}))
    child = on_terminal("run", "x", size=(24, 100))
    child.expect_exact("Approve the manifest and start this box? [y/N/?] ")
    shown = plain(child).rstrip().splitlines()
    assert shown[-1].endswith("/echo secret outside of the box, for TOKEN")
    assert any("agents.x.env.A49" in line for line in shown[:-1])
    child.sendline("n")
    assert lib.finish(child) == 125


# ---- agreed to before -------------------------------------------------------------------


def test_the_same_plan_is_asked_about_once(project, home, place):
    answer("run", "--", "true")
    assert unasked("run", "--", "true") == ""
    # Another command, another variable, another project: another plan.
    answer("run", "--", "echo", word="n", code=125)
    answer("run", "--env", "A=1", "--", "true", word="n", code=125)
    other = lib.make_dir(place / "other")
    answer("run", "--", "true", word="n", code=125, cwd=other)
    # A no was no yes, and a value is no part of a plan.
    answer("run", "--env", "A=1", "--", "true")
    unasked("run", "--env", "A=2", "--", "true")


def test_without_a_terminal_what_was_agreed_to_runs(project):
    env = {"TERM": "xterm-256color"}
    lib.failed_clearly(lib.carrel("run", "--", "echo", "ran", env=env), "not a terminal")
    answer("run", "--", "echo", "ran")
    assert lib.succeeded(lib.carrel("run", "--", "echo", "ran", env=env)) == b"ran\n"


def test_ones_own_client_shows_itself_and_asks_no_more(project, clients):
    answer(env=clients)
    shown = unasked("--", "--continue", env=clients)
    assert "claude is up" in shown and "--continue" in shown
    assert "prompts    off" in shown, "what it is stands there all the same"
    # What a box changed in the configuration is in a layer of the project's, and asks nothing.
    lib.make_file(project / "change", "#!/bin/sh\ntouch ~/.claude/changed\n", mode=0o755)
    lib.succeeded(lib.carrel("shell", "-y", "mine", env=clients | {"SHELL": "/bin/sh"}, input=b"./change\n"))
    unasked(env=clients)
    answer("--prompts", env=clients, word="n", code=125)


def test_what_grants_more_is_asked_about(project, clients, home):
    """A name that was protected and is not any more, say."""
    answer("run", "--", "true")
    answer("run", "--protect", "!.vscode", "--", "true", word="n", code=125)
    (project / ".vscode").mkdir(exist_ok=True)
    lib.give(project / ".vscode")
    unasked("run", "--", "true")


def test_a_declared_agent_is_always_asked_about(project):
    text = json.dumps({"agents": {"x": {"harness": "command", "command": ["true"]}}})
    lib.make_file(project / "carrel.json", text)
    env = {"CARREL_TRUST": hashlib.sha256(text.encode()).hexdigest()}
    for _ in range(2):
        answer("run", "x", env=env)


def confirm(home, word):
    lib.make_file(home / ".config/carrel/carrel.json", json.dumps({"confirm": word}))


def test_the_question_always_or_never(project, home):
    confirm(home, "always")
    for _ in range(2):
        answer("run", "--", "true")
    confirm(home, "never")
    unasked("run", "--", "echo")
    assert lib.succeeded(lib.carrel("run", "--", "echo", "ran")) == b"ran\n"
    # But never for a manifest that nobody has seen.
    agent = {"harness": "command", "command": ["true"]}
    lib.make_file(project / "carrel.json", json.dumps({"agents": {"x": agent}}))
    child = on_terminal("run", "x")
    child.expect_exact("Approve the manifest and start this box? [y/N/?] ")
    child.sendline("n")
    assert lib.finish(child) == 125
    lib.make_file(home / ".config/carrel/carrel.json", "{ broken")
    (project / "carrel.json").unlink()
    answer("run", "--", "true", word="n", code=125)


def test_a_store_that_cannot_be_read_is_no_yes(project, home):
    answer("run", "--", "true")
    agreed = state(home, "agreed")
    (name,) = os.listdir(agreed)
    (agreed / name).rename(agreed / "elsewhere")
    os.symlink("elsewhere", agreed / name)
    child = on_terminal("run", "--", "true")
    child.expect_exact("what you agreed to before cannot be read")
    child.expect_exact(ASKED)
    child.sendline("y")
    child.expect_exact("your answer is not kept")
    assert lib.finish(child) == 0
    (agreed / name).unlink()
    (agreed / "elsewhere").rename(agreed / name)
    unasked("run", "--", "true")


def test_a_no_makes_no_instance(project, clients, home):
    answer(env=clients, word="n", code=125)
    assert not state(home, "instances").exists()
    answer(env=clients)
    assert os.listdir(state(home, "instances"))


def test_reset_forgets_what_was_agreed_to(project, clients, home):
    answer(env=clients)
    unasked(env=clients)
    lib.succeeded(lib.carrel("instances", "reset", "-y"))
    answer(env=clients, word="n", code=125)


# ---- prompts ----------------------------------------------------------------------------

SKIPS = {
    "claude": "--dangerously-skip-permissions",
    "codex": "--dangerously-bypass-approvals-and-sandbox",
    "gemini": "--yolo",
    "opencode": "--auto",
}


@pytest.mark.parametrize("name", SKIPS)
def test_prompts_are_off_unless_somebody_says_on(project, clients, home, name):
    def argv(*opts):
        plan = json.loads(lib.succeeded(lib.carrel("plan", "--json", *opts, name, env=clients)))
        assert plan["agent"]["prompts"] == ("off" if SKIPS[name] in plan["argv"] else "on")
        return plan["argv"]

    assert SKIPS[name] in argv()
    assert SKIPS[name] not in argv("--prompts")
    lib.succeeded(lib.carrel("instances", "set", "permissions.skipPrompts=false", env=clients))
    assert SKIPS[name] not in argv()
    lib.succeeded(lib.carrel("instances", "set", "permissions.skipPrompts=", env=clients))
    mine = {"mine": {"permissions": {"skipPrompts": False}}}
    lib.make_file(home / ".config/carrel/carrel.json", json.dumps(mine))
    assert SKIPS[name] not in argv()


def test_with_y_it_is_said_all_the_same(project, clients):
    said = "asks for no permission in this box"
    assert said in unasked("-y", env=clients)
    assert said not in unasked("-y", "--prompts", env=clients)
    assert said not in unasked("run", "-y", "--", "true")


# ---- clients by their names -------------------------------------------------------------


@pytest.mark.parametrize("name", SKIPS)
@pytest.mark.parametrize("words", [("NAME",), ("run", "NAME")], ids=["name", "run"])
def test_ones_own_client_by_its_name(project, clients, name, words):
    words = [word.replace("NAME", name) for word in words]
    shown = unasked(*words, "-y", "--", "--more", env=clients)
    assert f"{name} is up: " in shown and "--more" in shown


def test_a_declared_agent_of_that_name_is_meant_by_run(project, clients):
    agent = {"harness": "command", "command": ["echo", "declared"]}
    text = json.dumps({"agents": {"codex": agent}})
    lib.make_file(project / "carrel.json", text)
    env = clients | {"CARREL_TRUST": hashlib.sha256(text.encode()).hexdigest()}
    shown = unasked("run", "-y", "codex", env=env)
    assert "declared\r\n" in shown and "your own Codex is `carrel codex`" in shown
    shown = unasked("codex", "-y", env=env)
    assert "codex is up" in shown and "agent of that name is `carrel run codex`" in shown


def test_what_mine_says_for_another_client_is_not_for_this_one(project, clients, home):
    mine = {"mine": {"harness": "codex", "model": "of-codex", "args": ["--of-codex"]}}
    lib.make_file(home / ".config/carrel/carrel.json", json.dumps(mine))
    assert "of-codex" in unasked("-y", env=clients)
    assert "of-codex" in unasked("codex", "-y", env=clients)
    shown = unasked("claude", "-y", env=clients)
    assert "claude is up" in shown and "of-codex" not in shown


def test_a_program_as_the_first_word_is_hinted_at(project, clients):
    hint = "to run that program in a box: carrel run -- ls"
    assert hint in unasked("-y", "--", "ls", "-l", env=clients)
    assert hint in answer("--", "ls", env=clients)["note"]
    for words in (["ls of this"], ["--ls"], ["no-such-program"], []):
        assert "to run that program" not in unasked("-y", "--", *words, env=clients)
    assert "to run that program" not in unasked("run", "-y", "--", "ls", env=clients)


@pytest.mark.parametrize("headless", [False, True])
def test_a_clients_own_word_for_a_run_stands_first(project, clients, headless):
    """Else it would be taken for a prompt, and our options not for those of the run."""
    for name, word in (("codex", "exec"), ("opencode", "run")):
        words = (name, "-y", "--", word, "--json", "do it")
        if headless:
            shown = lib.succeeded(lib.carrel(*words, env=clients)).decode()
        else:
            shown = unasked(*words, env=clients)
        argv = shown.partition(f"{name} is up: ")[2].split()
        assert argv[0] == word and argv.count(word) == 1 and argv[-3:] == ["--json", "do", "it"]
        assert SKIPS[name] in argv and "-" not in argv and "--title" not in argv


def test_a_word_for_the_client_comes_after_the_dashes(project, clients):
    done = lib.carrel("codex", "resume", env=clients)
    lib.failed_clearly(done, "'resume'", "carrel codex -- resume")


# ---- going on with a conversation -------------------------------------------------------

TALK = "0a1b2c3d-0123-4567-89ab-0123456789ab"


def talk(place, where, name):
    """Claude Code that leaves a file among its conversations."""
    script = f"#!/bin/sh\nmkdir -p {where}\n: >{where}/'{name}'\n"
    lib.make_file(place / "bin/claude", script, mode=0o755)


NAMES = {
    TALK + ".jsonl": True,
    TALK.upper() + ".jsonl": False,
    TALK + ".json": False,
    TALK[:-1] + ".jsonl": False,
    "a;b c$(x).jsonl": False,
    TALK + "x.jsonl": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_only_a_uuid_is_offered(project, clients, place, name):
    talk(place, "$HOME/.claude/projects/p", name)
    shown = unasked("-y", env=clients)
    last = f"to go on with this conversation: carrel -- --resume {TALK}\r\n"
    assert shown.endswith(last) == NAMES[name]
    assert ("to go on" in shown) == NAMES[name]


def test_only_a_new_conversation_of_this_depth_is_offered(project, clients, place):
    talk(place, "$HOME/.claude/projects/p/deeper", TALK + ".jsonl")
    assert "to go on" not in unasked("-y", env=clients)
    talk(place, "$HOME/.claude/projects/p", TALK + ".jsonl")
    assert "carrel -- --resume" in unasked("run", "-y", "mine", env=clients)
    assert "carrel claude -- --resume" in unasked("claude", "-y", env=clients)
    lib.settle()
    lib.make_file(place / "bin/claude", "#!/bin/sh\n", mode=0o755)
    assert "to go on" not in unasked("-y", env=clients), "that one is older"
    # Nobody goes on with what was no conversation.
    talk(place, "$HOME/.claude/projects/p", TALK + ".jsonl")
    assert b"to go on" not in lib.carrel("claude", "-y", env=clients).stderr


# ---- logins -----------------------------------------------------------------------------


def claude_login(ends):
    oauth = {"accessToken": "a", "refreshToken": "r", "expiresAt": ends * 1000, "scopes": []}
    return ".claude/.credentials.json", {"claudeAiOauth": oauth}


def codex_login(ends):
    parts = [{"alg": "none"}, {"exp": ends, "sub": "ada"}]
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts]
    token = ".".join(text.decode().rstrip("=") for text in texts) + ".signature"
    return ".codex/auth.json", {"tokens": {"access_token": token, "refresh_token": "r"}}


def gemini_login(ends):
    tokens = {"access_token": "a", "refresh_token": "r", "expiry_date": ends * 1000}
    return ".gemini/oauth_creds.json", tokens


@pytest.mark.parametrize("login", [claude_login, codex_login, gemini_login])
@pytest.mark.parametrize("expired", [False, True], ids=["good", "expired"])
def test_until_when_a_login_is_good(project, clients, home, login, expired):
    name = login.__name__.partition("_")[0]
    ends = int(time.time()) + (-3600 if expired else 3600)
    path, content = login(ends)
    lib.make_file(home / path, json.dumps(content), mode=0o600)
    shown = answer(name, env=clients | {"TZ": "UTC"}, word="n", code=125)
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(ends))
    assert shown["login"].endswith(f"{'expired' if expired else 'good until'} {when}")
    done = lib.carrel(name, "-y", env=clients, input=b"do it")
    assert (b"has expired" in done.stderr) == expired
    assert ("note" in shown) == expired and (not expired or "once outside" in shown["note"])


@pytest.mark.parametrize("text", ["", "no", "a.b", "a.b.c", "a.!!.c", "a.bnVsbA.c", "a." + "A" * 9999 + ".c"])
def test_a_token_that_is_none_has_no_end(project, clients, home, text):
    login = {"tokens": {"access_token": text or "x", "refresh_token": "r"}}
    lib.make_file(home / ".codex/auth.json", json.dumps(login), mode=0o600)
    shown = answer("codex", env=clients, word="n", code=125)
    assert shown["login"] == "yours of Codex"
