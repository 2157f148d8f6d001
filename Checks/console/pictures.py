"""Pictures of pages for Console.md, with neutral names. Each is 1440 px wide, at most 900 px high and at most 120 KB.

They are in the folder of the page. DocC finds them anywhere in its catalog. GitHub and Checks/documentation/links.py find them only
by their path.
"""

import pathlib

from questions import REFUSED, Click
from scene import APP, PILOT, QUEUE

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "Service/Sources/AuthServer/AuthServer.docc"
WIDTH, HEIGHT, BYTES = 1440, 900, 120_000
NEUTRAL = {"admin": "Ada, lead", "operator": "Ben, on call", "viewer": "Support desk", "one operator": "Mia, fraud desk",
           "two viewer": "Wallboard", "service": "API gateway", "app": "Example", "reason": "the phone was reported stolen",
           "subject": "Not Apple", "version": "2.0.1"}
# For each picture: the file name, the path below /console, the clicks, and the heading at the top of the picture. If
# the heading is None, the picture begins at the top of the page.
PICTURES = [
    ("console-now", "", [], None), ("console-history", "", [REFUSED], None),
    ("console-roll-out", f"/apps/{PILOT}", [], "Roll-out: requests to other services in the last 7 days"),
    ("console-refusal", "/refusals", [Click("UNTRUSTED_CHAIN")], None),
    ("console-queue", f"/devices?status=pending&app={QUEUE}", [], None), ("console-device", f"/devices/{APP}/{{revoked}}", [], None),
    ("console-set-up", "/set-up", [Click("Next")], None), ("console-audit", f"/audit?app={APP}", [], None),
    ("console-record", f"/apps/{APP}/change", [], None),
]
# The first page in dark mode too: DocC shows this picture to readers in dark mode.
DARK = ("console-now~dark", "", [], None)
# Fills in the fields that the forms of the pictures need.
FILL = """() => {
  for (const [name, text] of [["app_id", "com.example.shop"], ["app_name", "Shop"]]) {
    const field = document.querySelector(`input[name=${name}]:not([type=hidden])`);
    if (field) field.value = text;
  }
  for (const box of document.querySelectorAll("input[name^=with_]")) box.checked = true;
}"""
TOP = """(text) => [...document.querySelectorAll("h2")].find((each) => each.textContent.trim() === text).getBoundingClientRect().top
  + scrollY - 16"""


def neutral(field):
    """A neutral name for a field, for pictures that people see."""
    return NEUTRAL.get(field, field)


def take(check):
    """Takes all pictures."""
    check.scene.fill()
    with check.browser.page() as window:
        check.sign_in(window, "admin")
        for scheme, pictures in (("light", PICTURES), ("dark", [DARK])):
            window.looks(WIDTH, scheme)
            for name, path, clicks, heading in pictures:
                window.open(f"{check.origin}/console{path.format(revoked=check.scene.revoked.device)}")
                window.run(FILL)
                for click in clicks:
                    assert click.done(window, {}), f"{path} has no {click.text}"
                top = window.run(TOP, heading) if heading else 0
                height = min(HEIGHT, window.run("() => document.documentElement.scrollHeight") - top)
                file = FOLDER / f"{name}.png"
                # If the file is too large, takes less of the page.
                while True:
                    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
                    window.screenshot(file, optimizeForSpeed=False, clip=clip)
                    if file.stat().st_size <= BYTES:
                        break
                    height = height * 9 // 10
                print(f"{file.stat().st_size:7} {WIDTH} x {height:.0f} {file.name}")
