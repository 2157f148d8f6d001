import AuthContract
import Foundation

/// The files of `Vectors/`.
enum Vectors {
    struct Missing: Error { let name: String }

    static func load<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) throws -> Value {
        guard let url = Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Vectors") else {
            throw Missing(name: name)
        }
        return try JSONDecoder().decode(type, from: Data(contentsOf: url))
    }
}

/// The bytes of hexadecimal digits.
func hex(_ digits: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = digits.filter { !$0.isWhitespace }[...]
    while let byte = UInt8(rest.prefix(2), radix: 16) {
        bytes.append(byte)
        rest = rest.dropFirst(2)
    }
    return bytes
}

extension [UInt8] {
    init(base64 text: String) throws {
        guard let bytes = Base64.standard.decode(text) else { throw Vectors.Missing(name: "base64") }
        self = bytes
    }
}
