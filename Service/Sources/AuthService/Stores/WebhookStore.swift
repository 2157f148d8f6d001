public import AuthContract

/// A receiver of audit events, with its position in the audit log. The log itself is the queue.
public struct Webhook: Sendable, Hashable {
    /// The id: 16 hexadecimal digits.
    public let id: String
    /// The URL to which events are posted.
    public var url: String
    /// The apps whose events it gets. A webhook for all apps also gets the events that concern no app.
    public var scope: CredentialScope
    /// The codes of the events that it gets; empty: all. They may include codes of a newer version.
    public var codes: Set<String>
    /// Whether events are delivered to this webhook.
    public var isEnabled: Bool
    /// The key that signs the deliveries, sealed with the service key.
    public let sealedSecret: [UInt8]
    /// When it was added.
    public let createdAt: UnixTime
    /// The number of the event up to which every event was delivered or needs no delivery.
    public var position: Int64
    /// When delivery of the first event after `position` first failed; nil if it was not tried, or if the last attempt succeeded.
    public var failingSince: UnixTime?
    /// The reason why the last delivery failed; nil: it did not.
    public var failure: String?
    /// The node that delivers; nil: none.
    public var leaseHolder: String?
    /// The time until which no other node delivers; nil: there is no lease.
    public var leaseUntil: UnixTime?
    /// Increases with each saved change.
    public internal(set) var version: Int64

    /// Memberwise initializer.
    public init(
        id: String, url: String, scope: CredentialScope, codes: Set<String> = [], isEnabled: Bool = true,
        sealedSecret: [UInt8], createdAt: UnixTime, position: Int64, failingSince: UnixTime? = nil,
        failure: String? = nil, leaseHolder: String? = nil, leaseUntil: UnixTime? = nil, version: Int64 = 0
    ) {
        self.id = id
        self.url = url
        self.scope = scope
        self.codes = codes
        self.isEnabled = isEnabled
        self.sealedSecret = sealedSecret
        self.createdAt = createdAt
        self.position = position
        self.failingSince = failingSince
        self.failure = failure
        self.leaseHolder = leaseHolder
        self.leaseUntil = leaseUntil
        self.version = version
    }
}

/// A decision about a webhook: the webhook before and after it.
public struct WebhookChange: Sendable, Hashable {
    /// The webhook as it was read. Its version must still be the stored one.
    public let before: Webhook
    /// The webhook after the change, with the same id; the stores keep its secret and increment its version. Nil: the webhook is
    /// removed.
    public let after: Webhook?
    /// The audit event of the change; nil: the change has none.
    public let event: AuditEvent?
    /// The deliveries that led to the change, oldest first. At most `WebhookDelivery.kept`: the newest of those that were given.
    public let deliveries: [WebhookDelivery]

    /// A change of this webhook.
    public init(
        from before: Webhook, to after: Webhook?, recording event: AuditEvent? = nil,
        noting deliveries: [WebhookDelivery] = []
    ) {
        (self.before, self.after, self.event) = (before, after, event)
        self.deliveries = deliveries.suffix(WebhookDelivery.kept)
    }
}

/// Keeps webhooks. A change and its audit event are one transaction. A call that throws or returns false changes nothing and
/// appends no event.
public protocol WebhookStore: Sendable {
    /// All webhooks, ordered by id.
    func webhooks() async throws(StoreError) -> [Webhook]

    /// The webhook with this id; nil if there is none.
    func webhook(_ id: String) async throws(StoreError) -> Webhook?

    /// Adds a webhook. If its id exists, throws and keeps the existing one. Throws if there are already `Webhooks.maximum`, even
    /// if several are added concurrently. Returns false if an app that it names does not exist.
    func insert(_ webhook: Webhook, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Saves a change with its deliveries, and increments the version. If several callers start from the same version, one
    /// succeeds.
    ///
    /// The store keeps the newest `WebhookDelivery.kept` deliveries of the webhook. The same transaction removes the older ones.
    /// If the webhook is removed, so are its deliveries.
    ///
    /// - Returns: false if the stored webhook does not have the version of `WebhookChange.before`, or is absent.
    func save(_ change: WebhookChange) async throws(StoreError) -> Bool

    /// The last deliveries of a webhook, newest first; none if there is no such webhook.
    func deliveries(of id: String, limit: Int) async throws(StoreError) -> [WebhookDelivery]
}

extension Webhook {
    /// The columns that a change may replace, in the order of their values in the stores.
    package static let changing = [
        "url", "apps", "codes", "is_enabled", "position", "failing_since", "failure", "lease_holder", "lease_until",
    ]
    /// All columns.
    package static let columns = ["id", "sealed_secret", "created_at", "version"] + changing

    /// The stored form of the codes: a text in which spaces separate them.
    package var storedCodes: String { codes.sorted().joined(separator: " ") }

    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            id: try row.text("id"), url: try row.text("url"),
            scope: try row.parsed("apps") { CredentialScope(storedText: $0) },
            codes: Set(try row.text("codes").split(separator: " ").map(String.init)),
            isEnabled: try row.bool("is_enabled"), sealedSecret: try row.bytes("sealed_secret"),
            createdAt: try row.time("created_at"), position: try row.integer("position"),
            failingSince: try row.optionalTime("failing_since"), failure: try row.optionalText("failure"),
            leaseHolder: try row.optionalText("lease_holder"), leaseUntil: try row.optionalTime("lease_until"),
            version: try row.integer("version"))
    }
}
