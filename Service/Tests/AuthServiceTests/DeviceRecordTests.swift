import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

@Suite("Device records")
struct DeviceRecordTests {
    private static let start = UnixTime(1_780_272_000)

    private func record(
        rotatedAt: UnixTime? = nil, metric: Int? = nil, mustRotate: RotationDemand? = nil
    ) throws -> DeviceRecord {
        DeviceRecord(
            appID: try AppID("com.example.app"), deviceID: DeviceID(from: SystemRandom()), platform: .ios,
            status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
            assurance: Assurance(app: .appAttest, key: .appVouched),
            appAttest: metric.map {
                AppAttestKeyState(
                    keyID: [1], publicKey: [2], appID: "TEAMID1234.com.example.app", environment: "production",
                    riskMetric: $0)
            },
            registeredAt: Self.start, keyRotatedAt: rotatedAt, mustRotate: mustRotate)
    }

    /// A key policy that demands no rotation for a compromise.
    private func keys() throws -> KeyPolicy {
        let json: JSONValue = ["app_id": "com.example.app", "ios": ["app_ids": ["TEAMID1234.com.example.app"]]]
        return try AppRecord(JSONFields(json)).keys
    }

    private func keys(before: Int64, by: Int64) throws -> KeyPolicy {
        let compromise = JSONObject([
            ("keys_before", .string((Self.start + before).iso8601)), ("rotate_by", .string((Self.start + by).iso8601)),
        ])
        let json: JSONValue = [
            "app_id": "com.example.app", "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
            "keys": ["compromise": .object(compromise)],
        ]
        return try AppRecord(JSONFields(json)).keys
    }

    @Test("a key's age counts from its rotation, or from the registration")
    func keySince() throws {
        #expect(try record().keySince == Self.start)
        #expect(try record(rotatedAt: Self.start + 5).keySince == Self.start + 5)
    }

    @Test(
        "a compromise demands a rotation of keys made before keys_before, once that time has come",
        arguments: [
            (9, 10, false), (10, 10, true), (11, 10, true), (10, 0, false), (10, 1, true),
        ] as [(Int64, Int64, Bool)])
    func compromise(now: Int64, before: Int64, isDemanded: Bool) throws {
        let demand = try record().rotationDemand(under: keys(before: before, by: 100), at: Self.start + now)
        #expect(demand == (isDemanded ? RotationDemand(by: Self.start + 100, reason: .compromise) : nil))
    }

    @Test("a key that was rotated to at keys_before or later need not rotate", arguments: [(9, true), (10, false)])
    func rotatedSince(at: Int64, isDemanded: Bool) throws {
        let demand = try record(rotatedAt: Self.start + at)
            .rotationDemand(under: keys(before: 10, by: 100), at: Self.start + 20)
        #expect((demand != nil) == isDemanded)
    }

    @Test(
        "of two demands the device is told the sooner time and the stronger reason",
        arguments: [
            (50, .scheduled), (150, .scheduled), (50, .compromise), (150, .compromise),
        ] as [(Int64, RotationReason)])
    func twoDemands(by: Int64, reason: RotationReason) throws {
        let record = try record(mustRotate: RotationDemand(by: Self.start + by, reason: reason))
        #expect(try record.rotationDemand(under: keys(), at: Self.start) == record.mustRotate)
        let demand = try record.rotationDemand(under: keys(before: 10, by: 100), at: Self.start + 10)
        #expect(demand == RotationDemand(by: Self.start + min(by, 100), reason: .compromise))
    }

    @Test("without a demand the device is told nothing")
    func noDemand() throws {
        #expect(try record().rotationDemand(under: keys(), at: Self.start) == nil)
    }

    @Test(
        "a risk metric flags the device above the threshold, not at it",
        arguments: [(4, 4, false), (5, 4, true), (0, 0, false), (1, 0, true), (nil, 0, false)] as [(Int?, Int, Bool)])
    func risk(metric: Int?, threshold: Int, isFlagged: Bool) throws {
        let json: JSONValue = [
            "app_id": "com.example.app",
            "ios": ["app_ids": ["TEAMID1234.com.example.app"], "flag_risk_metric_above": .integer(threshold)],
        ]
        let app = try AppRecord(JSONFields(json))
        #expect(try record(metric: metric).isRiskFlagged(by: app) == isFlagged)
        #expect(try !record(metric: metric).isRiskFlagged(by: nil))
    }

    @Test("only a registered device that was admitted under observation becomes pending once the app enforces")
    func statusUnderMode() throws {
        for status in DeviceStatus.allCases {
            for isObserved in [true, false] {
                var record = try record()
                (record.status, record.admittedUnderObservation) = (status, isObserved)
                #expect(record.status(under: .observe) == status)
                let waits = status == .registered && isObserved
                #expect(record.status(under: .enforce) == (waits ? .pending : status))
            }
        }
    }
}
