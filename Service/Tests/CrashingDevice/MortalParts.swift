import AuthContract
import CCrashPoints
import SynheartAuth

// Wrappers for the parts of the SDK's platform. Each call has a crash point before it. `MortalTransport` has another
// crash point after each answer of the service.

struct MortalStorage: RecordStorage {
    let base: any RecordStorage

    func read(_ name: RecordName) -> StorageReading {
        crash_point()
        return base.read(name)
    }

    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        crash_point()
        try base.write(bytes, to: name)
    }

    func remove(_ name: RecordName) throws(StorageError) {
        crash_point()
        try base.remove(name)
    }

    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
        crash_point()
        try base.setAside(bytes, of: name)
    }

    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        crash_point()
        return try base.lock(name, for: scope)
    }
}

struct MortalKeyStore: KeyStore {
    let base: any KeyStore
    var protection: KeyProtection { base.protection }
    var attestsKeys: Bool { base.attestsKeys }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        crash_point()
        return try base.create(alias, challenge: challenge)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        crash_point()
        return try base.load(alias)
    }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        crash_point()
        return try base.sign(message, with: alias)
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        crash_point()
        try base.delete(alias)
    }
}

struct MortalAttestation: AttestationProvider {
    let base: any AttestationProvider
    var platform: Platform { base.platform }

    func makeHandle() async throws(AttestationError) -> String? {
        crash_point()
        return try await base.makeHandle()
    }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        crash_point()
        return try await base.attest(subject)
    }
}

struct MortalTransport: HTTPTransport {
    let base: any HTTPTransport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        crash_point()
        let answer = try await base.send(request)
        // The service has answered, and the SDK has stored nothing of the answer.
        crash_point()
        return answer
    }
}

/// Skips the pauses before retries, so that a run is short.
struct Impatient: Sleeper {
    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        if purpose != .retry { try await Task.sleep(for: duration) }
    }
}
