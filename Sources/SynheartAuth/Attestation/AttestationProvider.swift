public import AuthContract

/// Asks the device's maker to vouch for the app and a key: App Attest, Play Integrity, Android Key Attestation.
public protocol AttestationProvider: Sendable {
    /// Which of the two the service has to ask.
    var platform: Platform { get }

    /// Makes what must outlive the process before it is used, such as App Attest's key id; nil where there is nothing.
    ///
    /// The SDK persists the handle, hands it to `attest`, and keeps it for assertions.
    func makeHandle() async throws(AttestationError) -> String?

    /// Attests a key. The SDK waits 30 seconds for each call of a provider, then cancels its task and fails the operation.
    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence

    /// Signs 32 bytes with an attested handle (App Attest's assertion); platforms without one refuse.
    func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8]
}

extension AttestationProvider {
    /// Nothing has to be persisted.
    public func makeHandle() async throws(AttestationError) -> String? { nil }

    /// There are no assertions here.
    public func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        throw AttestationError(.unsupported, reason: "no assertions on this platform")
    }
}

/// What is to be attested.
public struct AttestationSubject: Sendable {
    /// The app.
    public let appID: AppID
    /// The decoded challenge.
    public let challenge: [UInt8]
    /// What the provider signs: App Attest's clientDataHash, Play Integrity's nonce.
    public let bindingNonce: BindingNonce
    /// The key.
    public let publicKey: DevicePublicKey
    /// The key's name in the key store, for providers that attest the key itself.
    public let alias: KeyAlias
    /// What `makeHandle` gave.
    public let handle: String?

    /// A subject of its parts.
    public init(
        appID: AppID, challenge: [UInt8], bindingNonce: BindingNonce, publicKey: DevicePublicKey, alias: KeyAlias,
        handle: String?
    ) {
        self.appID = appID
        self.challenge = challenge
        self.bindingNonce = bindingNonce
        self.publicKey = publicKey
        self.alias = alias
        self.handle = handle
    }
}

/// What the provider said. Never persisted, never logged.
public struct AttestationEvidence: Sendable {
    /// iOS: base64 of the attestation object; Android: the Play Integrity token.
    public let proof: String?
    /// Android Key Attestation: DER certificates, leaf first.
    public let keyAttestation: [[UInt8]]?

    /// Evidence.
    public init(proof: String?, keyAttestation: [[UInt8]]? = nil) {
        self.proof = proof
        self.keyAttestation = keyAttestation
    }
}

/// Why there is no evidence.
public struct AttestationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What it means for the registration.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// This device, build or simulator cannot attest.
        case unsupported
        /// The provider refused.
        case refused
        /// The provider cannot be asked now; the same handle and nonce may be tried again.
        case unavailable
        /// The handle is of no use any more; make a new one.
        case handleInvalid
        /// It did not answer within 30 seconds. Not tried again by the operation that asked.
        case noAnswer
    }

    /// What it means.
    public let code: Code
    /// For logs.
    public let reason: String

    /// An error.
    public init(_ code: Code, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// For logs.
    public var description: String { "\(code.rawValue) \(reason)" }
}

/// Stands where a platform has no attestation and the configuration names none.
struct NoAttestation: AttestationProvider {
    let platform = Platform.ios

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        throw AttestationError(.unsupported, reason: "no attestation provider: name one in Configuration.attestation")
    }
}

#if DEBUG
    /// Development mode, for emulators and CI: compiled out of release builds, as there is no run-time switch. The service
    /// accepts it only for apps of its development or staging channels that allow it.
    public struct DevelopmentAttestation: AttestationProvider {
        /// The platform to pass as.
        public let platform: Platform

        /// Development attestation.
        public init(platform: Platform = .ios) { self.platform = platform }

        /// The fixed proof; the service demands a key proof beside it.
        public func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
            AttestationEvidence(proof: RegisterRequest.developmentProof)
        }
    }
#endif
