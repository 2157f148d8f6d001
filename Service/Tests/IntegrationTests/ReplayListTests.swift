import AuthContract
import AuthService
import Foundation
import StrictJSON
import Testing

/// A captured scheme 1 request, replayed to the whole service: over HTTP, with claims on disk. (`KillLoop` and `DeviceLife`
/// replay requests after the service was killed.)
@Suite struct ReplayList {
    /// An attacker's changes to a captured request that keep its signature valid.
    enum ReplayVariant: String, CaseIterable {
        case none, newNonce, otherS, otherSAndNewNonce, upperCaseNonce, upperCaseHeaderNames

        func apply(to request: WireRequest) throws -> WireRequest {
            var request = request
            switch self {
            case .none: break
            case .newNonce: return request.underNewNonce()
            case .otherS: return try request.withOtherS()
            case .otherSAndNewNonce: return try request.withOtherS().underNewNonce()
            case .upperCaseNonce:
                request.headers = request.headers.map {
                    $0.0 == HeaderName.nonce ? ($0.0, $0.1.uppercased()) : $0
                }
            case .upperCaseHeaderNames: request.headers = request.headers.map { ($0.0.uppercased(), $0.1) }
            }
            return request
        }
    }

    let folder: TemporaryFolder
    let clock = MovableClock()

    init() throws { folder = try TemporaryFolder() }

    private func running<Value: Sendable>(
        _ body: @Sendable (ClockedService) async throws -> Value
    ) async throws -> Value {
        try await ClockedService.with(database: folder.path("db.sqlite"), clock: clock, body)
    }

    private func expectRefused(
        _ request: WireRequest, by service: ClockedService, code: String = "NONCE_REPLAY",
        _ sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        for variant in ReplayVariant.allCases {
            let answer = try await service.send(try variant.apply(to: request))
            #expect(answer.code == code, "\(variant): \(answer.text)", sourceLocation: sourceLocation)
        }
    }

    @Test func `every form of a replay is refused, at once and right after a restart`() async throws {
        let request = try await running { service in
            let device = try await service.device()
            let request = try device.request("GET", Route.status.rawValue, at: clock.now)
            #expect(try await service.send(request).status == 200)
            try await expectRefused(request, by: service)
            return request
        }
        try await running { service in try await expectRefused(request, by: service) }
    }

    @Test func `of 64 simultaneous copies through several workers one passes`() async throws {
        try await running { service in
            let device = try await service.device()
            let request = try device.request("GET", Route.status.rawValue, at: clock.now)
            let codes = try await withThrowingTaskGroup(of: String?.self) { group in
                for number in 0..<64 {
                    let variant = ReplayVariant.allCases[number % ReplayVariant.allCases.count]
                    group.addTask { try await service.send(try variant.apply(to: request)).code }
                }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(codes.count { $0 == nil } == 1)
            #expect(codes.count { $0 == "NONCE_REPLAY" } == 63)
        }
    }

    @Test func `a replay of a request dated 300 s ahead is refused while it is fresh, across restarts`() async throws {
        let request = try await running { service in
            try await service.change(signature: [("future_window_seconds", 300), ("past_window_seconds", 600)])
            let device = try await service.device()
            let request = try device.request("GET", Route.status.rawValue, at: clock.now + 300)
            #expect(try await service.send(request).status == 200)
            return request
        }
        // The request is fresh for 900 s: from 300 s before its date to 600 s after it. The three rounds take 897 s.
        for _ in 0..<3 {
            try await running { service in
                try await expectRefused(request, by: service)
                clock.move(299)
                try await expectRefused(request, by: service)
            }
        }
        clock.move(4)
        try await running { service in try await expectRefused(request, by: service, code: "CLOCK_SKEW") }
    }

    @Test func `a replay is refused after the window was raised`() async throws {
        let request = try await running { service in
            try await service.change(signature: [("past_window_seconds", 30)])
            let device = try await service.device()
            let request = try device.request("GET", Route.status.rawValue, at: clock.now)
            #expect(try await service.send(request).status == 200)
            clock.move(600)
            try await expectRefused(request, by: service, code: "CLOCK_SKEW")
            try await service.change(signature: [("past_window_seconds", 600)])
            try await expectRefused(request, by: service)
            return request
        }
        try await running { service in try await expectRefused(request, by: service) }
    }

    @Test(arguments: [60, 700, 3600] as [Int64])
    func `a replay is refused after the clock stepped back, before a restart and after it`(step: Int64) async throws {
        let request = try await running { service in
            let device = try await service.device()
            let request = try device.request("GET", Route.status.rawValue, at: clock.now)
            #expect(try await service.send(request).status == 200)
            // After a long step, the claim of `request` has expired. The claim of `later` may then purge it.
            clock.move(step)
            let later = try device.request("GET", Route.status.rawValue, at: clock.now)
            #expect(try await service.send(later).status == 200)
            clock.move(-step)
            try await Self.expectNeverAccepted(request, by: service)
            return request
        }
        try await running { service in try await Self.expectNeverAccepted(request, by: service) }
    }

    /// Checks that the service refuses every variant of the request: as a replay, or because of its date if its claim may have been purged.
    private static func expectNeverAccepted(_ request: WireRequest, by service: ClockedService) async throws {
        for variant in ReplayVariant.allCases {
            let answer = try await service.send(try variant.apply(to: request))
            #expect(["NONCE_REPLAY", "CLOCK_SKEW"].contains(answer.code ?? ""), "\(variant): \(answer.text)")
        }
    }

    @Test func `a request that one route accepted is refused by verify, and vice versa`()
        async throws
    {
        try await running { service in
            let device = try await service.device()
            let credential = try await service.service.credentials.create(
                name: "backend", role: .service, scope: .apps([try AppID(DevelopmentDevice.appID)]), life: 3600,
                actor: "test"
            ).text.exposed
            for isFirstOwn in [true, false] {
                let request = try device.request("GET", Route.status.rawValue, at: clock.now)
                let asked: JSONValue = [
                    "method": "GET", "scheme": "https", "authority": "api.example.com",
                    "path": .string(Route.status.rawValue), "query": .null, "body": "",
                    "headers": .array(request.underNewNonce().headers.map { [.string($0.0), .string($0.1)] }),
                ]
                let question = WireRequest(
                    method: "POST", target: Route.verify.rawValue, headers: [("Authorization", "Bearer \(credential)")],
                    body: asked.bytes)
                let (first, second) = isFirstOwn ? (request, question) : (question, request)
                #expect(try await service.send(first).status == 200)
                #expect(try await service.send(second).code == "NONCE_REPLAY")
            }
        }
    }
}

extension WireRequest {
    /// The request with s of its signature replaced by n - s, which is a valid signature too.
    func withOtherS() throws -> WireRequest {
        var request = self
        request.headers = try headers.map { name, value in
            guard name == HeaderName.signature else { return (name, value) }
            let signature = try RequestSignature(base64: value)
            return (name, try RequestSignature(raw: Array(signature.r) + Self.negated(signature.raw.suffix(32))).base64)
        }
        return request
    }

    private static func negated(_ s: [UInt8].SubSequence) -> [UInt8] {
        // The order of P-256.
        let order: [UInt8] = [
            0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
        ]
        var (difference, borrow) = ([UInt8](repeating: 0, count: 32), 0)
        for (index, (left, right)) in zip(order, s).enumerated().reversed() {
            let digit = Int(left) - Int(right) - borrow
            difference[index] = UInt8((digit + 256) % 256)
            borrow = digit < 0 ? 1 : 0
        }
        return difference
    }
}
