#!/bin/sh
# Tests a release build of the shared library in DIRECTORY: Checks/c-interface/release.sh DIRECTORY. Programs link against the SDK's
# and the runtime's functions. Synheart Core's runtime works with a host's keys, because a release build has no software keys.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
for program in smoke life runtime; do
    cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include "Checks/c-interface/$program.c" -L"$1" -lSynheartAuthC -Wl,-rpath,"$1" \
        -o "$work/$program"
done
"$work/runtime" host
