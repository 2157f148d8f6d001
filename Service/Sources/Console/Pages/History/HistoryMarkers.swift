internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// Changes during the period of a chart: of app records, keys, stores and the version of the service, from the audit log.
struct HistoryMarkers: Sendable {
    /// The largest number of markers. The newest ones are shown.
    static let maximum = 50
    private static let maximumMembers = 5

    /// The codes of marked events.
    static let codes: [AuditEvent.Code] = [
        .appAdded, .appChanged, .appRemoved, .signingKeyRotated, .signingKeyRevoked, .serviceKeyRotated,
        .serviceVersionChanged, .claimKeeperChanged, .databaseRestored,
    ]

    /// A marked time in a chart, with the number that it has in the list of changes.
    struct Marker: Sendable, Hashable {
        let number: Int
        let at: UnixTime
        /// The event, as the admin API shows it.
        var event = JSONValue.null
    }

    /// The markers in the order of time, numbered from 1.
    private(set) var markers: [Marker] = []
    /// Whether older markers are left out.
    private var isCut = false
    private var problem: String?
    private let app: String?

    /// - Parameters:
    ///   - since: the first second of the charts.
    ///   - app: the app that the page shows; nil: all, including events without an app.
    ///   - visit: the visit that makes the calls.
    init(since: UnixTime, of app: String?, _ visit: Visit) async {
        self.app = app
        guard visit.may(.queryAudit) else { return }
        do {
            add(try await Self.events(since: since, of: app, visit))
        } catch {
            problem = error.message
        }
    }

    /// The newest events, at most one more than the largest number of markers. The admin API searches the whole log for
    /// them, because `codes` contains no code of device events. For such codes, it would search only the newest part.
    private static func events(
        since: UnixTime, of app: String?, _ visit: Visit
    ) async throws(CallRefused) -> [JSONValue] {
        let codes = codes.map(\.rawValue).joined(separator: ",")
        let answer = try await visit.call(
            AdminCall(
                .queryAudit,
                query: [
                    ("app_id", app), ("code", codes), ("since", since.description), ("limit", String(maximum + 1)),
                ]))
        return answer["events"]?.elements ?? []
    }

    private mutating func add(_ events: [JSONValue]) {
        let marked = events.compactMap { event in
            (event["at"]?.string).flatMap { try? UnixTime(iso8601: $0) }.map { (at: $0, event: event) }
        }
        isCut = marked.count > Self.maximum
        markers = marked.prefix(Self.maximum).reversed().enumerated().map { index, marked in
            Marker(number: index + 1, at: marked.at, event: marked.event)
        }
    }

    /// The value for the template `history`.
    func value(_ visit: Visit) -> PageValue {
        [
            "rows": .list(markers.map { row($0, visit) }), "isEmpty": .flag(markers.isEmpty && problem == nil),
            "problem": .optional(problem), "cut": .flag(isCut),
            "audit": .text(PagePath.of("audit", query: [("app", app)])),
        ]
    }

    private func row(_ marker: Marker, _ visit: Visit) -> PageValue {
        let event = marker.event
        let sequence = event["sequence"]?.integer ?? 0
        return [
            "words": .text(EventRow.words(event["code"]?.string ?? "")), "app": PageValue(event["app_id"]),
            "members": .optional(Self.members(event) ?? Self.versions(event)),
            "at": Moment(time: marker.at, now: visit.now).value,
            "actor": PageValue(event["actor"]), "sequence": .text(String(sequence)),
            "path": .text(PagePath.event(sequence, of: app)),
        ]
    }

    /// The versions before and after, such as `1.0.0 to 1.1.0`; nil: it is another event.
    private static func versions(_ event: JSONValue) -> String? {
        guard event["code"]?.string == AuditEvent.Code.serviceVersionChanged.rawValue,
            let from = event["detail"]?["from"]?.string, let to = event["detail"]?["to"]?.string
        else { return nil }
        return "\(from) to \(to)"
    }

    /// The changed members of a record, such as `mode, ios.app_ids`; nil: the event has no records to compare, or they are equal.
    private static func members(_ event: JSONValue) -> String? {
        guard let before = event["detail"]?["before"]?.object, let after = event["detail"]?["after"]?.object
        else { return nil }
        let names = RecordMerge(base: before, theirs: before, mine: after).differences.map(\.name)
        let more = names.count - maximumMembers
        return names.isEmpty
            ? nil : names.prefix(maximumMembers).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    }
}

extension Templates {
    static let markers = #"""
        <section aria-labelledby="changes">
        <h2 id="changes">Changes in this time</h2>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#isEmpty}}
        <p class="soft">No app record, key, store or version of the service was changed.</p>
        {{/isEmpty}}
        <ol class="plain numbered">
        {{#rows}}
        <li><strong>{{words}}</strong>{{#app}} <code>{{.}}</code>{{/app}}{{#members}}: <code>{{.}}</code>{{/members}} · {{#at}}{{>time}}{{/at}} · by <code>{{actor}}</code> · <a href="{{path}}">event {{sequence}}</a></li>
        {{/rows}}
        </ol>
        {{#cut}}
        <p class="soft">These are the newest. <a href="{{audit}}">The audit log</a> has older ones.</p>
        {{/cut}}
        </section>
        """#
}
