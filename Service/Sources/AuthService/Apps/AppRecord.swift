public import AuthContract

/// An app as its operator provisions it (<doc:AppRecords>).
public struct AppRecord: Sendable, Hashable {
    /// The id that devices name.
    public internal(set) var appID: AppID
    /// A name for people.
    public var name: String
    /// False: every request of the app is refused with `UNKNOWN_APP`.
    public var enabled = true
    /// Whether the service enforces refusals or only reports them.
    public var mode: Mode = .enforce
    /// The builds that the record is for. Fixed once the app has devices.
    public var buildChannel: BuildChannel = .production
    /// Whether devices in development mode may register.
    public var developmentIntegrityAllowed = false
    /// The iOS app; nil: registrations of iOS devices are refused.
    public var ios: IOSApp?
    /// The Android app; nil: registrations of Android devices are refused.
    public var android: AndroidApp?
    /// The requirements for a signed request.
    public var signature = SignaturePolicy()
    /// The life of a device's key.
    public var keys = KeyPolicy()
    /// How a device is admitted.
    public var registration = RegistrationPolicy()
    /// Whether refused proofs are recorded.
    public var evidence = RecordingPolicy()

    /// Whether the service enforces refusals or only reports them.
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Enforces refusals. The default.
        case enforce
        /// Reports refusals of requests to other services without enforcing them. Under `approval: manual`, admits a device whose
        /// proof verified, and marks it as admitted under observation.
        case observe
    }

    /// The builds of the app that a record is for.
    public enum BuildChannel: String, Sendable, Hashable, CaseIterable {
        /// Builds for users. The default. Development mode, further trust anchors and test responses of Play Integrity are not
        /// allowed.
        case production
        /// Builds for testers. Development mode, further trust anchors and test responses may be allowed.
        case staging
        /// Builds for developers. Development mode, further trust anchors and test responses may be allowed.
        case dev
    }
}

/// The requirements for a signed request.
public struct SignaturePolicy: Sendable, Hashable {
    /// The lowest scheme that a request may use.
    public var minimumScheme: SignatureScheme = .one
    /// The maximum age of a request, in seconds; at most `maximumPastWindow`.
    public var pastWindowSeconds: Int64 = 300
    /// How far ahead a request may be dated, in seconds; at most `maximumFutureWindow`.
    public var futureWindowSeconds: Int64 = 60
    /// The longest past window that an app may have, in seconds.
    public static let maximumPastWindow: Int64 = 600
    /// The longest future window that an app may have, in seconds.
    public static let maximumFutureWindow: Int64 = 300
    /// What to do with a query under scheme 1.
    public var unsignedQuery: UnsignedQuery = .refuseOnWrites
    /// Whether GET, HEAD and OPTIONS are protected against replay.
    public var replayOnReads = true
    /// The path prefix that a deployment adds and that clients do not sign; nil: none.
    public var pathPrefixStrip: String?
    /// The origins of the services that scheme 2 requests may be sent to: `scheme://host[:port]`, or `host[:port]` for
    /// https. Empty: scheme 2 is not accepted in requests to services other than this one.
    public var authorities: [String] = []
    /// The audiences that a device token may be for, in addition to the app id. Never the id of another app.
    public var tokenAudiences: [String] = []
    /// The `typ` of device tokens.
    public var tokenType: TokenType = .device

    /// The `typ` of the app's device tokens (RFC 7519 section 5.1).
    public enum TokenType: String, Sendable, Hashable, CaseIterable {
        /// Names the kind of token, so that no backend takes it for another kind.
        case device = "synheart-device+jwt"
        /// An OAuth access token (RFC 9068), for frameworks that accept only that.
        case accessToken = "at+jwt"
        /// For frameworks that accept only `JWT`.
        case jwt = "JWT"
    }

    /// What to do with a query, which scheme 1 does not sign.
    public enum UnsignedQuery: String, Sendable, Hashable, CaseIterable {
        /// Accepts the query. A relay can change it unnoticed.
        case allow
        /// Accepts the query with GET, HEAD and OPTIONS, and refuses it with any other method. The default.
        case refuseOnWrites = "refuse_on_writes"
        /// Refuses the query with every method.
        case refuse
    }
}

/// The life of a key, and how it is replaced.
public struct KeyPolicy: Sendable, Hashable {
    /// The age in days at which a key must rotate; nil: no limit. The age starts at the last rotation, or else at the
    /// registration.
    public var maximumAgeDays: Int64?
    /// The days after `maximumAgeDays` in which the key may still rotate.
    public var graceDays: Int64 = 7
    /// Seconds that the previous key still verifies after a scheduled rotation.
    public var overlapSeconds: Int64 = 60
    /// Whether a rotation must attest again.
    public var reattestOnRotation = false
    /// Whether a rotation, or another registration of the same key, may attest a new App Attest key in place of a lost one.
    public var rebindOnRotation = false
    /// Whether a registration and a rotation need a signature by the new key.
    public var keyProof: KeyProofPolicy = .optional
    /// Demands after compromises: which keys must be replaced, and by when. Each demand applies independently: adding a later
    /// demand does not make keys valid again that an earlier demand made invalid.
    public var compromises: [Compromise] = []
    static let maximumCompromises = 16

    /// One demand to replace keys that may be compromised.
    public struct Compromise: Sendable, Hashable {
        /// Every key that became a device's key before this time, by a registration or a rotation, must rotate. The demand
        /// applies from this time on.
        public internal(set) var keysBefore: UnixTime
        /// The time after which a key that must rotate is refused for everything but status and deregistration.
        public internal(set) var rotateBy: UnixTime
    }

    /// Whether a registration or a rotation needs a key proof: a signature by the new key. A proof that is sent is always verified.
    public enum KeyProofPolicy: String, Sendable, Hashable, CaseIterable {
        /// The proof may be missing, except in a development registration and in a rebind, in which a new App Attest key replaces
        /// the stored one. The default.
        case optional
        /// A request without the proof is refused with `INVALID_ATTESTATION`.
        case required
    }
}

/// How a registration whose proof verified is admitted, and what happens during an outage.
public struct RegistrationPolicy: Sendable, Hashable {
    /// How a device whose proof verified is admitted.
    public var approval: Approval = .auto
    /// How a device whose provider cannot be reached is handled.
    public var providerOutage: ProviderOutage = .refuse
    /// The largest number of the app's devices that may wait for approval.
    public var maximumPending = 10_000
    /// The largest number of the app's devices whose proof may wait for its provider. This bound is separate, because nothing
    /// is proven about these devices: a flood of them must not block devices that wait for approval.
    public var maximumUnproven = 10_000

    /// Whether an operator must approve devices.
    public enum Approval: String, Sendable, Hashable, CaseIterable {
        /// The device is registered at once. The default.
        case auto
        /// The device waits as `pending` until an operator approves it.
        case manual
    }

    /// What to do during an outage of a provider.
    public enum ProviderOutage: String, Sendable, Hashable, CaseIterable {
        /// A device that sent a `key_proof` waits as `pending`: its registration is kept, sealed, for 24 hours, and judged when
        /// the provider answers again. A device that sent no `key_proof` is refused.
        case pending
        /// The registration is refused with `PROVIDER_UNAVAILABLE`. The default.
        case refuse
    }
}

/// Whether refused proofs are recorded, so that they can be replayed.
public struct RecordingPolicy: Sendable, Hashable {
    /// Whether refused proofs are recorded. Off by default, because a recording identifies devices.
    public var record = false
    /// Days for which new recordings are kept.
    public var keepDays: Int64 = 30
}
