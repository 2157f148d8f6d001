"""Ten questions of people who are on call. The pages answer each with at most three clicks from the first page on.

A link, a button and a field that is filled in each count as one click. The table in Console.md is made of the same data.
"""

import hashlib
import re
import typing

from scene import APP, PILOT

MOST = 3
COUNT = 10
# Finds the first link or button whose text matches `pattern`, in a table row or list item that contains the text
# `beside`. If `acts` is true, clicks it.
CLICK = r"""(pattern, beside, acts) => {
  const words = (element) => element.textContent.trim().replace(/\s+/g, " ");
  const found = [...document.querySelectorAll("a[href], button")].find((element) => element.checkVisibility({ visibilityProperty: true })
    && new RegExp(pattern).test(words(element)) && words(element.closest("tr, li") ?? element).includes(beside));
  if (acts) found.click();
  return found !== undefined;
}"""
FILL = """(label, text) => {
  const field = [...document.querySelectorAll("label")].find((each) => each.textContent.trim() === label)?.control;
  if (field) field.value = text;
  return field !== undefined;
}"""
# The text that a person sees, without unselected options, closed details, and text that is only for screen readers.
TEXT = r"""() => {
  const isRead = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(".hidden, option, svg");
  const words = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) if (isRead(texts.currentNode.parentElement)) words.push(texts.currentNode.data);
  for (const field of document.querySelectorAll("main input, main select")) {
    if (isRead(field)) words.push(field.selectedOptions ? field.selectedOptions[0].text : field.value);
  }
  return words.join(" ").replace(/\s+/g, " ").trim();
}"""


class Click(typing.NamedTuple):
    """A link or a button by its text, in which `…` stands for anything."""

    text: str
    # Text that the table row or list item of the link or button must contain.
    beside: str = ""
    # How the table in Console.md names this click. If empty, the table has `text` and `beside`.
    called: str = ""

    @property
    def words(self):
        return self.called or f"*{self.text}*" + (f" of *{self.beside}*" if self.beside else "")

    def done(self, window, _):
        pattern = "^" + ".*".join(map(re.escape, self.text.split("…"))) + "$"
        found = window.run(CLICK, pattern, self.beside, False)
        if found:
            window.loading(lambda: window.run(CLICK, pattern, self.beside, True))
        return found


class Fill(typing.NamedTuple):
    """Types a text into the field with this label."""

    label: str
    text: str
    called: str

    @property
    def words(self):
        return f"{self.called} in *{self.label}*"

    def done(self, window, values):
        return window.run(FILL, self.label, self.text.format(**values))


class Question(typing.NamedTuple):
    asked: str
    steps: list
    # Where the page has the answer, in the words of the table in Console.md.
    place: str
    # Patterns that the text of the last page must match.
    answers: list
    role: str = "operator"


REFUSED = Click(f"… of the requests of {APP} were refused…")
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
ACTOR = "admin:[0-9a-f]{16}"
DEVICE = "Device id, or its hash in the log"
QUESTIONS = [
    Question("Is tonight quiet, and what ends next?", [], "*Now*: its first sentence, *Readiness*, *What ends next*",
             [r"^\d+ (things|%)", "were refused, most with INVALID_SIGNATURE", "Readiness accepting works",
              f"What ends next The admin credential first admin {TIME} in (29|30) days"], "admin"),
    Question("Which version of the app is refused since yesterday, and with which code?", [REFUSED],
             "*History*: the version whose *Change* is *new*; *Code* has the code",
             [r"Change .*\b2\.1 [\d,]+ 0 new\b", "INVALID_SIGNATURE"]),
    Question("Which change did these refusals begin with, and who made it?", [REFUSED, Click("event …", "App record changed")],
             "*Audit*: when the record was changed and by whom, with the record before and after",
             [f"App record changed app.changed · {APP} {TIME} [^·]*· by {ACTOR} ·", "after: \\{.*before: \\{"]),
    Question("Why is this user's phone refused?", [Click("Devices"), Fill(DEVICE, "{hash}", "its hash"), Click("Show")],
             "*One device*: its status; *What happened* has who revoked it and the reason",
             ["Device {revoked} revoked", f"Revoked device.revoked {TIME} [^·]*· by {ACTOR} ·", "reason: reason"]),
    Question("When did this phone change its key, and why?",
             [Click("Devices"), Fill(DEVICE, "{rotated}", "its id"), Click("Show")],
             "*One device*: *Key rotated*; *What happened* has the reason",
             ["Device {rotated} registered", f"Key rotated {TIME}", "Key rotated device.key_rotated .*reason: scheduled"]),
    Question("Why was this registration refused, and would it be refused today?", [Click("Refusals"), Click("UNTRUSTED_CHAIN")],
             "*Refusal*: *Check by check* and *By the app's record of today*",
             ["Refused by the check certificate-chain", "certificate-chain failed",
              "By the app's record of today refused with UNTRUSTED_CHAIN"]),
    Question("How many devices wait for a decision, and since when?", [Click("Devices that wait for a decision: …")],
             "*Pending devices*: its first sentence", [f"Devices that wait: 7. The first has waited since {TIME}"]),
    Question("Which webhook fails, since when and why, and when are its events given up?",
             [Click("Access"), Click("http://127.0.0.1:9/0…", called="the address of the webhook with *fails*")],
             "*One webhook*: *State* and *Given up*",
             [f"State fails no connection, or no HTTP answer since {TIME}", f"Given up {TIME}"], "admin"),
    Question("Which devices would the app refuse if it enforced?", [Click("Apps"), Click(PILOT)],
             "*One app*: *Roll-out* by version, and *If the app enforced* by device",
             [r"1\.4 [\d,]+ [\d,]+ [\d.]+ % observed_CLOCK_SKEW",
              "If the app enforced Of 2 devices, these would be decided about otherwise"]),
    Question("Is the audit log unchanged?", [Click("Audit"), Click("Is the log unchanged?"), Click("Check the log")],
             "*Audit log: verification*: its first sentence", ["Unchanged: "]),
]


def table():
    """The table of Console.md."""
    rows = ["| question | clicks | where the answer stands |", "|---|---|---|"]
    for question in QUESTIONS:
        steps = ", ".join(step.words for step in question.steps)
        clicks = f"{len(question.steps)}: {steps}" if steps else "none"
        rows.append(f"| {question.asked} | {clicks} | {question.place}{' (role admin)' if question.role == 'admin' else ''} |")
    return "\n".join(rows)


def differs(page):
    """What is wrong with the page's table or with the number of questions; None if nothing is."""
    if len(QUESTIONS) != COUNT:
        return f"{len(QUESTIONS)} questions, not {COUNT}"
    return None if table() in page.read_text() else f"{page.name} needs this table:\n{table()}"


def faults(check):
    """Asks all questions, without script."""
    revoked = check.scene.revoked.device
    values = {"revoked": revoked, "hash": hashlib.sha256(revoked.encode()).hexdigest()[:16], "rotated": check.scene.rotated.device}
    for role in ("operator", "admin"):
        with check.browser.page() as window:
            window.scripts(False)
            check.sign_in(window, role)
            for question in QUESTIONS:
                if question.role == role:
                    yield from (f"{question.asked} {fault}" for fault in unanswered(window, check.origin, question, values))


def unanswered(window, origin, question, values):
    if len(question.steps) > MOST:
        yield f"{len(question.steps)} clicks"
    window.open(f"{origin}/console")
    for step in question.steps:
        if not step.done(window, values):
            yield f"{window.run('() => location.pathname')} has no {step.words}"
            return
    text = window.run(TEXT)
    for pattern in question.answers:
        for name, value in values.items():
            pattern = pattern.replace(f"{{{name}}}", value)
        if not re.search(pattern, text):
            yield f"{pattern} is not in: {text[:600]}"
