/// The way in which the code that uses the key was signed and distributed: `apple_validation_category_01`, sent since iOS 27 and
/// macOS 27 (Apple, *Validating apps that connect to your server*).
public struct ValidationCategory: RawRepresentable, Sendable, Hashable {
    /// The number that the device sends.
    public let rawValue: UInt32

    /// A category by its number.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Not valid.
    public static let invalid = Self(rawValue: 0)
    /// Part of the operating system.
    public static let operatingSystem = Self(rawValue: 1)
    /// TestFlight.
    public static let testFlight = Self(rawValue: 2)
    /// Signed for development.
    public static let development = Self(rawValue: 3)
    /// The App Store.
    public static let appStore = Self(rawValue: 4)
    /// Enterprise or ad hoc distribution.
    public static let enterprise = Self(rawValue: 5)
    /// Developer ID, outside the App Store.
    public static let developerID = Self(rawValue: 6)
    /// Signed with any other identity.
    public static let other = Self(rawValue: 10)

    /// Every category that Apple documents and that is not invalid; 7 to 9 are reserved.
    public static let documented: Set<Self> = [
        .operatingSystem, .testFlight, .development, .appStore, .enterprise, .developerID, .other,
    ]

    /// The category's name; nil for one that Apple has not documented.
    public var name: String? {
        switch self {
        case .invalid: "invalid"
        case .operatingSystem: "operating-system"
        case .testFlight: "testflight"
        case .development: "development"
        case .appStore: "app-store"
        case .enterprise: "enterprise"
        case .developerID: "developer-id"
        case .other: "other"
        default: nil
        }
    }
}
