import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

/// Every cell of the protocol's table *Who may do what*, tested through the service.
@Suite("Who may do what")
struct AccessTests {
    enum State: String, CaseIterable {
        case registeredCurrentKey, previousKeyInOverlap, pending, tooOldInGrace, tooOldPastGrace, rejected, revoked
        case deregistered, unknown, appDisabled
    }

    struct Cell: CustomTestStringConvertible, Sendable {
        let state: State
        let operation: Operation
        /// The expected error; nil: the request succeeds.
        let expected: ErrorCode?

        var testDescription: String {
            "\(state.rawValue): \(operation.rawValue) -> \(expected?.rawValue ?? "ok")"
        }
    }

    static let columns: [Operation] = [.status, .rotateKey, .deregister, .token, .otherService]
    static let cells: [Cell] = [
        (.registeredCurrentKey, [nil, nil, nil, nil, nil]),
        (.previousKeyInOverlap, [nil, .rotationFailed, .invalidSignature, .invalidSignature, nil]),
        (.pending, [nil, .devicePending, nil, .devicePending, .devicePending]),
        (.tooOldInGrace, [nil, nil, nil, .keyExpired, .keyExpired]),
        (.tooOldPastGrace, [nil, .keyExpired, nil, .keyExpired, .keyExpired]),
        (.rejected, [nil, .deviceRevoked, nil, .deviceRevoked, .deviceRevoked]),
        (.revoked, Array(repeating: .deviceRevoked, count: 5)),
        (.deregistered, Array(repeating: .notRegistered, count: 5)),
        (.unknown, Array(repeating: .notRegistered, count: 5)),
        (.appDisabled, Array(repeating: .unknownApp, count: 5)),
    ].flatMap { (state: State, row: [ErrorCode?]) in
        zip(columns, row).map { Cell(state: state, operation: $0, expected: $1) }
    }

    @Test("each cell of the table decides as published", arguments: cells)
    func cell(_ cell: Cell) async throws {
        let (world, device) = try await Self.world(in: cell.state)
        let refusal = try await refusal { try await Self.attempt(cell.operation, device, world) }
        #expect(refusal?.code == cell.expected, "\(refusal?.reason ?? "accepted")")
    }

    @Test("a signature by an unknown key is refused in every state", arguments: State.allCases)
    func stranger(_ state: State) async throws {
        let (world, device) = try await Self.world(in: state)
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        let expected: ErrorCode =
            switch state {
            case .deregistered, .unknown: .notRegistered
            case .appDisabled: .unknownApp
            default: .invalidSignature
            }
        try await expect(expected) { try await world.verify(stranger) }
    }

    @Test("without a valid signature the answer does not reveal that a device is revoked")
    func finerStatesNeedTheKey() async throws {
        let (world, device) = try await Self.world(in: .revoked)
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        try await expect(.invalidSignature) { try await world.status(stranger) }
        try await expect(.deviceRevoked) { try await world.status(device) }
    }

    @Test(
        "a key is too old one second past its age, past grace one second past its grace, past a demand one second past it",
        arguments: [
            (30 * 86_400, nil, nil), (30 * 86_400 + 1, .keyExpired, nil), (37 * 86_400, .keyExpired, nil),
            (37 * 86_400 + 1, .keyExpired, .keyExpired),
        ] as [(Int64, ErrorCode?, ErrorCode?)])
    func keyAge(seconds: Int64, token: ErrorCode?, rotation: ErrorCode?) async throws {
        let world = try await World(["keys": ["maximum_age_days": 30, "grace_days": 7]])
        let device = try await world.device()
        world.clock.advance(seconds)
        #expect(try await refusal { try await world.token(device) }?.code == token)
        #expect(try await world.status(device).mustRotate == (token != nil && rotation == nil))
        #expect(try await refusal { try await world.rotated(device) }?.code == rotation)
    }

    @Test("a device of another app is unknown, whatever its key signs")
    func otherApp() async throws {
        let world = try await World()
        try await world.add(World.record(["app_id": "com.example.other"]))
        let device = try await world.device()
        let request = RequestDraft().with { $0.appID = try? AppID("com.example.other") }
        try await expect(.notRegistered) { try await world.verify(device, request) }
    }

    @Test("a disabled or unknown app is UNKNOWN_APP, and its rows are kept")
    func disabledApp() async throws {
        let world = try await World()
        let device = try await world.device()
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        try await world.change(["enabled": false])
        try await expect(.unknownApp) { try await world.challenge() }
        try await expect(.unknownApp) { try await world.register(enrolment) }
        try await expect(.unknownApp) { try await world.challenge("com.example.nobody") }
        try await world.change([:])
        try await world.verify(device)
    }

    // MARK: The rows

    private static func world(in state: State) async throws -> (World, TestDevice) {
        let age: [String: JSONValue] = ["keys": ["maximum_age_days": 30, "grace_days": 7]]
        switch state {
        case .registeredCurrentKey:
            let world = try await World()
            return (world, try await world.device())
        case .previousKeyInOverlap:
            let world = try await World()
            let before = try await world.device()
            _ = try await world.rotated(before)
            return (world, before)
        case .pending, .rejected:
            let world = try await World(["registration": ["approval": "manual"]])
            let device = try await world.device()
            if state == .rejected {
                try await world.reject(device)
            }
            return (world, device)
        case .tooOldInGrace, .tooOldPastGrace:
            let world = try await World(age)
            let device = try await world.device()
            world.clock.advance((state == .tooOldInGrace ? 37 : 38) * 86_400)
            return (world, device)
        case .revoked:
            let world = try await World()
            let device = try await world.device()
            try await world.revoke(device)
            return (world, device)
        case .deregistered:
            let world = try await World()
            let device = try await world.device()
            try await world.deregister(device)
            return (world, device)
        case .unknown:
            let world = try await World()
            let id = DeviceID(from: world.random)
            return (world, TestDevice(appID: try AppID(World.appID), id: id, key: P256.Signing.PrivateKey()))
        case .appDisabled:
            let world = try await World()
            let device = try await world.device()
            try await world.change(["enabled": false])
            return (world, device)
        }
    }

    private static func attempt(_ operation: Operation, _ device: TestDevice, _ world: World) async throws {
        switch operation {
        case .status: try await world.status(device)
        case .rotateKey: _ = try await world.rotated(device)
        case .deregister: try await world.deregister(device)
        case .token: try await world.token(device)
        case .otherService: try await world.verify(device)
        }
    }
}
