internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminRoute {
    /// The largest number of events that one call reads when it searches for codes of device events. No index has these
    /// codes, and a store reads this many events in under 30 ms.
    package static let searchedEvents: Int64 = 100_000
}

extension AdminAPI {
    /// Returns a page of the log, with the newest events first. A page ends at 4 MiB, so it may have fewer events than
    /// `limit`. If `code` names device events, a page may have no events although later pages have some.
    ///
    /// Only earlier events that match `app_id`, `device_id` and `since` decide whether a page is the last one, never
    /// events of other apps. If `code` names device events, `next_before` depends on the number of the log's last event,
    /// which may be an event of another app. `followAudit` returns this number too.
    func queryAudit(_ request: AdminRequest) async throws -> APIResponse {
        let limit = Int(try request.query.integer("limit", in: 1...1000) ?? 100)
        let app = try request.narrowedApp()
        let device = try request.query.value("device_id") { try DeviceID($0) }
        let codes = try request.query.value("code", AuditEvent.Code.list(administration:))
        let since = try request.query.value("since", UnixTime.init(administration:))
        let before = try request.query.integer("before", in: 1...Int64.max)
        var after: Int64 = 0
        if let codes, !codes.areOfNoDevice {
            let end = try await stores.audit.link(at: nil)?.sequence ?? 0
            after = max(0, min(before.map { $0 - 1 } ?? end, end) - AdminRoute.searchedEvents)
        }
        let find = { @Sendable [stores, after] () async throws(StoreError) in
            try await stores.audit.page(
                app: app, device: device, codes: codes, after: after, before: before, limit: limit)
        }
        let page = codes == nil ? try await find() : try await searches.answer(find)
        var next: Int64? = page.isLast ? (after > 0 ? after + 1 : nil) : page.events.last?.sequence
        if let end = next, codes != nil || since != nil,
            try await !hasEvents(of: app, device, before: end, since: since)
        {
            next = nil
        }
        let shown = page.events.filter { recorded in since.map { recorded.event.at >= $0 } ?? true }
        return .json(
            JSONObject([
                ("events", .array(shown.map { .object($0.administrationJSON) })),
                ("next_before", next.map { .integer($0) } ?? .null),
            ]))
    }

    /// Whether the newest event of this app and device before this number is dated at `since` or later; false if there is none. If a clock
    /// was set back, an older event may have a later date than the newest one. The search ignores such an event.
    private func hasEvents(
        of app: AppID?, _ device: DeviceID?, before sequence: Int64, since: UnixTime?
    ) async throws -> Bool {
        let newest = try await stores.audit.events(app: app, device: device, before: sequence, limit: 1).first
        guard let newest else { return false }
        return since.map { newest.event.at >= $0 } ?? true
    }

    /// Returns the events after a position, and waits up to `wait_seconds` for new ones if there are none. Without
    /// `after`, the position is the end of the log. `next_after` is the position for the next call.
    func followAudit(_ request: AdminRequest) async throws -> APIResponse {
        let limit = Int(try request.query.integer("limit", in: 1...1000) ?? 100)
        let app = try request.narrowedApp()
        let device = try request.query.value("device_id") { try DeviceID($0) }
        let wait = try request.query.integer("wait_seconds", in: 0...AuditFollowers.longestWait) ?? 0
        var end = try await stores.audit.link(at: nil)?.sequence ?? 0
        var after = try request.query.integer("after", in: 0...Int64.max) ?? end
        guard after <= end else {
            let reason = "The log ends with event \(end): it is not the one that had event \(after)"
            throw Refusal(.conflict, reason, hint: reason)
        }
        try await requireKept(after: after)
        let isWaiting = wait > 0 && followers.enter()
        defer { if isWaiting { followers.leave() } }
        let until = ContinuousClock.now + .seconds(wait)
        while true {
            // The end is read before the events, so the next call finds every later event.
            let page =
                end > after
                ? try await stores.audit.page(app: app, device: device, after: after, limit: limit) : nil
            let events = page?.events ?? []
            let last = events.last?.sequence ?? 0
            after = page?.isLast == false ? last : max(after, end, last)
            guard events.isEmpty, isWaiting, ContinuousClock.now < until, !isStopping(),
                (try? await Task.sleep(for: AuditFollowers.interval)) != nil
            else {
                return .json(
                    JSONObject([
                        ("events", .array(events.map { .object($0.administrationJSON) })),
                        ("next_after", .integer(after)),
                    ]))
            }
            try await requireUnchanged(request.caller)
            end = try await stores.audit.link(at: nil)?.sequence ?? 0
        }
    }

    /// Refuses a position whose next event is only in an archive, because skipping events silently would lose them. 0 is never
    /// refused: it means the oldest event that the log still has.
    func requireKept(after sequence: Int64) async throws {
        guard sequence > 0,
            let first = try await stores.audit.events(app: nil, device: nil, after: 0, limit: 1).first?.sequence,
            sequence < first - 1
        else { return }
        let reason = "The log begins with event \(first): earlier ones are archived. Use after=0 to begin there"
        throw Refusal(.conflict, reason, hint: reason)
    }

    func verifyAudit(_ request: AdminRequest) async throws -> APIResponse {
        let head = try request.query.value("head") { try AuditHead($0) }
        let finding = try await service.auditTrail.verify(against: head)
        return .json(
            JSONObject([
                ("intact", .bool(finding == .intact)), ("finding", .string(finding.name)),
                ("first_broken", finding.firstBroken.map { .integer($0) } ?? .null),
                ("message", .string(finding.sentence(about: head))),
            ]))
    }

    func showAuditHead(_ request: AdminRequest) async throws -> APIResponse {
        let head = try await service.auditTrail.head()
        return .json(
            JSONObject([
                ("head", .string(head.description)), ("sequence", .integer(head.sequence)),
                ("at", .string(head.at.iso8601)), ("hash", .string(Hexadecimal.encode(head.hash))),
                ("public_key", .string(Base64.standard.encode(try service.auditTrail.publicKey))),
            ]))
    }
}

extension AuditEvent.Code {
    /// Parses codes that are separated by commas. None may be repeated.
    fileprivate static func list(administration text: String) throws(ContractError) -> Set<AuditEvent.Code> {
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let codes = Set(names.compactMap { AuditEvent.Code(rawValue: String($0)) })
        guard codes.count == names.count else {
            throw ContractError(
                "code in the query must be some of \(allCases.map(\.rawValue).joined(separator: ", ")), each once")
        }
        return codes
    }
}

extension AuditCheckResult {
    /// The stable name of the check's result in the API.
    fileprivate var name: String {
        switch self {
        case .intact: "intact"
        case .brokenLink: "broken_link"
        case .cut: "cut"
        case .rewritten: "rewritten"
        case .headOfOtherKey: "foreign_head"
        case .archiveMissing: "archive_missing"
        case .archiveBroken: "archive_broken"
        }
    }

    /// The first event that is changed, missing, or in an archive that is missing or changed; nil if none is known.
    fileprivate var firstBroken: Int64? {
        switch self {
        case .brokenLink(let sequence), .archiveMissing(let sequence), .archiveBroken(let sequence): sequence
        case .cut(let last): last + 1
        case .intact, .rewritten, .headOfOtherKey: nil
        }
    }

    fileprivate func sentence(about head: AuditHead?) -> String {
        let wanted = head?.sequence ?? 0
        return switch self {
        case .intact where head == nil: "the chain has no break"
        case .intact: "the chain has no break, and contains the head of event \(wanted)"
        case .brokenLink(let sequence): "event \(sequence) is changed or not there"
        case .cut(let last): "the log ends with event \(last), but went up to event \(wanted) before"
        case .rewritten: "the log up to event \(wanted) is not the one that the head was made of"
        case .archiveMissing(let first):
            "the archive of event \(first) and the following cannot be read: the folder of audit.archive lacks it or may not be read, "
                + "or audit.archive is not set. Its events are not checked"
        case .archiveBroken(let first):
            "the archive of event \(first) and the following is changed, or not signed by this service"
        case .headOfOtherKey: "the head was not signed with this service key: it says nothing of this log"
        }
    }
}

extension RecordedAuditEvent {
    /// The members of an audit event that the admin API, `audit --follow` and webhooks show.
    var administrationJSON: JSONObject {
        JSONObject([
            ("sequence", .integer(sequence)), ("at", .string(event.at.iso8601)), ("code", .string(event.codeText)),
            ("actor", .string(event.actor)), ("app_id", event.appID.map { .string($0.text) } ?? .null),
            ("device_id", event.deviceID.map { .string($0.text) } ?? .null), ("detail", .object(event.detail)),
            ("hash", .string(Hexadecimal.encode(hash))),
        ])
    }
}
