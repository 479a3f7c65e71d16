# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives Chromium through chromedriver: the part of the WebDriver protocol that the tests of the page use."""

import json
import re
import subprocess
import tempfile
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # how the protocol names an element


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                break
        self.url = "http://127.0.0.1:%s/session" % port.group(1)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--user-data-dir=" + self.folder.name]
        answer = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.url += "/" + answer["sessionId"]
        self.size(1200, 900)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.folder.cleanup()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def cdp(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, path):
        self.logs("browser"), self.logs("performance")  # what was before
        self.call("POST", "/url", {"url": "file://" + path})

    def run(self, script, *arguments):
        """What SCRIPT, the body of a function, returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def logs(self, kind):
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": kind})]

    def requests(self):
        """The addresses that were asked for since the page was opened."""
        events = [json.loads(message)["message"] for message in self.logs("performance")]
        return [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("POST", "/execute/async", {"args": [], "script":  # the page has seen it
                  "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"})

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def keys(self, selector, text):
        self.call("POST", "/element/%s/value" % self.find(selector), {"text": text})

    def pointer(self, selector, *actions):
        """Actions: ("move", x, y) from the element's upper left corner, ("down",), ("up",), ("wheel", x, y, by)."""
        box = self.run("const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center', behavior:"
                       " 'instant'}); const b = e.getBoundingClientRect(); return [b.left, b.top]", selector)
        for action in actions:
            kind, rest = action[0], action[1:]
            if kind == "wheel":
                one = {"type": "wheel", "id": "wheel", "actions": [
                    {"type": "scroll", "x": round(box[0] + rest[0]), "y": round(box[1] + rest[1]),
                     "deltaX": 0, "deltaY": rest[2]}]}
            else:
                step = {"move": lambda: {"type": "pointerMove", "x": round(box[0] + rest[0]),
                                         "y": round(box[1] + rest[1]), "duration": 0},
                        "down": lambda: {"type": "pointerDown", "button": 0},
                        "up": lambda: {"type": "pointerUp", "button": 0}}[kind]()
                one = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [step]}
            self.call("POST", "/actions", {"actions": [one]})

    def screenshot(self, path, full=True, height=None):
        """Of the page, or of the window: of its upper HEIGHT pixels."""
        import base64
        clip = {}
        if height:
            width, y = self.run("return [innerWidth, scrollY]")
            clip = {"clip": {"x": 0, "y": y, "width": width, "height": height, "scale": 1}}
        picture = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=full, **clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
