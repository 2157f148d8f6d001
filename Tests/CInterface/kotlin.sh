#!/bin/sh
# Compiles the example's Android host, whose compiler comes from PyPI, and runs it on this machine's JVM against stand-ins for
# Android: Tests/CInterface/kotlin.sh DIRECTORY, which has the shared library.
set -eu
cd "$(dirname "$0")/../.."
bin=$1
# The notebooks' kernel carries the compiler and its standard library.
release=kotlin-jupyter-kernel==0.19.0.944
jars=.build/kotlin/$release
if [ ! -d "$jars" ]; then
    scripts/prepare python3 python3-venv
    python3 -m venv .build/kotlin/environment
    .build/kotlin/environment/bin/pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest .build/kotlin/wheel "$release"
    python3 -m zipfile -e .build/kotlin/wheel/*.whl .build/kotlin/unpacked
    mv .build/kotlin/unpacked/run_kotlin_kernel/jars "$jars"
    rm -rf .build/kotlin/wheel .build/kotlin/unpacked .build/kotlin/environment
fi
json=/usr/share/java/json-android.jar
[ -f "$json" ] || scripts/prepare libandroid-json-org-java
library=$(echo "$jars"/kotlin-stdlib-*.jar)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stubs=Tests/CInterface/android
javac -Xlint:all,-serial -Werror -d "$work" Examples/android/jni/SynheartAuth.java \
    $(find $stubs/android $stubs/com -name '*.java')
java -Xmx768m -cp "$jars/*" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -Werror -no-stdlib -no-reflect -jvm-target 17 \
    -cp "$work:$json:$library" -d "$work" Examples/android/KeystoreHost.kt
javac -cp "$work" -d "$work" Tests/CInterface/JNITest.java $stubs/*.java
Tests/CInterface/jni-library "$bin" "$work"
java -Xcheck:jni -Djava.library.path="$work" -cp "$work:$json:$library" KotlinHostTest "$work/device"
