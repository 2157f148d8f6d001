import AttestationTestKit
import AuthContract
import Bytes
import Crypto
import Foundation
import SoftwareDevice
import StrictJSON

/// The content of a registration, and its faults. A case changes only what it tests.
struct Enrolment: Sendable {
    /// The key that is registered.
    var key = P256.Signing.PrivateKey()
    /// The key that the evidence is about; nil: `key`.
    var attested: P256.Signing.PrivateKey?
    /// The key that signs `key_proof`; nil: `key`.
    var prover: P256.Signing.PrivateKey?
    /// The challenge in the evidence; nil: the one in the body.
    var attestedChallenge: [UInt8]?
    var appleKey = AppleAttestKey()
    var appleApp: AppleApp
    var apple: AppleAuthority
    var attestation = AppleAttestationOptions()
    var token = PlayTokenOptions()
    var chain = KeyAttestationOptions()
    /// Whether the certificate chain of Android's hardware is sent; nil: it is sent if the platform is Android.
    var sendsChain: Bool?
    /// The text of `proof`; nil: an attestation or a token, made from the values above.
    var proof: String?
    /// The text of `public_key`; nil: the text of `key`.
    var keyText: String?
}

extension Stage {
    /// Makes a registration request from its parts. The request is valid unless `change` makes it invalid.
    func enrolment(
        _ platform: Platform, challenge: [UInt8], _ change: (inout Enrolment) -> Void = { _ in }
    ) throws -> (parts: Enrolment, request: WireRequest) {
        var parts = Enrolment(
            appleApp: AppleApp(appID: "\(SoftwareDevice.team).\(appID)", environment: .production), apple: apple)
        parts.token.package = appID.text
        parts.token.certificateDigests = [SimulatedAndroid.certificateDigest]
        parts.chain.packages = [.init(appID.text)]
        parts.chain.signatureDigests = [SimulatedAndroid.certificateDigest]
        change(&parts)
        let text = parts.keyText ?? DevicePublicKey(parts.key.publicKey).base64
        let attested = parts.attested ?? parts.key
        let attestedChallenge = parts.attestedChallenge ?? challenge
        let nonce = BindingNonce(
            challenge: attestedChallenge,
            publicKeyText: parts.attested == nil ? text : DevicePublicKey(attested.publicKey).base64)
        // All evidence is dated by the service's clock.
        let time = Date(timeIntervalSince1970: TimeInterval(now.seconds))
        var proof = parts.proof
        if proof == nil, platform == .ios {
            let phone = AppleDevice(system: .iOS("27.0.1"), app: parts.appleApp, authority: parts.apple)
            proof = Base64.standard.encode(
                try phone.attest(
                    parts.appleKey, clientDataHash: nonce.bytes, at: time, options: parts.attestation))
        } else if proof == nil {
            proof = try google.classicToken(nonce: nonce.playIntegrityText, at: time, options: parts.token)
        }
        let chain =
            parts.sendsChain ?? (platform == .android)
            ? try google.attest(attested.publicKey, challenge: attestedChallenge, at: time, options: parts.chain) : nil
        let bound = BindingNonce(challenge: challenge, publicKeyText: text)
        let keyProof = try (parts.prover ?? parts.key).signature(for: KeyProof.registration(bound))
        let body = RegisterRequest(
            appID: appID, publicKeyText: text, challenge: challenge, platform: platform, proof: proof,
            keyProof: Array(keyProof.derRepresentation), keyAttestation: chain)
        return (parts, .json(.register, body.bytes))
    }

    /// Gets a challenge from the service.
    func challenge(_ purpose: ChallengePurpose = .register, app: AppID? = nil) async throws -> [UInt8] {
        let answer = try await accepted(
            .json(.challenge, ChallengeRequest(appID: app ?? appID, purpose: purpose).bytes), "a challenge")
        guard let challenge = try? ChallengeResponse(parsing: answer.body).challenge else {
            throw CaseEnd.fails("the answer has no challenge")
        }
        return challenge
    }

    /// Registers a phone correctly.
    func register(_ platform: Platform? = nil) async throws -> Phone {
        let platform = try platform ?? ordinary
        let (parts, request) = try enrolment(platform, challenge: try await challenge())
        let answer = try await accepted(request, "a registration")
        return try enter(parts, platform, answer)
    }

    /// A phone for cases that do not change it. Several cases share one, because registrations are limited for each address.
    func phone(_ role: String = "scheme 1") async throws -> Phone {
        if let phone = cast.shared(role) { return phone }
        let phone = try await register()
        cast.share(phone, role)
        return phone
    }

    /// Records the phone of an accepted registration, so that it is deregistered at the end. Skips the case if the phone is not
    /// `registered`.
    @discardableResult
    func enter(_ parts: Enrolment, _ platform: Platform, _ answer: WireResponse) throws -> Phone {
        guard let registered = try? RegisterResponse(parsing: answer.body) else {
            throw CaseEnd.fails("the answer has no device id")
        }
        let phone = Phone(registered.deviceID, of: appID, platform, parts)
        cast.enter(phone)
        guard registered.status == .registered else {
            throw CaseEnd.skipped("the app's policy answers \(registered.status.rawValue)")
        }
        return phone
    }

    /// Sends a registration that must be refused. A phone that is registered nevertheless is deregistered at the end.
    func refuses(
        _ platform: Platform, _ codes: ErrorCode..., what: String = "", _ change: (inout Enrolment) -> Void
    ) async throws {
        try requirePlatform(platform)
        let (parts, request) = try enrolment(platform, challenge: try await challenge(), change)
        let answer = try await send(request)
        if answer.isSuccess { _ = try? enter(parts, platform, answer) }
        try requireRefusal(answer, codes, what)
    }

    /// The platform for cases that work with any: the first one that the app accepts. Skips the case if there is none.
    var ordinary: Platform {
        get throws {
            guard let platform = platforms.first else { throw CaseEnd.skipped("no phone registers") }
            return platform
        }
    }

    /// Skips the case if the app does not accept the platform.
    func requirePlatform(_ platform: Platform) throws {
        guard platforms.contains(platform) else {
            throw CaseEnd.skipped("the app registers no \(platform.rawValue) phone of this authority")
        }
    }
}

extension WireRequest {
    /// A request with a JSON body.
    static func json(_ route: Route, _ body: [UInt8]) -> WireRequest {
        WireRequest(
            method: route.method, target: route.rawValue, headers: [("Content-Type", "application/json")], body: body)
    }
}
