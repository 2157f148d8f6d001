import Foundation

@testable import synheart_auth

/// Reads `contract/channel.json`, and writes its shapes (the types of arguments and results) and those of the plugin as comparable texts.
struct ContractFile {
    let root: [String: Any]

    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../Clients/flutter/synheart_auth/contract/channel.json")
        root = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any] ?? [:]
    }

    var methods: [String: [String: Any]] { root["methods"] as? [String: [String: Any]] ?? [:] }
    var errors: [String: Any] { root["errors"] as? [String: Any] ?? [:] }
    var codes: [[String: String]] { errors["codes"] as? [[String: String]] ?? [] }
    var channels: [String: String] { root["channels"] as? [String: String] ?? [:] }

    func arguments(_ method: String) -> String {
        let fields = methods[method]?["arguments"] as? [String: Any] ?? [:]
        return "{" + fields.keys.sorted().map { "\($0): \(text(fields[$0]))" }.joined(separator: ", ") + "}"
    }

    func result(_ method: String) -> String? {
        let result = methods[method]?["result"]
        return result is NSNull ? nil : text(result)
    }

    /// A shape of the file as text, with the names of enums and messages resolved.
    func text(_ value: Any?) -> String {
        let shape = value as? [String: Any] ?? [:]
        let bounds = ["min", "max"].compactMap { (shape[$0] as? NSNumber).map { "\($0.int64Value)" } }.joined(
            separator: "...")
        let isNullable = (shape["nullable"] as? NSNumber)?.boolValue ?? false
        return Self.text(isNullable) {
            switch shape["type"] as? String {
            case "enum":
                let name = shape["of"] as? String ?? ""
                return "enum \(((root["enums"] as? [String: Any])?[name] as? [String] ?? []).joined(separator: "|"))"
            case "message":
                let name = shape["of"] as? String ?? ""
                let fields = (root["messages"] as? [String: [String: Any]])?[name] ?? [:]
                return "{" + fields.keys.sorted().map { "\($0): \(text(fields[$0]))" }.joined(separator: ", ") + "}"
            case "list": return "list \(bounds) of \(text(shape["of"]))"
            case let type: return bounds.isEmpty ? type ?? "?" : "\(type ?? "?") \(bounds)"
            }
        }
    }

    /// A shape of the plugin as text, in the form of the contract file.
    static func text(_ shape: Shape) -> String {
        switch shape {
        case .optional(let shape): text(true) { text(shape) }
        case .text(let max): "string \(max)"
        case .bytes(let max): "bytes \(max)"
        case .integer(let range): "integer \(range.lowerBound)...\(range.upperBound)"
        case .number: "number"
        case .flag: "boolean"
        case .choice(let values): "enum \(values.joined(separator: "|"))"
        case .items(let shape, let max): "list \(max) of \(text(shape))"
        case .message(let fields):
            "{" + fields.sorted { $0.key < $1.key }.map { "\($0.key): \(text($0.value))" }.joined(separator: ", ") + "}"
        }
    }

    private static func text(_ isNullable: Bool, _ shape: () -> String) -> String {
        isNullable ? "optional \(shape())" : shape()
    }
}
