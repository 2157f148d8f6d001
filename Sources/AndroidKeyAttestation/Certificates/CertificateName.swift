public import LenientDER

/// A distinguished name (RFC 5280 section 4.1.2.4). To compare names, compare ``encoded``.
public struct CertificateName: Sendable {
    /// One attribute of a name.
    public struct Attribute: Sendable, Hashable {
        /// Its type.
        public let type: DEROID
        /// The value, if it is text; nil otherwise.
        public let value: String?
    }

    /// The whole name, DER.
    public let encoded: ArraySlice<UInt8>
    /// The attributes of the name, in order. Attributes that cannot be parsed are left out.
    public let attributes: [Attribute]

    init(_ node: DERNode) {
        encoded = node.encoded
        attributes = node.children.flatMap { relative in
            relative.children.compactMap { attribute -> Attribute? in
                guard attribute.children.count == 2, let type = try? attribute.children[0].objectIdentifier() else {
                    return nil
                }
                return Attribute(type: type, value: try? attribute.children[1].text())
            }
        }
    }

    /// The texts of all attributes of this type.
    public func values(of type: DEROID) -> [String] {
        attributes.compactMap { $0.type == type ? $0.value : nil }
    }

    /// The text of the one attribute of this type; nil if there is none or more than one, or if its value is not text.
    func onlyValue(of type: DEROID) -> String? {
        let found = attributes.filter { $0.type == type }
        return found.count == 1 ? found.first?.value : nil
    }

    static let commonName = DEROID(2, 5, 4, 3)
    static let serialNumber = DEROID(2, 5, 4, 5)
    static let organization = DEROID(2, 5, 4, 10)
    static let title = DEROID(2, 5, 4, 12)

    private static let shortNames: [DEROID: String] = [
        commonName: "CN", serialNumber: "serialNumber", organization: "O", title: "title",
        DEROID(2, 5, 4, 6): "C", DEROID(2, 5, 4, 7): "L", DEROID(2, 5, 4, 8): "ST", DEROID(2, 5, 4, 11): "OU",
    ]
}

extension CertificateName: CustomStringConvertible {
    /// The attributes as people write them, such as `O=Google LLC, CN=Droid CA2`.
    public var description: String {
        attributes.map { "\(Self.shortNames[$0.type] ?? $0.type.description)=\($0.value ?? "?")" }
            .joined(separator: ", ")
    }
}
