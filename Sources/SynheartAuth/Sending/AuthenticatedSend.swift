internal import AuthContract
internal import Bytes

/// Signs a request, sends it, and recovers once from each refusal, as ``RetryTable`` says.
///
/// The SDK applies a verdict of the auth service. If another origin says that the identity is invalid, the SDK confirms that by a
/// status request: a compromised backend must not make a device give up its identity.
struct AuthenticatedSend: Sendable {
    let identity: DeviceIdentity
    let request: TransportRequest
    /// The scheme that the caller asked for; nil for the one that the device signs with.
    let scheme: SignatureScheme?
    /// Whether the request carries an assertion from the start.
    let asserting: Bool
    private let place: RequestTargetURL
    private let isAuthOrigin: Bool
    private let life: CallLife
    /// The size and digest of a body from a source. All copies of the request use the same values.
    private let measured = Locked<BodyMeasure?>(nil)
    private var context: IdentityContext { identity.context }

    init(
        _ request: TransportRequest, _ scheme: SignatureScheme?, asserting: Bool, identity: DeviceIdentity
    ) throws(SynheartAuthError) {
        self.request = request
        self.scheme = scheme
        self.asserting = asserting
        self.identity = identity
        life = CallLife(request.deadline, identity.context.clock)
        place = try RequestTargetURL(request.url)
        isAuthOrigin = try identity.context.configuration.checkOrigin(place.origin)
    }

    /// The answer, or an error at the request's deadline. A rotation or registration that the call began continues, but the
    /// request is no longer sent.
    func run() async throws(SynheartAuthError) -> TransportResponse {
        let result = await withDeadline(request.deadline, context.sleeper) {
            () -> Result<TransportResponse, SynheartAuthError> in
            await withTaskCancellationHandler {
                do throws(SynheartAuthError) { return .success(try await attempts()) } catch { return .failure(error) }
            } onCancel: {
                life.finish()
            }
        }
        // No further copy is sent.
        life.finish()
        do throws(SynheartAuthError) {
            guard let result else { throw Task.isCancelled ? .cancelled : .deadlinePassed }
            return try result.get()
        } catch {
            throw error.with(mayHaveHappened: life.mayHaveHappened)
        }
    }

    private func attempts() async throws(SynheartAuthError) -> TransportResponse {
        var recovered: Set<SynheartAuthError.Code> = []
        var isAssertionDemanded = false
        while true {
            _ = try life.remaining()
            let sent: SentCopy
            do throws(SynheartAuthError) {
                sent = try await signAndSend(asserting: asserting || isAssertionDemanded)
            } catch {
                guard recovered.insert(error.code).inserted else { throw error }
                switch error.remedy {
                case .register: _ = try await identity.register(joins: true)
                case .rebind: try await identity.rebind()
                default: throw error
                }
                continue
            }
            let answer = sent.answer
            await applyDemands(of: sent)
            let verdict = verdict(answer)
            guard let verdict else {
                // Only an answer below 500 without a refusal shows that the service verified the request. The service then refuses
                // lower signature schemes from this device.
                if answer.status < 500, ServiceVerdict.refusal(answer) == nil {
                    await context.noteScheme(sent.scheme, sent.record)
                }
                return answer.streamed(for: request)
            }
            let isRepeated = !recovered.insert(verdict.code).inserted
            switch verdict.remedy {
            case .finishRotation, .confirm:
                if !isRepeated, verdict.remedy == .finishRotation,
                    try await identity.hasReplaced(sent.key)
                {
                    continue
                }
                if let error = try await confirmed(verdict, of: sent.record) { throw error }
                return answer
            case .report: throw verdict
            case _ where isRepeated: throw verdict
            case .learnClock: if try await !learnClock(verdict, after: sent) { return answer }
            case .signAgain:
                // A copy was accepted. If signed again, the request could take effect a second time.
                guard mayRepeat else { throw .writeReplayed(verdict) }
            case .rotate:
                // If the key was rotated since this copy was signed, sign with the new one.
                if try await context.ledger.load().key == sent.key { try await identity.rotateAsDemanded() }
            case .assert:
                context.demands.note(verdict.assertionDemand, on: place.target.path.text, at: place.origin)
                // `demands` is bounded and may not have stored this demand.
                isAssertionDemanded = true
            default: return answer
            }
        }
    }

    /// A copy that was signed, sent and answered.
    private struct SentCopy: Sendable {
        let answer: TransportResponse
        let scheme: SignatureScheme
        /// The record before the copy was signed.
        let record: IdentityRecord
        /// The key that signed the copy. A rotation may have ended since the record was read.
        let key: IdentityRecord.KeyReference?
        /// The time when signing began, on the continuous clock.
        let signedAt: Duration
    }

    private func signAndSend(asserting: Bool) async throws(SynheartAuthError) -> SentCopy {
        let signedAt = context.clock.continuous
        let record = try await context.signingRecord()
        let scheme = try context.scheme(self.scheme, for: record)
        if let problem = HostHeaders.problem(request.headers, scheme) {
            throw SynheartAuthError(.signingFailed, "the request's headers: \(problem)")
        }
        let body = try await body(scheme)
        let sign = { @Sendable () async throws(SynheartAuthError) in
            _ = try life.remaining()
            return try await RequestSigner(context: context).sign(
                scheme, method: request.method, to: place, body: body)
        }
        let asserts = asserting || context.demands.needsAssertion(place.target.path.text, at: place.origin)
        let send = { @Sendable (signed: SignedMessage) async throws(SynheartAuthError) in
            SentCopy(
                answer: try await exchange(signed.fields, scheme), scheme: scheme, record: record, key: signed.key,
                signedAt: signedAt)
        }
        return try await asserts
            ? context.sendAsserting(sign) { signed throws(SynheartAuthError) in
                // The queue runs this closure in its own task when the request's turn comes, and that task does not end with the
                // call. So `during` cancels the exchange when the call ends.
                try await life.during { () async throws(SynheartAuthError) in try await send(signed) }
            }
            : send(try await sign())
    }

    private func exchange(
        _ fields: [(name: String, value: String)], _ scheme: SignatureScheme
    ) async throws(SynheartAuthError) -> TransportResponse {
        let headers = HeaderFields(
            (request.headers.lines.map { ($0.name, $0.value) }) + fields.map { ($0.name, $0.value) })
        let copy = try life.leave()
        let body = measured.withLock { $0 }.flatMap { measure in
            request.bodySource.map { BodyCopy(of: $0, measure) }
        }
        let timed = request.with(
            method: scheme == .one ? request.method.uppercased() : request.method, headers: headers,
            deadline: copy.remaining, bodySource: body?.source)
        do throws(TransportError) {
            let answer = try await transmit(timed, body)
            if ServiceVerdict.excludesEffect(answer) { life.hadNoEffect(copy) }
            return answer
        } catch {
            if !error.mayHaveArrived { life.hadNoEffect(copy) }
            if body?.isBroken == true {
                throw SynheartAuthError(
                    .signingFailed, "the body's source gave other bytes than those that were signed, or failed",
                    cause: error)
            }
            let code: SynheartAuthError.Code =
                error.isUnsendable ? .signingFailed : error == .tooLarge ? .answerTooLarge : .networkError
            throw SynheartAuthError(code, error.description, cause: error)
        }
    }

    /// Sends a copy. Ends the exchange if the body cannot be read again, or has other bytes than the signed ones.
    private func transmit(
        _ request: TransportRequest, _ body: BodyCopy?
    ) async throws(TransportError) -> TransportResponse {
        let (transport, sleeper) = (context.configuration.transport, context.sleeper)
        guard let body else { return try await transport.send(request, sleeper) }
        let exchange = Task { () -> Result<TransportResponse, TransportError> in
            do throws(TransportError) {
                return .success(try await transport.send(request, sleeper))
            } catch {
                return .failure(error)
            }
        }
        // Cancel in a separate task: the thread that reads the body runs this closure, and ending the exchange may wait for it.
        body.whenBroken { Task { exchange.cancel() } }
        let result = await withTaskCancellationHandler {
            await exchange.value
        } onCancel: {
            exchange.cancel()
        }
        return try result.get()
    }

    /// The body to sign. A source is read once for all copies, so that all have the same body.
    private func body(_ scheme: SignatureScheme) async throws(SynheartAuthError) -> RequestBody {
        guard let source = request.bodySource, scheme == .two else { return RequestBody(request) }
        if let measure = measured.withLock({ $0 }) { return .read(measure.digest) }
        let measure = try await RequestBody.measure(source.original, context.sleeper)
        measured.withLock { $0 = measure }
        return .read(measure.digest)
    }

    /// Records a demand to rotate the key that signed. Only the auth service can make one.
    private func applyDemands(of sent: SentCopy) async {
        guard isAuthOrigin, let key = sent.key, let demand = ServiceVerdict.rotationDemand(sent.answer.headers)
        else { return }
        _ = try? await context.ledger.apply(.rotationDemanded(demand, of: key))
    }

    /// Whether a second effect of the request does no harm.
    private var mayRepeat: Bool {
        ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains(request.method.uppercased())
            || request.headers.contains("Idempotency-Key")
    }

    /// The refusal in an answer, if the SDK may have to react to it; nil for every other answer, such as an app's own 4xx.
    private func verdict(_ answer: TransportResponse) -> SynheartAuthError? {
        guard [400, 401, 403, 409, 421].contains(answer.status), ServiceVerdict.refusal(answer) != nil else {
            return nil
        }
        let verdict = ServiceVerdict.error(of: answer, from: place.origin)
        return answer.status != 400 || verdict.remedy == .signOtherScheme ? verdict : nil
    }

    /// Learns the service's clock, unless another call has learned it since the refused copy was signed.
    ///
    /// - Returns: Whether to sign again; false if another origin refused the copy, but the auth service finds the
    ///   device's clock right.
    private func learnClock(_ verdict: SynheartAuthError, after sent: SentCopy) async throws(SynheartAuthError) -> Bool
    {
        let before = sent.record.clockOffset
        guard try await context.ledger.load().clockOffset == before else { return true }
        // A copy that was delayed on its way is refused although the clock is right. The time in its answer may be as old as the
        // delay, so ask for the status instead.
        let isLate = context.clock.continuous - sent.signedAt > ServiceClient.longestRoundTrip
        if isAuthOrigin, !isLate, let time = verdict.serverTime {
            guard
                let offset = ClockOffset(
                    serverTime: time, receivedAt: context.clock.wallMilliseconds, roundTrip: .zero)
            else { throw verdict.unlearnableClock }
            try await context.ledger.apply(.clockLearned(offset))
        } else {
            _ = try await status()
        }
        if try await context.ledger.load().clockOffset != before || isLate { return true }
        guard !isAuthOrigin else { throw verdict.unlearnableClock }
        return false
    }

    /// The error to throw: the verdict, or the failure of the status request that should confirm the verdict; nil if the
    /// status does not confirm the verdict.
    ///
    /// If a reset has ended the identity that signed the request, the status of the present identity decides.
    private func confirmed(
        _ verdict: SynheartAuthError, of record: IdentityRecord
    ) async throws(SynheartAuthError) -> SynheartAuthError? {
        if isAuthOrigin, try await context.ledger.load().deviceID == record.deviceID { return verdict }
        do throws(SynheartAuthError) {
            return try await [.revoked, .rejected].contains(status().status) ? verdict : nil
        } catch {
            return error
        }
    }

    private func status() async throws(SynheartAuthError) -> StatusResponse {
        try await identity.call(.status).answer.read()
    }
}

extension SynheartAuthError {
    fileprivate static func writeReplayed(_ verdict: SynheartAuthError) -> SynheartAuthError {
        SynheartAuthError(
            .writeReplayed, "a copy of this request was accepted; it is not sent again", cause: verdict,
            serverTime: verdict.serverTime)
    }
}

extension SynheartAuth.Configuration {
    /// Whether the origin is the auth service's. Throws for any other origin that the configuration does not list, and
    /// for a listed origin with plain http to a host that is not loopback.
    func checkOrigin(_ origin: RequestOrigin) throws(SynheartAuthError) -> Bool {
        if origin == self.origin.origin { return true }
        guard origins.contains(origin) else {
            throw SynheartAuthError(.signingFailed, "the request's origin is not one of the configuration's")
        }
        guard origin.isSecure else {
            throw SynheartAuthError(.signingFailed, "https is needed for any host but this one")
        }
        return false
    }
}
