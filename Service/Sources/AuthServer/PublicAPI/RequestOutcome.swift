internal import AuthContract
internal import AuthService
internal import NIOHTTP1

/// The outcome of a request to the public API: its result, and the facts that became known.
struct RequestOutcome {
    /// The route; nil: the path is unknown.
    let route: Route?
    let result: Result<APIResponse, Refusal>
    /// The app, device and time for the log and the metrics. They are proven if possible, and otherwise the request's claims.
    let app: AppID?
    let device: DeviceID?
    let time: Int64?
    /// The device's own request as proven by its signature, even if it was refused later.
    var signed: VerifiedRequest?
    /// Whether `time` is proven.
    var isTimeSigned = false
    /// Whether a refusal is the verdict on a request that another service received.
    var isVerdict = false
    /// The assertion that a refused request lacks.
    var missingAssertion: AssertionDemand?

    init(
        _ route: Route?, _ result: Result<APIResponse, Refusal>, app: AppID?, device: DeviceID? = nil,
        time: Int64? = nil
    ) {
        self.route = route
        self.result = result
        self.app = app
        self.device = device
        self.time = time
    }

    /// An outcome of a request whose headers name the signer.
    init(_ route: Route?, _ result: Result<APIResponse, Refusal>, claimedBy headers: HeaderFields) {
        self.init(
            route, result, app: headers.claimedApp, device: headers.claimedDevice, time: headers.claimedTime)
    }

    /// An outcome of a request that the owner of this credential received.
    init(
        _ route: Route?, _ result: Result<APIResponse, Refusal>, claimedBy headers: HeaderFields,
        of credential: Credential
    ) {
        self.init(
            route, result, app: credential.app(claimedIn: headers), device: headers.claimedDevice,
            time: headers.claimedTime)
    }
}

extension RequestOutcome {
    /// What a handler returns or throws.
    ///
    /// - Throws: an `HTTPParserError` only, which the HTTP library answers.
    static func result(of handler: () async throws -> APIResponse) async throws -> Result<APIResponse, Refusal> {
        do {
            return .success(try await handler())
        } catch let error as HTTPParserError {
            throw error
        } catch {
            return .failure(Refusal(answering: error))
        }
    }
}
