import AppAttest
import Foundation

private let verifier = ReceiptVerifier(policy: .stored)
private let expectations: ReceiptExpectations? = {
    guard let app = AppleAppID("TEAMID1234.com.example.app"), let keyID = KeyID([UInt8](repeating: 0, count: 32))
    else { return nil }
    return ReceiptExpectations(appIDs: [app], keyID: keyID, clientDataHash: nil, environment: .production)
}()

/// No input may verify as a receipt of a key id of zeros.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let expectations else { return 0 }
    let receipt = try? verifier.verify(bytes, against: expectations, at: Date(timeIntervalSince1970: 1_776_795_192))
    precondition(receipt == nil, "verified")
    return 0
}
