import AuthContract
import Bytes
import StoreConformance
import Testing

@testable import AuthService

/// The store keeps the latest attempts to deliver events, each with its answer.
@Suite struct WebhookDeliveryRecordTests {
    /// A receiver that gives the answers in `answers`, in order, and then 200.
    private final class Receiver: WebhookTransport {
        let answers = Locked<[WebhookOutcome]>([])
        /// An action that runs once, before the next answer.
        let meanwhile = Locked<(@Sendable () async throws -> Void)?>(nil)

        func post(_ request: WebhookRequest) async -> WebhookOutcome {
            let action = meanwhile.withLock { action in
                defer { action = nil }
                return action
            }
            try? await action?()
            return answers.withLock { $0.isEmpty ? .answered(status: 200) : $0.removeFirst() }
        }
    }

    private let world: World
    private let receiver = Receiver()
    private let deliveries: WebhookDeliveries
    private let webhook: Webhook

    init() async throws {
        world = try await World()
        let app = try AppID(World.appID)
        deliveries = WebhookDeliveries(of: world.service, transport: receiver, random: SeededRandom(seed: 1))
        webhook = try await world.service.webhooks.add(
            url: "https://hooks.example.com/", scope: .apps([app]), codes: [.deviceRevoked], actor: "test"
        ).webhook
    }

    /// Appends an event that the webhook delivers, and returns the event's number.
    @discardableResult private func append(_ device: DeviceID? = nil) async throws -> Int64 {
        try await world.stores.append(
            AuditEvent(
                .deviceRevoked, at: world.clock.now, actor: "test", appID: try AppID(World.appID), deviceID: device))
        return try #require(try await world.stores.link(at: nil)).sequence
    }

    /// The kept attempts, newest first.
    private var kept: [WebhookDelivery] {
        get async throws { try await world.stores.deliveries(of: webhook.id, limit: 1000) }
    }

    @Test func `an attempt is kept with its answer, whether it succeeds or fails`() async throws {
        let outcomes: [WebhookOutcome] = [
            .failed("no connection, or no HTTP answer"), .answered(status: 500), .answered(status: 302),
            .failed("no answer in time"), .answered(status: 204),
        ]
        receiver.answers.withLock { $0 = outcomes }
        let sequence = try await append()
        for _ in outcomes {
            await deliveries.round()
            world.clock.advance(900)
        }
        let kept = try await kept
        #expect(kept.map(\.status) == [204, nil, 302, 500, nil])
        #expect(
            kept.map(\.failure) == [
                nil, "no answer in time", "status 302: redirects are not followed", "status 500",
                "no connection, or no HTTP answer",
            ])
        #expect(kept.map(\.attempt) == [5, 4, 3, 2, 1])
        #expect(kept.map(\.at) == [3600, 2700, 1800, 900, 0].map { World.start + $0 })
        #expect(kept.allSatisfy { $0.sequence == sequence && (0..<60_000).contains($0.milliseconds) })
    }

    @Test func `a receiver that fails for hours fills nothing, and its last attempts are there`() async throws {
        for _ in 0..<12 { try await append(DeviceID(from: world.random)) }
        let rounds: Int64 = 60
        receiver.answers.withLock { $0 = [WebhookOutcome](repeating: .answered(status: 503), count: 5000) }
        for _ in 0..<rounds {
            await deliveries.round()
            world.clock.advance(900)
        }
        let kept = try await kept
        #expect(kept.count == WebhookDelivery.kept && kept.allSatisfy { $0.status == 503 })
        #expect(kept.first?.at == World.start + (rounds - 1) * 900)
        #expect(kept.map(\.at) == kept.map(\.at).sorted(by: >))
        // Each delivery round tries only some of the devices, those with the fewest attempts first.
        let last = Dictionary(grouping: kept, by: \.sequence).compactMap { $0.value.map(\.attempt).max() }
        #expect(last.count == 12 && last.allSatisfy { (rounds / 2..<rounds).contains($0) }, "\(last)")
    }

    @Test func `devices whose events always fail keep no other device from its turn`() async throws {
        for _ in 0..<24 { try await append(DeviceID(from: world.random)) }
        receiver.answers.withLock { $0 = [WebhookOutcome](repeating: .answered(status: 400), count: 5000) }
        for _ in 0..<3 {
            await deliveries.round()
            world.clock.advance(900)
        }
        #expect(try await Set(kept.map(\.sequence)).count == 24)
    }

    @Test func `attempts are counted on by another node, and after a resend`() async throws {
        receiver.answers.withLock { $0 = [.answered(status: 500)] }
        try await append()
        await deliveries.round()
        world.clock.advance(WebhookDeliveries.leaseSeconds + 1)
        let other = WebhookDeliveries(
            of: try world.anotherNode(), transport: receiver, random: SeededRandom(seed: 2))
        await other.round()
        _ = try await world.service.webhooks.resend(webhook.id, after: webhook.position, actor: "test")
        await other.round()
        #expect(try await kept.map(\.attempt) == [3, 2, 1])
        #expect(try await kept.map(\.status) == [200, 200, 500])
    }

    @Test func `an attempt during which the webhook was changed is kept later`() async throws {
        let (service, id) = (world.service, webhook.id)
        receiver.meanwhile.withLock { action in
            action = { _ = try await service.webhooks.change(id, actor: "test") { $0.codes = [] } }
        }
        let first = try await append()
        await deliveries.round()
        #expect(try await kept == [])
        await deliveries.round()
        let kept = try await kept
        #expect(kept.count { $0.sequence == first } == 1 && kept.allSatisfy { $0.attempt == 1 })
        #expect(kept.last?.sequence == first)
    }

    @Test func `an attempt that the store could not save is kept once, and the receiver keeps its pause`()
        async throws
    {
        let stores = world.stores
        receiver.answers.withLock { $0 = .init(repeating: .answered(status: 500), count: 8) }
        try await append()
        for _ in 0..<4 {
            await deliveries.round()
            world.clock.advance(900)
        }
        receiver.meanwhile.withLock { $0 = { await stores.fail(.saveWebhook) } }
        await deliveries.round()
        #expect(try await kept.map(\.attempt) == [4, 3, 2, 1])
        await stores.recover()
        // The fifth pause is at least 80 s.
        world.clock.advance(60)
        await deliveries.round()
        #expect(try await kept.count == 4)
        world.clock.advance(900)
        await deliveries.round()
        #expect(try await kept.map(\.attempt) == [6, 5, 4, 3, 2, 1])
    }

    @Test(arguments: [WebhookOutcome.answered(status: 500), .failed("no answer in time")])
    func `a node that stops keeps an attempt that was answered, and no other`(outcome: WebhookOutcome) async throws {
        receiver.answers.withLock { $0 = [outcome] }
        try await append()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (never, hold) = AsyncStream.makeStream(of: Void.self)
        receiver.meanwhile.withLock { action in
            action = {
                begin.finish()
                // Waits until the node stops.
                for await _ in never {}
            }
        }
        let deliveries = deliveries
        let node = Task { await deliveries.run() }
        for await _ in begun {}
        node.cancel()
        await node.value
        hold.finish()
        #expect(try await kept.map(\.status) == (outcome == .answered(status: 500) ? [500] : []))
        #expect(try await world.stores.webhook(webhook.id)?.leaseHolder == nil)
    }

    @Test func `a webhook that is removed meanwhile leaves no delivery`() async throws {
        let (service, id) = (world.service, webhook.id)
        receiver.meanwhile.withLock { action in
            action = { _ = try await service.webhooks.remove(id, actor: "test") }
        }
        try await append()
        for _ in 0..<2 { await deliveries.round() }
        #expect(try await kept == [])
    }

    @Test func `a reason of any length is cut`() {
        func failure(_ text: String) -> String? {
            WebhookDelivery(
                sequence: 1, attempt: 1, at: World.start, milliseconds: 1, status: nil, failure: text
            ).failure
        }
        #expect(failure(String(repeating: "a", count: 200)) == String(repeating: "a", count: 200))
        #expect(failure(String(repeating: "a", count: 10_000)) == String(repeating: "a", count: 200))
        #expect(failure("e" + String(repeating: "\u{301}", count: 10_000))?.unicodeScalars.count == 200)
    }
}
