/// The operating system of a simulated device. Its version determines the form of attestations, as for real systems.
public struct AppleSystem: Sendable, Hashable {
    /// The platforms with known real attestations.
    public enum Platform: String, Sendable {
        /// An iPhone. The leaf names the platform from iOS 18 on.
        case iOS = "iphoneos"
        /// A Mac, from macOS 27 on: no attestation of an older system is known.
        case macOS = "macosx"
    }

    /// The platform.
    public let platform: Platform
    /// The version, such as `27.0.1`.
    public let version: String
    /// The build, such as `24A446`.
    public let build: String

    /// An iPhone of this version, 14.0 or later.
    public static func iOS(_ version: String, build: String = "24A446") -> Self {
        Self(platform: .iOS, version: version, build: build)
    }

    /// A Mac of this version, 27.0 or later.
    public static func macOS(_ version: String, build: String = "26A5378n") -> Self {
        Self(platform: .macOS, version: version, build: build)
    }

    private func isAtLeast(_ other: [Int]) -> Bool {
        let own = version.split(separator: ".").map { Int($0) ?? 0 }
        return !own.lexicographicallyPrecedes(other)
    }

    /// Whether the leaf names build and platform.
    var namesPlatform: Bool { isAtLeast([18]) }
    /// Whether the leaf has the key's access control.
    var namesAccessControl: Bool { isAtLeast([26, 2]) }
    /// Whether the leaf has an extended key usage.
    var hasExtendedKeyUsage: Bool { isAtLeast([26, 3]) }
    /// Whether authenticator data ends with an extension map.
    var appendsExtensions: Bool { isAtLeast([27]) }
}
