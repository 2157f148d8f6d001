internal import SwiftASN1

extension ASN1Identifier {
    static func context(_ number: UInt) -> Self { Self(tagWithNumber: number, tagClass: .contextSpecific) }
}

/// The children of a constructed node, read one by one.
struct BERChildren {
    private var nodes: ASN1NodeCollection.Iterator
    private var ahead: ASN1Node?
    private let name: String

    init(_ node: ASN1Node, _ identifier: ASN1Identifier, _ name: String) throws(AppAttestError) {
        guard node.identifier == identifier, case .constructed(let nodes) = node.content else {
            throw SignedData.malformed("\(name) has another type")
        }
        self.nodes = nodes.makeIterator()
        self.ahead = self.nodes.next()
        self.name = name
    }

    var isAtEnd: Bool { ahead == nil }

    mutating func next() throws(AppAttestError) -> ASN1Node {
        guard let node = ahead else { throw SignedData.malformed("\(name) is too short") }
        ahead = nodes.next()
        return node
    }

    func requireEnd() throws(AppAttestError) {
        guard isAtEnd else { throw SignedData.malformed("\(name) is too long") }
    }

    mutating func requireIdentifier(_ expected: ASN1ObjectIdentifier, _ name: String) throws(AppAttestError) {
        let node = try next()
        guard let identifier = try? ASN1ObjectIdentifier(derEncoded: node), identifier == expected else {
            throw SignedData.malformed("\(name) is another one")
        }
    }

    mutating func requireInteger(_ expected: Int, _ name: String) throws(AppAttestError) {
        let node = try next()
        guard let value = try? Int(derEncoded: node), value == expected else {
            throw SignedData.malformed("\(name) is not \(expected)")
        }
    }
}
