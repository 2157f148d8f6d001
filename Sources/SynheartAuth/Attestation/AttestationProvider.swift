public import AuthContract

/// Gets evidence for the app and a key from the platform's provider: App Attest, Play Integrity, Android Key Attestation.
public protocol AttestationProvider: Sendable {
    /// The platform that the service checks the evidence for.
    var platform: AttestationPlatform { get }

    /// The owner of the handles, such as a bundle, if only the owner can use them: an app and its extensions have separate App
    /// Attest keys. Nil: every program that shares the record can use them.
    var handleOwner: String? { get }

    /// Makes a handle that must outlive the process, such as App Attest's key id; nil if the provider needs none.
    ///
    /// The SDK persists the handle before it passes it to `attest`, and keeps it for assertions.
    func makeHandle() async throws(AttestationError) -> String?

    /// Attests a key. After 30 seconds the SDK cancels the call's task and fails the operation.
    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence

    /// Signs 32 bytes with an attested handle, as an App Attest assertion. Providers without assertions throw `unsupported`.
    func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8]
}

extension AttestationProvider {
    /// The default: nil. Every program that shares the identity's record can use the handles.
    public var handleOwner: String? { nil }

    /// The default: nil, because the provider needs no handle.
    public func makeHandle() async throws(AttestationError) -> String? { nil }

    /// The default: throws `unsupported`.
    public func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
        throw AttestationError(.unsupported, reason: "no assertions on this platform")
    }
}

/// The key to attest, and what the evidence must cover.
public struct AttestationSubject: Sendable {
    /// The app.
    public let appID: AppID
    /// The decoded challenge.
    public let challenge: [UInt8]
    /// The nonce to attest: App Attest's clientDataHash, Play Integrity's nonce.
    public let bindingNonce: BindingNonce
    /// The key.
    public let publicKey: DevicePublicKey
    /// The key's alias, for providers that attest the key itself.
    public let alias: KeyAlias
    /// The result of `makeHandle`.
    public let handle: String?

    /// Memberwise initializer.
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

/// The evidence of a provider. The SDK never persists or logs it.
public struct AttestationEvidence: Sendable {
    /// iOS: base64 of the attestation object; Android: the Play Integrity token.
    public let proof: String?
    /// Android Key Attestation: DER certificates, leaf first.
    public let keyAttestation: [[UInt8]]?

    /// Memberwise initializer.
    public init(proof: String?, keyAttestation: [[UInt8]]? = nil) {
        self.proof = proof
        self.keyAttestation = keyAttestation
    }
}

/// The failure of a call of an attestation provider.
public struct AttestationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The meaning of the failure for the operation.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// This device, build or simulator cannot attest.
        public static let unsupported = Self(rawValue: "unsupported")
        /// The provider refused.
        public static let refused = Self(rawValue: "refused")
        /// The provider cannot answer now. The SDK may try the same handle and nonce again.
        public static let unavailable = Self(rawValue: "unavailable")
        /// The handle is no longer valid. The SDK makes a new one.
        public static let handleInvalid = Self(rawValue: "handleInvalid")
        /// The provider did not answer within 30 seconds. The operation does not try again.
        public static let noAnswer = Self(rawValue: "noAnswer")

        /// Every code of this version, in the order above.
        public static let allCases: [Self] = [.unsupported, .refused, .unavailable, .handleInvalid, .noAnswer]
    }

    /// The meaning of the failure for the operation.
    public let code: Code
    /// An explanation for logs.
    public let reason: String

    /// Memberwise initializer.
    public init(_ code: Code, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Code and reason, for logs.
    public var description: String { "\(code.rawValue) \(reason)" }
}

/// The provider of a platform without attestation, until the configuration names one.
struct NoAttestation: AttestationProvider {
    let platform = Platform.ios

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        throw AttestationError(.unsupported, reason: "no attestation provider: name one in Configuration.attestation")
    }
}

#if DEBUG
    /// The attestation provider of development mode, for emulators and CI. Release builds do not contain it, and there is
    /// no run-time switch. The service accepts its proof only if the service's record of the app allows development mode
    /// and names the build channel `dev` or `staging`.
    public struct DevelopmentAttestation: AttestationProvider {
        /// The platform to claim.
        public let platform: AttestationPlatform

        /// Memberwise initializer.
        public init(platform: AttestationPlatform = .ios) { self.platform = platform }

        /// Returns the fixed proof of development mode. The service also demands a signature with the key.
        public func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
            AttestationEvidence(proof: RegisterRequest.developmentProof)
        }
    }
#endif
