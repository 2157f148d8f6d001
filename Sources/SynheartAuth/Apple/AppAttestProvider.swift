#if canImport(DeviceCheck)
    public import AuthContract
    internal import DeviceCheck
    internal import Foundation

    /// Attestation by App Attest
    /// ([DCAppAttestService](https://developer.apple.com/documentation/devicecheck/dcappattestservice)).
    public struct AppAttestProvider: AttestationProvider {
        private let bundleID: String?

        /// A provider for this app.
        public init() { self.init(bundleID: Bundle.main.bundleIdentifier) }

        init(bundleID: String?) { self.bundleID = bundleID }

        /// `ios`, on all of Apple's systems.
        public var platform: AttestationPlatform { .ios }

        /// The bundle id, because an app and its extensions have separate App Attest keys.
        public var handleOwner: String? { bundleID }

        /// Makes an App Attest key. Its id is the handle.
        public func makeHandle() async throws(AttestationError) -> String? {
            guard DCAppAttestService.shared.isSupported else {
                throw AttestationError(
                    .unsupported,
                    reason: "App Attest is not supported here; a debug build can use DevelopmentAttestation")
            }
            do {
                return try await DCAppAttestService.shared.generateKey()
            } catch {
                throw Self.failure(error)
            }
        }

        /// Attests the binding nonce. Apple attests each key once. `invalidKey` and `invalidInput` mean that this key cannot be
        /// attested.
        public func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
            guard let handle = subject.handle else { throw AttestationError(.handleInvalid, reason: "no key id") }
            do {
                let object = try await DCAppAttestService.shared.attestKey(
                    handle, clientDataHash: Data(subject.bindingNonce.bytes))
                return AttestationEvidence(proof: object.base64EncodedString())
            } catch {
                throw Self.failure(error)
            }
        }

        /// Signs with an attested key. `invalidKey` and `invalidInput` mean that Apple no longer knows the key, as after a
        /// reinstallation.
        public func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
            do {
                return Array(
                    try await DCAppAttestService.shared.generateAssertion(handle, clientDataHash: Data(clientDataHash)))
            } catch {
                throw Self.failure(error)
            }
        }

        /// Maps a `DCError` code (https://developer.apple.com/documentation/devicecheck/dcerror-swift.struct/code).
        private static func failure(_ error: any Error) -> AttestationError {
            switch error {
            case DCError.featureUnsupported: AttestationError(.unsupported, reason: "featureUnsupported")
            case DCError.invalidKey: AttestationError(.handleInvalid, reason: "invalidKey")
            case DCError.invalidInput: AttestationError(.handleInvalid, reason: "invalidInput")
            case DCError.serverUnavailable: AttestationError(.unavailable, reason: "serverUnavailable")
            default: AttestationError(.refused, reason: "unknownSystemFailure")
            }
        }
    }
#endif
