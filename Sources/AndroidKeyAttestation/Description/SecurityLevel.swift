/// The component that holds a key, or that made its attestation.
public enum SecurityLevel: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// Android itself.
    case software = 0
    /// A trusted execution environment, a second system on the main processor.
    case trustedEnvironment = 1
    /// A separate chip.
    case strongBox = 2

    /// Whether the first level is less safe than the second.
    public static func < (left: SecurityLevel, right: SecurityLevel) -> Bool { left.rawValue < right.rawValue }

    /// The name in Google's schema.
    public var name: String {
        switch self {
        case .software: "Software"
        case .trustedEnvironment: "TrustedEnvironment"
        case .strongBox: "StrongBox"
        }
    }

    /// The level of this name; nil for any other name.
    public init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }
}

/// The result of the verified boot.
public enum VerifiedBootState: Int, Sendable, Hashable, CaseIterable {
    /// The manufacturer signed the system.
    case verified = 0
    /// The owner's own key signed the system.
    case selfSigned = 1
    /// The boot loader is unlocked: nothing was verified.
    case unverified = 2
    /// Verification failed.
    case failed = 3

    /// The name in Google's schema.
    public var name: String {
        switch self {
        case .verified: "Verified"
        case .selfSigned: "SelfSigned"
        case .unverified: "Unverified"
        case .failed: "Failed"
        }
    }

    /// The state of this name; nil for any other name.
    public init?(name: String) {
        guard let state = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = state
    }
}

/// The names of values of KeyMint's tags that policies use. The numbers are those of [KeyMint's
/// HAL](https://android.googlesource.com/platform/hardware/interfaces/+/refs/heads/main/security/keymint).
public enum KeyMintNames {
    /// Names of `purpose`.
    public static let purposes: [Int64: String] = [
        0: "ENCRYPT", 1: "DECRYPT", 2: "SIGN", 3: "VERIFY", 4: "DERIVE_KEY", 5: "WRAP_KEY", 6: "AGREE_KEY",
        7: "ATTEST_KEY",
    ]
    /// Names of `algorithm`.
    public static let algorithms: [Int64: String] = [
        1: "RSA", 3: "EC", 4: "ML_DSA", 32: "AES", 33: "TRIPLE_DES", 128: "HMAC",
    ]
    /// Names of `origin`. Google's Java sample swaps 1 and 2.
    public static let origins: [Int64: String] = [
        0: "GENERATED", 1: "DERIVED", 2: "IMPORTED", 3: "RESERVED", 4: "SECURELY_IMPORTED",
    ]
}
