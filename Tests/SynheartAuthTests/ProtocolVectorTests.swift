import AuthContract
import Testing

@testable import SynheartAuth

/// The vectors in `docs/vectors` about clients: retries, clock, states, and how a client interprets an answer.
@Suite struct ProtocolVectorTests {
    // MARK: retry.json

    private struct Retry: Decodable {
        let policies: [Policy]
        let delays: [Delay]

        struct Policy: Decodable, Equatable {
            let name: String
            let baseMs: Int
            let jitterMs: Int
            let maximumMs: Int
            let attempts: Int

            var policy: RetryPolicy {
                RetryPolicy(
                    base: .milliseconds(baseMs), jitter: .milliseconds(jitterMs), maximum: .milliseconds(maximumMs),
                    attempts: attempts)
            }
        }

        struct Delay: Decodable {
            let policy: String
            let attempt: Int
            let random: Double
            let retryAfterSeconds: Int?
            let delayMs: Int?
        }
    }

    /// A random source whose two bytes give this fraction.
    private struct Draw: RandomSource {
        let fraction: Double

        func bytes(_ count: Int) -> [UInt8] {
            let number = UInt16(fraction * 65_536)
            return [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
        }
    }

    @Test("retry.json has the SDK's policies and delays")
    func retry() throws {
        let file: Retry = try ProtocolVectors.load("retry")
        let policies = Dictionary(uniqueKeysWithValues: file.policies.map { ($0.name, $0.policy) })
        let own = [("registration", RetryPolicy.registration), ("rotation", RetryPolicy.rotation)]
        for (name, policy) in own {
            let published = try #require(policies[name])
            #expect(published.base == policy.base && published.jitter == policy.jitter, "\(name)")
            #expect(published.maximum == policy.maximum && published.attempts == policy.attempts, "\(name)")
        }
        for item in file.delays {
            let policy = try #require(policies[item.policy])
            let delay = policy.delay(
                after: item.attempt, random: Draw(fraction: item.random),
                retryAfter: item.retryAfterSeconds.map { .seconds($0) })
            #expect(delay == item.delayMs.map { .milliseconds($0) }, "\(item)")
        }
    }

    // MARK: clock.json

    private struct Clock: Decodable {
        let offsets: [Offset]
        let timestamps: [Timestamp]

        struct Offset: Decodable {
            let serverTime: Int64
            let receivedAtMs: Int64
            let roundTripMs: Int64
            let offsetMs: Int64?
        }

        struct Timestamp: Decodable {
            let localMs: Int64
            let offsetMs: Int64
            let timestamp: Int64
        }
    }

    @Test("clock.json has the offsets and times that the SDK computes")
    func clock() throws {
        let file: Clock = try ProtocolVectors.load("clock")
        for item in file.offsets {
            let offset = ClockOffset(
                serverTime: UnixTime(item.serverTime), receivedAt: item.receivedAtMs,
                roundTrip: .milliseconds(item.roundTripMs))
            #expect(offset?.milliseconds == item.offsetMs, "\(item)")
        }
        for item in file.timestamps {
            let offset = try #require(ClockOffset(milliseconds: item.offsetMs))
            #expect(offset.serverTime(atLocal: item.localMs).seconds == item.timestamp, "\(item)")
        }
    }

    // MARK: states.json

    private struct States: Decodable {
        let states: [String]
        let causes: [String]
        let transitions: [Transition]

        struct Transition: Decodable {
            let from: String
            let cause: String
            let to: String
        }
    }

    @Test("states.json has the SDK's transitions")
    func states() throws {
        let file: States = try ProtocolVectors.load("states")
        #expect(file.states == IdentityState.allCases.map(\.rawValue))
        #expect(file.causes == StateTable.Cause.allCases.map { "\($0)" })
        for state in IdentityState.allCases {
            for cause in StateTable.Cause.allCases {
                let expected = file.transitions.first { $0.from == state.rawValue && $0.cause == "\(cause)" }
                let found = try? StateTable.next(state, cause)
                #expect(found?.rawValue == expected?.to, "\(state.rawValue), \(cause)")
            }
        }
    }

    // MARK: errors.json

    private struct Errors: Decodable {
        let codes: [Code]
        let answers: [Answer]
        let retryAfterFields: [Field]

        struct Code: Decodable {
            let code: String
            let status: Int
            let retryable: Bool
            let recovery: String
            let clientCode: String
        }

        struct Answer: Decodable {
            let name: String
            let status: Int
            let headers: [[String]]
            let body: String
            let clientCode: String
            let retryable: Bool
            let recovery: String
            let retryAfterSeconds: Int?
            let serverTime: Int64?
        }

        struct Field: Decodable {
            let text: String
            let seconds: Int?
        }
    }

    @Test("errors.json has the SDK's report for each code")
    func codes() throws {
        let file: Errors = try ProtocolVectors.load("errors")
        for item in file.codes {
            let body = ErrorBody(
                code: item.code, message: "m", requestID: "r", serverTimestamp: UnixTime(1_709_312_345))
            let error = ServiceVerdict.error(of: TransportResponse(status: item.status, body: body.bytes))
            #expect(error.code.text == item.clientCode && error.isRetryable == item.retryable, "\(item.code)")
            #expect(error.recovery.rawValue == item.recovery, "\(item.code)")
        }
    }

    @Test("errors.json has the SDK's report for each answer")
    func answers() throws {
        let file: Errors = try ProtocolVectors.load("errors")
        for item in file.answers {
            let answer = TransportResponse(
                status: item.status, headers: HeaderFields(item.headers.map { ($0[0], $0[1]) }),
                body: Array(item.body.utf8))
            let error = ServiceVerdict.error(of: answer)
            #expect(error.code.text == item.clientCode && error.isRetryable == item.retryable, "\(item.name)")
            #expect(error.recovery.rawValue == item.recovery, "\(item.name)")
            #expect(error.retryAfter == item.retryAfterSeconds.map { .seconds($0) }, "\(item.name)")
            #expect(ServiceVerdict.serverTime(answer)?.seconds == item.serverTime, "\(item.name)")
        }
        for item in file.retryAfterFields {
            let found = ServiceVerdict.retryAfter(HeaderFields([("Retry-After", item.text)]))
            #expect(found == item.seconds.map { .seconds($0) }, "\(item.text)")
        }
    }

    // MARK: rotation.json

    private struct Rotation: Decodable {
        let rotateFields: [Field]

        struct Field: Decodable {
            let text: String
            let by: Int64?
            let reason: RotationReason.RawValue?
        }
    }

    @Test("rotation.json has the deadlines in X-Synheart-Rotate")
    func rotateFields() throws {
        let file: Rotation = try ProtocolVectors.load("rotation")
        for item in file.rotateFields {
            let demand = ServiceVerdict.rotationDemand(HeaderFields([(HeaderName.rotate, item.text)]))
            #expect(demand?.by.seconds == item.by, "\(item.text)")
            if let reason = item.reason { #expect(demand?.reason.rawValue == reason, "\(item.text)") }
        }
    }

    // MARK: assertions.json

    private struct Assertions: Decodable {
        let demands: [Demand]

        struct Demand: Decodable {
            let list: String
            let prefixes: [String]
            let path: String
            let header: String?
        }
    }

    @Test("a demand is remembered for its path and for what its prefix covers")
    func demands() throws {
        let file: Assertions = try ProtocolVectors.load("assertions")
        let origin = try RequestOrigin("https://api.example.com")
        for (_, policy) in Dictionary(grouping: file.demands, by: { $0.list + $0.prefixes.joined(separator: ",") }) {
            let all = OriginDemands()
            for item in policy {
                guard let header = item.header else { continue }
                let demand = try AssertionDemand(headerValue: header)
                let one = OriginDemands()
                one.note(demand, on: item.path, at: origin)
                #expect(one.needsAssertion(item.path, at: origin), "\(item)")
                if demand.prefix != "/" { all.note(demand, on: item.path, at: origin) }
            }
            for item in policy where item.header == nil {
                #expect(!all.needsAssertion(item.path, at: origin), "\(item)")
            }
        }
    }
}
