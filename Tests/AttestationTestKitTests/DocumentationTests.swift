import AndroidKeyAttestation
import AppAttest
import Foundation
import PlayIntegrity
import Testing

/// The pages agree with the code: every Swift sample compiles, and every error code is explained.
@Suite struct DocumentationTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    private static func pages(of module: String) throws -> [(name: String, text: String)] {
        let folder = root.appending(path: "Sources/\(module)/\(module).docc")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".md") }.sorted()
            .map { ($0, try String(contentsOf: folder.appending(path: $0), encoding: .utf8)) }
    }

    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: true)
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// The Swift blocks of a page, except those that a server's test cannot compile: manifests, and code for Apple's
    /// framework.
    private static func samples(in page: String) -> [[String]] {
        page.components(separatedBy: "```swift\n").dropFirst().compactMap { rest in
            let block = lines(rest.components(separatedBy: "\n```").first ?? "").filter { !$0.hasPrefix("import ") }
            let isElsewhere = block.contains { $0.contains("DCAppAttestService") || $0.hasPrefix(".p") }
            return isElsewhere ? nil : block
        }
    }

    @Test(arguments: ["AppAttest", "PlayIntegrity", "AndroidKeyAttestation", "AttestationTestKit"])
    func `every Swift sample of a page is compiled here, line by line`(module: String) throws {
        let folder = Self.root.appending(path: "Tests/AttestationTestKitTests/Samples")
        let compiled = try FileManager.default.contentsOfDirectory(atPath: folder.path).map { name in
            // A function that a page shows without `static` may be static in the compiled file.
            try Self.lines(String(contentsOf: folder.appending(path: name), encoding: .utf8))
                .map { $0.hasPrefix("static ") ? String($0.dropFirst("static ".count)) : $0 }
        }
        var count = 0
        for page in try Self.pages(of: module) {
            for sample in Self.samples(in: page.text) {
                count += 1
                let isCompiled = compiled.contains { file in
                    file.indices.contains { file[$0...].starts(with: sample) }
                }
                #expect(isCompiled, "\(page.name): \(sample.first ?? "")")
            }
        }
        #expect(count > 0)
    }

    /// The targets of a page's relative links, from the repository's root.
    private static func links(in path: String) throws -> Set<String> {
        let folder = root.appending(path: path).deletingLastPathComponent()
        let targets = try text(path).matches(of: /\]\(([^)#:]+)(#[^)]*)?\)/).map { String($0.1) }
        return Set(
            targets.map { target in
                String(folder.appending(path: target).standardizedFileURL.path.dropFirst(root.path.count))
                    .trimmingPrefix("/").description
            })
    }

    @Test func `the index of the documentation has every page of every catalog`() throws {
        let links = try Self.links(in: "docs/README.md")
        var pages = 0
        for sources in ["Sources", "Service/Sources"] {
            for module in try FileManager.default.contentsOfDirectory(
                atPath: Self.root.appending(path: sources).path)
            {
                let catalog = "\(sources)/\(module)/\(module).docc"
                let files = try? FileManager.default.contentsOfDirectory(
                    atPath: Self.root.appending(path: catalog).path)
                for file in files ?? [] where file.hasSuffix(".md") {
                    pages += 1
                    #expect(links.contains("\(catalog)/\(file)"), "\(catalog)/\(file)")
                }
            }
        }
        #expect(pages > 30)
    }

    @Test(arguments: ["README.md", "docs/README.md", "docs/glossary.md", "docs/protocol.md", "Examples/README.md"])
    func `every link of a page leads to a file`(page: String) throws {
        for link in try Self.links(in: page) {
            #expect(FileManager.default.fileExists(atPath: Self.root.appending(path: link).path), "\(link)")
        }
    }

    /// The codes in the first column of an article's tables.
    private static func explained(in module: String) throws -> [String] {
        try text("Sources/\(module)/\(module).docc/RefusalCodes.md").split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
            guard cells.count == 5, let code = cells[1].firstMatch(of: /^ `([A-Z0-9_]+)` $/) else { return nil }
            guard cells[2...3].allSatisfy({ $0.count > 3 }) else { return nil }
            return String(code.1)
        }
    }

    /// The codes that a source file declares. The tests compare them with `allCases`, which is written by hand.
    private static func declared(in path: String, _ pattern: Regex<(Substring, Substring)>) throws -> [String] {
        try text(path).matches(of: pattern).map { String($0.1) }
    }

    @Test func `every code of an App Attest refusal is explained`() throws {
        let codes = AppAttestError.Code.allCases.map(\.rawValue)
        #expect(try Self.explained(in: "AppAttest").sorted() == codes.sorted())
        let declared = try Self.declared(
            in: "Sources/AppAttest/AppAttestError.swift", /= Self\(rawValue: "([A-Z0-9_]+)"\)/)
        #expect(declared == codes)
    }

    @Test func `every code of a refused key attestation is explained`() throws {
        let codes = KeyAttestationError.Code.allCases.map(\.rawValue)
        #expect(try Self.explained(in: "AndroidKeyAttestation").sorted() == codes.sorted())
        let declared = try Self.declared(
            in: "Sources/AndroidKeyAttestation/KeyAttestationError.swift", /= Code\("([A-Z0-9_]+)"\)/)
        #expect(declared == codes)
    }

    @Test func `every code of a token that is refused or could not be checked is explained`() throws {
        let codes =
            PlayIntegrityError.Code.allCases.map(\.rawValue) + PlayIntegrityUnavailable.Code.allCases.map(\.rawValue)
        #expect(try Self.explained(in: "PlayIntegrity").sorted() == codes.sorted())
        let declared = try Self.declared(
            in: "Sources/PlayIntegrity/PlayIntegrityError.swift", /= Code\("([A-Z0-9_]+)"\)/)
        #expect(declared == codes)
    }
}
