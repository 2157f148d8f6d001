#!/bin/sh
# Exercises a release build of the shared library: Checks/c-interface/release.sh DIRECTORY, which has it. Programs link against both
# faces, and Synheart Core's runtime works with a host's keys: a release build has none of its own.
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
