public import AuthContract

/// An app as its operator provisions it. `AppRecord(_: JSONFields)` has every member with its default.
public struct AppRecord: Sendable, Hashable {
    public let appID: AppID
    public var name: String
    public var enabled: Bool
    public var mode: Mode
    /// Fixed once the app has devices.
    public var buildChannel: BuildChannel
    public var developmentIntegrityAllowed: Bool
    public var ios: IOSPolicy?
    public var android: AndroidPolicy?
    public var signature: SignaturePolicy
    public var keys: KeyPolicy
    public var registration: RegistrationPolicy
    public var evidence: EvidencePolicy

    /// Whether refusals are carried out.
    public enum Mode: String, Sendable, Hashable {
        case enforce
        /// Other services' requests, and policy outcomes of proofs that verified, are recorded and not refused.
        case observe
    }

    /// Which builds of the app the record is for.
    public enum BuildChannel: String, Sendable, Hashable {
        case production, staging, dev
    }
}

/// What a signed request must look like.
public struct SignaturePolicy: Sendable, Hashable {
    public var minimumScheme: SignatureScheme = .one
    /// How old a request may be, in seconds; at most 600.
    public var pastWindowSeconds: Int64 = 300
    /// How far ahead it may be dated; at most `maximumFutureWindow`.
    public var futureWindowSeconds: Int64 = 60
    static let maximumFutureWindow: Int64 = 300
    public var unsignedQuery: UnsignedQuery = .refuseOnWrites
    /// Whether GET, HEAD and OPTIONS are protected against replay.
    public var replayOnReads = true
    /// For deployments whose clients sign the path without this prefix.
    public var pathPrefixStrip: String?
    /// `scheme://host[:port]` or `host[:port]` that scheme 2 requests may be sent to; empty: scheme 2 is refused.
    public var authorities: [String] = []
    public var tokenAudiences: [String] = []

    /// What to do with a query, which scheme 1 does not sign.
    public enum UnsignedQuery: String, Sendable, Hashable {
        case allow
        case refuseOnWrites = "refuse_on_writes"
        case refuse
    }
}

/// How long a key is good and how it is replaced.
public struct KeyPolicy: Sendable, Hashable {
    public var maximumAgeDays: Int64?
    public var graceDays: Int64 = 7
    /// Seconds that the previous key still verifies after a scheduled rotation.
    public var overlapSeconds: Int64 = 60
    public var reattestOnRotation = false
    /// Whether a rotation may bring an attestation of a new App Attest key, where the old one is lost.
    public var rebindOnRotation = false
    public var keyProof: KeyProofPolicy = .optional
    /// After a compromise: which keys must be replaced, and by when.
    public var compromise: Compromise?

    /// Keys that count as compromised.
    public struct Compromise: Sendable, Hashable {
        /// Keys that were registered, or rotated to, before this must rotate, from then on. A key made since need not.
        public let keysBefore: UnixTime
        /// Past this they may do nothing else.
        public let rotateBy: UnixTime
    }

    /// Whether the new key must sign for itself. What is sent is verified either way.
    public enum KeyProofPolicy: String, Sendable, Hashable {
        case optional, required
    }
}

/// What becomes of a proof that verified.
public struct RegistrationPolicy: Sendable, Hashable {
    public var approval: Approval = .auto
    public var providerOutage: ProviderOutage = .refuse
    /// Devices of the app that may wait for approval at once.
    public var maximumPending = 10_000
    /// Devices of the app whose proof may wait for its provider at once. Bounded apart: of these nothing is proven, so a
    /// flood of them must not keep out devices that wait for approval.
    public var maximumUnproven = 10_000

    /// Who lets a device in.
    public enum Approval: String, Sendable, Hashable {
        case auto, manual
    }

    /// What to do while a provider cannot be asked.
    public enum ProviderOutage: String, Sendable, Hashable {
        case pending, refuse
    }
}

/// Whether refusals are kept with what was refused, so that they can be replayed.
public struct EvidencePolicy: Sendable, Hashable {
    /// Off by default: what is kept identifies devices.
    public var record = false
    /// How long what is recorded from now on is kept.
    public var keepDays: Int64 = 30
}

/// What is asked of an iOS or macOS app.
public struct IOSPolicy: Sendable, Hashable {
    /// Team id and bundle id, such as `TEAMID1234.com.example.app`.
    public var appIDs: [String]
    public var environments: [Environment] = [.production]
    /// Further roots, PEM; on channels dev and staging alone.
    public var trustAnchors: [String] = []
    /// Validation categories allowed where the device proves one; nil: those that Apple documents, but 0.
    public var categories: [UInt32]?
    /// What to do with a category that neither Apple's documentation nor `categories` names.
    public var unknownCategories: UnknownCategories = .refuse
    /// Whether to refuse a device that does not prove a category.
    public var requireCategory = false
    /// Smallest bundle version allowed where the device proves one.
    public var minimumBundleVersion: String?
    /// Whether to refuse a device that does not prove a bundle version.
    public var requireBundleVersion = false
    /// Path prefixes on which a request must carry an assertion. Excludes `assertionsRequiredExcept`.
    public var assertionsRequiredOn: [String] = []
    /// Path prefixes on which a request need not carry an assertion, while every other path demands one; nil: this list is
    /// off. The safe one of the two lists: a path that was forgotten is protected.
    public var assertionsRequiredExcept: [String]?
    /// A risk metric above this flags the device; nil: none does. It never refuses anything: Apple means the metric as a
    /// reason to look, not as a verdict.
    public var flagRiskMetricAbove: Int?

    /// What to do with a category that nobody named.
    public enum UnknownCategories: String, Sendable, Hashable {
        case allow, refuse
    }

    /// App Attest's environments.
    public enum Environment: String, Sendable, Hashable {
        case production, development
    }
}

/// What is asked of an Android app.
public struct AndroidPolicy: Sendable, Hashable {
    public var packages: [String]
    /// SHA-256 of the signing certificates allowed, 32 bytes each.
    public var certificateDigests: [[UInt8]]
    public var minimumVersionCode: Int64?
    public var proof: Proof = .playIntegrity
    /// Further roots, PEM; on channels dev and staging alone.
    public var trustAnchors: [String] = []
    public var playIntegrity = PlayIntegritySettings()
    public var keyAttestation = KeyAttestationSettings()

    /// Which of Google's two proofs a registration needs.
    public enum Proof: String, Sendable, Hashable {
        case playIntegrity = "play_integrity"
        case keyAttestation = "key_attestation"
        case both, either
    }
}

/// What is asked of a Play Integrity token, and how one is decoded.
public struct PlayIntegritySettings: Sendable, Hashable {
    public var keys: [ResponseKeys] = []
    /// The service account's JSON, for Google's own decoding.
    public var serviceAccount: Secret?
    public var deviceLabels = ["MEETS_DEVICE_INTEGRITY"]
    public var requireLicensed = false
    public var maximumAgeSeconds: Int64 = 600
    public var allowTestResponses = false
    public var refusePlayProtect: [String] = []
    public var refuseAppAccessRisk: [String] = []
    public var maximumActivityLevel: String?
    public var refuseDeviceRecall: [String] = []

    /// A pair of response encryption keys as Play Console hands them out.
    public struct ResponseKeys: Sendable, Hashable {
        public let decryptionKey: Secret
        public let verificationKey: String
    }
}

/// What is asked of a key attestation.
public struct KeyAttestationSettings: Sendable, Hashable {
    public var minimumSecurityLevel: SecurityLevel = .trustedEnvironment
    /// Verified boot states allowed: `Verified`, `SelfSigned`.
    public var bootStates = ["Verified"]
    /// SHA-256 of boot keys, 32 bytes each: a locked device that booted `SelfSigned` with one of them is accepted.
    public var bootKeys: [[UInt8]] = []
    public var maximumPatchAgeDays: Int64?
    /// A URL or a file of revoked serials, or `none`.
    public var statusList: String?

    /// Where the key must live.
    public enum SecurityLevel: String, Sendable, Hashable {
        case trustedEnvironment = "TrustedEnvironment"
        case strongBox = "StrongBox"
    }
}

/// Text that no log, description or listing shows.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text itself, for the one place that needs it.
    public let exposed: String

    /// A secret.
    public init(_ text: String) { exposed = text }

    public var description: String { "(secret)" }
    public var debugDescription: String { "(secret)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
