import AuthContract
import Crypto
import Foundation
import StrictJSON

/// One of many clients of a cluster whose nodes and stores fail. It uses nodes at random, sends some requests more than once, and
/// records the answers.
struct ClusterClient: Sendable {
    private var devices: [LoadClient.Known] = []
    private var accepted: [(request: WireRequest, name: String, device: Int, at: ContinuousClock.Instant)] = []
    private var random: SeededNumbers
    private let fixture: ServiceFixture
    private let history: History
    /// The largest number of seconds by which the client dates requests ahead. Nodes whose clocks are behind must accept them
    /// too.
    private let mostAhead: Int64
    private(set) var tally = LoadClient.Tally()
    /// The number of failed registrations, and of 503 or missing answers to other acts. Replays, and requests of revoked devices,
    /// are not included.
    private(set) var unanswered = 0

    private static let maximumDevices = 30

    init(_ fixture: ServiceFixture, _ history: History, seed: UInt64, mostAhead: Int64) {
        self.fixture = fixture
        self.mostAhead = mostAhead
        self.history = history
        random = SeededNumbers(seed: seed)
    }

    /// Performs random acts until `isOver` returns true.
    mutating func run(_ nodes: [RunningService], until isOver: @Sendable () -> Bool) async {
        while !isOver() {
            let before = unanswered
            await step(nodes)
            // Without a pause, refused clients would load the machine on which the stores must recover.
            if unanswered > before { try? await Task.sleep(for: .milliseconds(20)) }
        }
    }

    private mutating func step(_ nodes: [RunningService]) async {
        let live = devices.indices.filter { devices[$0].revocation == .none && devices[$0].perhapsRotatedTo == nil }
        guard let index = live.randomElement(using: &random) else { return await register(nodes) }
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<3 where devices.count < Self.maximumDevices: await register(nodes)
        case 3 where devices.count < Self.maximumDevices: await raceForChallenge(nodes)
        case 4..<7: await rotate(index, nodes)
        case 7 where live.count > 2: await revoke(index, nodes)
        case 8..<20: await race(index, nodes)
        case 20..<26: await replay(nodes)
        case 26: await useRevoked(nodes)
        default: await sign(index, nodes)
        }
    }

    // MARK: Acts

    private mutating func register(_ nodes: [RunningService]) async {
        let key = P256.Signing.PrivateKey()
        let (asked, told) = (anyNode(nodes), anyNode(nodes))
        guard let challenge = await DevelopmentDevice.challenge(port: nodes[asked].port),
            let device = await DevelopmentDevice.register(key, with: challenge, port: nodes[told].port)
        else { return unanswered += 1 }
        await history.took(Base64.standard.encode(challenge))
        tally.registrations += 1
        devices.append(LoadClient.Known(device: device))
    }

    /// Registers a new key at each node concurrently, all with the same challenge.
    private mutating func raceForChallenge(_ nodes: [RunningService]) async {
        guard let challenge = await DevelopmentDevice.challenge(port: nodes[anyNode(nodes)].port) else {
            return unanswered += 1
        }
        let ports = nodes.map(\.port)
        let winners: [DevelopmentDevice] = await withTaskGroup(of: DevelopmentDevice?.self) { group in
            for port in ports {
                group.addTask {
                    await DevelopmentDevice.register(P256.Signing.PrivateKey(), with: challenge, port: port)
                }
            }
            return await group.reduce(into: []) { if let device = $1 { $0.append(device) } }
        }
        for device in winners {
            await history.took(Base64.standard.encode(challenge))
            tally.registrations += 1
            devices.append(LoadClient.Known(device: device))
        }
    }

    private mutating func rotate(_ index: Int, _ nodes: [RunningService]) async {
        let new = P256.Signing.PrivateKey()
        guard let request = try? devices[index].device.rotation(to: new) else { return }
        let answer = await send(request, of: index, to: anyNode(nodes), nodes)
        switch answer?.status {
        case 200?:
            tally.rotations += 1
            devices[index].previousKey = devices[index].device.thumbprint
            devices[index].device.key = new
        case nil, 503?:
            devices[index].perhapsRotatedTo = new
            unanswered += 1
        default: await history.problem("a rotation was answered \(answer?.text ?? "")")
        }
    }

    private mutating func revoke(_ index: Int, _ nodes: [RunningService]) async {
        devices[index].revocation = .asked
        let id = devices[index].device.id
        let request = fixture.administer(
            "POST", "/apps/\(DevelopmentDevice.appID)/devices/\(id)/revoke", body: JSONObject([("reason", "lost")]))
        let node = anyNode(nodes)
        let answer = await WireConnection.exchange(port: nodes[node].operationsPort, request)
        switch answer?.status {
        case 200?:
            await history.revoked(id.text)
            tally.revocations += 1
            devices[index].revocation = .acknowledged
        case nil, 503?: unanswered += 1
        default: await history.problem("a revocation was answered \(answer?.text ?? "")")
        }
    }

    /// A fresh request. One in four is dated ahead.
    private mutating func fresh(_ index: Int) -> WireRequest? {
        let isAhead = Int.random(in: 0..<4, using: &random) == 0
        let ahead = isAhead ? Int64.random(in: 0...mostAhead, using: &random) : 0
        return try? devices[index].device.request(.status, ahead: ahead)
    }

    private mutating func sign(_ index: Int, _ nodes: [RunningService]) async {
        guard let request = fresh(index) else { return }
        let answer = await send(request, of: index, to: anyNode(nodes), nodes)
        await judge(answer, toFreshRequestOf: index)
    }

    /// Sends one request to every node concurrently.
    private mutating func race(_ index: Int, _ nodes: [RunningService]) async {
        guard let request = fresh(index) else { return }
        let (name, id, history) = (Self.name(request), devices[index].device.id.text, history)
        let answers: [WireResponse?] = await withTaskGroup(of: WireResponse?.self) { group in
            for node in nodes.indices {
                let port = nodes[node].port
                group.addTask {
                    await Self.exchange(request, name: name, device: id, node: node, port: port, history)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        if answers.contains(where: { $0?.status == 200 }) {
            tally.accepted += 1
            accepted.append((request, name, index, .now))
        }
        for answer in answers {
            if answer?.code == "NONCE_REPLAY" { tally.refusedReplays += 1 }
            if answer?.status ?? 503 == 503 { unanswered += 1 }
        }
    }

    /// Sends an accepted request again to any node, unchanged or under a new nonce.
    private mutating func replay(_ nodes: [RunningService]) async {
        accepted.removeAll { .now - $0.at > .seconds(240) }
        guard let old = accepted.randomElement(using: &random) else { return }
        let request = Bool.random(using: &random) ? old.request : old.request.underNewNonce()
        let node = anyNode(nodes)
        let answer = await Self.exchange(
            request, name: old.name, device: devices[old.device].device.id.text, node: node, port: nodes[node].port,
            history)
        if answer?.code == "NONCE_REPLAY" { tally.refusedReplays += 1 }
    }

    /// Uses a device whose revocation was acknowledged. `History` checks whether the device is refused in time.
    private mutating func useRevoked(_ nodes: [RunningService]) async {
        guard
            let index = devices.indices.filter({ devices[$0].revocation == .acknowledged }).randomElement(
                using: &random),
            let request = try? devices[index].device.request(.status)
        else { return }
        _ = await send(request, of: index, to: anyNode(nodes), nodes)
    }

    // MARK: Sending

    private mutating func send(
        _ request: WireRequest, of index: Int, to node: Int, _ nodes: [RunningService]
    ) async -> WireResponse? {
        let name = Self.name(request)
        let answer = await Self.exchange(
            request, name: name, device: devices[index].device.id.text, node: node, port: nodes[node].port, history)
        if answer?.status == 200 {
            tally.accepted += 1
            accepted.append((request, name, index, .now))
        }
        return answer
    }

    private static func exchange(
        _ request: WireRequest, name: String, device: String, node: Int, port: Int, _ history: History
    ) async -> WireResponse? {
        let sent = ContinuousClock.now
        // Each request comes from a random address, because the phones of a fleet have different addresses. Requests from one
        // address would reach the rate limits per address.
        let answer = await WireConnection.exchange(port: port, from: .random(in: 2..<0xFF_FFFF), request)
        await history.used(
            History.Use(
                request: name, device: device, node: node, sent: sent, answered: .now,
                isAccepted: answer?.status == 200))
        return answer
    }

    /// Identifies a request whatever its nonce: its signature under scheme 1, which does not cover the nonce, or else its target.
    private static func name(_ request: WireRequest) -> String {
        request.headers.first { $0.0 == HeaderName.signature }?.1 ?? request.target
    }

    private mutating func judge(_ answer: WireResponse?, toFreshRequestOf index: Int) async {
        switch answer?.status {
        case 200?: break
        case nil, 503?: unanswered += 1
        default: await history.problem("a signed request was answered \(answer?.status ?? 0) \(answer?.text ?? "")")
        }
    }

    private mutating func anyNode(_ nodes: [RunningService]) -> Int { Int.random(in: nodes.indices, using: &random) }

    // MARK: After the faults

    /// Checks that every node has all acknowledged changes.
    mutating func check(_ nodes: [RunningService]) async {
        for index in devices.indices {
            await settleRotation(index, nodes[0])
            for node in nodes.indices { await check(index, node, nodes) }
        }
    }

    /// Finds out whether a rotation that got 503 or no answer took place.
    private mutating func settleRotation(_ index: Int, _ node: RunningService) async {
        guard let new = devices[index].perhapsRotatedTo else { return }
        var after = devices[index].device
        after.key = new
        let settled = after
        let answer = await Self.untilServed {
            guard let request = try? settled.request(.status) else { return nil }
            return await WireConnection.exchange(port: node.port, request)
        }
        guard let answer else { return await history.problem("no answer after the faults") }
        devices[index].perhapsRotatedTo = nil
        if answer.json["key_thumbprint"]?.string == after.thumbprint { devices[index].device = after }
    }

    /// Asks again while the answer is 503, for at most the recovery time of a store: a node that served one request may still be
    /// opening connections for the next.
    private static func untilServed(_ ask: () async -> WireResponse?) async -> WireResponse? {
        let end = ContinuousClock.now + Cluster.recovery
        while true {
            let answer = await ask()
            guard answer?.status == 503, ContinuousClock.now < end else { return answer }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private mutating func check(_ index: Int, _ node: Int, _ nodes: [RunningService]) async {
        let answer = await Self.untilServed {
            guard let request = try? devices[index].device.request(.status) else { return nil }
            return await send(request, of: index, to: node, nodes)
        }
        let (id, thumbprint) = (devices[index].device.id, devices[index].device.thumbprint)
        switch devices[index].revocation {
        case .acknowledged where answer?.code != "DEVICE_REVOKED":
            await history.problem("node \(node) lost the revocation of \(id): \(answer?.text ?? "no answer")")
        case .none where answer?.status != 200 || answer?.json["key_thumbprint"]?.string != thumbprint:
            await history.problem("node \(node) lost \(id) or its key: \(answer?.text ?? "no answer")")
        default: break
        }
    }
}
