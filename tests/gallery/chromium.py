"""A headless browser driven over a pipe by the DevTools protocol: pages are opened, pressed and dragged as by
hand, and everything they log or ask for is kept."""

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time

import pytest

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "headless_shell",
)
SECONDS = 60


class Browser:
    """One browser with one page."""

    def __init__(self, folder, program):
        (to_read, self.write), (self.read, to_write) = os.pipe(), os.pipe()
        low = to_read, to_write
        to_read, to_write = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in low)
        for fd in low:
            os.close(fd)

        def give():  # the protocol is spoken over descriptors 3 and 4
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        flags = [
            "--headless",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "--no-first-run",
        ]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, *flags, "about:blank"],
            preexec_fn=give,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (to_read, to_write):
            os.close(fd)
        self.number, self.rest, self.answers, self.events = itertools.count(1), b"", {}, []
        target = next(
            t
            for t in self.call("Target.getTargets", session=False)["targetInfos"]
            if t["type"] == "page"
        )
        attached = self.call(
            "Target.attachToTarget", session=False, targetId=target["targetId"], flatten=True
        )
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, session=True, **parameters):
        number = next(self.number)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while number not in self.answers:
            assert time.monotonic() < end, f"{method}: no answer"
            self._read()
        answer = self.answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _read(self):
        piece = os.read(self.read, 1 << 20)
        assert piece, "the browser has gone"
        *whole, self.rest = (self.rest + piece).split(b"\0")
        for text in whole:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)

    def evaluate(self, expression):
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, path, width=1200, height=900, dark=False):
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + SECONDS
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            assert time.monotonic() < end, "no load"
            self._read()
        self.settle()

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.evaluate(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(r, 0))))"
        )

    def troubles(self):
        """What a page logged as an error, threw, or asked for from elsewhere."""
        found = []
        for e in self.events:
            p = e.get("params", {})
            if e["method"] == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                found.append(d.get("exception", {}).get("description", d["text"]))
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(str([a.get("value") for a in p["args"]]))
            elif e["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(p["entry"]["text"])
            elif e["method"] == "Network.requestWillBeSent" and not p["request"]["url"].startswith(
                ("file:", "data:")
            ):
                found.append(p["request"]["url"])
        return found

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, clickCount=1)
        self.settle()

    def drag(self, x, y, dx, dy):
        self.mouse("mousePressed", x, y, clickCount=1, buttons=1)
        for part in (0.3, 0.7, 1.0):
            self.mouse("mouseMoved", x + dx * part, y + dy * part, buttons=1)
        self.mouse("mouseReleased", x + dx, y + dy, clickCount=1)
        self.settle()

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                **({"text": "\r"} if name == "Enter" and kind == "keyDown" else {}),
            )
        self.settle()

    def picture(self, path):
        size = self.evaluate(
            "[document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=SECONDS)
        os.close(self.read)
        os.close(self.write)


def program():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH")
    return found
