public import AuthContract

/// How the exchange of a device's receipt stands.
public struct ReceiptRefresh: Sendable, Hashable {
    /// When the receipt may be exchanged next; nil: never, because it did not verify or is not Apple's.
    public var dueAt: UnixTime?
    /// When Apple last answered, or failed to.
    public var askedAt: UnixTime?
    /// The outcome: `refreshed`, or why not.
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
    public let appID: AppID
    public let deviceID: DeviceID
    /// What is stored; `refresh.dueAt` is the end of the lease.
    public let evidence: AppAttestEvidence
    /// The receipt to exchange.
    public let receipt: [UInt8]

    /// Nil if the evidence has no receipt.
    public init?(appID: AppID, deviceID: DeviceID, evidence: AppAttestEvidence) {
        guard let receipt = evidence.receipt else { return nil }
        self.appID = appID
        self.deviceID = deviceID
        self.evidence = evidence
        self.receipt = receipt
    }
}

/// The outcome of an exchange.
public struct ReceiptChange: Sendable, Hashable {
    /// A new receipt that passed every check.
    public struct Replacement: Sendable, Hashable {
        public let receipt: [UInt8]
        public let riskMetric: Int

        /// Memberwise initializer.
        public init(receipt: [UInt8], riskMetric: Int) {
            self.receipt = receipt
            self.riskMetric = riskMetric
        }
    }

    /// Nil: the stored receipt stays.
    public var replacement: Replacement?
    public var refresh: ReceiptRefresh

    /// Memberwise initializer.
    public init(replacement: Replacement? = nil, refresh: ReceiptRefresh) {
        self.replacement = replacement
        self.refresh = refresh
    }
}

/// Keeps which receipts are due. The background job has no other state, so its work survives restarts.
///
/// Guarantees: of any number of callers, in any number of processes, one gets a due receipt. If it ends without recording
/// anything, the receipt is due again at the end of the lease. What is recorded replaces only what was taken.
public protocol ReceiptStore: Sendable {
    /// Takes the receipt that has been due the longest (`dueAt <= now`), and sets its `dueAt` to the end of the `lease`. Nil
    /// if none is due. Only registered devices that have a receipt and a `dueAt` count.
    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt?

    /// Records the outcome of an exchange. Returns false, changes nothing and appends no event if the attested key, the receipt
    /// or the lease is no longer what was taken: a newer receipt stays.
    ///
    /// - Parameters:
    ///   - change: the new state of the exchange. With a replacement, its receipt and metric replace the stored ones, and the
    ///     receipt's outcome becomes `verified`. The counter and all other members stay as they are stored.
    ///   - due: what was taken.
    ///   - event: appended in the same transaction; nil: none is.
    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool
}
