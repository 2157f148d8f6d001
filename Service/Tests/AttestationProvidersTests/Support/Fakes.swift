import AuthContract
import AuthService
import Foundation
import Logging
import StrictJSON

import class Bytes.Locked

@testable import AttestationProviders

/// 2026-11-21T12:00:00Z, the time of the vectors.
let noon = UnixTime(1_795_262_400)

final class ManualClock: ServiceClock {
    private let time = Locked(noon)

    var now: UnixTime { time.withLock { $0 } }

    func advance(_ seconds: Int64) { time.withLock { $0 = $0 + seconds } }
}

/// A random source of zeros, so that retries have no jitter.
struct NoRandom: RandomSource {
    func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}

/// Pauses that end at once. Each is recorded, and moves the clock forward by its length.
final class Pauses: Sendable {
    private let clock: ManualClock?
    private let limit: Int
    private let taken = Locked<[Duration]>([])

    /// After `limit` pauses the next one throws, as in a cancelled task.
    init(_ clock: ManualClock? = nil, limit: Int = 1000) {
        self.clock = clock
        self.limit = limit
    }

    var all: [Duration] { taken.withLock { $0 } }
    var seconds: [Int64] { all.map(\.components.seconds) }

    func pause(_ duration: Duration) async throws {
        let count = taken.withLock { taken in
            taken.append(duration)
            return taken.count
        }
        clock?.advance(duration.components.seconds)
        if count >= limit { throw CancellationError() }
    }
}

/// Runs the body with an HTTP client, and shuts the client down at the end.
func withHTTP(_ body: (ProviderHTTP) async throws -> Void) async throws {
    let http = ProviderHTTP()
    do { try await body(http) } catch {
        await http.shutdown()
        throw error
    }
    await http.shutdown()
}

/// A parsed JWT. The caller checks its signature.
struct OpenedJWT {
    let header: JSONObject
    let claims: JSONObject
    let signingInput: [UInt8]
    let signature: [UInt8]

    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64.url.decode(parts[0]), let body = Base64.url.decode(parts[1]),
            let signature = Base64.url.decode(parts[2]), let header = (try? JSONValue(parsing: head))?.object,
            let claims = (try? JSONValue(parsing: body))?.object
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        signingInput = Array("\(parts[0]).\(parts[1])".utf8)
    }
}
