internal import AuthContract

/// A request's URL, split without changing a byte: the SDK must sign the URL exactly as it is sent.
struct RequestTargetURL: Sendable {
    let origin: RequestOrigin
    let target: RequestTarget

    /// Reads `scheme://authority/path?query`. An absent path is read as `/`. Refuses a fragment, which is never sent.
    init(_ url: String) throws(SynheartAuthError) {
        let slash = UInt8(ascii: "/")
        let bytes = Array(url.utf8)
        // The authority begins after `://`.
        let authority = bytes.firstIndex(of: slash).map { $0 + 2 } ?? bytes.endIndex
        let end =
            bytes.indices.dropFirst(authority).first {
                [slash, UInt8(ascii: "?"), UInt8(ascii: "#")].contains(bytes[$0])
            }
            ?? bytes.endIndex
        let target = String(decoding: bytes[end...], as: UTF8.self)
        do throws(ContractError) {
            origin = try RequestOrigin(String(decoding: bytes[..<end], as: UTF8.self))
            self.target = try RequestTarget(target.hasPrefix("/") ? target : "/" + target)
        } catch {
            throw SynheartAuthError(.signingFailed, error.description)
        }
    }
}
