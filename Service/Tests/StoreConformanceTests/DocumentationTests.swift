import Foundation
import Testing

/// The samples on the pages of StoreConformance compile: each is in a file of `Samples/`, line by line.
struct DocumentationTests {
    private static let here = URL(filePath: #filePath).deletingLastPathComponent()

    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    private static func files(in folder: URL) throws -> [(name: String, text: String)] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            ($0, try String(contentsOf: folder.appending(path: $0), encoding: .utf8))
        }
    }

    private static func samples(in page: String) -> [[String]] {
        page.components(separatedBy: "```swift\n").dropFirst().map {
            lines($0.components(separatedBy: "\n```").first ?? "")
        }
    }

    @Test func `every sample of the pages is compiled, and a whole store has less than 100 lines`() throws {
        let compiled = try Self.files(in: Self.here.appending(path: "Samples")).map { Self.lines($0.text) }
        let catalog = Self.here.appending(path: "../../Sources/StoreConformance/StoreConformance.docc")
        let samples = try Self.files(in: catalog).flatMap { Self.samples(in: $0.text) }
        #expect(samples.count == 3)
        for sample in samples {
            // A page may leave out the end of a type.
            let isCompiled = compiled.contains { file in
                file.indices.contains { file[$0...].starts(with: sample.dropLast()) }
            }
            #expect(isCompiled, "\(sample.first ?? "")")
            #expect(sample.count < 100)
        }
    }
}
