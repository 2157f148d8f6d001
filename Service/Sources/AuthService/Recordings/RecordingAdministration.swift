public import AuthContract
internal import StrictJSON

/// The operations of operators on recordings. Exporting and erasing are audited, because a recording identifies a device.
public struct RecordingAdministration: Sendable {
    /// Nil: the service records no refusals.
    private let store: (any RecordingStore)?
    private let audit: any AuditLog
    private let key: ServiceKey
    private let clock: any ServiceClock

    init(store: (any RecordingStore)?, audit: any AuditLog, key: ServiceKey, clock: any ServiceClock) {
        self.store = store
        self.audit = audit
        self.key = key
        self.clock = clock
    }

    /// Summaries, newest first.
    ///
    /// - Parameters:
    ///   - app: the app; nil: all apps.
    ///   - id: the last id of the previous page.
    ///   - limit: 1 to 1000.
    public func list(
        of app: AppID?, before id: String? = nil, limit: Int = 50
    ) async throws(StoreError) -> [RecordingSummary] {
        try await store?.recordings(of: app, before: id, limit: min(max(limit, 1), 1000)) ?? []
    }

    /// The document of one recording, as JSON text; nil if it does not exist.
    public func export(_ id: String, of app: AppID, actor: String) async throws(StoreError) -> [UInt8]? {
        guard let stored = try await store?.recording(id, of: app) else { return nil }
        let text = try key.open(stored.sealed, context: RefusalRecorder.context(id, of: app))
        // If the audit event cannot be written, the recording is not returned.
        try await audit.append(event(.evidenceExported, id, app, actor))
        return text
    }

    /// Erases one recording, or all of the app if `id` is nil.
    ///
    /// - Returns: the number of erased recordings.
    public func erase(_ id: String?, of app: AppID, actor: String) async throws(StoreError) -> Int {
        try await store?.eraseRecordings(id, of: app, recording: event(.evidenceErased, id, app, actor)) ?? 0
    }

    private func event(_ code: AuditEvent.Code, _ id: String?, _ app: AppID, _ actor: String) -> AuditEvent {
        AuditEvent(
            code, at: clock.now, actor: actor, appID: app,
            detail: JSONObject([("evidence", id.map { .string($0) } ?? "all")]))
    }
}
