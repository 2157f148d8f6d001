import AppAttest
import Foundation

private let verifier: AttestationVerifier? = AppleAppID("TEAMID1234.com.example.app").map { app in
    AttestationVerifier(policy: AppAttestPolicy(appIDs: [app], environments: [.production, .development]))
}
private let keyID = KeyID([UInt8](repeating: 0, count: 32))

/// No input may verify as an attestation of a key id of zeros.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let verifier, let keyID else { return 0 }
    let hash = ClientDataHash(hashing: bytes)
    let date = Date(timeIntervalSince1970: 1_776_795_192)
    let attestation = try? verifier.verify(bytes, keyID: keyID, clientDataHash: hash, at: date)
    precondition(attestation == nil, "verified")
    return 0
}
