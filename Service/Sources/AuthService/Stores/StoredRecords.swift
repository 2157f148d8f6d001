internal import AuthContract
internal import StrictJSON

// The rows of the SQL stores, read as strictly as a client's input.

extension DeviceRecord {
    package init(row: some StoredColumns) throws(StoreError) {
        let (key, scheme) = (try row.bytes("key"), try row.integer("highest_scheme"))
        var previousKey: DevicePublicKey?
        if let bytes = try row.optionalBytes("previous_key") {
            previousKey = try row.parsed("previous_key", bytes) { try DevicePublicKey($0) }
        }
        self.init(
            appID: try row.parsed("app_id") { try AppID($0) },
            deviceID: try row.parsed("device_id") { try DeviceID($0) },
            platform: try row.parsed("platform") { Platform(rawValue: $0) },
            status: try row.parsed("status") { DeviceStatus(rawValue: $0) },
            key: try row.parsed("key", key) { try DevicePublicKey($0) }, previousKey: previousKey,
            previousKeyUntil: try row.optionalTime("previous_key_until"),
            assurance: try row.parsed("assurance") {
                try Assurance(JSONFields(JSONValue(parsing: $0, limits: .stored)))
            },
            appVersion: try row.optionalText("app_version"),
            appAttest: try AppAttestKeyState(row: row), registeredAt: try row.time("registered_at"),
            keyRotatedAt: try row.optionalTime("key_rotated_at"), lastSeen: try row.optionalTime("last_seen"),
            highestScheme: try row.parsed("highest_scheme", scheme) {
                Int(exactly: $0).flatMap { SignatureScheme(rawValue: $0) }
            },
            mustRotate: try RotationDemand(row: row),
            admittedUnderObservation: try row.bool("admitted_under_observation"),
            localID: try row.optionalText("local_id"), version: try row.integer("version"))
    }
}

extension DeviceQuery.PageToken {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            registeredAt: try row.time("registered_at"), deviceID: try row.parsed("device_id") { try DeviceID($0) })
    }
}

extension RotationDemand {
    fileprivate init?(row: some StoredColumns) throws(StoreError) {
        guard let by = try row.optionalTime("must_rotate_by") else { return nil }
        let stored = try row.optional("must_rotate_reason") { RotationReason(rawValue: $0) }
        guard let reason = stored ?? row.reasonOfOldDemands else { throw row.damaged("must_rotate_reason") }
        self.init(by: by, reason: reason)
    }
}

extension AppAttestKeyState {
    fileprivate init?(row: some StoredColumns) throws(StoreError) {
        guard let keyID = try row.optionalBytes("attested_key_id") else { return nil }
        let (counter, failures) = (try row.integer("attested_counter"), try row.integer("receipt_failures"))
        var riskMetric: Int?
        if let metric = try row.optionalInteger("attested_risk_metric") {
            riskMetric = try row.parsed("attested_risk_metric", metric) { Int(exactly: $0) }
        }
        self.init(
            keyID: keyID, publicKey: try row.bytes("attested_public_key"), appID: try row.text("attested_app_id"),
            environment: try row.text("attested_environment"), attestedExtensions: try row.bool("attested_extensions"),
            counter: try row.parsed("attested_counter", counter) { UInt32(exactly: $0) },
            receipt: try row.optionalBytes("attested_receipt"),
            receiptOutcome: try row.optionalText("attested_receipt_outcome"), riskMetric: riskMetric,
            refresh: ReceiptRefresh(
                dueAt: try row.optionalTime("receipt_due_at"), askedAt: try row.optionalTime("receipt_asked_at"),
                outcome: try row.optionalText("receipt_exchange_outcome"),
                failures: try row.parsed("receipt_failures", failures) { Int(exactly: $0) }))
    }

    package static let columns =
        [
            "attested_key_id", "attested_public_key", "attested_app_id", "attested_environment",
            "attested_extensions", "attested_counter", "attested_receipt", "attested_receipt_outcome",
            "attested_risk_metric",
        ] + refreshColumns

    package static let refreshColumns = [
        "receipt_due_at", "receipt_asked_at", "receipt_exchange_outcome", "receipt_failures",
    ]
}

extension Assurance {
    package var storedText: String { JSONValue.object(json).text() }
}

extension KeyBinding {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            appID: try row.parsed("app_id") { try AppID($0) },
            deviceID: try row.parsed("device_id") { try DeviceID($0) },
            role: try row.parsed("role") { KeyBinding.Role(rawValue: $0) })
    }
}

extension StoredApp {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(appID: try row.parsed("app_id") { try AppID($0) }, sealedJSON: try row.text("record"))
    }
}

extension Credential {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            id: try row.text("id"), name: try row.text("name"),
            role: try row.parsed("role") { CredentialRole(rawValue: $0) },
            scope: try row.parsed("apps") { CredentialScope(storedText: $0) },
            secretHash: try row.bytes("secret_hash"), createdAt: try row.time("created_at"),
            expiresAt: try row.time("expires_at"), revokedAt: try row.optionalTime("revoked_at"),
            bodies: try row.optional("bodies") { ForwardedBodies(rawValue: $0) } ?? .headers)
    }
}

extension StoredSigningKey {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            id: try row.text("id"), sealedKey: try row.bytes("sealed_key"), createdAt: try row.time("created_at"),
            signsFrom: try row.optionalTime("signs_from"))
    }
}

extension PendingProof {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            appID: try row.parsed("app_id") { try AppID($0) },
            deviceID: try row.parsed("device_id") { try DeviceID($0) }, arrivedAt: try row.time("arrived_at"),
            sealedRequest: try row.bytes("sealed_request"))
    }
}

extension RecordingSummary {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            id: try row.text("id"), appID: try row.parsed("app_id") { try AppID($0) },
            deviceID: try row.optional("device_id") { try DeviceID($0) }, recordedAt: try row.time("recorded_at"),
            expiresAt: try row.time("expires_at"), format: try row.text("format"), code: try row.text("code"),
            step: try row.text("step"))
    }
}

extension AuditChain.Entry {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            sequence: try row.integer("sequence"), code: try row.text("code"), at: try row.integer("at"),
            actor: try row.text("actor"), appID: try row.optionalText("app_id"),
            deviceID: try row.optionalText("device_id"), detail: try row.text("detail"))
    }
}

extension RecordedAuditEvent {
    package init(row: some StoredColumns) throws(StoreError) {
        var unreadable: [String] = []
        func read<Value>(_ column: String, _ parse: (String) throws -> Value?) -> Value? {
            do { return try row.optional(column, parse) } catch {
                unreadable.append(column)
                return nil
            }
        }
        let appID = read("app_id") { try AppID($0) }
        let deviceID = read("device_id") { try DeviceID($0) }
        var detail = read("detail") { try JSONValue(parsing: $0, limits: .stored).object } ?? JSONObject()
        if !unreadable.isEmpty { detail["unreadable"] = .strings(unreadable) }
        let event = AuditEvent(
            codeText: try row.text("code"), at: try row.time("at"), actor: try row.text("actor"), appID: appID,
            deviceID: deviceID, detail: detail)
        self.init(sequence: try row.integer("sequence"), event: event, hash: try row.bytes("hash"))
    }
}

extension AuditLink {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(sequence: try row.integer("sequence"), hash: try row.bytes("hash"))
    }
}

extension AuditChain {
    /// The result of checking some events.
    package enum Step: Sendable {
        /// The events continue the chain up to this link.
        case intact(AuditLink)
        /// The event with this number does not continue the chain.
        case broken(Int64)
        /// There were no events.
        case end
    }

    /// Where a check of the log begins.
    package struct Start: Sendable, Hashable {
        /// The last archived event.
        let archived: AuditLink
        /// The first event of the log; nil: an empty log. Events of an archive are in the log until they are removed.
        let first: AuditLink?
    }

    /// Checks that these rows continue the chain after a link.
    ///
    /// - Parameter archived: the last archived event, which may be among the rows.
    package static func check(
        _ rows: [some StoredColumns], after start: AuditLink, archived: AuditLink
    ) -> Step {
        var link = start
        for row in rows {
            // A row that cannot be read breaks the chain. It is not a failure of the store.
            guard let sequence = try? row.integer("sequence"), sequence == link.sequence + 1,
                let entry = try? Entry(row: row), let stored = try? row.bytes("hash")
            else { return .broken(link.sequence + 1) }
            let hash = hash(entry, after: link.hash)
            guard hash == stored, sequence != archived.sequence || hash == archived.hash else {
                return .broken(sequence)
            }
            link = AuditLink(sequence: sequence, hash: hash)
        }
        return rows.isEmpty ? .end : .intact(link)
    }

    /// The number of the first event that does not continue the chain; nil if all do. The log may still begin with events
    /// that are already in an archive. Then the first of them is not checked here: `AuditTrail` compares it with the
    /// archive's file.
    ///
    /// - Parameters:
    ///   - start: reads where the log begins.
    ///   - step: reads the next events after a link, and checks them. If the last event in an archive is among them, the
    ///     step also compares the hash of that event with `archived`.
    package static func firstBrokenLink(
        from start: () async throws(StoreError) -> Start,
        _ step: (AuditLink, _ archived: AuditLink) async throws(StoreError) -> Step
    ) async throws(StoreError) -> Int64? {
        var begin = try await start()
        var broken: Int64?
        // If events were archived or removed during the check, its result may be wrong. Check again from where the log begins now.
        for _ in 0..<1000 {
            broken = try await firstBrokenLink(begin, step)
            guard broken != nil, case let now = try await start(), now != begin else { return broken }
            begin = now
        }
        return broken
    }

    private static func firstBrokenLink(
        _ start: Start, _ step: (AuditLink, _ archived: AuditLink) async throws(StoreError) -> Step
    ) async throws(StoreError) -> Int64? {
        let archived = start.archived
        var link = archived
        if let first = start.first, first.sequence <= archived.sequence {
            guard first.sequence > 0, first.sequence < archived.sequence || first == archived else {
                return first.sequence
            }
            link = first
        }
        while true {
            switch try await step(link, archived) {
            case .broken(let sequence): return sequence
            // Archived events are removed oldest first. So a log that begins with one has all later archived events too.
            case .end: return link.sequence < archived.sequence ? link.sequence + 1 : nil
            case .intact(let next): link = next
            }
        }
    }
}

extension AuditChain.Start {
    /// - Parameter first: the number and hash of the log's first event; nil: an empty log.
    package init(archived: AuditLink, first: (some StoredColumns)?) throws(StoreError) {
        self.archived = archived
        if let first {
            // A hash that cannot be read breaks the chain. It is not a failure of the store.
            self.first = AuditLink(sequence: try first.integer("sequence"), hash: (try? first.bytes("hash")) ?? [])
        } else {
            self.first = nil
        }
    }
}

extension JSONValue.Limits {
    /// Limits for text that this service wrote.
    static let stored = JSONValue.Limits(bytes: 1 << 20, depth: 64)
}

extension CountedVerdict.Member {
    /// The columns of a verdict in the SQL stores, in the order of `allCases`.
    package static let columns = allCases.map(\.rawValue).joined(separator: ", ")
}

extension VerdictSum {
    package init(row: some StoredColumns, groups: Set<CountedVerdict.Member>) throws(StoreError) {
        var texts: [CountedVerdict.Member: String] = [:]
        for member in groups { texts[member] = try row.text(member.rawValue) }
        self.init(slot: try row.time("slot"), texts: texts, count: try row.integer("verdicts"))
    }
}
