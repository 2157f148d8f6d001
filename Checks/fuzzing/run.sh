#!/bin/sh
# Checks/fuzzing/run.sh TARGET [RUNS]: builds the fuzzers and runs one, by default a million times.
# Targets: FuzzCBOR FuzzAttestation FuzzAssertion FuzzReceipt FuzzJSON FuzzPath FuzzDER FuzzKeyAttestation
#          FuzzKeyAttestationChains FuzzPlayIntegrity FuzzSignedAttestation FuzzSignedAssertion FuzzSignedReceipt FuzzRESP.
# FuzzKeyAttestationChains and FuzzSigned… read their input as choices of a grammar, and build objects with valid signatures.
# New inputs go to .build/corpus/TARGET; a crash is written to crash-* here and becomes a test.
set -eu
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET [RUNS]}
runs=${2:-1000000}

# Coverage guides the search in our own code. BoringSSL and the other C code stay without it.
flags="-Xcc -fno-sanitize=fuzzer"
build=.build
# A grammar reads only the first bytes of an input.
length=17000
case $target in
    FuzzSigned*) length=512 ;;
    FuzzKeyAttestationChains) length=128 ;;
esac
case $target in
    FuzzSigned* | FuzzKeyAttestationChains)
        # The bytes of the input choose what a generator builds, and do not appear in the tested data. So the values that the code
        # compares cannot guide the search. Collect only edge coverage, in a separate build.
        flags="$flags -Xswiftc -sanitize-coverage=edge,inline-8bit-counters,pc-table"
        build=.build/grammar
        ;;
esac
# shellcheck disable=SC2086
swift build -c release --scratch-path "$build" --sanitize fuzzer $flags --product "$target"
mkdir -p ".build/corpus/$target" "Corpus/$target"
# Without this, a crashed fuzzer waits for Swift's backtracer instead of ending.
export SWIFT_BACKTRACE=enable=no
exec "$build/release/$target" -runs="$runs" -max_len="$length" -timeout=10 ".build/corpus/$target" "Corpus/$target"
