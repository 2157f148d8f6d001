internal import AuthContract

/// An app's record together with what is prepared from it once: verifiers, anchors, parsed policies.
public struct ProvisionedApp: Sendable {
    /// The record.
    public let record: AppRecord
    /// Where scheme 2 requests to other services may be sent.
    let authorities: Set<RequestOrigin>

    /// Prepares a record; throws where a part of it cannot be used, such as an anchor that is no certificate.
    init(_ record: AppRecord) throws {
        self.record = record
        authorities = try Set(record.signature.authorities.map { try RequestOrigin(authorityOfApp: $0) })
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

extension RequestOrigin {
    /// Reads an app's authority: `scheme://host[:port]`, or `host[:port]`, which means https.
    init(authorityOfApp text: String) throws(ContractError) {
        if text.contains("://") { try self.init(text) } else { try self.init(scheme: "https", authority: text) }
    }
}
