internal import Bytes
internal import CBOR

/// A part of an object, with names, for people who look into it. Nothing of it is verified.
package indirect enum DescribedValue: Sendable, Hashable {
    case text(String)
    case number(Int64)
    case flag(Bool)
    case bytes([UInt8])
    case list([DescribedValue])
    case fields([Field])

    /// A part and its name.
    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: DescribedValue
    }

    /// Parts and their names, without those that are not there.
    static func named(_ fields: KeyValuePairs<String, DescribedValue?>) -> DescribedValue {
        .fields(fields.compactMap { name, value in value.map { Field(name: name, value: $0) } })
    }

    /// A CBOR item; what JSON has no form for, as its encoding.
    init(_ value: CBORValue) {
        switch value {
        case .text(let text): self = .text(text)
        case .bytes(let bytes): self = .bytes(bytes)
        case .array(let elements): self = .list(elements.map(Self.init))
        case .map(let map): self = Self(map)
        case .simple(20): self = .flag(false)
        case .simple(21): self = .flag(true)
        default: self = value.integer.map(Self.number) ?? .bytes(value.encoded)
        }
    }

    /// A CBOR map; keys that are neither text nor small integers, as their encoding.
    init(_ map: CBORMap) {
        self = .fields(
            map.entries.map { entry in
                let name =
                    entry.key.text ?? entry.key.integer.map { String($0) } ?? Hexadecimal.encode(entry.key.encoded)
                return Field(name: name, value: Self(entry.value))
            })
    }
}
