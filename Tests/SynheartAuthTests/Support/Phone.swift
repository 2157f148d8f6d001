import AuthContract
import Bytes
import Crypto
import Foundation

@testable import SynheartAuth

/// A device: the state that survives a process. `launch()` starts a process.
struct Phone: Sendable {
    let clock: TestClock
    let service: FakeService
    let network: TestNetwork
    let storage = MemoryStorage()
    let keys = MemoryKeyStore()
    let attestation: TestAttestation
    let sleeper: TestSleeper
    let logger = RecordingLogger()
    let faults = Faults()
    static let app = "com.example.app"

    init(platform: Platform = .ios) {
        attestation = TestAttestation(platform: platform)
        clock = TestClock()
        service = FakeService(clock: clock)
        network = TestNetwork(service)
        sleeper = TestSleeper(clock)
    }

    var configuration: SynheartAuth.Configuration {
        get throws {
            var configuration = try SynheartAuth.Configuration(baseUrl: FakeService.origin)
            configuration.transport = FaultyTransport(base: network, faults: faults)
            configuration.storage = FaultyStorage(base: storage, faults: faults)
            configuration.keyStore = FaultyKeyStore(base: keys, faults: faults)
            configuration.attestation = FaultyAttestation(base: attestation, faults: faults)
            configuration.clock = clock
            configuration.sleeper = sleeper
            configuration.logger = logger
            configuration.random = SystemRandom()
            // Off by default: tests of maintenance switch it on.
            configuration.rotatesAutomatically = false
            return configuration
        }
    }

    func launch(_ change: (inout SynheartAuth.Configuration) throws -> Void = { _ in }) throws -> SynheartAuth {
        var configuration = try configuration
        try change(&configuration)
        return SynheartAuth(configuration)
    }

    /// A registered device, and its id.
    static func registered() async throws -> (Phone, SynheartAuth, String) {
        let phone = Phone()
        let sdk = try phone.launch()
        let registration = try await sdk.registerDevice(appID: app)
        return (phone, sdk, registration.deviceId)
    }

    func record() throws -> IdentityRecord {
        guard case .found(let bytes) = storage.read(RecordName(try AppID(Self.app))) else {
            return IdentityRecord(appID: try AppID(Self.app))
        }
        return try IdentityRecord(bytes, appID: try AppID(Self.app))
    }

    /// Signs a request and has the service verify it.
    func signAndVerify(_ sdk: SynheartAuth, path: String = "/v1/readings") async throws -> TransportResponse {
        let body = Array("{\"a\":1}".utf8)
        let headers = try await sdk.signRequest(appID: Self.app, method: "POST", path: path, bodyBytes: body)
        return try await service.send(
            TransportRequest(
                method: "POST", url: "https://api.test\(path)",
                headers: HeaderFields(headers.fields.map { ($0.name, $0.value) }), body: body))
    }
}

final class MemoryStorage: RecordStorage {
    private struct State: Sendable {
        var records: [RecordName: [UInt8]] = [:]
        var locks: Set<String> = []
        var unavailable = 0
        var refusesWrites = false
    }

    private let state = Locked(State())

    /// Makes the next reads fail as unavailable.
    func beUnavailable(times: Int) { state.withLock { $0.unavailable = times } }
    func refuseWrites(_ refuses: Bool) { state.withLock { $0.refusesWrites = refuses } }
    func put(_ bytes: [UInt8], _ name: RecordName) { state.withLock { $0.records[name] = bytes } }
    var isEmpty: Bool { state.withLock { $0.records.isEmpty } }
    var everything: [[UInt8]] { state.withLock { Array($0.records.values) } }

    func read(_ name: RecordName) -> StorageReading {
        state.withLock { state in
            guard state.unavailable == 0 else {
                state.unavailable -= 1
                return .unavailable(StorageError("locked", status: -25308))
            }
            return state.records[name].map { .found($0) } ?? .absent
        }
    }

    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        let isRefused = state.withLock { state in
            if !state.refusesWrites { state.records[name] = bytes }
            return state.refusesWrites
        }
        if isRefused { throw StorageError("No space left on device", status: 28) }
    }

    func remove(_ name: RecordName) throws(StorageError) { state.withLock { $0.records[name] = nil } }

    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
        state.withLock { $0.records[RecordName(hashing: "aside \(name)")] = bytes }
    }

    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        let key = "\(name) \(scope)"
        guard state.withLock({ $0.locks.insert(key).inserted }) else { return nil }
        return Held { [state] in state.withLock { _ = $0.locks.remove(key) } }
    }

    private final class Held: StorageLock {
        private let action: Locked<(@Sendable () -> Void)?>
        init(_ action: @escaping @Sendable () -> Void) { self.action = Locked(action) }
        func release() {
            action.withLock { action in
                defer { action = nil }
                return action
            }?()
        }
    }
}

final class MemoryKeyStore: KeyStore {
    private struct State: Sendable {
        var keys: [KeyAlias: Data] = [:]
        /// Keys that load but cannot sign.
        var unusable: Set<KeyAlias> = []
        /// Keys that the platform reports as permanently lost.
        var lost: Set<KeyAlias> = []
        var canariesFail = false
        var canaryChecks = 0
        var failures: [KeyStoreError] = []
        /// The failure of the next signature of a key.
        var signingFailures: [KeyAlias: KeyStoreError] = [:]
        var created = 0
        var deleted: [KeyAlias] = []
    }

    private let state = Locked(State())
    let protection = KeyProtection.hostKeystore

    /// Makes the next signatures or loads fail with these errors.
    func fail(_ errors: KeyStoreError...) { state.withLock { $0.failures = errors } }
    /// Makes the next signature of this key fail with this error.
    func fail(_ alias: KeyAlias, _ error: KeyStoreError) { state.withLock { $0.signingFailures[alias] = error } }
    /// Loses every key. The platform reports them as permanently gone.
    func lose() { for alias in state.withLock({ Array($0.keys.keys) }) { lose(alias) } }
    func lose(_ alias: KeyAlias) {
        state.withLock { state in
            state.keys[alias] = nil
            state.lost.insert(alias)
        }
    }
    /// Loses every key. The platform only reports that they are not found.
    func vanish() { state.withLock { $0.keys = [:] } }
    func failCanaries(_ fail: Bool) { state.withLock { $0.canariesFail = fail } }
    var canaryChecks: Int { state.withLock { $0.canaryChecks } }
    /// Makes the operating system refuse permanently to sign with this key, although it still loads.
    func invalidate(_ alias: KeyAlias) { state.withLock { _ = $0.unusable.insert(alias) } }
    var aliases: Set<String> { state.withLock { Set($0.keys.keys.map(\.text)) } }
    var created: Int { state.withLock { $0.created } }
    var privateKeys: [Data] { state.withLock { Array($0.keys.values) } }

    private func takeFailure() throws(KeyStoreError) {
        let failure: KeyStoreError? = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
        if let failure { throw failure }
    }

    private func key(_ alias: KeyAlias) -> P256.Signing.PrivateKey? {
        state.withLock { $0.keys[alias] }.flatMap { try? P256.Signing.PrivateKey(rawRepresentation: $0) }
    }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        let key = P256.Signing.PrivateKey()
        state.withLock { state in
            state.created += 1
            state.keys[alias] = key.rawRepresentation
            state.unusable.remove(alias)
            state.lost.remove(alias)
        }
        return DevicePublicKey(key.publicKey)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        try takeFailure()
        if state.withLock({ $0.lost.contains(alias) }) { throw KeyStoreError(.invalidated) }
        return key(alias).map { DevicePublicKey($0.publicKey) }
    }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        try takeFailure()
        if let failure = state.withLock({ $0.signingFailures.removeValue(forKey: alias) }) { throw failure }
        if state.withLock({ $0.unusable.union($0.lost).contains(alias) }) { throw KeyStoreError(.invalidated) }
        guard let key = key(alias), let signature = try? key.signature(for: message) else {
            throw KeyStoreError(.notFound)
        }
        return RequestSignature(signature)
    }

    func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) {
        let fails = state.withLock { state in
            state.canaryChecks += 1
            return state.canariesFail
        }
        if fails { throw KeyStoreError(.unavailable, reason: "the canary does not sign") }
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        state.withLock { state in
            state.keys[alias] = nil
            state.unusable.remove(alias)
            state.lost.remove(alias)
            state.deleted.append(alias)
        }
    }
}

/// A provider whose proof contains the nonce and the handle. Each handle can be used for one attestation.
final class TestAttestation: AttestationProvider {
    private struct State: Sendable {
        var failures: [AttestationError] = []
        var handles = 0
        var used: Set<String> = []
        var lost: Set<String> = []
        var subjects: [(handle: String?, nonce: [UInt8])] = []
        var hangs = 0
        var isHeld = false
        var held: [CheckedContinuation<Void, Never>] = []
        var delay = Duration.zero
    }

    private let state = Locked(State())
    private let clock = Locked<TestClock?>(nil)
    let platform: Platform

    init(platform: Platform = .ios) { self.platform = platform }

    static func proof(of nonce: BindingNonce, by handle: String = "") -> String {
        Base64.standard.encode(Array("proof ".utf8) + nonce.bytes + Array(handle.utf8))
    }

    /// The handle that a proof names; nil if the proof is invalid.
    static func handle(in proof: String?, of nonce: BindingNonce) -> String? {
        guard let bytes = proof.flatMap({ Base64.standard.decode($0) }),
            bytes.starts(with: Array("proof ".utf8) + nonce.bytes)
        else { return nil }
        return String(decoding: bytes.dropFirst(38), as: UTF8.self)
    }

    static func assertion(_ handle: String, _ hash: [UInt8]) -> [UInt8] { Array("assertion \(handle) ".utf8) + hash }

    /// Makes Apple forget the handles attested until now.
    func loseHandles() { state.withLock { $0.lost = $0.used } }

    func fail(_ failures: AttestationError.Code...) { fail(failures) }
    func fail(_ failures: [AttestationError.Code]) {
        state.withLock { $0.failures = failures.map { AttestationError($0, reason: "scripted") } }
    }
    func hang(times: Int) { state.withLock { $0.hangs = times } }
    /// Makes attestations wait until the test releases them.
    func hold() { state.withLock { $0.isHeld = true } }
    func letGo() {
        let held = state.withLock { state in
            defer { state.held = [] }
            state.isHeld = false
            return state.held
        }
        for attestation in held { attestation.resume() }
    }
    /// Makes every attestation take this long.
    func take(_ delay: Duration, of clock: TestClock) {
        state.withLock { $0.delay = delay }
        self.clock.withLock { $0 = clock }
    }
    var subjects: [(handle: String?, nonce: [UInt8])] { state.withLock { $0.subjects } }
    var handles: Int { state.withLock { $0.handles } }

    func makeHandle() async throws(AttestationError) -> String? {
        state.withLock { state in
            state.handles += 1
            return "handle-\(state.handles)"
        }
    }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        let isHanging = state.withLock { state in
            state.subjects.append((subject.handle, subject.bindingNonce.bytes))
            state.hangs -= 1
            return state.hangs >= 0
        }
        if isHanging { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.isHeld { state.held.append(continuation) }
                return state.isHeld
            }
            if !isHeld { continuation.resume() }
        }
        if let clock = clock.withLock({ $0 }) { clock.advance(state.withLock { $0.delay }) }
        let failure: AttestationError? = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
        if let failure { throw failure }
        guard let handle = subject.handle, state.withLock({ $0.used.insert(handle).inserted }) else {
            throw AttestationError(.handleInvalid, reason: "attested before")
        }
        return AttestationEvidence(proof: Self.proof(of: subject.bindingNonce, by: handle))
    }

    func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        let failure: AttestationError? = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
        if let failure { throw failure }
        guard state.withLock({ $0.used.subtracting($0.lost).contains(handle) }) else {
            throw AttestationError(.handleInvalid, reason: "no such key")
        }
        return Self.assertion(handle, clientDataHash)
    }
}
