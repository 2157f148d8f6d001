// Values of elements. Each function checks the type. A function that tolerates deviations adds them to `quirks`.

extension DERNode {
    /// The elements of a SEQUENCE.
    public func sequence() throws(DERError) -> [DERNode] {
        try expect(.sequence)
        return children
    }

    /// The elements of a SET OF, in the order in which they are written, which need not be sorted.
    public func set(noting quirks: inout [DERQuirk]) throws(DERError) -> [DERNode] {
        try expect(.set)
        let isSorted = zip(children, children.dropFirst()).allSatisfy { first, second in
            !second.encoded.lexicographicallyPrecedes(first.encoded)
        }
        if !isSorted { note(.unsortedSet, in: &quirks) }
        return children
    }

    /// The one element inside an explicit tag.
    public func explicitContent() throws(DERError) -> DERNode {
        guard tag.isConstructed else { throw DERError(.unexpectedTag, offset: offset) }
        guard let child = children.first else { throw DERError(.missing, offset: offset) }
        guard children.count == 1 else { throw DERError(.trailingBytes, offset: children[1].offset) }
        return child
    }

    /// A BOOLEAN; any octet but zero is true.
    public func boolean(noting quirks: inout [DERQuirk]) throws(DERError) -> Bool {
        try expect(.boolean)
        guard content.count == 1, let octet = content.first else { throw DERError(.invalidContent, offset: offset) }
        if octet != 0x00, octet != 0xFF { note(.nonCanonicalBoolean(octet), in: &quirks) }
        return octet != 0
    }

    /// The octets of an INTEGER or ENUMERATED in two's complement, without unnecessary leading octets.
    public func integerOctets(noting quirks: inout [DERQuirk]) throws(DERError) -> ArraySlice<UInt8> {
        guard tag == .integer || tag == .enumerated else { throw DERError(.unexpectedTag, offset: offset) }
        guard !content.isEmpty else { throw DERError(.invalidContent, offset: offset) }
        var octets = content
        while let first = octets.first, let second = octets.dropFirst().first,
            (first == 0x00 && second & 0x80 == 0) || (first == 0xFF && second & 0x80 != 0)
        {
            octets.removeFirst()
        }
        if octets.count != content.count { note(.nonMinimalInteger, in: &quirks) }
        return octets
    }

    /// An INTEGER or ENUMERATED of at most 64 bits.
    public func integer(noting quirks: inout [DERQuirk]) throws(DERError) -> Int64 {
        let octets = try integerOctets(noting: &quirks)
        guard octets.count <= 8, let first = octets.first else { throw DERError(.outOfRange, offset: offset) }
        let sign: UInt64 = first & 0x80 == 0 ? 0 : .max
        return Int64(bitPattern: octets.reduce(sign) { $0 << 8 | UInt64($1) })
    }

    /// The octets of an OCTET STRING in the primitive form.
    public func octetString() throws(DERError) -> ArraySlice<UInt8> {
        try expect(.octetString)
        return content
    }

    /// The octets of a BIT STRING that is a whole number of octets: a key or a signature.
    public func bitStringOctets() throws(DERError) -> ArraySlice<UInt8> {
        try expect(.bitString)
        guard content.first == 0 else { throw DERError(.invalidContent, offset: offset) }
        return content.dropFirst()
    }

    /// The octets of a BIT STRING of named bits (X.690 section 11.2.2), the first bit being the highest of the first
    /// octet; bits beyond the end are cleared.
    public func namedBits(noting quirks: inout [DERQuirk]) throws(DERError) -> [UInt8] {
        try expect(.bitString)
        guard let unused = content.first, unused <= 7 else { throw DERError(.invalidContent, offset: offset) }
        var octets = Array(content.dropFirst())
        guard let last = octets.popLast() else {
            guard unused == 0 else { throw DERError(.invalidContent, offset: offset) }
            return []
        }
        let kept = last & (0xFF << unused)
        octets.append(kept)
        let endsInSetBit = kept & (1 << unused) != 0
        if kept != last || !endsInSetBit { note(.nonMinimalBitString, in: &quirks) }
        return octets
    }

    /// Requires the element to be NULL.
    public func null() throws(DERError) {
        try expect(.null)
        guard content.isEmpty else { throw DERError(.invalidContent, offset: offset) }
    }

    /// An OBJECT IDENTIFIER.
    public func objectIdentifier() throws(DERError) -> DEROID {
        try expect(.objectIdentifier)
        guard let identifier = DEROID(encoded: content) else { throw DERError(.invalidContent, offset: offset) }
        return identifier
    }

    /// The text of a UTF8String, PrintableString, IA5String or TeletexString. Throws if it is not UTF-8.
    public func text() throws(DERError) -> String {
        switch tag {
        case .utf8String, .printableString, .ia5String, .teletexString: break
        default: throw DERError(.unexpectedTag, offset: offset)
        }
        let text = String(decoding: content, as: UTF8.self)
        guard text.utf8.elementsEqual(content) else { throw DERError(.invalidContent, offset: offset) }
        return text
    }

    func expect(_ expected: DERTag) throws(DERError) {
        guard tag == expected else { throw DERError(.unexpectedTag, offset: offset) }
    }

    func note(_ kind: DERQuirk.Kind, in quirks: inout [DERQuirk]) {
        quirks.append(DERQuirk(kind: kind, offset: offset))
    }
}
