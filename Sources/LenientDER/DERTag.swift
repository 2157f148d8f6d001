/// The identifier of an element (X.690 section 8.1.2).
public struct DERTag: Sendable, Hashable {
    /// The class of a tag.
    public enum Class: UInt8, Sendable, Hashable {
        /// A type that X.680 defines, such as INTEGER.
        case universal = 0
        /// A type that an application defines. Current standards do not use the class.
        case application = 1
        /// The meaning depends on the surrounding type, as with `[0]` in a certificate.
        case contextSpecific = 2
        /// A type that an organization defines for itself.
        case privateUse = 3
    }

    /// The class, which determines who defines the number's meaning.
    public let tagClass: Class
    /// The number. The parser accepts at most 2^28 - 1.
    public let number: UInt32
    /// Whether the content consists of elements and not of plain bytes.
    public let isConstructed: Bool

    /// A tag from its parts.
    public init(_ tagClass: Class, _ number: UInt32, constructed: Bool) {
        self.tagClass = tagClass
        self.number = number
        self.isConstructed = constructed
    }

    private static func primitive(_ number: UInt32) -> DERTag { DERTag(.universal, number, constructed: false) }

    /// BOOLEAN.
    public static let boolean = primitive(1)
    /// INTEGER.
    public static let integer = primitive(2)
    /// BIT STRING, in the primitive form, the only one that DER allows.
    public static let bitString = primitive(3)
    /// OCTET STRING, in the primitive form, the only one that DER allows.
    public static let octetString = primitive(4)
    /// NULL.
    public static let null = primitive(5)
    /// OBJECT IDENTIFIER.
    public static let objectIdentifier = primitive(6)
    /// ENUMERATED.
    public static let enumerated = primitive(10)
    /// UTF8String.
    public static let utf8String = primitive(12)
    /// PrintableString.
    public static let printableString = primitive(19)
    /// TeletexString.
    public static let teletexString = primitive(20)
    /// IA5String.
    public static let ia5String = primitive(22)
    /// UTCTime.
    public static let utcTime = primitive(23)
    /// GeneralizedTime.
    public static let generalizedTime = primitive(24)
    /// SEQUENCE and SEQUENCE OF.
    public static let sequence = DERTag(.universal, 16, constructed: true)
    /// SET and SET OF.
    public static let set = DERTag(.universal, 17, constructed: true)

    /// An explicit context-specific tag: its content is one element.
    public static func explicit(_ number: UInt32) -> DERTag {
        DERTag(.contextSpecific, number, constructed: true)
    }
}
