import AuthContract
import CryptoKit
import DeviceCheck
import Foundation
import Security
import Testing

@testable import SynheartAuth

extension AppleTests {
    /// An app and its extensions: shared keys and records, separate App Attest keys, and locks that are released before a
    /// suspension.
    @Suite(.serialized) struct Groups {
        let phone = Phone()
        private static let group = "TEAM.shared"
        private static let widget = "com.example.app.widget"

        init() {
            StandInKeychain.reset()
            StandInAppAttest.reset()
            StandInActivity.deny(false)
            SecureEnclave.setAvailable(true)
            StandInKeychain.entitle(Self.group)
        }

        // MARK: The owner of the App Attest key

        /// Runs code as in an extension, where App Attest claims to be supported but generates no key.
        private func inExtension(_ body: (SynheartAuth) async throws -> Void) async throws {
            StandInAppAttest.run(in: .appExtension)
            defer { StandInAppAttest.run(in: .app) }
            try await body(phone.launchOnApple(group: Self.group, bundle: Self.widget))
        }

        @Test("an extension signs with the shared key, and never uses or drops the app's App Attest key")
        func extensionSigns() async throws {
            let app = try phone.launchOnApple(group: Self.group)
            let id = try await app.registerDevice(appID: Phone.app).deviceId
            let key = try await app.identity(Phone.app).context.ledger.load().attestationKey
            #expect(try await app.identity(Phone.app).context.ledger.load().attestationOwner == Phone.app)
            try await inExtension { (widget: SynheartAuth) async throws in
                #expect(try await widget.registerDevice(appID: Phone.app).deviceId == id)
                #expect(try await phone.signAndVerify(widget).status == 200)
            }
            await phone.service.setPolicy {
                $0.assertionPrefixes = [Route.token.rawValue]
                $0.rebinds = true
            }
            try await inExtension { (widget: SynheartAuth) async throws in
                for _ in 0..<3 {
                    let error = await expectError(.attestationUnavailable) {
                        try await widget.deviceToken(appID: Phone.app)
                    }
                    #expect(error?.message.contains(Phone.app) == true)
                    phone.clock.advance(.seconds(3))
                }
            }
            #expect(StandInAppAttest.asserted.isEmpty)
            #expect(try await app.identity(Phone.app).context.ledger.load().attestationKey == key)
            _ = try await app.deviceToken(appID: Phone.app)
        }

        @Test("an extension does not bind a key of its own where the app's key is lost")
        func extensionDoesNotRebind() async throws {
            let app = try phone.launchOnApple(group: Self.group)
            try await app.registerDevice(appID: Phone.app)
            await phone.service.setPolicy {
                $0.assertionPrefixes = [Route.token.rawValue]
                $0.rebinds = true
            }
            let ledger = try app.identity(Phone.app).context.ledger
            let key = try await ledger.load().attestationKey
            try await ledger.apply(.assertionKeyLost(id: key?.id ?? ""))
            let widget = try phone.launchOnApple(group: Self.group, bundle: Self.widget)
            await expectError(.attestationUnavailable) { try await widget.deviceToken(appID: Phone.app) }
            #expect(StandInAppAttest.generated == 1)
            _ = try await app.deviceToken(appID: Phone.app)
            #expect(StandInAppAttest.generated == 2)
        }

        @Test(
            "an extension without App Attest that registers first is ATTESTATION_UNAVAILABLE, and the app's unused key stays"
        )
        func extensionFirst() async throws {
            let codes = [DCError.Code](repeating: .serverUnavailable, count: 5)
            StandInAppAttest.fail(codes)
            _ = try? await phone.launchOnApple(group: Self.group).registerDevice(appID: Phone.app)
            try await inExtension { (widget: SynheartAuth) async throws in
                await expectError(.attestationUnavailable) { try await widget.registerDevice(appID: Phone.app) }
            }
            #expect(
                try await phone.launchOnApple(group: Self.group).registerDevice(appID: Phone.app).status == .registered)
            #expect(StandInAppAttest.generated == 1)
        }

        // MARK: The group's configuration

        @Test("an access group without a lock directory is NOT_CONFIGURED, and the error names the group")
        func noLockDirectory() async throws {
            let sdk = try phone.launch { configuration in
                configuration.storage = KeychainStorage(accessGroup: Self.group)
                configuration.keyStore = SecureEnclaveKeyStore(accessGroup: Self.group)
                configuration.attestation = AppAttestProvider()
            }
            for call in [
                { _ = try await sdk.registerDevice(appID: Phone.app) },
                { _ = try await sdk.isRegistered(appID: Phone.app) },
                { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) },
            ] as [@Sendable () async throws -> Void] {
                let error = await expectError(.notConfigured) { try await call() }
                #expect(error?.message.contains(Self.group) == true)
            }
            #expect(throws: StorageError.self) {
                try KeychainStorage(accessGroup: Self.group).lock(RecordName(AppID(Phone.app)), for: "operation")
            }
            #expect(StandInKeychain.itemCount == 0 && StandInKeychain.tags.isEmpty)
        }

        private func launchWithoutGroup(_ bundle: String, lockDirectory: String? = nil) throws -> SynheartAuth {
            try phone.launch { configuration in
                configuration.storage = KeychainStorage(
                    accessGroup: nil, lockDirectory: lockDirectory, bundleID: bundle)
                configuration.keyStore = SecureEnclaveKeyStore(accessGroup: nil, bundleID: bundle)
                configuration.attestation = AppAttestProvider(bundleID: bundle)
            }
        }

        @Test(
            "a record in a group that is not the program's own, and that the configuration does not name, is NOT_CONFIGURED",
            arguments: [false, true])
        func sharedWithoutAWord(isFirstInExtension: Bool) async throws {
            // Imitates an app and an extension with the same first group of Keychain Sharing.
            let shared = isFirstInExtension ? "TEAM.\(Phone.app)" : Self.group
            StandInKeychain.share(shared)
            if isFirstInExtension {
                // The group is the app's own, so the app may use it. The extension may not, because it shares no lock with the app.
                try await launchWithoutGroup(Phone.app).registerDevice(appID: Phone.app)
            } else {
                await expectNotConfigured(try launchWithoutGroup(Phone.app), shared)
            }
            await expectNotConfigured(try launchWithoutGroup(Self.widget), shared)
            #expect(StandInKeychain.itemCount == (isFirstInExtension ? 1 : 0))
            #expect(StandInKeychain.tags.count == (isFirstInExtension ? 1 : 0))
            #expect(await phone.service.devices.count == (isFirstInExtension ? 1 : 0))
        }

        private func expectNotConfigured(_ sdk: SynheartAuth, _ group: String) async {
            for _ in 0..<2 {
                for call in [
                    { _ = try await sdk.registerDevice(appID: Phone.app) },
                    { _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") },
                    { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) },
                ] as [@Sendable () async throws -> Void] {
                    let error = await expectError(.notConfigured) { try await call() }
                    #expect(error?.message.contains(group) == true && error?.message.contains("lockDirectory") == true)
                }
            }
        }

        @Test(
            "a group that is named like an app group is not the app's own, and a lock directory makes any group right")
        func groupOwners() async throws {
            let owner = GroupOwner(bundleID: Phone.app)
            func problem(_ group: String) -> StorageError? { owner.problem([kSecAttrAccessGroup as String: group]) }
            #expect(problem("TEAM.\(Phone.app)") == nil && owner.problem(nil) == nil && owner.problem([:]) == nil)
            // A simulator also has groups without a team's prefix.
            #expect(problem(Phone.app) == nil && problem("test") == nil)
            for group in ["group.\(Phone.app)", "TEAM.\(Phone.app).widget", "TEAM.app", "TEAM.com.example"] {
                #expect(problem(group)?.isMisconfigured == true, "\(group)")
            }
            StandInKeychain.share(Self.group)
            let folder = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let id = try await launchWithoutGroup(Phone.app, lockDirectory: folder).registerDevice(appID: Phone.app)
                .deviceId
            #expect(
                try await launchWithoutGroup(Self.widget, lockDirectory: folder).getDeviceId(appID: Phone.app) == id)
        }

        @Test("a key that the Keychain does not move to the group is used where it lies")
        func immovableKey() async throws {
            let id = try await phone.launchOnApple().registerDevice(appID: Phone.app).deviceId
            StandInKeychain.setMovesKeys(false)
            let sdk = try phone.launchOnApple(group: Self.group)
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
            try await sdk.rotateKey(appID: Phone.app)
            phone.clock.advance(.seconds(90))
            #expect(try await phone.signAndVerify(phone.launchOnApple(group: Self.group)).status == 200)
        }

        @Test("a record that has moved keeps its canary")
        func movedRecord() async throws {
            let id = try await phone.launchOnApple().registerDevice(appID: Phone.app).deviceId
            let sdk = try phone.launchOnApple(group: Self.group)
            #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
            // The first "not found" is for the look-up of the record in the group, the second for its move from the app's own group.
            StandInKeychain.lie(times: 2)
            await expectSuspicion(.storageError, on: phone.clock) { try await sdk.getDeviceId(appID: Phone.app) ?? "" }
            #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        }

        @Test("lock files and their directory get no file protection")
        func fileProtection() throws {
            let unprotected = Paths()
            let folder = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let storage = KeychainStorage(
                accessGroup: Self.group, lockDirectory: folder, bundleID: Phone.app, unprotect: { unprotected.add($0) })
            let name = RecordName(try AppID(Phone.app))
            let lock = try #require(try storage.lock(name, for: "operation"))
            let directory = folder + "/ai.synheart.auth"
            #expect(unprotected.all == [directory, "\(directory)/\(name.text).operation.lock"])
            lock.release()
        }

        // MARK: Suspension

        @Test("an operation waits until its running time is granted")
        func waitsForTime() async throws {
            StandInActivity.hold(true)
            let before = StandInActivity.begunCount
            let registration = Task {
                try await phone.launchOnApple(group: Self.group).registerDevice(appID: Phone.app)
            }
            try await eventually { StandInActivity.begunCount > before }
            try await Task.sleep(for: .milliseconds(20))
            #expect(await phone.network.messages == 0, "it began without running time")
            StandInActivity.hold(false)
            #expect(try await registration.value.status == .registered)
            try await eventually { StandInActivity.runningCount == 0 }
        }

        @Test("without running time no lock is taken, and the error is worth a retry")
        func noTime() async throws {
            StandInActivity.deny(true)
            let sdk = try phone.launchOnApple(group: Self.group)
            let error = await expectError(.storageError) { try await sdk.registerDevice(appID: Phone.app) }
            #expect(error?.isRetryable == true)
            #expect(await phone.network.messages == 0)
            StandInActivity.deny(false)
            #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        }

        @Test(
            "when its time is over, the holder stops before its next step, and the lock is free before the suspension")
        func expiry() async throws {
            let attestation = phone.attestation
            let launch = { @Sendable (activity: ExpiringActivity) in
                try phone.launch { configuration in
                    configuration.storage = KeychainStorage(
                        accessGroup: Self.group, lockDirectory: NSTemporaryDirectory(), bundleID: Phone.app)
                    configuration.keyStore = SecureEnclaveKeyStore(accessGroup: Self.group)
                    configuration.attestation = attestation
                    configuration.runningTime = activity
                }
            }
            let sdk = try launch(ExpiringActivity())
            attestation.hold()
            let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
            try await eventually { attestation.subjects.count == 1 }
            StandInActivity.deny(true)
            StandInActivity.expire()
            // The lock is released immediately, although the registration that held it still waits for App Attest.
            let storage = KeychainStorage(
                accessGroup: Self.group, lockDirectory: NSTemporaryDirectory(), bundleID: Phone.app)
            let lock = try storage.lock(RecordName(AppID(Phone.app)), for: "operation")
            #expect(lock != nil)
            lock?.release()
            try await eventually { StandInActivity.runningCount == 0 }
            let registered = await phone.service.count(.register)
            // The user returns to the app. Another process may have had the lock meanwhile.
            StandInActivity.deny(false)
            attestation.letGo()
            let error = await expectError(.storageError) { try await registration.value }
            #expect(error?.isRetryable == true)
            #expect(await phone.service.count(.register) == registered, "it went on without its lock")
            #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
            #expect(await phone.service.devices.count == 1)
        }

        @Test("a holder that releases its running time while it expires does not hang")
        func endsAndExpires() async throws {
            let activity = ExpiringActivity()
            for _ in 0..<50 {
                let expired = Paths()
                let hold = activity.begin { expired.add("expired") }
                #expect(await hold.answer())
                async let over: Void = StandInActivity.expire()
                hold.end()
                await over
                hold.end()
                try await eventually { StandInActivity.runningCount == 0 }
                #expect(expired.all.count <= 1)
            }
        }

        @Test("holders at the same time share one activity, which ends with the last of them")
        func shared() async throws {
            let activity = ExpiringActivity()
            let before = StandInActivity.begunCount
            let first = activity.begin {}
            #expect(await first.answer())
            let second = activity.begin {}
            #expect(await second.answer())
            #expect(StandInActivity.begunCount == before + 1)
            first.end()
            #expect(StandInActivity.runningCount == 1)
            second.end()
            try await eventually { StandInActivity.runningCount == 0 }
        }
    }
}

/// Collects paths from several threads.
private final class Paths: @unchecked Sendable {
    // Unchecked: the lock guards the array.
    private let lock = NSLock()
    private var paths: [String] = []

    func add(_ path: String) { lock.withLock { paths.append(path) } }
    var all: [String] { lock.withLock { paths } }
}
