internal import AuthContract
internal import Bytes
internal import Foundation
internal import StrictJSON

/// Implements the functions of Synheart Core's runtime with a key store, an attestation provider and a storage. The
/// runtime's keys are named `synheart_device_{device_id}`, separate from the keys of the SDK's identities.
struct PlatformRuntime: Sendable {
    let keyStore: any KeyStore
    let attestation: any AttestationProvider
    let secrets: any RuntimeSecrets
    /// The storage whose locks keep two processes from making one key twice.
    let storage: any RecordStorage
    let logger: any AuthLogger
    /// Waits before another try.
    let pause: @Sendable (Duration) -> Void

    /// The implementation with this platform's default key store, attestation provider and storage.
    static var platform: PlatformRuntime {
        PlatformRuntime(
            keyStore: PlatformParts.runtimeKeyStore, attestation: PlatformParts.attestation,
            secrets: PlatformParts.runtimeSecrets, storage: PlatformParts.storage, logger: PlatformParts.logger,
            pause: { usleep(UInt32(clamping: $0.wholeMilliseconds * 1000)) })
    }

    /// The limit of the attestation provider's two calls together.
    private static let attestationLimit = Duration.seconds(30)
    private static let creation = Locked(())
    // 30 seconds in total, the limit of every call of a provider.
    private static let turnAttempts = 3_000
    private static let turnPause = Duration.milliseconds(10)
    /// The pauses between attempts to read a secret: 1.9 seconds in total.
    private static let loadPauses: [Duration] = [100, 200, 400, 600, 600].map { .milliseconds($0) }

    func generateKey(_ deviceID: String) -> String? {
        let key: DevicePublicKey
        do {
            key = try loadOrCreate(.runtime(deviceID))
        } catch {
            report(error, "generate_key")
            return nil
        }
        let json: JSONValue = [
            "x": .string(Base64.url.encode(key.x963.dropFirst().prefix(32))),
            "y": .string(Base64.url.encode(key.x963.suffix(32))),
        ]
        return json.text()
    }

    /// Loads a key, or creates it. Only one thread of one process creates it at a time, so that all callers get the stored key.
    private func loadOrCreate(_ alias: KeyAlias) throws -> DevicePublicKey {
        if let key = try keyStore.load(alias) { return key }
        return try Self.creation.withLock { _ in
            Result {
                let turn = try storage.takeTurn(
                    RecordName(hashing: "key \(alias.text)"), for: "creation", attempts: Self.turnAttempts
                ) { pause(Self.turnPause) }
                defer { turn.release() }
                return try keyStore.load(alias) ?? keyStore.create(alias, challenge: nil)
            }
        }.get()
    }

    func signBytes(_ deviceID: String, _ message: [UInt8]) -> String? {
        do throws(KeyStoreError) {
            return Base64.url.encode(try keyStore.sign(message, with: .runtime(deviceID)).raw)
        } catch {
            report(error, "sign_bytes")
            return nil
        }
    }

    func getAttestation(_ deviceID: String, _ hash: [UInt8]) -> String {
        let alias = KeyAlias.runtime(deviceID)
        guard let nonce = try? BindingNonce(bytes: hash), let appID = try? AppID("native"),
            let key = try? keyStore.load(alias)
        else { return Self.noAttestation("no such key, or the hash has not 32 bytes") }
        let provider = attestation
        let evidence = wait { () async -> Result<AttestationEvidence, AttestationError>? in
            await withDeadline(Self.attestationLimit, TaskSleeper()) {
                do throws(AttestationError) {
                    let handle = try await provider.makeHandle()
                    return .success(
                        try await provider.attest(
                            AttestationSubject(
                                appID: appID, challenge: hash, bindingNonce: nonce, publicKey: key, alias: alias,
                                handle: handle)))
                } catch {
                    return .failure(error)
                }
            }
        }
        switch evidence {
        case .success(let evidence):
            guard provider.platform == .ios, let proof = evidence.proof else {
                return Self.noAttestation("not App Attest")
            }
            let json: JSONValue = ["format": "apple-app-attest", "blob": .string(proof)]
            return json.text()
        case .failure(let error): return Self.noAttestation(error.code.rawValue)
        case nil: return Self.noAttestation(AttestationError.Code.noAnswer.rawValue)
        }
    }

    static func noAttestation(_ reason: String) -> String {
        let json: JSONValue = ["format": "none", "blob": "", "reason": .string(reason)]
        return json.text()
    }

    /// Returns false only if the key certainly does not exist. A store that cannot answer now must not look like a lost identity.
    func keyExists(_ deviceID: String) -> Bool {
        do { return try keyStore.load(.runtime(deviceID)) != nil } catch { return true }
    }

    func deleteKey(_ deviceID: String) -> Bool { (try? keyStore.delete(.runtime(deviceID))) != nil }

    func secureStore(_ service: String, _ key: String, _ value: String) -> Bool {
        (try? secrets.write(Array(value.utf8), service: service, key: key)) != nil
    }

    /// Returns nil for an absent secret, and after repeated attempts also for an unavailable storage, because the result has no
    /// other value for that.
    func secureLoad(_ service: String, _ key: String) -> String? {
        for delay in Self.loadPauses.map(Optional.init) + [nil] {
            switch secrets.read(service: service, key: key) {
            case .found(let bytes): return String(decoding: bytes, as: UTF8.self)
            case .absent: return nil
            case .unavailable: if let delay { pause(delay) }
            }
        }
        report(SynheartAuthError(.recordUnavailable, "secure_load: the secure storage cannot be read now"))
        return nil
    }

    /// Logs why a function returned NULL, because its result cannot tell.
    private func report(_ error: SynheartAuthError) {
        guard let appID = try? AppID("native") else { return }
        IdentityLog(appID: appID, logger: logger).failure(error)
    }

    private func report(_ error: any Error, _ function: String) {
        switch error {
        case let error as KeyStoreError: report(.keyStore(error, keyStore.protection))
        default: report(SynheartAuthError(.storageError, "\(function): the storage gave no turn", cause: error))
        }
    }

    func secureDelete(_ service: String, _ key: String) -> Bool {
        (try? secrets.remove(service: service, key: key)) != nil
    }
}

/// Stores the runtime's small secrets.
protocol RuntimeSecrets: Sendable {
    func read(service: String, key: String) -> StorageReading
    func write(_ bytes: [UInt8], service: String, key: String) throws(StorageError)
    func remove(service: String, key: String) throws(StorageError)
}

/// Secrets as records of a storage.
struct StoredSecrets: RuntimeSecrets {
    let storage: any RecordStorage

    func read(service: String, key: String) -> StorageReading { storage.read(Self.name(service, key)) }

    func write(_ bytes: [UInt8], service: String, key: String) throws(StorageError) {
        try storage.write(bytes, to: Self.name(service, key))
    }

    func remove(service: String, key: String) throws(StorageError) { try storage.remove(Self.name(service, key)) }

    /// The length of `service` comes first, so that no two pairs of `service` and `key` share a record name.
    private static func name(_ service: String, _ key: String) -> RecordName {
        RecordName(hashing: "secure \(service.utf8.count) \(service) \(key)")
    }
}

extension KeyAlias {
    fileprivate static func runtime(_ deviceID: String) -> KeyAlias { .foreign("synheart_device_\(deviceID)") }
}

extension RuntimeHost {
    /// The functions of `runtime` with C's types. For malformed text a function fails; `keyExists` returns 0.
    init(_ runtime: PlatformRuntime) {
        @Sendable func name(_ text: Text) -> String? { CText.string(text).flatMap { $0.isEmpty ? nil : $0 } }
        @Sendable func status(_ isDone: Bool?) -> Int32 { isDone == true ? 0 : 1 }
        self.init(
            generateKey: { name($0).flatMap { runtime.generateKey($0) }.flatMap { CText.copy($0) } },
            signBytes: { id, data, length in
                guard let id = name(id), let message = CText.bytes(data, length) else { return nil }
                return runtime.signBytes(id, message).flatMap { CText.copy($0) }
            },
            getAttestation: { id, hash, length in
                guard let id = name(id), let hash = CText.bytes(hash, length) else {
                    return CText.copy(PlatformRuntime.noAttestation("a malformed argument"))
                }
                return CText.copy(runtime.getAttestation(id, hash))
            },
            keyExists: { name($0).map { runtime.keyExists($0) } == true ? 1 : 0 },
            deleteKey: { status(name($0).map { runtime.deleteKey($0) }) },
            secureStore: { service, key, value in
                guard let service = CText.string(service), let key = CText.string(key), let value = CText.string(value)
                else { return status(nil) }
                return status(runtime.secureStore(service, key, value))
            },
            secureLoad: { service, key in
                guard let service = CText.string(service), let key = CText.string(key) else { return nil }
                return runtime.secureLoad(service, key).flatMap { CText.copy($0) }
            },
            secureDelete: { service, key in
                guard let service = CText.string(service), let key = CText.string(key) else { return status(nil) }
                return status(runtime.secureDelete(service, key))
            })
    }
}
