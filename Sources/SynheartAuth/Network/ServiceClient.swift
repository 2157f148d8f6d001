internal import AuthContract

/// Calls the auth service: one request, one answer.
struct ServiceClient: Sendable {
    let origin: AuthOrigin
    let transport: any HTTPTransport
    let clock: any DeviceClock
    let sleeper: any Sleeper
    let isDevelopment: Bool

    /// The size limit of an answer's body in bytes. The service sends no larger one.
    private static let maximumAnswer = 64 * 1024

    /// A 2xx answer.
    struct Response: Sendable {
        let headers: HeaderFields
        let body: [UInt8]
        /// The time when the request was sent, on the continuous clock.
        let sentAt: Duration
        /// The service's time, if the answer names it.
        let serverTime: UnixTime?

        /// Parses the body. A body that cannot be parsed does not come from the service, so this throws `NETWORK_ERROR`.
        func read<Body: WireBody>(_ type: Body.Type = Body.self) throws(SynheartAuthError) -> Body {
            do {
                return try Body(parsing: body)
            } catch {
                throw SynheartAuthError(.networkError, "the answer is not what the service sends", cause: error)
            }
        }
    }

    /// The longest exchange from which the SDK learns the clock.
    static let longestRoundTrip = Duration.seconds(60)

    /// The result of an exchange, and what the answer says about clock and rotation, even if the answer is a refusal.
    struct Outcome: Sendable {
        let result: Result<Response, SynheartAuthError>
        let offset: ClockOffset?
        /// A demanded rotation.
        let rotationDemand: RotationDemand?

        /// Whether the answer to a signed request shows if the service demands a rotation. The service gives it after it has accepted
        /// the signature, so it names the demand if there is one. An answer without the service's time is not the service's.
        var showsDemand: Bool {
            switch result {
            case .success(let answer): rotationDemand != nil || answer.serverTime != nil
            case .failure(let error): rotationDemand != nil || error.followsClaims
            }
        }
    }

    func exchange(
        _ route: Route, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        deadline: Duration = .seconds(30)
    ) async -> Outcome {
        var lines = headers.map { ($0.name, $0.value) }
        if !body.isEmpty { lines.append(("Content-Type", "application/json")) }
        lines += [("Accept", "application/json"), ("User-Agent", SDKVersion.userAgent)]
        if isDevelopment { lines.append((HeaderName.developmentMode, "true")) }
        let request = TransportRequest(
            method: route.method, url: origin.text + route.rawValue, headers: HeaderFields(lines), body: body,
            deadline: deadline, maximumAnswer: Self.maximumAnswer)
        let sentAt = clock.continuous
        do throws(TransportError) {
            let answer = try await transport.send(request, sleeper)
            return outcome(of: answer, sentAt: sentAt)
        } catch {
            let failure = SynheartAuthError(.networkError, error.description, cause: error)
            return Outcome(result: .failure(failure), offset: nil, rotationDemand: nil)
        }
    }

    private func outcome(of answer: TransportResponse, sentAt: Duration) -> Outcome {
        let receivedAt = clock.wallMilliseconds
        let roundTrip = clock.continuous - sentAt
        let serverTime = ServiceVerdict.serverTime(answer)
        // The offset assumes that the answer was on its way for half of the round trip. That is a bad guess for a long round
        // trip, such as one during which the process was suspended.
        let offset = serverTime.flatMap { time in
            roundTrip > Self.longestRoundTrip
                ? nil : ClockOffset(serverTime: time, receivedAt: receivedAt, roundTrip: roundTrip)
        }
        let result: Result<Response, SynheartAuthError> =
            (200..<300).contains(answer.status)
            ? .success(
                Response(headers: answer.headers, body: answer.body, sentAt: sentAt, serverTime: serverTime))
            : .failure(ServiceVerdict.error(of: answer, from: origin.origin))
        return Outcome(result: result, offset: offset, rotationDemand: ServiceVerdict.rotationDemand(answer.headers))
    }
}
