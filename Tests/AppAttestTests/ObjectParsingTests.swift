import AttestationTestKit
import Bytes
import CBOR
import Foundation
import StrictJSON
import Testing

@testable import AppAttest

/// Each part of an object, parsed separately.
@Suite("Parts of objects")
struct ObjectParsingTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)

    private func object(_ change: (inout AppleAttestationOptions) -> Void = { _ in }) throws -> AttestationObject {
        var options = AppleAttestationOptions()
        change(&options)
        let device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"),
            authority: try AppleAuthority(from: Self.now - 30 * 86400))
        return try AttestationObject(
            parsing: device.attest(AppleAttestKey(), clientDataHash: [1], at: Self.now, options: options))
    }

    private func field(_ name: String, of value: JSONValue?) -> JSONValue? { value?.object?[name] }

    @Test("the first element of BER ends where its length says")
    func definiteLengths() {
        func octets(_ head: [UInt8], _ count: Int) -> [UInt8] { head + [UInt8](repeating: 0xAA, count: count) }
        for (head, count) in [
            ([0x05, 0x00], 0), ([0x04, 0x01], 1), ([0x04, 0x7F], 127), ([0x04, 0x81, 0x80], 128),
            ([0x04, 0x82, 0x01, 0x00], 256), ([0x04, 0x83, 0x00, 0x01, 0x02], 258),
            // Tag numbers in one, two and three further octets.
            ([0x1F, 0x1F, 0x02], 2), ([0x3F, 0x81, 0x01, 0x02], 2), ([0xBF, 0x81, 0x80, 0x01, 0x02], 2),
        ] as [([UInt8], Int)] {
            let element = octets(head, count)
            #expect(BERExtent.ofFirstItem(in: element) == element.count)
            #expect(BERExtent.ofFirstItem(in: element + [0x00]) == element.count)
            #expect(BERExtent.ofFirstItem(in: element.dropLast()) == nil)
        }
        for cut in [[], [0x04], [0x1F], [0x1F, 0x81], [0x04, 0x82, 0x01], [0x04, 0x81]] as [[UInt8]] {
            #expect(BERExtent.ofFirstItem(in: cut) == nil)
        }
        #expect(BERExtent.ofFirstItem(in: octets([0x04, 0x84, 0x00, 0x00, 0x00, 0x01], 1)) == nil)
    }

    @Test("an element of indefinite length ends after the two zeros that are its own")
    func indefiniteLengths() {
        let inner: [UInt8] = [0x24, 0x80, 0x04, 0x02, 0x00, 0x00, 0x00, 0x00]
        #expect(BERExtent.ofFirstItem(in: inner) == inner.count)
        let outer = [0x30, 0x80] + inner + inner + [0x05, 0x00, 0x00, 0x00]
        #expect(BERExtent.ofFirstItem(in: outer + [0x00, 0x00, 0x07]) == outer.count)
        #expect(BERExtent.ofFirstItem(in: outer.dropLast()) == nil)
        #expect(BERExtent.ofFirstItem(in: [0x30, 0x80]) == nil)
    }

    @Test("elements of indefinite length are at most 32 deep")
    func depth() {
        func nested(_ depth: Int) -> [UInt8] {
            (0..<depth).flatMap { _ in [0x30, 0x80] as [UInt8] } + [UInt8](repeating: 0, count: 2 * depth)
        }
        #expect(BERExtent.ofFirstItem(in: nested(32)) == 128)
        #expect(BERExtent.ofFirstItem(in: nested(33)) == nil)
    }

    @Test("authenticator data of an assertion has 37 octets, and then nothing or one map")
    func assertionData() throws {
        let bytes = [UInt8](0..<32) + [0x40, 0x01, 0x02, 0x03, 0x04]
        let data = try AuthenticatorData(assertion: bytes)
        #expect(data.relyingPartyIDHash == [UInt8](0..<32) && data.flags == 0x40 && data.counter == 0x0102_0304)
        #expect(data.extensions == nil && data.credential == nil)
        #expect(try AuthenticatorData(assertion: bytes + [0xA1, 0x01, 0x02]).extensions?.count == 1)
        for wrong in [Array(bytes.dropLast()), bytes + [0x01], bytes + [0xA0, 0xA0], bytes + [0xA1]] {
            #expect(code { try AuthenticatorData(assertion: wrong) } == .malformedAuthenticatorData)
        }
    }

    @Test("authenticator data of an attestation has the id at its length, the key, and then nothing or one map")
    func attestationData() throws {
        func bytes(length: [UInt8], id: Int, _ rest: [UInt8]) -> [UInt8] {
            [UInt8](repeating: 1, count: 37) + [UInt8](repeating: 2, count: 16) + length
                + [UInt8](repeating: 3, count: id) + rest
        }
        for (length, id) in [([0, 0], 0), ([0, 32], 32), ([1, 2], 258)] as [([UInt8], Int)] {
            let credential = try AuthenticatorData(attestation: bytes(length: length, id: id, [0xA0])).credential
            #expect(credential?.aaguid == [UInt8](repeating: 2, count: 16))
            #expect(credential?.identifier == [UInt8](repeating: 3, count: id))
            #expect(credential?.key.count == 0)
        }
        #expect(try AuthenticatorData(attestation: bytes(length: [0, 1], id: 1, [0xA0, 0xA0])).extensions?.count == 0)
        for wrong in [
            bytes(length: [0], id: 0, []), bytes(length: [0, 0], id: 0, []), bytes(length: [0, 2], id: 1, []),
            bytes(length: [0, 2], id: 1, [0xA0]), bytes(length: [1, 0], id: 1, [0xA0]),
            bytes(length: [0, 1], id: 1, [0x01]), bytes(length: [0, 1], id: 1, [0xA0, 0xA0, 0xA0]),
        ] {
            #expect(code { try AuthenticatorData(attestation: wrong) } == .malformedAuthenticatorData)
        }
    }

    @Test("an inspected receipt shows each field under its name, and fields that are not known")
    func describedReceipt() throws {
        let receipt = try Receipt(
            parsing: object {
                $0.receipt.riskMetric = 3
                $0.receipt.fields = { $0 + [.init(99, [1])] }
            }.receipt)
        let content = field("content", of: .object(receipt.json))
        #expect(receipt.fields.unknownTypes == [99])
        #expect(field("unknown fields", of: content) == .array([99]))
        #expect(field("6 receipt type", of: content) == "RECEIPT")
        #expect(field("17 risk metric", of: content) == "3")
        for name in ["12 creation time", "19 not before", "21 expiration time"] {
            guard let text = field(name, of: content)?.string else {
                Issue.record("\(name) is missing")
                continue
            }
            #expect(RFC3339.date(text) != nil, "\(name)")
        }
        #expect(field("12 creation time", of: content) != field("21 expiration time", of: content))
    }

    @Test("a certificate with a leap second is none, because a debug build of swift-certificates stops at it")
    func leapSeconds() throws {
        let bytes = try #require(object { _ in }.certificates.first)
        // The first time is a UTCTime: its tag, its length, ten digits, the seconds, and Z.
        let time = try #require(bytes.firstRange(of: [0x17, 0x0D]))
        let seconds = time.upperBound + 10
        for (text, isCertificate) in [("00", true), ("59", true), ("60", false), ("61", false)] {
            var changed = bytes
            changed.replaceSubrange(seconds..<seconds + 2, with: Array(text.utf8))
            #expect((AppleCertificate(changed) != nil) == isCertificate, "\(text)")
        }
    }

    @Test("an inspected certificate shows visible ASCII above tag 3 as text, and other octets as octets")
    func describedOctets() throws {
        func described(_ octets: [UInt8], tag: UInt8 = 5) throws -> JSONValue? {
            let element = [0xA0 | tag, UInt8(octets.count + 2), 0x04, UInt8(octets.count)] + octets
            let certificate = try #require(
                object { $0.keyProperties = { $0 + [element] } }.certificates.first.flatMap(AppleCertificate.init))
            guard let extensions = field("extensions", of: .object(certificate.json))?.array else { return nil }
            let properties = extensions.first { field("name", of: $0) == "Apple key properties" }
            return field("value", of: properties)?.object?.members.last?.value
        }
        #expect(try described([0x20, 0x61, 0x7E]) == " a~")
        #expect(try described([0x1F]) == "1f")
        #expect(try described([0x7F]) == "7f")
        #expect(try described([0x61], tag: 3) == "61")
    }
}

/// A BER element that can be changed and written again with definite lengths.
private indirect enum Element {
    case primitive(tag: UInt8, [UInt8])
    case constructed(tag: UInt8, [Element])

    static func parse(_ bytes: inout ArraySlice<UInt8>) -> Element? {
        guard let tag = bytes.popFirst(), let first = bytes.popFirst() else { return nil }
        if first == 0x80 {
            var children: [Element] = []
            while !bytes.starts(with: [0, 0]) {
                guard let child = parse(&bytes) else { return nil }
                children.append(child)
            }
            bytes = bytes.dropFirst(2)
            return .constructed(tag: tag, children)
        }
        var length = Int(first)
        if first > 0x80 {
            length = bytes.prefix(Int(first & 0x7F)).reduce(0) { $0 << 8 | Int($1) }
            bytes = bytes.dropFirst(Int(first & 0x7F))
        }
        var content = bytes.prefix(length)
        bytes = bytes.dropFirst(length)
        guard tag & 0x20 != 0 else { return .primitive(tag: tag, Array(content)) }
        var children: [Element] = []
        while !content.isEmpty {
            guard let child = parse(&content) else { return nil }
            children.append(child)
        }
        return .constructed(tag: tag, children)
    }

    var encoded: [UInt8] {
        let (tag, content): (UInt8, [UInt8]) =
            switch self {
            case .primitive(let tag, let content): (tag, content)
            case .constructed(let tag, let children): (tag, children.flatMap(\.encoded))
            }
        let length: [UInt8] =
            content.count < 0x80
            ? [UInt8(content.count)] : [0x82, UInt8(content.count >> 8), UInt8(truncatingIfNeeded: content.count)]
        return [tag] + length + content
    }

    /// This element with an OCTET STRING appended at the path.
    func appending(at path: ArraySlice<Int>) -> Element {
        guard case .constructed(let tag, var children) = self else { return self }
        if let index = path.first {
            children[index] = children[index].appending(at: path.dropFirst())
        } else {
            children.append(.primitive(tag: 0x04, []))
        }
        return .constructed(tag: tag, children)
    }
}

@Suite("Elements too many in a receipt")
struct ReceiptStructureTests {
    @Test(
        "every structure of a receipt ends where its definition does",
        arguments: [
            ("ContentInfo", []), ("its content", [1]), ("SignedData", [1, 0]), ("the digests", [1, 0, 1]),
            ("a digest algorithm", [1, 0, 1, 0]), ("the encapsulated content", [1, 0, 2]),
            ("its octets", [1, 0, 2, 1]), ("the certificates", [1, 0, 3]), ("SignerInfo", [1, 0, 4, 0]),
            ("the signer's identifier", [1, 0, 4, 0, 1]), ("the signer's digest", [1, 0, 4, 0, 2]),
            ("the signature's algorithm", [1, 0, 4, 0, 3]),
        ] as [(String, [Int])])
    func endOfStructures(name: String, path: [Int]) throws {
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"),
            authority: try AppleAuthority(from: now - 30 * 86400))
        let object = try AttestationObject(parsing: device.attest(AppleAttestKey(), clientDataHash: [1], at: now))
        var bytes = object.receipt[...]
        let receipt = try #require(Element.parse(&bytes))
        #expect(code { try Receipt(parsing: receipt.encoded) } == nil)
        #expect(code { try Receipt(parsing: receipt.appending(at: path[...]).encoded) } == .malformedReceipt)
    }
}

@Suite("Times of receipts")
struct TimestampTests {
    @Test("days are counted and written as the Gregorian calendar has them, from the year 0 to 9999")
    func calendar() throws {
        func digits(_ value: Int, _ count: Int) -> String {
            String(repeating: "0", count: count - String(value).count) + String(value)
        }
        var day = -719_528  // 0000-01-01, in days since 1970.
        for year in 0...9999 {
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            defer { day += isLeap ? 366 : 365 }
            guard [0, 1, 4, 96, 99].contains(year % 100) else { continue }
            let last = isLeap ? 366 : 365
            for (date, offset) in [
                ("01-01", 0), ("01-31", 30), ("02-28", 58), ("02-29", 59), ("03-01", last - 306), ("07-31", last - 154),
                ("12-31", last - 1),
            ] where isLeap || date != "02-29" {
                let text = "\(digits(year, 4))-\(date)T01:02:03.000Z"
                let expected = Date(timeIntervalSince1970: Double((day + offset) * 86_400 + 3723))
                #expect(RFC3339.date(text) == expected, "\(text)")
                #expect(RFC3339.text(expected) == text, "\(text)")
            }
        }
    }

    @Test("times are written to the millisecond, within the years 0 to 9999")
    func range() {
        for (seconds, text) in [
            (-62_167_219_200, "0000-01-01T00:00:00.000Z"), (-62_167_219_200.001, nil),
            (-0.001, "1969-12-31T23:59:59.999Z"), (-86_400.25, "1969-12-30T23:59:59.750Z"),
            (0.0004, "1970-01-01T00:00:00.000Z"), (0.0006, "1970-01-01T00:00:00.001Z"),
            (253_402_300_799.999, "9999-12-31T23:59:59.999Z"), (253_402_300_800, nil), (.nan, nil), (.infinity, nil),
        ] as [(Double, String?)] {
            #expect(RFC3339.text(Date(timeIntervalSince1970: seconds)) == text)
        }
    }

    @Test("a fraction has one to nine digits")
    func fractions() {
        for (text, seconds) in [
            (".5", 0.5), (".123456789", 0.123456789), (".000002", 0.000002), ("", 0), (".", nil),
            (".1234567890", nil), (",5", nil), (".5.", nil), (".-5", nil),
        ] as [(String, Double?)] {
            let found = RFC3339.date("1970-01-01T00:00:00\(text)Z")?.timeIntervalSince1970
            #expect(found.map { abs($0 - (seconds ?? -1)) < 1e-6 } == seconds.map { _ in true }, "\(text)")
        }
    }
}
