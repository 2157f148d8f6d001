public import AuthContract
internal import Bytes
internal import Foundation
internal import StrictJSON

/// The provisioned apps. Reads them through a cache, and changes them.
public final class AppRegistry: Sendable {
    private let store: any AppStore
    private let devices: any DeviceStore
    private let credentials: any CredentialStore
    private let key: ServiceKey
    private let clock: any ServiceClock
    private let providers: any EvidenceProviders
    private let addedRoots = Locked(AddedRoots())
    private let cache: ReadThroughCache<AppID, ProvisionedApp>
    /// Masks the secrets of records.
    public let mask: SecretMask

    private static let maximumCached = 20_000
    /// The maximum size of a record that is added or changed, as compact JSON, in bytes.
    package static let maximumRecord = 128 * 1024

    /// A registry over a store.
    init(
        store: any AppStore, devices: any DeviceStore, credentials: any CredentialStore, key: ServiceKey,
        clock: any ServiceClock, providers: any EvidenceProviders
    ) {
        (self.store, self.devices, self.credentials) = (store, devices, credentials)
        self.key = key
        mask = SecretMask(key)
        self.clock = clock
        self.providers = providers
        cache = ReadThroughCache(capacity: Self.maximumCached, clock: clock)
    }

    /// The roots that are trusted in addition to the built-in ones.
    var roots: AddedRoots { addedRoots.withLock { $0 } }

    /// Trusts these roots from now on, instead of the former ones. A proof that is being verified is judged by the former ones.
    func trust(_ roots: AddedRoots) {
        addedRoots.withLock { $0 = roots }
        // The verifiers of cached apps have the old roots.
        forget()
    }

    /// Hits and misses of the cache.
    package var use: CacheUse { cache.use }

    /// The app if it is provisioned and enabled. Otherwise throws `UNKNOWN_APP`.
    func enabled(_ id: AppID) async throws(Refusal) -> ProvisionedApp {
        guard let app = try await provisioned(id), app.record.enabled else {
            throw Refusal(.unknownApp, "no enabled app \(id)")
        }
        return app
    }

    /// Whether an app has this id, enabled or not.
    func isProvisioned(_ id: AppID) async throws(Refusal) -> Bool { try await provisioned(id) != nil }

    /// Whether the app existed when this process last read it. False if it was never read, or if the cache dropped it.
    package func isKnown(_ id: AppID) -> Bool { cache.lastKnown(id) != nil }

    func provisioned(_ id: AppID) async throws(Refusal) -> ProvisionedApp? {
        if let app = cache.value(id) { return app }
        return try await cache.reading(id) { () async throws(Refusal) in try await read(id) }
    }

    private func read(_ id: AppID) async throws(Refusal) -> ProvisionedApp? {
        do {
            return try await store.app(id).map { stored in
                try ProvisionedApp(try opened(stored), stored: stored, providers: providers, roots: roots)
            }
        } catch let error as StoreError {
            throw Refusal(error)
        } catch {
            throw Refusal(.serviceUnavailable, "the record of \(id) cannot be used: \(error)", retryAfter: 60)
        }
    }

    /// Marks every cached app for a re-read, because one of them changed.
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

    /// The records that can be read, by id, and the apps whose record cannot be read, because it is damaged or of a newer version.
    /// Such a record must not affect the other apps.
    ///
    /// - Throws: `StoreError` also if there are records and none can be read, for example because another service key
    ///   sealed them.
    public func readableRecords() async throws(StoreError) -> (records: [AppRecord], unreadable: [AppID]) {
        var (records, unreadable): ([AppRecord], [AppID]) = ([], [])
        var reason: StoreError?
        for stored in try await store.apps() {
            do throws(StoreError) { records.append(try opened(stored)) } catch {
                unreadable.append(stored.appID)
                reason = error
            }
        }
        if records.isEmpty, let reason { throw reason }
        return (records, unreadable)
    }

    /// Adds an app. Returns false if its id is taken.
    public func add(_ record: AppRecord, actor: String) async throws -> Bool {
        try requireStorable(record)
        let event = try record.adding(
            beside: try await others(of: record, opening: true), at: clock.now, by: actor, masking: mask)
        defer { forget() }
        return try await store.insert(try sealed(record), recording: event)
    }

    /// Replaces an app's record. Returns false if the app has no record, or if its record is not `expected`. Throws if the
    /// channel changes and the app has devices.
    ///
    /// - Parameters:
    ///   - record: the new record.
    ///   - expected: the record to replace; nil: any.
    ///   - actor: the actor in the audit log.
    public func change(
        _ record: AppRecord, ifStill expected: AppRecord? = nil, actor: String
    ) async throws -> Bool {
        try requireStorable(record)
        defer { forget() }
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            guard let stored = try await store.app(record.appID) else { return false }
            let current = try opened(stored)
            guard expected == nil || current == expected else { return false }
            let (event, needsNoDevices) = try record.replacing(
                current, beside: try await others(of: record, opening: false), at: clock.now, by: actor, masking: mask)
            let widerUntil = record.signature.widerUntil(after: current.signature, stored, at: clock.now)
            let change = AppChange(
                from: stored, to: try sealed(record, widerUntil: widerUntil).sealedJSON, needsNoDevices: needsNoDevices,
                recording: event)
            switch try await store.save(change) {
            case .conflict: continue
            case .hasDevices: throw Self.fixedChannel
            case .saved:
                // Do this even if the mode was `enforce` before: repeating a change that failed halfway must complete it.
                if record.mode == .enforce { try await makeObservedPending(of: record, actor: actor) }
                return true
            }
        }
        throw ConcurrentChanges(of: "the app").storeError
    }

    /// Throws if `change` would refuse the record in place of `current`.
    ///
    /// - Parameters:
    ///   - record: the app's new record.
    ///   - current: the app's present record.
    ///   - knowsOthers: whether the caller may learn the ids of other apps.
    public func requireChangeable(_ record: AppRecord, from current: AppRecord, knowsOthers: Bool) async throws {
        let others = knowsOthers ? try await others(of: record, opening: false) : OtherApps()
        let (_, needsNoDevices) = try record.replacing(
            current, beside: others, at: clock.now, by: "", masking: mask)
        guard needsNoDevices else { return }
        var query = DeviceQuery(limit: 1)
        query.appID = record.appID
        guard try await devices.devices(query).isEmpty else { throw Self.fixedChannel }
    }

    private static let fixedChannel = ContractError(
        "build_channel cannot change once the app has devices", code: .conflict)

    /// Sets the devices that were admitted under observation to pending, in steps, so that each write ends well within its
    /// deadline. A device that this method misses is still refused (`DeviceRecord.status(under:)`).
    private func makeObservedPending(of record: AppRecord, actor: String) async throws(StoreError) {
        while true {
            let observed = try await devices.observedDevices(of: record.appID, limit: Self.pendingStep)
            let changes = observed.compactMap { device in
                try? device.applying(.hold, under: record, at: clock.now, by: actor)
            }
            guard !changes.isEmpty else { return }
            let saved = try await devices.save(changes).count { $0 == .saved }
            // If none was saved, another node does the same work or the devices changed.
            guard saved > 0, observed.count == Self.pendingStep else { return }
        }
    }

    static let pendingStep = 1000

    /// The other apps, for a decision about this record. Empty unless the record is new (`opening`) or has token audiences.
    private func others(of record: AppRecord, opening: Bool) async throws(StoreError) -> OtherApps {
        guard opening || !record.signature.tokenAudiences.isEmpty else { return OtherApps() }
        let others = try await store.apps().filter { $0.appID != record.appID }
        return OtherApps(ids: others.map(\.appID), records: opening ? others.compactMap { try? opened($0) } : [])
    }

    /// Throws if a record cannot be used or cannot be stored. Stores and the audit log limit the size of the data that they read
    /// back, and one event has the record before and after a change.
    private func requireStorable(_ record: AppRecord) throws {
        try check(record)
        let bytes = JSONValue.object(record.json(secrets: .plain)).bytes.count
        guard bytes <= Self.maximumRecord else {
            throw ContractError("the record has \(bytes) bytes of JSON, and may have \(Self.maximumRecord)")
        }
    }

    /// Throws if a record cannot be used, such as one with an anchor that is not a certificate. Records created in code obey the
    /// same rules as parsed ones.
    public func check(_ record: AppRecord) throws {
        let read = try AppRecord(JSONFields(.object(record.json(secrets: .plain))))
        guard read.ios == record.ios, read.android == record.android else {
            throw ContractError(
                "the record has a policy that its JSON cannot express: set the members of an app record")
        }
        _ = try ProvisionedApp(
            record, stored: StoredApp(appID: record.appID, sealedJSON: ""), providers: providers, roots: roots)
    }

    /// Removes an app. Returns false if the app has devices or does not exist, or if its record is not `expected` (nil: any).
    /// `AuthService.removeApp` also makes this process re-read the credentials.
    func remove(_ id: AppID, ifStill expected: AppRecord?, actor: String) async throws(StoreError) -> Bool {
        defer { forget() }
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            guard let stored = try await store.app(id) else { return false }
            if let expected, try opened(stored) != expected { return false }
            let change = stored.removing(losing: try await credentials.credentials(), at: clock.now, by: actor)
            switch try await store.save(change) {
            case .conflict: continue
            case .hasDevices: return false
            case .saved: return true
            }
        }
        throw ConcurrentChanges(of: "the app").storeError
    }

    // The whole record is sealed, so the store need not know which members are secret.
    private func sealed(_ record: AppRecord, widerUntil: UnixTime? = nil) throws -> StoredApp {
        let text = JSONValue.object(record.json(secrets: .plain)).bytes
        let form = StoredApp.Form(
            masked: .object(record.json(secrets: .masked(mask))),
            sealed: try key.seal(text, context: Self.context(record.appID)), widerUntil: widerUntil)
        return StoredApp(appID: record.appID, sealedJSON: form.json.text())
    }

    private func opened(_ stored: StoredApp) throws(StoreError) -> AppRecord {
        let damaged = StoreError(.unreadable, "the record of \(stored.appID) is damaged")
        guard let sealed = stored.form?.sealed else { throw damaged }
        let text = try key.open(sealed, context: Self.context(stored.appID))
        guard
            let record = try? AppRecord(JSONFields(JSONValue(parsing: text, limits: .init(bytes: 1 << 20, depth: 16)))),
            record.appID == stored.appID
        else { throw damaged }
        return record
    }

    static func context(_ id: AppID) -> String { "synheart-auth/app/\(id.text)" }
}
