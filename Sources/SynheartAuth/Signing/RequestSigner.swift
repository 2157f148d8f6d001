@_spi(Service) internal import AuthContract
internal import Foundation

/// A signed request: its headers, and the bytes that the signature covers.
struct SignedMessage: Sendable {
    let fields: [(name: String, value: String)]
    let bytes: [UInt8]
    let timestamp: UnixTime
    /// The key that signed.
    let key: IdentityRecord.KeyReference?
}

/// Signs requests under both schemes.
struct RequestSigner: Sendable {
    let context: IdentityContext

    /// Signs an app's request under scheme 1 with the current key, if the device signs under scheme 1.
    func sign(method: String, path: String, body: [UInt8]) async throws(SynheartAuthError) -> SignedMessage {
        try Self.checkMethod(method)
        do throws(ContractError) {
            _ = try RequestPath(path)
        } catch {
            throw SynheartAuthError(.signingFailed, error.description)
        }
        let method = method.uppercased()
        try Self.refuseReserved(method: method, path: path)
        if let quick = context.currentQuickSigner(), let sign = quick.sign {
            try context.checkSchemeOne(quick.record)
            let (deviceID, timestamp) = try prepare(quick.record)
            let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: timestamp, body: body)
            // If signing fails, the code below finds out why.
            if let signature = try? sign(message) {
                return signed(message, signature, deviceID, timestamp, quick.record.key)
            }
        }
        return try await context.withCurrentKey { record, key throws(SynheartAuthError) in
            try context.checkSchemeOne(record)
            let signed = try await sign(method: method, path: path, body: body, record: record, alias: key.alias)
            await context.rememberSigner(of: key.alias)
            return signed
        }
    }

    /// Signs an app's request under the given scheme with the current key.
    func sign(
        _ scheme: SignatureScheme, method: String, to place: RequestTargetURL, body: RequestBody
    ) async throws(SynheartAuthError) -> SignedMessage {
        guard scheme == .two else {
            guard case .bytes(let body) = body else {
                throw SynheartAuthError(
                    .signingFailed,
                    "scheme 1 signs the body itself; a file or a stream needs an app that signs under scheme 2")
            }
            return try await sign(method: method, path: place.target.path.text, body: body)
        }
        try Self.checkMethod(method)
        try Self.refuseReserved(method: method.uppercased(), path: place.target.path.text)
        let digest = try await body.digest(context.sleeper)
        return try await context.withCurrentKey { record, key throws(SynheartAuthError) in
            try await signSchemeTwo(method: method, to: place, digest: digest, record: record, alias: key.alias)
        }
    }

    /// Signs one of the SDK's own requests with the key of this alias.
    func sign(
        _ scheme: SignatureScheme, _ route: Route, body: [UInt8], record: IdentityRecord, alias: KeyAlias
    ) async throws(SynheartAuthError) -> SignedMessage {
        guard scheme == .two else {
            return try await sign(
                method: route.method, path: route.rawValue, body: body, record: record, alias: alias)
        }
        let place = try RequestTargetURL(context.configuration.baseUrl + route.rawValue)
        return try await signSchemeTwo(
            method: route.method, to: place, digest: ContentDigest(of: body), record: record, alias: alias)
    }

    /// Signs under scheme 1 with the key of this alias.
    func sign(
        method: String, path: String, body: [UInt8], record: IdentityRecord, alias: KeyAlias
    ) async throws(SynheartAuthError) -> SignedMessage {
        let (deviceID, timestamp) = try prepare(record)
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: timestamp, body: body)
        return signed(
            message, try await signature(message, alias, record), deviceID, timestamp, record.reference(alias))
    }

    private func signed(
        _ message: [UInt8], _ signature: RequestSignature, _ deviceID: DeviceID, _ timestamp: UnixTime,
        _ key: IdentityRecord.KeyReference?
    ) -> SignedMessage {
        let headers = SchemeOneHeaders(
            appID: context.appID, deviceID: deviceID, signature: signature, timestamp: timestamp,
            nonce: RequestNonce(from: context.random))
        return SignedMessage(fields: headers.fields, bytes: message, timestamp: timestamp, key: key)
    }

    private func signSchemeTwo(
        method: String, to place: RequestTargetURL, digest: ContentDigest, record: IdentityRecord, alias: KeyAlias
    ) async throws(SynheartAuthError) -> SignedMessage {
        let (deviceID, timestamp) = try prepare(record)
        let publicKey: DevicePublicKey
        do throws(KeyStoreError) {
            let loaded = try await context.keys(.loadKey) { store throws(KeyStoreError) in try store.load(alias) }
            guard let key = loaded else { throw KeyStoreError(.notFound, reason: "no such key") }
            publicKey = key
        } catch {
            throw await context.judged(error, record.reference(alias))
        }
        let parameters: SchemeTwoParameters
        let base: SignatureBase
        do throws(ContractError) {
            parameters = try SchemeTwoParameters(
                created: timestamp, nonce: RequestNonce(from: context.random), key: publicKey)
            base = try SignatureBase(
                method: method, origin: place.origin, target: place.target, contentDigest: digest,
                appID: context.appID, deviceID: deviceID, parameters: parameters)
        } catch {
            throw SynheartAuthError(.signingFailed, error.description)
        }
        let headers = SchemeTwoHeaders(
            appID: context.appID, deviceID: deviceID, contentDigest: digest, parameters: parameters,
            signature: try await signature(base.bytes, alias, record))
        return SignedMessage(
            fields: headers.fields, bytes: base.bytes, timestamp: timestamp, key: record.reference(alias))
    }

    private func prepare(_ record: IdentityRecord) throws(SynheartAuthError) -> (DeviceID, UnixTime) {
        guard let deviceID = record.deviceID else { throw SynheartAuthError(.notRegistered, "no device id") }
        let timestamp = record.clockOffset.serverTime(atLocal: context.clock.wallMilliseconds)
        guard (1_000_000_000...9_999_999_999).contains(timestamp.seconds) else {
            throw SynheartAuthError(.clockTooFarOff, "the device's clock shows no possible time")
        }
        return (deviceID, timestamp)
    }

    private func signature(
        _ message: [UInt8], _ alias: KeyAlias, _ record: IdentityRecord
    ) async throws(SynheartAuthError) -> RequestSignature {
        let signature: RequestSignature
        do throws(KeyStoreError) {
            signature = try await context.keys(.sign) { store throws(KeyStoreError) in
                try store.sign(message, with: alias)
            }
        } catch {
            throw await context.judged(error, record.reference(alias), isSigning: true)
        }
        await context.trust(alias, record)
        return signature
    }

    /// Refuses the requests that change the identity: a caller that gets them signed could take over the identity.
    /// Compares the path as a lenient server could read it. A path that servers may read differently is refused even if
    /// it only contains the route of such a request.
    private static func refuseReserved(method: String, path: String) throws(SynheartAuthError) {
        // Decoding escapes and collapsing slashes can only shorten a path, so a path shorter than the route cannot become the route.
        for route in [Route.rotateKey, Route.device]
        where method == route.method && path.utf8.count >= route.rawValue.utf8.count {
            let (lenient, reserved) = (LenientPath(path), LenientPath(route.rawValue))
            if lenient == reserved || (LenientPath.isAmbiguous(path) && lenient.contains(reserved)) {
                throw SynheartAuthError(.signingFailed, "only rotateKey and resetDeviceIdentity sign this request")
            }
        }
    }

    private static func checkMethod(_ text: String) throws(SynheartAuthError) {
        guard text.isMethod else {
            throw SynheartAuthError(.signingFailed, "not an HTTP method")
        }
    }
}

extension SynheartAuthError {
    /// The error if the signature must use scheme 2, but the call gave no whole URL.
    static var needsWholeURL: SynheartAuthError {
        SynheartAuthError(
            .signingFailed,
            "this device signs under scheme 2 (the configuration's, or the service has accepted it), which needs the whole URL: use send "
                + "or sign(method:url:)")
    }
}

extension IdentityContext {
    /// The scheme that the device signs with: the higher of the configuration's scheme and the device's floor.
    func scheme(for record: IdentityRecord) -> SignatureScheme { max(configuration.scheme, record.schemeFloor) }

    /// The scheme of an app's requests.
    ///
    /// - Parameter asked: The scheme that a caller asked for.
    /// - Throws: `SIGNING_FAILED` if the caller asked for a scheme that the device does not sign with.
    func scheme(_ asked: SignatureScheme?, for record: IdentityRecord) throws(SynheartAuthError) -> SignatureScheme {
        let scheme = scheme(for: record)
        guard let asked, asked != scheme else { return scheme }
        throw SynheartAuthError(
            .signingFailed,
            scheme == .one
                ? "this device signs under scheme 1: set the configuration's scheme to 2, for all of the app's requests"
                : "this device signs under scheme 2, and its service refuses scheme 1")
    }

    /// Throws if the device signs under scheme 2.
    func checkSchemeOne(_ record: IdentityRecord) throws(SynheartAuthError) {
        if scheme(for: record) != .one { throw .needsWholeURL }
    }
}

extension IdentityRecord {
    /// The key that signs, if the identity may sign.
    func signingKey() throws(SynheartAuthError) -> KeyReference {
        if self.state == .keyInvalid {
            throw .keyLost
        }
        guard self.identity == .active, let key = self.key else {
            throw SynheartAuthError(
                .notRegistered,
                self.identity == .pending ? "the service has not approved this device yet" : "call registerDevice first"
            )
        }
        return key
    }
}
