internal import AuthContract

/// Where a request goes, taken apart without changing a byte: what is signed has to be what is sent.
struct RequestTargetURL: Sendable {
    let origin: RequestOrigin
    let target: RequestTarget

    /// Reads `scheme://authority/path?query`; no path counts as `/`. A fragment is refused, as it is never sent.
    init(_ url: String) throws(SynheartAuthError) {
        let slash = UInt8(ascii: "/")
        let bytes = Array(url.utf8)
        // The authority begins after the two slashes of `://`.
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
