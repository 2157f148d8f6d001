#!/bin/sh
# Builds the shared library and exercises it from C, from Python and, where there is a JDK, from Java.
# LIB names a directory with a library that is built already.
set -eu
cd "$(dirname "$0")/../.."
bin=${LIB:-}
if [ -z "$bin" ]; then
    swift build --product SynheartAuthC
    bin=$(swift build --show-bin-path)
fi
XDG_STATE_HOME=$(mktemp -d)
export XDG_STATE_HOME
work=$XDG_STATE_HOME
cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include Tests/CInterface/smoke.c -L"$bin" -lSynheartAuthC \
    -Wl,-rpath,"$bin" -o "$work/smoke"
"$work/smoke"
python3 Tests/CInterface/test_c_interface.py "$bin"/libSynheartAuthC.*
if command -v javac >/dev/null; then
    java_home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
    cc -Wall -Wextra -Werror -shared -fPIC -ISources/CSynheartAuth/include -I"$java_home/include" \
        -I"$java_home/include/$(uname | tr '[:upper:]' '[:lower:]')" Examples/android/jni/synheart_auth_jni.c \
        -L"$bin" -lSynheartAuthC -Wl,-rpath,"$bin" -o "$work/libsynheart_auth_jni.so"
    javac -d "$work" Examples/android/jni/SynheartAuth.java Tests/CInterface/JNITest.java
    java -Xcheck:jni -Djava.library.path="$work" -cp "$work" JNITest "$work/records"
fi
