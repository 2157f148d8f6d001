import Foundation
import Testing

/// The samples on the pages of SynheartAuth compile: the Swift samples of a page are also in a file with the page's name, line by
/// line and in the same order. The file is in one of `folders`: the second one has the files that need Apple's frameworks.
@Suite struct DocumentationTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    private static let catalog = root.appending(path: "Sources/SynheartAuth/SynheartAuth.docc")
    private static let folders = [
        "Tests/SynheartAuthTests/Samples", "Checks/apple-stand-ins/Tests/SynheartAuthAppleTests/Samples",
    ]

    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// The Swift blocks of a page without their imports. Lines of a package manifest, which begin with `.p`, are left out.
    private static func samples(in page: String) -> [[String]] {
        page.components(separatedBy: "```swift\n").dropFirst()
            .map { rest in
                lines(rest.components(separatedBy: "\n```").first ?? "").filter { !$0.hasPrefix("import ") }
            }
            .filter { $0.first?.hasPrefix(".p") == false }
    }

    private static func pages() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: catalog.path).filter { $0.hasSuffix(".md") }.sorted()
            .map { String($0.dropLast(3)) }
    }

    private static func text(of page: String) throws -> String {
        try String(contentsOf: catalog.appending(path: page + ".md"), encoding: .utf8)
    }

    @Test func `every Swift sample of a page is compiled, in the order of the page`() throws {
        var count = 0
        for page in try Self.pages() {
            let samples = Self.samples(in: try Self.text(of: page))
            guard !samples.isEmpty else { continue }
            let files = Self.folders.map { Self.root.appending(path: "\($0)/\(page).swift") }
            let compiled = try files.filter { FileManager.default.fileExists(atPath: $0.path) }
                .map { file in
                    // A function on a page may be static in the file.
                    try Self.lines(String(contentsOf: file, encoding: .utf8))
                        .map { $0.hasPrefix("static ") ? String($0.dropFirst("static ".count)) : $0 }
                }
            guard let compiled = compiled.first, compiled.count > 0 else {
                Issue.record("\(page).md has samples, but there is no \(page).swift")
                continue
            }
            var position = 0
            for sample in samples {
                count += 1
                let found = compiled[position...].indices.first { compiled[$0...].starts(with: sample) }
                #expect(found != nil, "\(page).md: \(sample.first ?? "")")
                position = found.map { $0 + sample.count } ?? position
            }
        }
        #expect(count > 12)
    }

    @Test func `the first use in Ten minutes has at most ten lines`() throws {
        let first = try #require(Self.samples(in: try Self.text(of: "TenMinutes")).first)
        // One of the ten lines imports the module.
        #expect(first.count <= 10 - 1)
        #expect(first.contains { $0.contains("registerDevice") } && first.contains { $0.contains("send") })
    }

    @Test func `an app imports SynheartAuth and no other module of the package`() throws {
        let own = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
        var texts = try Self.pages().map { ($0, try Self.text(of: $0)) }
        for folder in Self.folders + ["Examples/ios"] {
            let path = Self.root.appending(path: folder).path
            for file in try FileManager.default.contentsOfDirectory(atPath: path) {
                texts.append((file, try String(contentsOfFile: path + "/" + file, encoding: .utf8)))
            }
        }
        for (name, text) in texts {
            let imported = text.matches(of: /(?m)^(?:@testable )?import (\w+)$/).map { String($0.1) }
            let others = Set(imported).intersection(own).subtracting(["SynheartAuth", "SynheartAuthTestSupport"])
            #expect(others.isEmpty, "\(name)")
        }
        #expect(texts.count > 20)
    }

    @Test func `every error code that a page names is the SDK's or the service's`() throws {
        let table = try String(
            contentsOf: Self.root.appending(path: "Sources/SynheartAuth/Errors/SynheartAuthError.swift"),
            encoding: .utf8)
        let contract = try String(
            contentsOf: Self.root.appending(path: "Sources/AuthContract/Errors/ErrorCode.swift"), encoding: .utf8)
        let known = Set((table + contract).matches(of: /"([A-Z]+(?:_[A-Z]+)+)"/).map { String($0.1) })
        #expect(known.count > 30)
        for page in try Self.pages() where page != "OtherHosts" {
            for code in try Self.text(of: page).matches(of: /`([A-Z]+(?:_[A-Z]+)+)`/).map({ String($0.1) })
            where !Self.otherNames.contains(code) {
                #expect(known.contains(code), "\(page).md: \(code)")
            }
        }
    }

    /// Names in capitals that are not error codes.
    private static let otherNames: Set<String> = ["XDG_STATE_HOME"]
}
