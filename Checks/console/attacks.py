"""Attacks on the console: by other pages, other people and old cookies. Each attack yields the faults that it finds."""

import contextlib
import html
import http.server
import threading
import time
import urllib.parse

from browser import Browser
from scene import APP
from visitor import COOKIE, Visitor

FIXED = "A" * 43


@contextlib.contextmanager
def elsewhere():
    """A server of another origin. Its pages can be changed; `/` is empty."""
    pages = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>elsewhere</title>{pages.get(self.path, '')}".encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield pages, server.server_port
    finally:
        server.shutdown()
        server.server_close()


def form(action, fields, more=""):
    inputs = "".join(f'<input type="hidden" name="{name}" value="{html.escape(value)}">' for name, value in fields.items())
    return f'<form method="post" action="{action}" {more}>{inputs}</form><script>document.forms[0].submit()</script>'


class Attacks:
    """Attacks on a person who is signed in. `window` has the session."""

    def __init__(self, scene, window, origin):
        self.scene, self.window, self.origin = scene, window, origin
        self.address = origin.removeprefix("http://")

    def visitor(self):
        """A visitor that has the window's session and sends requests without the browser."""
        return Visitor(self.address, self.session())

    def session(self):
        return next((cookie["value"] for cookie in self.window.cookies() if cookie["name"] == COOKIE), None)

    def is_signed_in(self):
        return self.visitor().ask("GET", "/console").status == 200

    def device(self):
        """A registered device, and the form that would revoke it."""
        device = self.scene.device(APP).device
        path = f"/console/devices/{APP}/{device}/revoke"
        [asked] = [form for form in self.visitor().ask("GET", path).document.forms if form.method == "post"]
        return path, device, {"token": asked.value("token"), "tag": asked.value("tag"), "reason": "attack"}

    def is_revoked(self, device):
        return self.scene.operator.administer("GET", f"/apps/{APP}/devices/{device}")["status"] != "registered"

    def forms_from_elsewhere(self):
        """Forms on pages of other origins. The attacker even knows the token of the session."""
        path, device, fields = self.device()
        with elsewhere() as (pages, port):
            target = self.origin + path
            pages["/form"] = form(target, fields)
            pages["/null"] = '<meta name="referrer" content="no-referrer">' + form(target, fields)
            pages["/text"] = form(target, fields, 'enctype="text/plain"')
            pages["/out"] = form(f"{self.origin}/console/sign-out", fields)
            for host in ("127.0.0.1", "localhost"):
                for page in pages:
                    answer = self.window.open(f"http://{host}:{port}{page}")
                    deadline = time.monotonic() + 10
                    while not answer["url"].startswith(self.origin) and time.monotonic() < deadline:
                        self.window.run("() => new Promise((done) => setTimeout(done, 20))")
                        answer = self.window.documents[-1]
                    if not answer["url"].startswith(self.origin) or answer["status"] not in (403, 415):
                        yield f"a form of {host}{page} got {answer['status']} of {answer['url']}"
        if self.is_revoked(device):
            yield "a form of another origin revoked a device"
        if not self.is_signed_in():
            yield "a form of another origin signed the person out"

    def forged_headers(self):
        path, device, fields = self.device()
        visitor, body = self.visitor(), urllib.parse.urlencode(fields)
        other = "http://elsewhere.example"
        for what, headers in {
            "another origin": {"Origin": other}, "no origin": {"Origin": None}, "origin null": {"Origin": "null"},
            "another port": {"Origin": "http://127.0.0.1:1"}, "a longer host": {"Origin": f"{self.origin}.example"},
            "two origins": {"Origin": f"{self.origin}, {other}"}, "another site": {"Sec_Fetch_Site": "cross-site"},
            "another port of the site": {"Sec_Fetch_Site": "same-site"},
        }.items():
            if (status := visitor.ask("POST", path, body, **headers).status) != 403:
                yield f"a form with {what} got {status}"
        for what, token in {"no token": None, "another token": FIXED}.items():
            sent = {name: value for name, value in {**fields, "token": token}.items() if value is not None}
            if (status := visitor.ask("POST", path, urllib.parse.urlencode(sent)).status) != 403:
                yield f"a form with {what} got {status}"
        if (status := visitor.ask("GET", f"{path}?{body}").status) != 200 or self.is_revoked(device):
            yield f"a link revoked a device, or got {status}"

    def framing_and_reading(self):
        with elsewhere() as (pages, port):
            pages["/frame"] = f'<iframe src="{self.origin}/console"></iframe><object data="{self.origin}/console"></object>'
            self.window.open(f"http://127.0.0.1:{port}/frame")
            for child in self.window.send("Page.getFrameTree")["frameTree"].get("childFrames", []):
                if child["frame"]["url"].startswith(self.origin) and "unreachableUrl" not in child["frame"]:
                    yield "a page of another origin framed the console"
            for mode in ("cors", "no-cors"):
                read = self.window.run(
                    "(url, mode) => fetch(url, {mode, credentials: 'include'}).then(() => 'read', () => 'refused')",
                    f"{self.origin}/console", mode)
                if read != "refused":
                    yield f"a page of another origin got an answer ({mode})"

    def other_hosts(self):
        port = self.address.partition(":")[2]
        answer = self.window.open(f"http://{Browser.rebound}:{port}/console/sign-in")
        if answer["status"] < 400:
            yield f"a name that was rebound got {answer['status']}"
        for host in ("elsewhere.example", f"elsewhere.example:{port}", f"127.0.0.1.elsewhere.example:{port}", ""):
            if (status := self.visitor().ask("GET", "/console", Host=host).status) < 400:
                yield f"Host {host!r} got {status}"

    def service_credential(self):
        visitor = Visitor(self.address)
        answer = visitor.sign_in(self.scene.credentials["service"])
        if answer.status != 403 or visitor.cookie or "service credential" not in answer.body.decode():
            yield f"a service credential got {answer.status} and cookie {visitor.cookie}"
        answer = visitor.sign_in("sya_0000000000000000_" + "A" * 43)
        if answer.status != 401 or visitor.cookie:
            yield f"an unknown credential got {answer.status} and cookie {visitor.cookie}"

    def open_redirects(self):
        for target in ("//elsewhere.example", "https://elsewhere.example", "/console/..//elsewhere.example", "/console\\@elsewhere.example",
                       "javascript:alert(1)", "/\\elsewhere.example", "/console/\r\nX: y"):
            body = urllib.parse.urlencode({"credential": self.scene.credentials["viewer"], "next": target})
            answer = Visitor(self.address).ask("POST", "/console/sign-in", body)
            if answer.headers.get("Location") != "/console" or answer.headers.get("X"):
                yield f"the sign-in led to {answer.headers.get('Location')} for {target!r}"

    def fixation(self, sign_in):
        """A cookie that an attacker set before the person signed in."""
        self.window.send("Network.clearBrowserCookies")
        self.window.send("Network.setCookie", name=COOKIE, value=FIXED, url=self.origin, path="/", secure=True, httpOnly=True,
                         sameSite="Strict")
        sign_in(self.window, "admin")
        if self.session() in (None, FIXED):
            yield "the sign-in kept the session id of before"
        if Visitor(self.address, FIXED).ask("GET", "/console").status == 200:
            yield "the session id of before is signed in"
        if self.visitor().ask("GET", "/console", Cookie=f"{COOKIE}={FIXED}; {COOKIE}={self.session()}").status == 200:
            yield "two cookies of the same name are one session"

    def sign_out(self):
        """After the sign-out, neither the old cookie nor the back button shows a page."""
        old = self.session()
        self.window.open(f"{self.origin}/console/devices")
        self.window.open(f"{self.origin}/console/account")
        self.window.loading(lambda: self.window.run("() => { document.querySelector('form[action$=sign-out] button').click(); }"))
        if "/console/sign-in" not in self.window.run("() => location.href") or self.session():
            yield "after the sign-out the browser has a session"
        if Visitor(self.address, old).ask("GET", "/console").status == 200:
            yield "the old cookie is signed in"
        for _ in range(2):
            self.window.loading(lambda: self.window.run("() => { history.back(); }"))
            if self.window.run("() => document.querySelector('nav, table, form[action$=sign-out]') !== null"):
                yield f"the back button shows {self.window.run('() => location.href')}"

    def all(self, sign_in):
        yield "forms of another origin, which know the token", self.forms_from_elsewhere()
        yield "forms with other headers or another token", self.forged_headers()
        yield "frames and requests of another origin", self.framing_and_reading()
        yield "another Host, also of a name that was rebound", self.other_hosts()
        yield "credentials that may not sign in", self.service_credential()
        yield "a sign-in that leads elsewhere", self.open_redirects()
        yield "a session id that was there before the sign-in", self.fixation(sign_in)
        yield "cookie and back button after the sign-out", self.sign_out()
