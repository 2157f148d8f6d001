"""Chromium without a window, driven over a pipe by the Chrome DevTools Protocol (https://chromedevtools.github.io/devtools-protocol)."""

import base64
import contextlib
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time

PATIENCE = 30
# For each key, its code and the text that it types.
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " ")}


class Browser:
    """One browser with its own profile. `rebound` is a host name that resolves to this machine."""

    rebound = "rebound.example"

    def __init__(self, folder):
        reads, self.writes = os.pipe()
        self.reads, writes = os.pipe()
        command = [
            "chromium", "--headless", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile", "--no-first-run", "--disable-gpu",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
            f"--host-resolver-rules=MAP {self.rebound} 127.0.0.1, MAP *.invalid ~NOTFOUND", *(["--no-sandbox"] if os.getuid() == 0 else [])]
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "sh", *command], pass_fds=[reads, writes],
            stdout=subprocess.DEVNULL, stderr=open(f"{folder}/browser.log", "w"), start_new_session=True)
        os.close(reads)
        os.close(writes)
        self.number, self.rest, self.answers, self.pages = 0, b"", {}, {}

    def send(self, method, session=None, **parameters):
        """Calls a method and returns its result."""
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": parameters}
        os.write(self.writes, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        self.until(lambda: number in self.answers, method)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def until(self, condition, what):
        """Reads the browser's messages until a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if not select.select([self.reads], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(what)
            data = os.read(self.reads, 1 << 20)
            if not data:
                raise RuntimeError(f"the browser ended: {what}")
            *messages, self.rest = (self.rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.answers[message["id"]] = message
                elif message.get("sessionId") in self.pages:
                    self.pages[message["sessionId"]].happened(message["method"], message["params"])

    @contextlib.contextmanager
    def page(self):
        """A window with cookies of its own."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        try:
            yield Window(self, context)
        finally:
            self.send("Target.disposeBrowserContext", browserContextId=context)

    def close(self):
        with contextlib.suppress(Exception):
            self.send("Browser.close")
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


class Window:
    """One page, and what happened in it since `forget`."""

    def __init__(self, browser, context):
        self.browser, self.context = browser, context
        target = browser.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        self.loads, self.documents, self.commits, self.has_scripts = 0, [], 0, True
        self.forget()
        for domain in ("Page", "Network", "Runtime", "Log", "Audits"):
            self.send(f"{domain}.enable")
        self.main = self.send("Page.getFrameTree")["frameTree"]["frame"]["id"]

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def forget(self):
        self.requests, self.faults, self.dialogs = [], [], []

    def happened(self, method, event):
        match method:
            case "Page.loadEventFired":
                self.loads += 1
            case "Page.frameNavigated" if "parentId" not in event["frame"]:
                self.commits += 1
            case "Page.javascriptDialogOpening":
                self.dialogs.append(event["message"])
                # Does not wait for the answer, because this code runs while another call waits for its own answer.
                answer = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}, "sessionId": self.session}
                os.write(self.browser.writes, json.dumps(answer).encode() + b"\0")
            case "Network.requestWillBeSent":
                self.requests.append(event["request"]["url"])
            case "Network.responseReceived" if event["type"] == "Document":
                self.documents.append(event["response"])
            case "Runtime.exceptionThrown":
                self.faults.append(f"exception: {event['exceptionDetails'].get('exception', {}).get('description', event)}")
            case "Runtime.consoleAPICalled" if event["type"] in ("error", "warning", "assert"):
                self.faults.append(f"console: {event['args']}")
            case "Log.entryAdded" if event["entry"]["level"] == "error" and event["entry"]["source"] != "network":
                self.faults.append(f"{event['entry']['source']}: {event['entry']['text']}")
            case "Audits.issueAdded" if "contentSecurityPolicyIssueDetails" in event["issue"]["details"]:
                details = event["issue"]["details"]["contentSecurityPolicyIssueDetails"]
                self.faults.append(f"content security policy: {details.get('violatedDirective')} {details.get('blockedURL', '')}")

    def loading(self, action):
        """Runs an action that opens another page, waits for that page, and returns its answer."""
        loads, commits, documents = self.loads, self.commits, len(self.documents)
        action()
        self.browser.until(lambda: self.loads > loads and self.commits > commits, "a page that loads")
        return self.documents[-1] if len(self.documents) > documents else None

    def open(self, url):
        return self.loading(lambda: self.send("Page.navigate", url=url))

    def run(self, script, *arguments):
        """The value of a JavaScript function. It runs even on pages where scripts are disabled."""
        call = f"({script})({', '.join(map(json.dumps, arguments))})"
        result = self.send("Runtime.evaluate", expression=call, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", result["exceptionDetails"]["text"]))
        return result["result"].get("value")

    def press(self, key):
        code, text = KEYS.get(key) or (ord(key.upper()), key)
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=" " if key == "Space" else key, code=key, windowsVirtualKeyCode=code,
                      **({"text": text} if kind == "keyDown" and text else {}))

    def type(self, text):
        self.send("Input.insertText", text=text)

    def looks(self, width, scheme):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def scripts(self, allowed):
        self.has_scripts = allowed
        self.send("Emulation.setScriptExecutionDisabled", value=not allowed)

    def screenshot(self, path, **options):
        image = self.send("Page.captureScreenshot", captureBeyondViewport=True, **{"optimizeForSpeed": True, **options})
        pathlib.Path(path).write_bytes(base64.b64decode(image["data"]))

    def cookies(self):
        return self.send("Network.getCookies")["cookies"]


@contextlib.contextmanager
def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = Browser(folder)
        try:
            yield found
        finally:
            found.close()
