/// The kinds of evidence that are known.
public enum AttestationFormats {
    /// Every format: to add one, write a type and name it here.
    public static let all: [any AttestationFormat] = [
        AppAttestAttestationFormat(),
        AppAttestAssertionFormat(),
        AppAttestReceiptFormat(),
        AndroidKeyAttestationFormat(),
        PlayIntegrityFormat(),
    ]

    /// The format of this name, nil where there is none.
    public static func named(_ name: String) -> (any AttestationFormat)? {
        all.first { type(of: $0).name == name }
    }
}
