internal import HTTPTypes
internal import RequestVerification

/// Headers that every request to the backend gets, such as the API key of a provider. They replace the client's headers of the
/// same names. Their values are secrets, so descriptions leave them out.
package struct UpstreamHeaders: Sendable, CustomStringConvertible, CustomReflectable {
    /// The text is not a list of headers.
    package struct Malformed: Error, CustomStringConvertible {
        package let description: String
    }

    let lines: [(String, String)]

    /// No header.
    package static let none = UpstreamHeaders(lines: [])

    private init(lines: [(String, String)]) { self.lines = lines }

    /// Parses lines `name: value`. Empty lines, and lines that begin with `#`, are ignored.
    ///
    /// - Throws: `Malformed`, which names the line but not its content.
    package init(_ text: String) throws(Malformed) {
        var lines: [(String, String)] = []
        // In Swift, a carriage return followed by a line feed is one character.
        let all = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (number, line) in all.map(String.init).enumerated() {
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            guard let colon = line.firstIndex(of: ":") else {
                throw Malformed(description: "line \(number + 1) is not `name: value`")
            }
            let name = String(line[..<colon])
            let value = String(line[line.index(after: colon)...].drop { $0 == " " })
            guard HTTPField.Name(name) != nil, !value.isEmpty, value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                throw Malformed(
                    description: "line \(number + 1) has a name or a value that no header has: it is `name: value`")
            }
            let folded = IdentityHeader.folded(name)
            guard !Self.forbidden.contains(folded), !IdentityHeader.isReserved(name) else {
                throw Malformed(description: "line \(number + 1) names a header that the proxy sets itself")
            }
            guard folded != "host" || !lines.contains(where: { IdentityHeader.folded($0.0) == folded }) else {
                throw Malformed(description: "line \(number + 1) is a second Host: a request has one")
            }
            lines.append((name, value))
        }
        self.lines = lines
    }

    private static let forbidden: Set = [
        "connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
        "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ]

    package var description: String { "UpstreamHeaders(\(lines.count))" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
