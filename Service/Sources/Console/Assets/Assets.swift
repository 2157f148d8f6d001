internal import AuthServer
internal import Bytes
internal import Crypto

/// The stylesheet and the script. Their names have the hash of their content, so that browsers may cache them forever.
enum Assets {
    /// A file that pages link to.
    struct Asset: Sendable {
        /// The path below `/console`.
        let name: String
        let contentType: String
        let bytes: [UInt8]

        /// The complete path, as pages use it.
        var path: String { PageRequest.base + name }

        fileprivate init(_ stem: String, _ ending: String, _ contentType: String, _ text: String) {
            bytes = Array(text.utf8)
            let hash = Hexadecimal.encode(Array(SHA256.hash(data: bytes).prefix(8)))
            name = "/assets/\(stem)-\(hash).\(ending)"
            self.contentType = contentType
        }
    }

    static let stylesheet = Asset(
        "console", "css", "text/css; charset=utf-8", Stylesheet.text + "\n" + Stylesheet.further)
    static let script = Asset("console", "js", "text/javascript; charset=utf-8", Script.text)

    /// The file of a path below `/console`; nil: there is none.
    static func answer(_ path: String) -> PageAnswer? {
        guard let asset = [stylesheet, script].first(where: { $0.name == path }) else { return nil }
        var answer = PageAnswer(body: asset.bytes, contentType: asset.contentType, headers: PageRenderer.headers)
        answer.cacheControl = "public, max-age=31536000, immutable"
        return answer
    }
}
