import AuthContract
import Bytes
import CSynheartAuth
import Foundation
import StrictJSON
import Testing

@testable import SynheartAuth
@testable import SynheartAuthC

/// Runs the cases that every platform must pass, with a host's callbacks as the platform.
@Suite struct HostPlatformTests {
    @Test("every platform case holds with a host's callbacks", arguments: PlatformCase.all)
    func holds(_ example: PlatformCase) async throws { try await example.run(on: CallbackPlatform.self) }

    @Test("every code of the SDK's own has a status of its own")
    func statuses() {
        let statuses = ErrorTable.rows.map { SynheartAuthError($0.code, "m").status }
        #expect(Set(statuses).count == statuses.count)
        #expect(statuses.allSatisfy { (1..<100).contains($0) })
        #expect(SynheartAuthError(.server("OTHER"), "m").status == Int32(SYNHEART_AUTH_SERVER_ERROR.rawValue))
    }

    @Test("the library has the version of its header")
    func version() {
        #expect(String(cString: libraryVersion()) == SYNHEART_AUTH_VERSION)
        #expect(SYNHEART_AUTH_VERSION == "\(SDKVersion.text)")
        #expect(libraryVersion() == libraryVersion())
    }

    @Test("a chain with a malformed certificate is refused as a whole")
    func brokenChain() async throws {
        let platform = CallbackPlatform()
        platform.host.evidence.withLock { $0 = #"{"proof":"cA==","key_attestation":["AAAA","not base64"]}"# }
        let handset = PlatformPhone(platform)
        await expectError(.attestationFailed) { try await handset.register() }
        #expect(await handset.phone.service.count(.register) == 0)
    }

    @Test("with key attestation a lost answer costs a new key, and the device signs")
    func lostAnswerWithKeyAttestation() async throws {
        for index in 0..<2 {
            let handset = PlatformPhone(CallbackPlatform())
            await handset.phone.service.set { $0.demandsKeyAttestation = true }
            // Drops the answer to the first register request, and in the second round also the answer to the second one.
            for message in 0...index { await handset.phone.network.plan(.answerDropped, at: 1 + 2 * message) }
            #expect(try await handset.register().status == .registered)
            try await handset.expectVerifies()
            #expect(try handset.platform.keyCount == 1)
            let chains = await handset.phone.service.requests.compactMap { try? RegisterRequest(parsing: $0.body) }
                .filter { $0.proof != nil }.map { $0.keyAttestation == [$0.challenge] }
            #expect(chains.first == true && chains.last == true && chains.contains(false))
        }
    }

    @Test("without key attestation a lost answer keeps the key and the device")
    func lostAnswerWithoutKeyAttestation() async throws {
        let handset = PlatformPhone(CallbackPlatform())
        await handset.phone.network.plan(.answerDropped, at: 1)
        let id = try await handset.register().deviceId
        #expect(await handset.deviceIDs() == [id])
        #expect(await handset.phone.service.count(.register) == 2)
    }

    @Test("user is released once, after an abandoned callback has returned")
    func released() async throws {
        let released = Locked(0)
        let gate = DispatchSemaphore(value: 0)
        try await Self.giveUp(released, gate)
        #expect(released.withLock { $0 } == 0)
        gate.signal()
        try await eventually { released.withLock { $0 } == 1 }
    }

    /// Starts a registration whose attestation hangs until the gate opens. The SDK abandons the attestation, and then the
    /// SDK instance is freed.
    private static func giveUp(_ released: Locked<Int>, _ gate: DispatchSemaphore) async throws {
        let host = MemoryHost(released: released)
        host.gate.withLock { $0 = gate }
        var callbacks = CallbackPlatform.callbacks(host)
        // The host is retained for the callbacks, and `release` releases it.
        callbacks.user = Unmanaged.passRetained(host).toOpaque()
        callbacks.release = { user in
            guard let user else { return }
            let host = Unmanaged<MemoryHost>.fromOpaque(user).takeRetainedValue()
            host.released?.withLock { $0 += 1 }
        }
        let platform = HostPlatform(callbacks: callbacks)
        let phone = Phone()
        let sdk = try phone.launch { configuration in
            configuration.keyStore = platform
            configuration.attestation = platform
        }
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { host.nonces.withLock { $0.count } == 1 }
        phone.sleeper.expire()
        await expectError(.attestationFailed) { try await registration.value }
    }

    /// The user data of a host's callbacks: the SDK instance, and a semaphore that `release` signals at its end.
    private final class Releasing: Sendable {
        let instance: Instance
        let isReleased = DispatchSemaphore(value: 0)

        init(_ instance: Instance) { self.instance = instance }
    }

    @Test("release may call the instance that it is released by")
    func releaseCallsBack() throws {
        let releasing = Releasing(Instance(try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")))
        var table = synheart_auth_transport()
        table.send = { _, _, _ in 1 }
        table.user = Unmanaged.passRetained(releasing).toOpaque()
        table.release = { user in
            guard let user else { return }
            let releasing = Unmanaged<Releasing>.fromOpaque(user).takeRetainedValue()
            releasing.instance.change { $0.rotatesAutomatically = false }
            releasing.isReleased.signal()
        }
        releasing.instance.change { $0.transport = HostTransport(table) }
        var other = table
        (other.user, other.release) = (nil, nil)
        let (instance, next) = (releasing.instance, HostTransport(other))
        // Runs on a separate thread, so that a deadlock would hang only that thread.
        Thread { instance.change { $0.transport = next } }.start()
        #expect(releasing.isReleased.wait(timeout: .now() + 20) == .success)
    }

    @Test("an attest callback that hangs is not called again until it returns; then the device registers")
    func notCalledAgain() async throws {
        let platform = CallbackPlatform()
        let gate = DispatchSemaphore(value: 0)
        platform.host.gate.withLock { $0 = gate }
        let handset = PlatformPhone(platform)
        let registration = Task { try await handset.register() }
        try await eventually { platform.nonces.count == 1 }
        handset.phone.sleeper.expire()
        await expectError(.attestationFailed) { try await registration.value }
        for _ in 0..<5 {
            let error = await expectError(.attestationFailed) { try await handset.register() }
            #expect(error?.isRetryable == true)
        }
        #expect(platform.nonces.count == 1 && handset.phone.sleeper.retries.isEmpty)
        gate.signal()
        try await eventually { (try? await handset.register().status) == .registered }
    }

    @Test("storage callbacks must be complete or absent")
    func storageCallbacks() {
        var callbacks = CallbackPlatform.callbacks(MemoryHost())
        #expect(HostPlatform(callbacks: callbacks).storageCallbacks == .complete)
        callbacks.remove_record = nil
        #expect(HostPlatform(callbacks: callbacks).storageCallbacks == .partial)
        callbacks.write_record = nil
        #expect(HostPlatform(callbacks: callbacks).storageCallbacks == .partial)
        callbacks.read_record = nil
        #expect(HostPlatform(callbacks: callbacks).storageCallbacks == .none)
    }

    @Test("an attest callback that hangs blocks no thread of the pool")
    func hangs() async throws {
        let platforms = (0..<16).map { _ in CallbackPlatform() }
        let gate = DispatchSemaphore(value: 0)
        for platform in platforms { platform.host.gate.withLock { $0 = gate } }
        let hanging = platforms.map { platform in Task { try await PlatformPhone(platform).register() } }
        try await eventually { platforms.allSatisfy { !$0.nonces.isEmpty } }
        #expect(try await PlatformPhone(CallbackPlatform()).register().status == .registered)
        for _ in platforms { gate.signal() }
        for task in hanging { #expect(try await task.value.status == .registered) }
    }
}

/// A host in memory. The callbacks find it through `user`.
final class MemoryHost: Sendable {
    let keys = MemoryKeyStore()
    let records = MemoryStorage()
    let failing = Locked<KeyStoreError.Code?>(nil)
    let attestationFailures = Locked<[AttestationError.Code]>([])
    let nonces = Locked<[[UInt8]]>([])
    /// The challenge in the hardware attestation of each key, by the key's alias.
    let challenges = Locked<[KeyAlias: [UInt8]]>([:])
    let isLocked = Locked(false)
    /// The answer of `attest`; nil means that `attest` answers with a proof of the nonce.
    let evidence = Locked<String?>(nil)
    /// The semaphore that the next `attest` waits for.
    let gate = Locked<DispatchSemaphore?>(nil)
    let released: Locked<Int>?

    init(released: Locked<Int>? = nil) { self.released = released }
}

final class CallbackPlatform: PlatformUnderTest {
    let host = MemoryHost()
    private let platform: HostPlatform
    private let locks = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"

    init() {
        // `platform` has only the address of `host`, but `host` lives as long as `platform`, because this object owns both.
        platform = HostPlatform(callbacks: Self.callbacks(host))
    }

    static func callbacks(_ host: MemoryHost) -> synheart_auth_host {
        synheart_auth_host(
            version: 1, size: UInt32(MemoryLayout<synheart_auth_host>.size),
            user: Unmanaged.passUnretained(host).toOpaque(), create_key: createKey, load_key: loadKey, sign: sign,
            delete_key: deleteKey, attest: attest, read_record: readRecord, write_record: writeRecord,
            remove_record: removeRecord, release: nil)
    }

    deinit { try? FileManager.default.removeItem(atPath: locks) }

    var storage: any RecordStorage { HostStorage(host: platform, files: FileStorage(directory: locks)) }
    var keyStore: any KeyStore { platform }
    var attestation: any AttestationProvider { platform }
    var keyCount: Int { host.keys.aliases.count }
    var recordCount: Int { host.records.everything.count }
    var nonces: [[UInt8]] { host.nonces.withLock { $0 } }

    func loseKeys() { host.keys.vanish() }
    func failSignatures(_ code: KeyStoreError.Code?) { host.failing.withLock { $0 = code } }
    func failAttestations(_ codes: [AttestationError.Code]) { host.attestationFailures.withLock { $0 = codes } }
    func lockRecords(_ isLocked: Bool) { host.isLocked.withLock { $0 = isLocked } }
    func refuseWrites(_ isRefusing: Bool) { host.records.refuseWrites(isRefusing) }
}

// The callbacks, as a host would write them in C.

private func host(_ user: UnsafeMutableRawPointer?) -> MemoryHost? {
    user.map { Unmanaged<MemoryHost>.fromOpaque($0).takeUnretainedValue() }
}

private func alias(_ name: UnsafePointer<CChar>?) -> KeyAlias { .foreign(name.map { String(cString: $0) } ?? "") }

private func record(_ name: UnsafePointer<CChar>?) -> RecordName {
    RecordName(hashing: name.map { String(cString: $0) } ?? "")
}

private func bytes(_ pointer: UnsafePointer<UInt8>?, _ count: Int64) -> [UInt8] {
    Array(UnsafeBufferPointer(start: pointer, count: Int(count)))
}

private func answer(
    _ value: [UInt8], _ out: UnsafeMutablePointer<UInt8>?, _ capacity: Int64, _ length: UnsafeMutablePointer<Int64>?
) -> Int32 {
    guard value.count <= capacity else { return status(SYNHEART_AUTH_HOST_FAILED) }
    out?.update(from: value, count: value.count)
    length?.pointee = Int64(value.count)
    return status(SYNHEART_AUTH_HOST_OK)
}

private func status(_ status: synheart_auth_host_status) -> Int32 { Int32(status.rawValue) }

private func status(_ code: KeyStoreError.Code) -> Int32 {
    switch code {
    case .notFound: status(SYNHEART_AUTH_HOST_NOT_FOUND)
    case .invalidated: status(SYNHEART_AUTH_HOST_INVALIDATED)
    case .unavailable: status(SYNHEART_AUTH_HOST_UNAVAILABLE)
    case .unsupported: status(SYNHEART_AUTH_HOST_UNSUPPORTED)
    default: status(SYNHEART_AUTH_HOST_FAILED)
    }
}

private let createKey:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafePointer<UInt8>?, Int64, UnsafeMutablePointer<UInt8>?,
        Int64,
        UnsafeMutablePointer<Int64>?
    ) -> Int32 = { user, name, challenge, challengeLength, out, capacity, length in
        let (keyAlias, named) = (alias(name), bytes(challenge, challengeLength))
        guard let host = host(user), let key = try? host.keys.create(keyAlias, challenge: named) else {
            return status(SYNHEART_AUTH_HOST_FAILED)
        }
        host.challenges.withLock { $0[keyAlias] = named }
        return answer(key.x963, out, capacity, length)
    }

private let loadKey:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<UInt8>?, Int64,
        UnsafeMutablePointer<Int64>?
    ) -> Int32 = { user, name, out, capacity, length in
        guard let key = try? host(user)?.keys.load(alias(name)) else { return status(SYNHEART_AUTH_HOST_NOT_FOUND) }
        return answer(key.x963, out, capacity, length)
    }

private let sign:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafePointer<UInt8>?, Int64, UnsafeMutablePointer<UInt8>?,
        Int64,
        UnsafeMutablePointer<Int64>?
    ) -> Int32 = { user, name, message, messageLength, out, capacity, length in
        guard let host = host(user) else { return status(SYNHEART_AUTH_HOST_FAILED) }
        if let code = host.failing.withLock({ $0 }) { return status(code) }
        do throws(KeyStoreError) {
            return answer(
                try host.keys.sign(bytes(message, messageLength), with: alias(name)).der, out, capacity, length)
        } catch {
            return status(error.code)
        }
    }

private let deleteKey: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Int32 = { user, name in
    (try? host(user)?.keys.delete(alias(name))) == nil
        ? status(SYNHEART_AUTH_HOST_FAILED) : status(SYNHEART_AUTH_HOST_OK)
}

private let attest:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafePointer<UInt8>?, Int64, UnsafePointer<UInt8>?,
        UnsafeMutablePointer<UInt8>?, Int64, UnsafeMutablePointer<Int64>?
    ) -> Int32 = { user, name, challenge, challengeLength, nonce, out, capacity, length in
        guard let host = host(user), let nonce = try? BindingNonce(bytes: bytes(nonce, 32)) else {
            return status(SYNHEART_AUTH_HOST_FAILED)
        }
        host.nonces.withLock { $0.append(nonce.bytes) }
        let gate = host.gate.withLock { gate in
            defer { gate = nil }
            return gate
        }
        gate?.wait()
        switch host.attestationFailures.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
        case .unsupported: return status(SYNHEART_AUTH_HOST_UNSUPPORTED)
        case .unavailable: return status(SYNHEART_AUTH_HOST_UNAVAILABLE)
        case nil: break
        default: return status(SYNHEART_AUTH_HOST_REFUSED)
        }
        let named = host.challenges.withLock { $0[alias(name)] } ?? []
        let proof: JSONValue = [
            "proof": .string(TestAttestation.proof(of: nonce)),
            "key_attestation": [.string(Base64.standard.encode(named))],
        ]
        return answer(host.evidence.withLock { $0.map { Array($0.utf8) } } ?? proof.bytes, out, capacity, length)
    }

private let readRecord:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<UInt8>?, Int64,
        UnsafeMutablePointer<Int64>?
    ) -> Int32 = { user, name, out, capacity, length in
        guard let host = host(user), !host.isLocked.withLock({ $0 }) else {
            return status(SYNHEART_AUTH_HOST_UNAVAILABLE)
        }
        switch host.records.read(record(name)) {
        case .found(let bytes): return answer(bytes, out, capacity, length)
        case .absent: return status(SYNHEART_AUTH_HOST_NOT_FOUND)
        case .unavailable: return status(SYNHEART_AUTH_HOST_UNAVAILABLE)
        }
    }

private let writeRecord:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafePointer<UInt8>?, Int64
    ) -> Int32 = { user, name, value, count in
        (try? host(user)?.records.write(bytes(value, count), to: record(name))) == nil
            ? status(SYNHEART_AUTH_HOST_FAILED) : status(SYNHEART_AUTH_HOST_OK)
    }

private let removeRecord: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Int32 = { user, name in
    (try? host(user)?.records.remove(record(name))) == nil
        ? status(SYNHEART_AUTH_HOST_FAILED) : status(SYNHEART_AUTH_HOST_OK)
}
