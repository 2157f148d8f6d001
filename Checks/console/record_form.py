"""The form of an app's record, with and without script: what a person changes, what is refused, and a conflict."""

import time

from scene import APP, hostile

PATH = f"/console/apps/{APP}/change"
WINDOW = "signature.past_window_seconds"
# Types the text of a field.
TYPE = """(member, text) => {
  const field = document.getElementById(`member.${member}`);
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
# Types a value, as JSON if the field is shown as JSON.
PUT = f"""(member, value) => {{
  const isJSON = "json" in document.getElementById(`member.${{member}}`).dataset;
  ({TYPE})(member, isJSON ? JSON.stringify(value) : value);
}}"""
VALUE = """(member) => {
  const field = document.getElementById(`member.${member}`);
  return "json" in field.dataset ? JSON.parse(field.value) : field.value;
}"""
PROBLEM = "(member) => document.getElementById(`problem.${member}`).textContent"
LINKS = "() => [...document.querySelectorAll('#problem [data-member]')].map((problem) => problem.dataset.member)"
SEND = "() => { document.querySelector('.record-form .primary').click(); }"
# Sends the form without the browser's checks of its fields.
SEND_ANYWAY = f"() => {{ document.querySelector('.record-form').noValidate = true; ({SEND})(); }}"


def record(check):
    return check.scene.operator.administer("GET", f"/apps/{APP}")


def other(mode):
    return "enforce" if mode == "observe" else "observe"


def confirmed(check, window, answer, name):
    """The faults of a confirmation and of the page after it."""
    if answer["status"] != 200 or not window.run("() => document.querySelector('button[name=confirm]') !== null"):
        yield f"{answer['status']}: {window.run('() => document.querySelector(`main`).textContent')[:300]}"
        return
    yield from check.shown(window, answer, f"{name}-confirmation")
    window.forget()
    yield from check.shown(window, check.click(window, "button[name=confirm]"), f"{name}-changed")


def change(check, window, name):
    """Changes a member that every record sets, and puts markup into a text and into a list."""
    before = record(check)
    window.open(check.origin + PATH)
    window.forget()
    changed = {"mode": other(before["mode"]), "name": hostile("form"), "signature.token_audiences": hostile("audience")}
    for member, text in changed.items():
        window.run(PUT, member, text)
    yield from confirmed(check, window, window.loading(lambda: window.run(SEND)), name)
    signature = before["signature"] | {"token_audiences": [changed["signature.token_audiences"]]}
    if record(check) != before | {"mode": changed["mode"], "name": changed["name"], "signature": signature}:
        yield f"the record is {record(check)}"
    # A list that contains markup is shown as JSON. It is emptied for the next run.
    window.open(check.origin + PATH)
    if window.run(VALUE, "signature.token_audiences") != [changed["signature.token_audiences"]]:
        yield "the list did not come back as it was"
    window.run(PUT, "signature.token_audiences", [])
    window.run(PUT, "name", before["name"])
    window.forget()
    yield from confirmed(check, window, window.loading(lambda: window.run(SEND)), name)


def by_keyboard(check, window):
    before = record(check)
    window.open(check.origin + PATH)
    mode = other(before["mode"])
    if not check.to(window, None, "member.mode"):
        yield "the keyboard does not reach the mode"
        return
    window.press(mode[0])
    for step in ("What would it do?", "Change the record"):
        if not check.to(window, step):
            yield f"the keyboard does not reach {step}"
            return
        window.loading(lambda: window.press("Enter"))
    if record(check) != before | {"mode": mode}:
        yield f"the record is {record(check)}"


def wait(window, member, text):
    """Waits until a field shows a problem that contains the text. If the text is None, waits until it shows no problem."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = window.run(PROBLEM, member)
        if not found if text is None else text in found:
            return
        time.sleep(0.05)
    yield f"{member} says {window.run(PROBLEM, member)!r}, not {text!r}"


def while_typing(check, window):
    """Checks what the form shows while a person types. The script reports a number outside its range. The service reports members that
    contradict each other.
    """
    before = record(check)
    answer = window.open(check.origin + PATH)
    window.forget()
    window.run(PUT, WINDOW, "601")
    if "from 1 to 600" not in window.run(PROBLEM, WINDOW):
        yield f"a number out of its range says {window.run(PROBLEM, WINDOW)!r}"
    window.run(PUT, WINDOW, "60")
    yield from wait(window, WINDOW, None)
    window.run(TYPE, "keys.compromise", "{")
    if "JSON" not in window.run(PROBLEM, "keys.compromise"):
        yield f"broken JSON says {window.run(PROBLEM, 'keys.compromise')!r}"
    window.run(TYPE, "keys.compromise", "")
    if "JSON" not in window.run(PROBLEM, "keys.compromise"):
        yield f"no JSON says {window.run(PROBLEM, 'keys.compromise')!r}"
    window.run(TYPE, "keys.compromise", "null")
    window.run(PUT, WINDOW, "9O")
    if "from 1 to 600" not in window.run(PROBLEM, WINDOW):
        yield f"a number with a letter says {window.run(PROBLEM, WINDOW)!r}"
    window.run(PUT, WINDOW, "60")
    window.run(PUT, "build_channel", "production")
    yield from wait(window, "development_integrity_allowed", "build_channel")
    yield from check.shown(window, answer, "record-form-while-typing")
    window.run(PUT, "build_channel", before["build_channel"])
    yield from wait(window, "development_integrity_allowed", None)
    if record(check) != before:
        yield "typing changed the record"


def refused(check, window, name):
    """The browser does not send a number with a letter. The service refuses such a number too, a number outside its range, and
    contradicting members. It shows each problem at the field."""
    for member, text, asked in (
        (WINDOW, "9O", SEND_ANYWAY),
        (WINDOW, "601", SEND),
        ("build_channel", "production", SEND),
    ):
        window.open(check.origin + PATH)
        window.run(PUT, "name", "kept")
        window.run(PUT, member, text)
        if asked == SEND_ANYWAY and window.run("() => document.querySelector('.record-form').checkValidity()"):
            yield "a number with a letter is valid"
        window.forget()
        answer = window.loading(lambda: window.run(asked))
        at = {WINDOW: WINDOW}.get(member, "development_integrity_allowed")
        if answer["status"] != 400 or window.run(LINKS) != [at] or not window.run(PROBLEM, at):
            yield f"{member} {text}: {answer['status']}, problems of {window.run(LINKS)}"
            continue
        if [window.run(VALUE, "name"), window.run(VALUE, member)] != ["kept", text]:
            yield f"{member} {text}: what was typed is lost"
        yield from check.shown(window, answer, f"{name}-refused")


def conflict(check, window, name):
    """Another operator changes one member before the form is sent. The form that the service then shows has both changes."""
    before = record(check)
    # Each run has a different name, because a record without a change keeps its version.
    mode, theirs = other(before["mode"]), hostile(f"meanwhile-{name}")
    window.open(check.origin + PATH)
    window.run(PUT, "mode", mode)
    check.scene.operator.administer("PUT", f"/apps/{APP}", before | {"name": theirs})
    window.forget()
    answer = window.loading(lambda: window.run(SEND))
    if answer["status"] != 412:
        yield f"the change of another person: {answer['status']}"
        return
    yield from check.shown(window, answer, f"{name}-conflict")
    if [window.run(VALUE, "mode"), window.run(VALUE, "name")] != [mode, theirs]:
        yield "the draft lacks a change"
    yield from confirmed(check, window, window.loading(lambda: window.run(SEND)), name)
    if record(check) != before | {"mode": mode, "name": theirs}:
        yield f"the record is {record(check)}"


def all(check, window):
    for scripts in (True, False):
        window.scripts(scripts)
        mode, name = "" if scripts else " without script", f"record-form{'' if scripts else '-without-script'}"
        yield f"the form of a record: a change{mode}", change(check, window, name)
        yield f"the form of a record: refusals{mode}", refused(check, window, name)
        yield f"the form of a record: a conflict{mode}", conflict(check, window, name)
    yield "the form of a record: by keyboard alone", by_keyboard(check, window)
    window.scripts(True)
    yield "the form of a record: while typing", while_typing(check, window)
