import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import StrictJSON

/// A world whose app trusts a test authority in place of Apple.
struct AppleWorld {
    let world: World
    let authority: AppleAuthority
    /// The app, as attestations name it.
    var app = AppleApp(appID: "\(World.team).\(World.appID)")
    /// The operating system of the phones. Before version 27, it appends no extension map.
    var system = AppleSystem.iOS("27.0.1")
    /// The members of the app record that `change` leaves as they are unless it names them: `ios` alone.
    let members: [String: JSONValue]

    init(_ record: [String: JSONValue] = [:], ios: [String: JSONValue] = [:]) async throws {
        authority = try Self.shared.get()
        let known: [String: JSONValue] = [
            "app_ids": [.string("\(World.team).\(World.appID)")], "trust_anchors": [.string(authority.rootsPEM)],
        ]
        let policy = World.object(known.merging(ios) { $1 })
        members = ["ios": .object(policy)]
        world = try await World(members.merging(record) { $1 })
    }

    /// Changes the app as an operator does.
    func change(_ record: [String: JSONValue]) async throws { try await world.change(members.merging(record) { $1 }) }

    // Created once, because creating P-384 keys takes time.
    private static let shared = Result { try AppleAuthority(from: (World.start - 86_400).date) }

    private func phone(by authority: AppleAuthority) -> AppleDevice {
        AppleDevice(system: system, app: app, authority: authority)
    }

    /// A registration with an attestation of `attestKey`, by default of a new App Attest key.
    func enrolment(
        _ key: P256.Signing.PrivateKey, attestedBy attestKey: AppleAttestKey = AppleAttestKey(),
        by other: AppleAuthority? = nil, proving: Bool = true,
        changing change: (inout AppleAttestationOptions) -> Void = { _ in }
    ) async throws -> (RegisterRequest, AppleAttestKey) {
        var options = AppleAttestationOptions()
        change(&options)
        let request = try await world.enrolment(
            key, proof: { try attestation(of: attestKey, over: $0, by: other, options: options) }, proving: proving)
        return (request, attestKey)
    }

    /// An attestation of an App Attest key, in the form of a request body.
    func attestation(
        of attestKey: AppleAttestKey, over nonce: BindingNonce, by other: AppleAuthority? = nil,
        options: AppleAttestationOptions = AppleAttestationOptions()
    ) throws -> String {
        Base64.standard.encode(
            try phone(by: other ?? authority).attest(
                attestKey, clientDataHash: nonce.bytes, at: world.clock.now.date, options: options))
    }

    /// A registered device with its App Attest key.
    func device() async throws -> (TestDevice, AppleAttestKey) {
        let key = P256.Signing.PrivateKey()
        let (request, attestKey) = try await enrolment(key)
        let answer = try await world.register(request, [])
        return (TestDevice(appID: request.appID, id: answer.deviceID, key: key), attestKey)
    }

    /// An assertion over a client data hash.
    func assertion(_ key: inout AppleAttestKey, over hash: [UInt8]) throws -> [UInt8] {
        try phone(by: authority).assert(&key, clientDataHash: hash)
    }

    /// A forged assertion: a phone that appends no map signs over `map` and the hash. Then `map` is moved behind the 37 bytes of
    /// authenticator data.
    func forgedAssertion(_ key: inout AppleAttestKey, over hash: [UInt8], moving map: [UInt8]) throws -> [UInt8] {
        var options = AppleAssertionOptions()
        options.movedFromHash = map
        var old = self
        old.system = .iOS("26.4")
        return try old.phone(by: authority).assert(&key, clientDataHash: hash, options: options)
    }

    /// A scheme 1 request with an assertion over its signed bytes, or with a forged assertion.
    func asserting(
        _ request: SentRequest, _ key: inout AppleAttestKey, moving map: [UInt8]? = nil
    ) throws -> SentRequest {
        guard case .bytes(let body) = request.body else { return request }
        let message = SchemeOneMessage.bytes(
            method: request.method, path: request.path,
            timestamp: try UnixTime(header: request.header(HeaderName.timestamp)), body: body)
        let hash = Array(SHA256.hash(data: message))
        let assertion = try map.map { try forgedAssertion(&key, over: hash, moving: $0) } ?? assertion(&key, over: hash)
        return request.adding(HeaderName.assertion, Base64.standard.encode(assertion))
    }
}

extension UnixTime {
    var date: Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }
}
