internal import AuthContract
internal import Bytes
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// The symbols that Synheart Core's runtime looks up. The header documents each function.

/// The platform's own parts.
private enum NativeParts {
    static let configuration = try? SynheartAuth.Configuration(baseUrl: "https://localhost")

    static func key(_ deviceID: UnsafePointer<CChar>?) -> (store: any KeyStore, alias: KeyAlias)? {
        guard let id = CText.string(deviceID), !id.isEmpty, let store = configuration?.keyStore else { return nil }
        return (store, .foreign("synheart_device_\(id)"))
    }

    static func secret(
        _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
    ) -> (storage: any Storage, name: RecordName)? {
        guard let service = CText.string(service), let key = CText.string(key), let storage = configuration?.storage
        else { return nil }
        // The length comes first, so that no two pairs share a name.
        return (storage, RecordName(hashing: "secure \(service.utf8.count) \(service) \(key)"))
    }

    /// Loads a key, or makes it. One thread of one process at a time, so that all callers get the key that is stored.
    static func loadOrCreate(_ alias: KeyAlias, in store: any KeyStore) throws -> DevicePublicKey {
        if let key = try store.load(alias) { return key }
        guard let storage = configuration?.storage else { throw KeyStoreError(.unsupported) }
        return try creation.withLock { _ in
            Swift.Result {
                let turn = try storage.takeTurn(
                    RecordName(hashing: "key \(alias.text)"), for: "creation", attempts: turnAttempts
                ) { usleep(turnPause) }
                defer { turn.release() }
                return try store.load(alias) ?? store.create(alias, challenge: nil)
            }
        }.get()
    }

    /// The limit of the provider's two calls together.
    static let attestationLimit = Duration.seconds(30)

    private static let creation = Locked(())
    // 30 seconds together, the limit of every call of a provider.
    private static let turnAttempts = 3_000
    private static let turnPause: UInt32 = 10_000
}

@_cdecl("synheart_native_generate_key")
public func nativeGenerateKey(_ deviceID: UnsafePointer<CChar>?) -> UnsafeMutablePointer<CChar>? {
    guard let (store, alias) = NativeParts.key(deviceID), let key = try? NativeParts.loadOrCreate(alias, in: store)
    else { return nil }
    let json: JSONValue = [
        "x": .string(Base64.url.encode(key.x963.dropFirst().prefix(32))),
        "y": .string(Base64.url.encode(key.x963.suffix(32))),
    ]
    return CText.copy(json.text())
}

@_cdecl("synheart_native_sign_bytes")
public func nativeSignBytes(
    _ deviceID: UnsafePointer<CChar>?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> UnsafeMutablePointer<CChar>? {
    guard let (store, alias) = NativeParts.key(deviceID), let message = CText.bytes(data, length),
        let signature = try? store.sign(message, with: alias)
    else { return nil }
    return CText.copy(Base64.url.encode(signature.raw))
}

@_cdecl("synheart_native_get_attestation")
public func nativeGetAttestation(
    _ deviceID: UnsafePointer<CChar>?, _ hash: UnsafePointer<UInt8>?, _ length: Int
) -> UnsafeMutablePointer<CChar>? {
    guard let (store, alias) = NativeParts.key(deviceID), let provider = NativeParts.configuration?.attestation,
        let bytes = CText.bytes(hash, length), let nonce = try? BindingNonce(bytes: bytes),
        let appID = try? AppID("native"), let key = try? store.load(alias)
    else { return none("no such key, or the hash has not 32 bytes") }
    let evidence = wait { () async -> Swift.Result<AttestationEvidence, AttestationError>? in
        await withDeadline(NativeParts.attestationLimit, TaskSleeper()) {
            () -> Swift.Result<AttestationEvidence, AttestationError> in
            do throws(AttestationError) {
                let handle = try await provider.makeHandle()
                return .success(
                    try await provider.attest(
                        AttestationSubject(
                            appID: appID, challenge: bytes, bindingNonce: nonce, publicKey: key, alias: alias,
                            handle: handle)))
            } catch {
                return .failure(error)
            }
        }
    }
    switch evidence {
    case .success(let evidence):
        guard provider.platform == .ios, let proof = evidence.proof else { return none("not App Attest") }
        let json: JSONValue = ["format": "apple-app-attest", "blob": .string(proof)]
        return CText.copy(json.text())
    case .failure(let error): return none(error.code.rawValue)
    case nil: return none(AttestationError.Code.noAnswer.rawValue)
    }
}

private func none(_ reason: String) -> UnsafeMutablePointer<CChar>? {
    let json: JSONValue = ["format": "none", "blob": "", "reason": .string(reason)]
    return CText.copy(json.text())
}

@_cdecl("synheart_native_key_exists")
public func nativeKeyExists(_ deviceID: UnsafePointer<CChar>?) -> Int32 {
    guard let (store, alias) = NativeParts.key(deviceID) else { return 0 }
    // Only a certain "not found" counts. A store that cannot answer now must not look like a lost identity.
    do { return try store.load(alias) == nil ? 0 : 1 } catch { return 1 }
}

/// The results of functions that change something.
private enum Outcome {
    static let done: Int32 = 0
    static let failed: Int32 = 1
}

@_cdecl("synheart_native_delete_key")
public func nativeDeleteKey(_ deviceID: UnsafePointer<CChar>?) -> Int32 {
    guard let (store, alias) = NativeParts.key(deviceID), (try? store.delete(alias)) != nil else {
        return Outcome.failed
    }
    return Outcome.done
}

@_cdecl("synheart_native_secure_store")
public func nativeSecureStore(
    _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> Int32 {
    guard let (storage, name) = NativeParts.secret(service, key), let value = CText.string(value),
        (try? storage.write(Array(value.utf8), to: name)) != nil
    else { return Outcome.failed }
    return Outcome.done
}

@_cdecl("synheart_native_secure_load")
public func nativeSecureLoad(
    _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
) -> UnsafeMutablePointer<CChar>? {
    guard let (storage, name) = NativeParts.secret(service, key), case .found(let bytes) = storage.read(name) else {
        return nil
    }
    return CText.copy(String(decoding: bytes, as: UTF8.self))
}

@_cdecl("synheart_native_secure_delete")
public func nativeSecureDelete(_ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?) -> Int32 {
    guard let (storage, name) = NativeParts.secret(service, key), (try? storage.remove(name)) != nil else {
        return Outcome.failed
    }
    return Outcome.done
}
