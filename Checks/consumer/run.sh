#!/usr/bin/env bash
# Checks an app that depends on this package by URL. The app must resolve at most four packages. It must also resolve
# together with Yams 5, which the service's own dependencies exclude. The code samples of the SDK's pages must compile
# with the product SynheartAuth alone, and the code of an app's tests with SynheartAuthTestSupport alone. The URL is
# that of this clone, so the check uses the last commit without uncommitted changes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
app=$(mktemp -d)
trap 'rm -rf "$app"' EXIT
mkdir -p "$app/Sources/App" "$app/Sources/AppTests"
cp "$root"/Tests/SynheartAuthTests/Samples/*.swift "$app/Sources/App"
cat > "$app/Sources/App/main.swift" <<'SWIFT'
import SynheartAuth

// A name of the app's own that the package has too.
struct Route {}
struct Platform {}

print(SynheartAuth.shared, Route(), Platform())
SWIFT
cat > "$app/Sources/AppTests/Fake.swift" <<'SWIFT'
import SynheartAuthTestSupport

func fake() async throws -> Int {
    let auth: any DeviceAuthenticating = FakeSynheartAuth()
    let request = TransportRequest(method: "GET", url: "https://a.example/", headers: HeaderFields(), body: [])
    return try await auth.send(request, appID: "com.example.app").status
}
SWIFT

# resolve [DEPENDENCY]: prints the packages that the app resolves, one a line, without the app itself.
resolve() {
    cat > "$app/Package.swift" <<SWIFT
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "App", platforms: [.iOS(.v16), .macOS(.v13)],
    dependencies: [.package(url: "file://$root", revision: "$(git -C "$root" rev-parse HEAD)"), $*],
    targets: [
        .executableTarget(
            name: "App", dependencies: [.product(name: "SynheartAuth", package: "$(basename "$root")")]),
        .target(
            name: "AppTests",
            dependencies: [.product(name: "SynheartAuthTestSupport", package: "$(basename "$root")")]),
    ])
SWIFT
    rm -f "$app/Package.resolved"
    swift package --package-path "$app" resolve >&2
    python3 -c 'import json, sys; [print(pin["identity"]) for pin in json.load(open(sys.argv[1]))["pins"]]' \
        "$app/Package.resolved"
}

packages=$(resolve)
count=$(wc -l <<< "$packages")
if [ "$count" -gt 4 ]; then
    echo "an app resolves $count packages, at most 4 are allowed:" $packages >&2
    exit 1
fi
# shellcheck disable=SC2086 # split into words on purpose
(cd "$app" && swift build ${BUILD_OPTIONS:-}) >&2
resolve '.package(url: "https://github.com/jpsim/Yams.git", "5.0.0"..<"6.0.0")' | grep -qx yams
echo "an app resolves $count packages, and Yams 5 beside them:" $packages
