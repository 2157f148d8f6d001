import Foundation

/// The files of `docs/vectors`, which every implementation of the protocol runs.
enum ProtocolVectors {
    private static let documentation = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("docs")
    private static let folder = documentation.appendingPathComponent("vectors")

    /// The text of `docs/protocol.md`.
    static func document() throws -> String {
        try String(contentsOf: documentation.appendingPathComponent("protocol.md"), encoding: .utf8)
    }

    /// Reads `docs/vectors/<name>.json`. A member such as `app_id` is the property `appId`.
    static func load<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(contentsOf: folder.appendingPathComponent("\(name).json")))
    }
}
