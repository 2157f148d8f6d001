internal import Bytes
internal import CBOR
public import Crypto
public import Foundation

extension GoogleAuthority {
    /// The certificates of the roots as PEM, for verifiers that should trust this authority.
    public func rootsPEM(at time: Date = Date(timeIntervalSince1970: 1_700_000_000)) throws -> String {
        Self.pem([try rootCertificate(.factory, at: time), try rootCertificate(.remote, at: time)])
    }

    /// Attests a key as a device does, and returns the chain in DER, leaf first.
    ///
    /// - Parameters:
    ///   - publicKey: the key in the device.
    ///   - challenge: the challenge of the service, at most 128 bytes.
    ///   - time: the time of the attestation. Certificates are valid from a day before it to thirty days after it, unless
    ///     `options.validity` names another range.
    ///   - options: the content of the attestation, and its faults.
    public func attest(
        _ publicKey: P256.Signing.PublicKey, challenge: [UInt8], at time: Date,
        options: KeyAttestationOptions = KeyAttestationOptions()
    ) throws -> [[UInt8]] {
        let description = Self.keyDescription(challenge: challenge, at: time, options: options)
        var links = chainLinks(publicKey, description, options)
        if let extended = options.extendsBelowLeaf {
            links.insert(
                Link(
                    name: [.commonName("Android Keystore Key")],
                    publicKey: try AuthorityKey.p256().subjectPublicKeyInfo,
                    signer: extended.privateKey,
                    extensions: extended.hasKeyDescription ? [.keyDescription(description)] : []), at: 0)
        }

        var certificates: [[UInt8]] = []
        for (index, link) in links.enumerated() {
            let issuer = index + 1 < links.count ? links[index + 1].name : link.name
            let validity = options.validity[index] ?? (time - 86_400)...(time + 30 * 86_400)
            let certificate = TestCertificate(
                serialNumber: options.serialNumbers[index] ?? [UInt8(index + 1)], subject: link.name,
                issuer: options.brokenIssuerName == index ? [.commonName("Nobody")] : issuer,
                notBefore: validity.lowerBound, notAfter: validity.upperBound,
                subjectPublicKeyInfo: try link.publicKey ?? link.ownKey.subjectPublicKeyInfo,
                extensions: link.extensions)
            certificates.append(
                try certificate.signed(by: link.signer, isSignatureBroken: options.brokenSignature == index))
        }
        if options.isRootOmitted { certificates.removeLast() }
        if let order = options.order {
            let sent = certificates
            certificates = order.compactMap { sent.indices.contains($0) ? sent[$0] : nil }
        }
        return certificates
    }

    /// Certificates as a PEM text.
    public static func pem(_ certificates: [[UInt8]]) -> String {
        certificates.map { PEM.encode($0, label: "CERTIFICATE") }.joined()
    }

    /// A certificate to create: its subject, its key, and the key that signs it.
    private struct Link {
        let name: [TestCertificate.Attribute]
        /// The key of a leaf, if only its public half is known.
        var publicKey: [UInt8]?
        var ownKey: AuthorityKey
        let signer: AuthorityKey
        let extensions: [TestCertificate.Extension]

        init(
            name: [TestCertificate.Attribute], publicKey: [UInt8], signer: AuthorityKey,
            extensions: [TestCertificate.Extension]
        ) {
            (self.name, self.publicKey, self.ownKey) = (name, publicKey, signer)
            (self.signer, self.extensions) = (signer, extensions)
        }

        init(
            name: [TestCertificate.Attribute], key: AuthorityKey, signer: AuthorityKey,
            extensions: [TestCertificate.Extension]
        ) {
            (self.name, self.ownKey, self.signer, self.extensions) = (name, key, signer, extensions)
        }
    }

    private func chainLinks(
        _ publicKey: P256.Signing.PublicKey, _ description: [UInt8], _ options: KeyAttestationOptions
    ) -> [Link] {
        let leafExtensions =
            [
                TestCertificate.Extension(
                    identifier: [2, 5, 29, 15], critical: options.criticalOctet,
                    value: DERWriter.bitString([0x80], unusedBits: 7))
            ]
            + (options.hasKeyDescription ? [.keyDescription(description)] : [])
        let leaf = Link(
            name: [.commonName("Android Keystore Key")], publicKey: Array(publicKey.derRepresentation),
            signer: attestation, extensions: leafExtensions)

        let issuerExtensions: [TestCertificate.Extension] =
            options.areIssuersMarked
            ? [.basicConstraints(isAuthority: true), .keyUsageForCertificates]
            : [.basicConstraints(isAuthority: false), .keyUsageForSignatures]
        let repeated = options.isKeyDescriptionRepeated ? [TestCertificate.Extension.keyDescription(description)] : []
        let home = (options.certifiedSecurityLevel ?? options.attestationSecurityLevel) == 2 ? "StrongBox" : "TEE"
        let lookAlike: AuthorityKey? = options.isRootLookAlike ? .p384() : nil

        switch options.provisioning {
        case .factory:
            let root = lookAlike ?? factoryRoot
            return [
                leaf,
                Link(
                    name: [.serialNumber("90e8da3cadfc7820"), .title(home)], key: attestation,
                    signer: factoryIntermediate, extensions: issuerExtensions + repeated),
                Link(
                    name: [.serialNumber("ccd18b9b608d658e"), .title(home)], key: factoryIntermediate, signer: root,
                    extensions: issuerExtensions),
                Link(name: rootName(.factory), key: root, signer: root, extensions: issuerExtensions),
            ]
        case .remote, .remoteUnderFactoryRoot:
            let isFactorys = options.provisioning == .remoteUnderFactoryRoot
            let root = lookAlike ?? (isFactorys ? factoryRoot : remoteRoot)
            let info = CBORValue.map(CBORMap([.init(.integer(1), .integer(8)), .init(.integer(3), .text("Example"))]))
            return [
                leaf,
                Link(
                    name: [.organization(home), .commonName("2c85cdc15c3042f25698906669c35137")], key: attestation,
                    signer: remoteIssuer, extensions: issuerExtensions + [.provisioningInfo(info.encoded)] + repeated),
                Link(
                    name: [.organization("Google LLC"), .commonName("Droid CA3")], key: remoteIssuer,
                    signer: remoteIntermediate, extensions: issuerExtensions),
                Link(
                    name: [.organization("Google LLC"), .commonName("Droid CA2")], key: remoteIntermediate,
                    signer: root, extensions: issuerExtensions),
                Link(
                    name: rootName(isFactorys ? .factory : .remote), key: root, signer: root,
                    extensions: issuerExtensions),
            ]
        }
    }

    func rootName(_ provisioning: KeyAttestationOptions.Provisioning) -> [TestCertificate.Attribute] {
        switch provisioning {
        case .factory, .remoteUnderFactoryRoot: [.serialNumber("0123456789abcdef")]
        case .remote: [.commonName("Key Attestation Test CA1"), .organization("Example")]
        }
    }

    func rootCertificate(
        _ provisioning: KeyAttestationOptions.Provisioning, at time: Date
    ) throws -> [UInt8] {
        let key = provisioning == .factory ? factoryRoot : remoteRoot
        let name = rootName(provisioning)
        return try TestCertificate(
            serialNumber: [0x01], subject: name, issuer: name, notBefore: time - 86_400,
            notAfter: time + 3650 * 86_400, subjectPublicKeyInfo: key.subjectPublicKeyInfo,
            extensions: [.basicConstraints(isAuthority: true), .keyUsageForCertificates]
        )
        .signed(by: key)
    }
}
