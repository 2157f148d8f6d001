public import AuthContract
public import HTTPTypes

/// The headers in which a proxy tells the backend the verified identity. A client must not be able to set them.
public enum IdentityHeader {
    /// The header of an identity token.
    public static let token = "X-Synheart-Identity"

    /// Whether a header would claim an identity: `X-Synheart-Verified-…` and `X-Synheart-Identity`, in upper or lower case, even
    /// with another character for `-`, such as `_` or `.`, which some frameworks read as the same name.
    public static func isReserved(_ name: String) -> Bool {
        let name = folded(name)
        return name.hasPrefix("x-synheart-verified-") || name == "x-synheart-identity"
    }

    /// A name as CGI servers compare it: in lower case, with `-` for every byte that is not a letter or a digit.
    package static func folded(_ name: String) -> String {
        String(
            decoding: name.utf8.map { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
                case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
                default: UInt8(ascii: "-")
                }
            }, as: UTF8.self)
    }

    /// Whether a header is passed on to the service. Cookies and other credentials of the client are not passed on.
    static func isTold(_ name: String) -> Bool {
        let lower = String(decoding: name.utf8.map(lowerCased), as: UTF8.self)
        if lower.utf8.starts(with: "x-synheart-".utf8) { return !isReserved(name) }
        return told.contains(lower)
    }

    private static let told: Set<String> = [
        "x-app-id", "x-device-id", "content-digest", "signature-input", "signature",
    ]

    private static func lowerCased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}

extension HTTPFields {
    /// Removes the headers that would claim an identity.
    public mutating func removeIdentityHeaders() {
        self = HTTPFields(filter { !IdentityHeader.isReserved($0.name.rawName) })
    }
}

extension HeaderFields {
    /// Removes the headers that would claim an identity.
    public mutating func removeIdentityHeaders() { lines.removeAll { IdentityHeader.isReserved($0.name) } }
}
