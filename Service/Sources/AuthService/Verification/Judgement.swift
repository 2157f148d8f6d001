public import AuthContract

/// The judgement on a signed request: its result, and the facts found on the way.
public struct Judgement: Sendable {
    /// The accepted request, or the reason of the refusal.
    public let result: Result<VerifiedRequest, Refusal>
    /// The request as proven by its signature; nil: no signature verified. A request may be refused after its signature verified,
    /// for example as a replay.
    public var signed: VerifiedRequest? {
        guard case .success(let request) = result else { return refused }
        return request
    }
    /// The request that was refused after its signature verified; nil: there is none.
    private let refused: VerifiedRequest?
    /// The app that the request names; nil if the request was refused before the app was found.
    let app: ProvisionedApp?
    /// Whether a refused request passes because its app is in mode `observe`.
    public internal(set) var isObserved = false
    /// The token for a service behind the caller of `/verify`; nil unless the caller asked for it and the request was accepted.
    var identityToken: String?

    /// The id of the app that the request names; nil if the request was refused before the app was found.
    package var appID: AppID? { app?.record.appID }

    /// The refusal; nil if the request was accepted.
    var refusal: Refusal? {
        guard case .failure(let refusal) = result else { return nil }
        return refusal
    }

    /// The signed request that passes, because it was accepted or because of mode `observe`; nil if there is none.
    public var passed: VerifiedRequest? { refusal == nil || isObserved ? signed : nil }

    static func accepted(_ request: VerifiedRequest) -> Judgement {
        Judgement(result: .success(request), refused: nil, app: request.app)
    }

    static func refused(_ refusal: Refusal, app: ProvisionedApp?, signed: VerifiedRequest? = nil) -> Judgement {
        Judgement(result: .failure(refusal), refused: signed, app: app)
    }

    /// The accepted request.
    ///
    /// - Throws: the `Refusal`.
    public func get() throws(Refusal) -> VerifiedRequest { try result.get() }

    /// The verdict for the service that received the request.
    ///
    /// - Throws: the `Refusal`, unless ``isObserved``.
    public func verdict() throws(Refusal) -> VerifyResponse {
        switch result {
        case .success(let verified):
            var identity = verified.identity
            identity.identityToken = identityToken
            return .verified(identity)
        case .failure(let refusal):
            guard isObserved else { throw refusal }
            return .observed(refusal.code, signed?.identity)
        }
    }
}

/// A request whose signature verified.
public struct VerifiedRequest: Sendable {
    let request: SignedRequest
    let row: DeviceRow
    /// The role of the key that signed.
    public let signedBy: SigningKeyRole
    /// The assertion that the app's policy demands but no header contains; nil: none is missing. Only the body of a
    /// rotate-key request may still contain it.
    public internal(set) var missingAssertion: AssertionDemand?

    /// The app at the time of the judgement.
    public var app: ProvisionedApp { request.app }
    /// The device at the time of the judgement.
    public var device: DeviceRecord { row.device }
    /// The app of the device that signed.
    public var appID: AppID { row.device.appID }
    /// The device that signed.
    public var deviceID: DeviceID { row.device.deviceID }
    /// The scheme of the signature.
    public var scheme: SignatureScheme { request.scheme }
    /// The time of the judgement.
    public var at: UnixTime { request.now }
    /// The time that the client signed.
    public var signedAt: UnixTime { request.timestamp }
    /// Seconds since the device's current key was registered, or became current by a rotation.
    public var keyAgeSeconds: Int64 { max(0, at - row.device.keySince) }

    /// The value of `X-Synheart-Rotate` for the device; nil if it need not rotate.
    public var rotationDemand: RotationDemand? { device.rotationDemand(under: app.record.keys, at: at) }

    /// The identity of the signer.
    public var identity: VerifiedIdentity {
        VerifiedIdentity(
            appID: appID, deviceID: deviceID, platform: device.platform, assurance: device.assurance,
            signatureScheme: scheme, keyAgeSeconds: keyAgeSeconds)
    }
}
