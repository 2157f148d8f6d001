/// The App Attest environment of a key: which of Apple's two servers attested the key.
///
/// It does not depend on how the app was signed: an app that is signed for development can have a key of the production
/// environment.
public enum AttestEnvironment: String, Sendable, Hashable, CaseIterable {
    /// AAGUID `appattestdevelop`; `sandbox` in receipts.
    case development
    /// AAGUID `appattest` and seven zero octets; `production` in receipts.
    case production

    init?(aaguid: some Collection<UInt8>) {
        if aaguid.elementsEqual("appattestdevelop".utf8) {
            self = .development
        } else if aaguid.elementsEqual(Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)) {
            self = .production
        } else {
            return nil
        }
    }

    /// The word that field 7 of a receipt uses.
    public var receiptName: String {
        switch self {
        case .development: "sandbox"
        case .production: "production"
        }
    }
}
