import AuthContract
import CryptoKit
import DeviceCheck
import Foundation
import Security
import Testing

@testable import SynheartAuth

extension AppleTests {
    /// Tests of what Apple's error codes mean for an identity. The meaning depends on the canaries: Keychain items and
    /// keys with which the SDK tests whether the platform works.
    @Suite(.serialized) struct Verdicts {
        let phone = Phone()

        init() {
            StandInKeychain.reset()
            StandInAppAttest.reset()
            StandInActivity.deny(false)
            SecureEnclave.setAvailable(true)
        }

        /// An error that a signature fails with.
        struct Failure: Sendable, CustomTestStringConvertible {
            let domain: String
            let code: Int
            let enclaveStatus: Int?

            init(_ domain: String, _ code: Int, _ enclaveStatus: Int? = nil) {
                (self.domain, self.code, self.enclaveStatus) = (domain, code, enclaveStatus)
            }

            func happen(isBelow: Bool = false, affectsCanaries: Bool = false) {
                StandInKeychain.failSigning(
                    domain: domain, code: code, enclaveStatus: enclaveStatus, isBelow: isBelow,
                    affectsCanaries: affectsCanaries)
            }

            static func end() { StandInKeychain.failSigning(domain: "", code: nil) }

            var testDescription: String { "\(domain) \(code) \(enclaveStatus.map(String.init) ?? "")" }
        }

        private static let token = "CryptoTokenKit"
        private static let authentication = "com.apple.LocalAuthentication"

        private func sign(_ sdk: SynheartAuth) async throws -> Int {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/").fields.count
        }

        @Test(
            "CryptoTokenKit -3 with AKSError -536362999 is final, also where the error below names it",
            arguments: [true, false])
        func final(isBelow: Bool) async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            Failure(Self.token, -3, -536_362_999).happen(isBelow: isBelow)
            await expectError(.keyInvalidated) { try await sign(sdk) }
            #expect(try await sdk.state(appID: Phone.app) == .keyInvalid)
            Failure.end()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test(
            "an undocumented error is a suspicion, and after two seconds a lost key if the canaries work",
            arguments: [
                Failure(NSOSStatusErrorDomain, -25300), Failure(NSOSStatusErrorDomain, -25293),
                Failure(NSOSStatusErrorDomain, -50), Failure(NSOSStatusErrorDomain, -26276), Failure(token, -3),
                Failure(token, -3, -536_870_203), Failure(token, -3, -536_870_212), Failure(token, -5),
                Failure(token, -6), Failure(token, -8), Failure(authentication, -1), Failure("unheard.of", 7),
            ])
        func suspicious(failure: Failure) async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            failure.happen()
            await expectSuspicion(on: phone.clock) { try await sign(sdk) }
            #expect(try await sdk.state(appID: Phone.app) == .registered)
            // Healthy devices returned these errors too, and their keys worked again afterwards.
            Failure.end()
            #expect(try await phone.signAndVerify(sdk).status == 200)
            failure.happen()
            await expectSuspicion(on: phone.clock) { try await sign(sdk) }
            await expectError(.keyInvalidated) { try await sign(sdk) }
            Failure.end()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test(
            "a locked or busy status is a retryable SECURE_ENCLAVE_ERROR, however long it lasts",
            arguments: [
                Failure(NSOSStatusErrorDomain, -25308), Failure(NSOSStatusErrorDomain, -25291),
                Failure(NSOSStatusErrorDomain, -25320), Failure(NSOSStatusErrorDomain, -25299),
                Failure(NSOSStatusErrorDomain, -36), Failure(authentication, -4), Failure(authentication, -8),
                Failure(authentication, -9), Failure(authentication, -1004), Failure(token, -2), Failure(token, -9),
                Failure(token, -3, -536_870_174),
            ])
        func temporary(failure: Failure) async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            failure.happen()
            for _ in 0..<3 {
                let error = await expectError(.secureEnclaveError) { try await sign(sdk) }
                #expect(error?.isRetryable == true)
                phone.clock.advance(.seconds(100))
            }
            Failure.end()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test("while the Secure Enclave fails for the canary too, nothing is lost")
        func enclaveUnwell() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            Failure(Self.token, -3).happen(affectsCanaries: true)
            for _ in 0..<10 {
                let error = await expectError(nil) { try await sign(sdk) }
                #expect(error?.isRetryable == true && error?.code != .keyInvalidated)
                phone.clock.advance(.seconds(3))
            }
            Failure.end()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test("while the Keychain is full or locked, no key is declared lost")
        func keychainUnwell() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            Failure(Self.token, -3).happen()
            await expectSuspicion(on: phone.clock) { try await sign(sdk) }
            StandInKeychain.setFull(true)
            for _ in 0..<3 {
                await expectError(.secureEnclaveError) { try await sign(sdk) }
                phone.clock.advance(.seconds(3))
            }
            StandInKeychain.setFull(false)
            Failure.end()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        }

        @Test("if the key and its canary are gone but a new canary works, the key is treated as lost")
        func everythingGone() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            #expect(StandInKeychain.canaryTags.count == 1, "the key canary is as old as the key")
            StandInKeychain.loseKeys()
            await expectSuspicion(.secureEnclaveError, on: phone.clock) { try await sign(sdk) }
            #expect(StandInKeychain.canaryTags.isEmpty)
            await expectError(.keyInvalidated) { try await sign(sdk) }
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        }

        @Test("a Keychain that finds no key, not even the canary that it has just made, is unwell")
        func lyingLookUps() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            StandInKeychain.hideKeys(true)
            await expectSuspicion(.secureEnclaveError, on: phone.clock) { try await sign(sdk) }
            for _ in 0..<3 {
                let error = await expectError(.secureEnclaveError) { try await sign(sdk) }
                #expect(error?.isRetryable == true)
                phone.clock.advance(.seconds(3))
            }
            StandInKeychain.hideKeys(false)
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test("SecKeyCopyPublicKey without a key is a suspicion, and so is an export that finds nothing")
        func publicHalfGone() async throws {
            for isHidden in [true, false] {
                StandInKeychain.reset()
                let phone = Phone()
                let sdk = try phone.launchOnApple()
                let id = try await sdk.registerDevice(appID: Phone.app).deviceId
                StandInKeychain.hidePublicKeys(isHidden)
                StandInKeychain.failExport(isHidden ? nil : errSecItemNotFound)
                await expectSuspicion(.secureEnclaveError, on: phone.clock) {
                    try await sdk.registerDevice(appID: Phone.app)
                }
                StandInKeychain.hidePublicKeys(false)
                StandInKeychain.failExport(nil)
                #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
                #expect(try await phone.signAndVerify(sdk).status == 200)
            }
        }

        @Test("a suspicion is logged once, with the platform's number")
        func logged() async throws {
            let sdk = try phone.launchOnApple()
            try await sdk.registerDevice(appID: Phone.app)
            Failure(Self.token, -3, -536_870_212).happen()
            for _ in 0..<3 { _ = try? await sign(sdk) }
            let entries = phone.logger.entries.filter { $0.event == .suspicion }
            #expect(entries.map(\.status) == [-3] && entries.first?.code == .signingFailed)
            #expect(entries.first?.description.contains("status=-3") == true)
        }

        @Test("a Keychain that finds nothing, for however long, ends no identity")
        func lyingForAnyTime() async throws {
            for seed in UInt64(0)..<15 {
                StandInKeychain.reset()
                StandInAppAttest.reset()
                let phone = Phone()
                let random = SeededRandom(seed)
                var sdk = try phone.launchOnApple()
                let id = try await sdk.registerDevice(appID: Phone.app).deviceId
                for _ in 0..<25 {
                    StandInKeychain.lie(times: random.below(2) == 0 ? 0 : .max)
                    if random.below(3) == 0 { sdk = try phone.launchOnApple() }
                    switch random.below(4) {
                    case 0: _ = try? await sdk.isRegistered(appID: Phone.app)
                    case 1: _ = try? await sdk.registerDevice(appID: Phone.app)
                    case 2: _ = try? await sdk.rotateKey(appID: Phone.app)
                    default: _ = try? await sign(sdk)
                    }
                    phone.clock.advance(.milliseconds(random.below(90_000)))
                }
                StandInKeychain.lie(times: 0)
                phone.clock.advance(.seconds(3600))
                #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id, "seed \(seed)")
                #expect(try await phone.signAndVerify(sdk).status == 200, "seed \(seed)")
                #expect(await phone.service.devices.count == 1, "seed \(seed)")
            }
        }

        // MARK: Records

        @Test(
            "isRegistered waits for no verdict: at the first launch, later, for another app, or after a reset"
        )
        func nothingWaits() async throws {
            for _ in 0..<3 { #expect(try await !phone.launchOnApple().isRegistered(appID: Phone.app)) }
            #expect(try await phone.launchOnApple().getDeviceId(appID: Phone.app) == nil)
            try await phone.launchOnApple().registerDevice(appID: Phone.app)
            #expect(try await phone.launchOnApple().getDeviceId(appID: "com.example.other") == nil)
            try await phone.launchOnApple().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
            #expect(try await phone.launchOnApple().registerDevice(appID: Phone.app).status == .registered)
            #expect(phone.sleeper.retries.isEmpty)
        }

        @Test("what a launch and a signature cost in calls of the Keychain and the Secure Enclave")
        func calls() async throws {
            let sdk = try phone.launchOnApple()
            _ = StandInKeychain.takeCalls()
            #expect(try await !sdk.isRegistered(appID: Phone.app))
            // Three Keychain calls: read the record, read its canary (a second item, which states whether the record was made),
            // and create the canary.
            #expect(StandInKeychain.takeCalls() == (keychain: 3, enclave: 0))
            #expect(try await !sdk.isRegistered(appID: Phone.app))
            #expect(StandInKeychain.takeCalls() == (keychain: 2, enclave: 0))
            try await sdk.registerDevice(appID: Phone.app)
            let registration = StandInKeychain.takeCalls()
            #expect(registration.keychain <= 50 && registration.enclave == 3, "\(registration)")
            // Two Keychain calls: read the record, and find the key.
            _ = try await sign(sdk)
            #expect(StandInKeychain.takeCalls() == (keychain: 2, enclave: 1))
            // One Keychain call: find the key.
            for _ in 0..<3 {
                _ = try await sign(sdk)
                #expect(StandInKeychain.takeCalls() == (keychain: 1, enclave: 1))
            }
        }

        @Test("a request under scheme 2 is signed without reading the record again")
        func schemeTwoCalls() async throws {
            let sdk = try phone.launchOnApple(scheme: .two)
            try await sdk.registerDevice(appID: Phone.app)
            for _ in 0..<2 { _ = try await sdk.sign(appID: Phone.app, method: "GET", url: "https://auth.test/v1/me") }
            _ = StandInKeychain.takeCalls()
            _ = try await sdk.sign(appID: Phone.app, method: "GET", url: "https://auth.test/v1/me")
            // Two Keychain calls: find the public key, and find the key that signs.
            #expect(StandInKeychain.takeCalls() == (keychain: 2, enclave: 1))
        }

        @Test("a record that another process changed is read again before the next signature")
        func changedElsewhere() async throws {
            let (sdk, other) = (try phone.launchOnApple(), try phone.launchOnApple())
            try await sdk.registerDevice(appID: Phone.app)
            for process in [sdk, other] { #expect(try await phone.signAndVerify(process).status == 200) }
            try await other.rotateKey(appID: Phone.app)
            phone.clock.advance(.seconds(90))
            for process in [sdk, other] { #expect(try await phone.signAndVerify(process).status == 200) }
            try await other.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
            for process in [sdk, other] { await expectError(.notRegistered) { try await sign(process) } }
        }

        @Test("a record's version ends before the change, and the next begins after it")
        func versionDuringChange() throws {
            let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let locks = LockDirectory(path: directory, unprotect: { _ in })
            let before = try #require(locks.versions(of: "record"))
            let version = before()
            #expect(version != nil && before() == version && locks.versions(of: "record")?() == version)
            try locks.beginChange(of: "record")
            #expect(before() == nil)
            let during = try #require(locks.versions(of: "record"))
            #expect(during() == nil)
            locks.endChange(of: "record")
            #expect(before() == nil && during() == nil)
            let after = try #require(locks.versions(of: "record"))
            #expect(after() != nil && after() != version)
        }

        @Test("a record whose writer was killed is read for each signature until the next change")
        func killedWriter() async throws {
            let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let storage = KeychainStorage(accessGroup: nil, lockDirectory: directory, bundleID: nil)
            let name = RecordName(try AppID(Phone.app))
            try storage.write([1], to: name)
            #expect(storage.versions(of: name)?() != nil)
            let locks = LockDirectory(path: directory + "/ai.synheart.auth", unprotect: { _ in })
            try locks.beginChange(of: "\(name.text).version")
            #expect(storage.versions(of: name)?() == nil)
            try storage.write([2], to: name)
            #expect(storage.versions(of: name)?() != nil)
        }

        @Test("a change whose version cannot be ended is not made")
        func versionCannotEnd() throws {
            let directory = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let storage = KeychainStorage(accessGroup: nil, lockDirectory: directory, bundleID: nil)
            let name = RecordName(try AppID(Phone.app))
            try storage.write([1], to: name)
            let file = directory + "/ai.synheart.auth/\(name.text).version"
            try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
            #expect(throws: StorageError.self) { try storage.write([2], to: name) }
            #expect(throws: StorageError.self) { try storage.remove(name) }
            #expect(storage.read(name) == .found([1]))
        }

        @Test(
            "on a full disk a change is STORAGE_ERROR, worth a retry, and a reset works",
            .enabled(if: SmallDisk() != nil, "may not mount a disk here"), arguments: [false, true])
        func fullDisk(isEmptied: Bool) async throws {
            let disk = try #require(SmallDisk())
            let folder = disk.path + "/locks"
            let launch = { @Sendable in
                try phone.launch { configuration in
                    configuration.storage = KeychainStorage(
                        accessGroup: nil, bundleID: Phone.app, folder: folder, unprotect: { _ in })
                    configuration.keyStore = SecureEnclaveKeyStore(accessGroup: nil, bundleID: Phone.app)
                }
            }
            #expect(mkdir(folder, 0o700) == 0)
            let sdk = try launch()
            try await sdk.registerDevice(appID: Phone.app)
            #expect(try await phone.signAndVerify(sdk).status == 200)
            // The system empties the temporary folder.
            if isEmptied { try FileManager.default.removeItem(atPath: folder + "/ai.synheart.auth") }
            try disk.fill()
            StandInKeychain.setFull(true)
            let error = await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
            #expect(error?.recovery == .retry && error?.message.contains("disk is full") == true)
            #expect(try await phone.signAndVerify(launch()).status == 200)
            try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
            #expect(StandInKeychain.itemCount == 0 && StandInKeychain.tags.isEmpty)
            #expect(await phone.service.devices.first?.status == .deregistered)
            let later = await expectError(.storageError) { try await launch().registerDevice(appID: Phone.app) }
            #expect(later?.recovery == .retry)
            try disk.makeRoom()
            StandInKeychain.setFull(false)
            #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test(
            "a version ends without a block of the disk",
            .enabled(if: SmallDisk() != nil, "may not mount a disk here"))
        func versionOnFullDisk() throws {
            let disk = try #require(SmallDisk())
            let locks = LockDirectory(path: disk.path + "/locks", unprotect: { _ in })
            let version = try #require(locks.versions(of: "record"))
            #expect(version() != nil)
            try disk.fill()
            try locks.beginChange(of: "record")
            #expect(version() == nil && locks.versions(of: "record")?() == nil)
            locks.endChange(of: "record")
        }

        @Test(
            "a record that is not found is believed after two seconds, if the canary is read back and another one written"
        )
        func recordGone() async throws {
            let id = try await phone.launchOnApple().registerDevice(appID: Phone.app).deviceId
            StandInKeychain.loseRecords()
            let sdk = try phone.launchOnApple()
            await expectSuspicion(.storageError, on: phone.clock) { try await sdk.getDeviceId(appID: Phone.app) ?? "" }
            StandInKeychain.setFull(true)
            let error = await expectError(.storageError) { try await sdk.registerDevice(appID: Phone.app) }
            #expect(error?.isRetryable == true)
            StandInKeychain.setFull(false)
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
            #expect(try await phone.signAndVerify(sdk).status == 200)
        }

        @Test("a record that a later read finds is not treated as lost")
        func recordFoundAgain() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            for _ in 0..<4 {
                StandInKeychain.lie(times: 1)
                await expectSuspicion(.storageError, on: phone.clock) {
                    try await sdk.getDeviceId(appID: Phone.app) ?? ""
                }
                #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
            }
        }

        @Test("a canary that exists and is not found, or says something else, proves that the Keychain is unwell")
        func canaryNotFound() throws {
            let storage = KeychainStorage()
            let name = RecordName(try AppID(Phone.app))
            #expect(storage.read(name) == .absent)
            StandInKeychain.lie(times: 2)
            guard case .unavailable(let error) = storage.read(name) else { throw StorageError("read as absent") }
            #expect(error.status == Int(errSecDuplicateItem) && !error.saysAbsent)
            StandInKeychain.put(Data([9]), service: KeychainCanary.service, account: name.text)
            guard case .unavailable(let damaged) = storage.read(name) else { throw StorageError("read as absent") }
            #expect(!damaged.saysAbsent)
            // The SDK has replaced the damaged canary, the item that states whether the record was made.
            guard case .unavailable(let mended) = storage.read(name) else { throw StorageError("read as absent") }
            #expect(mended.saysAbsent)
            try storage.checkCanary(of: name)
        }

        @Test("a canary without its data shows that the Keychain does not work")
        func garbled() throws {
            let canary = KeychainCanary(accessGroup: nil)
            let name = RecordName(try AppID(Phone.app))
            try canary.check()
            #expect(KeychainStorage().read(name) == .absent)
            StandInKeychain.setGarbles(true)
            #expect(throws: StorageError.self) { try canary.check() }
            // The check also fails under a name that has no canary (test item) yet: the Keychain returns even new items without data.
            #expect(throws: StorageError.self) { try canary.check("another") }
            guard case .unavailable = KeychainStorage().read(name) else {
                throw StorageError("read as absent")
            }
            StandInKeychain.setGarbles(false)
            try canary.check()
        }

        // MARK: App Attest

        private func assert(_ sdk: SynheartAuth) async throws -> Int {
            try await sdk.identity(Phone.app).context.assertion(clientDataHash: [UInt8](repeating: 1, count: 32)).count
        }

        @Test("unknownSystemFailure while asserting: the first is retried, the second leads to one new key")
        func unknownSystemFailure() async throws {
            let sdk = try phone.launchOnApple()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            await phone.service.setPolicy {
                $0.assertionPrefixes = [Route.token.rawValue]
                $0.rebinds = true
            }
            StandInAppAttest.failAssertions(.unknownSystemFailure)
            await expectSuspicion(.attestationFailed, on: phone.clock) { try await assert(sdk) }
            #expect(try await assert(sdk) > 0, "a working assertion ends the suspicion")
            StandInAppAttest.failAssertions(.unknownSystemFailure, .unknownSystemFailure)
            await expectSuspicion(.attestationFailed, on: phone.clock) { try await assert(sdk) }
            #expect(StandInAppAttest.generated == 1)
            _ = try await sdk.deviceToken(appID: Phone.app)
            #expect(StandInAppAttest.generated == 2)
            #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        }

        @Test(
            "serverUnavailable while asserting keeps the key",
            arguments: [DCError.Code.serverUnavailable, .featureUnsupported])
        func assertingLater(code: DCError.Code) async throws {
            let sdk = try phone.launchOnApple()
            try await sdk.registerDevice(appID: Phone.app)
            for _ in 0..<3 {
                StandInAppAttest.failAssertions(code)
                _ = try? await assert(sdk)
                phone.clock.advance(.seconds(3))
            }
            #expect(try await assert(sdk) > 0 && StandInAppAttest.generated == 1)
        }

        @Test(
            "any error but serverUnavailable while attesting forgets the key id",
            arguments: [DCError.Code.unknownSystemFailure, .featureUnsupported, .invalidInput, .invalidKey])
        func attestingForgets(code: DCError.Code) async throws {
            let sdk = try phone.launchOnApple()
            StandInAppAttest.fail(code, code, code)
            _ = try? await sdk.registerDevice(appID: Phone.app)
            #expect(try await sdk.identity(Phone.app).context.ledger.load().attestationKey == nil)
            StandInAppAttest.fail()
            let before = StandInAppAttest.generated
            #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
            #expect(StandInAppAttest.generated == before + 1)
        }

        // MARK: The runtime's keys

        @Test("a runtime key keeps the domain and the code of Apple's error")
        func runtimeKeys() throws {
            let store = RuntimeKeyStore(pause: {})
            let alias = KeyAlias.foreign("synheart_device_1")
            let old = try SecureEnclave.P256.Signing.PrivateKey()
            StandInKeychain.put(old.restoredRepresentation, service: RuntimeKeyStore.service, account: "1")
            let restored = #expect(throws: KeyStoreError.self) { try store.sign([1], with: alias) }
            #expect(restored?.status == -3 && restored?.reason.contains("-536870203") == true)
            StandInKeychain.put(old.dataRepresentation, service: RuntimeKeyStore.service, account: "1")
            SecureEnclave.failSigning(
                NSError(domain: "CryptoTokenKit", code: -3, userInfo: ["AKSError": NSNumber(value: -536_362_999)]))
            let dead = #expect(throws: KeyStoreError.self) { try store.sign([1], with: alias) }
            #expect(dead?.code == .invalidated)
            SecureEnclave.failSigning(NSError(domain: NSOSStatusErrorDomain, code: -25308))
            let locked = #expect(throws: KeyStoreError.self) { try store.sign([1], with: alias) }
            #expect(locked?.code == .unavailable)
            SecureEnclave.failSigning(nil)
            _ = try store.sign([1], with: alias)
        }
    }
}
