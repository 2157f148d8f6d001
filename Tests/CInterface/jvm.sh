#!/bin/sh
# Runs the example's JNI glue on this machine's JVM: Tests/CInterface/jvm.sh DIRECTORY, which has the shared library.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
Tests/CInterface/jni-library "$1" "$work"
javac -d "$work" Examples/android/jni/SynheartAuth.java Tests/CInterface/JNITest.java
java -Xcheck:jni -Djava.library.path="$work" -cp "$work" JNITest "$work/jvm"
