#!/usr/bin/env python3
"""Checks the console in Chromium: its pages, roles and forms, and attacks on it. `run` installs what this needs and says how to call it.

Pages are found by following links from the first one, so that a new page is checked without being named here.
"""

import argparse
import collections
import html
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pictures
import questions
import record_form
import rules
from attacks import Attacks
from browser import browser
from scene import APP, SEEN, UNLIMITED, Scene, hostile
from service import running
from visitor import COOKIE, Visitor, different, pattern, walk

# Pages that the crawl must find.
PAGES = {"/console", "/console/devices", "/console/devices/{app}/{id}", "/console/apps/{app}/decisions", "/console/audit",
         "/console/audit/verification", "/console/audit/archive", "/console/account", "/console/apps", "/console/apps/{app}",
         "/console/apps/{app}/change", "/console/set-up", "/console/apps/{app}/first-device",
         "/console/history", "/console/history/csv", "/console/refusals", "/console/refusals/{app}/{id}", "/console/access",
         "/console/refusals/{app}/{id}/erase", "/console/access/credentials/create", "/console/access/credentials/{id}/revoke",
         "/console/access/signing-keys/rotate", "/console/access/signing-keys/{id}/revoke", "/console/access/webhooks/add",
         "/console/access/webhooks/{id}"}
# The page that has the table of the questions in questions.py.
HANDBOOK = pathlib.Path(__file__).resolve().parents[2] / "Service/Sources/AuthServer/AuthServer.docc/Console.md"
# The refusals that are allowed if a form has arbitrary values, because the service checks the app's id and the members of a record.
REFUSED = {("set-up", 400), ("change", 400)}
PAGES |= {f"/console/access/webhooks/{{id}}/{change}" for change in ("disable", "resend", "remove")}
PAGES |= {f"/console/devices/{{app}}/{{id}}/{change}" for change in (
    "approve", "reject", "revoke", "force-rotation", "lift-rotation", "lower-scheme")}
OTHERS = [("/console/history?by=version&compare=yes&period=90-days", "history-versions", 200),
          ("/console/history?by=app_id&period=hour&kind=device", "history-apps", 200), ("/console/nowhere", "refusal-unknown", 404),
          (f"/console/apps/{APP}/decisions?decision=approve", "refusal-nothing-selected", 400)]
HEADERS = {"cache-control": "no-store", "x-frame-options": "DENY", "x-content-type-options": "nosniff",
           "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin"}
POLICY = {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "script-src 'self'", "style-src 'self'"}


class Report:
    """Prints one line for each check."""

    def __init__(self):
        self.failed = 0

    def check(self, name, faults):
        faults = list(dict.fromkeys(faults))
        self.failed += bool(faults)
        print(f"{'FAULT' if faults else 'ok   '} {name}", *(f"      {fault}" for fault in faults), sep="\n", flush=True)


class Check:
    def __init__(self, scene, browser, screenshots, binary):
        self.scene, self.browser, self.screenshots, self.report = scene, browser, screenshots, Report()
        self.binary = os.path.abspath(binary)
        self.origin = f"http://{scene.node.operations}"
        self.seen = collections.Counter()

    def sign_in(self, window, role):
        """Signs in with the keyboard only. The field already has the focus."""
        window.open(f"{self.origin}/console")
        # Browsers set the focus when they first draw a page.
        deadline = time.monotonic() + 10
        while window.run("() => document.activeElement.id") != "credential":
            assert time.monotonic() < deadline, "the field has no focus"
        window.type(self.scene.credentials[role])
        window.loading(lambda: window.press("Enter"))

    def visitor(self, role):
        visitor = Visitor(self.scene.node.operations)
        assert visitor.sign_in(self.scene.credentials[role]).status == 303, role
        return visitor

    # Looking

    def page(self, window, path, name, statuses=(200,)):
        """The faults of one page, with or without script."""
        window.forget()
        answer = window.open(self.origin + path)
        if answer["status"] not in statuses:
            yield f"{answer['status']}"
        yield from self.shown(window, answer, name)

    def shown(self, window, answer, name):
        headers = {field.lower(): value for field, value in answer["headers"].items()}
        yield from (f"{field}: {headers.get(field)}" for field, value in HEADERS.items() if headers.get(field) != value)
        policy = {part.strip() for part in headers.get("content-security-policy", "").split(";")}
        yield from (f"content security policy without {part}" for part in POLICY - policy)
        if any("unsafe" in part or "*" in part for part in policy):
            yield f"content security policy: {policy}"
        yield from rules.looks(window, self.screenshots / name)
        yield from rules.focus(window)
        text = window.run("() => document.body.textContent")
        for field in [*self.scene.credentials, *SEEN]:
            self.seen[field] += f"{field}'\"><canary-x" in text
        yield from rules.happened(window, self.origin)

    def look(self, window, found, stage="", modes=(True, False)):
        """Checks all distinct pages, with and without script."""
        for scripts in modes:
            window.scripts(scripts)
            mode = "" if scripts else " without script"
            for path, name in different(found):
                file = f"{stage}{name}{mode}".replace(" ", "-")
                self.report.check(f"{stage}{path}{mode}", self.page(window, path, file))
        window.scripts(True)

    def others(self, window):
        """Checks pages that no link leads to."""
        for path, name, status in OTHERS:
            self.report.check(path, self.page(window, path, name, [status]))

    # Doing

    def by_keyboard(self, window):
        """Signs in, approves a pending device and signs out, without a pointer and without script."""
        window.scripts(False)
        self.sign_in(window, "operator")
        if cookie := next((cookie for cookie in window.cookies() if cookie["name"] == COOKIE), None):
            wanted = {"secure": True, "httpOnly": True, "sameSite": "Strict", "path": "/", "session": True, "domain": "127.0.0.1"}
            yield from (f"the cookie has {name} {cookie.get(name)}" for name, value in wanted.items() if cookie.get(name) != value)
        else:
            yield "the browser has no cookie"
        device = self.scene.pending.pop()
        steps = ["Devices", "Show", device.device, "Approve", "Approve the device"]
        for step in steps:
            if step == "Show":
                self.to(window, "pending", "status")
                window.press("p")
            if not self.to(window, step):
                yield f"the keyboard does not reach {step} at {window.run('() => location.href')}"
                return
            window.loading(lambda: window.press("Enter"))
        if self.scene.operator.administer("GET", f"/apps/{device.app}/devices/{device.device}")["status"] != "registered":
            yield "the device was not approved"
        yield from rules.happened(window, self.origin)
        window.scripts(True)

    @staticmethod
    def to(window, text, name=None):
        """Moves the focus with the Tab key to the element with this text, or the field with this name."""
        for _ in range(150):
            window.press("Tab")
            at = window.run("() => [document.activeElement.textContent.trim(), document.activeElement.name]")
            if at[1] == name if name else at[0] == text:
                return True
        return False

    def forms(self, found):
        """The forms that change something, with their pages. Leaves out those that would end the session or a credential of this
        check.
        """
        for path, answer in sorted(found.items(), key=lambda item: "?" not in item[0]):
            for form in answer.document.forms if answer.document else []:
                action = urllib.parse.urljoin(path, form.action)
                if form.method == "post" and not action.endswith("/sign-out") and not self.scene.used & set(action.split("/")):
                    yield path, action, form

    def act(self, window, found):
        """Sends a form of each kind, with and without script, and checks the answers."""
        kinds = collections.defaultdict(list)
        for path, action, _ in self.forms(found):
            kinds[pattern(action)].append((path, action))
        used = set()
        # A device is used for one form if possible. So a device that has the only form of a kind must be kept for that kind. Each part
        # of a path, such as a device id, has a weight: each kind of form that has the part adds 1 / (number of forms of the kind). Of
        # each kind, the form whose parts weigh least is sent.
        need = collections.Counter()
        for places in kinds.values():
            actions = {action for _, action in places}
            for part in {part for action in actions for part in action.split("/")}:
                need[part] += 1 / len(actions)
        # Forms that decide on all waiting devices come after those that decide on one device.
        for kind, places in sorted(kinds.items(), reverse=True):
            for scripts in (True, False):
                # After a decision about a device, its page has no form for another decision.
                undecided = [place for place in places if not used & set(place[1].split("/"))]
                fresh = min(undecided, key=lambda place: sum(need[part] for part in place[1].split("/")), default=places[-1])
                used |= {part for part in fresh[1].split("/") if pattern(f"/{part}") == "/{id}"}
                window.scripts(scripts)
                mode = "" if scripts else " without script"
                self.report.check(f"POST {fresh[1]}{mode}", self.send(window, *fresh, f"post-{kind}{mode.replace(' ', '-')}"))
        window.scripts(True)

    def send(self, window, path, action, name):
        """Fills in and sends a form. If the answer asks for confirmation, confirms."""
        window.open(self.origin + path)
        name = name.replace("/console/", "").replace("/", "-").replace("{", "").replace("}", "")
        for step in ("", "-confirmed"):
            window.forget()
            answer = window.loading(lambda: window.run("""(action, text) => {
              const form = [...document.forms].find((form) => new URL(form.action).pathname === action);
              // The browser sends no text that a pattern excludes.
              for (const field of form.querySelectorAll("input:not([type]), input[type=text]:not([pattern])")) {
                // A webhook is added, so that its secret is looked at.
                const fitting = field.name === "url" ? "http://127.0.0.1:9/added" : text;
                field.value ||= fitting.slice(0, field.maxLength > 0 ? field.maxLength : 99);
              }
              (form.querySelector("button.primary, button.danger") || form.querySelector("button")).click();
            }""", action, hostile("reason")))
            # A form that is filled in as its page says must succeed.
            if answer["status"] != 200 and (action.rpartition("/")[2], answer["status"]) not in REFUSED:
                yield f"{answer['status']}: {window.run('() => document.querySelector(`main`).textContent')[:200]}"
            yield from self.shown(window, answer, name + step)
            if not window.run("() => document.querySelector('button[name=confirm]') !== null"):
                return

    def conflict(self, window):
        """Edits the JSON of a record twice, with the line ends that a browser sends, while another operator changes the record."""
        record = self.scene.operator.administer("GET", f"/apps/{APP}")
        mode = "enforce" if record["mode"] == "observe" else "observe"
        window.open(f"{self.origin}/console/apps/{APP}/change?mode={mode}")
        for button in ("button[value=json]", "main form button", "button[name=edit]", "main form button"):
            self.click(window, button)
        if not window.run("() => document.querySelector('button[name=confirm]') !== null"):
            yield "what was edited twice cannot be confirmed"
            return
        self.scene.operator.administer("PUT", f"/apps/{APP}", record | {"name": hostile("meanwhile")})
        window.forget()
        answer = self.click(window, "button[name=confirm]")
        if answer["status"] != 412:
            yield f"the change of another person: {answer['status']}"
        # The person at the browser changed the mode, and another operator changed the name. The draft has both changes.
        members = "() => [...document.querySelectorAll('.record tbody th')].map((cell) => cell.textContent)"
        draft = "() => JSON.parse(document.querySelector('textarea').value)"
        if sorted(window.run(members)) != ["mode", "name"] or window.run(draft)["mode"] != mode:
            yield f"the members {window.run(members)} differ"
        yield from self.shown(window, answer, "app-conflict")
        # Now the person at the browser and the other operator both change the name. So the person at the browser must choose
        # one of the two names.
        window.run(f"() => {{ const area = document.querySelector('textarea'); const record = ({draft})(); record.name = 'mine'; "
                   "area.value = JSON.stringify(record); }")
        self.scene.operator.administer("PUT", f"/apps/{APP}", record | {"name": hostile("once more")})
        window.forget()
        answer = self.click(window, "main form button")
        radios = window.run("() => document.querySelectorAll('input[type=radio]').length")
        if answer["status"] != 412 or radios != 2:
            yield f"a member that both changed: {answer['status']}, {radios} choices"
            return
        yield from self.shown(window, answer, "app-conflict-choice")
        window.run("() => { document.querySelector('input[value=mine]').click(); }")
        answer = self.click(window, "button[name=merge]")
        if answer["status"] != 200 or window.run(draft)["name"] != "mine":
            yield f"the draft of both: {answer['status']}"
        yield from self.shown(window, answer, "app-conflict-draft")

    def set_up(self, window):
        """Answers each step of a set-up, without script, and waits for a device with script."""
        window.scripts(False)
        answers = [{"app_id": "com.example.fresh", "app_name": hostile("fresh")[:40], "with_ios": True, "with_android": True},
                   {"team_id": "TEAMID1234", "bundle_id": "com.example.fresh"},
                   {"package": "com.example.fresh", "digests": ":".join(["AB"] * 32)}, {"mode": "observe", "record_refusals": True}, {}]
        window.open(f"{self.origin}/console/set-up")
        for number, fields in enumerate(answers, 1):
            window.forget()
            window.run("""(fields) => {
              for (const [name, value] of Object.entries(fields)) {
                const field = document.querySelector(`[name=${name}]:not([type=hidden])`);
                if (field.type === "checkbox") field.checked = value; else field.value = value;
              }
            }""", fields)
            answer = self.click(window, "main form button.primary")
            if answer["status"] != 200:
                yield f"step {number}: {answer['status']} {window.run('() => document.querySelector(`[role=alert]`)?.textContent')}"
                return
            yield from self.shown(window, answer, f"set-up-{number}")
        window.scripts(True)
        if (path := window.run("() => location.pathname")) != "/console/apps/com.example.fresh/first-device":
            yield f"the last step leads to {path}"
        yield from self.page(window, "/console/apps/com.example.fresh/first-device", "first-device")

    @staticmethod
    def click(window, button):
        return window.loading(lambda: window.run("(button) => { document.querySelector(button).click(); }", button))

    # Roles

    def roles(self):
        """Checks that the service refuses no link or button that a role sees, and that it refuses the pages that the role does not see."""
        visitors = {role: self.visitor(role) for role in self.scene.credentials if role != "service"}
        found = {role: walk(visitor) for role, visitor in visitors.items()}
        # Check the links of all roles before any form, because forms remove things that links of other roles need.
        faults = {role: [*self.links(visitor, found[role], found["admin"])] for role, visitor in visitors.items()}
        # The role admin comes last, because its forms erase data that the forms of other roles still need.
        for role, visitor in sorted(visitors.items(), key=lambda item: item[0] == "admin"):
            self.report.check(f"the role {role}", faults[role] + [*self.sent(visitor, found[role])])

    @staticmethod
    def links(visitor, found, admins):
        for path, answer in found.items():
            # A form that is sent without a selection is answered with 400. This is no fault.
            if answer.status >= 400 and (answer.status != 400 or "device=" in path):
                yield f"{path}: {answer.status}"
        for kind in {pattern(path) for path in admins} - {pattern(path) for path in found}:
            path = next(path for path in admins if pattern(path) == kind)
            for method in ("GET", "POST"):
                if (status := visitor.ask(method, path, "token=x" if method == "POST" else None).status) not in (403, 404):
                    yield f"{method} {path} is not shown, and answers {status}"

    def sent(self, visitor, found):
        tried = set()
        for _, action, form in self.forms(found):
            if pattern(action) not in tried:
                tried.add(pattern(action))
                status = visitor.ask("POST", action, form.query(next((each for each in form.buttons if each), None))).status
                if status in (401, 403, 404, 405) or status >= 500:
                    yield f"POST {action}: {status}"

    # Commands

    def commands(self, answers):
        """Runs the commands that pages show. The binary may fail for lack of a service or a database, but not for wrong usage."""
        shown = {html.unescape(text) for answer in answers if answer.document
                 for text in re.findall("<code>(synheart-auth [^<]*)</code>", answer.body.decode())}
        # One command of each kind: commands that differ only in ids are one kind.
        kinds = {re.sub(r"[0-9a-f-]{16,}|[\w-]{43}", "ID", text): text for text in shown}
        if len(kinds) < 8:
            yield f"{len(kinds)} commands were found"
        with tempfile.TemporaryDirectory() as folder:
            for name, text in [("credential", "sya_0123456789abcdef_" + "A" * 43), ("app.json", "{}")]:
                pathlib.Path(folder, name).write_text(text)
            for text in kinds.values():
                command = text.replace(self.origin, "http://127.0.0.1:1").replace("synheart-auth", shlex.quote(self.binary), 1)
                done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=60)
                if done.returncode not in (0, 2):
                    yield f"{done.returncode}: {text}\n{done.stderr.strip()[:300]}"

    # Runs all checks.

    def run(self):
        with self.browser.page() as window:
            self.report.check("the sign-in page", self.page(window, "/console/sign-in", "sign-in"))
            self.sign_in(window, "admin")
            self.look(window, walk(self.visitor("admin")), "empty ", [True])
            self.scene.fill()
            # The service was restarted, so sessions have ended.
            self.sign_in(window, "admin")
            admin = self.visitor("admin")
            found = walk(admin)
            self.report.check("the pages", [f"no link leads to {page}" for page in sorted(PAGES - {pattern(path) for path in found})]
                              + [f"{path}: {answer.status}" for path, answer in found.items() if answer.status != 200])
            self.report.check("commands", self.commands([*found.values(), Visitor(admin.address).ask("GET", "/console/sign-in")]))
            self.look(window, found)
            self.others(window)
            self.report.check("ten questions", questions.faults(self))
            with self.browser.page() as other:
                self.report.check("by keyboard alone", self.by_keyboard(other))
            self.act(window, walk(admin))
            self.report.check("a conflict of two changes", self.conflict(window))
            for name, faults in record_form.all(self, window):
                self.report.check(name, faults)
            self.report.check("the set-up of an app", self.set_up(window))
            self.scene.wait(3)
            self.roles()
            for name, faults in Attacks(self.scene, window, self.origin).all(self.sign_in):
                self.report.check(name, faults)
        self.report.check("values of others are shown", [f"no page showed {field}" for field in sorted(SEEN) if not self.seen[field]])
        return self.report.failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    if options.large:
        import large
        sys.exit(large.run(options.binary))
    if options.pictures:
        with browser() as driven, running(options.binary, UNLIMITED) as node:
            pictures.take(Check(Scene(node, pictures.neutral), driven, pathlib.Path(), options.binary))
        return
    if problem := questions.differs(HANDBOOK):
        sys.exit(problem)
    with browser() as driven:
        found, lost = rules.self_test(driven)
        if options.self_test:
            print("\n".join(found))
        if lost:
            sys.exit("\n".join(f"the rules do not notice: {fault}" for fault in lost))
        if options.self_test:
            return
        with tempfile.TemporaryDirectory() as temporary, running(options.binary, UNLIMITED) as node:
            screenshots = options.screenshots or pathlib.Path(temporary)
            os.makedirs(screenshots, exist_ok=True)
            failed = Check(Scene(node), driven, screenshots.resolve(), options.binary).run()
            count = len(list(screenshots.glob("*.png")))
    print(f"{count} screenshots, {time.monotonic() - begun:.0f} s")
    sys.exit(f"{failed} checks failed" if failed else 0)


main()
