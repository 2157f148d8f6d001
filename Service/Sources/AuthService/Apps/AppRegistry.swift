public import AuthContract
internal import Foundation
internal import StrictJSON

/// The provisioned apps: reads through a cache, and changes.
public final class AppRegistry: Sendable {
    private let store: any AppStore
    private let devices: any DeviceStore
    private let key: ServiceKey
    private let clock: any ServiceClock
    private let providers: any EvidenceProviders
    private let cache: ReadThroughCache<AppID, ProvisionedApp>

    private static let maximumCached = 20_000

    /// A registry over a store.
    init(
        store: any AppStore, devices: any DeviceStore, key: ServiceKey, clock: any ServiceClock,
        providers: any EvidenceProviders
    ) {
        self.store = store
        self.devices = devices
        self.key = key
        self.clock = clock
        self.providers = providers
        cache = ReadThroughCache(capacity: Self.maximumCached, clock: clock)
    }

    /// Hits and misses of the cache.
    public var use: CacheUse { cache.use }

    /// The app, if it is provisioned and enabled.
    func enabled(_ id: AppID) async throws(Refusal) -> ProvisionedApp {
        guard let app = try await provisioned(id), app.record.enabled else {
            throw Refusal(.unknownApp, "no enabled app \(id)")
        }
        return app
    }

    /// Whether an app has this id, enabled or not.
    func isProvisioned(_ id: AppID) async throws(Refusal) -> Bool { try await provisioned(id) != nil }

    /// Whether the app existed when it was last read. A known app is read from the store every few seconds at most.
    func isKnown(_ id: AppID) -> Bool { cache.lastKnown(id) != nil }

    private func provisioned(_ id: AppID) async throws(Refusal) -> ProvisionedApp? {
        if let app = cache.value(id) { return app }
        return try await cache.reading(id) { () async throws(Refusal) in try await read(id) }
    }

    private func read(_ id: AppID) async throws(Refusal) -> ProvisionedApp? {
        do {
            return try await record(id).map { try ProvisionedApp($0, providers: providers) }
        } catch let error as StoreError {
            throw Refusal(error)
        } catch {
            throw Refusal(.serviceUnavailable, "the record of \(id) cannot be used: \(error)", retryAfter: 60)
        }
    }

    /// Makes every app be re-read, because one of them changed.
    public func forget() { cache.forgetAll() }

    /// The record of an app.
    public func record(_ id: AppID) async throws(StoreError) -> AppRecord? {
        guard let stored = try await store.app(id) else { return nil }
        return try opened(stored)
    }

    /// All records, by id.
    public func records() async throws(StoreError) -> [AppRecord] {
        var records: [AppRecord] = []
        for stored in try await store.apps() { records.append(try opened(stored)) }
        return records
    }

    /// Adds an app; false where its id is taken.
    public func add(_ record: AppRecord, actor: String) async throws -> Bool {
        try check(record)
        try await checkAudiences(of: record)
        try await checkNoAudience(is: record.appID)
        defer { forget() }
        return try await store.insert(try sealed(record), recording: event(.appAdded, record, actor))
    }

    /// Replaces an app's record; false where it is not there, or has changed meanwhile. Throws where its channel changes
    /// though it has devices.
    ///
    /// - Parameters:
    ///   - record: the new record.
    ///   - expected: what the record must still be; nil: whatever it is.
    ///   - actor: as the audit log names it.
    public func change(
        _ record: AppRecord, replacing expected: AppRecord? = nil, actor: String
    ) async throws -> Bool {
        try check(record)
        try await checkAudiences(of: record)
        defer { forget() }
        guard let stored = try await store.app(record.appID) else { return false }
        let current = try opened(stored)
        guard expected == nil || current == expected else { return false }
        if current.buildChannel != record.buildChannel,
            try await devices.count(of: record.appID).values.contains(where: { $0 > 0 })
        {
            throw ContractError("build_channel cannot change once the app has devices", code: .conflict)
        }
        let changed = try await store.replace(
            stored, with: try sealed(record), recording: event(.appChanged, record, actor, before: current))
        // Also where it was in mode enforce before: a change that failed half-way is repaired by making it again.
        if changed, record.mode == .enforce { try await hold(record, actor: actor) }
        return changed
    }

    /// Makes the devices that were admitted under observation pending, where the app enforces: for a row that a switch of the
    /// mode has not reached, because it came later or the switch was interrupted.
    func holdObserved(of id: AppID, actor: String) async throws(StoreError) {
        guard let record = try await record(id), record.mode == .enforce else { return }
        try await hold(record, actor: actor)
    }

    /// In steps, so that each ends well within the deadline of a write.
    private func hold(_ record: AppRecord, actor: String) async throws(StoreError) {
        let event = event(.devicePending, record, actor)
        var held = Self.heldAtOnce
        while held >= Self.heldAtOnce {
            held = try await devices.holdObserved(of: record.appID, limit: Self.heldAtOnce, recording: event)
        }
    }

    static let heldAtOnce = 1000

    /// A backend of an app takes tokens whose audience is the app's id. Another app may not have tokens made that it takes.
    private func checkAudiences(of record: AppRecord) async throws {
        let audiences = Set(record.signature.tokenAudiences)
        guard !audiences.isEmpty else { return }
        for other in try await store.apps() where other.appID != record.appID && audiences.contains(other.appID.text) {
            throw ContractError(
                "signature.token_audiences: \(other.appID) is the id of another app", code: .conflict)
        }
    }

    /// The same for an app that comes later. `TokenIssuer` checks again, because two changes can be made at once.
    private func checkNoAudience(is id: AppID) async throws {
        for stored in try await store.apps() where stored.appID != id {
            // A record that cannot be opened must not keep out every other app.
            guard let other = try? opened(stored), other.signature.tokenAudiences.contains(id.text) else { continue }
            throw ContractError("app_id: \(id) is one of the token_audiences of \(other.appID)", code: .conflict)
        }
    }

    /// Throws where a record cannot be used, such as for an anchor that is no certificate. One that was put together in code
    /// is held to the same rules as one that was read.
    public func check(_ record: AppRecord) throws {
        _ = try AppRecord(JSONFields(.object(record.json(secrets: .plain))))
        _ = try ProvisionedApp(record, providers: providers)
    }

    /// Removes an app without devices; false where it has some, or is not there.
    public func remove(_ id: AppID, actor: String) async throws(StoreError) -> Bool {
        defer { forget() }
        return try await store.remove(id, recording: AuditEvent(.appRemoved, at: clock.now, actor: actor, appID: id))
    }

    private func event(
        _ code: AuditEvent.Code, _ record: AppRecord, _ actor: String, before: AppRecord? = nil
    ) -> AuditEvent {
        var detail = JSONObject([("after", .object(record.json(secrets: .masked)))])
        if let before { detail["before"] = .object(before.json(secrets: .masked)) }
        return AuditEvent(code, at: clock.now, actor: actor, appID: record.appID, detail: detail)
    }

    // The record is sealed as a whole: which members are secret is then no question of the store's.
    private func sealed(_ record: AppRecord) throws -> StoredApp {
        let text = JSONValue.object(record.json(secrets: .plain)).bytes
        let sealed = try key.seal(text, context: Self.context(record.appID))
        let json = Self.json(masked: .object(record.json(secrets: .masked)), sealed: sealed)
        return StoredApp(appID: record.appID, sealedJSON: json.text())
    }

    private func opened(_ stored: StoredApp) throws(StoreError) -> AppRecord {
        let damaged = StoreError(.unreadable, "the record of \(stored.appID) is damaged")
        guard let sealed = Self.sealedPart(of: Array(stored.sealedJSON.utf8)) else { throw damaged }
        let text = try key.open(sealed, context: Self.context(stored.appID))
        guard
            let record = try? AppRecord(JSONFields(JSONValue(parsing: text, limits: .init(bytes: 1 << 20, depth: 16)))),
            record.appID == stored.appID
        else { throw damaged }
        return record
    }

    private static func json(masked: JSONValue, sealed: [UInt8]) -> JSONValue {
        .object(JSONObject([("record", masked), ("sealed", .string(Base64.standard.encode(sealed)))]))
    }

    /// The sealed part of a stored record's text; nil where it has none.
    static func sealedPart(of text: [UInt8]) -> [UInt8]? {
        (try? JSONValue(parsing: text, limits: limits))?.object?["sealed"]?.string.flatMap {
            Base64.standard.decode($0)
        }
    }

    /// A stored record's text with another sealed part; nil where it is damaged.
    static func resealed(_ text: [UInt8], as sealed: [UInt8]) -> [UInt8]? {
        guard let masked = (try? JSONValue(parsing: text, limits: limits))?.object?["record"] else { return nil }
        return json(masked: masked, sealed: sealed).bytes
    }

    private static let limits = JSONValue.Limits(bytes: 1 << 20, depth: 16)

    static func context(_ id: AppID) -> String { "synheart-auth/app/\(id.text)" }
}
