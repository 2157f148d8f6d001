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

    @Test("records are files of mode 0600 in a directory of mode 0700, named by a hash")
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

    @Test("a folder in place of a record is neither read, replaced nor removed")
    func folder() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        try storage.remove(name())
        let path = directory + "/" + (try name().text) + ".json"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: StorageError.self) { try storage.remove(name()) }
        #expect(throws: StorageError.self) { try storage.write([2], to: name()) }
        guard case .unavailable = try storage.read(name()) else {
            Issue.record("read a folder")
            return
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [try name().text + ".json"])
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

    @Test("a kill during a write leaves the old record")
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

    @Test("a removal keeps the temporary file of a running write, and deletes a dead writer's")
    func writeUnderWay() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        let temporary = directory + "/.\(try name().text).json.1.2.tmp"
        let writer = open(temporary, O_WRONLY | O_CREAT, 0o600)
        #expect(flock(writer, LOCK_EX | LOCK_NB) == 0)
        try storage.remove(name())
        #expect(FileManager.default.fileExists(atPath: temporary))
        #expect(try storage.read(name()) == .absent)
        // Unlock before `close`. Another test may have forked a child, which shares the open file and would keep it locked.
        flock(writer, LOCK_UN)
        close(writer)
        try storage.remove(name())
        #expect(!FileManager.default.fileExists(atPath: temporary))
    }

    @Test("no store fails while other threads remove the record", .timeLimit(.minutes(15)))
    func storesAndRemovals() async throws {
        let (storage, name) = (FileStorage(directory: directory), try name())
        let failures = await withTaskGroup(of: Int.self) { group in
            for isStore in [true, false, true, false] {
                group.addTask {
                    (0..<200).count { _ in
                        let done: Void? = isStore ? try? storage.write([1], to: name) : try? storage.remove(name)
                        return done == nil
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(failures == 0)
    }

    @Test("a FIFO in place of a record is unavailable, without waiting for its writer", .timeLimit(.minutes(15)))
    func fifo() throws {
        let storage = FileStorage(directory: directory)
        try storage.write([1], to: name())
        try storage.remove(name())
        #expect(mkfifo(directory + "/\(try name().text).json", 0o600) == 0)
        guard case .unavailable = try storage.read(name()) else {
            Issue.record("read a FIFO")
            return
        }
    }

    @Test("taking a turn gives up after the last attempt")
    func turns() throws {
        let storage = FileStorage(directory: directory)
        let held = try #require(try storage.lock(name(), for: "creation"))
        var pauses = 0
        #expect(throws: StorageError.self) {
            try storage.takeTurn(name(), for: "creation", attempts: 3) { pauses += 1 }
        }
        #expect(pauses == 3)
        let turn = try storage.takeTurn(name(), for: "creation", attempts: 3) {
            pauses += 1
            held.release()
        }
        #expect(pauses == 4)
        turn.release()
    }

    @Test("an identity on files survives a relaunch, signs, rotates and resets")
    func wholeSDK() async throws {
        let phone = Phone()
        func launch() throws -> SynheartAuth {
            try phone.launch { configuration in
                configuration.storage = FileStorage(directory: directory)
                configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
            }
        }
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        #expect(try await launch().registerDevice(appID: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(launch()).status == 200)
        try await launch().rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(61))
        #expect(try await phone.signAndVerify(launch()).status == 200)
        try await launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(try await launch().getDeviceId(appID: Phone.app) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/keys").isEmpty)
    }

    @Test("software keys are labelled and private, and a damaged one is not an invalidated one")
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

    @Test("a signer signs with its key until the file is replaced or removed", arguments: [true, false])
    func signer(isReplaced: Bool) throws {
        let keys = SoftwareKeyStore(directory: directory)
        let alias = KeyAlias.primary(try AppID(Phone.app))
        #expect(try keys.signer(alias) == nil)
        let key = try keys.create(alias, challenge: nil)
        let sign = try #require(try keys.signer(alias))
        #expect(try sign([1, 2]).isValid(for: [1, 2], by: key))
        if isReplaced { _ = try keys.create(alias, challenge: nil) } else { try keys.delete(alias) }
        for _ in 0..<2 { #expect(throws: KeyStoreError(.notFound, reason: "no such key")) { try sign([1, 2]) } }
        #expect(try (keys.signer(alias) != nil) == isReplaced)
    }

    @Test("a key file that others can read neither signs nor loads")
    func exposedKey() throws {
        let keys = SoftwareKeyStore(directory: directory)
        let alias = KeyAlias.primary(try AppID(Phone.app))
        _ = try keys.create(alias, challenge: nil)
        let sign = try #require(try keys.signer(alias))
        let file = try #require(try FileManager.default.contentsOfDirectory(atPath: directory).first)
        #expect(chmod(directory + "/" + file, 0o640) == 0)
        #expect(throws: KeyStoreError.self) { try sign([1]) }
        #expect(try keys.signer(alias) == nil)
        for call in [{ _ = try keys.sign([1], with: alias) }, { _ = try keys.load(alias) }] as [() throws -> Void] {
            let error = #expect(throws: KeyStoreError.self) { try call() }
            #expect(error?.code == .unavailable && error?.status == Int(EPERM))
        }
    }

    @Test("a release build has no key store by default")
    func noKeyStore() {
        #expect(throws: KeyStoreError.self) { try NoKeyStore().create(.primary(AppID("a")), challenge: nil) }
    }

    @Test("a build without a key store ends no identity of a build that had one")
    func forgottenKeyStore() async throws {
        let phone = Phone()
        try await phone.launch().registerDevice(appID: Phone.app)
        let before = try phone.record()
        let without = try phone.launch { $0.keyStore = NoKeyStore() }
        for _ in 0..<3 {
            let error = await expectError(.keystoreError) { try await without.registerDevice(appID: Phone.app) }
            #expect(error?.message.contains("Configuration.keyStore") == true)
            phone.clock.advance(.seconds(2))
        }
        #expect(try phone.record() == before)
        #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .alreadyRegistered)
    }
}

#if canImport(Glibc)
    /// Locks and the children of a process. Most children are made by libc's `fork`, one by a system call, and one by
    /// `posix_spawn`.
    @Suite struct ForkTests {
        private let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
        private var storage: FileStorage { FileStorage(directory: directory) }
        private func name() throws -> RecordName { RecordName(try AppID(Phone.app)) }

        private static func symbol<Function>(_ name: String, _ type: Function.Type) throws -> Function {
            // Swift hides `fork`; nil is glibc's RTLD_DEFAULT.
            unsafeBitCast(try #require(dlsym(nil, name)), to: type)
        }

        /// Forks a child that runs `body` and then waits to be killed. Returns the process id and the result of `body`.
        private func child(_ body: () -> UInt8) throws -> (process: pid_t, answer: UInt8) {
            let fork = try Self.symbol("fork", (@convention(c) () -> pid_t).self)
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            let (reading, writing) = (ends[0], ends[1])
            let process = fork()
            if process == 0 {
                // If `body` hangs, the alarm kills the child, and the parent's `read` ends.
                alarm(60)
                var answer = body()
                write(writing, &answer, 1)
                while true { pause() }
            }
            close(writing)
            var answer: UInt8 = 0xFF
            #expect(read(reading, &answer, 1) == 1)
            close(reading)
            return (process, answer)
        }

        private func end(_ process: pid_t) {
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
        }

        /// The descriptor of the lock file that this process has open.
        private func descriptor() throws -> Int32 {
            var file = stat()
            #expect(stat(directory + "/\(try name().text).operation.lock", &file) == 0)
            let found = (0..<Int32(1024)).first { number in
                var information = stat()
                return fstat(number, &information) == 0 && information.st_ino == file.st_ino
                    && information.st_dev == file.st_dev
            }
            return try #require(found)
        }

        @Test("a forked child keeps no lock of its parent")
        func childKeepsNothing() throws {
            let held = try #require(try storage.lock(name(), for: "operation"))
            let descriptor = try descriptor()
            // The child does not have the file open, so it cannot keep the lock after its parent ends.
            let (process, isOpen) = try child { fcntl(descriptor, F_GETFD) == -1 ? 0 : 1 }
            defer { end(process) }
            #expect(isOpen == 0)
            #expect(try storage.lock(name(), for: "operation") == nil)
            held.release()
            #expect(try storage.lock(name(), for: "operation") != nil)
        }

        @Test("a child's release does not end its parent's lock")
        func childReleases() throws {
            let held = try #require(try storage.lock(name(), for: "operation"))
            let descriptor = try descriptor()
            let (process, isClosed) = try child {
                // `release` must not close a file that the child itself opened under the same number.
                _ = dup2(0, descriptor)
                held.release()
                return fcntl(descriptor, F_GETFD) == -1 ? 1 : 0
            }
            defer { end(process) }
            #expect(isClosed == 0)
            #expect(try storage.lock(name(), for: "operation") == nil)
            held.release()
        }

        @Test("the locks that a child takes do not end with its copy of its parent's")
        func childsOwnLocks() throws {
            let held = try #require(try storage.lock(name(), for: "operation"))
            // The child takes so many locks that one of them gets the descriptor number of the parent's lock. The files of `looks`
            // are opened before the fork, because a child must do as little as possible.
            let paths = (0..<64).map { "\(directory)/own-\($0)" }
            let looks = paths.map { open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
            defer { for look in looks { close(look) } }
            let (process, areHeld) = try child {
                let own = paths.map { try? FileLock.take($0) }
                held.release()
                let isHeld = looks.map { flock($0, LOCK_EX | LOCK_NB) != 0 }
                return withExtendedLifetime(own) { own.contains { $0 == nil } || isHeld.contains(false) } ? 0 : 1
            }
            defer { end(process) }
            #expect(areHeld == 1)
            held.release()
        }

        @Test("a child made without libc's fork does not keep a released lock")
        func childOfASystemCall() throws {
            let held = try #require(try storage.lock(name(), for: "operation"))
            let syscall = try Self.symbol("syscall", (@convention(c) (Int, Int, Int, Int, Int, Int, Int) -> Int).self)
            #if arch(x86_64)
                let clone = 56
            #else
                let clone = 220
            #endif
            let process = pid_t(syscall(clone, Int(SIGCHLD), 0, 0, 0, 0, 0))
            if process == 0 { while true { pause() } }
            defer { end(process) }
            held.release()
            #expect(try storage.lock(name(), for: "operation") != nil)
        }

        @Test("an executed program does not inherit the lock file")
        func executed() throws {
            let held = try #require(try storage.lock(name(), for: "operation"))
            var program: pid_t = 0
            let arguments = [strdup("/bin/sleep"), strdup("1000"), nil]
            defer { for argument in arguments { free(argument) } }
            #expect(posix_spawn(&program, "/bin/sleep", nil, nil, arguments, nil) == 0)
            defer { end(program) }
            let folder = "/proc/\(program)/fd"
            let open = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0)
            }
            #expect(!open.isEmpty && !open.contains { $0.hasSuffix(".lock") })
            held.release()
            #expect(try storage.lock(name(), for: "operation") != nil)
        }

        @Test("many locks are held and released at once")
        func many() throws {
            let scopes = (0..<50).map { "scope-\($0)" }
            let held = try scopes.map { try #require(try storage.lock(name(), for: $0)) }
            for scope in scopes { #expect(try storage.lock(name(), for: scope) == nil) }
            for lock in held { lock.release() }
            for scope in scopes { #expect(try storage.lock(name(), for: scope) != nil) }
        }
    }
#endif
