import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// Records and keys as files.
@Suite struct FileTests {
    private let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
    private func name() throws -> RecordName { RecordName(try AppID(Phone.app)) }
    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test("found, absent, removed; 0700 for the directory, 0600 for the file, its name a hash")
    func roundTrip() throws {
        let storage = FileStorage(directory: directory)
        #expect(try storage.read(name()) == .absent)
        try storage.write([1, 2, 3], to: name())
        #expect(try storage.read(name()) == .found([1, 2, 3]))
        try storage.write([], to: name())
        #expect(try storage.read(name()) == .found([]))
        #expect(try mode(directory) == 0o700)
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(files == [try name().text + ".json"])
        #expect(try mode(directory + "/" + #require(files.first)) == 0o600)
        try storage.remove(name())
        try storage.remove(name())
        #expect(try storage.read(name()) == .absent)
    }

    @Test("a file that others can read is unavailable, not absent", arguments: [0o644, 0o640, 0o606])
    func permissions(mode: Int) throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        let path = directory + "/" + (try name().text) + ".json"
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        guard case .unavailable = try storage.read(name()) else {
            Issue.record("read a file that others could have written")
            return
        }
    }

    @Test("a directory that others can enter is refused")
    func directoryPermissions() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory)
        #expect(throws: StorageError.self) { try storage.write([2], to: name()) }
    }

    @Test("links are not followed")
    func links() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        let path = directory + "/" + (try name().text) + ".json"
        try FileManager.default.moveItem(atPath: path, toPath: directory + "/elsewhere")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: directory + "/elsewhere")
        guard case .unavailable = try storage.read(name()) else {
            Issue.record("followed a link")
            return
        }
    }

    @Test("a kill in the middle of a write leaves the old record: what is half-written has another name")
    func halfWritten() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        try Data([9]).write(to: URL(fileURLWithPath: directory + "/.\(try name().text).json.1.2.tmp"))
        #expect(try storage.read(name()) == .found([1]))
    }

    @Test("a lock excludes others until it is released, and scopes are independent")
    func locks() throws {
        let (one, other) = (FileStorage(directory: directory), FileStorage(directory: directory))
        let held = try #require(try one.lock(name(), for: "operation"))
        #expect(try other.lock(name(), for: "operation") == nil)
        #expect(try other.lock(name(), for: "record") != nil)
        held.release()
        held.release()
        #expect(try other.lock(name(), for: "operation") != nil)
    }

    @Test("the whole SDK on files: register, relaunch, sign, rotate, reset")
    func wholeSDK() async throws {
        let phone = Phone()
        func launch() throws -> SynheartAuth {
            try phone.launch { configuration in
                configuration.storage = FileStorage(directory: directory)
                configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
            }
        }
        let id = try await launch().registerDevice(appId: Phone.app).deviceId
        #expect(try await launch().registerDevice(appId: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(launch()).status == 200)
        try await launch().rotateKey(appId: Phone.app)
        phone.clock.advance(.seconds(61))
        #expect(try await phone.signAndVerify(launch()).status == 200)
        try await launch().resetDeviceIdentity(appId: Phone.app, reason: .userRequested)
        #expect(try await launch().getDeviceId(appId: Phone.app) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/keys").isEmpty)
    }

    @Test("software keys: labelled, 0600, damaged ones are not invalid ones")
    func softwareKeys() throws {
        let keys = SoftwareKeyStore(directory: directory)
        #expect(keys.protection == .software)
        let alias = KeyAlias.primary(try AppID(Phone.app))
        #expect(try keys.load(alias) == nil)
        let key = try keys.create(alias, challenge: nil)
        #expect(try keys.load(alias) == key)
        #expect(try keys.sign([1, 2], with: alias).isValid(for: [1, 2], by: key))
        let file =
            directory + "/" + (try #require(try FileManager.default.contentsOfDirectory(atPath: directory).first))
        #expect(try mode(file) == 0o600)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try handle.truncate(atOffset: 7)
        try handle.close()
        #expect(throws: KeyStoreError(.failed, reason: "the key file is damaged")) { try keys.load(alias) }
        try keys.delete(alias)
        #expect(throws: KeyStoreError(.notFound, reason: "no such key")) { try keys.sign([1], with: alias) }
    }

    @Test("without a named key store a release build has none")
    func noKeyStore() {
        #expect(throws: KeyStoreError.self) { try NoKeyStore().create(.primary(AppID("a")), challenge: nil) }
    }
}
