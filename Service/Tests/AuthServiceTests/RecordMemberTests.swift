import StrictJSON
import Testing

import struct Foundation.Data
import struct Foundation.URL

@testable import AuthService

/// Each member of an app record is in exactly one table of the policies.
@Suite struct RecordMemberTests {
    @Test func `a record is written with the members of the tables, in any order, and no others`() throws {
        let record = JSONValue.object(try AppRecord(JSONFields(AppRecordTests.everything())).json(secrets: .plain))
        for (path, names) in AppRecord.memberNames {
            let object = path.reduce(Optional(record)) { $0?.object?[$1] }?.object
            #expect(object?.members.map(\.name).sorted() == names.sorted(), "\(path)")
        }
    }

    @Test func `the page about app records lists the members of the tables, and no others`() throws {
        let page = try Self.page("Sources/AuthService/AuthService.docc/AppRecords.md")
        for (path, names) in AppRecord.memberNames {
            let heading =
                path.isEmpty ? "## The app" : "\(path.count == 1 ? "##" : "###") \(path.joined(separator: "."))"
            #expect(page.section(heading).sorted() == names.sorted(), "\(heading)")
        }
    }

    private static func page(_ path: String) throws -> MarkdownPage {
        let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return MarkdownPage(text: String(decoding: try Data(contentsOf: package.appending(path: path)), as: UTF8.self))
    }
}

/// A page with tables. The first column of each row names a member.
private struct MarkdownPage {
    let text: String

    /// The members in the table below a heading.
    func section(_ heading: String) -> [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(where: { $0 == heading }) else { return [] }
        return lines[(start + 1)...].prefix { !$0.hasPrefix("#") }.compactMap { line in
            guard line.hasPrefix("| `") else { return nil }
            return line.dropFirst(3).split(separator: "`").first.map(String.init)
        }
    }
}
