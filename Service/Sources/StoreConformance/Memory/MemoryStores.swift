public import AuthContract
public import AuthService

/// Every store except `LimitStore`, in memory: the reference for the protocols, for tests and for trying things out.
///
/// Nothing survives the process. One actor holds everything, so a change and its audit event are one step.
public actor MemoryStores {
    /// The calls that `fail(_:with:)` can make fail.
    public enum Call: String, Sendable, Hashable, CaseIterable {
        /// A call of `ChallengeStore`.
        case put, take
        /// A call of `ReplayStore`.
        case claim
        /// A call of `AppStore`.
        case app, apps, insertApp, saveApp
        /// A call of `DeviceStore`.
        case device, binding, insertDevice, save
        /// A call of `DeviceStore`.
        case raise, observedDevices, writeLastSeen
        /// A call of `DeviceStore`.
        case devices, knownIDs, count, riskMetrics
        /// A call of `AuditLog`. `events` is also `AuditArchiveStore.auditEntries`.
        case append, events, firstBrokenLink, link
        /// A call of `AuditArchiveStore`.
        case auditArchives, addArchive, removeArchivedEvents
        /// A call of `ReceiptStore`.
        case takeDueReceipt, recordReceipt
        /// A call of `CredentialStore`.
        case insertCredential, credential, credentials, saveCredential
        /// A call of `SigningKeyStore`.
        case signingKeys, saveSigningKeys
        /// A call of `PendingProofStore`.
        case keepProof, pendingProofs, eraseProof
        /// A call of `RecordingStore`.
        case keepRecording, recordings, eraseRecordings
        /// A call of `VerdictHistoryStore`.
        case addVerdicts, sumVerdicts, expireVerdicts
        /// A call of `ServiceKeyStore`.
        case keyChecks, replaceKeyChecks, sealedRows, reseal
        /// A call of `WebhookStore`.
        case webhooks, saveWebhook
        /// A call of `EndedDeviceStore`.
        case forgetDevices
        /// A call of `VersionStore`.
        case serviceVersion, replaceServiceVersion
    }

    let clock: any ServiceClock
    let maximumChallenges: Int
    var challenges: [[UInt8]: HeldChallenge] = [:]
    var challengeOrder: UInt64 = 0
    var claims: [ReplayClaim: UnixTime] = [:]
    var history = ClaimHistory()
    var appRecords: [AppID: StoredApp] = [:]
    var deviceRecords: [DeviceID: DeviceRecord] = [:]
    var bindings: [String: KeyBinding] = [:]
    var ends: [DeviceID: UnixTime] = [:]
    var tombstones: [DeviceID: Tombstone] = [:]
    var log: [RecordedAuditEvent] = []
    var archives: [StoredAuditArchive] = []
    var credentialRecords: [Credential] = []
    var signingKeyRecords: [StoredSigningKey] = []
    var revokedSigningKeys: Set<String> = []
    var proofs: [DeviceID: PendingProof] = [:]
    /// The recordings, oldest first.
    var keptRecordings: [RecordedRefusal] = []
    var verdictCounts: [CountedSlot: Int64] = [:]
    var verdictBatches: [String: UnixTime] = [:]
    var knownKeyChecks: [ServiceKeyCheck] = []
    var storedVersion: String?
    var webhookRecords: [String: Webhook] = [:]
    /// The last deliveries by webhook, oldest first.
    var webhookDeliveries: [String: [WebhookDelivery]] = [:]
    private var failures: [Call: StoreError] = [:]
    private var interruptions: [Call: @Sendable (isolated MemoryStores) -> Void] = [:]
    private let changes = ChangeListeners()

    /// Empty stores.
    ///
    /// - Parameters:
    ///   - clock: decides when expired challenges are removed.
    ///   - maximumChallenges: beyond it, the oldest challenge of the busiest source is evicted.
    public init(clock: any ServiceClock = SystemClock(), maximumChallenges: Int = 100_000) {
        self.clock = clock
        self.maximumChallenges = maximumChallenges
    }

    /// Makes calls fail from now on. Without `calls`, all of them fail.
    public func fail(_ calls: Call..., with error: StoreError = StoreError(.unavailable, "made to fail")) {
        for call in calls.isEmpty ? Call.allCases : calls { failures[call] = error }
    }

    /// Runs an action right before the next call of this kind, to simulate a faster caller.
    public func interrupt(_ call: Call, by action: @escaping @Sendable (isolated MemoryStores) -> Void) {
        interruptions[call] = action
    }

    /// Lets every call succeed again.
    public func recover() { failures = [:] }

    /// Forgets all claims, as a loss of power at `time` does if no claim is durable.
    public func loseHistory(at time: UnixTime) {
        claims = [:]
        history.loseAll(around: time)
    }

    /// Signals a change, as if another process had made it.
    public nonisolated func signalExternalChange() { changes.announce() }

    /// See `DeviceStore`.
    public nonisolated func externalChanges() -> AsyncStream<Void> { changes.stream() }

    func check(_ call: Call) throws(StoreError) {
        if let error = failures[call] { throw error }
        interruptions.removeValue(forKey: call)?(self)
    }
}
