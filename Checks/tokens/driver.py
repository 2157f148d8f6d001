"""Shared by the Python programs in this folder: reads one token a line, writes one line of JSON."""

import json
import sys


def drive(make, library, page, refusal):
    """Judges each token twice: as the library does by default, and as the page's code does. Arguments: ISSUER AUDIENCE TYPE CHANNEL."""
    tokens = make(*sys.argv[1:5])

    def judge(check, token):
        try:
            return {"device": check(tokens, token)["sub"]}
        except refusal as reason:
            return {"refused": f"{type(reason).__name__}: {reason}"}

    for line in sys.stdin:
        token = line.strip()
        print(json.dumps({"library": judge(library, token), "page": judge(page, token)}), flush=True)
