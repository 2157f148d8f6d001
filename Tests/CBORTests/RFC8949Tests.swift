import CBOR
import Foundation
import Testing

func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap { $0.hexDigitValue.map(UInt8.init) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func vectors<Vector: Decodable>(_ name: String) -> [Vector] {
    guard
        let url = Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Vectors"),
        let data = try? Data(contentsOf: url), let vectors = try? JSONDecoder().decode([Vector].self, from: data)
    else { return [] }
    return vectors
}

/// RFC 8949, Appendix A: examples of encoded items.
@Suite struct AppendixA {
    struct Example: Decodable, Sendable, CustomTestStringConvertible {
        let hex: String
        let roundtrip: Bool
        let decoded: Plain?
        let diagnostic: String?
        var testDescription: String { hex }
    }

    /// The JSON form of an item. Items such as byte strings have none.
    enum Plain: Decodable, Sendable, Equatable {
        case null
        case bool(Bool)
        case number(Double)
        case text(String)
        case array([Plain])
        case object([String: Plain])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else if let value = try? container.decode([Plain].self) {
                self = .array(value)
            } else {
                self = .object(try container.decode([String: Plain].self))
            }
        }

        init?(_ value: CBORValue) {
            switch value {
            case .unsigned(let value): self = .number(Double(value))
            case .negative(let value): self = .number(-1 - Double(value))
            case .float(let value): self = .number(value.value)
            case .text(let value): self = .text(value)
            case .simple(20): self = .bool(false)
            case .simple(21): self = .bool(true)
            case .simple(22): self = .null
            case .array(let elements): self = .array(elements.compactMap(Plain.init))
            case .map(let map):
                let members = map.entries.compactMap { entry in
                    entry.key.text.flatMap { key in Plain(entry.value).map { (key, $0) } }
                }
                self = .object(Dictionary(uniqueKeysWithValues: members))
            case .tagged(2, .bytes(let magnitude)):
                self = .number(magnitude.reduce(0) { $0 * 256 + Double($1) })
            case .tagged(3, .bytes(let magnitude)):
                self = .number(-1 - magnitude.reduce(0) { $0 * 256 + Double($1) })
            default: return nil
            }
        }
    }

    static let examples: [Example] = vectors("appendix_a")

    /// A value that was in the list of RFC 7049, and that RFC 8949 (section 3.3) declares not well-formed.
    static let withdrawn = "f818"

    /// Whether an example has a string, an array or a map of indefinite length.
    static func isIndefinite(_ example: Example) -> Bool {
        !example.roundtrip && !["fa", "fb"].contains(example.hex.prefix(2))
    }

    @Test func `the whole appendix is read`() { #expect(Self.examples.count == 82) }

    @Test(arguments: examples.filter { !isIndefinite($0) && $0.hex != withdrawn })
    func `an example is read as what it means`(_ example: Example) throws {
        let value = try CBORValue(parsing: hex(example.hex))
        if let decoded = example.decoded { #expect(Plain(value) == decoded) }
        #expect(value.encoded == hex(example.hex))
    }

    @Test(arguments: examples.filter(isIndefinite))
    func `an indefinite length is refused`(_ example: Example) {
        #expect(code(hex(example.hex)) == .indefiniteLength)
    }

    @Test func `the reserved simple value is refused`() {
        #expect(code(hex(Self.withdrawn)) == .notWellFormed)
    }

    @Test(arguments: [
        ("f97c00", "inf"), ("fa7f800000", "inf"), ("fb7ff0000000000000", "inf"), ("f9fc00", "-inf"),
        ("faff800000", "-inf"), ("fbfff0000000000000", "-inf"), ("f97e00", "nan"), ("fa7fc00000", "nan"),
        ("fb7ff8000000000000", "nan"),
    ])
    func `a number that is not finite is read`(example: String, as text: String) throws {
        guard case .float(let number) = try CBORValue(parsing: hex(example)) else {
            Issue.record("not a float")
            return
        }
        #expect(String(number.value) == text)
    }

    @Test func `tagged values, simple values and byte strings are kept`() throws {
        #expect(try CBORValue(parsing: hex("c11a514b67b0")) == .tagged(1, 1_363_896_240))
        #expect(try CBORValue(parsing: hex("d74401020304")) == .tagged(23, .bytes([1, 2, 3, 4])))
        #expect(try CBORValue(parsing: hex("f7")) == .undefined)
        #expect(try CBORValue(parsing: hex("f8ff")) == .simple(255))
        #expect(try CBORValue(parsing: hex("a201020304")) == [1: 2, 3: 4])
        #expect(try CBORValue(parsing: hex("c1fb41d452d9ec200000")) == .tagged(1, .float(CBORFloat(1_363_896_240.5))))
    }
}

/// RFC 8949, Appendix F: malformed items.
@Suite struct AppendixF {
    struct Example: Decodable, Sendable, CustomTestStringConvertible {
        let hex: String
        let kind: String
        var testDescription: String { "\(hex) (\(kind))" }
    }

    static let examples: [Example] = vectors("rfc8949_appendix_f_not_well_formed")

    @Test func `the whole appendix is read`() { #expect(Self.examples.count == 94) }

    @Test(arguments: examples)
    func `an example that is not well-formed is refused`(_ example: Example) {
        #expect(code(hex(example.hex)) != nil)
    }
}

/// The code with which bytes are refused; nil if they are read.
func code(_ bytes: [UInt8], limits: CBORValue.Limits = .init()) -> CBORError.Code? {
    do throws(CBORError) {
        _ = try CBORValue(parsing: bytes, limits: limits)
        return nil
    } catch {
        return error.code
    }
}
