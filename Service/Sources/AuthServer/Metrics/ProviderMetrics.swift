internal import AuthContract
package import AuthService

/// Metrics of the calls to Apple and Google, and gauges that are set at each scrape: today's requests to Play Integrity, and
/// the state of the revocation lists. The labels of these gauges are apps, packages and sources, so the app records bound the
/// number of series.
extension ServerMetrics {
    private static let integrityRequests = "synheart_play_integrity_requests_today"
    private static let integrityRefusals = "synheart_play_integrity_quota_refusals_today"
    private static let listAge = "synheart_revocation_list_age_seconds"
    private static let listEntries = "synheart_revocation_list_entries"
    private static let listUsable = "synheart_revocation_list_usable"

    func describeProviders() {
        for (name, help) in [
            (
                Self.integrityRequests,
                "Requests to Play Integrity since midnight UTC, retries included, by app and package."
            ),
            (Self.integrityRefusals, "Those of them that were answered with 429: the quota is used up."),
            (Self.listAge, "Seconds since the source of a list of revoked keys last confirmed it."),
            (Self.listEntries, "Entries of a list of revoked keys."),
            (Self.listUsable, "Whether there is a list of revoked keys from a source, young enough to be used."),
        ] {
            registry.describe(name, .gauge, help)
        }
    }

    func providers(_ report: ProviderReport, at now: UnixTime) {
        let today = report.integrityUsage.filter { $0.day == IntegrityUsage.day(of: now) }
        for (name, count) in [(Self.integrityRequests, \IntegrityUsage.requests), (Self.integrityRefusals, \.refused)] {
            registry.replace(
                name, with: today.map { ([("app", $0.app.text), ("package", $0.package)], Double($0[keyPath: count])) })
        }
        let lists = report.revocationLists
        replace(
            Self.listAge, by: "source", lists.compactMap { list in list.ageSeconds.map { (list.source, Double($0)) } })
        replace(
            Self.listEntries, by: "source", lists.compactMap { list in list.entries.map { (list.source, Double($0)) } })
        replace(Self.listUsable, by: "source", lists.map { ($0.source, $0.isUsable ? 1 : 0) })
    }

    /// Counts a call and observes its time.
    func called(_ call: ProviderCall, took: Duration, _ result: ProviderResult) {
        registry.count(Name.providerCalls, [("call", call.rawValue), ("result", result.rawValue)])
        registry.histogram(Name.providerTimes, [("call", call.rawValue)]).observe(took.inSeconds)
    }

    private func replace(_ name: String, by label: String, _ values: [(label: String, value: Double)]) {
        registry.replace(name, with: values.map { ([(label, $0.label)], $0.value) })
    }
}

extension ServerMetrics: ProviderObserver {
    /// See `ProviderObserver`.
    package func observing<Answer: Sendable>(
        _ call: ProviderCall,
        _ send: (_ headers: [(name: String, value: String)]) async -> (answer: Answer, result: ProviderResult)
    ) async -> Answer {
        let started = ContinuousClock.now
        let (answer, result) = await send([])
        called(call, took: started.duration(to: .now), result)
        return answer
    }
}
