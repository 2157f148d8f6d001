import AuthContract
import Crypto
import StrictJSON

/// One of many clients of a service that may be killed at any moment. It records acknowledged changes, and checks later that the
/// service kept them.
struct LoadClient: Sendable {
    /// A client's knowledge of a device.
    struct Known: Sendable {
        enum Revocation: Sendable { case none, asked, acknowledged }

        var device: DevelopmentDevice
        /// The thumbprint of the previous key; nil before the first rotation.
        var previousKey: String?
        /// The new key of a rotation that got 503 or no answer.
        var perhapsRotatedTo: P256.Signing.PrivateKey?
        var revocation = Revocation.none
    }

    /// The numbers of acknowledged operations, of refused replays, and of answers with 503.
    struct Tally: Sendable {
        var registrations = 0
        var rotations = 0
        var revocations = 0
        var accepted = 0
        var refusedReplays = 0
        /// The number of answers with 503, except to registrations. The service answers 503 if the disk of a busy machine is
        /// too slow. After 503, as after no answer, the client does not know whether the operation took effect.
        var unavailable = 0
    }

    /// A signed request that was accepted once and must never be accepted again.
    struct Accepted: Sendable {
        let request: WireRequest
        let device: Int
        /// The thumbprint of the key that signed the request.
        let key: String
        let at: ContinuousClock.Instant
    }

    private(set) var devices: [Known] = []
    private var accepted: [Accepted] = []
    /// The faults of the service.
    private(set) var problems: [String] = []
    private(set) var tally = Tally()
    /// The key of a registration that the service did not confirm.
    private var perhapsRegistered: P256.Signing.PrivateKey?
    private var random: SeededNumbers
    private let fixture: ServiceFixture

    private static let maximumDevices = 40

    init(_ fixture: ServiceFixture, seed: UInt64) {
        self.fixture = fixture
        random = SeededNumbers(seed: seed)
    }

    // MARK: While the service may die

    /// Registers, rotates, revokes and signs until an answer is missing or a registration fails. Calls `onAnswer` after each
    /// operation before that.
    mutating func run(_ service: RunningService, onAnswer: @Sendable () -> Void) async {
        while await step(service) { onAnswer() }
    }

    /// One operation of a client.
    enum Act: String, Sendable, CaseIterable { case register, rotate, revoke, sign }

    /// Runs one operation with the newest device that is not revoked. Without such a device, registers one. Returns whether the
    /// operation was answered, or for a registration, whether it was confirmed.
    mutating func act(_ act: Act, _ service: RunningService) async -> Bool {
        guard act != .register, let index = devices.lastIndex(where: { $0.revocation == .none }) else {
            return await register(service)
        }
        return switch act {
        case .register, .sign: await sign(index, service)
        case .rotate: await rotate(index, service)
        case .revoke: await revoke(index, service)
        }
    }

    private mutating func step(_ service: RunningService) async -> Bool {
        // After 503 the device's key is unknown: the rotation may have taken effect.
        let live = devices.indices.filter { devices[$0].revocation == .none && devices[$0].perhapsRotatedTo == nil }
        guard let index = live.randomElement(using: &random) else { return await register(service) }
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<4 where devices.count < Self.maximumDevices: return await register(service)
        case 4..<8: return await rotate(index, service)
        case 8 where live.count > 2: return await revoke(index, service)
        default: return await sign(index, service)
        }
    }

    private mutating func register(_ service: RunningService) async -> Bool {
        let key = P256.Signing.PrivateKey()
        guard let device = await DevelopmentDevice.register(key, port: service.port) else {
            perhapsRegistered = key
            return false
        }
        tally.registrations += 1
        devices.append(Known(device: device))
        return true
    }

    private mutating func rotate(_ index: Int, _ service: RunningService) async -> Bool {
        let new = P256.Signing.PrivateKey()
        guard let request = try? devices[index].device.rotation(to: new) else { return false }
        guard let answer = await WireConnection.exchange(port: service.port, request) else {
            devices[index].perhapsRotatedTo = new
            return false
        }
        if isUnavailable(answer) {
            devices[index].perhapsRotatedTo = new
            return true
        }
        guard answer.status == 200 else {
            problems.append("a rotation was answered \(answer.text)")
            return true
        }
        tally.rotations += 1
        note(request, of: index)
        rotated(index, to: new)
        return true
    }

    private mutating func revoke(_ index: Int, _ service: RunningService) async -> Bool {
        devices[index].revocation = .asked
        let request = fixture.administer(
            "POST", "/apps/\(DevelopmentDevice.appID)/devices/\(devices[index].device.id)/revoke",
            body: JSONObject([("reason", "lost")]))
        guard let answer = await WireConnection.exchange(port: service.operationsPort, request) else { return false }
        if isUnavailable(answer) { return true }
        guard answer.status == 200 else {
            problems.append("a revocation was answered \(answer.text)")
            return true
        }
        tally.revocations += 1
        devices[index].revocation = .acknowledged
        return true
    }

    private mutating func sign(_ index: Int, _ service: RunningService) async -> Bool {
        guard let request = try? devices[index].device.request(.status),
            let answer = await WireConnection.exchange(port: service.port, request)
        else { return false }
        if answer.status == 200 {
            note(request, of: index)
        } else if !isUnavailable(answer) {
            problems.append("a signed request was answered \(answer.text)")
        }
        return true
    }

    private mutating func isUnavailable(_ answer: WireResponse) -> Bool {
        if answer.status == 503 { tally.unavailable += 1 }
        return answer.status == 503
    }

    private mutating func note(_ request: WireRequest, of index: Int) {
        tally.accepted += 1
        accepted.append(
            Accepted(request: request, device: index, key: devices[index].device.thumbprint, at: .now))
    }

    private mutating func rotated(_ index: Int, to key: P256.Signing.PrivateKey) {
        devices[index].previousKey = devices[index].device.thumbprint
        devices[index].device.key = key
    }

    // MARK: After the service came back

    /// Checks that every acknowledged registration, rotation and revocation is stored, and that every accepted request is
    /// refused if it is sent again.
    mutating func check(_ service: RunningService) async {
        if let key = perhapsRegistered {
            perhapsRegistered = nil
            if let device = await DevelopmentDevice.register(key, port: service.port) {
                devices.append(Known(device: device))
            } else {
                problems.append("a registration that was not answered cannot be made again")
            }
        }
        for index in devices.indices { await check(index, service) }
        await replay(service)
    }

    private mutating func check(_ index: Int, _ service: RunningService) async {
        let id = devices[index].device.id
        if let new = devices[index].perhapsRotatedTo {
            devices[index].perhapsRotatedTo = nil
            var after = devices[index].device
            after.key = new
            if await thumbprint(of: after, service) == after.thumbprint { rotated(index, to: new) }
        }
        guard let request = try? devices[index].device.request(.status),
            let answer = await WireConnection.exchange(port: service.port, request)
        else { return problems.append("\(id): no answer after the restart") }
        if answer.status == 200 { note(request, of: index) }
        switch devices[index].revocation {
        case .asked where answer.status == 200: devices[index].revocation = .none
        case .asked, .acknowledged:
            guard answer.code == "DEVICE_REVOKED" else {
                return problems.append("\(id): its revocation is lost: \(answer.text)")
            }
            devices[index].revocation = .acknowledged
        case .none:
            let thumbprint = devices[index].device.thumbprint
            guard answer.status == 200, answer.json["key_thumbprint"]?.string == thumbprint else {
                return problems.append("\(id): its registration or rotation is lost: \(answer.text)")
            }
        }
    }

    private func thumbprint(of device: DevelopmentDevice, _ service: RunningService) async -> String? {
        guard let request = try? device.request(.status) else { return nil }
        return await WireConnection.exchange(port: service.port, request)?.json["key_thumbprint"]?.string
    }

    /// Replays each accepted request, either unchanged or under a new nonce.
    private mutating func replay(_ service: RunningService) async {
        // Remove requests of revoked devices, requests by retired keys, and old requests: the service refuses them before it
        // checks their claims.
        accepted.removeAll { known in
            let device = devices[known.device]
            return device.revocation == .acknowledged || .now - known.at > .seconds(240)
                || known.key != device.device.thumbprint && known.key != device.previousKey
        }
        guard let connection = WireConnection(port: service.port) else { return problems.append("no listener") }
        for start in stride(from: 0, to: accepted.count, by: 32) {
            let batch = accepted[start..<min(start + 32, accepted.count)]
            let answers = await connection.exchange(
                batch.map { Int.random(in: 0...1, using: &random) == 0 ? $0.request : $0.request.underNewNonce() })
            if answers.count < batch.count { problems.append("replays were not answered") }
            for (known, answer) in zip(batch, answers) { judge(answer, toReplayOf: known) }
        }
    }

    private mutating func judge(_ answer: WireResponse, toReplayOf known: Accepted) {
        switch answer.code {
        case "NONCE_REPLAY": tally.refusedReplays += 1
        // A replay that the device's previous key signed may get these codes: that key verifies only for a limited time after a rotation.
        case "INVALID_SIGNATURE", "RATE_LIMITED":
            guard known.key == devices[known.device].device.thumbprint else { return }
            fallthrough
        default: problems.append("a replay was answered \(answer.status) \(answer.text)")
        }
    }
}
