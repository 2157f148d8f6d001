#!/bin/sh
# Fuzzing/run.sh TARGET [RUNS]: builds the fuzzers and runs one, by default a million times.
# Targets: FuzzCBOR FuzzAttestation FuzzAssertion FuzzReceipt FuzzJSON FuzzDER FuzzKeyAttestation
#          FuzzKeyAttestationChains FuzzPlayIntegrity FuzzSignedAttestation FuzzSignedAssertion FuzzSignedReceipt.
# FuzzKeyAttestationChains and FuzzSigned… read their input as choices of a grammar, and build objects with valid signatures.
# New inputs go to .build/corpus/TARGET; a crash is written to crash-* here and becomes a test.
set -eu
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET [RUNS]}
runs=${2:-1000000}
swift build -c release --sanitize fuzzer --product "$target"
mkdir -p ".build/corpus/$target" "Corpus/$target"
# Without this a crash waits for the backtracer instead of ending.
export SWIFT_BACKTRACE=enable=no
# A grammar reads few bytes; all else would be noise.
length=17000
case $target in
    FuzzSigned*) length=512 ;;
    FuzzKeyAttestationChains) length=128 ;;
esac
exec ".build/release/$target" -runs="$runs" -max_len="$length" -timeout=10 ".build/corpus/$target" "Corpus/$target"
