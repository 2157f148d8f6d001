import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

/// Invariants under random sequences of operations: a key belongs to one device forever, a key that was replaced
/// never becomes current again, and an ended device stays ended.
@Suite("Invariants")
struct InvariantTests {
    /// The test's own record of a device.
    private struct Known {
        var device: TestDevice
        var retired: [P256.Signing.PrivateKey] = []
        var isOut = false
    }

    @Test(
        "the invariants hold in random sequences of register, rotate, revoke, deregister and verify",
        arguments: sample(0..<24 as Range<UInt64>))
    func sequences(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        var known: [Known] = []
        for _ in 0..<60 {
            world.clock.advance(Int64(world.random.below(40)))
            guard !known.isEmpty, world.random.below(6) > 0 else {
                known.append(Known(device: try await world.device()))
                continue
            }
            let index = world.random.below(known.count)
            try await step(&known[index], others: known, world)
        }
        try await check(known, world)
    }

    private func step(_ one: inout Known, others: [Known], _ world: World) async throws {
        switch world.random.below(7) {
        case 0, 1:
            var after = one.device
            after.key = P256.Signing.PrivateKey()
            let reason: RotationReason = world.random.below(2) == 0 ? .scheduled : .compromise
            let refusal = try await refusal {
                try await world.rotate(one.device, world.rotation(one.device, to: after.key, reason: reason))
            }
            #expect((refusal == nil) == !one.isOut)
            if refusal == nil {
                one.retired.append(one.device.key)
                one.device = after
            }
        case 2:
            // Uses a current or former key of another device, or a former key of this one.
            let taken = others.flatMap { [$0.device.key] + $0.retired }.filter {
                $0.rawRepresentation != one.device.key.rawRepresentation
            }
            guard !taken.isEmpty else { return }
            let key = taken[world.random.below(taken.count)]
            try await expect(one.isOut ? world.out(one.device) : .rotationFailed) {
                try await world.rotate(one.device, world.rotation(one.device, to: key))
            }
        case 3:
            let key = ([one.device.key] + one.retired)[world.random.below(one.retired.count + 1)]
            let enrolment = try await world.enrolment(key)
            let answer = try? await world.register(enrolment)
            let isCurrent = key.rawRepresentation == one.device.key.rawRepresentation
            #expect((answer?.deviceID == one.device.id) == (isCurrent && !one.isOut))
            #expect(answer == nil || isCurrent)
        case 4 where world.random.below(3) == 0:
            guard !one.isOut else { return }
            if world.random.below(2) == 0 {
                try await world.revoke(one.device)
            } else {
                try await world.deregister(one.device)
            }
            one.isOut = true
        default:
            let refusal = try await refusal { try await world.verify(one.device) }
            #expect((refusal == nil) == !one.isOut)
        }
    }

    private func check(_ known: [Known], _ world: World) async throws {
        var owners: [String: DeviceID] = [:]
        for one in known {
            let row = try await world.row(one.device)
            #expect(row.key == one.device.publicKey)
            #expect([.revoked, .deregistered].contains(row.status) == one.isOut)
            for key in [one.device.key] + one.retired {
                let thumbprint = DevicePublicKey(key.publicKey).thumbprint
                #expect(owners[thumbprint] == nil)
                owners[thumbprint] = one.device.id
                let binding = try #require(try await world.stores.binding(of: thumbprint))
                #expect(binding.deviceID == one.device.id)
                #expect((binding.role == .current) == (thumbprint == row.key.thumbprint))
            }
            world.clock.advance(61)
            for key in one.retired {
                var former = one.device
                former.key = key
                #expect(try await refusal { try await world.verify(former) } != nil)
            }
        }
        #expect(try await world.stores.firstBrokenLink() == nil)
    }

    @Test("the invariants hold for concurrent rotations, revocations and requests of one device", arguments: 0..<8)
    func concurrently(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        let device = try await world.device()
        let bodies = try (0..<8).map { _ in try world.rotation(device, to: P256.Signing.PrivateKey()) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for body in bodies { group.addTask { _ = try await refusal { try await world.rotate(device, body) } } }
            for _ in 0..<8 { group.addTask { _ = try await refusal { try await world.verify(device) } } }
            group.addTask { try await world.revoke(device) }
            try await group.waitForAll()
        }
        let row = try await world.row(device)
        #expect(row.status == .revoked)
        #expect(try await world.audited(.keyRotated).count <= 1)
        try await expect(.deviceRevoked) { try await world.verify(device) }
    }
}

extension World {
    /// The error that an ended device gets.
    fileprivate func out(_ device: TestDevice) async throws -> ErrorCode {
        try await row(device).status == .revoked ? .deviceRevoked : .notRegistered
    }
}
