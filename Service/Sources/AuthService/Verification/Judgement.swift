public import AuthContract

/// The outcome of a signed request: its result, and the facts that became known.
public struct Judgement: Sendable {
    /// The accepted request, or the reason of the refusal.
    public let result: Result<VerifiedRequest, Refusal>
    /// The request as proven by its signature. A request may be refused after its signature verified, for example as a replay.
    public let signed: VerifiedRequest?
    /// The app that the request names; nil if the request was refused before the app was found.
    let app: ProvisionedApp?

    /// The refusal; nil if the request was accepted.
    var refusal: Refusal? {
        guard case .failure(let refusal) = result else { return nil }
        return refusal
    }

    static func accepted(_ request: VerifiedRequest) -> Judgement {
        Judgement(result: .success(request), signed: request, app: request.app)
    }

    static func refused(_ refusal: Refusal, app: ProvisionedApp?, signed: VerifiedRequest? = nil) -> Judgement {
        Judgement(result: .failure(refusal), signed: signed, app: app)
    }

    /// The accepted request.
    ///
    /// - Throws: the `Refusal`.
    public func get() throws(Refusal) -> VerifiedRequest { try result.get() }
}

/// A request whose signature verified.
public struct VerifiedRequest: Sendable {
    /// The app at the time of the judgement.
    public let app: ProvisionedApp
    /// The device at the time of the judgement.
    public var device: DeviceRecord { row.device }
    let row: DeviceRow
    /// The app of the device that signed.
    public var appID: AppID { row.device.appID }
    /// The device that signed.
    public var deviceID: DeviceID { row.device.deviceID }
    /// Seconds since the key was registered or became current by a rotation.
    public var keyAgeSeconds: Int64 { max(0, at - row.device.keySince) }
    /// The scheme of the signature.
    public let scheme: SignatureScheme
    /// Which of the device's keys signed.
    public let signedBy: SigningKeyRole
    /// The time of the judgement.
    public let at: UnixTime
    /// The time that the client signed.
    public let signedAt: UnixTime
    /// The assertion that policy demands and that no header has. Only the body of rotate-key may still have it.
    public internal(set) var missingAssertion: AssertionDemand?

    /// The value of `X-Synheart-Rotate` for the device; nil if it need not rotate.
    public var rotationDemand: RotationDemand? { device.rotationDemand(under: app.record.keys, at: at) }

    /// The identity of the signer.
    public var identity: VerifiedIdentity {
        VerifiedIdentity(
            appID: appID, deviceID: deviceID, platform: device.platform, assurance: device.assurance,
            signatureScheme: scheme, keyAgeSeconds: keyAgeSeconds)
    }
}
