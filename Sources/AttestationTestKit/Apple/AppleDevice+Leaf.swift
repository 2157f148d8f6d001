internal import Bytes
internal import Crypto
internal import Foundation

extension AppleDevice {
    /// The certificate of an attested key, as Apple's authority issues it for this system.
    func leaf(
        for key: AppleAttestKey, nonce: [UInt8], at date: Date, _ options: AppleAttestationOptions
    ) throws -> [UInt8] {
        let certified = options.leafKey ?? key
        let signer = (options.signedBy ?? authority).intermediate
        let identifier = Hexadecimal.encode(certified.keyID)
        let publicKey: [UInt8] =
            switch options.leafCurve {
            case .p256: Array(certified.privateKey.publicKey.derRepresentation)
            case .p384: Self.largerKey
            }
        let template = AppleCertificateTemplate(
            issuer: options.namesSentIssuer ? authority.intermediate.name : signer.name,
            subject: AppleCertificateTemplate.name(identifier, unit: "AAA Certification"),
            notBefore: options.notBefore ?? date.addingTimeInterval(-86400),
            notAfter: options.notAfter ?? date.addingTimeInterval(2 * 86400),
            subjectPublicKeyInfo: publicKey, extensions: extensions(nonce: nonce, options),
            algorithm: options.leafAlgorithm)
        return try template.signed(by: signer.key)
    }

    private func extensions(nonce: [UInt8], _ options: AppleAttestationOptions) -> [AppleCertificateExtension] {
        var extensions: [AppleCertificateExtension] = [
            .basicConstraints(authority: options.leafIsAuthority), .keyUsage(options.keyUsage),
        ]
        if let usages = options.extendedKeyUsage ?? (system.hasExtendedKeyUsage ? [Self.attestedKeyUsage] : nil) {
            extensions.append(
                .init([2, 5, 29, 37], DERWriter.element([0x30], usages.flatMap { DERWriter.objectIdentifier($0) })))
        }
        let keyProperties = options.keyProperties(keyProperties(appID: options.leafAppID ?? app.appID))
        extensions.append(.init(Self.apple + [8, 5], DERWriter.element([0x30], keyProperties.flatMap(\.self))))
        if let properties = options.systemProperties(systemProperties) {
            extensions.append(.init(Self.apple + [8, 7], DERWriter.element([0x30], properties.flatMap(\.self))))
        }
        extensions += nonceExtensions(nonce, options.nonce)
        let accessControl = options.accessControl ?? (system.namesAccessControl ? defaultAccessControl : [])
        if !accessControl.isEmpty {
            let value = DERWriter.sequence(DERWriter.explicit(3, DERWriter.octetString(accessControl)))
            extensions.append(.init(Self.apple + [8, 6], options.accessControlExtension(value)))
        }
        return extensions + options.leafExtensions
    }

    private func nonceExtensions(
        _ nonce: [UInt8], _ form: AppleAttestationOptions.Nonce
    ) -> [AppleCertificateExtension] {
        let octets = DERWriter.octetString(nonce)
        let value = DERWriter.sequence(DERWriter.explicit(1, octets))
        func made(_ value: [UInt8]) -> AppleCertificateExtension { .init(Self.apple + [8, 2], value) }
        switch form {
        case .correct: return [made(value)]
        case .missing: return []
        case .doubled: return [made(value), made(value)]
        case .twoOctetStrings: return [made(DERWriter.sequence(DERWriter.explicit(1, octets + octets)))]
        case .trailingByte: return [made(value + [0])]
        case .other(let value): return [made(value)]
        }
    }

    private func keyProperties(appID: String) -> [[UInt8]] {
        let named = appID.isEmpty ? [] : [DERWriter.explicit(1204, DERWriter.octetString(Array(appID.utf8)))]
        return [
            DERWriter.explicit(4, DERWriter.integer(system.platform == .macOS ? 13 : 10)),
            DERWriter.explicit(1200, DERWriter.integer(0)),
        ] + named + [DERWriter.explicit(1206, DERWriter.integer(4))]
    }

    private var systemProperties: [[UInt8]] {
        func text(_ tag: UInt32, _ value: String) -> [UInt8] {
            DERWriter.explicit(tag, DERWriter.octetString(Array(value.utf8)))
        }
        guard system.namesPlatform else { return [text(1400, system.version)] }
        return [
            text(1400, system.version), text(1403, system.build), text(1026, system.platform.rawValue),
        ]
    }

    private var defaultAccessControl: [UInt8] {
        switch system.platform {
        case .iOS: AppleAccessControl.iPhone
        case .macOS: AppleAccessControl.mac
        }
    }

    /// Any key on P-384. It is made once, because making a key takes thirty times as long as a signature on P-256.
    private static let largerKey = Array(P384.Signing.PrivateKey().publicKey.derRepresentation)
    private static let apple: [UInt64] = [1, 2, 840, 113635, 100]
    private static let attestedKeyUsage: [UInt64] = apple + [4, 24]
}

/// The access controls of attested keys that real certificates show.
public enum AppleAccessControl {
    /// System Integrity Protection and Full Security, as Apple publishes it for Macs.
    public static let mac = decode(
        "MEAMAjExMDowCQwCb2uhAwEB/zAJDAJvYaEDAQH/MAsMBG9kZWyhAwEB/zAVDARvc2duoAYMBHJzZWMwBaYDAgEB")
    /// The access control of iPhones since iOS 26.2.
    public static let iPhone = decode(
        "MEMMAjExMD0wCgwDb2tkoQMBAf8wCQwCb2GhAwEB/zALDARvc2duoQMBAf8wCwwEb2RlbKEDAQH/MAoMA29ja6EDAQH/")

    private static func decode(_ base64: String) -> [UInt8] { Base64.standard.decode(base64) ?? [] }
}
