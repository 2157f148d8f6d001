public import AppAttest
@_spi(Service) internal import AuthContract
public import StrictJSON

/// An iOS or macOS app: the `ios` object of an app record.
public struct IOSApp: Sendable, Hashable {
    /// The requirements for App Attest objects.
    public var policy: AppAttestPolicy
    /// Further roots in PEM, only on channels dev and staging.
    public var trustAnchors: [String] = []
    /// Path prefixes on which a request must carry an assertion. Excludes ``assertionsRequiredExcept``.
    public var assertionsRequiredOn: [String] = []
    /// Path prefixes on which a request need not carry an assertion, while every other path demands one. Nil: this list is not
    /// used. This list is the safer one, because a forgotten path is protected.
    public var assertionsRequiredExcept: [String]?
    /// A device with a risk metric above this is flagged; nil: no device is. A flag never refuses a request: Apple describes
    /// the metric as a reason to investigate, not as a verdict.
    public var flagRiskMetricAbove: Int?

    /// The App IDs of the policy, as an app record has them.
    package var appIDs: [String] { policy.appIDs.map(\.text) }
}

extension IOSApp: JSONPolicy {
    /// The members other than those of ``policy``.
    public static let jsonMembers: [JSONMember<IOSApp>] = [
        JSONMember("trust_anchors", \.trustAnchors, .array(of: .text), null: []),
        JSONMember("assertions_required_on", \.assertionsRequiredOn, .array(of: .path), null: []),
        JSONMember("assertions_required_except", \.assertionsRequiredExcept, .array(of: .path)),
        JSONMember("flag_risk_metric_above", \.flagRiskMetricAbove, .integer(in: 0...1_000_000)),
    ]

    init(_ fields: JSONFields) throws {
        policy = try AppAttestPolicy(appRecord: fields, ignoring: Self.appRecordNames)
        self = try applying(appRecord: fields, ignoring: AppAttestPolicy.appRecordNames)
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

    /// The `ios` object, every member written out. An ETag is a hash of this text, so the order of the members is fixed:
    /// `trust_anchors` comes after `environments`.
    var recordJSON: JSONObject {
        let own = appRecordJSON.members
        return JSONObject(
            members: policy.appRecordJSON.members.flatMap { $0.name == "environments" ? [$0] + own.prefix(1) : [$0] }
                + own.dropFirst())
    }
}

extension JSONCoding where Value == String {
    /// The path of a request, as it is signed.
    fileprivate static var path: Self { text.map({ (try? RequestPath($0)) == nil ? nil : $0 }, back: { $0 }) }
}
