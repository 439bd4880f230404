"""A user of whom boxes keep things: his configuration, his client, what lies on the host.

The client is a shell that does what its standard input says, under the name that carrel looks
for; so any command can work on ~/.claude as a client would. Real clients are in tests/clients.
"""

import hashlib
import json
import os

import arena
import lib

CLIENT = "#!/bin/sh\nexec /bin/sh -s\n"
LOGIN = {
    "accessToken": "access-of-the-user",
    "refreshToken": "refresh-of-the-user",
    "expiresAt": 4102444800000,
    "scopes": ["user:inference"],
}


class User:
    """A user with a configuration and a client, and the project that is worked in."""

    def __init__(self, place, home, project):
        self.place, self.home, self.project = place, home, project
        self.claude = home / ".claude"
        self.state = home / ".local" / "state"
        self.bin = lib.make_file(place / "bin" / "claude", CLIENT, mode=0o755).parent
        self.file("settings.json", '{"model": "of-the-user"}\n')
        self.file("CLAUDE.md", "of the user\n")
        self.file("skills/one/SKILL.md", "a skill\n")
        self.file("old/first", "1\n")
        self.file("old/second", "2\n")
        lib.make_file(home / ".claude.json", '{"theme": "dark"}\n', mode=0o600)
        self.login("access-of-the-user")
        self.before = lib.snapshot(self.claude)

    def file(self, name, text, mode=0o644):
        return lib.make_file(self.claude / name, text, mode=mode)

    def login(self, token):
        login = {"claudeAiOauth": LOGIN | {"accessToken": token}}
        self.file(".credentials.json", json.dumps(login), 0o600)
        self.before = lib.snapshot(self.claude)

    def env(self, env=None):
        own = {"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin"}
        return own | {"XDG_STATE_HOME": str(self.state)} | (env or {})

    def run(self, script, *opts, env=None, **how):
        """A session that does what the script says, to its end."""
        how.setdefault("cwd", self.project)
        return lib.carrel("run", "-y", *opts, env=self.env(env), input=script.encode(), **how)

    def start(self, script, *opts, env=None, **how):
        process = lib.start("run", "-y", *opts, cwd=self.project, env=self.env(env), **how)
        process.stdin.write(script.encode())
        process.stdin.close()
        process.stdin = None
        return process

    def carrel(self, *args, **how):
        how.setdefault("cwd", self.project)
        return lib.carrel(*args, env=self.env(how.pop("env", None)), **how)

    def see(self, what, **how):
        """What a new box is shown."""
        return lib.succeeded(self.run(what, **how)).decode()

    def hold(self, script="", name="held"):
        """A box that has done what the script says, and waits for release()."""
        wait = f"touch {name}; until [ -e {name}.go ]; do sleep 0.02; done; rm {name}.go"
        process = self.start(f"{script}\n{wait}\n")
        arena.await_file(process, self.project / name)
        return process

    def release(self, process, name="held"):
        (self.project / name).unlink()
        # The box removes it as soon as it sees it.
        lib.make_file(self.project / f"{name}.ready").rename(self.project / f"{name}.go")
        out, err = process.communicate(timeout=lib.TIMEOUT)
        assert process.returncode == 0, (out, err)
        return err

    # What is on the host.

    def instance(self, root=None):
        name = hashlib.sha256(os.fsencode(root or self.project)).hexdigest()[:16]
        return self.state / "carrel" / "instances" / name

    def part(self):
        return self.instance() / "claude" / "claude"

    def names(self, sub):
        """Without the session that the last box left for the next."""
        path = self.part() / sub
        names = sorted(os.listdir(path)) if path.exists() else []
        return [name for name in names if not name.startswith("rest-")]

    def at_rest(self):
        return sorted((self.part() / "sessions").glob("rest-*"))

    def assert_tidy(self, layers=1):
        """No session, one layer, no temporary names; the user's files as they were."""
        assert self.names("sessions") == []
        assert len(self.names("layers")) <= layers, self.names("layers")
        known = {"own", "layers", "sessions", "hiding", "busy", "change"}
        assert set(os.listdir(self.part())) <= known
        top = set(os.listdir(self.instance())) - {"settings.json"}
        assert top <= {"version", "project-root", "claude"}, top
        assert lib.snapshot(self.claude) == self.before
