import AuthContract
import Bytes

@testable import SynheartAuth

/// Makes a process die before or after its nth external call. A dead process does nothing: every further call fails until
/// `revive`.
final class Faults: Sendable {
    private struct State: Sendable {
        var deadline: Int?
        var points = 0
        var isDead = false
    }

    private let state = Locked(State())

    /// The number of points at which the process could have died, since `die(at:)`. A point is before or after an external call.
    var points: Int { state.withLock { $0.points } }
    var isDead: Bool { state.withLock { $0.isDead } }

    /// Makes the process die at the point with this number, where the next point has the number 0; nil means that the process does not die.
    func die(at point: Int?) { state.withLock { $0 = State(deadline: point) } }
    func revive() { state.withLock { $0 = State() } }

    /// Passes one point; returns true if the process is dead.
    func pass() -> Bool {
        state.withLock { state in
            if state.deadline == state.points { state.isDead = true }
            state.points += 1
            return state.isDead
        }
    }
}

struct FaultyTransport: HTTPTransport {
    let base: any HTTPTransport
    let faults: Faults

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        if faults.pass() { throw TransportError("dead") }
        let answer = try await base.send(request)
        if faults.pass() { throw TransportError("dead") }
        return answer
    }
}

struct FaultyStorage: RecordStorage {
    let base: any RecordStorage
    let faults: Faults
    private var death: StorageError { StorageError("dead") }

    init(base: any RecordStorage, faults: Faults) {
        self.base = base
        self.faults = faults
    }

    func read(_ name: RecordName) -> StorageReading { faults.pass() ? .unavailable(death) : base.read(name) }

    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        if faults.pass() { throw death }
        try base.write(bytes, to: name)
        if faults.pass() { throw death }
    }

    func remove(_ name: RecordName) throws(StorageError) {
        if faults.pass() { throw death }
        try base.remove(name)
        if faults.pass() { throw death }
    }

    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) { try base.setAside(bytes, of: name) }

    func checkCanary(of name: RecordName) throws(StorageError) { try base.checkCanary(of: name) }

    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        if faults.isDead { throw death }
        return try base.lock(name, for: scope)
    }
}

struct FaultyKeyStore: KeyStore {
    let base: any KeyStore
    let faults: Faults
    private var death: KeyStoreError { KeyStoreError(.unavailable, reason: "dead") }

    init(base: any KeyStore, faults: Faults) {
        self.base = base
        self.faults = faults
    }

    var protection: KeyProtection { base.protection }
    var attestsKeys: Bool { base.attestsKeys }

    func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) { try base.checkCanaries(of: alias) }

    private func dying<Value>(_ body: () throws(KeyStoreError) -> Value) throws(KeyStoreError) -> Value {
        if faults.pass() { throw death }
        let value = try body()
        if faults.pass() { throw death }
        return value
    }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        try dying { () throws(KeyStoreError) in try base.create(alias, challenge: challenge) }
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        try dying { () throws(KeyStoreError) in try base.load(alias) }
    }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        try dying { () throws(KeyStoreError) in try base.sign(message, with: alias) }
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        try dying { () throws(KeyStoreError) in try base.delete(alias) }
    }
}

struct FaultyAttestation: AttestationProvider {
    let base: any AttestationProvider
    let faults: Faults
    var platform: Platform { base.platform }
    private var death: AttestationError { AttestationError(.unsupported, reason: "dead") }

    init(base: any AttestationProvider, faults: Faults) {
        self.base = base
        self.faults = faults
    }

    func makeHandle() async throws(AttestationError) -> String? {
        if faults.pass() { throw death }
        let handle = try await base.makeHandle()
        if faults.pass() { throw death }
        return handle
    }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        if faults.pass() { throw death }
        let evidence = try await base.attest(subject)
        if faults.pass() { throw death }
        return evidence
    }

    func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        if faults.pass() { throw death }
        let assertion = try await base.assertion(handle: handle, clientDataHash: clientDataHash)
        if faults.pass() { throw death }
        return assertion
    }
}

/// A network that can change, lose or delay messages.
actor TestNetwork: HTTPTransport {
    enum Fault: Sendable, CaseIterable {
        case requestDropped, answerDropped, answeredTwice, requestDelayed, answerLate, garbage, emptyAnswer, htmlError
        case redirect, wrongType, hugeNumber
    }

    private let service: FakeService
    private var faults: [Int: Fault] = [:]
    private var count = 0
    private var delayed: [TransportRequest] = []
    private var isOffline = false

    init(_ service: FakeService) { self.service = service }

    /// Applies this fault to a later message. Index 0 is the next message.
    func plan(_ fault: Fault, at index: Int) { faults[count + index] = fault }
    func setOffline(_ isOffline: Bool) { self.isOffline = isOffline }
    var messages: Int { count }

    /// Delivers the delayed requests. Returns the answers, which the SDK does not get.
    @discardableResult
    func deliverDelayed() async throws -> [TransportResponse] {
        var answers: [TransportResponse] = []
        for request in delayed { answers.append(try await service.send(request)) }
        delayed = []
        return answers
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let fault = faults[count]
        count += 1
        if isOffline { throw TransportError("offline") }
        switch fault {
        case nil: return try await service.send(request)
        case .requestDropped: throw TransportError("no answer")
        case .answerDropped:
            _ = try await service.send(request)
            throw TransportError("no answer")
        case .answeredTwice:
            // The network repeats the request; the second answer comes back.
            _ = try await service.send(request)
            return try await service.send(request)
        case .requestDelayed:
            delayed.append(request)
            throw TransportError("no answer")
        case .answerLate:
            let answer = try await service.send(request)
            service.clock.advance(.seconds(100))
            return answer
        case .garbage: return TransportResponse(status: 200, body: [0xFF, 0x00, 0x7B])
        case .emptyAnswer: return TransportResponse(status: 200)
        case .htmlError:
            return TransportResponse(status: 403, body: Array("<html>Log in to the hotel's network</html>".utf8))
        case .redirect:
            return TransportResponse(status: 302, headers: HeaderFields([("Location", "https://evil.test/")]))
        case .wrongType:
            return TransportResponse(
                status: 200, body: Array(#"{"device_id":1,"status":[],"challenge":{},"ttl_seconds":"90"}"#.utf8))
        case .hugeNumber:
            return TransportResponse(
                status: 200, headers: HeaderFields([("X-Synheart-Server-Time", "9999999999")]),
                body: Array(
                    #"{"challenge":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","expires_at":"2026-01-01T00:00:00Z","ttl_seconds":-9223372036854775808}"#
                        .utf8))
        }
    }
}
