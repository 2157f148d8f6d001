import AuthService
import Foundation
import StrictJSON
import Testing

@testable import AuthServer

/// The tables of the documentation's pages are made from the tables of the code.
///
/// `REWRITE_PAGES=1 swift test --package-path Service --filter DocumentedTables` writes them anew.
@Suite struct DocumentedTablesTests {
    private static let recordHeader = ["member", "type", "default", "meaning"]

    @Test func `the first page of the app record has what everybody sets`() throws {
        let rows = AppRecord.objects.flatMap { path, members in
            members.filter { $0.isEveryday && !$0.isGroup }.map { $0.row(at: path) }
        }
        try MarkdownPage("AuthService/AuthService.docc/AppRecords.md").expect([
            MarkdownTable(heading: "## What everybody sets", header: Self.recordHeader, rows: rows)
        ])
    }

    @Test func `the second page of the app record has every other member`() throws {
        let tables = AppRecord.objects.compactMap { path, members -> MarkdownTable? in
            let rows = members.filter { !$0.isEveryday && !$0.isGroup }.map { $0.row(at: []) }
            let heading = "\(path.count < 2 ? "##" : "###") \(path.joined(separator: "."))"
            return rows.isEmpty ? nil : MarkdownTable(heading: heading, header: Self.recordHeader, rows: rows)
        }
        try MarkdownPage("AuthService/AuthService.docc/AppRecordMembers.md").expect(tables)
    }

    private static let settingHeader = ["key", "variable", "flag", "type", "default", "reload", "meaning"]

    @Test func `the first page of the configuration has what everybody sets`() throws {
        let rows = ConfigurationKey.allCases.filter(\.row.isEveryday).map(\.cells)
        try MarkdownPage("AuthServer/AuthServer.docc/Configuration.md").expect([
            MarkdownTable(heading: "## What everybody sets", header: Self.settingHeader, rows: rows)
        ])
    }

    @Test func `the second page of the configuration has every other setting`() throws {
        var tables: [MarkdownTable] = []
        for key in ConfigurationKey.allCases where !key.row.isEveryday {
            let heading = "## " + (key.rawValue.contains(".") ? key.rawValue.prefix { $0 != "." } : "The rest")
            let previous = tables.last?.heading == heading ? tables.removeLast().rows : []
            tables.append(MarkdownTable(heading: heading, header: Self.settingHeader, rows: previous + [key.cells]))
        }
        try MarkdownPage("AuthServer/AuthServer.docc/AdvancedSettings.md").expect(tables)
    }
}

extension JSONMemberDescription {
    /// Whether the tables list the members of this object, instead of the object itself.
    fileprivate var isGroup: Bool { if case .object = type { true } else { false } }

    fileprivate func row(at path: [String]) -> [String] {
        let standard = defaultValue.map { $0.isNull ? "none" : "`\($0.text())`" } ?? "none"
        let name = (path + [name]).joined(separator: ".")
        return ["`\(name)`", type.sentence, isRequired ? "required" : standard, meaning]
    }
}

extension JSONType {
    fileprivate var sentence: String {
        switch self {
        case .text: "text"
        case .boolean: "boolean"
        case .integer(let range):
            range.upperBound < .max ? "\(range.lowerBound)…\(range.upperBound)" : "\(range.lowerBound) or more"
        case .choice(let values): values.map { $0.string.map { "`\($0)`" } ?? $0.text() }.joined(separator: ", ")
        case .array(.text, _): "list of texts"
        case .array(let element, _): "list of " + (element.sentence == "object" ? "objects" : element.sentence)
        case .object, .anyObject: "object"
        case .either(let types): types.map(\.sentence).joined(separator: " or ")
        case .named(_, let type): type.sentence
        }
    }
}

extension ConfigurationKey {
    fileprivate var cells: [String] {
        let variable = variable.dropFirst(Self.prefix.count)
        let type =
            switch kind {
            case .text: "text"
            case .secret: "secret"
            case .secrets: "secret or list of secrets"
            case .boolean: "boolean"
            case .integer(let range): "\(range.lowerBound)…\(range.upperBound)"
            case .share: "0…1, decimal"
            case .texts: "list of texts"
            case .choice(let words): words.map { "`\($0)`" }.joined(separator: ", ")
            }
        return [
            "`\(rawValue)`", kind.isSecret ? "`\(variable)`, `\(variable)_FILE`" : "`\(variable)`",
            flag.map { "`\($0)`" } ?? "", type, row.standard.isNull ? "none" : "`\(row.standard.text())`",
            isReloadable ? "yes" : "", row.meaning,
        ]
    }
}

/// A table below a heading.
struct MarkdownTable {
    let heading: String
    let header: [String]
    let rows: [[String]]

    var lines: [String] {
        var lines = ([header] + rows).map { "| \($0.joined(separator: " | ")) |" }
        lines.insert("|" + String(repeating: "---|", count: header.count), at: 1)
        return lines
    }
}

/// A page of a DocC catalog.
struct MarkdownPage {
    private let url: URL
    private let lines: [String]

    /// - Parameter path: the path of the page, below `Sources`.
    init(_ path: String) throws {
        url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/\(path)")
        lines = try String(contentsOf: url, encoding: .utf8).components(separatedBy: "\n")
    }

    /// Expects that the page has exactly these tables, in this order. Ignores tables with other headers. With `REWRITE_PAGES`,
    /// writes the tables to the page instead.
    func expect(_ tables: [MarkdownTable]) throws {
        var (expected, rest) = ([String](), lines[...])
        for table in tables {
            let heading = try #require(rest.firstIndex(of: table.heading), "no heading \(table.heading)")
            let start = try #require(rest[heading...].firstIndex { $0.hasPrefix("|") }, "no table at \(table.heading)")
            expected += rest[..<start]
            expected += table.lines
            rest = rest[start...].drop { $0.hasPrefix("|") }
        }
        let headers = Set(tables.compactMap(\.lines.first))
        #expect(!rest.contains { headers.contains($0) }, "\(url.lastPathComponent) has a table too many")
        expected += rest
        guard ProcessInfo.processInfo.environment["REWRITE_PAGES"] == nil else {
            return try Data(expected.joined(separator: "\n").utf8).write(to: url)
        }
        for change in expected.difference(from: lines) {
            switch change {
            case .insert(let line, let text, _): Issue.record("\(url.lastPathComponent):\(line + 1) lacks: \(text)")
            case .remove(let line, let text, _): Issue.record("\(url.lastPathComponent):\(line + 1) has: \(text)")
            }
        }
        #expect(expected == lines, "REWRITE_PAGES=1 swift test --package-path Service --filter DocumentedTables")
    }
}
