@_spi(Service) package import AuthContract
package import AuthService
internal import Bytes

/// The service's metrics, with the names under which they are scraped.
package struct ServerMetrics: Sendable {
    let registry = MetricsRegistry()
    private let latencies: [Route?: MetricsRegistry.Histogram]
    private let schemes: [SignatureScheme: MetricsRegistry.Value]
    private let clockAhead, clockBehind, keyAge, eventLoopDelay: MetricsRegistry.Histogram
    private let storeTimes: [StoreOperation: MetricsRegistry.Histogram]
    private let requests: MetricsRegistry.Counters<InitialSeries.Outcome>
    private let verdicts = VerdictCounts()
    private let uses = Locked<[String: UnixTime]>([:])
    /// When the service stops refusing requests because of the current loss of replay claims; nil: there is no loss.
    private let lossEnds = Locked<UnixTime?>(nil)

    /// Metrics of a process that started at this time.
    package init(startedAt: UnixTime = SystemClock().now) {
        for (name, kind, help) in Self.families { registry.describe(name, kind, help) }
        registry.value(Name.start).set(Double(startedAt.seconds))
        registry.value(Name.build, [("version", Build.version)]).set(1)
        for operation in StoreOperation.allCases {
            for failure in StoreError.Code.allCases {
                registry.count(Name.storeErrors, Self.labels(operation, failure), by: 0)
            }
        }
        // Metrics that every request needs are looked up once.
        let registry = registry
        latencies = Dictionary(
            uniqueKeysWithValues: ([nil] + Route.allCases).map { route in
                (route, registry.histogram(Name.latency, [("route", Self.label(route))]))
            })
        schemes = Dictionary(
            uniqueKeysWithValues: SignatureScheme.allCases.map { scheme in
                (scheme, registry.value(Name.schemes, [("scheme", String(scheme.rawValue))]))
            })
        storeTimes = Dictionary(
            uniqueKeysWithValues: StoreOperation.allCases.map { operation in
                (operation, registry.histogram(Name.storeTimes, [("operation", operation.rawValue)]))
            })
        clockAhead = registry.histogram(Name.clockOffset, [("direction", "ahead")])
        clockBehind = registry.histogram(Name.clockOffset, [("direction", "behind")])
        keyAge = registry.histogram(Name.keyAge)
        eventLoopDelay = registry.histogram(Name.eventLoopDelay)
        requests = MetricsRegistry.Counters { request in
            registry.value(
                Name.requests,
                [
                    ("route", Self.label(request.route)), ("status", String(request.status)),
                    ("outcome", request.outcome),
                ])
        }
        describeProviders()
        describeExpiry()
        describeWebhooks()
        ProcessMetrics.describe(in: registry)
        startSeries()
    }

    /// Creates every series that is known at the start, with 0.
    private func startSeries() {
        for name in [Name.replays, Name.signingKeyAge, Name.auditEvents, Name.historyLosses, Name.historyLost] {
            registry.count(name, by: 0)
        }
        for outcome in InitialSeries.outcomes { requests.count(outcome, by: 0) }
        func start(_ name: String, _ labels: MetricsRegistry.Labels) { registry.count(name, labels, by: 0) }
        for (platform, result) in InitialSeries.registrations {
            start(Name.registrations, [("platform", platform), ("result", result)])
        }
        for (provider, result) in InitialSeries.attestations {
            start(Name.attestations, [("provider", provider), ("result", result)])
        }
        for call in ProviderCall.allCases {
            _ = registry.histogram(Name.providerTimes, [("call", call.rawValue)])
            for result in ProviderResult.allCases {
                start(Name.providerCalls, [("call", call.rawValue), ("result", result.rawValue)])
            }
        }
        for provider in UntrustedRoot.Provider.allCases {
            start(Name.untrustedRoots, [("provider", provider.rawValue)])
        }
        for cache in ["devices", "apps"] {
            for result in ["hit", "miss"] { start(Name.caches, [("cache", cache), ("result", result)]) }
        }
        for event in SecurityEvent.allCases { start(Name.securityEvents, [("event", event.rawValue)]) }
        for outcome in InitialSeries.development { start(Name.development, [("outcome", outcome)]) }
        for (area, status) in InitialSeries.operations {
            start(Name.operations, [("area", area), ("status", String(status))])
        }
        for listener in InitialSeries.listeners {
            for name in [Name.malformed, Name.connections, Name.refusedConnections] {
                start(name, [("listener", listener)])
            }
        }
    }

    private static func label(_ route: Route?) -> String {
        route.map { String($0.rawValue.dropFirst("/auth/v1/".count)) } ?? "unknown"
    }

    // MARK: The public API

    /// Counts a request to the public API.
    func count(_ outcome: Outcome, _ answer: APIResponse, at now: UnixTime, took: Duration) {
        requests.count(InitialSeries.Outcome(route: outcome.route, status: answer.status, outcome: answer.outcome))
        latencies[outcome.route]?.observe(took.inSeconds)
        if case .failure(let refusal) = outcome.result {
            if refusal.code == .nonceReplay { registry.count(Name.replays) }
            if let root = refusal.untrustedRoot {
                registry.count(Name.untrustedRoots, [("provider", root.provider.rawValue)])
            }
            if let event = refusal.code.securityEvent.flatMap(SecurityEvent.init) { securityEvent(event) }
        }
        if outcome.hasDevelopmentHeader { registry.count(Name.development, [("outcome", answer.outcome)]) }
        if let request = outcome.registration { registration(request, answer.outcome) }
        if let credential = outcome.credential { used(credential, at: now) }
        if outcome.isVerdict { verdicts.count(answer.outcome, of: outcome.countedApp) }
        if let signed = outcome.judgement?.passed {
            schemes[signed.scheme]?.add()
            keyAge.observe(Double(signed.keyAgeSeconds))
        }
        if let time = outcome.time { clockOffset(time - now) }
    }

    func registration(_ request: RegisterRequest, _ result: String) {
        registry.count(Name.registrations, [("platform", request.platform.rawValue), ("result", result)])
        let judgement: String
        switch result {
        case ErrorCode.invalidAttestation.rawValue: judgement = "refused"
        case ErrorCode.providerUnavailable.rawValue: judgement = "unavailable"
        case _ where RegistrationStatus(rawValue: result) != nil: judgement = "accepted"
        // Not counted: the request was refused for another reason than its proof.
        default: return
        }
        registry.count(Name.attestations, [("provider", Self.provider(of: request)), ("result", judgement)])
    }

    /// The label `provider` of a registration. It names the providers whose proofs the request has.
    private static func provider(of request: RegisterRequest) -> String {
        if request.proof == RegisterRequest.developmentProof { return "development" }
        return switch (request.platform, request.proof, request.keyAttestation) {
        case (.ios, _, _): "app_attest"
        case (.android, _?, _?): "play_integrity_and_key_attestation"
        case (.android, _?, nil): "play_integrity"
        case (.android, nil, _): "key_attestation"
        }
    }

    private func clockOffset(_ seconds: Int64) {
        (seconds < 0 ? clockBehind : clockAhead).observe(Double(seconds.magnitude))
    }

    func malformedRequest(listener: String) { registry.count(Name.malformed, [("listener", listener)]) }

    // MARK: Operation

    func connections(_ open: Int, listener: String) {
        registry.value(Name.connections, [("listener", listener)]).set(Double(open))
    }

    func refusedConnection(listener: String) {
        registry.count(Name.refusedConnections, [("listener", listener)])
    }

    /// Records the use of a credential.
    func used(_ credential: Credential, at now: UnixTime) { uses.withLock { $0[credential.id] = now } }

    var credentialUses: [String: UnixTime] { uses.withLock { $0 } }

    func operationsRequest(_ area: String, _ answer: APIResponse) {
        registry.count(Name.operations, [("area", area), ("status", String(answer.status))])
        guard area == "admin" || area == "console", answer.status == 401 || answer.status == 403 else { return }
        securityEvent(.adminCredentialRefused)
    }

    func securityEvent(_ event: SecurityEvent) {
        registry.count(Name.securityEvents, [("event", event.rawValue)])
    }

    func eventLoopDelayed(by delay: Duration) { eventLoopDelay.observe(delay.inSeconds) }

    func ready(_ name: String, _ isReady: Bool) {
        registry.value(Name.readiness, [("check", name)]).set(isReady ? 1 : 0)
    }

    func degraded(_ name: String, _ isDegraded: Bool) {
        registry.value(Name.degraded, [("check", name)]).set(isDegraded ? 1 : 0)
    }

    /// Counts each loss of replay claims (records of used nonces and signatures) once. Requests dated in the lost
    /// interval are refused until the loss ends. Also counts the seconds from the time at which the node notices the loss
    /// to its end.
    ///
    /// - Parameter end: when the current loss ends; nil: there is none.
    func historyLost(until end: UnixTime?, at now: UnixTime) {
        let (losses, seconds) = lossEnds.withLock { known -> (Double, Int64) in
            guard let end else {
                known = nil
                return (0, 0)
            }
            defer { known = max(end, known ?? end) }
            return (known == nil ? 1 : 0, max(0, end - max(known ?? now, now)))
        }
        registry.count(Name.historyLosses, by: losses)
        registry.count(Name.historyLost, by: Double(seconds))
    }

    /// Adds further metrics.
    func describe(_ sources: [MetricsSource]) {
        for source in sources {
            registry.describe(source.name, source.kind == .counter ? .counter : .gauge, source.help)
            registry.count(source.name, by: 0)
        }
    }

    /// The text for Prometheus, with the gauges and counters that are read at each scrape.
    func text(
        of service: AuthService, _ stores: AuthService.Stores, with sources: [MetricsSource]
    ) async -> String {
        for (cache, use) in [("devices", service.deviceCacheUse), ("apps", service.apps.use)] {
            registry.value(Name.caches, [("cache", cache), ("result", "hit")]).set(Double(use.hits))
            registry.value(Name.caches, [("cache", cache), ("result", "miss")]).set(Double(use.misses))
        }
        if let keys = try? await stores.signingKeys.signingKeys() {
            signingKeys(keys)
            if let newest = keys.last {
                registry.value(Name.signingKeyAge).set(Double(service.clock.now - newest.createdAt))
            }
        }
        if let all = try? await stores.credentials.credentials() { credentials(all, at: service.clock.now) }
        if let last = try? await stores.audit.link(at: nil) {
            registry.value(Name.auditEvents).set(Double(last.sequence))
        }
        for source in sources {
            if let value = await source.read() { registry.value(source.name).set(value) }
        }
        await ProcessMetrics.update(registry)
        return text()
    }

    /// Sets the distribution of risk metrics, and the number of devices over the threshold, for each app.
    func risk(_ apps: [RiskMetricCounts.App]) {
        registry.replace(
            Name.riskMetrics,
            with: apps.flatMap { app in
                RiskMetricCounts.ranges.map { range in
                    let labels = [("app", app.id.text), ("range", range.name)]
                    return (labels, Double(app.devices(in: range)))
                }
            })
        registry.replace(
            Name.overThreshold,
            with: apps.compactMap { app in app.overThreshold.map { ([("app", app.id.text)], Double($0)) } })
    }

    func text() -> String {
        registry.replace(Name.verdicts, with: verdicts.series(of: InitialSeries.verdicts))
        return registry.text()
    }
}

extension ServerMetrics: StoreObserver {
    /// See `StoreObserver`.
    package func called(_ operation: StoreOperation, took: Duration, failure: StoreError.Code?) {
        storeTimes[operation]?.observe(took.inSeconds)
        guard let failure else { return }
        registry.count(Name.storeErrors, Self.labels(operation, failure))
    }

    private static func labels(_ operation: StoreOperation, _ failure: StoreError.Code) -> MetricsRegistry.Labels {
        [("operation", operation.rawValue), ("failure", failure.rawValue)]
    }
}

extension Duration {
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
