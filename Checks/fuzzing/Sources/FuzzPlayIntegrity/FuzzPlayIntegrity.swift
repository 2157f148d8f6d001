import PlayIntegrity
import StrictJSON

private let keys: [ResponseKeys] = {
    let pair = try? ResponseKeys(
        decryptionKey: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        verificationKey: """
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEDujnY/nDYKuZcDkPPvHi4g5uBUj13QWJrj9oB/fJaLU4TCIcAMvs9TVGNYtAL7z/\
            KOOgdBnEfyzwkXVbGa7jVw==
            """)
    return pair.map { [$0] } ?? []
}()

/// Reads the bytes as a token, as Google's answer and as a policy. Each is accepted or refused without a trap.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    _ = (try? IntegrityToken(String(decoding: bytes, as: UTF8.self)))?.decode(with: keys)
    let policy = PlayIntegrityPolicy(certificateDigests: nil)
    if case .decoded(let verdict) = DecodeOutcome.googleAnswer(status: 200, body: bytes) {
        var expected = PlayIntegrityExpectations()
        expected.packages = verdict.requestPackageName.map { [$0] }
        expected.binding = verdict.nonce.map { .either($0) }
        _ = PlayIntegrityVerifier(policy: policy, packages: []).audit(verdict, against: expected)
    }
    if let fields = try? JSONFields(JSONValue(parsing: bytes)) { _ = try? policy.applying(fields) }
    return 0
}
