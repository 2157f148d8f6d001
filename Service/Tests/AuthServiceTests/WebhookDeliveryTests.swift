import AuthContract
import Bytes
import ServiceTestHelpers
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// Events reach their receivers: at least once, in order for one device, from one node.
@Suite struct WebhookDeliveryTests {
    /// Receivers whose answers the test sets.
    private final class Receivers: WebhookTransport {
        /// The id and type of each attempt, and whether it succeeded.
        let log = Locked<[(id: String, type: String, delivered: Bool)]>([])
        let answer = Locked<@Sendable (_ body: JSONObject) -> WebhookOutcome>({ _ in .answered(status: 200) })

        func post(_ request: WebhookRequest) async -> WebhookOutcome {
            let body = (try? JSONValue(parsing: request.body))?.object ?? JSONObject()
            let outcome = answer.withLock { $0 }(body)
            let id = request.headers.first { $0.name == "webhook-id" }?.value ?? ""
            log.withLock { $0.append((id, body["type"]?.string ?? "", outcome.failure == nil)) }
            return outcome
        }

        func answer(_ outcome: @escaping @Sendable (JSONObject) -> WebhookOutcome) { answer.withLock { $0 = outcome } }

        var delivered: [String] { log.withLock { $0.filter { $0.delivered }.map { $0.type } } }
        var attempts: Int { log.withLock(\.count) }
    }

    private let world: World
    private let receivers = Receivers()
    private let deliveries: WebhookDeliveries
    private let app: AppID

    init() async throws {
        world = try await World()
        app = try AppID(World.appID)
        deliveries = WebhookDeliveries(of: world.service, transport: receivers, random: SeededRandom(seed: 1))
    }

    private func add(_ codes: Set<AuditEvent.Code> = [.deviceRevoked, .deviceRegistered]) async throws -> Webhook {
        try await world.service.webhooks.add(
            url: "https://hooks.example.com/", scope: .apps([app]), codes: codes, actor: "test"
        ).webhook
    }

    private func append(_ code: AuditEvent.Code, _ device: DeviceID? = nil) async throws {
        try await world.stores.append(
            AuditEvent(code, at: world.clock.now, actor: "test", appID: app, deviceID: device))
    }

    /// Runs delivery rounds for this many seconds, each after the longest pause of a failing webhook.
    private func deliver(for seconds: Int64) async throws {
        for _ in 0..<seconds / WebhookDeliveries.longestPause {
            world.clock.advance(WebhookDeliveries.longestPause)
            await deliveries.round()
        }
    }

    private func stored(_ webhook: Webhook) async throws -> Webhook {
        try #require(try await world.stores.webhook(webhook.id))
    }

    @Test func `a webhook gets each event once, from its addition on`() async throws {
        try await append(.deviceRevoked)
        let webhook = try await add()
        await deliveries.round()
        #expect(receivers.attempts == 0)
        try await append(.deviceRegistered)
        try await append(.keyRotated)
        try await append(.deviceRevoked)
        for _ in 0..<3 { await deliveries.round() }
        #expect(receivers.delivered == ["device.registered", "device.revoked"])
        let end = try #require(try await world.stores.link(at: nil)).sequence
        #expect(try await stored(webhook).position == end)
    }

    @Test func `an event of a newer version is delivered, and holds up nothing`() async throws {
        let all = try await add([])
        try await world.stores.append(
            AuditEvent(
                codeText: "device.sold", at: world.clock.now, actor: "test", appID: app, deviceID: nil,
                detail: JSONObject()))
        try await append(.deviceRevoked)
        await deliveries.round()
        #expect(receivers.delivered == ["webhook.added", "device.sold", "device.revoked"])
        #expect(try await stored(all).position == world.stores.link(at: nil)?.sequence)
    }

    @Test func `a failed delivery is repeated with the same id, and not before its pause ends`() async throws {
        let webhook = try await add()
        receivers.answer { _ in .answered(status: 302) }
        try await append(.deviceRevoked)
        for _ in 0..<3 { await deliveries.round() }
        #expect(receivers.attempts == 1)
        #expect(try await stored(webhook).failure == "status 302: redirects are not followed")
        #expect(try await stored(webhook).failingSince == World.start)
        receivers.answer { _ in .answered(status: 204) }
        world.clock.advance(11)
        await deliveries.round()
        #expect(receivers.delivered == ["device.revoked"])
        #expect(receivers.log.withLock { Set($0.map { $0.id }) }.count == 1)
        let after = try await stored(webhook)
        #expect(after.failure == nil && after.failingSince == nil)
    }

    @Test func `a webhook that is switched on again has a day for what waited`() async throws {
        let webhook = try await add()
        receivers.answer { _ in .answered(status: 503) }
        try await append(.deviceRevoked)
        await deliveries.round()
        let webhooks = world.service.webhooks
        _ = try await webhooks.change(webhook.id, actor: "test") { $0.isEnabled = false }
        world.clock.advance(3 * 86_400)
        _ = try await webhooks.change(webhook.id, actor: "test") { $0.isEnabled = true }
        #expect(try await stored(webhook).failingSince == nil)
        await deliveries.round()
        receivers.answer { _ in .answered(status: 204) }
        world.clock.advance(900)
        await deliveries.round()
        #expect(receivers.delivered == ["device.revoked"])
    }

    @Test func `a refused event holds up the later events of its device alone`() async throws {
        _ = try await add()
        let (bad, good) = (DeviceID(from: world.random), DeviceID(from: world.random))
        receivers.answer { body in
            body["data"]?.object?["device_id"]?.string == bad.text ? .answered(status: 400) : .answered(status: 200)
        }
        try await append(.deviceRegistered, bad)
        try await append(.deviceRevoked, bad)
        try await append(.deviceRegistered, good)
        try await append(.deviceRevoked, good)
        await deliveries.round()
        #expect(receivers.delivered == ["device.registered", "device.revoked"])
        #expect(receivers.attempts == 3)
        receivers.answer { _ in .answered(status: 200) }
        world.clock.advance(11)
        await deliveries.round()
        #expect(receivers.attempts == 5)
        #expect(receivers.delivered.suffix(2) == ["device.registered", "device.revoked"])
    }

    @Test func `one of two nodes delivers, and the other goes on when its lease is over`() async throws {
        let webhook = try await add()
        let other = WebhookDeliveries(
            of: try world.anotherNode(), transport: receivers, random: SeededRandom(seed: 2))
        try await append(.deviceRegistered)
        await deliveries.round()
        try await append(.deviceRevoked)
        await other.round()
        #expect(receivers.delivered == ["device.registered"])
        #expect(try await stored(webhook).leaseHolder == deliveries.node)
        world.clock.advance(WebhookDeliveries.leaseSeconds + 1)
        await other.round()
        #expect(receivers.delivered == ["device.registered", "device.revoked"])
        await deliveries.round()
        #expect(receivers.attempts == 2)
    }

    @Test func `a node that is alone goes on at once where a killed process left its lease`() async throws {
        let webhook = try await add()
        try await append(.deviceRegistered)
        await deliveries.round()
        #expect(try await stored(webhook).leaseHolder == deliveries.node)
        let restarted = WebhookDeliveries(
            of: try world.anotherNode(), transport: receivers, isAlone: true, random: SeededRandom(seed: 2))
        try await append(.deviceRevoked)
        await restarted.round()
        #expect(receivers.delivered == ["device.registered", "device.revoked"])
        #expect(try await stored(webhook).leaseHolder == restarted.node)
    }

    @Test func `events are given up after a day, and come again when an operator asks`() async throws {
        let webhook = try await add()
        receivers.answer { _ in .failed("no connection") }
        for _ in 0..<3 { try await append(.deviceRevoked) }
        await deliveries.round()
        try await deliver(for: 86_400)
        let end = try #require(try await world.stores.link(at: nil)).sequence
        #expect(try await stored(webhook).position == end)
        receivers.answer { _ in .answered(status: 200) }
        _ = try #require(
            try await world.service.webhooks.resend(webhook.id, after: webhook.position, actor: "test"))
        await deliveries.round()
        #expect(receivers.delivered.count == 3)
        await #expect(throws: ContractError.self) {
            try await world.service.webhooks.resend(webhook.id, after: 10_000, actor: "test")
        }
    }

    @Test func `an event behind one that is refused for a day is sent, not given up`() async throws {
        _ = try await add()
        receivers.answer { $0["type"]?.string == "device.revoked" ? .answered(status: 500) : .answered(status: 200) }
        try await append(.deviceRevoked)
        try await append(.deviceRegistered)
        await deliveries.round()
        try await deliver(for: 86_400 - WebhookDeliveries.longestPause)
        #expect(receivers.delivered.isEmpty)
        let attempts = receivers.attempts
        try await deliver(for: WebhookDeliveries.longestPause)
        #expect(receivers.delivered == ["device.registered"])
        #expect(receivers.attempts == attempts + 2)
    }

    @Test func `time in which every node was stopped is not part of the day`() async throws {
        let webhook = try await add()
        receivers.answer { _ in .failed("no connection") }
        try await append(.deviceRevoked)
        await deliveries.round()
        try await deliver(for: 43_200)
        world.clock.advance(3 * 86_400)
        let restarted = WebhookDeliveries(
            of: try world.anotherNode(), transport: receivers, isAlone: true, random: SeededRandom(seed: 2))
        await restarted.round()
        #expect(try await stored(webhook).failingSince == World.start + 3 * 86_400)
        receivers.answer { _ in .answered(status: 200) }
        world.clock.advance(900)
        await restarted.round()
        #expect(receivers.delivered == ["device.revoked"])
    }

    @Test func `events that were archived first are named in the log, and the later ones are delivered`() async throws {
        let log = LogLines()
        let deliveries = WebhookDeliveries(
            of: world.service, transport: receivers, random: SeededRandom(seed: 1), logger: log.logger)
        let (webhook, webhooks) = (try await add(), world.service.webhooks)
        _ = try await webhooks.change(webhook.id, actor: "test") { $0.isEnabled = false }
        for _ in 0..<12 { try await append(.deviceRevoked) }
        let folder = try TemporaryFolder()
        world.clock.advance(40 * 86_400)
        try await append(.deviceRegistered)
        let archiver = AuditArchiver(of: world.service, to: AuditArchiveFolder(folder.path), keepDays: 30)
        while try await archiver.archiveNext() {}
        let archive = try #require(try await world.stores.auditArchives().last)
        _ = try await webhooks.change(webhook.id, actor: "test") { $0.isEnabled = true }
        await deliveries.round()
        await deliveries.round()
        let line = try #require(log.all.first { $0.message.contains("archived before") })
        #expect(log.all.count == 1)
        #expect(line.metadata["first"] == "\(webhook.position + 1)")
        #expect(line.metadata["events"] == "\(archive.last - webhook.position)")
        #expect(receivers.delivered == ["device.registered"])

        // A resend with `after: 0` asks only for events that the log still has, so it logs no second line.
        _ = try await webhooks.resend(webhook.id, after: 0, actor: "test")
        await deliveries.round()
        #expect(log.all.count == 1)
    }

    @Test func `a pause that began while the clock was ahead ends with the clock's return`() async throws {
        _ = try await add()
        receivers.answer { _ in .failed("no connection") }
        try await append(.deviceRevoked)
        world.clock.advance(86_400)
        await deliveries.round()
        world.clock.advance(-86_400)
        receivers.answer { _ in .answered(status: 200) }
        await deliveries.round()
        #expect(receivers.delivered == ["device.revoked"])
    }

    @Test func `a receiver that is gone is switched off`() async throws {
        let webhook = try await add()
        receivers.answer { _ in .answered(status: 410) }
        try await append(.deviceRevoked)
        await deliveries.round()
        world.clock.advance(3600)
        await deliveries.round()
        #expect(receivers.attempts == 1)
        #expect(try await !stored(webhook).isEnabled)
        let detail = try #require(try await world.audited(.webhookChanged).first?.detail)
        #expect(detail["enabled"] == false && detail["before"]?.object?["enabled"] == true)
        #expect(try await world.audited(.webhookChanged).count == 1)
    }

    @Test func `a webhook ends with its app`() async throws {
        let webhook = try await add([.appRemoved])
        #expect(try await world.service.removeApp(app, actor: "test"))
        try await world.add(World.record())
        try await append(.deviceRevoked)
        await deliveries.round()
        #expect(receivers.delivered == ["app.removed"])
        #expect(try await world.stores.webhook(webhook.id) == nil)
    }

    @Test func `an earlier app with the same id neither ends a webhook nor is delivered to it`() async throws {
        try await append(.deviceRegistered)
        #expect(try await world.service.removeApp(app, actor: "test"))
        try await world.add(World.record())
        try await append(.deviceRevoked)
        let webhook = try await add([.deviceRegistered, .deviceRevoked, .appRemoved])
        try await append(.deviceRegistered)
        _ = try #require(try await world.service.webhooks.resend(webhook.id, after: 0, actor: "test"))
        await deliveries.round()
        #expect(receivers.delivered.sorted() == ["device.registered", "device.revoked"])
        let end = try #require(try await world.stores.link(at: nil)).sequence
        #expect(try await stored(webhook).position == end)
        #expect(try await world.service.removeApp(app, actor: "test"))
        await deliveries.round()
        #expect(receivers.delivered.last == "app.removed")
        #expect(try await world.stores.webhook(webhook.id) == nil)
    }

    @Test(arguments: [true, false])
    func `a webhook that names an app later gets nothing of an earlier app with the same id`(
        isResent: Bool
    ) async throws {
        let other = try AppID("com.example.other")
        let ios: JSONValue = ["app_ids": ["TEAMID1234.com.example.other"]]
        try await world.add(World.record(["app_id": .string(other.text), "ios": ios, "android": .null]))
        let webhook = try await world.service.webhooks.add(
            url: "https://hooks.example.com/", scope: .apps([other]), codes: [], actor: "test"
        ).webhook
        await deliveries.round()
        let position = try await stored(webhook).position
        if !isResent { receivers.answer { _ in .answered(status: 503) } }
        try await append(.deviceRegistered)
        #expect(try await world.service.removeApp(app, actor: "test"))
        try await world.add(World.record())
        _ = try await world.service.webhooks.change(webhook.id, actor: "test") { $0.scope = .apps([app, other]) }
        try await append(.deviceRevoked)
        if isResent {
            _ = try #require(try await world.service.webhooks.resend(webhook.id, after: position, actor: "test"))
        }
        receivers.answer { _ in .answered(status: 200) }
        await deliveries.round()
        #expect(receivers.delivered.contains("device.revoked"))
        #expect(!receivers.delivered.contains { ["device.registered", "app.removed"].contains($0) })
        #expect(try await stored(webhook).scope == .apps([app, other]))
    }

    @Test func `a store that fails is asked again`() async throws {
        _ = try await add()
        try await append(.deviceRevoked)
        await world.stores.fail(.saveWebhook)
        await deliveries.round()
        #expect(receivers.attempts == 0)
        await world.stores.recover()
        world.clock.advance(6)
        await deliveries.round()
        #expect(receivers.delivered == ["device.revoked"])
    }
}
