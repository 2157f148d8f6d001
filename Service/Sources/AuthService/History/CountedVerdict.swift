public import AuthContract

/// The members of a verdict that the history keeps. Equal values are counted together.
public struct CountedVerdict: Sendable, Hashable {
    /// The kind of judged event.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A request that another service received: a call of `/verify`, or a request that a gateway forwards.
        case verification
        /// A device's own signed request to the service.
        case device
        /// A registration.
        case registration
    }

    /// The app; nil: an unknown app, or one that is not counted separately.
    public var appID: AppID?
    /// The kind of judged event.
    public let kind: Kind
    /// The platform of the device; nil: it is unknown, because no signature verified.
    public var platform: Platform?
    /// The outcome as in the metrics: `verified`, a status of a registration, an error code, or `observed_` and an error code.
    public let code: String
    /// The scheme of the signature; nil: none verified.
    public var scheme: SignatureScheme?
    /// The version of the app in the device's evidence, ``unknown`` or ``other``.
    public var version: String

    /// The text for an unknown platform or scheme, and for the version if the evidence names none, or if the evidence or the
    /// signature did not verify.
    public static let unknown = "unknown"
    /// The text for every version that is not counted separately.
    public static let other = "other"

    /// Memberwise initializer. `version` is as in ``DeviceRecord/appVersion``; nil: unknown.
    public init(
        appID: AppID?, kind: Kind, platform: Platform? = nil, code: String, scheme: SignatureScheme? = nil,
        version: String? = nil
    ) {
        self.appID = appID
        self.kind = kind
        self.platform = platform
        self.code = code
        self.scheme = scheme
        self.version = version ?? Self.unknown
    }

    /// The same verdict without the members that have many values: app and version.
    var coarse: CountedVerdict {
        var coarse = self
        (coarse.appID, coarse.version) = (nil, Self.other)
        return coarse
    }

    /// A member by which counts can be filtered and grouped. The raw value is its name in the admin API and in the stores.
    public enum Member: String, Sendable, Hashable, CaseIterable {
        /// ``CountedVerdict/appID``; the text of nil is empty.
        case app = "app_id"
        /// ``CountedVerdict/kind``.
        case kind
        /// ``CountedVerdict/platform``; the text of nil is `unknown`.
        case platform
        /// ``CountedVerdict/code``.
        case code
        /// ``CountedVerdict/scheme``; the text of nil is `unknown`.
        case scheme
        /// ``CountedVerdict/version``.
        case version
    }

    /// A member as text: stores keep every member as text.
    public func text(_ member: Member) -> String {
        switch member {
        case .app: appID?.text ?? ""
        case .kind: kind.rawValue
        case .platform: platform?.rawValue ?? Self.unknown
        case .code: code
        case .scheme: scheme.map { String($0.rawValue) } ?? Self.unknown
        case .version: version
        }
    }
}

/// An app's version, as evidence names it.
enum AppVersion {
    private static let maximumBytes = 64

    /// The version if it may be stored and shown: 1 to 64 printable ASCII characters. Nil for any other text.
    static func bounded(_ text: String?) -> String? {
        guard let text, (1...maximumBytes).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return text
    }
}
