internal import AuthContract
internal import Foundation

/// Signs requests under scheme 1.
struct RequestSigner: Sendable {
    let context: IdentityContext

    /// The six headers of a host's request, signed by the identity's current key.
    func sign(method: String, path: String, body: [UInt8]) async throws(SynheartAuthError) -> SchemeOneHeaders {
        guard Self.isToken(method) else { throw SynheartAuthError(.signingFailed, "not an HTTP method") }
        do throws(ContractError) {
            _ = try RequestPath(path)
        } catch {
            throw SynheartAuthError(.signingFailed, error.description)
        }
        guard !Self.isReserved(method: method, path: path) else {
            throw SynheartAuthError(.signingFailed, "only rotateKey and resetDeviceIdentity sign this request")
        }
        return try await signAsCurrent { record, alias throws(SynheartAuthError) in
            try await sign(method: method.uppercased(), path: path, body: body, record: record, alias: alias)
        }
    }

    /// Runs `body` with the current key; where that is gone, finds out whether another process has just replaced it.
    func signAsCurrent<Value>(
        _ body: (IdentityRecord, KeyAlias) async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        var tried: KeyAlias?
        while true {
            let record = try await context.ledger.load()
            let key = try record.signingKey()
            if let tried, tried == key.alias {
                try await context.ledger.apply(.keyLost(tried))
                throw SynheartAuthError(.keyInvalidated, "the key is gone; registerDevice makes a new one")
            }
            do throws(SynheartAuthError) {
                return try await body(record, key.alias)
            } catch {
                guard error.code == .keyInvalidated else { throw error }
                tried = key.alias
            }
        }
    }

    /// Signs with a key of this name for the device of this record.
    func sign(
        method: String, path: String, body: [UInt8], record: IdentityRecord, alias: KeyAlias
    ) async throws(SynheartAuthError) -> SchemeOneHeaders {
        guard let deviceID = record.deviceID else { throw SynheartAuthError(.notRegistered, "no device id") }
        let timestamp = record.clockOffset.serverTime(atLocal: context.clock.wallMilliseconds)
        guard (1_000_000_000...9_999_999_999).contains(timestamp.seconds) else {
            throw SynheartAuthError(
                .clockSkew, "the device's clock shows no possible time", recovery: .correctClock, isRetryable: false)
        }
        let message = SchemeOneMessage.bytes(method: method, path: path, timestamp: timestamp, body: body)
        let signature: RequestSignature
        do throws(KeyStoreError) {
            signature = try await context.keys { store throws(KeyStoreError) in
                try store.sign(message, with: alias)
            }
        } catch {
            if error.code == .failed {
                throw SynheartAuthError(.signingFailed, "the key store did not sign", cause: error)
            }
            throw context.error(error)
        }
        return SchemeOneHeaders(
            appID: context.appID, deviceID: deviceID, signature: signature, timestamp: timestamp,
            nonce: RequestNonce(from: context.random))
    }

    /// Requests that change the identity: whoever could have them signed could take it over. Compared the way a lenient
    /// server could read the path.
    static func isReserved(method: String, path: String) -> Bool {
        let segments = (path.removingPercentEncoding ?? path).lowercased().split(separator: "/")
        func isRoute(_ route: Route) -> Bool {
            method.uppercased() == route.method && segments == route.rawValue.split(separator: "/")
        }
        return isRoute(.rotateKey) || isRoute(.device)
    }

    /// RFC 9110 section 5.6.2.
    private static func isToken(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}

extension IdentityRecord {
    /// The key that signs, where the identity may sign.
    func signingKey() throws(SynheartAuthError) -> KeyReference {
        if state == .keyInvalid {
            throw SynheartAuthError(.keyInvalidated, "the key is gone; registerDevice makes a new one")
        }
        guard identity == .active, let key else {
            throw SynheartAuthError(
                .notRegistered,
                identity == .pending ? "the service has not approved this device yet" : "call registerDevice first")
        }
        return key
    }
}
