import LenientDER
import SwiftASN1
import TestHelpers
import Testing

/// The structure must equal swift-asn1's: if two verifiers parse differently, they may judge the same bytes
/// differently.
@Suite("The structure agrees with swift-asn1")
struct PeerComparisonTests {
    @Test("mutated elements are read alike, or refused by both")
    func mutatedElements() {
        let seed: [UInt8] = [
            0x30, 0x27, 0x02, 0x02, 0x01, 0x2C, 0x0A, 0x01, 0x01, 0x04, 0x03, 0x61, 0x62, 0x63, 0x30, 0x19,
            0xA1, 0x05, 0x31, 0x03, 0x02, 0x01, 0x02, 0xBF, 0x85, 0x40, 0x08, 0x30, 0x06, 0x04, 0x01, 0x00,
            0x01, 0x01, 0xFF, 0xBF, 0x83, 0x77, 0x02, 0x05, 0x00,
        ]
        var random = SeededNumbers(seed: 2026)
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes = seed
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let ours = try? DERNode(parsing: bytes)
            let theirs = try? DER.parse(bytes)
            if ours != nil { accepted += 1 }
            switch (ours, theirs) {
            case (nil, nil): break
            case (let ours?, let theirs?): #expect(Self.isSame(ours, theirs), "\(bytes)")
            default: Issue.record("only \(ours == nil ? "swift-asn1" : "LenientDER") reads \(bytes)")
            }
        }
        #expect(accepted > 1_000)
    }

    private static func isSame(_ ours: DERNode, _ theirs: ASN1Node) -> Bool {
        guard Array(ours.encoded) == Array(theirs.encodedBytes), UInt(ours.tag.number) == theirs.identifier.tagNumber
        else { return false }
        switch theirs.content {
        case .primitive(let content): return !ours.tag.isConstructed && Array(ours.content) == Array(content)
        case .constructed(let children):
            let children = Array(children)
            return ours.tag.isConstructed && ours.children.count == children.count
                && zip(ours.children, children).allSatisfy(isSame)
        }
    }
}
