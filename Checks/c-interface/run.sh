#!/bin/sh
# Builds the shared library and exercises it from C and Python, then under valgrind, for leaks.
# LIB names a directory with a library that is built already.
set -eu
cd "$(dirname "$0")/../.."
bin=${LIB:-}
if [ -z "$bin" ]; then
    # shellcheck disable=SC2086 # split into words on purpose
    swift build ${BUILD_OPTIONS:-} --product SynheartAuthC
    bin=$(swift build --show-bin-path)
fi
work=$(mktemp -d)
servers=
trap 'kill $servers 2>/dev/null || true; rm -rf "$work"' EXIT
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME

cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/smoke.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/smoke"
"$work/smoke"

cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/runtime.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/runtime"
# The library in LIB may be a release build, which has keys only if a host supplies them.
if [ "${LIB:-}" = "" ]; then "$work/runtime"; fi
"$work/runtime" host

# A process may exit while an exchange runs. The deadlines end the exchange at different steps of TLS.
if [ "${LIB:-}" = "" ]; then
    cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/exit.c -L"$bin" -lSynheartAuthC \
        -Wl,-rpath,"$bin" -o "$work/exit"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.1 -keyout "$work/key.pem" \
        -out "$work/certificate.pem" 2>/dev/null
    openssl s_server -accept 127.0.0.1:0 -key "$work/key.pem" -cert "$work/certificate.pem" -www >"$work/tls" 2>&1 &
    servers="$servers $!"
    python3 Checks/c-interface/stand_in_service.py >"$work/port" &
    servers="$servers $!"
    while [ ! -s "$work/port" ] || ! grep -q '^ACCEPT' "$work/tls"; do sleep 0.1; done
    tls=$(sed -n 's/^ACCEPT.*:\([0-9]*\).*/\1/p' "$work/tls" | head -n 1)
    for milliseconds in $(seq 10 1 59); do
        SWIFT_BACKTRACE=enable=no "$work/exit" "http://127.0.0.1:$(cat "$work/port")" "$work/exits" "https://127.0.0.1:$tls" \
            "$milliseconds"
    done
    echo "50 processes exited while a request was under way"
fi

python3 Checks/c-interface/test_c_interface.py "$bin"/libSynheartAuthC.*

Checks/c-interface/sanitize.sh valgrind "$bin"
