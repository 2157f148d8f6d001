import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// signRequest, and what happens when a key is lost.
@Suite struct SigningTests {
    @Test("a signed request has the six headers")
    func headers() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let headers = try await sdk.signRequest(
            appID: Phone.app, method: "post", path: "/v1/hsi", bodyBytes: Array("{\"a\":1}".utf8))
        #expect(
            headers.fields.map(\.name) == [
                "X-App-ID", "X-Device-ID", "X-Synheart-Signature", "X-Synheart-Timestamp", "X-Synheart-Nonce",
                "X-Synheart-Sig-Version",
            ])
        #expect(headers.dictionary["X-App-ID"] == Phone.app && headers.dictionary["X-Device-ID"] == id)
        let read = try SchemeOneHeaders(HeaderFields(headers.fields.map { ($0.name, $0.value) }))
        let message = Array("POST\n/v1/hsi\n\(read.timestamp)\n{\"a\":1}".utf8)
        let key = try #require(await phone.service.devices.first?.key)
        #expect(read.signature.isValid(for: message, by: key))
    }

    @Test("signing uses no network and a new nonce each time")
    func nonces() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let before = await phone.network.messages
        var nonces: Set<String> = []
        for _ in 0..<100 {
            let headers = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            nonces.insert(try #require(headers.dictionary["X-Synheart-Nonce"]))
        }
        #expect(nonces.count == 100)
        #expect(await phone.network.messages == before)
    }

    @Test(
        "a path that two servers could read differently is refused",
        arguments: ["", "v1", "/a?b", "/a#b", "/a b", "/é", "/../a", "/%2e%2e/a", "https://x/"])
    func paths(path: String) async throws {
        let (_, sdk, _) = try await Phone.registered()
        await expectError(.signingFailed) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: path) }
    }

    @Test("a malformed method is refused", arguments: ["", "GET\n/other", "GE T", "GET\r", "ПОСТ", "P0ST", "A_B"])
    func methods(method: String) async throws {
        let (_, sdk, _) = try await Phone.registered()
        await expectError(.signingFailed) { try await sdk.signRequest(appID: Phone.app, method: method, path: "/") }
    }

    @Test(
        "requests that only the SDK may sign are refused in every spelling",
        arguments: [
            ("POST", "/auth/v1/device/rotate-key"), ("post", "/auth/v1/device/rotate-key"),
            ("POST", "/auth/v1/device/rotate-key/"), ("POST", "//auth/v1/device/rotate%2Dkey"),
            ("POST", "/AUTH/v1/device/Rotate-Key"), ("DELETE", "/auth/v1/device"), ("delete", "/auth/v1/device/"),
            ("POST", "/auth/v1/device/rotate-key%0A"), ("POST", "//x/auth/v1/device/rotate-key"),
            ("POST", "/auth/v1/device/rotate-key;x"), ("DELETE", "/auth/v1/device%20"), ("DELETE", "/auth%2Fv1/device"),
        ])
    func reserved(method: String, path: String) async throws {
        let (_, sdk, _) = try await Phone.registered()
        await expectError(.signingFailed) { try await sdk.signRequest(appID: Phone.app, method: method, path: path) }
    }

    @Test(
        "requests that only look like the reserved ones are signed",
        arguments: [
            ("GET", "/auth/v1/device/rotate-key"), ("DELETE", "/auth/v1/device/rotate-key"),
            ("POST", "/auth/v1/device"),
            ("GET", "/auth/v1/device"), ("PUT", "/auth/v1/device"), ("POST", "/auth/v1/device/rotate-keys"),
            ("POST", "/v1/auth/v1/device/rotate-key"), ("DELETE", "/auth/v1/devices"), ("DELETE", "/auth/v1/device/1"),
            ("DELETE", "/auth/v1"), ("DELETE", "/"), ("POST", "/auth/v1/device/rotate%252Dkey"),
            ("DELETE", "/v1/devices%2F1"), ("POST", "/v1/a;b"),
        ])
    func notReserved(method: String, path: String) async throws {
        let (_, sdk, _) = try await Phone.registered()
        #expect(try await sdk.signRequest(appID: Phone.app, method: method, path: path).fields.count == 6)
        let url = FakeService.origin + path
        let headers = try await sdk.sign(appID: Phone.app, method: method, url: url)
        #expect(headers.dictionary["X-Synheart-Signature"] != nil)
    }

    @Test(
        "a malformed method or a reserved request is refused first, under either scheme",
        arguments: SignatureScheme.allCases)
    func refusedFirst(scheme: SignatureScheme) async throws {
        let sdk = try Phone().launch { $0.scheme = scheme }
        for (method, route) in [("GE T", Route.status), ("", .status), ("POST", .rotateKey), ("delete", .device)] {
            await expectError(.signingFailed) {
                try await sdk.sign(
                    appID: Phone.app, method: method, url: FakeService.origin + route.rawValue
                ).fields.count
            }
        }
        await expectError(.notRegistered) {
            try await sdk.sign(appID: Phone.app, method: "GET", url: FakeService.origin).fields.count
        }
    }

    @Test("a pending device is told that it is not approved, an unknown one to register")
    func whyNotRegistered() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        func message() async -> String? {
            await expectError(.notRegistered) {
                try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            }?.message
        }
        #expect(await message() == "call registerDevice first")
        await phone.service.set { $0.decision = .pending }
        try await sdk.registerDevice(appID: Phone.app)
        #expect(await message() == "the service has not approved this device yet")
    }

    @Test(
        "under scheme 2 a key store's failure is the same error as under scheme 1",
        arguments: [
            (KeyStoreError.Code.notFound, SynheartAuthError.Code.keystoreError), (.invalidated, .keyInvalidated),
            (.unavailable, .keystoreError), (.unsupported, .keystoreError),
        ], SignatureScheme.allCases)
    func schemes(
        failure: (code: KeyStoreError.Code, reported: SynheartAuthError.Code), scheme: SignatureScheme
    ) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(failure.code))
        await expectError(failure.reported) {
            try await sdk.sign(appID: Phone.app, method: "GET", url: FakeService.origin).fields.count
        }
        #expect(try (phone.record().state == .keyInvalid) == (failure.reported == .keyInvalidated))
    }

    @Test("an unregistered device gets NOT_REGISTERED")
    func notRegistered() async throws {
        let phone = Phone()
        let error = await expectError(.notRegistered) {
            try await phone.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
        }
        #expect(error?.recovery == .register)
    }

    @Test(
        "a malformed app id is refused", arguments: ["", "a b", "x_next", String(repeating: "a", count: 129), "a/../b"])
    func appIDs(text: String) async throws {
        let phone = Phone()
        await expectError(.notConfigured) { try await phone.launch().isRegistered(appID: text) }
    }

    @Test(
        "an invalidated key leads to keyInvalid and KEY_INVALIDATED",
        arguments: [KeyStoreError(.invalidated, status: -3)])
    func invalidated(failure: KeyStoreError) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(failure)
        let error = await expectError(.keyInvalidated) {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
        }
        #expect(error?.recovery == .register)
        #expect(try phone.record().state == .keyInvalid)
        // The SDK never uses the invalidated key again, even if the key store can sign with it.
        await expectError(.keyInvalidated) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a locked or busy key store is KEYSTORE_ERROR, and the state stays")
    func locked() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(.unavailable, status: -25308))
        let error = await expectError(.keystoreError) {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
        }
        #expect(error?.isRetryable == true)
        #expect(try phone.record().state == .registered)
        phone.keys.fail(KeyStoreError(.unavailable))
        await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
    }

    @Test("another failure of the key store is SIGNING_FAILED, never retried by itself")
    func failed() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.fail(KeyStoreError(.failed))
        await expectError(.signingFailed) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
        #expect(try phone.record().state == .registered && phone.sleeper.retries.isEmpty)
    }

    @Test("a full disk is STORAGE_ERROR, and the record stays")
    func fullDisk() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let before = try phone.record()
        phone.storage.refuseWrites(true)
        await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record() == before)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        phone.storage.refuseWrites(false)
        #expect(try await sdk.rotateKey(appID: Phone.app).deviceId == id)
        let empty = Phone()
        empty.storage.refuseWrites(true)
        await expectError(.storageError) { try await empty.launch().registerDevice(appID: Phone.app) }
        #expect(await empty.service.devices.isEmpty)
    }
}
