internal import AuthContract
internal import StrictJSON

/// The rules of webhooks: who receives which events of the audit log, and from which event on.
public struct Webhooks: Sendable {
    let store: (any WebhookStore)?
    let audit: any AuditLog
    let key: ServiceKey
    let clock: any ServiceClock
    private let random: any RandomSource
    /// Whether receivers on other machines may use plain http.
    public var allowsHTTP = false

    /// The most webhooks of a deployment. Each costs up to four connections while it delivers.
    public static let maximum = 32
    private static let page = 1000
    /// The prefix of a secret's text.
    private static let prefix = "whsec_"

    init(
        store: (any WebhookStore)?, audit: any AuditLog, key: ServiceKey, clock: any ServiceClock,
        random: any RandomSource
    ) {
        (self.store, self.audit, self.key, self.clock, self.random) = (store, audit, key, clock, random)
    }

    /// All webhooks, by id.
    public func list() async throws(StoreError) -> [Webhook] { try await store?.webhooks() ?? [] }

    /// The webhook with this id; nil if there is none.
    public func webhook(_ id: String) async throws(StoreError) -> Webhook? { try await store?.webhook(id) }

    /// The last deliveries of a webhook, newest first; none if there is no such webhook.
    ///
    /// - Parameters:
    ///   - id: the webhook's id.
    ///   - limit: the most that are returned, from 1 to `WebhookDelivery.kept`.
    public func deliveries(
        of id: String, limit: Int = WebhookDelivery.kept
    ) async throws(StoreError) -> [WebhookDelivery] {
        try await store?.deliveries(of: id, limit: limit) ?? []
    }

    /// Adds a webhook, which gets the events from now on. The secret cannot be read again later.
    ///
    /// - Returns: the webhook, and its secret: `whsec_` and 32 bytes in base64.
    /// - Throws: `ContractError` for values that no webhook can have, for an app that does not exist, and if there are already
    ///   ``maximum``; and `StoreError`.
    public func add(
        url: String, scope: CredentialScope, codes: Set<AuditEvent.Code>, actor: String
    ) async throws -> (webhook: Webhook, secret: Secret) {
        guard let store else { throw ContractError("these stores keep no webhooks") }
        try await requireRoom(in: store)
        let (id, bytes) = (Hexadecimal.encode(random.bytes(8)), random.bytes(32))
        let webhook = Webhook(
            id: id, url: try receiver(url), scope: scope,
            codes: Set(codes.map(\.rawValue)), sealedSecret: try key.seal(bytes, context: Self.context(id)),
            createdAt: clock.now, position: try await audit.link(at: nil)?.sequence ?? 0)
        let isAdded: Bool
        do {
            isAdded = try await store.insert(webhook, recording: event(.webhookAdded, webhook, actor))
        } catch {
            // The insertion may have failed because another call added the last allowed webhook meanwhile.
            try await requireRoom(in: store)
            throw error
        }
        guard isAdded else {
            throw ContractError("apps: one of \(scope.named.map(\.text).sorted().joined(separator: ", ")) is not there")
        }
        return (webhook, Secret(Self.prefix + Base64.standard.encode(bytes)))
    }

    private func requireRoom(in store: any WebhookStore) async throws {
        guard try await store.webhooks().count < Self.maximum else {
            throw ContractError("there are \(Self.maximum) webhooks already: remove one first")
        }
    }

    /// Checks a receiver's URL, and returns its normalized text. If the host is an address, the address is checked now. A
    /// name is resolved for each delivery, and its addresses are checked then.
    private func receiver(_ text: String) throws(ContractError) -> String {
        let url = try WebhookURL(text, allowingHTTP: allowsHTTP)
        // A resolver may accept an address with a dot at its end as the address without the dot.
        let host = url.host.hasSuffix(".") ? String(url.host.dropLast()) : url.host
        for address in WebhookAddress.all(of: host, literal: true) ?? []
        where !address.isAllowed(loopback: url.origin.isLoopback) {
            throw ContractError("url: webhooks may not use the address \(address.text)")
        }
        return url.text
    }

    /// Changes a webhook. Returns nil if there is none.
    ///
    /// `change` changes the webhook's `url`, `scope`, `codes` and `isEnabled`. It may run several times.
    public func change(
        _ id: String, actor: String, _ change: (inout Webhook) throws -> Void
    ) async throws -> Webhook? {
        try await save(id) { before in
            var after = before
            try change(&after)
            if after.url != before.url { after.url = try receiver(after.url) }
            // A new receiver, or one that was enabled again, has not failed yet. With the old `failingSince`, its first
            // failure would give up all waiting events.
            if after.url != before.url || after.isEnabled && !before.isEnabled {
                (after.failingSince, after.failure) = (nil, nil)
            }
            guard after != before else { return (before, nil) }
            let event = event(.webhookChanged, after, actor, before)
            return (after, WebhookChange(from: before, to: after, recording: event))
        }
    }

    /// Removes a webhook. Returns false if there is none.
    ///
    /// `check` throws if the webhook must stay. It may run several times.
    public func remove(
        _ id: String, actor: String, _ check: (Webhook) throws -> Void = { _ in }
    ) async throws -> Bool {
        try await save(id) { webhook in
            try check(webhook)
            return (webhook, WebhookChange(from: webhook, to: nil, recording: event(.webhookRemoved, webhook, actor)))
        } != nil
    }

    /// Delivers the events after a position again. Returns nil if there is no such webhook.
    ///
    /// The position is the number of an event in the log; 0: all events that the log still has.
    ///
    /// `check` throws unless the current webhook may be changed.
    public func resend(
        _ id: String, after position: Int64, actor: String, _ check: (Webhook) throws -> Void = { _ in }
    ) async throws -> Webhook? {
        let end = try await audit.link(at: nil)?.sequence ?? 0
        guard (0...end).contains(position) else {
            throw ContractError("after must be from 0 to \(end), the last event")
        }
        return try await save(id) { before in
            try check(before)
            var after = before
            (after.position, after.failingSince, after.failure) = (position, nil, nil)
            // End the lease: a node that delivers now must not continue from its own position.
            (after.leaseHolder, after.leaseUntil) = (nil, nil)
            let detail = JSONObject([("id", .string(id)), ("after", .integer(position))])
            let event = AuditEvent(.webhookResent, at: clock.now, actor: actor, appID: before.onlyApp, detail: detail)
            return (after, WebhookChange(from: before, to: after, recording: event))
        }
    }

    /// For each app that the webhook named only after an app with the same id was removed: the number of the last such removal.
    /// Events up to this number belong to the removed app, and the removal does not end the webhook.
    ///
    /// - Parameter position: only later events are read.
    func earlierApps(of webhook: Webhook, after position: Int64) async throws(StoreError) -> [AppID: Int64] {
        let named = webhook.scope.named
        guard !named.isEmpty else { return [:] }
        var (removed, earlier, position) = ([AppID: Int64](), [AppID: Int64](), position)
        while true {
            let page = try await audit.page(app: nil, device: nil, after: position, limit: Self.page)
            for recorded in page.events {
                let event = recorded.event
                if event.code == .appRemoved, let app = event.appID, named.contains(app) {
                    removed[app] = recorded.sequence
                } else {
                    for app in event.appsAdded(to: webhook) { earlier[app] = removed[app] }
                }
            }
            guard !page.isLast, let last = page.events.last else { return earlier }
            position = last.sequence
        }
    }

    /// Saves a decision about the current webhook, and decides again if it changed meanwhile.
    private func save(
        _ id: String, _ decide: (Webhook) throws -> (result: Webhook, change: WebhookChange?)
    ) async throws -> Webhook? {
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            guard let store, let before = try await store.webhook(id) else { return nil }
            let (result, change) = try decide(before)
            guard let change else { return result }
            if try await store.save(change) { return result }
        }
        throw ConcurrentChanges(of: "the webhook").storeError
    }

    /// An event about a webhook. Path and query of the URL may be secret, so the event contains only the origin.
    func event(
        _ code: AuditEvent.Code, _ webhook: Webhook, _ actor: String, _ before: Webhook? = nil
    ) -> AuditEvent {
        var detail = Self.detail(of: webhook)
        if let before { detail["before"] = .object(Self.detail(of: before)) }
        return AuditEvent(code, at: clock.now, actor: actor, appID: webhook.onlyApp, detail: detail)
    }

    private static func detail(of webhook: Webhook) -> JSONObject {
        JSONObject([
            ("id", .string(webhook.id)),
            ("origin", (try? WebhookURL(webhook.url, allowingHTTP: true)).map { .string("\($0.origin)") } ?? .null),
            ("apps", .strings(webhook.scope.named.map(\.text).sorted())),
            ("all_apps", .bool(webhook.scope == .allApps)), ("events", .strings(webhook.codes.sorted())),
            ("enabled", .bool(webhook.isEnabled)),
        ])
    }

    /// The bytes of a webhook's secret.
    func secret(of webhook: Webhook) throws(StoreError) -> [UInt8] {
        try key.open(webhook.sealedSecret, context: Self.context(webhook.id))
    }

    static func context(_ id: String) -> String { "webhook/\(id)" }
}

extension AuditEvent {
    /// The apps that the webhook names from this event on, and did not name before. None if the event does not add or change this
    /// webhook.
    fileprivate func appsAdded(to webhook: Webhook) -> Set<AppID> {
        guard code == .webhookAdded || code == .webhookChanged, detail["id"]?.string == webhook.id else { return [] }
        return Self.apps(detail).subtracting(detail["before"]?.object.map(Self.apps) ?? [])
    }

    private static func apps(_ detail: JSONObject) -> Set<AppID> {
        Set((detail["apps"]?.array ?? []).compactMap { value in value.string.flatMap { try? AppID($0) } })
    }
}

extension Webhook {
    /// The app, if the webhook names exactly one.
    var onlyApp: AppID? { scope.named.count == 1 ? scope.named.first : nil }

    /// Whether the webhook gets this event.
    func wants(_ event: AuditEvent) -> Bool {
        guard codes.isEmpty || codes.contains(event.codeText) else { return false }
        return scope == .allApps || event.appID.map { scope.covers($0) } ?? false
    }
}
