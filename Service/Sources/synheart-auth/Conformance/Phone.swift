import AttestationTestKit
import AuthContract
import Bytes
import Crypto
import Foundation
import StrictJSON

/// A registered phone under an attacker's control: it has the keys, and signs anything. The SDK would refuse to sign some requests.
final class Phone: Sendable {
    let id: DeviceID
    let appID: AppID
    let platform: Platform
    private let current: Locked<P256.Signing.PrivateKey>
    private let attestKey: Locked<AppleAttestKey>
    private let device: AppleDevice

    init(_ id: DeviceID, of appID: AppID, _ platform: Platform, _ parts: Enrolment) {
        (self.id, self.appID, self.platform) = (id, appID, platform)
        current = Locked(parts.key)
        attestKey = Locked(parts.appleKey)
        device = AppleDevice(system: .iOS("27.0.1"), app: parts.appleApp, authority: parts.apple)
    }

    /// The current key.
    var key: P256.Signing.PrivateKey { current.withLock { $0 } }

    func rotated(to key: P256.Signing.PrivateKey) { current.withLock { $0 = key } }

    // MARK: Scheme 1

    /// A request to one of the service's own routes, signed under scheme 1.
    func signed(
        _ route: Route, _ body: [UInt8]? = nil, at time: UnixTime, by signer: P256.Signing.PrivateKey? = nil,
        nonce: RequestNonce = RequestNonce(from: SystemRandom())
    ) throws -> WireRequest {
        // A POST to the service's own routes has a JSON object as its body.
        try signed(
            route.method, route.rawValue, body ?? (route.method == "POST" ? Array("{}".utf8) : []), at: time,
            by: signer, nonce: nonce)
    }

    /// A request signed under scheme 1.
    func signed(
        _ method: String, _ path: String, _ body: [UInt8], at time: UnixTime, by signer: P256.Signing.PrivateKey? = nil,
        nonce: RequestNonce = RequestNonce(from: SystemRandom())
    ) throws -> WireRequest {
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: time, body: body)
        let headers = SchemeOneHeaders(
            appID: appID, deviceID: id, signature: RequestSignature(try (signer ?? key).signature(for: message)),
            timestamp: time, nonce: nonce)
        return WireRequest(
            method: method, target: path, headers: headers.fields + Self.contentType(body), body: body)
    }

    // MARK: Scheme 2

    /// The differences between a request and a correct one under scheme 2. Nil: no difference.
    struct SchemeTwoChanges {
        var origin: RequestOrigin?
        var created: UnixTime?
        /// The key that signs, and that `keyid` names.
        var signer: P256.Signing.PrivateKey?
        /// Changes the text of the signature base before it is signed. The parameters in its last line are also sent.
        var input: (String) -> String = { $0 }
    }

    /// A request signed under scheme 2.
    func signedTwo(
        _ method: String, _ target: String, _ body: [UInt8] = [], to origin: RequestOrigin, at time: UnixTime,
        _ change: (inout SchemeTwoChanges) -> Void = { _ in }
    ) throws -> WireRequest {
        var changes = SchemeTwoChanges()
        change(&changes)
        let signer = changes.signer ?? key
        let parameters = try SchemeTwoParameters(
            created: changes.created ?? time, nonce: RequestNonce(from: SystemRandom()),
            key: DevicePublicKey(signer.publicKey))
        let digest = ContentDigest(of: body)
        let base = try SignatureBase(
            method: method, origin: changes.origin ?? origin, target: RequestTarget(target), contentDigest: digest,
            appID: appID, deviceID: id, parameters: parameters)
        // The parameters are the last line of the base.
        let text = changes.input(String(decoding: base.bytes, as: UTF8.self))
        let headers = SchemeTwoHeaders(
            appID: appID, deviceID: id, contentDigest: digest, parameters: parameters,
            signature: RequestSignature(try signer.signature(for: Array(text.utf8))))
        let request = WireRequest(
            method: method, target: target, headers: headers.fields + Self.contentType(body), body: body)
        let mark = "\"@signature-params\": "
        guard let start = text.range(of: mark)?.upperBound else { return request }
        return request.with([(HeaderName.signatureInput, "\(SchemeTwo.label)=\(text[start...])")])
    }

    // MARK: Rotation

    /// The body of a rotation.
    func rotation(
        to new: P256.Signing.PrivateKey, reason: RotationReason = .scheduled,
        proof prover: P256.Signing.PrivateKey? = nil,
        device: DeviceID? = nil
    ) throws -> [UInt8] {
        let text = DevicePublicKey(new.publicKey).base64
        let proof = try (prover ?? new).signature(for: KeyProof.rotation(deviceID: id, newPublicKeyText: text))
        return RotateKeyRequest(
            appID: appID, deviceID: device ?? id, newPublicKeyText: text, reason: reason,
            newKeyProof: Array(proof.derRepresentation)
        ).bytes
    }

    // MARK: Assertions

    /// The request with an App Attest assertion over the bytes that its scheme 1 signature covers.
    ///
    /// - Parameters:
    ///   - other: the App Attest key that asserts; nil: the phone's App Attest key.
    ///   - message: the bytes that are asserted; nil: the correct ones.
    ///   - options: the assertion's counter and faults.
    func asserted(
        _ request: WireRequest, by other: AppleAttestKey? = nil, message: [UInt8]? = nil,
        options: AppleAssertionOptions = AppleAssertionOptions()
    ) throws -> WireRequest {
        let time = try UnixTime(header: request.value(HeaderName.timestamp))
        let message =
            message
            ?? SchemeOneMessage.bytes(
                method: request.method, path: request.target, timestamp: time, body: request.body)
        let hash = Array(SHA256.hash(data: message))
        let assertion = try attestKey.withLock { key in
            guard var other else { return try device.assert(&key, clientDataHash: hash, options: options) }
            return try device.assert(&other, clientDataHash: hash, options: options)
        }
        return request.with([(HeaderName.assertion, Base64.standard.encode(assertion))])
    }

    private static func contentType(_ body: [UInt8]) -> [(name: String, value: String)] {
        body.isEmpty ? [] : [("Content-Type", "application/json")]
    }
}
