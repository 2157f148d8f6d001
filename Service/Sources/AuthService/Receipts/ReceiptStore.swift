public import AuthContract

/// The state of the exchange of a device's receipt.
public struct ReceiptRefresh: Sendable, Hashable {
    /// When the receipt may be exchanged next; nil: never, because it did not verify or is not Apple's.
    public var dueAt: UnixTime?
    /// When the last attempt to exchange the receipt ended, even if it failed before the request was sent or got no answer; nil: there was
    /// no attempt.
    public var askedAt: UnixTime?
    /// The outcome: `refreshed`, or why the stored receipt stayed; nil: there was no exchange.
    public var outcome: String?
    /// Failures in a row for this receipt.
    public var failures: Int

    /// Memberwise initializer. Without arguments: a receipt that is never exchanged.
    public init(dueAt: UnixTime? = nil, askedAt: UnixTime? = nil, outcome: String? = nil, failures: Int = 0) {
        self.dueAt = dueAt
        self.askedAt = askedAt
        self.outcome = outcome
        self.failures = failures
    }
}

/// A receipt that is due, leased to the caller until `evidence.refresh.dueAt`.
public struct DueReceipt: Sendable, Hashable {
    /// The app of the device.
    public let appID: AppID
    /// The device of the receipt.
    public let deviceID: DeviceID
    /// The stored evidence. Its `refresh.dueAt` is the end of the lease.
    public let evidence: AppAttestKeyState
    /// The receipt to exchange.
    public let receipt: [UInt8]

    /// A due receipt of a device. Nil if the evidence has no receipt.
    public init?(appID: AppID, deviceID: DeviceID, evidence: AppAttestKeyState) {
        guard let receipt = evidence.receipt else { return nil }
        self.appID = appID
        self.deviceID = deviceID
        self.evidence = evidence
        self.receipt = receipt
    }

    /// The receipt of a device; nil if it has none.
    package init?(_ device: DeviceRecord) {
        guard let evidence = device.appAttest else { return nil }
        self.init(appID: device.appID, deviceID: device.deviceID, evidence: evidence)
    }
}

/// The outcome of an exchange.
public struct ReceiptChange: Sendable, Hashable {
    /// A new receipt that passed every check.
    public struct Replacement: Sendable, Hashable {
        /// The receipt, as Apple sent it.
        public let receipt: [UInt8]
        /// Apple's approximate count of the keys that the device attested for the app in 30 days.
        public let riskMetric: Int

        /// Memberwise initializer.
        public init(receipt: [UInt8], riskMetric: Int) {
            self.receipt = receipt
            self.riskMetric = riskMetric
        }
    }

    /// The new receipt; nil: the stored one stays.
    public var replacement: Replacement?
    /// The time of the next exchange, and the result of this one.
    public var refresh: ReceiptRefresh

    /// Memberwise initializer.
    public init(replacement: Replacement? = nil, refresh: ReceiptRefresh) {
        self.replacement = replacement
        self.refresh = refresh
    }
}

/// Keeps track of due receipts. The background job has no other state, so its work survives restarts.
///
/// Guarantees: exactly one caller gets a due receipt, even if many processes ask at once. If that caller records nothing,
/// the receipt is due again at the end of the lease. A recorded outcome only replaces the receipt that was taken.
public protocol ReceiptStore: Sendable {
    /// Takes the receipt that has been due the longest (`dueAt <= now`), and sets its `dueAt` to the end of the `lease`. Nil if
    /// none is due. Only registered devices with a receipt and a `dueAt` are considered. If the device's row cannot be read, the call
    /// sets its `dueAt` too and then throws, so that the next call takes another device.
    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt?

    /// Records the outcome of an exchange. If the stored attested key, receipt or lease has changed since the receipt was
    /// taken, returns false, changes nothing and appends no event: a newer receipt stays.
    ///
    /// - Parameters:
    ///   - change: the new state of the exchange. With a replacement, its receipt and metric replace the stored ones, and the
    ///     receipt's outcome becomes `verified`. The counter and all other stored members stay.
    ///   - due: the receipt that was taken.
    ///   - event: appended in the same transaction; nil: no event.
    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool
}
