package import AuthContract

/// Checks the header lines that an app adds to its request.
///
/// Refuses malformed lines, fields that the transport writes, and fields that belong to the signature. The SDK does not drop such a
/// line silently, because the app would believe that the line was sent.
package enum HostHeaders {
    /// Fields of the transport (RFC 9110 sections 7.6.1 and 8.6, RFC 9112 section 6.1).
    private static let framing: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer",
        "upgrade",
    ]

    /// Fields of the signature, of either scheme, except `Content-Digest`.
    static let signature = Set(
        [
            HeaderName.appID, HeaderName.deviceID, HeaderName.signature, HeaderName.timestamp, HeaderName.nonce,
            HeaderName.signatureVersion, HeaderName.signatureInput, HeaderName.messageSignature, HeaderName.assertion,
        ].map { $0.lowercased() })

    /// The problem with the lines; nil if there is none.
    package static func problem(_ headers: HeaderFields, _ scheme: SignatureScheme) -> String? {
        for line in headers.lines {
            guard line.name.isToken else { return "a header's name is not a token" }
            guard line.value.utf8.allSatisfy(isValueByte) else {
                return "the value of \(line.name) has a control character"
            }
            let name = line.name.lowercased()
            if framing.contains(name) { return "\(name) is for the transport to write" }
            // The scheme 1 signature does not cover the digest, so the app may send one.
            let isDigest = scheme == .two && name == HeaderName.contentDigest.lowercased()
            if isDigest || signature.contains(name) { return "\(name) is part of the signature" }
        }
        return nil
    }

    /// Whether the transport writes this field.
    static func isFraming(_ name: String) -> Bool { framing.contains(name.lowercased()) }

    /// Whether the line can be sent as one line.
    static func isWellFormed(_ line: HeaderFields.Line) -> Bool {
        line.name.isToken && line.value.utf8.allSatisfy(isValueByte)
    }

    /// RFC 9110 section 5.5: every byte but control characters, of which only the tab is allowed.
    private static func isValueByte(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }
}
