#!/usr/bin/env python3
r"""A mock of the APIs that clients speak, on loopback: keeps what is asked, answers by script.

    python3 mock.py --port 8787 --log requests.jsonl [--script more.json] [--unix SOCKET]
    ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_API_KEY=test claude -p MOCK:write

In a test: `with Mock() as mock:`, then mock.url, mock.requests and mock.scripts.

Stateless: the turn to play follows from the request itself, so any number of clients may share
one mock. The scenario is the first `MOCK:<name>[:<argument>]` in the last prompt of the user,
"text" if there is none; the turn is the number of the assistant's messages after that prompt.

    text:TEXT       one turn of text
    write:PATH      the tool Write, then text; in the same way:
    bash:COMMAND    Bash
    read:PATH       Read
    skill:NAME      Skill
    call:TOOL:JSON  any tool
    readskill:NAME  Read of .claude/skills/NAME/SKILL.md; NAME may be a part of a listed name
    autoskill:PART  Skill, for the first listed skill with PART in its name; none: text
    maybe:P:PART    autoskill with the probability P
    late:PART       Bash first, then autoskill
    agent           a sub-agent that uses Bash
    two             Write and Bash in one turn
    loop            Bash for ever
    think           a thinking block, then text
    long:N          N words (200), slowly
    hang:SECONDS    the head of an answer, then nothing (3600)
    drop            closes the connection in the middle of an answer
    refuse, maxtok  stop reasons "refusal", "max_tokens"
    errCODE         HTTP errors: err400 err401 err429 err529 ...
    flaky:N         HTTP 529 for the first N (2) tries, then text
    grade           a grader that passes every expectation listed in the prompt
    structured      the tool StructuredOutput with a least value of its schema

Scripts: {"<name>": [[block, ...], ...]}, one list of Anthropic content blocks for each turn;
"{cwd}" in them is the client's working directory.

Anthropic's Messages API (/v1/messages) has all of these. OpenAI's Responses (/responses) and
Chat Completions (/chat/completions) and Gemini's generateContent know text, bash, call,
errCODE and hang; Responses also readskill, by a command.
"""

import argparse
import dataclasses
import json
import os
import random
import re
import socketserver
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# The tools that run a shell command, over all clients, and their arguments.
SHELLS = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "run_shell_command": lambda command: {"command": command, "description": "Run a command"},
    "bash": lambda command: {"command": command, "description": "Run a command"},
    "Bash": lambda command: {"command": command, "description": "Run a command"},
}


@dataclasses.dataclass
class Reply:
    """What is answered; blocks are Anthropic's content blocks."""

    blocks: list
    stop: str | None = None
    error: int = 0
    hang: float = 0
    pace: float = 0  # seconds between the words
    drop: bool = False


@dataclasses.dataclass
class Turn:
    """What a request asks for."""

    body: dict
    prompt: str = ""
    number: int = 0
    name: str = "text"
    arg: str = ""

    @property
    def cwd(self):
        found = re.search(
            r"(?:Primary working directory|Working directory|cwd):\s*([^\\\n\"]+)",
            json.dumps([self.body.get("system", ""), self.body.get("messages", [])]),
        )
        return found.group(1).strip() if found else "."

    @property
    def tools(self):
        return [tool.get("name") for tool in self.body.get("tools", [])]

    def listed_skill(self, part):
        """The first name with that part among lines of the form '- name: description'."""
        everything = json.dumps([self.body.get(k) for k in ("messages", "system", "tools")])
        for found in re.finditer(r"\\n- ([A-Za-z0-9_.:-]+?)(?:: |\\n)", everything):
            if part in found.group(1):
                return found.group(1)
        return None


def text(words):
    return {"type": "text", "text": words}


def use(tool, **arguments):
    return {"type": "tool_use", "name": tool, "input": arguments}


def unique(prefix):
    return prefix + uuid.uuid4().hex[:16]


def least(schema):
    """A least value for a JSON schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()  # Gemini's are in capitals
    if kind == "object":
        members = schema.get("properties", {})
        needed = schema.get("required", members)
        return {name: least(members.get(name, {"type": "string"})) for name in needed}
    plain = {"array": [], "string": "mock", "integer": 1, "number": 1.0, "boolean": True}
    return plain.get(kind)


def scenario_of(prompt):
    found = re.search(r"MOCK:([A-Za-z0-9_]+)(?::([^\n]*))?", prompt)
    return (found.group(1), (found.group(2) or "").strip()) if found else ("text", "")


# ---- scenarios --------------------------------------------------------------------------


def path_in(turn, name):
    return name if name.startswith("/") else os.path.join(turn.cwd, name)


def named(turn):
    return turn.listed_skill(turn.arg) or turn.arg


def play_write(turn):
    path = path_in(turn, turn.arg or "out.txt")
    return [text("I will write it."), use("Write", file_path=path, content="from the mock\n")]


def play_bash(turn):
    shell = next((name for name in SHELLS if name in turn.tools), None)
    if not turn.tools:  # a request on the side, for a title
        return [text("Done.")]
    return [use(shell or "Bash", **SHELLS[shell or "Bash"](turn.arg or "echo hi"))]


def play_call(turn):
    tool, _, arguments = turn.arg.partition(":")
    return [use(tool, **json.loads(arguments or "{}"))]


def play_autoskill(turn, part=None):
    skill = turn.listed_skill(turn.arg if part is None else part)
    if skill is None:
        return [text("None fits.")]
    return [text("Using a skill."), use("Skill", skill=skill)]


def play_maybe(turn):
    chance, _, part = turn.arg.partition(":")
    if random.random() < float(chance or 0.5):
        return play_autoskill(turn, part)
    return [text("None needed.")]


def play_two(turn):
    return [
        text("Two at once."),
        use("Write", file_path=path_in(turn, "two.txt"), content="two\n"),
        use("Bash", command="ls -la", description="List files"),
    ]


def play_agent(_):
    prompt = "MOCK:bash:echo from-subagent"
    kind = "general-purpose"
    return [use("Agent", description="Sub task", prompt=prompt, subagent_type=kind)]


def play_think(_):
    thought = {"type": "thinking", "thinking": "Let me think.", "signature": "bW9jaw=="}
    return [thought, text("Thought.")]


def play_grade(turn):
    listed = re.findall(r"^\s*(?:\d+[.)]|-)\s+(.*)$", turn.prompt, re.M)
    n = len(listed)
    verdicts = [{"text": line, "passed": True, "evidence": "mock"} for line in listed]
    summary = {"passed": n, "failed": 0, "total": n, "pass_rate": 1.0}
    return [text(json.dumps({"expectations": verdicts, "summary": summary}))]


def play_structured(turn):
    for tool in turn.body.get("tools", []):
        if tool.get("name") == "StructuredOutput":
            return [use("StructuredOutput", **least(tool["input_schema"]))]
    return [text("no schema")]


def play_loop(turn):
    command = f"echo step-{turn.number}"
    return [text(f"Step {turn.number}."), use("Bash", command=command, description="Echo")]


# The first turn; what follows is "Done.".
ONCE = {
    "agent": play_agent,
    "autoskill": play_autoskill,
    "bash": play_bash,
    "call": play_call,
    "grade": play_grade,
    "late": lambda turn: [use("Bash", command="ls", description="Look around")],
    "maybe": play_maybe,
    "read": lambda turn: [use("Read", file_path=turn.arg)],
    "readskill": lambda turn: [
        use("Read", file_path=path_in(turn, f".claude/skills/{named(turn)}/SKILL.md"))
    ],
    "skill": lambda turn: [use("Skill", skill=turn.arg)],
    "structured": play_structured,
    "text": lambda turn: [text(turn.arg or "Hello from the mock.")],
    "think": play_think,
    "two": play_two,
    "write": play_write,
}
# Every turn.
ALWAYS = {
    "drop": lambda turn: Reply([text("partial answer")], drop=True),
    "hang": lambda turn: Reply([text("late answer")], hang=float(turn.arg or 3600)),
    "long": lambda turn: Reply(
        [text(" ".join(f"tok{i}" for i in range(int(turn.arg or 200))))], pace=0.02
    ),
    "loop": lambda turn: Reply(play_loop(turn)),
    "maxtok": lambda turn: Reply([text("Stopped early.")], stop="max_tokens"),
    "refuse": lambda turn: Reply([text("Stopped early.")], stop="refusal"),
}


def play(turn, mock):
    """The reply to one turn."""
    if turn.name in mock.scripts:
        script = mock.scripts[turn.name]
        blocks = script[turn.number] if turn.number < len(script) else [text("Done.")]
        return Reply(json.loads(json.dumps(blocks).replace("{cwd}", turn.cwd)))
    if re.fullmatch(r"err\d+", turn.name):
        return Reply([], error=int(turn.name[3:]))
    if turn.name == "flaky":
        tries = mock.count_try(turn.prompt)
        if tries <= int(turn.arg or 2):
            return Reply([], error=529)
        return Reply([text(f"Recovered after {tries} tries.")])
    if turn.name in ALWAYS:
        return ALWAYS[turn.name](turn)
    if turn.name == "late" and turn.number == 1:
        return Reply(play_autoskill(turn))
    if turn.number > 0:
        return Reply([text("Done.")])
    return Reply(ONCE.get(turn.name, ONCE["text"])(turn))


# ---- the APIs: what a request asks for, and an answer as a whole and as events ----------


def texts_of(message):
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block.get("text", "") for block in content or [] if block.get("type") == "text"]


def has_result(message):
    content = message.get("content")
    return isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)


def read_messages(body):
    """Anthropic's Messages."""
    last, prompt, messages = -1, "", body.get("messages", [])
    for i, message in enumerate(messages):
        if message.get("role") == "assistant" or has_result(message):
            continue
        texts = texts_of(message)
        scripted = [t for t in texts if "MOCK:" in t]
        # What a mentioned file says comes in a message of the system's after the user's own.
        if message.get("role") == "user":
            scripted = scripted or texts[-1:]
        if scripted:
            last, prompt = i, scripted[-1]
    number = sum(1 for m in messages[last + 1 :] if m.get("role") == "assistant")
    return Turn(body, prompt, number, *scenario_of(prompt))


def thin_turn(texts, tools, answered, everything=""):
    prompt = next((t for t in reversed(texts) if "MOCK:" in t), "")
    body = {"tools": [{"name": name} for name in tools]}
    name, arg = scenario_of(prompt)
    if name == "readskill":  # by a command, as the client's own list says it
        found = re.search(rf"/({arg}[^/\s]*)/SKILL\.md", everything)
        name, arg = "bash", f"cat ~/.codex/skills/{found.group(1) if found else arg}/SKILL.md"
    if name not in ("text", "bash", "call", "hang") and not re.fullmatch(r"err\d+", name):
        name = "text"
    return Turn(body, prompt, int(answered and name != "text"), name, arg)


def read_responses(body):
    items = body.get("input", [])
    texts = [
        part.get("text", "")
        for item in items
        if item.get("role") == "user" and isinstance(item.get("content"), list)
        for part in item["content"]
    ]
    tools = [t.get("name") for t in body.get("tools", []) if t.get("type") == "function"]
    outputs = ("function_call_output", "custom_tool_call_output")
    answered = any(item.get("type") in outputs for item in items)
    return thin_turn(texts, tools, answered, json.dumps(body))


def write_responses(body, block):
    if block["type"] == "tool_use":
        # Tools of MCP servers are grouped: call:<namespace>/<tool>:{}
        space, _, tool = block["name"].rpartition("/")
        item = {"type": "function_call", "id": unique("fc_"), "call_id": unique("call_")}
        item |= {"name": tool, "arguments": json.dumps(block["input"])}
        item |= {"namespace": space} if space else {}
    else:
        content = [{"type": "output_text", "text": block["text"]}]
        item = {"type": "message", "role": "assistant", "id": unique("msg_")}
        item["content"] = content
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage["input_tokens_details"] = {"cached_tokens": 40}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = {"id": unique("resp_"), "object": "response", "status": "completed"}
    whole |= {"model": body.get("model"), "usage": usage, "output": [item]}
    return whole, [
        {"type": "response.created", "response": {"id": whole["id"]}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def read_chat(body):
    messages = body.get("messages", [])
    texts = [t for m in messages if m.get("role") == "user" for t in texts_of(m)]
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    return thin_turn(texts, tools, any(m.get("role") == "tool" for m in messages))


def write_chat(body, block):
    base = {"id": unique("chat_"), "created": int(time.time()), "model": body.get("model")}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    usage["prompt_tokens_details"] = {"cached_tokens": 40}
    message, stop = {"role": "assistant", "content": block.get("text")}, "stop"
    if block["type"] == "tool_use":
        function = {"name": block["name"], "arguments": json.dumps(block["input"])}
        call = {"index": 0, "id": unique("call_"), "type": "function", "function": function}
        message["tool_calls"], stop = [call], "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": stop}
    chunk = base | {"object": "chat.completion.chunk"}
    first = {"index": 0, "delta": message, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": stop}
    return base | {"object": "chat.completion", "usage": usage, "choices": [choice]}, [
        chunk | {"choices": [first]},
        chunk | {"choices": [last], "usage": usage},
        "[DONE]",
    ]


def read_gemini(body):
    parts = [
        part
        for content in body.get("contents", [])
        if content.get("role", "user") == "user"
        for part in content.get("parts", [])
    ]
    declared = [t.get("functionDeclarations", []) for t in body.get("tools", [])]
    tools = [function["name"] for functions in declared for function in functions]
    answered = any("functionResponse" in part for part in parts)
    return thin_turn([part.get("text", "") for part in parts], tools, answered)


def write_gemini(body, block):
    if block["type"] == "tool_use":
        part = {"functionCall": {"name": block["name"], "args": block["input"]}}
    else:
        wanted = body.get("generationConfig") or {}
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        # With a schema it is a request on the side.
        part = {"text": json.dumps(least(schema)) if schema else block["text"]}
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 40}
    usage |= {"candidatesTokenCount": 10, "totalTokenCount": 110}
    content = {"role": "model", "parts": [part]}
    whole = {"candidates": [{"index": 0, "finishReason": "STOP", "content": content}]}
    whole |= {"usageMetadata": usage, "modelVersion": "mock", "responseId": unique("mock-")}
    return whole, [whole]


THIN = (
    (r"/responses$", read_responses, write_responses),
    (r"/chat/completions$", read_chat, write_chat),
    (r":(stream)?[gG]enerateContent$", read_gemini, write_gemini),
)


def block_events(index, block, pace):
    """The events of one of Anthropic's content blocks."""
    if block["type"] == "text":
        start, size = {"type": "text", "text": ""}, r"\S+\s*" if pace else r"(?s).{1,40}"
        deltas = [
            {"type": "text_delta", "text": part} for part in re.findall(size, block["text"])
        ]
    elif block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    else:
        start = block | {"input": {}}
        parts = re.findall(r"(?s).{1,1000}", json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        time.sleep(pace)
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


# ---- the server -------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server_version = "mock/1"

    def log_message(self, format, *args):
        pass

    def read_body(self):
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def record(self, body, note):
        self.server.mock.record(
            {
                "time": time.time(),
                "method": self.command,
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "note": note,
                "body": body,
            }
        )

    def begin(self, code, kind, **more):
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("request-id", unique("req_"))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)

    def reply(self, code, answer, **more):
        data = json.dumps(answer).encode()
        self.begin(code, "application/json", content_length=str(len(data)), **more)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def begin_events(self):
        self.begin(200, "text/event-stream", transfer_encoding="chunked")
        self.end_headers()

    def event(self, event):
        data = event if isinstance(event, str) else json.dumps(event)
        kind = event.get("type") if isinstance(event, dict) else None
        head = f"event: {kind}\n" if kind else ""
        chunk = f"{head}data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def end_events(self):
        self.wfile.write(b"0\r\n\r\n")

    def answer_other(self):
        self.record(self.read_body().decode("utf-8", "replace")[:4000], "other")
        if self.path.startswith("/v1/models"):
            return self.reply(200, {"data": [], "has_more": False})
        if self.path.endswith(":countTokens"):
            return self.reply(200, {"totalTokens": 100})
        error = {"type": "not_found_error", "message": "mock: no such path"}
        return self.reply(404, {"type": "error", "error": error})

    do_GET = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = answer_other

    def do_CONNECT(self):
        """We were taken for a proxy: what was wanted is on record."""
        self.record("", "connect")
        self.reply(403, {"error": "mock: no"})

    def do_POST(self):
        # The absolute form is that of a client with HTTP_PROXY.
        path = re.sub(r"^https?://[^/]+", "", self.path).split("?")[0]
        try:
            for pattern, read, write in THIN:
                if re.search(pattern, path):
                    return self.answer_thin(path, read, write)
            if path in ("/v1/messages", "/v1/messages/count_tokens"):
                return self.answer_messages(path)
            return self.answer_other()
        except (BrokenPipeError, ConnectionResetError):
            return None  # the client has gone

    def answer_thin(self, path, read, write):
        body = json.loads(self.read_body())
        turn = read(body)
        reply = play(turn, self.server.mock)
        self.record(body, [turn.name, turn.number])
        if reply.error:
            error = {"code": reply.error, "message": f"mock {reply.error}", "status": "MOCK"}
            return self.reply(reply.error, {"error": error})
        time.sleep(reply.hang)
        whole, events = write(body, reply.blocks[-1])
        if not (body.get("stream") or ":stream" in path):
            return self.reply(200, whole)
        self.begin_events()
        for event in events:
            self.event(event)
        return self.end_events()

    def answer_messages(self, path):
        raw = self.read_body()
        body = json.loads(raw)
        tokens = max(1, len(raw) // 4)
        if path.endswith("count_tokens"):
            self.record(body, "count_tokens")
            return self.reply(200, {"input_tokens": tokens})
        form = (body.get("output_config") or {}).get("format")
        if form and not body.get("tools"):  # a request on the side, for a title
            turn = Turn(body, name="side")
            reply = Reply([text(json.dumps(least(form.get("schema", {}))))])
        else:
            turn = read_messages(body)
            reply = play(turn, self.server.mock)
        self.record(body, [turn.name, turn.number])
        if reply.error:
            kind = ERRORS.get(reply.error, "api_error")
            error = {"type": kind, "message": f"mock {reply.error}"}
            more = {"retry_after": "1"} if reply.error in (429, 529) else {}
            return self.reply(reply.error, {"type": "error", "error": error}, **more)
        for block in reply.blocks:
            if block["type"] == "tool_use":
                block.setdefault("id", unique("toolu_mock_"))
        return self.send_message(body, reply, tokens)

    def send_message(self, body, reply, tokens):
        """The answer of Anthropic's Messages, whole or as a stream."""
        uses = any(block["type"] == "tool_use" for block in reply.blocks)
        stop = reply.stop or ("tool_use" if uses else "end_turn")
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "output_tokens": 1}
        usage["cache_read_input_tokens"] = tokens
        final = usage | {"output_tokens": max(1, len(json.dumps(reply.blocks)) // 4)}
        message = {"id": unique("msg_mock_"), "type": "message", "role": "assistant"}
        message |= {"model": body.get("model"), "content": [], "usage": usage}
        message |= {"stop_reason": None, "stop_sequence": None}
        if not body.get("stream"):
            whole = {"content": reply.blocks, "stop_reason": stop, "usage": final}
            self.reply(200, message | whole)
            return
        self.begin_events()
        self.event({"type": "message_start", "message": message})
        self.wait(reply.hang)
        for i, block in enumerate(reply.blocks):
            for event in block_events(i, block, reply.pace):
                if reply.drop and event["type"] == "content_block_stop":
                    self.close_connection = True
                    return
                self.event(event)
        delta = {"stop_reason": stop, "stop_sequence": None}
        self.event({"type": "message_delta", "delta": delta, "usage": final})
        self.event({"type": "message_stop"})
        self.end_events()

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(5, max(0, end - time.monotonic())))
            self.event({"type": "ping"})


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The same on a Unix socket."""

    daemon_threads = True


class Mock:
    """A mock with its own record of requests."""

    def __init__(self, port=0, unix=None, log=None):
        self.scripts = {}
        self.requests = []
        self._log = log
        self._tries = {}
        self._lock = threading.Lock()
        tcp = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._servers = [tcp]
        self.url = f"http://127.0.0.1:{tcp.server_address[1]}"
        if unix:
            if os.path.exists(unix):
                os.unlink(unix)
            self._servers.append(UnixServer(unix, Handler))
            os.chmod(unix, 0o666)
        for server in self._servers:
            server.mock = self
            server.daemon_threads = True

    def __enter__(self):
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def record(self, request):
        with self._lock:
            self.requests.append(request)
            if self._log:
                with open(self._log, "a", encoding="utf-8") as file:
                    file.write(json.dumps(request) + "\n")

    def count_try(self, prompt):
        with self._lock:
            self._tries[prompt] = self._tries.get(prompt, 0) + 1
            return self._tries[prompt]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8787, help="0: a free one")
    parser.add_argument("--unix", help="listen on this Unix socket as well")
    parser.add_argument("--log", help="append every request to this file, as a line of JSON")
    parser.add_argument("--script", help="a JSON file with more scenarios")
    args = parser.parse_args()
    with Mock(args.port, args.unix, args.log) as mock:
        if args.script:
            with open(args.script, encoding="utf-8") as file:
                mock.scripts.update(json.load(file))
        print(mock.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
