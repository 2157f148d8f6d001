internal import StrictJSON

/// The id of an app: 1 to 128 of `A-Z a-z 0-9 . _ -`, not ending in `_next`.
///
/// The suffix is reserved, because `synheart_auth_{app_id}_next` is one of the two key aliases of `{app_id}`.
public struct AppID: Sendable, Hashable, CustomStringConvertible {
    /// The id as text.
    public let text: String

    /// Parses an id.
    public init(_ text: String) throws(ContractError) {
        let isValid = text.withBytes { bytes in
            (1...128).contains(bytes.count) && bytes.allSatisfy(Self.isAllowed)
                && !bytes.suffix(5).elementsEqual("_next".utf8)
        }
        guard isValid else {
            throw ContractError("app_id must be 1 to 128 of A-Z a-z 0-9 . _ - and must not end in _next")
        }
        self.text = text
    }

    public var description: String { text }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
