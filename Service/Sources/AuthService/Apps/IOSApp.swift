public import AppAttest
@_spi(Service) internal import AuthContract
public import StrictJSON

/// An iOS or macOS app: the `ios` object of an app record.
public struct IOSApp: Sendable, Hashable {
    /// The requirements for App Attest objects.
    public var policy: AppAttestPolicy
    /// Root certificates in PEM that are trusted in addition to Apple's. Only on channels dev and staging.
    public var trustAnchors: [String] = []
    /// Path prefixes on which a request must carry an assertion. Cannot be combined with ``assertionsRequiredExcept``.
    public var assertionsRequiredOn: [String] = []
    /// Path prefixes on which a request need not carry an assertion, while every other path demands one. Nil: this list is not
    /// used. This list is safer than ``assertionsRequiredOn``, because a path that the operator forgot is protected.
    public var assertionsRequiredExcept: [String]?
    /// A device with a risk metric above this is flagged; nil: no device is. A flag never refuses a request: Apple describes
    /// the metric as a reason to investigate, not as a verdict.
    public var flagRiskMetricAbove: Int?

    /// The App IDs of the policy, as an app record has them.
    package var appIDs: [String] { policy.appIDs.map(\.text) }
}

extension IOSApp: JSONPolicy {
    /// The members of the `ios` object. An ETag is a hash of a record's text, so the order is fixed: `trust_anchors` comes after
    /// `environments`.
    public static let jsonMembers: [JSONMember<IOSApp>] = {
        let policy = AppAttestPolicy.jsonMembers.map { $0.within(\IOSApp.policy) }
        return Array([policy.prefix(2), ownMembers.prefix(1), policy.dropFirst(2), ownMembers.dropFirst()].joined())
    }()

    private static let ownMembers: [JSONMember<IOSApp>] = [
        JSONMember(
            "trust_anchors", \.trustAnchors, .array(of: .text),
            .advanced("Further roots, PEM, beside Apple's. Not on channel `production`.")),
        JSONMember(
            "assertions_required_on", \.assertionsRequiredOn, .array(of: .path),
            .advanced("Path prefixes on which a request of an iOS device must carry an assertion.")),
        JSONMember(
            "assertions_required_except", \.assertionsRequiredExcept, .array(of: .path),
            .advanced(
                "Instead of `assertions_required_on`, and safer: path prefixes on which a request need not carry an assertion. `[]` means that every path needs one."
            )),
        JSONMember(
            "flag_risk_metric_above", \.flagRiskMetricAbove, .integer(in: 0...1_000_000),
            .advanced("A risk metric above this flags the device. A flag never refuses a request.")),
    ]

    /// Refuses a record with both lists of paths, and a record that exempts an ambiguous path from assertions. Servers
    /// may read an ambiguous path differently, so a request for it always needs an assertion.
    func check() throws(ContractError) {
        guard assertionsRequiredOn.isEmpty || assertionsRequiredExcept == nil else {
            throw ContractError("ios.assertions_required_on and ios.assertions_required_except exclude each other")
        }
        guard !(assertionsRequiredExcept ?? []).contains(where: LenientPath.isAmbiguous) else {
            throw ContractError(
                """
                ios.assertions_required_except: a path with \\, ;, an escape of / \\ % ; ? # or of a control character, // at its \
                beginning or %20 at its end always needs an assertion
                """)
        }
    }
}

extension JSONCoding where Value == String {
    /// A path in the form in which requests sign it.
    fileprivate static var path: Self { text.map({ (try? RequestPath($0)) == nil ? nil : $0 }, back: { $0 }) }
}
