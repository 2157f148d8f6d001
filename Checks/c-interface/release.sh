#!/bin/sh
# Tests a release build of the shared library: Checks/c-interface/release.sh DIRECTORY, where DIRECTORY has the
# library. Links programs against the functions of the SDK and of the runtime's interface. Then runtime.c, which acts
# like Synheart Core's runtime, runs with a host's keys, because a release build has no software keys.
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
