/// The known formats of attestation objects.
package enum AttestationFormats {
    /// Every format. To add one, write a type and list it here.
    package static let all: [any AttestationFormat] = [
        AppAttestAttestationFormat(),
        AppAttestAssertionFormat(),
        AppAttestReceiptFormat(),
        AndroidKeyAttestationFormat(),
        PlayIntegrityFormat(),
    ]

    /// The format with this name; nil for an unknown one.
    package static func named(_ name: String) -> (any AttestationFormat)? {
        all.first { type(of: $0).name == name }
    }
}
