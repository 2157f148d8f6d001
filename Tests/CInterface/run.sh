#!/bin/sh
# Builds the shared library and exercises it from C and from Python.
set -eu
cd "$(dirname "$0")/../.."
swift build --product SynheartAuthC
bin=$(swift build --show-bin-path)
XDG_STATE_HOME=$(mktemp -d)
export XDG_STATE_HOME
cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Tests/CInterface/smoke.c -L"$bin" -lSynheartAuthC -Wl,-rpath,"$bin" \
    -o "$XDG_STATE_HOME/smoke"
"$XDG_STATE_HOME/smoke"
python3 Tests/CInterface/test_c_interface.py "$bin"/libSynheartAuthC.*
