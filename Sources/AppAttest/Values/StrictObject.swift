internal import CBOR

/// Parses the CBOR map of an attestation or an assertion.
func readObject(_ bytes: [UInt8], maximumSize: Int) throws(AppAttestError) -> CBORMap {
    guard bytes.count <= maximumSize else {
        throw AppAttestError(.tooLarge, .format, "\(bytes.count) bytes, more than \(maximumSize)")
    }
    let value: CBORValue
    do throws(CBORError) {
        value = try CBORValue(parsing: bytes, limits: .init(bytes: maximumSize, depth: 8))
    } catch {
        throw AppAttestError(.malformedObject, .format, "\(error)")
    }
    guard let map = value.map else { throw AppAttestError(.malformedObject, .format, "not a map") }
    return map
}
