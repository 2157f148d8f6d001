package import AttestationTestKit
package import AuthContract
internal import Bytes
package import Foundation
package import SynheartAuth

/// App Attest of a phone, simulated by the test kit: keys in a folder or in memory, attested by a test authority.
package struct SimulatedAppAttest: AttestationProvider {
    private let device: AppleDevice
    private let keys: any AttestedKeys
    private let now: @Sendable () -> Date

    /// App Attest for the app `iosAppID` (team id and bundle id). The keys are in the folder `directory`, or in memory if it is nil.
    package init(
        iosAppID: String, authority: AppleAuthority, directory: String?,
        environment: AppleApp.Environment = .production, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: iosAppID, environment: environment), authority: authority)
        keys = directory.map { AttestedKeyFolder(directory: $0) } ?? AttestedKeyMemory()
        self.now = now
    }

    package var platform: Platform { .ios }

    package func makeHandle() async throws(AttestationError) -> String? {
        let key = AppleAttestKey()
        try keys.save(key)
        return Base64.standard.encode(key.keyID)
    }

    package func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        guard let handle = subject.handle else { throw AttestationError(.handleInvalid, reason: "no key id") }
        let key = try keys.load(handle)
        do {
            let object = try device.attest(key, clientDataHash: subject.bindingNonce.bytes, at: now())
            return AttestationEvidence(proof: Base64.standard.encode(object))
        } catch { throw AttestationError(.refused, reason: "\(error)") }
    }

    package func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        var key = try keys.load(handle)
        do {
            let object = try device.assert(&key, clientDataHash: clientDataHash)
            try keys.save(key)
            return object
        } catch { throw AttestationError(.refused, reason: "\(error)") }
    }
}

/// The attested keys of one simulated phone, by key id.
private protocol AttestedKeys: Sendable {
    func save(_ key: AppleAttestKey) throws(AttestationError)
    func load(_ handle: String) throws(AttestationError) -> AppleAttestKey
}

/// Attested keys in memory.
private struct AttestedKeyMemory: AttestedKeys {
    private let keys = Locked<[String: AppleAttestKey]>([:])

    func save(_ key: AppleAttestKey) { keys.withLock { $0[Base64.standard.encode(key.keyID)] = key } }

    func load(_ handle: String) throws(AttestationError) -> AppleAttestKey {
        guard let key = keys.withLock({ $0[handle] }) else {
            throw AttestationError(.handleInvalid, reason: "no such key")
        }
        return key
    }
}

/// Attested keys in a folder. Each key has a file with mode 0600 that also holds its counter.
private struct AttestedKeyFolder: AttestedKeys {
    let directory: String

    func save(_ key: AppleAttestKey) throws(AttestationError) {
        let text = "\(Base64.standard.encode(key.rawRepresentation)) \(key.counter)\n"
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try PrivateFile.write(Data(text.utf8), to: file(key.keyID).path)
        } catch { throw AttestationError(.unavailable, reason: "\(error)") }
    }

    func load(_ handle: String) throws(AttestationError) -> AppleAttestKey {
        guard let keyID = Base64.standard.decode(handle),
            let text = try? String(contentsOf: file(keyID), encoding: .utf8)
        else { throw AttestationError(.handleInvalid, reason: "no such key") }
        let parts = text.split(whereSeparator: \.isWhitespace).map(String.init)
        guard parts.count == 2, let raw = Base64.standard.decode(parts[0]), let counter = UInt32(parts[1]),
            let key = try? AppleAttestKey(rawRepresentation: raw, counter: counter)
        else { throw AttestationError(.handleInvalid, reason: "the key's file is damaged") }
        return key
    }

    private func file(_ keyID: [UInt8]) -> URL {
        URL(fileURLWithPath: directory).appendingPathComponent("attest-\(Hexadecimal.encode(keyID))")
    }
}
