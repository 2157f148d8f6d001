internal import AuthContract
internal import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

/// The result of a host's callback.
struct HostCall: Sendable {
    let status: UInt32
    let bytes: [UInt8]

    /// Runs a callback with a buffer. A length out of range is a failure.
    init(
        _ capacity: Int, _ body: (UnsafeMutablePointer<UInt8>?, Int64, UnsafeMutablePointer<Int64>) -> Int32
    ) {
        var buffer = [UInt8](repeating: 0, count: capacity)
        var length: Int64 = 0
        let status = buffer.withUnsafeMutableBufferPointer { body($0.baseAddress, Int64(capacity), &length) }
        guard let known = UInt32(exactly: status), (0...Int64(capacity)).contains(length) else {
            self.status = SYNHEART_AUTH_HOST_FAILED.rawValue
            bytes = []
            return
        }
        self.status = known
        bytes = Array(buffer.prefix(Int(length)))
    }
}

/// A table of a host's functions that begins with its version and its size, as the header describes.
protocol VersionedTable {}

extension synheart_auth_host: VersionedTable {}
extension synheart_auth_transport: VersionedTable {}
extension synheart_auth_observer: VersionedTable {}

extension VersionedTable {
    /// A copy of the host's table; nil if its version or size is invalid. A larger table is of a later version of the header,
    /// which begins in the same way.
    static func copy(_ pointer: UnsafePointer<Self>) -> Self? {
        let start = UnsafeRawPointer(pointer)
        // Only these two words may be read before they are checked.
        let (version, size) = (start.load(as: UInt32.self), start.load(fromByteOffset: 4, as: UInt32.self))
        guard version == 1, size >= MemoryLayout<Self>.size else { return nil }
        return pointer.pointee
    }
}

/// A copy of a table of the host's functions, and the pointer that is passed to each of them.
///
/// Unchecked: the copy is never changed. The host promises that functions and pointer may be used from several threads.
struct HostTable<Table>: @unchecked Sendable {
    let table: Table

    init(_ table: Table) { self.table = table }
}

/// The host's callbacks.
///
/// Unchecked: the struct is copied and never changed. The host promises that `user` may be used from several threads.
struct HostPlatform: @unchecked Sendable {
    let callbacks: synheart_auth_host
    private let user: User

    init(callbacks: synheart_auth_host) {
        self.callbacks = callbacks
        user = User(callbacks)
    }

    /// Owns the host's `user` pointer. Releases it with the last copy of the platform, and so after the last callback.
    ///
    /// Unchecked: the callbacks are copied and never changed. It is a class only for its `deinit`.
    private final class User: @unchecked Sendable {
        private let callbacks: synheart_auth_host
        /// Runs the calls of `attest`. The configuration runs the calls for keys and records.
        let attestations = BlockingCalls()
        init(_ callbacks: synheart_auth_host) { self.callbacks = callbacks }
        deinit { callbacks.release?(callbacks.user) }
    }

    /// The presence of the three record callbacks.
    enum StorageCallbacks { case none, partial, complete }

    var storageCallbacks: StorageCallbacks {
        let there = [callbacks.read_record != nil, callbacks.write_record != nil, callbacks.remove_record != nil]
        return there.allSatisfy(\.self) ? .complete : there.contains(true) ? .partial : .none
    }
}

extension HostPlatform: KeyStore {
    var protection: KeyProtection { .hostKeystore }
    var attestsKeys: Bool { true }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        guard let call = callbacks.create_key else { throw KeyStoreError(.unsupported) }
        let bytes = try value(
            HostCall(256) {
                call(callbacks.user, alias.text, challenge ?? [], Int64(challenge?.count ?? 0), $0, $1, $2)
            })
        return try publicKey(bytes)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        guard let call = callbacks.load_key else { throw KeyStoreError(.unsupported) }
        let result = HostCall(256) { call(callbacks.user, alias.text, $0, $1, $2) }
        if result.status == SYNHEART_AUTH_HOST_NOT_FOUND.rawValue { return nil }
        return try publicKey(try value(result))
    }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        guard let call = callbacks.sign else { throw KeyStoreError(.unsupported) }
        let bytes = try value(
            HostCall(128) { call(callbacks.user, alias.text, message, Int64(message.count), $0, $1, $2) })
        do throws(ContractError) { return try RequestSignature(der: bytes) } catch {
            throw KeyStoreError(.failed, reason: "the host gave no signature")
        }
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        guard let call = callbacks.delete_key else { throw KeyStoreError(.unsupported) }
        let result = HostCall(1) { _, _, _ in call(callbacks.user, alias.text) }
        if result.status != SYNHEART_AUTH_HOST_NOT_FOUND.rawValue { _ = try value(result) }
    }

    private func publicKey(_ bytes: [UInt8]) throws(KeyStoreError) -> DevicePublicKey {
        do throws(ContractError) { return try DevicePublicKey(bytes) } catch {
            throw KeyStoreError(.failed, reason: "the host gave no P-256 key")
        }
    }

    private func value(_ call: HostCall) throws(KeyStoreError) -> [UInt8] {
        guard call.status != SYNHEART_AUTH_HOST_OK.rawValue else { return call.bytes }
        let code: KeyStoreError.Code =
            switch call.status {
            case SYNHEART_AUTH_HOST_NOT_FOUND.rawValue: .notFound
            case SYNHEART_AUTH_HOST_INVALIDATED.rawValue: .invalidated
            case SYNHEART_AUTH_HOST_UNAVAILABLE.rawValue: .unavailable
            case SYNHEART_AUTH_HOST_UNSUPPORTED.rawValue: .unsupported
            default: .failed
            }
        throw KeyStoreError(code, status: Int(call.status), reason: "host")
    }
}

extension HostPlatform: AttestationProvider {
    var platform: Platform { .android }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        guard let call = callbacks.attest else { throw AttestationError(.unsupported, reason: "no attest callback") }
        let challenge = subject.challenge
        // The call has no limit here: the SDK cancels this task after the time that an attestation may take. Only one call of `attest`
        // runs at a time. While an abandoned call hangs, a new one fails.
        let ending = await user.attestations.run(.attest, limit: nil, leavesBehind: true) {
            HostCall(64 * 1024) {
                call(
                    callbacks.user, subject.alias.text, challenge, Int64(challenge.count), subject.bindingNonce.bytes,
                    $0, $1, $2)
            }
        }
        guard case .returned(let result) = ending else { throw AttestationError(.noAnswer, reason: "host") }
        switch result.status {
        case SYNHEART_AUTH_HOST_OK.rawValue: break
        case SYNHEART_AUTH_HOST_UNSUPPORTED.rawValue: throw AttestationError(.unsupported, reason: "host")
        case SYNHEART_AUTH_HOST_UNAVAILABLE.rawValue: throw AttestationError(.unavailable, reason: "host")
        default: throw AttestationError(.refused, reason: "host")
        }
        do {
            let fields = try JSONFields(JSONValue(parsing: result.bytes))
            let texts = try fields.optionalStrings("key_attestation")
            let chain = texts?.compactMap { Base64.standard.decode($0) }
            guard chain?.count == texts?.count else { throw JSONError(.wrongType, path: "key_attestation") }
            return AttestationEvidence(proof: try fields.optionalString("proof"), keyAttestation: chain)
        } catch {
            throw AttestationError(.refused, reason: "the host gave no evidence")
        }
    }
}

/// Records in the host's secure storage. The locks are files, because the host's storage has no locks.
struct HostStorage: RecordStorage {
    let host: HostPlatform
    let files: FileStorage

    func read(_ name: RecordName) -> StorageReading {
        guard let call = host.callbacks.read_record else { return .unavailable(StorageError("no read_record")) }
        let result = HostCall(64 * 1024) { call(host.callbacks.user, name.text, $0, $1, $2) }
        switch result.status {
        case SYNHEART_AUTH_HOST_OK.rawValue: return .found(result.bytes)
        case SYNHEART_AUTH_HOST_NOT_FOUND.rawValue: return .absent
        default: return .unavailable(Self.failure("read_record", Int32(result.status)))
        }
    }

    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        try write(bytes, named: name.text)
    }

    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
        try write(bytes, named: name.text + ".unreadable")
    }

    func remove(_ name: RecordName) throws(StorageError) {
        let status = host.callbacks.remove_record?(host.callbacks.user, name.text)
        guard status == 0 || status == Int32(SYNHEART_AUTH_HOST_NOT_FOUND.rawValue) else {
            throw Self.failure("remove_record", status)
        }
    }

    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        try files.lock(name, for: scope)
    }

    private func write(_ bytes: [UInt8], named name: String) throws(StorageError) {
        let status = host.callbacks.write_record?(host.callbacks.user, name, bytes, Int64(bytes.count))
        guard status == 0 else { throw Self.failure("write_record", status) }
    }

    private static func failure(_ callback: String, _ status: Int32?) -> StorageError {
        StorageError(
            "the host's \(callback) failed, status \(status ?? -1)", status: status.map { Int($0) },
            isTemporary: status == Int32(SYNHEART_AUTH_HOST_UNAVAILABLE.rawValue))
    }
}
