#!/bin/sh
# The functions that Synheart Core's runtime looks up by name survive a static link that removes dead code: an app's only reference to
# the SDK is SynheartAuth.shared. Tests/CInterface/static.sh BUILD, the folder of a build of the package.
set -eu
build=$(cd "$1" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'import SynheartAuth
print(SynheartAuth.shared)' > "$work/main.swift"
# One archive of everything that the app could link; `q`, because files of two targets may have one name.
for target in SynheartAuth CSynheartAuth AuthContract StrictJSON Bytes; do
    find "$build/$target.build" -name '*.o'
done > "$work/objects"
find "$build" -path '*rypto*.build*' -name '*.o' >> "$work/objects"
ar qcs "$work/libSDK.a" $(sort -u "$work/objects")
swiftc -O -swift-version 6 -I "$build/Modules" "$work/main.swift" -L "$work" -lSDK -Xlinker --gc-sections -lstdc++ -o "$work/app"
nm "$work/app" > "$work/symbols"
for name in generate_key sign_bytes get_attestation key_exists delete_key secure_store secure_load secure_delete; do
    grep -q " T synheart_native_$name\$" "$work/symbols" || {
        echo "synheart_native_$name did not survive the link" >&2
        exit 1
    }
done
"$work/app"
