internal import AuthContract
internal import Crypto

internal import struct Foundation.Data

/// Signs a request, sends it, and recovers once from each refusal, as ``RetryTable`` says.
///
/// A verdict of the auth service counts. The SDK confirms a verdict of another origin by a status request: a compromised backend
/// must not talk a device out of its identity.
struct AuthenticatedSend: Sendable {
    let identity: DeviceIdentity
    let request: TransportRequest
    let scheme: SignatureScheme
    private let place: RequestTargetURL
    private let isAuthOrigin: Bool
    private let life: CallLife
    private var context: IdentityContext { identity.context }

    init(
        _ request: TransportRequest, _ scheme: SignatureScheme, identity: DeviceIdentity
    ) throws(SynheartAuthError) {
        self.request = request
        self.scheme = scheme
        self.identity = identity
        life = CallLife(request.deadline, identity.context.clock)
        place = try RequestTargetURL(request.url)
        isAuthOrigin = try identity.context.configuration.checkOrigin(place.origin)
        if let problem = HostHeaders.problem(request.headers, scheme) {
            throw SynheartAuthError(.signingFailed, "the request's headers: \(problem)")
        }
    }

    /// The answer, or an error at the request's deadline. A rotation or registration that the call began runs on, but the request
    /// is not sent any more.
    func run() async throws(SynheartAuthError) -> TransportAnswer {
        let result = await withDeadline(request.deadline, context.sleeper) {
            () -> Result<TransportAnswer, SynheartAuthError> in
            await withTaskCancellationHandler {
                do throws(SynheartAuthError) { return .success(try await attempts()) } catch { return .failure(error) }
            } onCancel: {
                life.finish()
            }
        }
        guard let result else { throw .deadlinePassed }
        return try result.get()
    }

    private func attempts() async throws(SynheartAuthError) -> TransportAnswer {
        var recovered: Set<SynheartAuthError.Code> = []
        var assertsApp = false
        while true {
            _ = try life.remaining()
            let signed: SignedMessage
            do throws(SynheartAuthError) {
                signed = try await RequestSigner(context: context).sign(
                    scheme, method: request.method, to: place, body: RequestBody(request))
            } catch {
                guard error.remedy == .register, recovered.insert(error.code).inserted else { throw error }
                _ = try await identity.register(joins: true)
                continue
            }
            let answer = try await send(signed, assertsApp: assertsApp)
            await applyDemands(of: answer)
            guard let verdict = Self.verdict(answer) else { return answer }
            guard recovered.insert(verdict.code).inserted else { throw verdict }
            switch verdict.remedy {
            case .learnClock: try await learnClock(verdict)
            case .signAgain: continue
            case .rotate: _ = try await identity.rotate(.scheduled)
            case .assert: assertsApp = true
            case .finishRotation, .confirm:
                // If the answer to a rotation was lost, the service may have the other key.
                if verdict.remedy == .finishRotation, try await identity.finishRotation() { continue }
                if let error = try await confirmed(verdict) { throw error }
                return answer
            default: return answer
            }
        }
    }

    private func send(_ signed: SignedMessage, assertsApp: Bool) async throws(SynheartAuthError) -> TransportAnswer {
        guard assertsApp else { return try await exchange(signed.fields) }
        // Assertion counters must arrive in order, so requests with assertions go one at a time.
        return try await identity.oneAtATime { () async throws(SynheartAuthError) in
            _ = try life.remaining()
            let assertion = try await assertion(of: signed)
            return try await exchange(
                signed.fields + [(HeaderName.assertion, Base64.standard.encode(assertion))])
        }
    }

    private func assertion(of signed: SignedMessage) async throws(SynheartAuthError) -> [UInt8] {
        guard let handle = try await context.ledger.load().attestationKey, handle.isUsed else {
            throw SynheartAuthError(.attestationUnavailable, "there is no attested key to assert with")
        }
        let hash = Array(SHA256.hash(data: Data(signed.bytes)))
        let provider = context.attestation
        let assertion: Result<[UInt8], AttestationError>? = await withDeadline(
            AttestationStep.limit, context.sleeper
        ) {
            do throws(AttestationError) {
                return .success(try await provider.assertion(handle: handle.id, clientDataHash: hash))
            } catch {
                return .failure(error)
            }
        }
        switch assertion {
        case .success(let bytes): return bytes
        case .failure(let error):
            throw SynheartAuthError(
                error.code == .unsupported ? .attestationUnavailable : .attestationFailed, error.reason, cause: error)
        case nil: throw SynheartAuthError(.attestationFailed, "the attestation provider did not answer in time")
        }
    }

    private func exchange(_ fields: [(name: String, value: String)]) async throws(SynheartAuthError) -> TransportAnswer
    {
        let headers = HeaderFields(
            (request.headers.lines.map { ($0.name, $0.value) }) + fields.map { ($0.name, $0.value) })
        let timed = request.with(
            method: scheme == .one ? request.method.uppercased() : request.method, headers: headers,
            deadline: try life.remaining())
        do throws(TransportError) {
            return try await context.configuration.transport.send(timed, context.sleeper)
        } catch {
            throw SynheartAuthError(.networkError, error.description, cause: error)
        }
    }

    /// Applies a demand to rotate. Only the auth service can make one.
    private func applyDemands(of answer: TransportAnswer) async {
        guard isAuthOrigin, let time = ServiceVerdict.mustRotateBy(answer.headers) else { return }
        _ = try? await context.ledger.apply(.rotationDemanded(by: time))
    }

    /// The refusal in an answer; nil for an app's own 4xx.
    private static func verdict(_ answer: TransportAnswer) -> SynheartAuthError? {
        guard [401, 403, 409].contains(answer.status), (try? ErrorBody(parsing: answer.body)) != nil else { return nil }
        return ServiceVerdict.error(of: answer)
    }

    private func learnClock(_ verdict: SynheartAuthError) async throws(SynheartAuthError) {
        let before = try await context.ledger.load().clockOffset
        if isAuthOrigin, let time = verdict.serverTime {
            guard
                let offset = ClockOffset(
                    serverTime: time, receivedAt: context.clock.wallMilliseconds, roundTrip: .zero)
            else { throw verdict.unlearnableClock }
            try await context.ledger.apply(.clockLearned(offset))
        } else {
            _ = try await status()
        }
        guard try await context.ledger.load().clockOffset != before else { throw verdict.unlearnableClock }
    }

    /// The verdict, if the auth service confirms it; else nil.
    private func confirmed(_ verdict: SynheartAuthError) async throws(SynheartAuthError) -> SynheartAuthError? {
        if isAuthOrigin { return verdict }
        do throws(SynheartAuthError) {
            return try await status().status == .revoked ? verdict : nil
        } catch {
            return error
        }
    }

    private func status() async throws(SynheartAuthError) -> StatusResponse {
        let record = try await context.ledger.load()
        return try await context.signedCall(.status, record: record, alias: record.signingKey().alias).read()
    }
}

extension SynheartAuth.Configuration {
    /// Whether the origin is the auth service's. Throws unless the host listed it otherwise.
    func checkOrigin(_ origin: RequestOrigin) throws(SynheartAuthError) -> Bool {
        if origin == self.origin.origin { return true }
        guard origins.contains(origin) else {
            throw SynheartAuthError(.signingFailed, "the request's origin is not one of Configuration.origins")
        }
        guard origin.isSecure else {
            throw SynheartAuthError(.signingFailed, "https is needed for any host but this one")
        }
        return false
    }
}
