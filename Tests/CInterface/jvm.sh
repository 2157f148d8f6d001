#!/bin/sh
# Runs the example's JNI glue on this machine's JVM: Tests/CInterface/jvm.sh DIRECTORY, which has the shared library.
set -eu
cd "$(dirname "$0")/../.."
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
java_home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
cc -Wall -Wextra -Werror -ISources/CSynheartAuth/include -shared -fPIC -I"$java_home/include" \
    -I"$java_home/include/$(uname | tr '[:upper:]' '[:lower:]')" Examples/android/jni/synheart_auth_jni.c \
    -L"$bin" -lSynheartAuthC -Wl,-rpath,"$bin" -Wl,--no-undefined -o "$work/libsynheart_auth_jni.so"
javac -d "$work" Examples/android/jni/SynheartAuth.java Tests/CInterface/JNITest.java
java -Xcheck:jni -Djava.library.path="$work" -cp "$work" JNITest "$work/jvm"
