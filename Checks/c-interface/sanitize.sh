#!/bin/sh
# Runs every function of the C interface (life.c) under a tool that watches memory. Fails if the tool finds an error
# or a leak.
#
#     Checks/c-interface/sanitize.sh valgrind [DIRECTORY]     with the library in DIRECTORY, or builds one
#     Checks/c-interface/sanitize.sh address                  Address- and LeakSanitizer; builds into .build-asan
set -eu
cd "$(dirname "$0")/../.."
tool=$1
work=$(mktemp -d)
export XDG_STATE_HOME="$work/state"
python3 Checks/c-interface/stand_in_service.py >"$work/port" &
service=$!
trap 'kill $service; rm -rf "$work"' EXIT

case $tool in
address)
    scratch="--scratch-path .build-asan --sanitize address ${BUILD_OPTIONS:-}"
    # shellcheck disable=SC2086 # split into words on purpose
    swift build $scratch --product SynheartAuthC
    # shellcheck disable=SC2086
    bin=$(swift build $scratch --show-bin-path)
    # Links with the clang of Swift's toolchain, which compiled the library. The sanitizer's runtime of a distribution's
    # clang may have another version.
    compiler="$(dirname "$(readlink -f "$(command -v swift)")")/clang -fsanitize=address"
    ;;
valgrind)
    bin=${2:-}
    if [ -z "$bin" ]; then
        # shellcheck disable=SC2086
        swift build ${BUILD_OPTIONS:-} --product SynheartAuthC
        bin=$(swift build --show-bin-path)
    fi
    # Older versions of valgrind cannot read this compiler's debug information. The names of the symbols are enough.
    mkdir "$work/lib"
    strip --strip-debug -o "$work/lib/libSynheartAuthC.so" "$bin/libSynheartAuthC.so"
    bin=$work/lib
    compiler=cc
    ;;
*) exit 2 ;;
esac

$compiler -g -Wall -Wextra -Werror -ISources/CSynheartAuth/include Checks/c-interface/life.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/life"
while [ ! -s "$work/port" ]; do sleep 0.1; done
port=$(cat "$work/port")

if [ "$tool" = valgrind ]; then
    # "Definitely lost" is a leak. What the Swift runtime keeps for as long as the process lives is reachable, and no error.
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
        --num-callers=40 --suppressions=Checks/c-interface/valgrind.supp "$work/life" "$port" "$work/records"
else
    # Records whole stacks, because a leak in libcurl can be recognized only by its callers.
    ASAN_OPTIONS=detect_leaks=1:fast_unwind_on_malloc=0 LSAN_OPTIONS=suppressions=Checks/c-interface/lsan.supp:print_suppressions=0 \
        "$work/life" "$port" "$work/records"
fi
