#!/bin/sh
# Builds the shared library and exercises it from C and Python, then under valgrind, for leaks.
# LIB names a directory with a library that is built already.
set -eu
cd "$(dirname "$0")/../.."
bin=${LIB:-}
if [ -z "$bin" ]; then
    # shellcheck disable=SC2086 # words, as meant
    swift build ${BUILD_OPTIONS:-} --product SynheartAuthC
    bin=$(swift build --show-bin-path)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME

cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/smoke.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/smoke"
"$work/smoke"

cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/runtime.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/runtime"
# The library in LIB may be a release build, which has keys only if a host brings them.
if [ "${LIB:-}" = "" ]; then "$work/runtime"; fi
"$work/runtime" host

python3 Checks/c-interface/test_c_interface.py "$bin"/libSynheartAuthC.*

Checks/c-interface/sanitize.sh valgrind "$bin"
