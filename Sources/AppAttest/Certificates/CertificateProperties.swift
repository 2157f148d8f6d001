internal import SwiftASN1

/// What Apple writes into an attested key's certificate beside X.509: `SEQUENCE { [n] value … }` in each of two extensions.
///
/// Tag numbers are Apple's and undocumented; those with a name here are the same in every real certificate.
package struct CertificateProperties: Sendable {
    /// The value of one tag.
    package enum Value: Sendable, Hashable {
        case integer(Int64)
        case octets([UInt8])
        case other([UInt8])
    }

    /// Tag and value, in their order; no tag twice.
    package let values: [(tag: UInt, value: Value)]

    /// Nil where `bytes` are of another form.
    package init?(_ bytes: [UInt8]) {
        guard let root = try? DER.parse(bytes), root.identifier == .sequence,
            case .constructed(let nodes) = root.content
        else { return nil }
        var values: [(tag: UInt, value: Value)] = []
        var tags: Set<UInt> = []
        for node in nodes {
            guard node.identifier.tagClass == .contextSpecific, tags.insert(node.identifier.tagNumber).inserted,
                case .constructed(let children) = node.content
            else { return nil }
            var iterator = children.makeIterator()
            guard let child = iterator.next(), iterator.next() == nil else { return nil }
            values.append((node.identifier.tagNumber, Self.value(of: child)))
        }
        self.values = values
    }

    private static func value(of node: ASN1Node) -> Value {
        if let octets = try? ASN1OctetString(derEncoded: node) { return .octets(Array(octets.bytes)) }
        if let integer = try? Int64(derEncoded: node) { return .integer(integer) }
        return .other(Array(node.encodedBytes))
    }

    /// The text of a tag that holds an octet string of UTF-8.
    package func text(_ tag: UInt) -> String? {
        guard case .octets(let octets)? = self[tag] else { return nil }
        let text = String(decoding: octets, as: UTF8.self)
        return text.utf8.elementsEqual(octets) ? text : nil
    }

    package subscript(tag: UInt) -> Value? {
        values.first { $0.tag == tag }?.value
    }
}

/// What the leaf says about the key, its app and its device.
package struct LeafProperties: Sendable {
    /// Extension 1.2.840.113635.100.8.5.
    package let key: CertificateProperties?
    /// Extension 1.2.840.113635.100.8.7.
    package let system: CertificateProperties?
    /// The octets in extension 1.2.840.113635.100.8.6.
    package let accessControl: [UInt8]?

    /// The App ID in clear: [1204].
    package var appID: String? { key?.text(1204) }
    /// `iphoneos`, `macosx`, …: [1026], since 2025.
    package var platform: ApplePlatform? { system?.text(1026).map(ApplePlatform.init(rawValue:)) }
    /// Such as `27.0.1`: [1400].
    package var systemVersion: String? { system?.text(1400) }
    /// Such as `24A446`: [1403], since 2025.
    package var systemBuild: String? { system?.text(1403) }

    /// Whether the system is known, and older than those that append a map to authenticator data: 27 on every platform.
    package var isBeforeExtensions: Bool {
        guard let major = systemVersion.flatMap({ Int($0.prefix { $0 != "." }) }) else { return false }
        return major < 27
    }

    /// Whether either of two extensions says that this is a Mac: [1026] `macosx`, or [4] 13 instead of 10.
    package var isMac: Bool { platform == .macOS || key?[4] == .integer(13) }

    /// Throws where an extension is there and cannot be read.
    package init(_ leaf: AppleCertificate) throws(AppAttestError) {
        key = try Self.properties(leaf, AppleIdentifier.keyProperties)
        system = try Self.properties(leaf, AppleIdentifier.systemProperties)
        accessControl = try Self.accessControl(leaf)
    }

    private static func properties(
        _ leaf: AppleCertificate, _ identifier: ASN1ObjectIdentifier
    ) throws(AppAttestError) -> CertificateProperties? {
        guard let bytes = leaf.extensionValue(identifier) else { return nil }
        guard let properties = CertificateProperties(bytes) else {
            throw AppAttestError(.malformedProperties, .certificateChain, "extension \(identifier) cannot be read")
        }
        return properties
    }

    // SEQUENCE { [3] { OCTET STRING } }
    private static func accessControl(_ leaf: AppleCertificate) throws(AppAttestError) -> [UInt8]? {
        guard let properties = try properties(leaf, AppleIdentifier.accessControl) else { return nil }
        guard properties.values.count == 1, case .octets(let octets)? = properties[3] else {
            throw AppAttestError(.malformedProperties, .certificateChain, "the access control cannot be read")
        }
        return octets
    }
}

/// The platform of a device, as its certificate names it.
public struct ApplePlatform: RawRepresentable, Sendable, Hashable {
    /// As Apple writes it.
    public let rawValue: String

    /// A platform by the name that Apple writes.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// `iphoneos`
    public static let iOS = Self(rawValue: "iphoneos")
    /// `macosx`
    public static let macOS = Self(rawValue: "macosx")
}
