public import Crypto
public import Foundation

/// A certificate of a custom path, such as a path that an attacker extends below a genuine key, or one of a shape that Google never
/// issued. ``GoogleAuthority/sign(_:under:includesRoot:at:)`` signs the certificate, so its signature is valid unless
/// `isSignatureBroken` is set.
public struct KeyAttestationCertificate: Sendable {
    /// The key that a certificate holds. It also signs the certificate before this one in the path.
    public enum Key: Sendable {
        /// The key that signs attestations on a device. The authority has one for all devices.
        case attestation
        /// The key of a factory's intermediate certificate.
        case factoryIntermediate
        /// The key of `Droid CA3`, which signs remotely provisioned attestation certificates.
        case droidCA3
        /// The key of `Droid CA2`, which signs `Droid CA3`.
        case droidCA2
        /// Another key.
        case privateKey(P256.Signing.PrivateKey)
        /// A key without a known private half, which signs nothing.
        case publicKey(P256.Signing.PublicKey)
    }

    /// One attribute of a name.
    public enum Attribute: Sendable, Hashable {
        /// CN.
        case commonName(String)
        /// O.
        case organization(String)
        /// The serialNumber in a name. It is not the serial number of the certificate.
        case serialNumber(String)
        /// title.
        case title(String)
    }

    /// One extension.
    public struct Extension: Sendable, Hashable {
        /// The arcs of the extension's object identifier.
        public var identifier: [UInt64]
        /// The content of the extension's OCTET STRING.
        public var value: [UInt8]

        /// An extension that is not critical.
        ///
        /// - Parameters:
        ///   - identifier: two arcs or more.
        ///   - value: the content of its OCTET STRING.
        public init(_ identifier: [UInt64], _ value: [UInt8]) {
            self.identifier = identifier
            self.value = value
        }

        /// The key description, 1.3.6.1.4.1.11129.2.1.17.
        public static func keyDescription(_ value: [UInt8]) -> Extension {
            Extension([1, 3, 6, 1, 4, 1, 11129, 2, 1, 17], value)
        }

        /// The information of Google's provisioning server, 1.3.6.1.4.1.11129.2.1.30, CBOR.
        public static func provisioningInfo(_ value: [UInt8]) -> Extension {
            Extension([1, 3, 6, 1, 4, 1, 11129, 2, 1, 30], value)
        }

        /// The extension of a protected virtual machine's certificates, 1.3.6.1.4.1.11129.2.1.29.1.
        public static let virtualMachine = Extension([1, 3, 6, 1, 4, 1, 11129, 2, 1, 29, 1], [0x30, 0x00])
    }

    /// The name of the certificate.
    public var subject: [Attribute]
    /// The certified key.
    public var key: Key
    /// The extensions, in this order.
    public var extensions: [Extension]
    /// The name of the issuer; nil: the name of the certificate whose key signs this one.
    public var issuer: [Attribute]?
    /// The content of the INTEGER for the serial number.
    public var serialNumber: [UInt8] = [0x01]
    /// The validity; nil: from a day before to thirty days after the time of issue.
    public var validity: ClosedRange<Date>?
    /// Whether the signature is invalid.
    public var isSignatureBroken = false

    /// Memberwise initializer.
    public init(_ subject: [Attribute], key: Key, extensions: [Extension] = []) {
        self.subject = subject
        self.key = key
        self.extensions = extensions
    }

    /// The certificate of an attested key.
    public static func leaf(_ key: Key, keyDescription: [UInt8]) -> KeyAttestationCertificate {
        KeyAttestationCertificate(
            [.commonName("Android Keystore Key")], key: key, extensions: [.keyDescription(keyDescription)])
    }

    /// The certificate that a factory gives to the key that signs attestations.
    public static func factoryAttestation(title: String, key: Key = .attestation) -> KeyAttestationCertificate {
        KeyAttestationCertificate([.serialNumber("90e8da3cadfc7820"), .title(title)], key: key)
    }

    /// A factory's intermediate.
    public static let factoryIntermediate = KeyAttestationCertificate(
        [.serialNumber("ccd18b9b608d658e"), .title("TEE")], key: .factoryIntermediate)

    /// The certificate that `Droid CA3` gives to a key that signs attestations. The organization is `TEE`, `StrongBox`, or `AVF`
    /// for a virtual machine.
    public static func remoteAttestation(
        organization: String, key: Key = .attestation, extensions: [Extension] = []
    ) -> KeyAttestationCertificate {
        KeyAttestationCertificate(
            [.organization(organization), .commonName("2c85cdc15c3042f25698906669c35137")], key: key,
            extensions: extensions)
    }

    /// `Droid CA3`.
    public static let droidCA3 = KeyAttestationCertificate(
        [.organization("Google LLC"), .commonName("Droid CA3")], key: .droidCA3)

    /// `Droid CA2`.
    public static let droidCA2 = KeyAttestationCertificate(
        [.organization("Google LLC"), .commonName("Droid CA2")], key: .droidCA2)
}

extension GoogleAuthority {
    /// The roots of the authority.
    public enum Root: Sendable {
        /// The root that signs for factories. Its name is a serial number.
        case factory
        /// The root of remote provisioning.
        case remote
    }

    /// The error of a path in which a key must sign, but only its public half is known.
    public struct SignerHasNoPrivateKey: Error {}

    /// Signs a custom path, and returns it in DER, in the given order: each certificate is signed by the key of the next, the
    /// last by a root.
    ///
    /// - Parameters:
    ///   - path: the certificates below the root, the leaf first.
    ///   - root: the root that signs the last of them.
    ///   - includesRoot: whether the root's certificate is the last one returned.
    ///   - time: the time of issue.
    /// - Throws: ``SignerHasNoPrivateKey``, and the errors of Crypto.
    public func sign(
        _ path: [KeyAttestationCertificate], under root: Root, includesRoot: Bool = true, at time: Date
    ) throws -> [[UInt8]] {
        let provisioning: KeyAttestationOptions.Provisioning = root == .factory ? .factory : .remote
        let rootKey = root == .factory ? factoryRoot : remoteRoot
        var encodings: [[UInt8]] = []
        for (index, certificate) in path.enumerated() {
            let next = index + 1 < path.count ? path[index + 1] : nil
            let signer = if let next { signingKey(next.key) } else { rootKey as AuthorityKey? }
            guard let signer else { throw SignerHasNoPrivateKey() }
            let issuer = (certificate.issuer ?? next?.subject)?.map(\.attribute) ?? rootName(provisioning)
            let validity = certificate.validity ?? (time - 86_400)...(time + 30 * 86_400)
            let template = TestCertificate(
                serialNumber: certificate.serialNumber, subject: certificate.subject.map(\.attribute), issuer: issuer,
                notBefore: validity.lowerBound, notAfter: validity.upperBound,
                subjectPublicKeyInfo: try subjectPublicKeyInfo(certificate.key),
                extensions: certificate.extensions.map { .init(identifier: $0.identifier, value: $0.value) })
            encodings.append(try template.signed(by: signer, isSignatureBroken: certificate.isSignatureBroken))
        }
        return includesRoot ? encodings + [try rootCertificate(provisioning, at: time)] : encodings
    }

    /// The content of the attestation extension that a device writes with these options.
    public static func keyDescription(
        challenge: [UInt8], at time: Date, options: KeyAttestationOptions = KeyAttestationOptions()
    ) -> [UInt8] {
        options.keyDescription ?? KeyDescriptionWriter(options: options, challenge: challenge, time: time).encoded
    }

    private func signingKey(_ key: KeyAttestationCertificate.Key) -> AuthorityKey? {
        switch key {
        case .attestation: attestation
        case .factoryIntermediate: factoryIntermediate
        case .droidCA3: remoteIssuer
        case .droidCA2: remoteIntermediate
        case .privateKey(let key): .p256(key.rawRepresentation)
        case .publicKey: nil
        }
    }

    private func subjectPublicKeyInfo(_ key: KeyAttestationCertificate.Key) throws -> [UInt8] {
        if case .publicKey(let key) = key { return Array(key.derRepresentation) }
        return try signingKey(key)?.subjectPublicKeyInfo ?? []
    }
}

extension KeyAttestationCertificate.Attribute {
    fileprivate var attribute: TestCertificate.Attribute {
        switch self {
        case .commonName(let text): .commonName(text)
        case .organization(let text): .organization(text)
        case .serialNumber(let text): .serialNumber(text)
        case .title(let text): .title(text)
        }
    }
}
