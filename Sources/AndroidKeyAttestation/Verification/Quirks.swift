internal import LenientDER

extension KeyAttestationChain {
    /// The quirks of the certificates, and of the key description if it can be parsed.
    public var quirks: [KeyAttestationQuirk] { quirks(try? unverifiedDescription()) }

    func quirks(_ description: KeyDescription?) -> [KeyAttestationQuirk] {
        var quirks: [KeyAttestationQuirk] = []
        for (index, certificate) in certificates.enumerated() {
            let issuer = index + 1 < certificates.count ? certificates[index + 1] : nil
            quirks += Self.quirks(of: certificate, at: index, issuer: issuer)
        }
        if let description {
            quirks += description.unusualFields.map { KeyAttestationQuirk(.keyDescription, $0) }
            if wasMadeOutsideValidity(description) {
                quirks.append(KeyAttestationQuirk(.chain, "creation-time-outside-issuer-validity"))
            }
        }
        return quirks
    }

    private static func quirks(
        of certificate: AttestationCertificate, at index: Int, issuer: AttestationCertificate?
    ) -> [KeyAttestationQuirk] {
        var texts = certificate.quirks
        if let algorithm = SignatureAlgorithm(certificate.signatureAlgorithm) {
            if algorithm.hasNeedlessParameters { texts.append("ecdsa-sigalg-NULL-params") }
            if let issuer, algorithm.hash == .sha256,
                case .p384 = CertificateKey(subjectPublicKeyInfo: issuer.subjectPublicKeyNode)
            {
                texts.append("EC-P384-key-with-SHA256")
            }
        }
        if let issuer, !certificate.issuer.encoded.elementsEqual(issuer.subject.encoded) {
            texts.append("issuer-name-bytes-differ")
        }
        if let value = certificate.firstExtension(.provisioningInfo)?.value, ProvisioningInfo(value) == nil {
            texts.append("provisioningInfo-unreadable")
        }
        if let value = certificate.firstExtension(.crlDistributionPoints)?.value,
            (try? DERNode(parsing: value)) == nil
        {
            texts.append("crldp-unparsable")
        }
        var bits: [DERQuirk] = []
        let usage = certificate.firstExtension(.keyUsage).flatMap { found in
            try? DERNode(parsing: found.value).namedBits(noting: &bits)
        }
        if !bits.isEmpty { texts.append("keyUsage-trailing-zero-bits(non-minimal)") }
        if index > 0 {
            // keyCertSign is bit 5 (RFC 5280 section 4.2.1.3). Bit 0 is the highest bit of the first octet, so bit 5 is 0x04.
            if let usage, (usage.first ?? 0) & 0x04 == 0 { texts.append("issuer-lacks-keyCertSign") }
            let isCA = certificate.isCertificateAuthority
            if isCA != true {
                texts.append("issuer-not-CA(basicConstraints=\(isCA == nil ? "None" : "False"))")
            }
        }
        return texts.map { KeyAttestationQuirk(.certificate(index), $0) }
    }

    /// Whether the key's creation time, as the device states it, is outside the validity of a certificate above the leaf.
    /// Also true if such a validity cannot be read. False if there is no usable creation time.
    private func wasMadeOutsideValidity(_ description: KeyDescription) -> Bool {
        guard let milliseconds = description.creationDateTime, milliseconds <= KeyDescription.latestTime else {
            return false
        }
        let seconds = milliseconds / 1000
        return issuers.contains { certificate in
            guard let notBefore = certificate.notBefore, let notAfter = certificate.notAfter else { return true }
            return seconds < notBefore || seconds > notAfter
        }
    }
}

extension AttestationCertificate {
    /// The CA flag of basicConstraints; nil if the extension is absent or cannot be parsed, false if it has no readable flag.
    var isCertificateAuthority: Bool? {
        guard let value = firstExtension(.basicConstraints)?.value, let node = try? DERNode(parsing: value) else {
            return nil
        }
        var quirks: [DERQuirk] = []
        return (try? node.children.first?.boolean(noting: &quirks)) ?? false
    }
}

extension KeyDescription {
    /// The quirks that the parser noted, patch levels that are absent or in an unusual format, and unusual creation times.
    fileprivate var unusualFields: [String] {
        var texts = quirks
        if hardwareEnforced.osPatchLevel == nil { texts.append("osPatchLevel-absent") }
        for (name, value) in [
            ("vendorPatchLevel", hardwareEnforced.vendorPatchLevel),
            ("bootPatchLevel", hardwareEnforced.bootPatchLevel),
        ] {
            switch value {
            case nil: texts.append("\(name)-absent")
            case .some(100_000...999_999): texts.append("\(name)-6digits")
            case .some(10_000_000...99_999_999): break
            case let value?: texts.append("\(name)-odd=\(value)")
            }
        }
        if hardwareEnforced.creationDateTime != nil { texts.append("creationDateTime-in-hardwareEnforced") }
        if let time = creationDateTime, time > Self.latestTime { texts.append("creationDateTime-out-of-range") }
        return texts
    }

    fileprivate var creationDateTime: Int64? {
        softwareEnforced.creationDateTime ?? hardwareEnforced.creationDateTime
    }

    /// The year 2100, in milliseconds since 1970. A later time means that the device counts in microseconds.
    fileprivate static let latestTime: Int64 = 4_102_444_800_000
}
