internal import CBOR
internal import LenientDER

/// How a device came by the key that signs its attestations.
public enum Provisioning: String, Sendable, Hashable {
    /// In the factory, one key for a batch of devices. Expiry of its certificates means nothing.
    case factory
    /// Remotely, a key of its own for some weeks.
    case remote = "rkp"
    /// By nobody: the key is in Android's sources.
    case software
    /// Neither can be told from the names.
    case unknown
}

extension Provisioning {
    /// Google's way to tell, by the subject of the certificate below the root: `Droid CA2` provisions remotely, a serial
    /// number as a name is a factory's.
    init(_ chain: KeyAttestationChain, rootIsIncluded: Bool) {
        guard let subject = chain.certificates.dropLast(rootIsIncluded ? 1 : 0).last?.subject else {
            self = .unknown
            return
        }
        if subject.values(of: CertificateName.commonName) == ["Droid CA2"],
            subject.values(of: CertificateName.organization) == ["Google LLC"]
        {
            self = .remote
        } else {
            self = subject.values(of: CertificateName.serialNumber).isEmpty ? .unknown : .factory
        }
    }
}

/// What Google's provisioning server noted about a device (extension 1.3.6.1.4.1.11129.2.1.30, CBOR): advice only.
public struct ProvisioningInfo: Sendable, Hashable {
    /// Certificates issued to the device in the last 30 days, roughly; a high number hints at abuse.
    public let certificatesIssued: Int64?
    /// The maker, by its own account.
    public let manufacturer: String?

    /// Nil unless a certificate above the leaf carries the extension in its known form.
    init?(_ chain: KeyAttestationChain) {
        guard let value = chain.issuers.lazy.compactMap({ $0.firstExtension(.provisioningInfo) }).first?.value,
            let map = try? CBORValue(parsing: value).map
        else { return nil }
        certificatesIssued = map[.integer(1)]?.integer
        manufacturer = map[.integer(3)]?.text
    }
}
