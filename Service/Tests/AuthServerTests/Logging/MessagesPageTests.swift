import Foundation
import Testing

/// The page Messages.md lists every message of the service, and no other.
@Suite struct MessagesPageTests {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources")

    private struct Message: Hashable {
        let text: String
        /// The level in the call's name. Nil if the level is an argument of the call (`log(level:)`).
        let level: String?
    }

    /// The messages of all calls of loggers in the modules of the service.
    private func logged() throws -> Set<Message> {
        let call =
            #/\blogger\.(trace|debug|info|notice|warning|error|critical|log)\((?:\s*level:[^,]+,)?\s*(?:"([^"\\]*)")?/#
            // With the default rules, `\b` finds no word boundary within `opening.logger` (Unicode TR 29).
            .wordBoundaryKind(.simple)
        var found: Set<Message> = []
        for module in [
            "AuthServer", "AuthService", "SQLiteStores", "PostgreSQLStores", "RedisStores", "AttestationProviders",
            "synheart-auth",
        ] {
            let folder = Self.sources.appendingPathComponent(module).path
            let files = try #require(FileManager.default.enumerator(atPath: folder))
            for case let file as String in files where file.hasSuffix(".swift") {
                let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
                for match in text.matches(of: call) {
                    // A message is a literal without interpolation, so that it can be searched for.
                    let message = try #require(match.output.2, "\(file): \(match.output.0)")
                    let level = match.output.1 == "log" ? nil : String(match.output.1)
                    found.insert(Message(text: String(message), level: level))
                }
            }
        }
        return found
    }

    /// The levels of each message on the page.
    private func listed() throws -> [String: Set<String>] {
        let page = Self.sources.appendingPathComponent("AuthServer/AuthServer.docc/Messages.md")
        var rows: [String: Set<String>] = [:]
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            try #require(cells.count == 4 && cells.allSatisfy { !$0.isEmpty }, "\(line)")
            let message = cells[0].trimmingCharacters(in: ["`"])
            #expect(rows[message] == nil, "\(message) stands twice")
            rows[message] = Set(cells[1].components(separatedBy: ", "))
        }
        return rows
    }

    @Test func `every message stands on the page with its level, and every row is a message`() throws {
        let (logged, listed) = (try logged(), try listed())
        #expect(logged.count > 40)
        for message in logged {
            let levels = listed[message.text] ?? []
            #expect(message.level.map { levels == [$0] } ?? (levels.count > 1), "\(message) \(levels)")
        }
        // The log writer itself writes these lines.
        let own: Set = ["log lines were dropped: their reader was too slow"]
        #expect(Set(listed.keys).subtracting(logged.map(\.text)) == own)
    }
}
