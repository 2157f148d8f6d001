internal import Bytes
internal import CBOR
internal import StrictJSON

extension JSONValue {
    /// A CBOR item. Bytes become hexadecimal. Text, arrays, maps, booleans and 64-bit integers keep their type. Any other item
    /// becomes its encoding in hexadecimal.
    init(_ value: CBORValue) {
        switch value {
        case .text(let text): self = .string(text)
        case .bytes(let bytes): self = .hexadecimal(bytes)
        case .array(let elements): self = .array(elements.map { JSONValue($0) })
        case .map(let map): self = .object(JSONObject(map))
        case .simple(20): self = false
        case .simple(21): self = true
        default: self = value.integer.map { .integer($0) } ?? .hexadecimal(value.encoded)
        }
    }

    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> JSONValue { .string(Hexadecimal.encode(bytes)) }
}

extension JSONObject {
    /// A CBOR map. A key that is neither text nor a 64-bit integer becomes its encoding in hexadecimal. If several keys
    /// become the same name, the last one is used.
    init(_ map: CBORMap) {
        self.init(
            map.entries.map { entry in
                let name = entry.key.text ?? entry.key.integer.map { String($0) }
                return (name ?? Hexadecimal.encode(entry.key.encoded), JSONValue(entry.value))
            })
    }

    /// Members with their names, without those that are nil.
    init(present members: KeyValuePairs<String, JSONValue?>) {
        self.init(members.compactMap { name, value in value.map { (name, $0) } })
    }
}
