import AppAttest
import Crypto
import Foundation

/// Registers devices, and identifies the signer of a request.
public struct Gate: Sendable {
    private let apple: AppleVerifiers?
    private let android: AndroidVerifiers?
    private let challenges = Challenges()
    private let devices = Devices()
    private let now: @Sendable () -> Date

    /// - Parameters:
    ///   - apple: the verifiers for iPhones; nil: iPhones are refused.
    ///   - android: the verifiers for Android phones; nil: Android phones are refused.
    ///   - now: the clock.
    public init(
        apple: AppleVerifiers?, android: AndroidVerifiers?, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.apple = apple
        self.android = android
        self.now = now
    }

    func challenge() async -> Data { Data(await challenges.issue(at: now())) }

    func register(_ registration: AppleRegistration) async throws(Refusal) -> String {
        guard let apple else { throw Refusal(.attestationRefused, "no iOS app is configured") }
        // Taken before the verification: an attempt uses up its challenge, even if it fails.
        try await challenges.take(Array(registration.challenge), at: now())
        return try await devices.register(try apple.verify(registration, at: now()))
    }

    func register(_ registration: AndroidRegistration) async throws(Refusal) -> String {
        guard let android else { throw Refusal(.attestationRefused, "no Android app is configured") }
        try await challenges.take(Array(registration.challenge), at: now())
        return try await devices.register(try android.verify(registration, at: now()))
    }

    /// Verifies a signed request, and returns the id of the device that signed it.
    func verify(_ request: SignedRequest) async throws(Refusal) -> String {
        try await challenges.take(Array(request.challenge), at: now())
        while true {
            guard let device = await devices.device(request.deviceID) else {
                throw Refusal(.notAuthenticated, "unknown device")
            }
            switch device.key {
            case .keystore(let publicKey):
                guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: request.signature),
                    publicKey.isValidSignature(signature, for: request.message)
                else { throw Refusal(.notAuthenticated, "the signature does not verify") }
                return device.id
            case .appAttest(let publicKey, let attestedExtensions, let counter):
                let assertion = try verify(request, publicKey, attestedExtensions, counter)
                if await devices.advanceCounter(of: device.id, from: counter, to: assertion.counter) {
                    return device.id
                }
            // Another request of the device was faster: verify again, with the counter that it stored.
            }
        }
    }

    private func verify(
        _ request: SignedRequest, _ publicKey: P256.Signing.PublicKey, _ attestedExtensions: Bool, _ counter: UInt32
    ) throws(Refusal) -> VerifiedAssertion {
        guard let apple else { throw Refusal(.notAuthenticated, "no iOS app is configured") }
        let message = request.message
        do {
            // The server built the client data itself, with the challenge that this request used up.
            return try apple.assertions.verify(
                request.signature, clientData: message, challenge: .clientDataIs(message), publicKey: publicKey,
                attestedExtensions: attestedExtensions, previousCounter: counter)
        } catch { throw Refusal(.notAuthenticated, "\(error)") }
    }
}
