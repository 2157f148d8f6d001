import AndroidKeyAttestation
import StrictJSON

private let verifier = KeyAttestationVerifier(policy: .audit, statusList: nil)

/// Any bytes, as one certificate, as a PEM text and as a status list, give a result or a typed refusal.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let chains = [
        try? KeyAttestationChain(der: [bytes]), try? KeyAttestationChain(pem: String(decoding: bytes, as: UTF8.self)),
    ]
    for chain in chains.compactMap(\.self) {
        _ = chain.quirks
        _ = (try? chain.unverifiedDescription())?.json
        _ = verifier.audit(chain, against: KeyAttestationExpectations())
    }
    _ = (try? RevocationStatusList(parsing: bytes))?.entry(serialNumber: "1")
    return 0
}
