import AuthContract
import Crypto
import StrictJSON
import Testing

@testable import AuthService

/// The decisions that a different app record would make about stored devices.
@Suite struct WhatIfTests {
    private static let now = UnixTime(1_790_000_000)

    private static func device(_ change: (inout DeviceRecord) -> Void = { _ in }) throws -> DeviceRecord {
        var device = DeviceRecord(
            appID: try AppID(World.appID), deviceID: DeviceID(from: SystemRandom()), platform: .ios,
            status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
            assurance: Assurance(app: .appAttest, key: .appVouched),
            appAttest: AppAttestKeyState(
                keyID: [UInt8](repeating: 1, count: 32), publicKey: [], appID: "\(World.team).\(World.appID)",
                environment: "production"), registeredAt: now - 1000)
        change(&device)
        return device
    }

    private static func android(_ assurance: Assurance) throws -> DeviceRecord {
        DeviceRecord(
            appID: try AppID(World.appID), deviceID: DeviceID(from: SystemRandom()), platform: .android,
            status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey), assurance: assurance,
            registeredAt: now - 1000)
    }

    /// Each finding as a text of its stage, outcome, reason and code.
    private static func findings(
        _ device: DeviceRecord, _ members: [String: JSONValue] = [:], at now: UnixTime = now
    ) throws -> [String] {
        WhatIf(try World.record(members), at: now).findings(about: device).map { finding in
            [finding.stage.rawValue, finding.outcome.rawValue, finding.reason.rawValue, finding.code?.rawValue ?? "-"]
                .joined(separator: " ")
        }
    }

    private static let production: [String: JSONValue] = [
        "build_channel": "production", "development_integrity_allowed": false,
    ]

    @Test func `a device that fits the record has no findings`() throws {
        #expect(try Self.findings(Self.device()) == [])
        #expect(try Self.findings(Self.device(), Self.production) == [])
        let labels = ["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"]
        #expect(try Self.findings(Self.android(Assurance(app: .playIntegrity, key: .tee, labels: labels))) == [])
    }

    @Test func `a disabled app refuses everything`() throws {
        #expect(
            try Self.findings(Self.device(), ["enabled": false, "mode": "observe"]) == [
                "request refused disabled UNKNOWN_APP", "registration refused disabled UNKNOWN_APP",
            ])
    }

    @Test(arguments: [DeviceStatus.revoked, .rejected, .deregistered])
    func `a device that ended is not judged`(status: DeviceStatus) throws {
        #expect(try Self.findings(Self.device { $0.status = status }, ["enabled": false]) == [])
    }

    @Test func `requests are judged in the order of the protocol`() throws {
        let observed = try Self.device { $0.admittedUnderObservation = true }
        #expect(
            try Self.findings(observed) == ["request pending admitted_under_observation DEVICE_PENDING"])
        #expect(try Self.findings(observed, ["mode": "observe"]) == [])
        let pending = try Self.device { $0.status = .pending }
        #expect(try Self.findings(pending) == ["request pending pending DEVICE_PENDING"])
        let old: [String: JSONValue] = ["keys": ["maximum_age_days": 1, "grace_days": 0]]
        #expect(try Self.findings(Self.device(), old) == [])
        #expect(
            try Self.findings(Self.device(), old, at: Self.now + 2 * 86_400) == ["request refused key_age KEY_EXPIRED"])
        let schemeTwo: [String: JSONValue] = ["signature": ["minimum_scheme": 2, "authorities": ["api.example.com"]]]
        #expect(
            try Self.findings(Self.device(), schemeTwo)
                == ["request refused signature.minimum_scheme UNSUPPORTED_SIG_VERSION"])
        #expect(
            try Self.findings(Self.device(), schemeTwo.merging(["mode": "observe"]) { $1 })
                == ["request observed signature.minimum_scheme UNSUPPORTED_SIG_VERSION"])
        #expect(try Self.findings(Self.device { $0.highestScheme = .two }, schemeTwo) == [])
        let asserting: [String: JSONValue] = [
            "ios": ["app_ids": [.string("\(World.team).\(World.appID)")], "assertions_required_except": []]
        ]
        #expect(try Self.findings(Self.device(), asserting) == [])
        #expect(
            try Self.findings(Self.device { $0.appAttest = nil }, asserting)
                == ["request refused ios.assertions_required ASSERTION_REQUIRED"])
    }

    @Test func `test and development devices are refused on channel production`() throws {
        for (app, reason) in [
            (Assurance.App.test, "trust_anchors INVALID_ATTESTATION"),
            (.development, "development_integrity_allowed DEV_MODE_NOT_ALLOWED"),
        ] {
            let device = try Self.device { $0.assurance.app = app }
            #expect(
                try Self.findings(device, Self.production) == [
                    "request refused assurance DEVICE_REVOKED", "registration refused \(reason)",
                ])
        }
    }

    @Test func `registrations are judged by what the device has proven`() throws {
        let other: [String: JSONValue] = ["ios": ["app_ids": ["TEAMID1234.com.example.other"]]]
        #expect(
            try Self.findings(Self.device(), other) == ["registration refused ios.app_ids INVALID_ATTESTATION"])
        #expect(
            try Self.findings(Self.device { $0.appAttest = nil }, other) == [], "nothing is known of its App ID")
        #expect(
            try Self.findings(Self.device(), ["ios": .null])
                == ["registration refused platform INVALID_ATTESTATION"])
        #expect(
            try Self.findings(Self.device(), ["registration": ["approval": "manual"]])
                == ["registration pending registration.approval -"])
        let strict = World.android(["play_integrity": ["device_labels": ["MEETS_STRONG_INTEGRITY"]]])
        let basic = try Self.android(
            Assurance(app: .playIntegrity, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]))
        #expect(
            try Self.findings(basic, ["android": strict])
                == ["registration refused android.play_integrity.device_labels INVALID_ATTESTATION"])
        let strongBox = World.android(["key_attestation": ["minimum_security_level": "StrongBox"]])
        let tee = try Self.android(
            Assurance(app: .playIntegrity, key: .tee, labels: ["MEETS_DEVICE_INTEGRITY"]))
        #expect(
            try Self.findings(tee, ["android": strongBox])
                == ["registration refused android.key_attestation.minimum_security_level INVALID_ATTESTATION"])
        let attestedOnly = try Self.android(Assurance(app: .none, key: .tee))
        #expect(
            try Self.findings(attestedOnly, ["android": World.android(["proof": "both"])])
                == ["registration refused android.proof INVALID_ATTESTATION"])
        #expect(try Self.findings(attestedOnly, ["android": World.android(["proof": "either"])]) == [])
        #expect(try Self.findings(Self.android(.unproven), ["android": strict]) == [], "its proof never verified")
    }

    @Test func `counts of the past tell which requests and registrations would not pass`() throws {
        func counted(
            _ kind: CountedVerdict.Kind, _ platform: Platform?, _ code: String, _ scheme: SignatureScheme? = nil
        ) -> CountedVerdict {
            CountedVerdict(appID: nil, kind: kind, platform: platform, code: code, scheme: scheme)
        }
        let counts: [(CountedVerdict, Int)] = [
            (counted(.verification, .ios, "verified", .one), 7),
            (counted(.verification, .android, "verified", .one), 2),
            (counted(.verification, .ios, "verified", .two), 100),
            (counted(.verification, nil, "observed_INVALID_SIGNATURE"), 3),
            (counted(.verification, .ios, "NONCE_REPLAY", .one), 50), (counted(.device, .ios, "verified", .one), 60),
            (counted(.registration, .ios, "registered"), 11), (counted(.registration, .ios, "rejected"), 12),
        ]
        func findings(_ members: [String: JSONValue]) throws -> [String: Int] {
            let whatIf = WhatIf(try World.record(members), at: Self.now)
            return counts.reduce(into: [:]) { sums, counted in
                guard let finding = whatIf.finding(about: counted.0) else { return }
                sums["\(finding.stage) \(finding.outcome) \(finding.code?.rawValue ?? "-")", default: 0] += counted.1
            }
        }
        let schemeTwo: JSONValue = ["minimum_scheme": 2, "authorities": ["api.example.com"]]
        #expect(try findings([:]) == ["request refused INVALID_SIGNATURE": 3])
        #expect(try findings(["mode": "observe"]) == [:])
        #expect(
            try findings(["signature": schemeTwo])
                == ["request refused INVALID_SIGNATURE": 3, "request refused UNSUPPORTED_SIG_VERSION": 9])
        #expect(
            try findings(["mode": "observe", "signature": schemeTwo])
                == ["request observed UNSUPPORTED_SIG_VERSION": 9])
        #expect(
            try findings(["enabled": false])
                == ["request refused UNKNOWN_APP": 112, "registration refused UNKNOWN_APP": 11])
        #expect(
            try findings(["mode": "observe", "ios": .null]) == ["registration refused INVALID_ATTESTATION": 11])
        #expect(
            try findings(["registration": ["approval": "manual"]])
                == ["request refused INVALID_SIGNATURE": 3, "registration pending -": 11])
    }
}
