"""A person without a browser: follows links, reads forms and sends them. For checks that need no browser."""

import html.parser
import http.client
import re
import time
import urllib.parse

COOKIE = "__Host-synheart-console"


class Form:
    """A form of a page, with the values that it has."""

    def __init__(self, action, method):
        self.action, self.method, self.fields, self.buttons = action, method, [], []
        # Unchecked boxes and radio buttons, and the options of selections.
        self.boxes, self.options = [], []

    def query(self, button=None):
        return urllib.parse.urlencode([*self.fields, *([button] if button else [])])

    def variants(self):
        """Queries that each change one choice."""
        yield from (urllib.parse.urlencode([*self.fields, box]) for box in self.boxes)
        for name, value in self.options:
            yield urllib.parse.urlencode([*(field for field in self.fields if field[0] != name), (name, value)])

    def value(self, name):
        return dict(self.fields).get(name)


class Document(html.parser.HTMLParser):
    """A page's links, forms and other elements."""

    def __init__(self, text):
        super().__init__()
        self.text, self.links, self.forms, self.parts, self.select, self.area, self.by_id = text, [], [], set(), None, None, {}
        self.feed(text)

    def handle_starttag(self, tag, pairs):
        have = dict(pairs)
        self.parts.add((tag, have.get("class"), have.get("name") if tag in ("input", "select", "button") else None))
        if tag == "form":
            self.forms.append(Form(have.get("action", ""), have.get("method", "get").lower()))
            self.by_id[have.get("id")] = self.forms[-1]
        if tag == "a" and have.get("href"):
            self.links.append(have["href"])
        form = self.by_id.get(have["form"]) if "form" in have else self.forms[-1] if self.forms else None
        if form is None:
            return
        if tag == "button" and have.get("type") != "button":
            form.buttons.append((have["name"], have.get("value", "")) if "name" in have else None)
        if tag == "input" and "name" in have:
            is_off = have.get("type") in ("checkbox", "radio") and "checked" not in have and "form" not in have
            (form.boxes if is_off else form.fields).append((have["name"], have.get("value", "")))
        if tag == "textarea" and "name" in have:
            form.fields.append((have["name"], ""))
            self.area = form
        if tag == "select":
            self.select = have.get("name")
        if tag == "option" and self.select:
            form.options.append((self.select, have.get("value", "")))
        if tag == "option" and self.select and ("selected" in have or form.value(self.select) is None):
            form.fields = [field for field in form.fields if field[0] != self.select] + [(self.select, have.get("value", ""))]

    def handle_data(self, data):
        if self.area:
            name, text = self.area.fields[-1]
            self.area.fields[-1] = name, text + data

    def handle_endtag(self, tag):
        self.select = None if tag == "select" else self.select
        self.area = None if tag == "textarea" else self.area


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        self.is_page = (self.headers.get("Content-Type") or "").startswith("text/html")
        self.document = Document(self.body.decode()) if self.is_page else None


class Visitor:
    """One session, at `address` (host and port)."""

    def __init__(self, address, cookie=None):
        self.address, self.cookie = address, cookie
        self.connection, self.last = http.client.HTTPConnection(address, timeout=60), 0

    def ask(self, method, path, body=None, **headers):
        """Sends a request. `None` as a header's value leaves that header out."""
        fields = {"Host": self.address, "Cookie": self.cookie and f"{COOKIE}={self.cookie}"}
        if method == "POST":
            fields |= {"Origin": f"http://{self.address}", "Content-Type": "application/x-www-form-urlencoded"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        # The service closes idle connections.
        if time.monotonic() - self.last > 5:
            self.connection.close()
        self.last = time.monotonic()
        self.connection.request(method, path, body, {name: value for name, value in fields.items() if value is not None})
        return Answer(self.connection.getresponse())

    def sign_in(self, credential):
        answer = self.ask("POST", "/console/sign-in", urllib.parse.urlencode({"credential": credential}), Cookie=None)
        found = re.search(f"{COOKIE}=([^;]+)", answer.headers.get("Set-Cookie") or "")
        self.cookie = found and found[1]
        return answer


def pattern(path):
    """A path with the names of parameters in place of values."""
    path = urllib.parse.unquote(path.partition("?")[0])
    path = re.sub(r"(?<=/)[0-9a-f]{8}-[0-9a-f-]{27}(?=/|$)", "{id}", path)
    path = re.sub(r"(?<=/)com\.example\.\w+(?=/|$)", "{app}", path)
    return re.sub(r"(?<=/)(?=[\w-]*\d)[\w-]{8,}(?=/|$)", "{id}", path)


# Pages that open only by sending a form, because the audit log records each view. `walk` sends the form and follows
# the links of the answer.
OPENED = {"/console/refusals/{app}/{id}"}


def walk(visitor, start="/console", most=30):
    """Follows all links and the forms that change nothing. Returns the answers by path, at most `most` of each pattern."""
    found, waiting, counts = {}, [start], {}
    while waiting:
        path = waiting.pop(0)
        kind = pattern(path), tuple(sorted(urllib.parse.parse_qs(path.partition("?")[2])))
        if path in found or counts.get(kind, 0) >= most:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        answer = found[path] = visitor.ask("GET", path)
        if not answer.document:
            continue
        next_paths = [urllib.parse.urljoin(path, link) for link in answer.document.links]
        for form in answer.document.forms:
            action = urllib.parse.urljoin(path, form.action)
            if form.method == "post" and pattern(action) in OPENED and path != action:
                opened = visitor.ask("POST", action, form.query(None))
                next_paths += [action, *(urllib.parse.urljoin(action, link) for link in opened.document.links)]
            if form.method == "get":
                queries = [form.query(button) for button in form.buttons or [None]]
                queries += form.variants() if "?" not in path else []
                next_paths += [f"{urllib.parse.urljoin(path, form.action)}?{query}" for query in queries]
        for following in next_paths:
            following = following.partition("#")[0]
            if following == "/console" or following.startswith(("/console/", "/console?")):
                waiting.append(following)
    return found


def different(found, most=4):
    """For each pattern, the pages that show something that earlier ones do not."""
    seen, counts = {}, {}
    for path, answer in found.items():
        kind = pattern(path)
        parts = answer.document.parts if answer.document else set()
        if answer.document and parts - seen.setdefault(kind, set()) and counts.get(kind, 0) < most:
            seen[kind] |= parts
            counts[kind] = counts.get(kind, 0) + 1
            name = re.sub("[{}]", "", kind.removeprefix("/console").strip("/").replace("/", "-"))
            yield path, f"{name or 'now'}-{counts[kind]}"
