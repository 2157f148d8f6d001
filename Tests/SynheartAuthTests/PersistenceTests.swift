import AuthContract
import Bytes
import Foundation
import StrictJSON
import Testing

@testable import SynheartAuth

/// The SDK's persisted data, field by field, and data that it never keeps.
@Suite struct PersistenceTests {
    @Test("a record has state, device_id, alias, platform, times and clock offset")
    func fields() async throws {
        let phone = Phone()
        phone.clock.setError(.seconds(30))
        let sdk = try phone.launch()
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        let registered = TestClock.start / 1000 + phone.clock.continuous.components.seconds
        phone.clock.advance(.seconds(500))
        let rotated = try await sdk.rotateKey(appID: Phone.app).effectiveAt
        let fields = try JSONFields(JSONValue(parsing: #require(phone.storage.everything.first)))
        #expect(try fields.string("state") == "registered" && fields.string("device_id") == id)
        #expect(try fields.string("key_alias") == "synheart_auth_\(Phone.app)_next")
        #expect(try fields.string("platform") == "ios")
        #expect(try fields.integer("registered_at") == registered)
        #expect(try fields.integer("key_rotated_at") == rotated.seconds)
        #expect(try fields.integer("clock_offset_ms") == -30_000)
    }

    @Test("private keys, proofs, challenges and tokens are never persisted")
    func never() async throws {
        let written = Locked<[[UInt8]]>([])
        let phone = Phone()
        let sdk = try phone.launch { $0.storage = WatchedStorage(base: phone.storage, written: written) }
        try await sdk.registerDevice(appID: Phone.app)
        let token = try await sdk.deviceToken(appID: Phone.app).token
        let old = phone.keys.privateKeys
        try await sdk.rotateKey(appID: Phone.app)
        let body = try #require(
            await phone.service.requests.compactMap { try? RegisterRequest(parsing: $0.body) }.first { $0.proof != nil }
        )
        let secrets =
            [token, body.proof ?? "?", Base64.standard.encode(body.challenge)]
            + (old + phone.keys.privateKeys).flatMap { [Base64.standard.encode($0), Base64.url.encode($0)] }
        let texts = written.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) }
        #expect(texts.count > 8 && secrets.count == 7)
        for secret in secrets { #expect(!texts.contains { $0.contains(secret) }) }
    }

    @Test("the clock offset survives the loss of the key")
    func offset() async throws {
        let phone = Phone()
        phone.clock.setError(.seconds(3600))
        let sdk = try phone.launch()
        try await sdk.registerDevice(appID: Phone.app)
        phone.keys.lose()
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try phone.record().clockOffset.milliseconds == -3_600_000)
    }

    private struct WatchedStorage: RecordStorage {
        let base: MemoryStorage
        let written: Locked<[[UInt8]]>

        func read(_ name: RecordName) -> StorageReading { base.read(name) }
        func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
            written.withLock { $0.append(bytes) }
            try base.write(bytes, to: name)
        }
        func remove(_ name: RecordName) throws(StorageError) { try base.remove(name) }
        func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) {
            try base.setAside(bytes, of: name)
        }
        func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
            try base.lock(name, for: scope)
        }
    }
}

/// The whole SDK on a folder that was damaged or changed.
@Suite struct BadFolderTests {
    private let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
    private let phone = Phone()

    private func launch(_ folder: String? = nil) throws -> SynheartAuth {
        let folder = folder ?? directory
        return try phone.launch { configuration in
            configuration.storage = FileStorage(directory: folder)
            configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
        }
    }

    private func recordFile() throws -> String { "\(directory)/\(RecordName(try AppID(Phone.app)).text).json" }

    private func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    @Test("a record that others can read is STORAGE_ERROR, and causes no new identity")
    func permissionsOfTheRecord() async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        try setMode(0o644, recordFile())
        let error = await expectError(.storageError) { try await launch().registerDevice(appID: Phone.app) }
        #expect(error?.isRetryable == true)
        try setMode(0o600, recordFile())
        #expect(try await launch().registerDevice(appID: Phone.app).deviceId == id)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("nothing is written to a folder that others can enter")
    func permissionsOfTheFolder() async throws {
        try await launch().registerDevice(appID: Phone.app)
        try setMode(0o755, directory)
        await expectError(.storageError) { try await launch().rotateKey(appID: Phone.app) }
        #expect(try await phone.signAndVerify(launch()).status == 200)
    }

    @Test("a folder that cannot be made is STORAGE_ERROR, and nothing is sent")
    func noFolder() async throws {
        let file = directory + ".file"
        try FileManager.default.createDirectory(
            atPath: NSTemporaryDirectory() + "synheart-auth-tests", withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: file))
        await expectError(.storageError) { try await launch(file + "/below").registerDevice(appID: Phone.app) }
        #expect(await phone.network.messages == 0)
    }

    @Test(
        "a newer, truncated, empty or foreign record is STORAGE_ERROR, stays, and can be reset",
        arguments: ["newer", "half", "empty", "another app's"])
    func undecodable(damage: String) async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        let file = URL(fileURLWithPath: try recordFile())
        let text = try String(contentsOf: file, encoding: .utf8)
        let damaged =
            switch damage {
            case "newer": text.replacingOccurrences(of: #""version":1"#, with: #""version":2"#)
            case "half": String(text.prefix(text.count / 2))
            case "empty": ""
            default: text.replacingOccurrences(of: Phone.app + "\"", with: "com.example.other\"")
            }
        #expect(damaged != text)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: Data(damaged.utf8))
        try handle.close()
        for call in [
            { sdk in _ = try await sdk.registerDevice(appID: Phone.app) },
            { sdk in _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") },
            { sdk in _ = try await sdk.rotateKey(appID: Phone.app) },
        ] as [@Sendable (SynheartAuth) async throws -> Void] {
            let sdk = try launch()
            let error = await expectError(.storageError) { try await call(sdk) }
            #expect(error?.recovery == (damage == "newer" ? SynheartAuthError.Recovery.none : .retry))
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == damaged)
        #expect(await phone.service.devices.count == 1)
        try await launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(try await launch().registerDevice(appID: Phone.app).deviceId != id)
    }

    @Test("a reset removes the temporary files of interrupted writes")
    func leftovers() async throws {
        try await launch().registerDevice(appID: Phone.app)
        let key = RecordName(hashing: "synheart_auth_\(Phone.app)").text
        let record = RecordName(try AppID(Phone.app)).text
        let leftovers = [
            "\(directory)/keys/.\(key).key.1.2.tmp", "\(directory)/.\(record).json.1.2.tmp",
        ]
        for path in leftovers { try Data([1]).write(to: URL(fileURLWithPath: path)) }
        try await launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        for path in leftovers { #expect(!FileManager.default.fileExists(atPath: path)) }
    }

    @Test(
        "on a full disk the old key signs, and the rotation succeeds once there is room",
        .enabled(if: SmallDisk() != nil, "may not mount a disk here"))
    func fullDisk() async throws {
        let disk = try #require(SmallDisk())
        let id = try await launch(disk.path + "/sdk").registerDevice(appID: Phone.app).deviceId
        try disk.fill()
        let error = await expectError(.storageError) {
            try await launch(disk.path + "/sdk").rotateKey(appID: Phone.app)
        }
        #expect(error?.recovery == .retry && error?.message.contains("disk is full") == true)
        #expect(try await phone.signAndVerify(launch(disk.path + "/sdk")).status == 200)
        await expectError(.storageError) {
            try await launch(disk.path + "/sdk").registerDevice(appID: "com.example.other")
        }
        #expect(await phone.service.devices.count == 1)
        try disk.makeRoom()
        #expect(try await launch(disk.path + "/sdk").rotateKey(appID: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(launch(disk.path + "/sdk")).status == 200)
    }

    @Test(
        "a reset works on a full disk: it needs no room, and makes some", .timeLimit(.minutes(15)),
        .enabled(if: SmallDisk() != nil, "may not mount a disk here"))
    func resetOnFullDisk() async throws {
        let disk = try #require(SmallDisk())
        let sdk = try launch(disk.path + "/sdk")
        try await sdk.registerDevice(appID: Phone.app)
        try disk.fill()
        var changes = sdk.stateChanges.makeAsyncIterator()
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(await changes.next()?.transition == StateTransition(from: .registered, to: .unregistered))
        #expect(await phone.service.devices.first?.status == .deregistered)
        #expect(try await launch(disk.path + "/sdk").state(appID: Phone.app) == .unregistered)
        try disk.makeRoom()
        #expect(try await launch(disk.path + "/sdk").registerDevice(appID: Phone.app).status == .registered)
    }
}
