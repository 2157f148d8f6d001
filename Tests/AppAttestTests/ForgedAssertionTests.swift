import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// Assertions with one fault, each refused for that fault.
@Suite struct ForgedAssertions {
    let authority: AppleAuthority
    let hash = Array(SHA256.hash(data: [1, 2, 3]))

    init() throws {
        authority = try AppleAuthority(from: Date(timeIntervalSince1970: 1_790_000_000))
    }

    func refusal(
        previous: UInt32 = 0, system: AppleSystem = .iOS("27.0.1"),
        _ change: (inout AppleAssertionOptions) -> Void = { _ in }
    ) throws -> AppAttestError.Code? {
        var options = AppleAssertionOptions()
        change(&options)
        let appID = "TEAMID1234.com.example.app"
        let device = AppleDevice(system: system, app: AppleApp(appID: appID), authority: authority)
        var key = AppleAttestKey()
        let bytes = try device.assert(&key, clientDataHash: hash, options: options)
        let verifier = AssertionVerifier(policy: AppAttestPolicy(appIDs: [try #require(AppleAppID(appID))]))
        let publicKey = key.privateKey.publicKey
        return code {
            try verifier.verify(
                AssertionObject(parsing: bytes), clientDataHash: ClientDataHash(hash), publicKey: publicKey,
                attestedExtensions: true, previousCounter: previous)
        }
    }

    @Test func `an assertion with nothing wrong verifies`() throws {
        #expect(try refusal() == nil)
        #expect(try refusal(system: .iOS("14.0")) == nil)
        #expect(try refusal(system: .macOS("27.2")) == nil)
        #expect(try refusal(previous: 41) { $0.counter = 100 } == nil)
    }

    @Test func `an assertion whose counter does not grow is refused`() throws {
        #expect(try refusal { $0.counter = 0 } == .counterNotGreater)
        #expect(try refusal(previous: 5) { $0.counter = 5 } == .counterNotGreater)
        #expect(try refusal(previous: 5) { $0.counter = 4 } == .counterNotGreater)
        #expect(try refusal(previous: .max) { $0.counter = .max } == .counterNotGreater)
    }

    @Test func `an assertion whose signature has another encoding is refused`() throws {
        #expect(try refusal { $0.signature = .raw } == .malformedSignature)
        #expect(try refusal { $0.signature = .trailingByte } == .malformedSignature)
        #expect(try refusal { $0.signature = .ofNonceAsDigest } == .signatureInvalid)
        let zero = try refusal { $0.signature = .zeroR }
        #expect(zero == .signatureInvalid || zero == .malformedSignature)
    }

    @Test func `an assertion of another app is refused`() throws {
        #expect(try refusal { $0.relyingParty = "TEAMID1234.com.example.other" } == .appIDNotAllowed)
    }

    @Test(arguments: [0, 36, 38, 60]) func `an assertion whose authenticator data is cut is refused`(count: Int) throws
    {
        #expect(try refusal { $0.authenticatorData = { Array($0.prefix(count)) } } == .malformedAuthenticatorData)
    }

    @Test func `an assertion with more than one map is refused`() throws {
        #expect(try refusal { $0.authenticatorData = { $0 + [0xA0] } } == .malformedAuthenticatorData)
        #expect(try refusal { $0.authenticatorData = { $0 + [0] } } == .malformedAuthenticatorData)
        #expect(
            try refusal(system: .iOS("26.0")) { $0.authenticatorData = { $0 + [0] } } == .malformedAuthenticatorData)
    }

    @Test func `an assertion whose map is wrong is refused`() throws {
        func category(_ value: CBORValue) throws -> AppAttestError.Code? {
            try refusal { $0.extensions = { _ in CBORMap([.init("apple_validation_category_01", value)]) } }
        }
        #expect(try category(.bytes([4, 0, 0])) == .malformedExtensions)
        #expect(try category(.bytes([7, 0, 0, 0])) == .categoryNotAllowed)
        #expect(try category(4) == nil)
    }

    @Test func `an assertion whose object is wrong is refused`() throws {
        func encoded(_ encode: @escaping @Sendable (CBORMap) -> [UInt8]) throws -> AppAttestError.Code? {
            try refusal { $0.encode = encode }
        }
        #expect(try encoded { CBORValue.map($0).encoded + [0] } == .malformedObject)
        #expect(try encoded { [0xBF] + CBORValue.map($0).encoded.dropFirst() + [0xFF] } == .malformedObject)
        #expect(try encoded { [0xB8, 2] + CBORValue.map($0).encoded.dropFirst() } == .malformedObject)
        #expect(try encoded { CBORValue.map(CBORMap($0.entries + [$0.entries[0]])).encoded } == .malformedObject)
        #expect(try encoded { CBORValue.map(CBORMap($0.entries + [.init("more", 1)])).encoded } == .malformedObject)
        #expect(try encoded { CBORValue.map(CBORMap([$0.entries[0]])).encoded } == .malformedObject)
        #expect(try encoded { CBORValue.map($0).encoded + [UInt8](repeating: 0, count: 5000) } == .tooLarge)
    }
}
