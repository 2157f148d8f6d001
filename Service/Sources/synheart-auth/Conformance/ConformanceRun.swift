import AuthContract
import StrictJSON
import SynheartAuth

/// Plays cases against a service, one after another, and deregisters every phone at the end.
struct ConformanceRun {
    private var stage: Stage

    /// The longest time for deregistering the phones at the end.
    private static let farewell: Duration = .seconds(60)
    /// The largest error of this machine's clock that the run corrects, in seconds: a year.
    private static let clockLimit: Int64 = 366 * 86_400

    /// Finds out the properties of the service and the app.
    ///
    /// - Throws: a `CommandFailure` if no service answers, or if it does not have the app.
    init(_ stage: Stage) async throws {
        self.stage = stage
        let answer: WireResponse
        do { answer = try await stage.send(WireRequest(method: "GET", target: Route.status.rawValue)) } catch {
            throw CommandFailure(.impossible, "cannot reach \(stage.options.url): \(error)")
        }
        // Correct the clock as the SDK does, but by up to a year instead of a day.
        if let time = answer.json["server_timestamp"]?.integer.map({ UnixTime($0) }) {
            let offset = time - stage.now
            let isUsable = !(-2...2 ~= offset) && -Self.clockLimit...Self.clockLimit ~= offset
            if isUsable { self.stage.clockOffset = offset }
        }
        let challenge = try? await stage.send(.json(.challenge, ChallengeRequest(appID: stage.appID).bytes))
        guard challenge?.code != ErrorCode.unknownApp.rawValue else {
            throw CommandFailure(
                .impossible,
                "\(stage.options.url) has no app \(stage.appID): add the record that `apps example --app "
                    + "\(stage.appID)` prints with the same --authority")
        }
        for platform in Platform.allCases where (try? await self.stage.register(platform)) != nil {
            self.stage.platforms.append(platform)
        }
        try Task.checkCancellation()
    }

    /// The platforms on which phones register.
    var platforms: [Platform] { stage.platforms }

    /// Plays the cases, and reports each result when it is known.
    func play(_ cases: [ConformanceCase], _ tell: (ConformanceCase, CaseResult) throws -> Void) async throws {
        for item in cases {
            let result = await item.result(on: stage)
            try Task.checkCancellation()
            try tell(item, result)
        }
    }

    /// Deregisters every phone, also after Ctrl-C.
    ///
    /// - Returns: the number of phones that may still be registered.
    static func leave(_ stage: Stage) async -> Int {
        await Task {
            var left = 0
            let end = ContinuousClock.now + farewell
            for phone in stage.cast.leave() {
                guard .now < end, await stage.forOneCase.deregisters(phone) else {
                    left += 1
                    continue
                }
            }
            return left
        }.value
    }
}

extension Stage {
    /// Deregisters a phone under scheme 1. If that fails, tries scheme 2, because the service may refuse scheme 1
    /// from a device that has used scheme 2.
    ///
    /// - Returns: whether the phone is deregistered or revoked.
    fileprivate func deregisters(_ phone: Phone) async -> Bool {
        let gone = [ErrorCode.notRegistered, .deviceRevoked].map(\.rawValue)
        let path = Route.device.rawValue
        guard let origin = try? RequestOrigin(options.url) else { return false }
        for request in [
            try? phone.signed(.device, at: now), try? phone.signedTwo("DELETE", path, to: origin, at: now),
        ] {
            guard let request, let answer = try? await farewell(request) else { continue }
            if answer.isSuccess || gone.contains(answer.code ?? "") { return true }
        }
        return false
    }

    /// Sends a request at the end of the run, even after the run's deadline or Ctrl-C. The exchange is not recorded in the trace.
    private func farewell(_ request: WireRequest) async throws -> WireResponse {
        let answer = try await transport.send(
            TransportRequest(
                method: request.method, url: options.url + request.target,
                headers: HeaderFields(request.headers.map { ($0.name, $0.value) }), body: [], deadline: .seconds(5),
                maximumAnswer: 65_536))
        return WireResponse(status: answer.status, headers: answer.headers, body: answer.body)
    }
}
