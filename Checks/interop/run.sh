#!/usr/bin/env bash
# The built service and the SDK meet other people's implementations: another client, another verifier, a validator of the
# OpenAPI document, and requests that schemathesis makes up. Before that, a second implementation of docs/protocol.md runs
# docs/vectors, and a third client, written from the same page alone, lives against the service. Under a minute. The virtual environment of `environment` is made first, from PyPI, if it is not there.
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
