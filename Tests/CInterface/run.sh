#!/bin/sh
# Builds the shared library and exercises it from C, from Python and from Java; then under valgrind, for leaks.
# LIB names a directory with a library that is built already.
set -eu
cd "$(dirname "$0")/../.."
bin=${LIB:-}
if [ -z "$bin" ]; then
    swift build --product SynheartAuthC
    bin=$(swift build --show-bin-path)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
flags="-Wall -Wextra -Werror -ISources/CSynheartAuth/include"

cc $flags Tests/CInterface/smoke.c -L"$bin" -lSynheartAuthC -Wl,-rpath,"$bin" -o "$work/smoke"
"$work/smoke"

python3 Tests/CInterface/test_c_interface.py "$bin"/libSynheartAuthC.*

java_home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
cc $flags -shared -fPIC -I"$java_home/include" -I"$java_home/include/$(uname | tr '[:upper:]' '[:lower:]')" \
    Examples/android/jni/synheart_auth_jni.c -L"$bin" -lSynheartAuthC -Wl,-rpath,"$bin" -o "$work/libsynheart_auth_jni.so"
javac -d "$work" Examples/android/jni/SynheartAuth.java Tests/CInterface/JNITest.java
java -Xcheck:jni -Djava.library.path="$work" -cp "$work" JNITest "$work/jvm"

Tests/CInterface/sanitize.sh valgrind "$bin"
