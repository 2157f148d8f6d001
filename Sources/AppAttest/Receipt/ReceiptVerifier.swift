internal import Bytes
public import Foundation

/// Verifies receipts, separately from attestations: a failed receipt never invalidates its attestation.
public struct ReceiptVerifier: Sendable {
    /// The limits for a receipt's times.
    public struct Policy: Sendable, Hashable {
        /// The age, in seconds since creation, up to which a receipt is fresh: by default 5 minutes, as Apple recommends. Use
        /// nil for stored receipts: then neither age nor expiration is checked.
        public var maximumAge: TimeInterval?
        /// Seconds by which a receipt may be dated in the future, because the clocks of Apple's server and this server may differ.
        public var clockLeeway: TimeInterval

        /// A policy for fresh receipts.
        public init(maximumAge: TimeInterval? = 300, clockLeeway: TimeInterval = 60) {
            self.maximumAge = maximumAge
            self.clockLeeway = clockLeeway
        }

        /// A policy for stored receipts of any age, expired ones included.
        public static let stored = Policy(maximumAge: nil)
    }

    /// The limits for times. Copies of a verifier share the cache of intermediates, even if their policies differ.
    public var policy: Policy
    private let steps: ReceiptSteps

    /// A verifier for a policy; `trustAnchors` other than Apple's are for tests.
    public init(policy: Policy = Policy(), trustAnchors: TrustAnchors = .apple) {
        self.policy = policy
        self.steps = ReceiptSteps(trustAnchors: trustAnchors)
    }

    /// Verifies a receipt, and compares it with the attested key.
    ///
    /// - Parameters:
    ///   - bytes: the receipt, at most 16 KiB.
    ///   - expected: the values of the attestation.
    ///   - date: the time of the check. The chain is judged at the receipt's creation, because a signer's certificate is
    ///     valid for only a year.
    public func verify(
        _ bytes: some Collection<UInt8>, against expected: ReceiptExpectations, at date: Date
    ) throws(AppAttestError) -> VerifiedReceipt {
        let receipt = try Receipt(parsing: bytes)
        var known = AppAttestExpectations()
        known.appIDs = expected.appIDs
        known.keyID = expected.keyID
        known.clientDataHash = expected.clientDataHash
        known.environments = [expected.environment]
        known.date = date
        var log = StepLog<AppAttestError>()
        try prove(receipt, known, &log)
        return VerifiedReceipt(bytes: Array(bytes), fields: receipt.fields)
    }

    /// Runs the steps up to the first that fails, as far as `expected` has values for them, and returns their outcomes.
    public func audit(
        _ bytes: some Collection<UInt8>, against expected: AppAttestExpectations
    ) -> AppAttestAudit<Receipt> {
        let missing: [(AppAttestError.Step, Bool)] = [
            (.appID, expected.appIDs == nil), (.publicKey, expected.keyID == nil),
            (.clientDataHash, expected.clientDataHash == nil), (.environment, expected.environments == nil),
            (.times, expected.date == nil),
        ]
        return AppAttestAudit(
            unchecked: missing.filter(\.1).map(\.0), try Receipt(parsing: bytes)
        ) { receipt, log throws(AppAttestError) in
            try prove(receipt, expected, &log)
        }
    }

    /// Runs the steps in order up to the first that fails, and logs each. A step without an expected value is logged as skipped.
    private func prove(
        _ receipt: Receipt, _ expected: AppAttestExpectations, _ log: inout StepLog<AppAttestError>
    ) throws(AppAttestError) {
        try log.check(.signature, try steps.verifySignature(receipt))
        try log.check(.certificateChain, try steps.verifyCertificateChain(receipt))
        if let appIDs = expected.appIDs {
            try log.check(.appID, try steps.verifyAppID(receipt, appIDs))
        } else {
            log.skip(.appID, "no App ID is given")
        }
        if let keyID = expected.keyID {
            try log.check(.publicKey, try steps.verifyPublicKey(receipt, keyID))
        } else {
            log.skip(.publicKey, "no key is given")
        }
        if let clientDataHash = expected.clientDataHash {
            try log.check(.clientDataHash, try steps.verifyClientDataHash(receipt, clientDataHash))
        } else {
            log.skip(.clientDataHash, "no client data hash is given")
        }
        if let environments = expected.environments {
            try log.check(.environment, try steps.verifyEnvironment(receipt, environments))
        } else {
            log.skip(.environment, "no environment is given")
        }
        if let date = expected.date {
            try log.check(.times, try steps.verifyTimes(receipt, policy, at: date))
        } else {
            log.skip(.times, "no time is given")
        }
    }
}

/// The values that a receipt must match.
public struct ReceiptExpectations: Sendable {
    /// The App IDs that are allowed.
    public var appIDs: Set<AppleAppID>
    /// The id of the attested key.
    public var keyID: KeyID
    /// The client data hash that was attested, for a receipt from an attestation; nil: not compared. Pass nil for a
    /// receipt from an exchange: Apple's server reads the hash as UTF-8 text, and writes replacement characters for
    /// bytes that are not UTF-8.
    public var clientDataHash: ClientDataHash?
    /// The environment of the attested key.
    public var environment: AttestEnvironment

    /// The values that were stored when the key was attested.
    public init(appIDs: Set<AppleAppID>, keyID: KeyID, clientDataHash: ClientDataHash?, environment: AttestEnvironment)
    {
        self.appIDs = appIDs
        self.keyID = keyID
        self.clientDataHash = clientDataHash
        self.environment = environment
    }

    /// The values that a receipt of this attestation must have.
    public init(of attestation: VerifiedAttestation) {
        self.init(
            appIDs: [attestation.appID], keyID: attestation.keyID, clientDataHash: attestation.clientDataHash,
            environment: attestation.environment)
    }
}

/// A receipt that passed every check. Only ``ReceiptVerifier`` makes one.
public struct VerifiedReceipt: Sendable {
    /// The receipt. Store it to exchange it later, but not before ``ReceiptFields/notBefore`` if the receipt has this field.
    public let bytes: [UInt8]
    /// The fields of the receipt.
    public let fields: ReceiptFields
}
