"""The rules for a page, in the browser."""

import itertools
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
RULES, FOCUS = ((HERE / f"{name}.js").read_text() for name in ("rules", "focus"))
WIDTHS, SCHEMES = (360, 1440), ("light", "dark")
# The required findings of the rules for broken.html, at 360 px in dark mode.
BROKEN = """no lang|no title|scrolls sideways|the same id twice|aria-labelledby of nothing|not one main|outside of the landmarks
landmarks of the same name|not one h1|a heading of level 3 after 1|an empty heading|no label|no legend|no text for an image
a link or a button without text|a link that leads nowhere|a link of another scheme|a form for another origin|no header cells
a header cell without scope|a table without caption|contrast 2.32: <p.pale>|<p.fog>|<p.night>|<input> words|a script of a value ran
a value became markup|a handler in the markup|invisible characters|a value is escaped in a form|the template shows
the keyboard does not reach <a> first|the focus cannot be seen on|the focus is out of sight on
console: |a dialog: broken|a request to http://canary.invalid/x"""


def focus(window):
    """Moves through the page with the Tab key."""
    count, faults = window.run(f"() => ({FOCUS}).start()"), []
    for _ in range(count + 5):
        window.press("Tab")
        stop = window.run(f"() => ({FOCUS}).stop()")
        faults += stop["faults"]
        if stop["done"]:
            return faults
    return [*faults, "the focus does not come round"]


def happened(window, origin):
    """Forbidden things that the page did."""
    yield from window.faults
    yield from (f"a dialog: {message}" for message in window.dialogs)
    for url in window.requests:
        if not url.startswith((f"{origin}/", "data:")):
            yield f"a request to {url}"
    window.forget()


def looks(window, screenshot=None):
    """The faults of the page that is open, at each width and in each colour scheme. Takes a screenshot of each. Faults do not depend on
    the page's script, so without script each width is checked in only one scheme."""
    found = {}
    for width, scheme in itertools.product(WIDTHS, SCHEMES) if window.has_scripts else zip(WIDTHS, SCHEMES):
        window.looks(width, scheme)
        for fault in window.run(RULES):
            found.setdefault(fault, f"{width} px, {scheme}")
        if screenshot:
            window.screenshot(screenshot.with_name(f"{screenshot.name}-{width}-{scheme}.png"))
    return [f"{fault} ({where})" for fault, where in found.items()]


def self_test(browser):
    """Checks broken.html. Returns the faults that were found, and the required findings that were not."""
    with browser.page() as window:
        window.open((HERE / "broken.html").as_uri())
        found = looks(window) + focus(window) + list(happened(window, "file://"))
    lost = [part for part in BROKEN.replace("\n", "|").split("|") if not any(part in fault for fault in found)]
    return found, lost
