import AuthContract
import Bytes
import CryptoKit
import DeviceCheck
import Foundation
import Security
import StrictJSON
import Testing
import os

@testable import SynheartAuth

/// The SDK with Apple's Keychain, Secure Enclave and App Attest. The stand-ins are shared, so only one test runs at a time.
@Suite(.serialized) struct AppleTests {
    let phone = Phone()

    init() {
        StandInKeychain.reset()
        StandInAppAttest.reset()
        StandInActivity.deny(false)
        SecureEnclave.setAvailable(true)
    }

    private func launch(group: String? = nil) throws -> SynheartAuth { try phone.launchOnApple(group: group) }

    private func signAndVerify() async throws -> Int { try await phone.signAndVerify(launch()).status }

    @Test("every platform case holds with Keychain, Secure Enclave and App Attest", arguments: PlatformCase.all)
    func holds(_ example: PlatformCase) async throws { try await example.run(on: ApplePlatform.self) }

    @Test("an identity survives a relaunch, signs, rotates and resets")
    func wholeSDK() async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        #expect(StandInKeychain.tags == ["synheart_auth_com.example.app"])
        #expect(
            try await launch().registerDevice(appID: Phone.app)
                == Registration(status: .alreadyRegistered, deviceId: id))
        #expect(try await signAndVerify() == 200)
        try await launch().rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(90))
        #expect(StandInKeychain.tags.count == 1)
        #expect(try await signAndVerify() == 200)
        try await launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(StandInKeychain.tags.isEmpty && StandInKeychain.itemCount == 0)
        #expect(StandInKeychain.canaryTags.isEmpty)
    }

    @Test("the defaults are the platform's own parts")
    func defaults() throws {
        let configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.test")
        #expect(configuration.keyStore is SecureEnclaveKeyStore && configuration.storage is KeychainStorage)
        #expect(configuration.attestation is AppAttestProvider && configuration.runningTime is ExpiringActivity)
    }

    @Test("by default log entries go to the unified logging system")
    func systemLogger() throws {
        let configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.test")
        let entry = LogEntry(
            level: .error, event: .operationFailed, appID: try AppID("com.example.logged"), device: nil,
            code: .storageError, transition: nil, duration: nil)
        configuration.logger.log(entry)
        let message = StandInLog.messages.last { $0.text.contains("com.example.logged") }
        #expect(message?.level == .error && message?.text.contains("STORAGE_ERROR") == true)
    }

    // MARK: Wrong answers of the Keychain

    @Test(
        "a Keychain that reports not found at a prewarmed launch does not end the identity",
        arguments: [1, 2, 3, 4, 7, 100])
    func prewarmed(lies: Int) async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        for operation in 0..<3 {
            StandInKeychain.lie(times: lies)
            let sdk = try launch()
            // The call succeeds, or reports that the Keychain cannot be read now.
            do {
                switch operation {
                case 0: #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
                case 1: #expect(try await sdk.isRegistered(appID: Phone.app))
                default: _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
                }
            } catch let error as SynheartAuthError {
                #expect([.storageError, .secureEnclaveError].contains(error.code) && error.isRetryable, "\(error)")
            }
        }
        StandInKeychain.lie(times: 0)
        #expect(try await launch().registerDevice(appID: Phone.app).deviceId == id)
        #expect(try await signAndVerify() == 200)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("a signature that says not found once is made at the next call")
    func signatureNotFoundOnce() async throws {
        try await launch().registerDevice(appID: Phone.app)
        StandInKeychain.failSigning(domain: NSOSStatusErrorDomain, code: Int(errSecItemNotFound), times: 1)
        await expectSuspicion(.secureEnclaveError, on: phone.clock) { try await signAndVerify() }
        #expect(try await signAndVerify() == 200)
    }

    @Test("a wrong access group is NOT_CONFIGURED and names the group")
    func wrongGroup() async throws {
        let error = await expectError(.notConfigured) {
            try await launch(group: "TEAM.wrong").registerDevice(appID: Phone.app)
        }
        #expect(error?.message.contains("TEAM.wrong") == true)
        let store = SecureEnclaveKeyStore(accessGroup: "TEAM.wrong")
        #expect(throws: KeyStoreError.self) { try store.create(.primary(AppID(Phone.app)), challenge: nil) }
    }

    @Test(
        "an identity moves to an access group that the app names later",
        arguments: [["TEAM.shared"], ["TEAM.first", "TEAM.shared"], []])
    func adoptedGroup(sharing: [String]) async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        // The first group of Keychain Sharing is the default group. Without it, the app id's group is the default.
        if let first = sharing.first { StandInKeychain.share(first) }
        StandInKeychain.entitle("TEAM.shared")
        let sdk = try launch(group: "TEAM.shared")
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        try await sdk.rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(90))
        #expect(try await phone.signAndVerify(launch(group: "TEAM.shared")).status == 200)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(StandInKeychain.itemCount == 0 && StandInKeychain.tags.isEmpty)
    }

    @Test("an identity in a group that the configuration does not name stays there")
    func foreignGroup() async throws {
        StandInKeychain.entitle("TEAM.other")
        StandInKeychain.entitle("TEAM.shared")
        let id = try await launch(group: "TEAM.other").registerDevice(appID: Phone.app).deviceId
        let sdk = try launch(group: "TEAM.shared")
        #expect(try await !sdk.isRegistered(appID: Phone.app))
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await launch(group: "TEAM.other").getDeviceId(appID: Phone.app) == id)
        #expect(StandInKeychain.tags.count == 1 && StandInKeychain.itemCount == 2)
        #expect(StandInKeychain.accounts(KeychainCanary.service).allSatisfy { !$0.contains("probe") })
    }

    @Test("the SDK asks for running time while it holds a lock, and gives it back")
    func runningTime() async throws {
        let before = StandInActivity.begunCount
        try await launch().registerDevice(appID: Phone.app)
        try await launch().rotateKey(appID: Phone.app)
        #expect(StandInActivity.begunCount >= before + 2)
        try await eventually { StandInActivity.runningCount == 0 }
    }

    // MARK: The interface for the runtime

    private var runtime: PlatformRuntime {
        PlatformRuntime(
            keyStore: RuntimeKeyStore(pause: {}), attestation: AppAttestProvider(),
            secrets: KeychainSecrets(pause: {}), storage: KeychainStorage(accessGroup: nil),
            logger: phone.logger, pause: { _ in })
    }

    private func isValid(_ signature: String?, _ key: String?, _ message: [UInt8]) throws -> Bool {
        let fields = try JSONFields(JSONValue(parsing: Array((key ?? "").utf8)))
        let point = try ["x", "y"].flatMap { Base64.url.decode(try fields.string($0)) ?? [] }
        let raw = Base64.url.decode(signature ?? "") ?? []
        return try RequestSignature(raw: raw).isValid(for: message, by: DevicePublicKey([4] + point))
    }

    @Test("the runtime uses a key that a deployed SDK made")
    func deployedKey() throws {
        let old = try SecureEnclave.P256.Signing.PrivateKey()
        StandInKeychain.put(
            old.dataRepresentation, service: "ai.synheart.auth.fficrypto", account: "device-1")
        #expect(runtime.keyExists("device-1"))
        let key = runtime.generateKey("device-1")
        #expect(
            key?.contains(Base64.url.encode(Array(old.publicKey.x963Representation.dropFirst().prefix(32)))) == true)
        #expect(try isValid(runtime.signBytes("device-1", [1, 2, 3]), key, [1, 2, 3]))
        #expect(StandInKeychain.tags.isEmpty, "no second key")
        #expect(runtime.deleteKey("device-1") && !runtime.keyExists("device-1"))
    }

    @Test("the runtime makes a key once, attests it with a new App Attest key each time, and deletes it")
    func runtimeKey() throws {
        let key = runtime.generateKey("device-2")
        #expect(key != nil && runtime.generateKey("device-2") == key)
        #expect(try isValid(runtime.signBytes("device-2", [7]), key, [7]))
        for _ in 0..<2 {
            #expect(runtime.getAttestation("device-2", [UInt8](repeating: 1, count: 32)).contains("apple-app-attest"))
        }
        #expect(StandInAppAttest.generated == 2)
        #expect(runtime.deleteKey("device-2") && runtime.deleteKey("device-2") && !runtime.keyExists("device-2"))
    }

    @Test("a deployed key that cannot be read is no key until the runtime deletes it, and the log says why")
    func deployedKeyOfAnotherDevice() throws {
        StandInKeychain.put(Data("restored".utf8), service: "ai.synheart.auth.fficrypto", account: "device-4")
        #expect(runtime.generateKey("device-4") == nil && runtime.signBytes("device-4", [1]) == nil)
        #expect(runtime.keyExists("device-4"), "only a confirmed \"not found\" is 0")
        #expect(phone.logger.entries.contains { $0.level == .error && $0.code == .secureEnclaveError })
        #expect(StandInKeychain.item("ai.synheart.auth.fficrypto", "device-4") == Data("restored".utf8))
        #expect(runtime.deleteKey("device-4") && !runtime.keyExists("device-4"))
        let key = runtime.generateKey("device-4")
        #expect(try isValid(runtime.signBytes("device-4", [1]), key, [1]))
    }

    @Test("a Keychain that cannot be read has all the runtime's keys, and makes none")
    func runtimeLocked() {
        StandInKeychain.setUnlockedSinceBoot(false)
        #expect(runtime.keyExists("device-3") && runtime.generateKey("device-3") == nil)
        #expect(runtime.secureLoad("service", "key") == nil)
        #expect(phone.logger.entries.contains { $0.level == .error })
        StandInKeychain.setUnlockedSinceBoot(true)
        #expect(!runtime.keyExists("device-3"))
    }

    @Test("the runtime finds what deployed apps stored under the same service and key")
    func secrets() {
        StandInKeychain.put(Data("old".utf8), service: "consent_tokens", account: "user")
        #expect(runtime.secureLoad("consent_tokens", "user") == "old")
        #expect(runtime.secureStore("consent_tokens", "user", "new"))
        #expect(StandInKeychain.item("consent_tokens", "user") == Data("new".utf8))
        StandInKeychain.lie(times: 2)
        #expect(runtime.secureLoad("consent_tokens", "user") == "new")
        #expect(runtime.secureDelete("consent_tokens", "user") && runtime.secureDelete("consent_tokens", "user"))
        #expect(runtime.secureLoad("consent_tokens", "user") == nil)
    }

    // MARK: App Attest after a reinstallation

    @Test(
        "after a reinstallation the SDK binds a new App Attest key where the service allows it",
        arguments: [true, false])
    func reinstalled(isInvalidInput: Bool) async throws {
        let id = try await launch().registerDevice(appID: Phone.app).deviceId
        await phone.service.setPolicy {
            $0.assertionPrefixes = [Route.token.rawValue]
            $0.rebinds = true
        }
        if isInvalidInput { StandInAppAttest.failAssertions(.invalidInput) }
        StandInAppAttest.forgetKeys()
        _ = try await launch().deviceToken(appID: Phone.app)
        #expect(try await launch().getDeviceId(appID: Phone.app) == id)
        #expect(try await signAndVerify() == 200)
    }

    @Test("after a reinstallation without a rebind the error calls for a reset, which works")
    func reinstalledWithoutRebind() async throws {
        try await launch().registerDevice(appID: Phone.app)
        await phone.service.setPolicy { $0.assertionPrefixes = [Route.token.rawValue] }
        StandInAppAttest.forgetKeys()
        let sdk = try launch()
        let error = await expectError(.attestationFailed) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .keyLost)
        try await sdk.registerDevice(appID: Phone.app)
        _ = try await sdk.deviceToken(appID: Phone.app)
    }

    @Test("an App Attest key that is gone before it attests is replaced")
    func goneBeforeAttesting() async throws {
        StandInAppAttest.fail(
            .serverUnavailable, .serverUnavailable, .serverUnavailable, .serverUnavailable, .serverUnavailable)
        _ = try? await launch().registerDevice(appID: Phone.app)
        StandInAppAttest.forgetKeys()
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a key that cannot be made is SECURE_ENCLAVE_ERROR with details, and leaves nothing")
    func creationFails() async throws {
        StandInKeychain.failCreation(-26276)
        let error = await expectError(.secureEnclaveError) { try await launch().registerDevice(appID: Phone.app) }
        #expect(error?.message.contains("-26276") == true && error?.isRetryable == false)
        #expect(try await launch().state(appID: Phone.app) == .unregistered)
        StandInKeychain.failCreation(nil)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("attestKey attests a key once")
    func attestedOnce() async throws {
        let provider = AppAttestProvider()
        let handle = try await provider.makeHandle()
        let hash = [UInt8](repeating: 1, count: 32)
        _ = try await DCAppAttestService.shared.attestKey(try #require(handle), clientDataHash: Data(hash))
        await #expect(throws: DCError(.invalidKey)) {
            try await DCAppAttestService.shared.attestKey(try #require(handle), clientDataHash: Data(hash))
        }
        // The SDK never attests an attested key again: after the failed register call, the SDK makes a second key. The third
        // key is the one that the test made above.
        await phone.service.refuse(.register, .internalError)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(StandInAppAttest.generated == 3)
    }

    @Test("without a Secure Enclave registration is ATTESTATION_UNAVAILABLE")
    func noEnclave() async throws {
        SecureEnclave.setAvailable(false)
        await expectError(.attestationUnavailable) { try await launch().registerDevice(appID: Phone.app) }
    }

    @Test("without a Secure Enclave the error names software keys, and with those the device registers")
    func softwareKeysInSimulator() async throws {
        SecureEnclave.setAvailable(false)
        let error = await expectError(.attestationUnavailable) { try await launch().registerDevice(appID: Phone.app) }
        #expect(error?.message.contains("SoftwareKeyStore") == true)
        let folder = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let sdk = try phone.launch { configuration in
            configuration.storage = KeychainStorage(accessGroup: nil)
            configuration.keyStore = SoftwareKeyStore(directory: folder)
        }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("without App Attest registration is ATTESTATION_UNAVAILABLE")
    func unsupported() async throws {
        StandInAppAttest.setSupported(false)
        await expectError(.attestationUnavailable) { try await launch().registerDevice(appID: Phone.app) }
    }

    @Test("featureUnsupported is ATTESTATION_UNAVAILABLE")
    func featureUnsupported() async throws {
        StandInAppAttest.fail(.featureUnsupported)
        await expectError(.attestationUnavailable) { try await launch().registerDevice(appID: Phone.app) }
    }

    @Test("after serverUnavailable the same key and hash are tried again")
    func serverUnavailable() async throws {
        StandInAppAttest.fail(.serverUnavailable, .serverUnavailable)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(StandInAppAttest.generated == 1)
        #expect(Set(StandInAppAttest.clientDataHashes).count == 1)
    }

    @Test("after invalidKey the SDK makes a new App Attest key, once")
    func invalidKey() async throws {
        StandInAppAttest.fail(.invalidKey)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(StandInAppAttest.generated == 2)
    }

    @Test(
        "invalidInput and unknownSystemFailure are tried once more with a new key, then ATTESTATION_FAILED",
        arguments: [DCError.Code.invalidInput, .unknownSystemFailure])
    func refused(code: DCError.Code) async throws {
        StandInAppAttest.fail(code)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(StandInAppAttest.generated == 2, "Apple: discard the key id")
        try await launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        StandInAppAttest.fail(code, code, code)
        await expectError(.attestationFailed) { try await launch().registerDevice(appID: Phone.app) }
    }

    @Test("an attestKey call that hangs is abandoned")
    func hangs() async throws {
        StandInAppAttest.hang(times: 1)
        let task = Task { try await launch().registerDevice(appID: Phone.app) }
        try await eventually { StandInAppAttest.isHanging }
        phone.sleeper.expire()
        _ = try? await task.value
        #expect(try await launch().state(appID: Phone.app) != .registering)
    }

    @Test("the key id is persisted before it attests")
    func persistedBefore() async throws {
        StandInAppAttest.fail(
            .serverUnavailable, .serverUnavailable, .serverUnavailable, .serverUnavailable, .serverUnavailable)
        _ = try? await launch().registerDevice(appID: Phone.app)
        #expect(StandInAppAttest.generated == 1)
        #expect(try await launch().registerDevice(appID: Phone.app).status == .registered)
        #expect(StandInAppAttest.generated == 1)
    }

    @Test("the attested key signs assertions")
    func assertion() async throws {
        try await launch().registerDevice(appID: Phone.app)
        await phone.service.refuse(.token, .assertionRequired)
        let request = TransportRequest(
            method: "POST", url: FakeService.origin + Route.token.rawValue, headers: HeaderFields(),
            body: TokenRequest().bytes)
        #expect(try await launch().send(request, appID: Phone.app).status == 200)
        let sent = try #require(await phone.service.requests.last)
        #expect(sent.headers.values("X-Synheart-Assertion").count == 1)
    }

    @Test("a write that the Keychain refuses is STORAGE_ERROR", arguments: [-25308, -34018, -61])
    func writeRefused(status: Int) throws {
        let storage = KeychainStorage(accessGroup: nil)
        let name = RecordName(try AppID(Phone.app))
        StandInKeychain.fail(OSStatus(status))
        #expect(throws: StorageError.self) { try storage.write([1], to: name) }
        StandInKeychain.fail(OSStatus(status))
        guard case .unavailable(let error) = storage.read(name) else {
            Issue.record("read as absent")
            return
        }
        #expect(error.status == status)
    }

    @Test("a held lock excludes others")
    func locks() throws {
        let name = RecordName(try AppID("com.example.\(UUID().uuidString)"))
        let held = try KeychainStorage().lock(name, for: "operation")
        #expect(held != nil)
        #expect(try KeychainStorage().lock(name, for: "operation") == nil)
        held?.release()
    }
}

/// The stand-ins as a platform under test. Each instance is a new device.
private struct ApplePlatform: PlatformUnderTest {
    let storage: any RecordStorage = KeychainStorage(accessGroup: nil)
    let keyStore: any KeyStore = SecureEnclaveKeyStore(accessGroup: nil)
    let attestation: any AttestationProvider = AppAttestProvider()

    init() {
        StandInKeychain.reset()
        StandInAppAttest.reset()
        SecureEnclave.setAvailable(true)
    }

    var keyCount: Int { StandInKeychain.tags.count }
    var recordCount: Int { StandInKeychain.itemCount }
    var nonces: [[UInt8]] { StandInAppAttest.clientDataHashes.map { Array($0) } }

    func loseKeys() { StandInKeychain.loseKeys() }
    func lockRecords(_ isLocked: Bool) { StandInKeychain.setUnlockedSinceBoot(!isLocked) }
    func refuseWrites(_ isRefusing: Bool) { StandInKeychain.setFull(isRefusing) }

    func failSignatures(_ code: KeyStoreError.Code?) {
        if code == .invalidated {
            return StandInKeychain.failSigning(domain: "CryptoTokenKit", code: -3, enclaveStatus: -536_362_999)
        }
        let status: OSStatus? =
            switch code {
            case .notFound: errSecItemNotFound
            case .unavailable: errSecInteractionNotAllowed
            case .unsupported: errSecUnimplemented
            case nil: nil
            default: errSecParam
            }
        StandInKeychain.failSigning(domain: NSOSStatusErrorDomain, code: status.map { Int($0) })
    }

    func failAttestations(_ codes: [AttestationError.Code]) {
        StandInAppAttest.fail(
            codes.map { code in
                switch code {
                case .unsupported: .featureUnsupported
                case .unavailable: .serverUnavailable
                case .handleInvalid: .invalidKey
                // App Attest has no error for a call that never returns. Tests simulate such a call with `hang`.
                default: .unknownSystemFailure
                }
            })
    }
}
