public import Foundation

/// A temporary folder. It is deleted when this object is freed.
public final class TemporaryFolder: Sendable {
    /// Where the folder is.
    public let url: URL

    /// The path of the folder.
    public var path: String { url.path }

    /// Makes an empty folder.
    public init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("synheart-auth-test-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// The path of a file in the folder.
    public func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
