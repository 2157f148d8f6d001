internal import AuthContract
internal import AuthService

/// The outcome of a request to the public API. The response, the metrics and the log line are made from it.
struct Outcome {
    /// The route; nil: the path is unknown.
    var route: Route?
    var result: Result<APIResponse, Refusal> = .failure(Refusal(.internalError, "not answered"))
    /// The judgement on the signed request: the device's own, or one that another service received. Nil: not judged.
    var judgement: Judgement?
    /// The credential of the calling service.
    var credential: Credential?
    /// The registration request.
    var registration: RegisterRequest?
    /// The version of the app in the registration's evidence; nil if the evidence names no version or did not verify.
    var registeredVersion: String?
    /// The headers of the request.
    let headers: HeaderFields
    /// The headers of the request that another service received.
    var described: HeaderFields?
    /// Whether this request replaced the device's key, so that a demand to rotate the key that signed is met.
    var hasNewKey = false
    /// For a request without a signature: the app that its body names, and the id of the device that it registered.
    var named: (app: AppID, device: DeviceID?)?

    /// The outcome of a request with these headers, before it is judged.
    init(of headers: HeaderFields) { self.headers = headers }

    /// Whether a request to this service has the development header. False for forward authentication, because the headers
    /// that a gateway forwards belong to a request to another service.
    var hasDevelopmentHeader: Bool { route != .forward && headers.contains(HeaderName.developmentMode) }

    /// Whether this is a verdict on a request that another service received. An error in the caller's own request, such as a wrong
    /// credential, is not a verdict.
    var isVerdict: Bool {
        // Match patterns: a comparison with nil would copy both values.
        guard case .some = credential, case .some = judgement else { return false }
        return true
    }

    /// The app of the request. If no signature verified, the app is not proven.
    var app: AppID? {
        if let named { return named.app }
        if let signed = judgement?.signed { return signed.appID }
        if let credential, let described { return try? credential.app(claimedIn: described) }
        return headers.claimedApp
    }

    /// The device of the request. If no signature verified, the device is not proven.
    var device: DeviceID? {
        named.map { $0.device } ?? judgement?.signed?.deviceID ?? (described ?? headers).claimedDevice
    }

    /// The app for which a verdict on another service's request is counted; nil unless the credential includes that app.
    var countedApp: AppID? { app.flatMap { credential?.scope.covers($0) == true ? $0 : nil } }

    /// How the verdict history counts the request; nil: it is neither a judged request nor a registration.
    ///
    /// Platform, scheme and version are those of the device whose signature verified. Without a verified signature, they
    /// could be forged. A registration has no such device: its platform is the one that the request names, and its
    /// version is that of the verified evidence.
    ///
    /// - Parameters:
    ///   - answer: the answer to the request.
    ///   - isKnown: returns whether an app exists. A registration for an app that does not exist is counted without an app.
    func counted(_ answer: APIResponse, isKnown: (AppID) -> Bool) -> CountedVerdict? {
        if let registration {
            let app = isKnown(registration.appID) ? registration.appID : nil
            return CountedVerdict(
                appID: app, kind: .registration, platform: registration.platform, code: answer.outcome,
                version: registeredVersion)
        }
        guard let judgement else { return nil }
        let device = judgement.signed?.device
        let code = isVerdict ? answer.outcome : refusal?.code.rawValue ?? APIResponse.verified
        return CountedVerdict(
            appID: judgement.appID ?? (isVerdict ? countedApp : nil), kind: isVerdict ? .verification : .device,
            platform: device?.platform, code: code, scheme: judgement.signed?.scheme, version: device?.appVersion)
    }

    /// The time that the client signed, if the request passes; the claimed time, if the request is refused because of it.
    var time: UnixTime? {
        if let signed = judgement?.passed { return signed.signedAt }
        guard case .failure(let refusal) = result, refusal.code == .clockSkew else { return nil }
        return (described ?? headers).claimedTime.map { UnixTime($0) }
    }

    /// The refusal to log, including one that was observed and not enforced; nil: there is none.
    var refusal: Refusal? {
        if case .failure(let refusal) = result { return refusal }
        guard case .failure(let refusal)? = judgement?.result else { return nil }
        return refusal
    }

    /// The reason of the refusal.
    var reason: String? { refusal?.reason }

    /// The response.
    func answer(in frame: ResponseFrame) -> APIResponse {
        var answer: APIResponse
        switch result {
        case .success(let success): answer = success
        case .failure(let refusal):
            answer = frame.answer(
                refusal, as: route?.httpStatus(of: refusal.code), verified: isVerdict ? false : nil)
            answer.headers += headers(of: refusal)
        }
        // Every response to the device's own requests has the demand to rotate, until the device has rotated.
        if !isVerdict, !hasNewKey, let demand = judgement?.signed?.rotationDemand {
            answer.headers.append((HeaderName.rotate, demand.headerValue))
        }
        return answer
    }

    /// The headers of this refusal, in addition to those of every refusal.
    private func headers(of refusal: Refusal) -> [(String, String)] {
        switch refusal.code {
        case .assertionRequired:
            judgement?.signed?.missingAssertion.map { [(HeaderName.assertion, $0.headerValue)] } ?? []
        case .methodNotAllowed: route.map { [("Allow", $0.methods.joined(separator: ", "))] } ?? []
        case .unauthorized where route == .verify: [("WWW-Authenticate", "Bearer")]
        default: []
        }
    }
}
