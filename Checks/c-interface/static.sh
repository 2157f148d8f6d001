#!/bin/sh
# Checks that the functions that Synheart Core's runtime looks up by name survive a static link that removes dead code, in an app whose
# only reference to the SDK is SynheartAuth.shared. Checks/c-interface/static.sh BUILD, the folder of a build of the package.
set -eu
build=$(cd "$1" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'import SynheartAuth
print(SynheartAuth.shared)' > "$work/main.swift"
# An archive of each target that the app could link.
libraries=
for target in SynheartAuth CSynheartAuth CLibcurl AuthContract StrictJSON Bytes Crypto CryptoBoringWrapper CCryptoBoringSSL \
    CCryptoBoringSSLShims CXKCP CXKCPShims; do
    find "$build/$target.build/" -name '*.o' -print0 | xargs -0 ar qcs "$work/lib$target.a"
    libraries="$libraries -l$target"
done
swiftc -O -swift-version 6 -use-ld=lld -I "$build/Modules" -Xcc "-fmodule-map-file=$build/CLibcurl.build/module.modulemap" "$work/main.swift" -L "$work" -Xlinker --start-group $libraries -Xlinker --end-group \
    -Xlinker --gc-sections -Xlinker -z -Xlinker nostart-stop-gc -lstdc++ -lcurl -o "$work/app"
nm "$work/app" > "$work/symbols"
for name in generate_key sign_bytes get_attestation key_exists delete_key secure_store secure_load secure_delete; do
    grep -q " T synheart_native_$name\$" "$work/symbols" || {
        echo "synheart_native_$name did not survive the link" >&2
        exit 1
    }
done
"$work/app"
