public import AuthContract

/// One attempt to deliver an event to a webhook, and its result.
///
/// The store keeps only the last `kept` deliveries of a webhook. A node that begins to deliver counts the earlier attempts of
/// an event in these deliveries.
public struct WebhookDelivery: Sendable, Hashable {
    /// The number of the event in the audit log.
    public let sequence: Int64
    /// 1 for the first attempt to deliver the event.
    public let attempt: Int64
    /// When the attempt began.
    public let at: UnixTime
    /// The milliseconds until the answer, or until the attempt failed without one.
    public let milliseconds: Int64
    /// The HTTP status of the answer; nil: there was none.
    public let status: Int?
    /// The reason why the event must be delivered again, at most 200 characters, without text that the receiver sent; nil: the
    /// event was delivered.
    public let failure: String?

    /// The most deliveries that a store keeps of a webhook.
    public static let kept = 100
    private static let maximumFailure = 200

    /// Memberwise initializer. A failure of more than 200 characters is truncated.
    public init(
        sequence: Int64, attempt: Int64, at: UnixTime, milliseconds: Int64, status: Int?, failure: String?
    ) {
        self.sequence = sequence
        self.attempt = attempt
        self.at = at
        self.milliseconds = milliseconds
        self.status = status
        self.failure = failure.map { String($0.unicodeScalars.prefix(Self.maximumFailure)) }
    }
}

extension WebhookDelivery {
    /// All columns but the webhook's id.
    package static let columns = ["sequence", "attempt", "at", "milliseconds", "status", "failure"]

    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            sequence: try row.integer("sequence"), attempt: try row.integer("attempt"), at: try row.time("at"),
            milliseconds: try row.integer("milliseconds"),
            status: try row.optionalInteger("status").map { Int(clamping: $0) },
            failure: try row.optionalText("failure"))
    }
}
