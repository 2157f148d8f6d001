internal import AuthContract

/// The persisted record of one identity. It never holds private keys, attestations or tokens.
@dynamicMemberLookup
struct IdentityRecord: Sendable, Hashable {
    /// The service's knowledge of this device. The state does not determine it: in `registering` it is `none` while a registration
    /// is sent, `pending` until the service decides, and `active` during a rotation.
    enum Identity: String, Sendable {
        /// The device has no usable identity.
        case none
        /// The service has not decided yet.
        case pending
        /// Requests can be signed.
        case active
    }

    /// The content of the record.
    struct Fields: Sendable, Hashable {
        let appID: AppID
        var state = IdentityState.unregistered
        var identity = Identity.none
        var deviceID: DeviceID?
        var platform: Platform?
        /// The current key's name and RFC 7638 thumbprint.
        var key: KeyReference?
        var registeredAt: UnixTime?
        var keyRotatedAt: UnixTime?
        /// Server clock minus local clock.
        var clockOffset = ClockOffset.none
        var attestationKey: AttestationKey?
        /// The bundle that owns the App Attest key. This field stays when the key is lost.
        var attestationOwner: String?
        /// The unconfirmed suspicions that a key is lost.
        var suspicions: [KeyAlias: Suspicion] = [:]
        /// The auth service of the identity.
        var authOrigin: String?
        /// A demanded rotation (`X-Synheart-Rotate`).
        var rotationDemand: RotationDemand?
        /// The lowest scheme to sign under: the service refuses lower ones from this device.
        var schemeFloor = SignatureScheme.one
        /// The running operation, or the rest of an interrupted one.
        var journal: JournalEntry?
    }

    /// A class, so that copying a record copies only a reference. Async functions keep records across many calls, and the code that
    /// copies a large struct at each call would make the library larger.
    private final class Storage: Sendable {
        let fields: Fields

        init(_ fields: Fields) { self.fields = fields }
    }

    private var storage: Storage

    init(appID: AppID) { storage = Storage(Fields(appID: appID)) }

    var appID: AppID { storage.fields.appID }

    subscript<Value>(dynamicMember path: WritableKeyPath<Fields, Value>) -> Value {
        get { storage.fields[keyPath: path] }
        set {
            var fields = storage.fields
            fields[keyPath: path] = newValue
            storage = Storage(fields)
        }
    }

    static func == (left: Self, right: Self) -> Bool { left.storage.fields == right.storage.fields }

    func hash(into hasher: inout Hasher) { hasher.combine(storage.fields) }

    struct KeyReference: Sendable, Hashable {
        var alias: KeyAlias
        var thumbprint: String
    }

    /// The attestation provider's handle (App Attest's key id), persisted before its first use. It can be used for only
    /// one attestation.
    struct AttestationKey: Sendable, Hashable {
        var id: String
        var isUsed: Bool
        var suspicion: Suspicion?
    }
}

/// An operation in progress. It is written before each step with outside effects, so that it can be finished or undone after a
/// kill.
enum JournalEntry: Sendable, Hashable {
    /// A registration with this key. `isSent`: the service may know the key.
    case registration(IdentityRecord.KeyReference, isSent: Bool)
    /// A rotation to a key under this alias.
    case rotation(PendingRotation)
    /// A key that must be deleted: a replaced key, or the new key of an abandoned rotation.
    case disposal(KeyAlias)
    /// A reset that must tell the service and delete the keys.
    case reset(ResetReason)
}

struct PendingRotation: Sendable, Hashable {
    var alias: KeyAlias
    /// The app's reason. `IdentityRecord.reason(of:)` is the one to send.
    var reason: RotationReason
    /// The new key's thumbprint; nil until the key exists.
    var thumbprint: String?
    /// The latest timestamp of the sent copies of the rotation request that may still take effect; nil if there are none.
    /// The service refuses copies whose timestamp is too old. If the service's time after the sending was earlier than
    /// this timestamp, the service's time is stored instead.
    var lastCopy: UnixTime?
    /// Whether the last attempt ended with `ROTATION_FAILED`. The next attempt then first asks the service which key is current.
    var isRefused = false
    /// The attestation provider's new handle, if the rotation replaces a lost one. It becomes the identity's handle when the service
    /// accepts the rotation.
    var newHandle: IdentityRecord.AttestationKey?

    /// Whether a copy with a new handle may still take effect. Then no other copy may be sent, because the answer would not show
    /// which of the two took effect.
    var hasOpenRebind: Bool { lastCopy != nil && newHandle?.isUsed == true }
}

/// The app's reason for giving an identity up (RFC-AUTH-MOBILE-0001 section 9.3).
public enum ResetReason: String, Sendable, Hashable, CaseIterable {
    /// The service demands it, for example by `DEVICE_REVOKED`.
    case serverInstructed = "server_instructed"
    /// The user asked for it, for example by signing out everywhere.
    case userRequested = "user_requested"
    /// The key is lost and cannot be rotated.
    case keyLost = "key_lost"
}

extension IdentityRecord {
    /// The persisted form.
    var bytes: [UInt8] { storage.fields.bytes }

    /// Reads a persisted record, strictly. Throws for another version, another app or a contradictory state.
    init(_ bytes: [UInt8], appID: AppID) throws { storage = Storage(try Fields(bytes, appID: appID)) }

    /// Whether `state` allows the value of `identity`. Unless `identity` is `none`, the record also needs a device id, a
    /// key and a platform.
    var isConsistent: Bool { storage.fields.isConsistent }
}

/// The record of a later version of the SDK.
struct NewerRecord: Error {}
