internal import AuthContract

/// An app's record together with what is prepared from it once: verifiers, anchors, parsed policies.
public struct ProvisionedApp: Sendable {
    /// The record.
    public let record: AppRecord

    /// Prepares a record; throws where a part of it cannot be used, such as an anchor that is no certificate.
    init(_ record: AppRecord) throws {
        self.record = record
    }

    func verify(_ input: EvidenceInput) async throws(Refusal) -> VerifiedEvidence {
        throw Refusal(.invalidAttestation, "nothing yet")
    }

    func verifyAssertion(
        _ object: [UInt8], by evidence: AppAttestEvidence, over message: [UInt8]
    ) throws(Refusal) -> UInt32 {
        throw Refusal(.invalidAssertion, "nothing yet")
    }

    func reattest(
        _ device: DeviceRecord, _ body: RotateKeyRequest, _ key: DevicePublicKey, _ nonce: BindingNonce, at: UnixTime,
        store: any DeviceStore
    ) async throws(Refusal) -> Reattestation {
        throw Refusal(.invalidAttestation, "nothing yet")
    }
}
