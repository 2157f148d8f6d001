#!/usr/bin/env bash
# Tests the built service and the SDK with third-party implementations: another client, another verifier, a validator of
# the OpenAPI document, and requests that schemathesis generates. Before that, a second implementation of
# docs/protocol.md runs docs/vectors, and a third client, written only from the same page, acts as a device. Takes less
# than a minute. `environment` first creates the virtual environment from PyPI if it does not exist.
#   Checks/interop/run.sh [path/to/synheart-auth]
set -euo pipefail
binary=$(realpath "${1:-$(dirname "$0")/../../Service/.build/debug/synheart-auth}")
cd "$(dirname "$0")"
python=$(./environment)
"$python" vectors_check.py
"$python" assertion_vectors.py --check
"$python" third_client.py "$binary"
"$python" end_to_end.py "$binary"
"$python" openapi_check.py "$binary"
./openapi_fuzz "$binary" 30
