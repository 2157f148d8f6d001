#!/bin/sh
# Fuzzing/run.sh TARGET [RUNS]: builds the fuzzers and runs one, by default a million times.
# Targets: FuzzCBOR FuzzAttestation FuzzAssertion FuzzReceipt FuzzJSON FuzzDER FuzzKeyAttestation
#          FuzzPlayIntegrity.
# New inputs go to .build/corpus/TARGET; a crash is written to crash-* here and becomes a test.
set -eu
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET [RUNS]}
runs=${2:-1000000}
swift build -c release --sanitize fuzzer --product "$target"
mkdir -p ".build/corpus/$target" "Corpus/$target"
# Without this a crash waits for the backtracer instead of ending.
export SWIFT_BACKTRACE=enable=no
exec ".build/release/$target" -runs="$runs" -max_len=17000 -timeout=10 ".build/corpus/$target" "Corpus/$target"
