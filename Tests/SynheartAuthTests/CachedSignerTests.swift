import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// Signatures from the cached record and key, and the events that invalidate the cache. The tests use `FileStorage`,
/// because it reports the versions of records.
@Suite final class CachedSignerTests {
    private let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
    private let phone = Phone()

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Counts reads.
    private struct Counting: RecordStorage {
        let base: FileStorage
        let reads = Locked(0)
        func read(_ name: RecordName) -> StorageReading {
            reads.withLock { $0 += 1 }
            return base.read(name)
        }
        func versions(of name: RecordName) -> VersionProbe? { base.versions(of: name) }
        func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) { try base.write(bytes, to: name) }
        func remove(_ name: RecordName) throws(StorageError) { try base.remove(name) }
        func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
            try base.setAside(bytes, of: name)
        }
        func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
            try base.lock(name, for: scope)
        }
    }

    private func launch(_ storage: (any RecordStorage)? = nil) throws -> SynheartAuth {
        try phone.launch {
            $0.storage = storage ?? FileStorage(directory: directory)
            $0.keyStore = SoftwareKeyStore(directory: directory + "/keys")
        }
    }

    private func sign(_ sdk: SynheartAuth) async throws -> SignedHeaders {
        try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
    }

    @Test func `after the first signature the record is not read until it changes`() async throws {
        let storage = Counting(base: FileStorage(directory: directory))
        let sdk = try launch(storage)
        try await sdk.registerDevice(appID: Phone.app)
        _ = try await sign(sdk)
        let before = storage.reads.withLock { $0 }
        for _ in 0..<5 { #expect(try await phone.signAndVerify(sdk).status == 200) }
        #expect(storage.reads.withLock { $0 } == before)
        try await sdk.correctClockSkew(serverTimestamp: Double(phone.clock.wallMilliseconds) / 1000 + 50)
        let changed = storage.reads.withLock { $0 }
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(storage.reads.withLock { $0 } > changed)
    }

    @Test func `another process's rotation, clock and reset count at once`() async throws {
        let (sdk, other) = (try launch(), try launch())
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        try await other.rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(61))
        #expect(try await phone.signAndVerify(sdk).status == 200)
        let now = phone.clock.trueMilliseconds / 1000
        try await other.correctClockSkew(serverTimestamp: Double(now) + 40, appID: Phone.app)
        #expect(try await sign(sdk).dictionary["X-Synheart-Timestamp"] == "\(now + 40)")
        try await other.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        await expectError(.notRegistered) { try await sign(sdk).fields.count }
    }

    @Test func `a key whose file is gone is lost, also for the cache`() async throws {
        let sdk = try launch()
        try await sdk.registerDevice(appID: Phone.app)
        _ = try await sign(sdk)
        try SoftwareKeyStore(directory: directory + "/keys").delete(.primary(AppID(Phone.app)))
        await expectSuspicion(.keystoreError, on: phone.clock) { try await sign(sdk).fields.count }
        await expectError(.keyInvalidated) { try await sign(sdk).fields.count }
        #expect(try await sdk.state(appID: Phone.app) == .keyInvalid)
    }

    @Test func `the cache refuses what signing refuses`() async throws {
        let sdk = try launch()
        try await sdk.registerDevice(appID: Phone.app)
        _ = try await sign(sdk)
        for (method, path) in [("GE T", "/"), ("GET", "/a?b"), ("POST", Route.rotateKey.rawValue)] {
            await expectError(.signingFailed) {
                try await sdk.signRequest(appID: Phone.app, method: method, path: path).fields.count
            }
        }
        phone.clock.setError(.seconds(400 * 365 * 86_400))
        await expectError(.clockSkew) { try await sign(sdk).fields.count }
    }
}
