import AuthContract
import AuthService
import Bytes
import RESP

@testable import RedisStores

/// A clock that a test moves, beginning at the real time.
final class MovableClock: ServiceClock {
    private let ahead = Locked<Int64>(0)

    var now: UnixTime { SystemClock().now + ahead.withLock { $0 } }

    func move(by seconds: Int64) { ahead.withLock { $0 += seconds } }
}

/// A signed request, as the replay store sees it.
struct SampleRequest: Sendable {
    let device: DeviceID
    let claims: [ReplayClaim]
    var timestamp: UnixTime

    init(at timestamp: UnixTime = SystemClock().now) {
        let random = SystemRandom()
        device = DeviceID(from: random)
        claims = [.nonce(RequestNonce(from: random), of: device), .nonce(RequestNonce(from: random), of: device)]
        self.timestamp = timestamp
    }
}

extension RedisStores {
    func claim(
        _ request: SampleRequest, now: UnixTime? = nil, tag: ClaimTag? = nil
    ) async throws(StoreError) -> ClaimOutcome {
        try await replay.claim(
            request.claims, of: request.device, timestamp: request.timestamp, expiresAt: request.timestamp + 660,
            now: now ?? SystemClock().now, futureWindow: 60, tag: tag)
    }

    /// Retries a claim until the stores answer, as a client does after 503.
    func claimOnceAvailable(_ request: SampleRequest, now: UnixTime? = nil) async throws -> ClaimOutcome {
        var outcome: ClaimOutcome?
        try await eventually("the stores answer") {
            outcome = try? await claim(request, now: now)
            return outcome != nil
        }
        guard let outcome else { throw TestFailure("no outcome") }
        return outcome
    }
}

extension ClaimOutcome {
    var isHistoryLost: Bool {
        if case .historyLost = self { return true }
        return false
    }
}
