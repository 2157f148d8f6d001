extension ServerMetrics {
    /// The names under which the metrics of `families` are scraped.
    enum Name {
        static let requests = "synheart_requests_total"
        static let latency = "synheart_request_duration_seconds"
        static let registrations = "synheart_registrations_total"
        static let attestations = "synheart_attestations_total"
        static let untrustedRoots = "synheart_untrusted_roots_total"
        static let verdicts = "synheart_verdicts_total"
        static let schemes = "synheart_verified_requests_total"
        static let replays = "synheart_replay_refusals_total"
        static let storeErrors = "synheart_store_errors_total"
        static let storeTimes = "synheart_store_duration_seconds"
        static let caches = "synheart_cache_lookups_total"
        static let keyAge = "synheart_key_age_seconds"
        static let clockOffset = "synheart_clock_offset_seconds"
        static let signingKeyAge = "synheart_signing_key_age_seconds"
        static let auditEvents = "synheart_audit_events"
        static let securityEvents = "synheart_security_events_total"
        static let development = "synheart_development_requests_total"
        static let malformed = "synheart_malformed_requests_total"
        static let operations = "synheart_operations_requests_total"
        static let riskMetrics = "synheart_device_risk_metric"
        static let overThreshold = "synheart_devices_over_risk_threshold"
        static let readiness = "synheart_ready"
        static let degraded = "synheart_degraded"
        static let historyLosses = "synheart_history_losses_total"
        static let historyLost = "synheart_history_lost_seconds_total"
        static let start = "synheart_start_time_seconds"
        static let build = "synheart_build_info"
        static let connections = "synheart_connections"
        static let refusedConnections = "synheart_connections_refused_total"
        static let providerCalls = "synheart_provider_calls_total"
        static let providerTimes = "synheart_provider_duration_seconds"
        static let eventLoopDelay = "synheart_event_loop_delay_seconds"
    }

    private static let day = 86_400.0
    /// Name, kind and help of each family in `Name`.
    static let families: [(String, MetricsRegistry.Kind, String)] = [
        (Name.requests, .counter, "Requests to the public API, by route and outcome."),
        (
            Name.latency, .histogram(MetricsRegistry.latencyBuckets),
            "Time to answer a request to the public API, by route."
        ),
        (Name.registrations, .counter, "Registrations whose form was right, by platform and result."),
        (Name.attestations, .counter, "Proofs that came with registrations, by who vouches and what came of it."),
        (
            Name.untrustedRoots, .counter,
            "Attestations refused because their chain leads to no trusted root, by who would vouch."
        ),
        (
            Name.verdicts, .counter,
            "Verdicts on other services' requests, by app: the 200 busiest apps, the rest as other."
        ),
        (Name.schemes, .counter, "Requests whose signature verified, by signature scheme."),
        (Name.replays, .counter, "Requests refused because they were seen before."),
        (Name.storeErrors, .counter, "Calls to a store that failed, by operation and kind of failure."),
        (Name.storeTimes, .histogram(MetricsRegistry.latencyBuckets), "Time that a store took, by operation."),
        (Name.caches, .counter, "Devices and apps asked for, by whether they were in memory."),
        (
            Name.keyAge, .histogram([1, 7, 30, 90, 180, 365, 730].map { $0 * day }),
            "Age of the device key of requests whose signature verified."
        ),
        (
            Name.clockOffset, .histogram([1, 2, 5, 10, 30, 60, 120, 300, 600, 3600]),
            "How far the clock of a request was from ours, where it verified or was refused for that."
        ),
        (Name.signingKeyAge, .gauge, "Age of the newest key that signs device tokens."),
        (Name.auditEvents, .gauge, "Number of the last event of the audit log."),
        (Name.securityEvents, .counter, "What an honest client does not do, by kind."),
        (Name.development, .counter, "Requests with the development header, by outcome."),
        (Name.malformed, .counter, "What was refused because it is not HTTP, by listener."),
        (Name.operations, .counter, "Requests to the operations listener, by area and status."),
        (
            Name.riskMetrics, .gauge,
            "Registered devices by their latest App Attest risk metric, by app and range; counted once a minute."
        ),
        (
            Name.overThreshold, .gauge,
            "Registered devices whose latest risk metric is above the app's flag_risk_metric_above."
        ),
        (Name.readiness, .gauge, "Whether a thing that the service needs works, by name; asked at each scrape."),
        (Name.degraded, .gauge, "Whether a thing works and makes the service refuse some requests, by name."),
        (Name.historyLosses, .counter, "Losses of the history of replay claims; noticed at scrapes and by /readyz."),
        (Name.historyLost, .counter, "Seconds in which such losses made the service refuse requests dated now."),
        (Name.start, .gauge, "When the process began, unix time."),
        (Name.build, .gauge, "1, with the version of the service."),
        (Name.connections, .gauge, "Open connections, by listener."),
        (
            Name.refusedConnections, .counter,
            "Connections closed because their peer address had its share, by listener."
        ),
        (Name.providerCalls, .counter, "Calls to Apple's and Google's services, retries included, by kind and result."),
        (
            Name.providerTimes, .histogram(MetricsRegistry.latencyBuckets),
            "Time to the end of a call to Apple's and Google's services, by kind."
        ),
        (
            Name.eventLoopDelay, .histogram(MetricsRegistry.latencyBuckets),
            "How long a task waits for an event loop, measured once a second on each loop."
        ),
    ]
}
