package import CBOR

/// The map that iOS 27 and macOS 27 append to authenticator data, in attestations and in every assertion.
public struct AuthenticatorExtensions: Sendable {
    /// `apple_validation_category_01`: how the code was signed; nil if the map has no such entry.
    public let category: ValidationCategory?
    /// `apple_bundle_version_01`: the app's `CFBundleVersion`; nil if the map has no such entry. Macs do not always send it.
    public let bundleVersion: String?
    /// All entries, including unknown ones.
    package let map: CBORMap

    /// The names of all entries whose keys are text, including unknown ones.
    public var names: [String] { map.entries.compactMap(\.key.text) }

    /// The value of an entry, as its CBOR encoding; nil if there is no such entry.
    public func encodedValue(of name: String) -> [UInt8]? { map[.text(name)]?.encoded }

    static let categoryName: CBORValue = "apple_validation_category_01"
    static let bundleVersionName: CBORValue = "apple_bundle_version_01"

    package init(_ map: CBORMap) throws(AppAttestError) {
        self.map = map
        self.category = try map[Self.categoryName].map(Self.category)
        switch map[Self.bundleVersionName] {
        case nil: self.bundleVersion = nil
        case .text(let text)?: self.bundleVersion = text
        default: throw AppAttestError(.malformedExtensions, .extensions, "the bundle version is not text")
        }
    }

    // Apple's guide specifies UInt32. Real objects have a byte string of four bytes, little-endian. Both are accepted.
    private static func category(_ value: CBORValue) throws(AppAttestError) -> ValidationCategory {
        switch value {
        case .bytes(let octets) where octets.count == 4:
            return ValidationCategory(rawValue: octets.reversed().reduce(0) { $0 << 8 | UInt32($1) })
        case .unsigned(let number):
            if let number = UInt32(exactly: number) { return ValidationCategory(rawValue: number) }
        default: break
        }
        throw AppAttestError(.malformedExtensions, .extensions, "the category is neither 4 octets nor a small number")
    }
}
