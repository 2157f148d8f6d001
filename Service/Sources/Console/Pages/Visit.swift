internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// A request of a person who is signed in.
struct Visit: Sendable {
    let request: PageRequest
    let service: PageService
    /// The person's current credential.
    let credential: Credential
    let session: ConsoleSession
    let sessionID: String
    let sessions: ConsoleSessions
    /// The values of the parameters in the page's path, decoded.
    var parameters: [String: String] = [:]

    var now: UnixTime { service.now }

    /// The origin in the browser's address bar, for the commands that a page shows. If the browser sends an `Origin`
    /// header, the result is correct even behind a proxy that terminates TLS.
    var origin: String {
        if let origin = request.origin, request.isFromOwnPage { return origin }
        return (request.isTLS ? "https://" : "http://") + request.host
    }

    /// Whether the person may make this call. A page shows no button for a call that would be refused.
    ///
    /// - Parameter app: the app of the call; nil: the call names no app.
    func may(_ route: AdminRoute, of app: String? = nil) -> Bool {
        guard let app else { return credential.mayUse(route) }
        return (try? AppID(app)).map { credential.mayUse(route, of: $0) } ?? false
    }

    /// Calls the admin API with the person's credential.
    ///
    /// - Parameter tag: the `If-Match` of the call; nil: none.
    /// - Throws: `CallRefused`.
    func call(_ call: AdminCall, ifMatch tag: String? = nil) async throws(CallRefused) -> JSONValue {
        try await answer(call, ifMatch: tag).body
    }

    /// Calls the admin API like `call`, and returns the whole answer, with the version of its record.
    func answer(_ call: AdminCall, ifMatch tag: String? = nil) async throws(CallRefused) -> AdminResponse {
        var call = call
        call.ifMatch = tag
        let answer = await service.answer(call, by: credential)
        guard answer.status < 400 else { throw CallRefused(answer) }
        return answer
    }

    /// Makes the call of a submitted form at most once: a second click or a reload does not repeat it.
    ///
    /// - Throws: `CallRefused`, and `PageRefusal` for a form that was used before.
    func change(_ call: AdminCall, ifMatch tag: String? = nil) async throws -> JSONValue {
        guard let number = session.number(of: request.form["token"]), sessions.take(number, of: session, in: sessionID)
        else {
            throw PageRefusal(
                status: 409, title: "This change was made already",
                message: "Its form came twice, and nothing was done the second time. The audit log has the change. "
                    + "A secret that you did not see is lost: make another, and revoke the first.")
        }
        do throws(CallRefused) {
            let answer = try await self.call(call, ifMatch: tag)
            sessions.renewToken(in: sessionID)
            return answer
        } catch {
            // After a failure of the service it is unknown whether the change was made, so the form's number stays used.
            if error.status < 500 {
                sessions.giveBack(number, in: sessionID)
            } else {
                sessions.renewToken(in: sessionID)
            }
            throw error
        }
    }

    /// The version of the record that the person decides about. A submitted form has the version that its page showed. Nil: the
    /// API's answer has no version.
    ///
    /// - Parameter read: the API's current answer about the record.
    func seenVersion(of read: AdminResponse) throws(PageRefusal) -> String? {
        guard request.method == "POST" else { return read.entityTag }
        guard let tag = request.form["tag"], tag.hasPrefix("\"") else {
            throw PageRefusal(
                status: 400, title: "That form is incomplete",
                message: "It does not say which version it is about. Open the page again, and repeat the change.")
        }
        return tag
    }

    /// Redirects to the next page after a change was made. That page reports the change.
    func made(_ call: AdminCall, ifMatch tag: String? = nil, _ sentence: String, next: String) -> PageResult {
        let notice = Notice(
            sentence: sentence, commands: commands(call, ifMatch: tag), path: String(next.prefix { $0 != "?" }),
            madeAt: now)
        sessions.tell(notice, in: sessionID)
        return .redirect(next)
    }

    /// The commands that make a call in a terminal.
    func commands(_ call: AdminCall, ifMatch tag: String? = nil) -> CallCommands {
        CallCommands(call, origin: origin, ifMatch: tag)
    }

    /// The ids of the apps that the person may see.
    func apps() async throws(CallRefused) -> [String] {
        try await call(AdminCall(.listApps))["apps"]?.elements.compactMap { $0["app_id"]?.string } ?? []
    }

    /// The app to which a list is narrowed; nil: the list is not narrowed. If the credential is limited to some apps,
    /// each call must name an app. So if the query names none, the result is the first of `apps`.
    func narrowedApp(_ apps: [String]) -> String? {
        if let app = request.query["app"], !app.isEmpty { return app }
        return credential.scope == .allApps ? nil : apps.first
    }

    /// The choices of a filter by app.
    func choices(_ apps: [String], chosen: String?) -> PageValue {
        let all: [Choice] = credential.scope == .allApps ? [Choice("", "All apps")] : []
        return Choice.values(all + apps.map { Choice($0, $0) }, chosen: chosen ?? "")
    }
}

/// An option of a select element.
struct Choice: Sendable, Hashable {
    let value: String
    let label: String

    init(_ value: String, _ label: String) { (self.value, self.label) = (value, label) }

    /// The options of a select element, each with `value`, `label` and `selected`.
    static func values(_ choices: [Choice], chosen: String) -> PageValue {
        .list(
            choices.map {
                ["value": .text($0.value), "label": .text($0.label), "selected": .flag($0.value == chosen)]
            })
    }
}

/// Paths of pages.
enum PagePath {
    /// A path below `/console`, with each part percent-encoded, and a query of the values that are not nil.
    static func of(_ parts: String..., query: [(String, String?)] = []) -> String {
        PageRequest.base + parts.map { "/" + encoded($0) }.joined() + Self.query(query)
    }

    /// A query of the values that are not nil, with its question mark; empty if there are none.
    static func query(_ query: [(String, String?)]) -> String {
        let pairs = query.compactMap { name, value in value.map { "\(encoded(name))=\(encoded($0))" } }
        return pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    }

    /// Percent-encodes everything but the unreserved characters of RFC 3986.
    static func encoded(_ text: String) -> String { AdminCall.encoded(text) }
}
