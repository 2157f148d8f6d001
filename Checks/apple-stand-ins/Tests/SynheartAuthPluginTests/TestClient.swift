import AuthContract
import Foundation
import Synchronization
import SynheartAuth
import SynheartAuthTestSupport

@testable import synheart_auth

/// `FakeSynheartAuth` with the operations that it lacks, and a gate before `registerDevice`.
final class TestClient: AuthClient {
    let fake = FakeSynheartAuth()
    private let notes = Mutex<[String]>([])
    private let waiting = Mutex<AsyncStream<Void>?>(nil)

    /// The calls until now, with their arguments.
    var calls: [String] { notes.withLock { $0 } }

    /// The stream that registrations wait for; nil: they do not wait.
    var gate: AsyncStream<Void>? {
        get { waiting.withLock { $0 } }
        set { waiting.withLock { $0 = newValue } }
    }

    private func note(_ call: String) { notes.withLock { $0.append(call) } }

    func configure(
        _ settings: Settings, _ customize: (inout SynheartAuth.Configuration) -> Void
    ) throws(SynheartAuthError) {
        _ = try SynheartAuth.Configuration(settings, customize)
        note("configure \(settings.baseUrl)")
    }

    func isRegistered(appID: String) async throws -> Bool {
        note("isRegistered \(appID)")
        return try await fake.isRegistered(appID: appID)
    }

    func registerDevice(appID: String, joins: Bool) async throws -> Registration {
        note("registerDevice \(appID) \(joins)")
        if let gate {
            for await _ in gate { break }
            try Task.checkCancellation()
        }
        return try await fake.registerDevice(appID: appID, joins: joins)
    }

    func getDeviceId(appID: String) async throws -> String? {
        note("getDeviceId \(appID)")
        return try await fake.getDeviceId(appID: appID)
    }

    func state(appID: String) async throws -> IdentityState {
        note("getState \(appID)")
        return try await fake.state(appID: appID)
    }

    func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8>, scheme: SignatureScheme?
    ) async throws -> SignedHeaders {
        note("signRequest \(appID) \(method) \(path) \(Array(bodyBytes)) \(scheme?.rawValue ?? 0)")
        return try await fake.signRequest(
            appID: appID, method: method, path: path, bodyBytes: bodyBytes, scheme: scheme)
    }

    func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, bodyBytes: some Collection<UInt8>,
        asserting: Bool
    ) async throws -> SignedHeaders {
        note("sign \(appID) \(scheme?.rawValue ?? 0) \(method) \(url) \(Array(bodyBytes)) \(asserting)")
        return SignedHeaders([("Signature", "s")])
    }

    func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme?, asserting: Bool
    ) async throws -> TransportResponse {
        let headers = request.headers.lines.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
        note(
            "send \(appID) \(scheme?.rawValue ?? 0) \(request.method) \(request.url) \(headers) \(request.body) "
                + "\(request.deadline) \(request.maximumAnswer) \(asserting)")
        return try await fake.send(request, appID: appID, scheme: scheme, asserting: asserting)
    }

    func deviceToken(appID: String, audience: String?) async throws -> DeviceToken {
        note("deviceToken \(appID) \(audience ?? "-")")
        return try await fake.deviceToken(appID: appID, audience: audience)
    }

    func rotateKey(appID: String, reason: RotationReason) async throws -> KeyRotation {
        note("rotateKey \(appID) \(reason)")
        return try await fake.rotateKey(appID: appID, reason: reason)
    }

    func resetDeviceIdentity(appID: String, reason: ResetReason) async throws {
        note("resetDeviceIdentity \(appID) \(reason)")
        try await fake.resetDeviceIdentity(appID: appID, reason: reason)
    }

    func maintain(appID: String) async throws {
        note("maintain \(appID)")
        try await fake.maintain(appID: appID)
    }

    func correctClockSkew(serverTimestamp: Double, appID: String?) async throws {
        note("correctClockSkew \(serverTimestamp) \(appID ?? "-")")
    }

    var stateChanges: AsyncStream<StateChange> { fake.stateChanges }
}
