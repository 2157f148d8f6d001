import AttestationTestKit
import AuthContract
import Bytes
import Foundation
import StrictJSON
import SynheartAuth

/// The environment of a case: the service under test, the test kit's simulated Apple and Google, and the phones.
struct Stage: Sendable {
    let options: Options
    let apple: AppleAuthority
    let google: GoogleAuthority
    let transport: PooledTransport
    /// The phones that the service registered, which are deregistered at the end.
    let cast = Cast()
    /// The seconds that the service's clock is ahead of this machine's.
    var clockOffset: Int64 = 0
    /// The platforms on which the app accepts phones that `apple` and `google` attest. `ordinary` is the first one.
    var platforms: [Platform] = []
    var trace = Trace()

    /// The options of the command line. Nil: the option was not given.
    struct Options: Sendable {
        /// The service, without a slash at its end.
        let url: String
        /// Another node of the service.
        let secondURL: String?
        /// A route behind a gateway or a backend that asks `/verify`.
        let backend: String?
        /// Whether the route is called with GET, because its gateway forwards no bodies.
        let backendIsRead: Bool
        let appID: AppID
        let otherAppID: AppID?
        /// A credential of a backend for the app.
        let credential: String?
        /// A path on which the app's policy demands assertions.
        let assertedPath: String?
        /// The admin API, to revoke a phone.
        let operations: RemoteService?
        /// The longest time that a case may wait until something expires, such as a challenge, in seconds.
        let wait: Int64
        /// The time after which the cases that are left are skipped.
        let deadline: ContinuousClock.Instant
    }

    private static let exchangeLimit: Duration = .seconds(20)
    private static let maximumAnswer = 256 * 1024
    /// The longest wait for a rate limit, in seconds.
    private static let maximumRetryAfter: Int64 = 90

    var appID: AppID { options.appID }

    /// This stage with a new trace.
    var forOneCase: Stage {
        var stage = self
        stage.trace = Trace()
        return stage
    }

    /// The service's time.
    var now: UnixTime { UnixTime(Int64(Date().timeIntervalSince1970) + clockOffset) }

    // MARK: Exchanges

    /// Sends a request to the service, or to another URL.
    ///
    /// A request that a rate limit refuses has no effect, so it is sent again after the time that the service names. Skips the case
    /// if that time is too long.
    func send(_ request: WireRequest, to url: String? = nil) async throws -> WireResponse {
        while true {
            let answer = try await sendOnce(request, to: url)
            guard answer.status == 429 else { return answer }
            let seconds = answer.headers.values("Retry-After").first.flatMap { Int64($0) }.map { max(1, $0) } ?? 1
            guard seconds <= Self.maximumRetryAfter, .now + .seconds(seconds) < options.deadline else {
                throw CaseEnd.skipped("the service's rate limit asks to wait \(seconds) s")
            }
            try await Task.sleep(for: .seconds(seconds))
        }
    }

    /// Sends a request once.
    func sendOnce(_ request: WireRequest, to url: String? = nil) async throws -> WireResponse {
        guard .now < options.deadline else { throw CaseEnd.skipped("the time of --timeout is over") }
        try Task.checkCancellation()
        let url = (url ?? options.url) + request.target
        let message = TransportRequest(
            method: request.method, url: url, headers: HeaderFields(request.headers.map { ($0.name, $0.value) }),
            body: request.body, deadline: Self.exchangeLimit, maximumAnswer: Self.maximumAnswer)
        // Ctrl-C does not cancel the exchange: a phone whose registration was not answered could not be deregistered.
        let exchange = Task { [transport] in try await transport.send(message, isChunked: request.isChunked) }
        switch await exchange.result {
        case .success(let answer):
            let came = WireResponse(status: answer.status, headers: answer.headers, body: answer.body)
            trace.add(Exchange(url: url, sent: request, came: .success(came)))
            return came
        case .failure(let error):
            let failure = NoAnswer(error)
            trace.add(Exchange(url: url, sent: request, came: .failure(failure)))
            throw failure
        }
    }

    /// Sends requests concurrently, and returns their answers in the order in which they arrive.
    func sendTogether(_ requests: [(request: WireRequest, url: String)]) async throws -> [WireResponse] {
        try await withThrowingTaskGroup(of: WireResponse.self) { group in
            for (request, url) in requests { group.addTask { try await sendOnce(request, to: url) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Sends a request that must succeed.
    @discardableResult
    func accepted(_ request: WireRequest, at url: String? = nil, _ what: String = "") async throws -> WireResponse {
        let answer = try await send(request, to: url)
        guard answer.isSuccess else { throw CaseEnd.fails(Self.sentence("success", answer, what)) }
        return answer
    }

    /// Sends a request that must be refused with one of these codes and the HTTP status of that code.
    func refused(
        _ request: WireRequest, at url: String? = nil, _ codes: ErrorCode..., what: String = ""
    ) async throws {
        try requireRefusal(try await send(request, to: url), codes, what)
    }

    /// Checks that an answer is a refusal with one of these codes.
    func requireRefusal(_ answer: WireResponse, _ codes: [ErrorCode], _ what: String = "") throws {
        guard codes.contains(where: { $0.rawValue == answer.code && $0.httpStatus == answer.status }) else {
            let expected = codes.map { "\($0.httpStatus) \($0.rawValue)" }.joined(separator: " or ")
            throw CaseEnd.fails(Self.sentence(expected, answer, what))
        }
    }

    /// Sends a request that must be refused, by the service or by a proxy in front of it.
    func stopped(_ request: WireRequest, at url: String? = nil, what: String = "") async throws {
        let answer = try await send(request, to: url)
        guard 400..<500 ~= answer.status else { throw CaseEnd.fails(Self.sentence("a refusal", answer, what)) }
    }

    private static func sentence(_ expected: String, _ answer: WireResponse, _ what: String) -> String {
        "\(what.isEmpty ? "" : "\(what): ")expected \(expected), came \(answer.text)"
    }

    /// Fails the case with this sentence if the condition does not hold.
    func require(_ isRight: Bool, _ otherwise: @autoclosure () -> String) throws {
        guard isRight else { throw CaseEnd.fails(otherwise()) }
    }

    // MARK: Waiting

    /// Waits this many seconds until something expires, if --wait and --timeout allow it. Otherwise skips the case.
    func wait(_ seconds: Int64, for what: String) async throws {
        guard seconds <= options.wait, .now + .seconds(seconds) < options.deadline else {
            throw CaseEnd.skipped("\(what) takes \(seconds) s: allow it with --wait \(seconds)")
        }
        try await Task.sleep(for: .seconds(seconds))
    }
}

/// The phones that the run has registered, and those that cases share. A phone that was deregistered stays listed.
final class Cast: Sendable {
    private struct Members {
        var phones: [Phone] = []
        var shared: [String: (phone: Phone, uses: Int)] = [:]
    }

    private let members = Locked(Members())

    /// The largest number of uses of a shared phone before a new one is due, because failed signatures are limited for each
    /// device.
    private static let maximumUses = 15

    func enter(_ phone: Phone) { members.withLock { $0.phones.append(phone) } }

    /// The shared phone of a role; nil if a new one is due.
    func shared(_ role: String) -> Phone? {
        members.withLock { members in
            guard let (phone, uses) = members.shared[role], uses < Self.maximumUses else { return nil }
            members.shared[role] = (phone, uses + 1)
            return phone
        }
    }

    func share(_ phone: Phone, _ role: String) { members.withLock { $0.shared[role] = (phone, 1) } }

    /// Removes all phones and returns them.
    func leave() -> [Phone] {
        members.withLock { members in
            defer { members = Members() }
            return members.phones
        }
    }
}
