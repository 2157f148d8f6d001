internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// Something that a person should look at, in words.
struct Concern: Sendable, Hashable {
    /// Whether a person should look now: requests fail or will fail soon, or the page is not complete. Other problems can wait.
    let isUrgent: Bool
    let sentence: String
    /// The page with details; nil: none.
    var path: String?

    /// The number of an app's refused requests below which their share is meaningless.
    private static let fewest: Int64 = 20
    /// An app is a concern if at least this share of its requests is refused, in percent.
    private static let share: Int64 = 10
    private static let day: Int64 = 86_400

    /// The concerns from readiness checks that fail or are degraded.
    static func of(_ checks: [PageService.Check], now: UnixTime) -> [Concern] {
        checks.compactMap { check in
            if let failure = check.failure {
                return Concern(isUrgent: true, sentence: "The check \(check.name) fails: \(failure).")
            }
            guard let degraded = check.degraded else { return nil }
            let end = check.until.map { " It ends \(Moment(time: $0, now: now).words)." } ?? ""
            return Concern(isUrgent: true, sentence: "The check \(check.name) is degraded: \(degraded).\(end)")
        }
    }

    /// The concerns about apps with many refusals, and about apps with requests that the service or a provider could not judge.
    static func of(_ verdicts: Verdicts) -> [Concern] {
        verdicts.apps.flatMap { app -> [Concern] in
            var concerns: [Concern] = []
            let failed = app.sum(.failed)
            if failed > 0, let code = app.mostFrequent(.failed) {
                concerns.append(
                    Concern(
                        isUrgent: true,
                        sentence: "The service could not judge \(failed.grouped) requests of \(app.id) (\(code)).",
                        path: versions(of: app.id, code: code)))
            }
            let (refused, total) = (app.sum(.refused), app.total)
            if refused >= fewest, refused * 100 >= total * share, let code = app.mostFrequent(.refused) {
                concerns.append(
                    Concern(
                        isUrgent: false,
                        sentence:
                            "\(refused * 100 / total) % of the requests of \(app.id) were refused, most with \(code).",
                        path: versions(of: app.id, code: code)))
            }
            return concerns
        }
    }

    /// The path of the history page that counts a code by version of the app, for the last day compared with the day before.
    private static func versions(of app: String, code: String) -> String {
        PagePath.of(
            "history",
            query: [("period", "day"), ("by", "version"), ("compare", "yes"), ("app", app), ("code", code)])
    }

    /// The concerns about Google's lists and quotas, from the statistics.
    static func of(statistics: JSONValue) -> [Concern] {
        (statistics["apps"]?.elements ?? []).flatMap { app -> [Concern] in
            let id = app["app_id"]?.string ?? ""
            var concerns: [Concern] = []
            if app["revocation_list"]?["usable"]?.bool == false {
                concerns.append(
                    Concern(
                        isUrgent: true, sentence: "Google's revocation list for \(id) is too old, or was never read."))
            }
            let refused = (app["play_integrity"]?.elements ?? []).reduce(0) {
                $0 + ($1["quota_refusals"]?.integer ?? 0)
            }
            if refused > 0 {
                concerns.append(
                    Concern(
                        isUrgent: true,
                        sentence:
                            "Google refused \(refused.grouped) Play Integrity calls of \(id) today: the quota is used up."
                    ))
            }
            return concerns
        }
    }

    /// The concerns about credentials and certificates that expire within 14 days.
    static func of(_ endings: [Ending], now: UnixTime) -> [Concern] {
        endings.filter { $0.at - now < 14 * day }.map { ending in
            Concern(
                isUrgent: ending.at - now < day,
                sentence: "\(ending.name) ends \(Moment(time: ending.at, now: now).words).")
        }
    }
}

/// A credential or certificate with its expiry.
struct Ending: Sendable, Hashable {
    let name: String
    let at: UnixTime

    /// The credentials that are neither revoked nor expired.
    static func of(credentials answer: JSONValue, now: UnixTime) -> [Ending] {
        (answer["credentials"]?.elements ?? []).compactMap { credential in
            guard credential["revoked_at"]?.string == nil,
                let end = credential["expires_at"]?.string.flatMap({ try? UnixTime(iso8601: $0) }), end > now
            else { return nil }
            let name = credential["name"]?.string ?? ""
            return Ending(name: "The \(credential["role"]?.string ?? "") credential \(name)", at: end)
        }
    }

    /// The certificates of the listeners.
    static func of(_ certificates: [PageService.Certificate]) -> [Ending] {
        certificates.map { Ending(name: "The certificate of the \($0.listener) listener", at: $0.notAfter) }
    }
}
