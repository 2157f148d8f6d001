@_spi(Service) internal import AuthContract
internal import AuthService
internal import Crypto
internal import StrictJSON

/// The version of a record in the admin API, for `ETag` and `If-Match` (RFC 9110 sections 8.8.3 and 13.1.1).
struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    /// The tag with its quotes.
    let description: String

    /// The tag of a record. Two records have the same tag only if they are equal, including their secrets. The secrets are long
    /// random keys, so the hash does not reveal them.
    init(_ record: AppRecord) {
        self.init(hashing: record.json(secrets: .plain))
    }

    /// The tag of a device: its version, which each `DeviceChange` increments. A `DeviceFact` or a last-seen time does not.
    init(_ device: DeviceRecord) { description = "\"\(device.version)\"" }

    /// The tag of a webhook's settings. It does not depend on the webhook's version, which each delivery increments.
    init(_ webhook: Webhook) {
        self.init(
            hashing: JSONObject([
                ("id", .string(webhook.id)), ("url", .string(webhook.url)),
                ("apps", .array(webhook.scope.named.map(\.text).sorted().map { .string($0) })),
                ("all_apps", .bool(webhook.scope == .allApps)), ("events", .string(webhook.storedCodes)),
                ("enabled", .bool(webhook.isEnabled)),
            ]))
    }

    private init(hashing object: JSONObject) {
        let digest = SHA256.hash(data: JSONValue.object(object).bytes)
        description = "\"" + Hexadecimal.encode(digest.withUnsafeBytes { [UInt8]($0.prefix(16)) }) + "\""
    }
}

/// The `If-Match` of a request.
enum Precondition: Sendable {
    case none
    /// `*`: any version.
    case any
    case oneOf([String])

    /// - Throws: `ContractError` if the values are neither `*` nor a list of at most 32 tags.
    init(_ values: [String]) throws(ContractError) {
        guard !values.isEmpty else {
            self = .none
            return
        }
        let tags = values.flatMap { value in
            value.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmingOptionalWhitespace }
        }
        if tags == ["*"] {
            self = .any
        } else {
            guard tags.count <= 32, tags.allSatisfy(Self.isTag) else {
                throw ContractError("If-Match must be * or the ETag of an answer, with its quotes")
            }
            // A weak tag never matches (RFC 9110 section 13.1.1).
            self = .oneOf(tags)
        }
    }

    private static func isTag(_ text: String) -> Bool {
        let opaque = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
        return opaque.count >= 2 && opaque.hasPrefix("\"") && opaque.hasSuffix("\"")
            && !opaque.dropFirst().dropLast().contains("\"")
    }

    /// Whether the `If-Match` header names versions and not `*`.
    var isConditional: Bool {
        if case .oneOf = self { true } else { false }
    }

    /// Refuses a record if the `If-Match` header names versions, but not the record's version.
    func check(_ record: AppRecord) throws(Refusal) { try check(EntityTag(record), of: "\(record.appID)") }

    /// Refuses a version if the `If-Match` header names versions, but not this one.
    ///
    /// - Parameters:
    ///   - tag: the current version of the record.
    ///   - what: the name of the record for the log, which is never an id of a device.
    func check(_ tag: EntityTag, of what: String) throws(Refusal) {
        guard case .oneOf(let tags) = self, !tags.contains(tag.description) else { return }
        throw Refusal(.preconditionFailed, "If-Match names another version of \(what)")
    }
}
