internal import LenientDER

/// Reads the elements of a SEQUENCE in order, as its ASN.1 definition lists them.
struct DERFields {
    private var rest: ArraySlice<DERNode>
    private let parent: DERNode

    init(_ nodes: [DERNode], of parent: DERNode) {
        self.rest = nodes[...]
        self.parent = parent
    }

    mutating func next() throws(DERError) -> DERNode {
        guard let node = rest.popFirst() else { throw DERError(.missing, at: parent) }
        return node
    }

    mutating func next(ifTagged tag: DERTag) -> DERNode? {
        rest.first?.tag == tag ? rest.popFirst() : nil
    }

    /// Notes a quirk, and throws no error, if elements are left, because a later version of the schema may have added them.
    func skipRest(of name: String, noting noted: inout QuirkCollector) {
        if !rest.isEmpty { noted.note("unknown-element:\(name)") }
    }

    func end() throws(DERError) {
        if let node = rest.first { throw DERError(.trailingBytes, at: node) }
    }
}
