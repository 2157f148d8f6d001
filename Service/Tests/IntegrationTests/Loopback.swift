import AuthContract
import Foundation
import SynheartAuth

/// Plain requests to a service on this machine.
enum Loopback {
    static func get(_ url: String, headers: [(String, String)] = []) async throws -> (status: Int, text: String) {
        try await send("GET", url, headers: headers, body: "")
    }

    static func post(_ body: String, to url: String) async throws -> (status: Int, text: String) {
        try await send("POST", url, headers: [("Content-Type", "application/json")], body: body)
    }

    private static func send(
        _ method: String, _ url: String, headers: [(String, String)], body: String
    ) async throws -> (status: Int, text: String) {
        let answer = try await DefaultTransport().send(
            TransportRequest(
                method: method, url: url, headers: HeaderFields(headers), body: Array(body.utf8),
                maximumAnswer: 1 << 20))
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }
}
