internal import SwiftASN1

/// The content of one of Apple's own extensions in an attested key's certificate: a `SEQUENCE` of elements, most of them
/// `[n] value`.
///
/// Tag numbers are Apple's and undocumented, and new elements appear without notice. So an element may be any DER. Only
/// ``integer(_:)`` and ``text(_:)``, which checks use, require a type.
package struct CertificateProperties: Sendable {
    /// The value of an element.
    package enum Value: Sendable, Hashable {
        /// One INTEGER of at most 64 bits.
        case integer(Int64)
        /// One OCTET STRING.
        case octets([UInt8])
        /// Anything else: the complete element with its tag.
        case other([UInt8])
    }

    /// All elements in their order, including unknown ones. The tag is nil if it is not context-specific.
    package let elements: [(tag: UInt?, value: Value)]

    /// Nil if `bytes` are not one SEQUENCE in DER.
    package init?(_ bytes: [UInt8]) {
        guard let root = try? DER.parse(bytes), root.identifier == .sequence,
            case .constructed(let nodes) = root.content
        else { return nil }
        elements = nodes.map { node in
            guard node.identifier.tagClass == .contextSpecific else {
                return (tag: nil, value: .other(Array(node.encodedBytes)))
            }
            return (tag: node.identifier.tagNumber, value: Self.value(in: node))
        }
    }

    private static func value(in node: ASN1Node) -> Value {
        if case .constructed(let children) = node.content {
            var iterator = children.makeIterator()
            if let child = iterator.next(), iterator.next() == nil {
                if let octets = try? ASN1OctetString(derEncoded: child) { return .octets(Array(octets.bytes)) }
                if let integer = try? Int64(derEncoded: child) { return .integer(integer) }
            }
        }
        return .other(Array(node.encodedBytes))
    }

    /// The INTEGER of a tag; nil if the tag is absent. Throws if the tag is repeated or has another type.
    package func integer(_ tag: UInt) throws(AppAttestError) -> Int64? {
        switch try value(of: tag) {
        case nil: return nil
        case .integer(let number): return number
        case .octets, .other: throw Self.malformed("[\(tag)] is not an INTEGER")
        }
    }

    /// The text of a tag that holds an OCTET STRING; nil if the tag is absent or the bytes are not UTF-8. Throws if
    /// the tag is repeated or has another type.
    package func text(_ tag: UInt) throws(AppAttestError) -> String? {
        switch try value(of: tag) {
        case nil: return nil
        case .octets(let octets):
            let text = String(decoding: octets, as: UTF8.self)
            return text.utf8.elementsEqual(octets) ? text : nil
        case .integer, .other: throw Self.malformed("[\(tag)] is not an OCTET STRING")
        }
    }

    private func value(of tag: UInt) throws(AppAttestError) -> Value? {
        let found = elements.filter { $0.tag == tag }
        guard found.count <= 1 else { throw Self.malformed("[\(tag)] is there \(found.count) times") }
        return found.first?.value
    }

    static func malformed(_ reason: String) -> AppAttestError {
        AppAttestError(.malformedProperties, .certificateChain, reason)
    }
}

/// The properties of the key, its app and its device in the leaf.
package struct LeafProperties: Sendable {
    /// The App ID as text, not hashed: element [1204] of extension 1.2.840.113635.100.8.5.
    package let appID: String?
    /// The platform, such as `iphoneos` or `macosx`: element [1026] of extension 1.2.840.113635.100.8.7. Leaves have it since 2025.
    package let platform: ApplePlatform?
    /// The version of the operating system, such as `27.0.1`: element [1400] of extension 1.2.840.113635.100.8.7.
    package let systemVersion: String?
    /// The build of the operating system, such as `24A446`: element [1403] of extension 1.2.840.113635.100.8.7. Leaves have it since 2025.
    package let systemBuild: String?
    /// Whether the device is a Mac: the platform is `macosx`, or element [4] of extension 1.2.840.113635.100.8.5 is 13.
    /// On iPhones that element is 10.
    package let isMac: Bool
    /// The key's access control: the value of extension 1.2.840.113635.100.8.6. It is checked only for Macs, because
    /// iPhones have another value.
    package let accessControl: [UInt8]?

    /// Whether the system appends an extension map to authenticator data: version 27 or later, on every platform. A
    /// version that is absent or is not a number is treated as an older one.
    package var appendsExtensions: Bool {
        guard let major = systemVersion?.utf8.prefix(while: { $0 != UInt8(ascii: ".") }),
            (1...9).contains(major.count), major.allSatisfy({ (0x30...0x39).contains($0) })
        else { return false }
        return major.reduce(0) { $0 * 10 + Int($1 - 0x30) } >= 27
    }

    /// Throws if extension 1.2.840.113635.100.8.5 or 1.2.840.113635.100.8.7 is not one SEQUENCE in DER, or if an element
    /// that is read here occurs twice or has the wrong type.
    package init(_ leaf: AppleCertificate) throws(AppAttestError) {
        let key = try Self.properties(leaf, AppleIdentifier.keyProperties)
        let system = try Self.properties(leaf, AppleIdentifier.systemProperties)
        appID = try key?.text(1204)
        platform = try system?.text(1026).map(ApplePlatform.init(rawValue:))
        systemVersion = try system?.text(1400)
        systemBuild = try system?.text(1403)
        let device = try key?.integer(4)
        isMac = platform == .macOS || device == 13
        accessControl = leaf.extensionValue(AppleIdentifier.accessControl)
    }

    private static func properties(
        _ leaf: AppleCertificate, _ identifier: ASN1ObjectIdentifier
    ) throws(AppAttestError) -> CertificateProperties? {
        guard let bytes = leaf.extensionValue(identifier) else { return nil }
        guard let properties = CertificateProperties(bytes) else {
            throw CertificateProperties.malformed("extension \(identifier) is not a SEQUENCE in DER")
        }
        return properties
    }
}

/// The platform of a device, as its certificate names it.
public struct ApplePlatform: RawRepresentable, Sendable, Hashable {
    /// The name as Apple writes it.
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
