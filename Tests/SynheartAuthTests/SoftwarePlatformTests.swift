import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// Runs the cases that every platform must pass, with keys and records in files.
@Suite struct SoftwarePlatformTests {
    @Test("every platform case holds with software keys and files", arguments: PlatformCase.all)
    func holds(_ example: PlatformCase) async throws { try await example.run(on: SoftwarePlatform.self) }
}

/// Keys and records in a folder, and an attestation that a test can make fail.
final class SoftwarePlatform: PlatformUnderTest {
    private let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
    private let failing = Locked<KeyStoreError.Code?>(nil)
    private let provider = TestAttestation()

    init() {}
    deinit { try? FileManager.default.removeItem(atPath: directory) }

    var storage: any RecordStorage { FileStorage(directory: directory) }
    var attestation: any AttestationProvider { provider }
    var keyStore: any KeyStore {
        FailingKeyStore(base: SoftwareKeyStore(directory: directory + "/keys"), failing: failing)
    }

    private func files(_ folder: String, _ suffix: String) throws -> [String] {
        guard FileManager.default.fileExists(atPath: folder) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(suffix) }
            .map { "\(folder)/\($0)" }
    }

    var keyCount: Int { get throws { try files(directory + "/keys", ".key").count } }
    var recordCount: Int { get throws { try files(directory, ".json").count } }
    var nonces: [[UInt8]] { provider.subjects.map(\.nonce) }

    func loseKeys() throws {
        for file in try files(directory + "/keys", ".key") { try FileManager.default.removeItem(atPath: file) }
    }

    func failSignatures(_ code: KeyStoreError.Code?) { failing.withLock { $0 = code } }
    func failAttestations(_ codes: [AttestationError.Code]) { provider.fail(codes) }

    /// Makes the records readable by other users. The storage then treats them as unavailable.
    func lockRecords(_ isLocked: Bool) throws {
        for file in try files(directory, ".json") { try setMode(isLocked ? 0o644 : 0o600, file) }
    }

    /// Makes the folder accessible to other users. `FileStorage` refuses to write into such a folder.
    func refuseWrites(_ isRefusing: Bool) throws { try setMode(isRefusing ? 0o755 : 0o700, directory) }

    private func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }
}

/// A key store whose failures the tests choose, because keys in files are never locked or invalidated.
private struct FailingKeyStore: KeyStore {
    let base: SoftwareKeyStore
    let failing: Locked<KeyStoreError.Code?>
    var protection: KeyProtection { base.protection }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        try base.create(alias, challenge: challenge)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        if let code = failing.withLock({ $0 }) { throw KeyStoreError(code) }
        return try base.sign(message, with: alias)
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
}
