import AuthContract
import StrictJSON
import Testing

@testable import SynheartAuth

/// The persisted form of a record: what is parsed, and what is refused.
@Suite struct IdentityRecordTests {
    private let appID: AppID
    private let primary: IdentityRecord.KeyReference

    init() throws {
        appID = try AppID(Phone.app)
        primary = IdentityRecord.KeyReference(alias: .primary(appID), thumbprint: "t")
    }

    private func active() -> IdentityRecord {
        var record = IdentityRecord(appID: appID)
        record.state = .registered
        record.identity = .active
        record.deviceID = DeviceID(from: SeededRandom(1))
        record.platform = .android
        record.key = primary
        record.registeredAt = UnixTime(1)
        return record
    }

    /// Parses a record's text with one member replaced; nil removes the member.
    private func read(_ record: IdentityRecord, _ name: String, _ value: JSONValue?) throws -> IdentityRecord {
        guard case .object(var json) = try JSONValue(parsing: record.bytes) else { throw StorageError("no object") }
        json[name] = value
        return try IdentityRecord(JSONValue.object(json).bytes, appID: appID)
    }

    @Test func `every member is read again`() throws {
        var record = active()
        record.keyRotatedAt = UnixTime(-2)
        record.clockOffset = try #require(ClockOffset(milliseconds: -86_400_000))
        record.attestationKey = .init(id: "handle", isUsed: true)
        record.authOrigin = FakeService.origin
        record.rotationDemand = RotationDemand(by: UnixTime(3), reason: .compromise)
        record.schemeFloor = .two
        #expect(try IdentityRecord(record.bytes, appID: appID) == record)
        record.attestationKey = .init(id: "handle", isUsed: false)
        #expect(try IdentityRecord(record.bytes, appID: appID) == record)
    }

    @Test func `every journal entry is read again`() throws {
        let next = KeyAlias.next(appID)
        let rotations = RotationReason.allCases.flatMap { reason in
            [
                PendingRotation(alias: next, reason: reason),
                PendingRotation(alias: next, reason: reason, thumbprint: "n", lastCopy: UnixTime(9), isRefused: true),
            ]
        }
        let entries =
            [JournalEntry.registration(primary, isSent: true), .registration(primary, isSent: false), .disposal(next)]
            + rotations.map { .rotation($0) } + ResetReason.allCases.map { .reset($0) }
        for entry in entries {
            var record = active()
            record.journal = entry
            #expect(try IdentityRecord(record.bytes, appID: appID) == record)
        }
    }

    @Test(
        arguments: [
            ("version", JSONValue.integer(0)), ("version", .integer(2)), ("version", nil), ("version", "1"),
            ("app_id", "com.example.other"), ("app_id", nil), ("state", "Registered"), ("state", nil),
            ("identity", "revoked"), ("identity", nil), ("device_id", "1"), ("device_id", nil), ("platform", "windows"),
            ("platform", nil), ("key_alias", "synheart_auth_com.example.other"), ("key_alias", nil),
            ("key_thumbprint", nil), ("registered_at", "1"), ("clock_offset_ms", nil),
            ("clock_offset_ms", .integer(86_400_001)), ("clock_offset_ms", .integer(-86_400_001)),
            ("attestation_key_id", "h"), ("journal", "rotation"),
        ] as [(String, JSONValue?)])
    func `a record with a missing, a foreign or a malformed member is refused`(name: String, value: JSONValue?) throws {
        #expect(throws: (any Error).self) { try read(active(), name, value) }
    }

    @Test(
        arguments: [
            ["operation": "registration", "key_thumbprint": "t", "sent": true],
            ["operation": "registration", "key_alias": "ALIAS", "sent": true],
            ["operation": "registration", "key_alias": "ALIAS", "key_thumbprint": "t"],
            ["operation": "rotation", "refused": false],
            ["operation": "rotation", "key_alias": "ALIAS"],
            ["operation": "rotation", "key_alias": "ALIAS", "refused": false, "reason": "weather"],
            ["operation": "rotation", "key_alias": "synheart_auth_x", "refused": false],
            ["operation": "disposal"], ["operation": "disposal", "key_alias": "x"], ["operation": "reset"],
            ["operation": "reset", "reason": "weather"], ["operation": "dance", "key_alias": "ALIAS"], [:],
        ] as [[String: JSONValue]])
    func `a journal entry that lacks a member or has an unknown one is refused`(entry: [String: JSONValue]) throws {
        var json = JSONObject()
        for (name, value) in entry {
            json[name] = value == "ALIAS" ? .string(KeyAlias.next(appID).text) : value
        }
        #expect(throws: (any Error).self) { try read(active(), "journal", .object(json)) }
    }

    @Test(arguments: IdentityState.allCases)
    func `a state allows only its identities`(state: IdentityState) throws {
        let allowed: [IdentityRecord.Identity] =
            switch state {
            case .registered: [.active]
            case .registering: [.none, .pending, .active]
            default: [.none]
            }
        for identity in [IdentityRecord.Identity.none, .pending, .active] {
            var record = active()
            (record.state, record.identity) = (state, identity)
            #expect(record.isConsistent == allowed.contains(identity), "\(identity)")
            #expect((try? IdentityRecord(record.bytes, appID: appID)) == (record.isConsistent ? record : nil))
        }
    }

    @Test(arguments: [IdentityRecord.Identity.pending, .active])
    func `an identity has a device id, a key and a platform`(identity: IdentityRecord.Identity) {
        let removals: [@Sendable (inout IdentityRecord) -> Void] = [
            { $0.deviceID = nil }, { $0.key = nil }, { $0.platform = nil },
        ]
        var record = active()
        (record.state, record.identity) = (.registering, identity)
        #expect(record.isConsistent)
        // Remove each member alone, and each pair of members.
        for (first, one) in removals.enumerated() {
            for other in removals[first...] {
                var changed = record
                one(&changed)
                other(&changed)
                #expect(!changed.isConsistent)
                changed.identity = .none
                #expect(changed.isConsistent)
            }
        }
    }
}
