import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// Apple's extensions 1.2.840.113635.100.8.5 and 1.2.840.113635.100.8.7 of the leaf certificate. Apple adds elements to them
/// without notice.
@Suite("Properties of the leaf")
struct LeafPropertyTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let app = AppleApp(appID: "TEAMID1234.com.example.app")
    private static let authority = try? AppleAuthority(from: now - 30 * 86400)

    private func attest(
        _ system: AppleSystem = .iOS("27.0.1"), policy changePolicy: (inout AppAttestPolicy) -> Void = { _ in },
        _ change: (inout AppleAttestationOptions) -> Void
    ) throws -> Result<VerifiedAttestation, any Error> {
        let authority = try #require(Self.authority)
        var options = AppleAttestationOptions()
        change(&options)
        let device = AppleDevice(system: system, app: Self.app, authority: authority)
        let key = AppleAttestKey()
        let object = try device.attest(key, clientDataHash: [1], at: Self.now, options: options)
        var policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.app.appID))])
        changePolicy(&policy)
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let keyID = try #require(KeyID(key.keyID))
        return Result {
            try AttestationVerifier(policy: policy, trustAnchors: anchors)
                .verify(object, keyID: keyID, clientDataHash: ClientDataHash([1]), at: Self.now)
        }
    }

    private func refusal(
        _ system: AppleSystem = .iOS("27.0.1"), policy: (inout AppAttestPolicy) -> Void = { _ in },
        _ change: (inout AppleAttestationOptions) -> Void
    ) throws -> AppAttestError.Code? {
        let result = try attest(system, policy: policy, change)
        return code { try result.get() }
    }

    /// Elements that no check uses, in DER.
    static let unknown: [(name: String, element: [UInt8])] = [
        ("two children", [0xBF, 0x8A, 0x00, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x02]),
        ("no child", [0xBF, 0x8A, 0x00, 0x00]),
        ("a primitive context tag", [0x9F, 0x8A, 0x00, 0x01, 0x07]),
        ("a universal INTEGER", [0x02, 0x01, 0x05]),
        ("a universal OCTET STRING, whose tag number is that of [4]", [0x04, 0x01, 0x05]),
        ("a universal SEQUENCE", [0x30, 0x03, 0x02, 0x01, 0x01]),
        ("an application tag with the number of [4]", [0x64, 0x03, 0x02, 0x01, 0x0D]),
        ("an INTEGER of 16 octets", [0xA9, 0x12, 0x02, 0x10] + [UInt8](repeating: 0x11, count: 16)),
        ("a NULL", [0xA8, 0x02, 0x05, 0x00]),
        ("nested sequences", [0xA8, 0x06, 0x30, 0x04, 0x30, 0x02, 0x05, 0x00]),
    ]

    @Test("an element that no check knows is skipped, whatever its shape", arguments: unknown)
    func unknownElement(name: String, element: [UInt8]) throws {
        for times in 1...2 {
            let added = [[UInt8]](repeating: element, count: times)
            for system in [AppleSystem.iOS("14.0"), .iOS("27.0.1"), .macOS("27.0")] {
                let verified = try attest(system) { options in
                    options.keyProperties = { added + $0 + added }
                    options.systemProperties = { added + $0 + added }
                }.get()
                #expect(verified.systemVersion == system.version)
                #expect(verified.appID.text == Self.app.appID)
            }
        }
    }

    @Test("a tag that is known in one extension is unknown in the other")
    func tagOfTheOtherExtension() throws {
        let verified = try attest { options in
            options.keyProperties = { $0 + [Self.text(1026, "macosx"), Self.text(1400, "1.0")] }
            options.systemProperties = { $0 + [Self.integer(4, 13), Self.text(1204, "TEAMID1234.com.example.other")] }
        }.get()
        #expect(verified.platform == .iOS)
        #expect(verified.systemVersion == "27.0.1")
    }

    @Test(
        "a known element that is repeated or of another type is refused",
        arguments: [4, 1204, 1026, 1400, 1403] as [UInt])
    func knownElement(tag: UInt) throws {
        func with(_ change: @escaping @Sendable ([UInt8]) -> [[UInt8]]) throws -> AppAttestError.Code? {
            try refusal { options in
                let replace: @Sendable ([[UInt8]]) -> [[UInt8]] = { elements in
                    elements.flatMap { $0.starts(with: Self.head(tag)) ? change($0) : [$0] }
                }
                if tag == 4 || tag == 1204 {
                    options.keyProperties = replace
                } else {
                    options.systemProperties = replace
                }
            }
        }
        #expect(try with { [$0] } == nil)
        #expect(try with { [$0, $0] } == .malformedProperties)
        #expect(try with { [$0, Self.integer(tag, 1)] } == .malformedProperties)
        #expect(try with { _ in [Self.tagged(tag, [0x0C, 0x01, 0x31])] } == .malformedProperties)
        #expect(try with { _ in [Self.tagged(tag, [])] } == .malformedProperties)
        #expect(try with { _ in [Self.tagged(tag, [0x02, 0x01, 0x01, 0x04, 0x01, 0x31])] } == .malformedProperties)
        #expect(try with { _ in [tag == 4 ? Self.text(tag, "10") : Self.integer(tag, 27)] } == .malformedProperties)
        #expect(try with { _ in [Self.tagged(tag, [0x02, 0x02, 0x00, 0x0D])] } == .malformedProperties)
        #expect(
            try with { _ in [Self.tagged(tag, [0x02, 0x09] + [UInt8](repeating: 1, count: 9))] }
                == .malformedProperties)
    }

    @Test("an extension that is no SEQUENCE in DER is refused")
    func noSequence() throws {
        #expect(try refusal { $0.keyProperties = { $0 + [[0x02]] } } == .malformedProperties)
        #expect(try refusal { $0.systemProperties = { $0 + [[0xA0, 0x05, 0x02]] } } == .malformedProperties)
    }

    @Test(
        "a map counts only if the leaf names version 27 or later",
        arguments: [
            ("27", true), ("27.0", true), ("28.1", true), ("100", true), ("27.beta", true), ("026", false),
            ("26.9.9", false), ("9", false), ("", false), (".27", false), ("x27", false), ("+27.0", false),
            ("-27", false), ("27beta", false), (" 27", false), ("２７", false), ("999999999", true),
            ("1000000000", false),
            ("99999999999999999999", false),
        ] as [(String, Bool)])
    func versions(version: String, appendsMap: Bool) throws {
        let named: (inout AppleAttestationOptions) -> Void = { options in
            options.systemProperties = { $0.map { $0.starts(with: Self.head(1400)) ? Self.text(1400, version) : $0 } }
        }
        #expect(try refusal(.iOS("27.0.1"), named) == (appendsMap ? nil : .unexpectedExtensions))
        // A device on iOS 26.0 appends no map, so the version that its leaf names has no effect.
        #expect(try refusal(.iOS("26.0"), named) == nil)
    }

    @Test("an absent OS version is treated as older than 27")
    func absentVersion() throws {
        #expect(try refusal { $0.systemProperties = { Array($0.dropFirst()) } } == .unexpectedExtensions)
        #expect(try refusal { $0.systemProperties = { _ in [] } } == .unexpectedExtensions)
        #expect(try refusal { $0.systemProperties = { _ in nil } } == .unexpectedExtensions)
        #expect(try refusal(.iOS("26.0")) { $0.systemProperties = { _ in nil } } == nil)
        #expect(
            try refusal(.iOS("26.0"), policy: { $0.requiresCategory = true }) { $0.systemProperties = { _ in nil } }
                == .categoryMissing)
        let octets: [UInt8] = Self.tagged(1400, [0x04, 0x02, 0xFF, 0xFE])
        #expect(
            try refusal { $0.systemProperties = { $0.map { $0.starts(with: Self.head(1400)) ? octets : $0 } } }
                == .unexpectedExtensions)
    }

    @Test("the form of an iPhone's access control is not judged; a Mac's must be Apple's to the byte")
    func accessControl() throws {
        let forms: [@Sendable ([UInt8]) -> [UInt8]] = [
            { _ in [] }, { _ in [0x05, 0x00] }, { $0 + [0] }, { [0x30, 0x48] + $0 + [0, 0] },
            { _ in [0x30, 0x05, 0xA4, 0x03, 0x02, 0x01, 0x01] },
        ]
        for form in forms {
            #expect(try refusal(.iOS("27.0.1")) { $0.accessControlExtension = form } == nil)
            #expect(try refusal(.macOS("27.0")) { $0.accessControlExtension = form } == .accessControlMismatch)
            #expect(
                try refusal(.macOS("27.0"), policy: { $0.requiresMacAccessControl = false }) {
                    $0.accessControlExtension = form
                } == nil)
        }
    }

    @Test("a Mac is known by either of two elements")
    func mac() throws {
        let device: (inout AppleAttestationOptions) -> Void = { options in
            options.keyProperties = { $0.map { $0.starts(with: Self.head(4)) ? Self.integer(4, 13) : $0 } }
        }
        #expect(try refusal(.iOS("27.0.1"), device) == .accessControlMismatch)
        let platform: (inout AppleAttestationOptions) -> Void = { options in
            options.systemProperties = { $0.map { $0.starts(with: Self.head(1026)) ? Self.text(1026, "macosx") : $0 } }
        }
        #expect(try refusal(.iOS("27.0.1"), platform) == .accessControlMismatch)
        #expect(try refusal(.iOS("14.0"), device) == .accessControlMissing)
        for number in [12, 14] as [UInt8] {
            #expect(
                try refusal(.iOS("27.0.1")) { options in
                    options.keyProperties = { $0.map { $0.starts(with: Self.head(4)) ? Self.integer(4, number) : $0 } }
                } == nil)
        }
    }

    // MARK: DER

    /// The identifier octets of `[tag]`, constructed.
    static func head(_ tag: UInt) -> [UInt8] {
        tag < 31 ? [0xA0 | UInt8(tag)] : [0xBF, 0x80 | UInt8(tag >> 7), UInt8(tag & 0x7F)]
    }

    static func tagged(_ tag: UInt, _ content: [UInt8]) -> [UInt8] { head(tag) + [UInt8(content.count)] + content }
    static func text(_ tag: UInt, _ text: String) -> [UInt8] {
        tagged(tag, [0x04, UInt8(text.utf8.count)] + Array(text.utf8))
    }
    static func integer(_ tag: UInt, _ number: UInt8) -> [UInt8] { tagged(tag, [0x02, 0x01, number]) }
}
