import AuthContract
import AuthService
import StoreConformance

/// The stores in memory with one fault.
struct FaultyStores: AppStore, DeviceStore, ReceiptStore {
    enum Fault: Sendable, Hashable {
        /// `maximumPending` counts the pending devices of every app.
        case countsPendingAcrossApps
        /// `maximumPending` counts devices with any status.
        case countsEveryStatusAsPending
        /// The counts of an app are those of all apps.
        case countsDevicesOfEveryApp
        /// A query for the apps of a credential lists the devices of all apps.
        case listsDevicesOfEveryApp
        /// Devices are always listed newest first.
        case ignoresOrder
        /// A refused change still appends its event.
        case appendsEventAnyway(MemoryStores.Call)
        /// A receipt is recorded if the attested key and the lease still match, even over a newer receipt.
        case overwritesNewerReceipt
        /// The stream of external changes ends at once.
        case endsChanges
        /// The stream of external changes ends when a second listener arrives.
        case hasOneListener(Listener)
    }

    /// The latest listener.
    actor Listener: Hashable {
        private var latest: AsyncStream<Void>.Continuation?

        func replace(_ continuation: AsyncStream<Void>.Continuation) {
            latest?.finish()
            latest = continuation
        }

        static func == (left: Listener, right: Listener) -> Bool { left === right }
        nonisolated func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    let memory = MemoryStores()
    let fault: Fault

    var underTest: StoresUnderTest {
        var stores = StoresUnderTest(memory, now: SystemClock().now)
        (stores.apps, stores.devices, stores.receipts) = (self, self, self)
        return stores
    }

    private func appending(
        _ event: AuditEvent, to call: MemoryStores.Call, unless isChanged: Bool
    ) async throws(StoreError) {
        if !isChanged, fault == .appendsEventAnyway(call) { try await memory.append(event) }
    }

    // MARK: Apps

    func app(_ id: AppID) async throws(StoreError) -> StoredApp? { try await memory.app(id) }

    func apps() async throws(StoreError) -> [StoredApp] { try await memory.apps() }

    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool {
        let isDone = try await memory.insert(app, recording: event)
        try await appending(event, to: .insertApp, unless: isDone)
        return isDone
    }

    func save(_ change: AppChange) async throws(StoreError) -> AppSaveOutcome {
        let outcome = try await memory.save(change)
        try await appending(change.event, to: .saveApp, unless: outcome == .saved)
        return outcome
    }

    // MARK: Devices

    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        try await memory.device(id, of: app)
    }

    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding? {
        try await memory.binding(of: thumbprint)
    }

    func insert(
        _ device: DeviceRecord, under app: StoredApp, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome {
        var query = DeviceQuery(limit: 1000)
        switch fault {
        case .countsPendingAcrossApps: query.status = .pending
        case .countsEveryStatusAsPending: query.appID = device.appID
        default: query.limit = 1
        }
        if query.limit > 1, device.status == .pending {
            let isUnproven = device.assurance == .unproven
            let others = try await memory.devices(query).filter { ($0.assurance == .unproven) == isUnproven }
            guard others.count < maximumPending else { return .tooManyPending }
        }
        let outcome = try await memory.insert(
            device, under: app, maximumPending: maximumPending, recording: event)
        try await appending(event, to: .insertDevice, unless: outcome == .inserted)
        return outcome
    }

    func save(_ changes: [DeviceChange]) async throws(StoreError) -> [SaveOutcome] {
        let outcomes = try await memory.save(changes)
        for (change, outcome) in zip(changes, outcomes) {
            try await appending(change.event, to: .save, unless: outcome == .saved)
        }
        return outcomes
    }

    func raise(_ fact: DeviceFact, of id: DeviceID, app: AppID) async throws(StoreError) -> Bool {
        try await memory.raise(fact, of: id, app: app)
    }

    func observedDevices(of app: AppID, limit: Int) async throws(StoreError) -> [DeviceRecord] {
        try await memory.observedDevices(of: app, limit: limit)
    }

    func writeLastSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError) { try await memory.writeLastSeen(seen) }

    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord] {
        var query = query
        if fault == .listsDevicesOfEveryApp { query.scope = .allApps }
        if fault == .ignoresOrder { query.order = .newest }
        return try await memory.devices(query)
    }

    func knownIDs(after: DeviceQuery.PageToken?, limit: Int) async throws(StoreError) -> [DeviceQuery.PageToken] {
        try await memory.knownIDs(after: after, limit: limit)
    }

    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        guard fault == .countsDevicesOfEveryApp else { return try await memory.count(of: app) }
        return try await memory.devices(DeviceQuery(limit: 1000)).reduce(into: [:]) { $0[$1.status, default: 0] += 1 }
    }

    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int] { try await memory.riskMetrics(of: app) }

    func externalChanges() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        switch fault {
        case .endsChanges: continuation.finish()
        case .hasOneListener(let listener): Task { await listener.replace(continuation) }
        default: return memory.externalChanges()
        }
        return stream
    }

    // MARK: Receipts

    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt? {
        try await memory.takeDueReceipt(at: now, lease: lease)
    }

    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        var due = due
        if fault == .overwritesNewerReceipt, let device = try await memory.device(due.deviceID, of: due.appID),
            let stored = device.appAttest, stored.keyID == due.evidence.keyID,
            stored.refresh.dueAt == due.evidence.refresh.dueAt,
            let newer = DueReceipt(appID: due.appID, deviceID: due.deviceID, evidence: stored)
        {
            due = newer
        }
        let isDone = try await memory.record(change, of: due, recording: event)
        if let event { try await appending(event, to: .recordReceipt, unless: isDone) }
        return isDone
    }
}
