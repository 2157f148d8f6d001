internal import AuthContract
internal import StrictJSON

/// The reason why a service key is refused.
public struct ServiceKeyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a fault.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The database was sealed with another key.
        public static let anotherKey = Self(rawValue: "anotherKey")
        /// During a rotation, a key that is still needed is not listed.
        public static let keyMissing = Self(rawValue: "keyMissing")
        /// A rotation is under way, and the new key is not listed first.
        public static let wrongOrder = Self(rawValue: "wrongOrder")
        /// A sealed row is damaged, or was sealed with a key that is not listed.
        public static let unopened = Self(rawValue: "unopened")
        /// A service is running, and it does not seal with the first of the listed keys.
        public static let serviceRunning = Self(rawValue: "serviceRunning")
        /// Another process changed the stored check values of the service keys meanwhile, or still seals with an old key.
        public static let busy = Self(rawValue: "busy")
    }

    /// The kind of the fault. Two errors with one code differ only in their text.
    public let code: Code
    /// The rest of a sentence after its subject, the service key, which the caller puts in front: what was expected and found, and what
    /// to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

/// Refuses a service key that is not the database's, and rotates the key.
public struct ServiceKeyRules: Sendable {
    private let store: any ServiceKeyStore
    private let key: ServiceKey
    private let clock: any ServiceClock

    private static let page = 100
    private static let attempts = 20

    /// Rules for a key over a store.
    public init(store: any ServiceKeyStore, key: ServiceKey, clock: any ServiceClock = SystemClock()) {
        self.store = store
        self.key = key
        self.clock = clock
    }

    /// Throws if the key is not the database's. If the database has no check value yet, the key must open every sealed
    /// row. This call then records the key's check values.
    ///
    /// - Parameters:
    ///   - writing: whether the caller may seal something afterwards. If so, the check value of a new first key is
    ///     recorded.
    ///   - lock: the service's lock. The call holds it while it records a check value that a running service may not have
    ///     read. Nil if the caller is the service, which already holds the lock.
    /// - Throws: `ServiceKeyError`, `StoreError`, and the lock's errors.
    public func admit(writing: Bool, lock: (any ServiceLock)? = nil) async throws {
        for _ in 0..<Self.attempts {
            let known = try await store.keyChecks()
            try check(known)
            guard try await admits(known, writing: writing, lock: lock) else { continue }
            return
        }
        throw ServiceKeyError(.busy, "could not be recorded, because other processes did the same. Try again.")
    }

    /// Throws if the key is not the database's. Changes nothing.
    public func inspect() async throws {
        let known = try await store.keyChecks()
        if known.isEmpty { _ = try await users() } else { try check(known) }
    }

    /// Records the check values if the database has none and the key opens every row. If `writing`, also records the check value of the
    /// first key if the database lacks it. Returns false if another process changed the check values, so that the caller must re-read them.
    private func admits(
        _ known: [ServiceKeyCheck], writing: Bool, lock: (any ServiceLock)?
    ) async throws -> Bool {
        let first = key.checks[0]
        if known.isEmpty {
            let others = try await users().map { key.checks[$0] }.filter { $0 != first }
            // If only the first key is in use, no lock is needed: a service with another key is refused when it records its
            // check value.
            return try await replace([], with: [first] + others, lock: others.isEmpty ? nil : lock)
        }
        guard writing, !known.contains(first) else { return true }
        return try await replace(known, with: [first] + known, lock: lock)
    }

    /// Replaces the check values. With a lock, throws if a service runs, and prevents a service from starting meanwhile. Returns
    /// false if another process changed the check values.
    private func replace(
        _ known: [ServiceKeyCheck], with checks: [ServiceKeyCheck], lock: (any ServiceLock)?
    ) async throws -> Bool {
        guard let lock else { return try await store.replaceKeyChecks(known, with: checks, recording: nil) }
        var isReplaced = false
        let isUnserved = try await lock.withoutService {
            isReplaced = try await store.replaceKeyChecks(known, with: checks, recording: nil)
        }
        guard isUnserved else { throw serviceRunning(known) }
        return isReplaced
    }

    private func serviceRunning(_ known: [ServiceKeyCheck]) -> ServiceKeyError {
        let first = key.checks[0]
        guard known.contains(first) else {
            return ServiceKeyError(
                .serviceRunning,
                "lists \(first) first, which the running service does not know. "
                    + "Restart the service, on every node, with the same service_key, then run the command again.")
        }
        return ServiceKeyError(
            .serviceRunning,
            "lists \(first) first, but the running service seals with \(known[0]). "
                + "Stop the service, run the command again, then start the service with the same service_key.")
    }

    private func check(_ known: [ServiceKeyCheck], isRotating: Bool = false) throws(ServiceKeyError) {
        let listed = key.checks
        guard let sealing = known.first else { return }
        let missing = known.filter { !listed.contains($0) }
        guard missing.count < known.count else {
            throw ServiceKeyError(
                .anotherKey,
                "is not the key that the database was sealed with (\(sealing); this is \(listed[0])). "
                    + "Put the right one back from your backup.")
        }
        guard missing.isEmpty else {
            throw ServiceKeyError(
                .keyMissing,
                "is one of \(known.count) that are needed while the key is rotated: \(missing[0]) is missing. "
                    + "List both in service_key and run `service-key rotate`.")
        }
        guard isRotating || listed[0] == sealing || !known.contains(listed[0]) else {
            throw ServiceKeyError(
                .wrongOrder,
                "lists \(listed[0]) first, but the database is rotated to \(sealing). "
                    + "List that one first, or stop the service and run `service-key rotate` to go back.")
        }
    }

    /// The indexes of the keys that open at least one row. Throws if a row cannot be opened by any key.
    private func users() async throws -> [Int] {
        var users: Set<Int> = []
        for kind in SealedRow.Kind.allCases {
            try await each(kind) { rows in
                for row in rows { users.insert(try open(row).key) }
            }
        }
        return users.sorted()
    }

    // MARK: Rotation

    /// Makes the first key the only one: seals every row again, then removes the check values of the other keys. An
    /// interrupted rotation continues with the next call.
    ///
    /// - Parameters:
    ///   - actor: for the audit log.
    ///   - lock: the service's lock, held while the first key becomes the one that seals. If a running service seals with
    ///     another key, the call throws.
    /// - Returns: the number of rows that were sealed again.
    /// - Throws: `ServiceKeyError`, `StoreError`, and the lock's errors.
    public func rotate(actor: String, lock: any ServiceLock) async throws -> Int {
        let first = key.checks[0]
        var known = try await store.keyChecks()
        if known.isEmpty {
            try await admit(writing: false, lock: lock)
            known = try await store.keyChecks()
        }
        try check(known, isRotating: true)
        // Change the sealing key while no service runs: a running service would continue to seal with the old key.
        if known.first != first {
            let both = [first] + known.filter { $0 != first }
            guard try await replace(known, with: both, lock: lock) else { throw Self.interrupted }
            known = both
        }
        let sealed = try await resealUntilDone()
        guard known != [first] else { return sealed }
        let event = AuditEvent(
            .serviceKeyRotated, at: clock.now, actor: actor,
            detail: JSONObject([
                ("key", .string(first.description)), ("rows", .integer(Int64(sealed))),
                ("audit_keys", try AuditTrail.succession(of: key)),
            ]))
        guard try await store.replaceKeyChecks(known, with: [first], recording: event) else { throw Self.interrupted }
        return sealed
    }

    private static let interrupted = ServiceKeyError(
        .busy, "was changed by another process meanwhile. Run the command again.")

    /// Seals the rows again with the first key, in passes, until a pass finds no row that another key sealed. Until then
    /// the old keys are needed.
    ///
    /// - Returns: the number of rows that were sealed again.
    private func resealUntilDone() async throws -> Int {
        var sealed = 0
        for _ in 0..<Self.attempts {
            let count = try await resealAll()
            if count == 0 { return sealed }
            sealed += count
        }
        throw ServiceKeyError(
            .busy, "is still used by another process, which seals with an old key. Stop it, then run the command again."
        )
    }

    /// One pass over all rows.
    ///
    /// - Returns: the number of rows that the first key had not sealed.
    private func resealAll() async throws -> Int {
        var count = 0
        for kind in SealedRow.Kind.allCases {
            try await each(kind) { rows in
                let changes = try rows.compactMap { row -> (row: SealedRow, value: [UInt8])? in
                    let opened = try open(row)
                    guard opened.key != 0 else { return nil }
                    return (row, try sealed(opened.text, like: row))
                }
                // `reseal` skips a row that another process changed meanwhile. The next pass reads that row again.
                if !changes.isEmpty { _ = try await store.reseal(changes) }
                count += changes.count
            }
        }
        return count
    }

    private func each(_ kind: SealedRow.Kind, _ body: ([SealedRow]) async throws -> Void) async throws {
        var last = ""
        while true {
            let rows = try await store.sealedRows(kind, after: last, limit: Self.page)
            guard let end = rows.last else { return }
            try await body(rows)
            last = end.id
        }
    }

    private func open(_ row: SealedRow) throws(ServiceKeyError) -> (text: [UInt8], key: Int) {
        guard let value = Self.sealedPart(of: row), let context = Self.context(of: row),
            let opened = try? key.opened(value, context: context)
        else {
            throw ServiceKeyError(
                .unopened,
                "does not open \(row.kind.name) \(row.id): it was sealed with another key, or is damaged. "
                    + "If there are two keys, list both in service_key.")
        }
        return opened
    }

    private func sealed(_ text: [UInt8], like row: SealedRow) throws -> [UInt8] {
        guard let context = Self.context(of: row) else { throw StoreError(.unreadable, "a row has no context") }
        let sealed = try key.seal(text, context: context)
        guard row.kind == .app else { return sealed }
        guard var form = StoredApp.Form(row.value) else {
            throw StoreError(.unreadable, "the record of \(row.id) is damaged")
        }
        form.sealed = sealed
        return form.json.bytes
    }

    private static func sealedPart(of row: SealedRow) -> [UInt8]? {
        row.kind == .app ? StoredApp.Form(row.value)?.sealed : row.value
    }

    private static func context(of row: SealedRow) -> String? {
        switch row.kind {
        case .app: (try? AppID(row.id)).map { AppRegistry.context($0) }
        case .signingKey: SigningKeys.context(row.id)
        case .pendingProof: (try? DeviceID(row.id)).map { PendingProofs.context($0) }
        case .evidence: (try? AppID(row.scope)).map { RefusalRecorder.context(row.id, of: $0) }
        case .webhook: Webhooks.context(row.id)
        }
    }
}

extension SealedRow.Kind {
    fileprivate var name: String {
        switch self {
        case .app: "the record of app"
        case .signingKey: "signing key"
        case .pendingProof: "the pending proof of device"
        case .evidence: "evidence"
        case .webhook: "the secret of webhook"
        }
    }
}
