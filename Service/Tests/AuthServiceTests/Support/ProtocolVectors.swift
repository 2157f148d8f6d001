import Foundation

/// The files of `docs/vectors`, which every implementation of the protocol runs.
enum ProtocolVectors {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "docs/vectors")

    /// Reads `docs/vectors/<name>.json`. A member such as `app_id` is the property `appId`.
    static func load<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes(name)))
    }

    /// The bytes of `docs/vectors/<name>.json`.
    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("\(name).json")))
    }
}
