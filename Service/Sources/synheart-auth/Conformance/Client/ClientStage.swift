import AuthContract
import Bytes
import Foundation
import SynheartAuth

/// A request from the client, and its outcome.
struct Arrival: Sendable {
    let request: WireRequest
    /// The index of the launch (start of the command) during which the request arrived.
    let launch: Int
    let at: ContinuousClock.Instant
    /// The service's time at the arrival.
    let time: UnixTime
    /// The service's answer; nil if the service did not get the request, or did not answer.
    var verdict: WireResponse?
    /// The answer sent to the client; nil if none was sent, or only a part of it.
    var answer: WireResponse?
    /// The time just before the answer is sent or the connection is ended; nil before that.
    var end: ContinuousClock.Instant?

    var name: RequestName { RequestName(request) }
    var isSigned: Bool { !header(HeaderName.signature).isEmpty || !header(HeaderName.signatureInput).isEmpty }

    /// The value of a header; empty if there is none.
    func header(_ name: String) -> String {
        request.headers.first { $0.name.lowercased() == name.lowercased() }?.value ?? ""
    }
}

/// Plays one case: puts its faults in front of the real service, and plays a backend that asks the service about
/// each request that the backend receives.
final class ClientStage: Sendable {
    /// The service that all cases share.
    struct Service: Sendable {
        let url: String
        /// A credential of the backend.
        let credential: String
        let transport: PooledTransport
    }

    private struct State {
        var faults: [RequestName: [Fault]]
        var arrivals: [Arrival] = []
        var launch = 0
        var kill: @Sendable () -> Void = {}
        var isKilled = false
    }

    private let service: Service
    private let state: Locked<State>

    /// The largest number of requests of one case. After that, a looping client gets no answers.
    private static let maximumArrivals = 200
    private static let hopByHop: Set = ["connection", "content-length", "transfer-encoding", "keep-alive", "expect"]

    init(_ service: Service, faults: [RequestName: [Fault]]) {
        self.service = service
        state = Locked(State(faults: faults))
    }

    var arrivals: [Arrival] { state.withLock { $0.arrivals } }

    /// Begins a launch, which is one start of the command.
    func begin(launch: Int) {
        state.withLock { ($0.launch, $0.isKilled, $0.kill) = (launch, false, {}) }
    }

    /// Sets the function that kills the running command.
    func isKilled(by kill: @escaping @Sendable () -> Void) { state.withLock { $0.kill = kill } }

    /// Whether the case killed the command in this launch.
    var wasKilled: Bool { state.withLock { $0.isKilled } }

    /// Records a request, and plays the next fault for its name. Without a fault, the client gets the service's answer.
    func respond(to request: WireRequest) async -> Delivery {
        let time = Int64(Date().timeIntervalSince1970)
        let (index, fault) = state.withLock { state -> (Int?, Fault?) in
            guard state.arrivals.count < Self.maximumArrivals else { return (nil, nil) }
            state.arrivals.append(Arrival(request: request, launch: state.launch, at: .now, time: UnixTime(time)))
            let name = RequestName(request)
            guard var faults = state.faults[name], !faults.isEmpty else { return (state.arrivals.count - 1, nil) }
            let fault = faults.removeFirst()
            state.faults[name] = faults
            return (state.arrivals.count - 1, fault)
        }
        guard let index else { return .nothing }
        let delivery = await delivery(of: request, fault, time: UnixTime(time), index)
        state.withLock { state in
            if case .answer(let answer) = delivery { state.arrivals[index].answer = answer.wire }
            state.arrivals[index].end = .now
        }
        return delivery
    }

    private func delivery(of request: WireRequest, _ fault: Fault?, time: UnixTime, _ index: Int) async -> Delivery {
        switch fault {
        case .dropped: return .nothing
        case .answered(let make): return .answer(make(time))
        case .killed(let afterService):
            if afterService { _ = await passed(request, index) }
            state.withLock { state in
                state.isKilled = true
                state.kill()
            }
            return .nothing
        case nil, .lost, .cut, .late, .changed: break
        }
        guard var answer = await passed(request, index) else { return .nothing }
        switch fault {
        case .lost: return .nothing
        case .cut: return .partOf(answer)
        case .late(let time): try? await Task.sleep(for: time)
        case .changed(let change): change(&answer)
        case nil, .dropped, .answered, .killed: break
        }
        return .answer(answer)
    }

    /// Sends the request to the service if it is for one of the service's own routes. Otherwise asks the service
    /// about the request, as a backend does. Returns nil if the service does not answer.
    private func passed(_ request: WireRequest, _ index: Int) async -> PlayedAnswer? {
        let isOwn = request.target.hasPrefix("/auth/v1/")
        var headers = request.headers.filter { !Self.hopByHop.contains($0.name.lowercased()) }
        if !isOwn { headers.append((HeaderName.serviceCredential, service.credential)) }
        let url = service.url + (isOwn ? "" : Route.forward.rawValue) + request.target
        let message = TransportRequest(
            method: request.method, url: url, headers: HeaderFields(headers.map { ($0.name, $0.value) }),
            body: request.body, deadline: .seconds(20))
        guard let came = try? await service.transport.send(message) else { return nil }
        let verdict = WireResponse(status: came.status, headers: came.headers, body: came.body)
        state.withLock { $0.arrivals[index].verdict = verdict }
        let lines = came.headers.lines.map { (name: $0.name, value: $0.value) }
        guard !isOwn, verdict.isSuccess else {
            return PlayedAnswer(
                status: came.status, headers: lines.filter { !Self.hopByHop.contains($0.name.lowercased()) },
                body: came.body)
        }
        return PlayedAnswer(
            status: 200, headers: [("Content-Type", "application/json")], body: Array(#"{"readings":[]}"#.utf8))
    }
}
