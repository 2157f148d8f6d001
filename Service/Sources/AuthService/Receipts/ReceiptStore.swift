public import AuthContract

/// How the exchange of a device's receipt stands.
public struct ReceiptRefresh: Sendable, Hashable {
    /// When Apple may next be asked; nil: never, because the receipt did not verify or is not Apple's.
    public var dueAt: UnixTime?
    /// When Apple last answered, or failed to.
    public var askedAt: UnixTime?
    /// What came of it: `refreshed`, or why not.
    public var outcome: String?
    /// How often in a row it failed for this receipt.
    public var failures: Int

    /// A state of its parts; without any, a receipt that is never exchanged.
    public init(dueAt: UnixTime? = nil, askedAt: UnixTime? = nil, outcome: String? = nil, failures: Int = 0) {
        self.dueAt = dueAt
        self.askedAt = askedAt
        self.outcome = outcome
        self.failures = failures
    }
}

/// A device whose receipt is due, taken for as long as `evidence.refresh.dueAt`.
public struct DueReceipt: Sendable, Hashable {
    public let appID: AppID
    public let deviceID: DeviceID
    /// What is stored; `refresh.dueAt` is the end of the lease under which it was taken.
    public let evidence: AppAttestEvidence
    /// The receipt to be exchanged.
    public let receipt: [UInt8]

    /// A due receipt of its parts; nil where there is no receipt.
    public init?(appID: AppID, deviceID: DeviceID, evidence: AppAttestEvidence) {
        guard let receipt = evidence.receipt else { return nil }
        self.appID = appID
        self.deviceID = deviceID
        self.evidence = evidence
        self.receipt = receipt
    }
}

/// What becomes of a receipt that was taken.
public struct ReceiptChange: Sendable, Hashable {
    /// A new receipt, of which every check has passed.
    public struct Replacement: Sendable, Hashable {
        public let receipt: [UInt8]
        public let riskMetric: Int

        /// A replacement of its parts.
        public init(receipt: [UInt8], riskMetric: Int) {
            self.receipt = receipt
            self.riskMetric = riskMetric
        }
    }

    /// Nil: the stored receipt stays.
    public var replacement: Replacement?
    public var refresh: ReceiptRefresh

    /// A change of its parts.
    public init(replacement: Replacement? = nil, refresh: ReceiptRefresh) {
        self.replacement = replacement
        self.refresh = refresh
    }
}

/// Keeps which receipts are due: the work of the background job survives restarts because it is here and nowhere else.
///
/// What it guarantees: of any number of takers, in any number of processes, one gets a due receipt; who got it and died
/// loses it with the end of the lease. What is recorded replaces only what was taken.
public protocol ReceiptStore: Sendable {
    /// Takes the receipt of a registered device that has been due the longest, and makes it due at the end of the `lease`;
    /// nil where none is due.
    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt?

    /// Records what came of a receipt; false where the attested key, the receipt or the lease is no longer what was taken.
    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool
}
