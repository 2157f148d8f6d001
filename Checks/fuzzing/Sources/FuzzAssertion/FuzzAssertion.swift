import AppAttest
import Crypto

private let verifier: AssertionVerifier? = AppleAppID("TEAMID1234.com.example.app").map { app in
    AssertionVerifier(policy: AppAttestPolicy(appIDs: [app]))
}
private let publicKey = P256.Signing.PrivateKey().publicKey

/// No input may verify, because the fuzzer does not have the private key.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let verifier, let object = try? AssertionObject(parsing: bytes) else { return 0 }
    let assertion = try? verifier.verify(
        object, clientDataHash: ClientDataHash([]), publicKey: publicKey, attestedExtensions: false, previousCounter: 0)
    precondition(assertion == nil, "verified")
    return 0
}
