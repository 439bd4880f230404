"""Chromium without a window, spoken to over its debugging pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

import lib

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-sandbox",  # of a page that a test made, in a machine for tests
)


class Browser:
    """One browser with one page. `events` has what the page said and asked for."""

    def __init__(self, home):
        to_it, self.write_end = os.pipe()
        self.read_end, from_it = os.pipe()
        line = f'exec "$@" 3<&{to_it} 4>&{from_it}'
        argv = ["bash", "-c", line, "bash", shutil.which("chromium"), *FLAGS, f"--user-data-dir={home}/profile"]
        self.process = subprocess.Popen(
            lib.as_user([*argv, "about:blank"]),
            pass_fds=(to_it, from_it),
            cwd=home,
            env=lib.environment({"HOME": str(home), "XDG_RUNTIME_DIR": None}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_it)
        os.close(from_it)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            ready = select.select([self.read_end], [], [], max(0, left))[0]
            assert ready, "the browser does not answer"
            piece = os.read(self.read_end, 1 << 20)
            assert piece, "the browser has ended"
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data) :]
        until = time.monotonic() + lib.TIMEOUT
        while True:
            answer = self._message(until)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page; promises are waited for."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, script):
        """Until the expression is true."""
        lib.wait_for(lambda: self.run(script), script)

    def open(self, path, hash=""):
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}{hash}")
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def go(self, hash):
        self.run(f"location.hash = {json.dumps(hash)}")
        self.run("new Promise((done) => setTimeout(done, 0))")

    def key(self, key):
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
        more = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.run("new Promise((done) => setTimeout(done, 0))")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def dark(self, on):
        value = "dark" if on else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def named(self, method):
        return [e["params"] for e in self.events if e.get("method") == method]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        os.close(self.write_end)
