public import Foundation

/// The files of `docs/vectors`, which every implementation of the protocol runs.
public enum ProtocolVectors {
    /// The folder `docs` of the repository.
    public static let documentation = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs")

    /// The folder `docs/vectors`.
    public static let folder = documentation.appendingPathComponent("vectors")

    /// The text of `docs/protocol.md`.
    public static func document() throws -> String {
        try String(contentsOf: documentation.appendingPathComponent("protocol.md"), encoding: .utf8)
    }

    /// Reads `docs/vectors/<name>.json`. A member such as `app_id` is decoded as the property `appId`.
    public static func load<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes(name)))
    }

    /// The bytes of `docs/vectors/<name>.json`.
    public static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("\(name).json")))
    }
}
