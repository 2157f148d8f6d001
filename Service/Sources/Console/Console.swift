package import AuthContract
package import AuthServer
package import AuthService

/// The console: pages for the people who are responsible for apps. A page reads and changes stored data only by calls of the
/// admin API, with the signed-in person's credential.
package struct Console: OperationsPages {
    private let sessions: ConsoleSessions
    private let renderer: PageRenderer
    /// Limits the number of pages and forms that are processed at once for people who are signed in.
    let queue = PageQueue()

    /// A console without sessions.
    ///
    /// - Parameter random: makes session ids.
    /// - Throws: if a template cannot be parsed, which the tests rule out.
    package init(random: any RandomSource = SystemRandom()) throws {
        sessions = ConsoleSessions(random: random)
        renderer = try PageRenderer()
    }

    package func answer(_ request: PageRequest, with service: PageService) async -> PageAnswer {
        let path = String(request.path.dropFirst(PageRequest.base.count))
        if let asset = Assets.answer(path) { return asset }
        if request.method == "POST", !request.isFromOwnPage {
            return refusal(
                PageRefusal(
                    status: 403, title: "That form came from elsewhere",
                    message: "A form must be sent from a page of this console. Open the page here, and try again."),
                nil, at: service.now, logged: Refusal(.forbidden, "the form came from another origin"))
        }
        if path == SignIn.path { return await signIn(request, service) }
        // If a page of another origin linked here, the person decides on the sign-in page whether to follow the link.
        if request.isReadFromElsewhere { return SignIn.redirect(from: request) }
        var person: Visit?
        do {
            guard let (id, visit) = try await visit(request, service) else { return SignIn.redirect(from: request) }
            person = visit
            if path == SignIn.signOutPath { return try await signOut(id, visit) }
            guard let (page, parameters) = PageTable.find(path) else {
                throw PageRefusal(status: 404, title: "There is no such page", message: "The address may be mistyped.")
            }
            let place = PageQueue.place(of: visit.credential.id, isCheck: request.isCheck)
            let isIn = await queue.enter(place, waits: !request.isCheck)
            defer { if isIn { queue.leave(place) } }
            return await answer(page, parameters, visit, hasPlace: isIn)
        } catch {
            return refusal(Self.explained(error), person, at: service.now)
        }
    }

    package func answer(_ request: PageRequest, refusedWith refusal: Refusal, at now: UnixTime) -> PageAnswer {
        let explained =
            switch refusal.code {
            case .payloadTooLarge:
                // Without a session, the size limit of a form is smaller, so a person whose session has ended gets this page, too.
                (
                    "The form is too large",
                    "Sign in and try again. A record that is still too large is changed with synheart-auth apps change."
                )
            case .unsupportedMediaType:
                (
                    "That is not a form",
                    "A page takes forms alone: application/x-www-form-urlencoded, without a parameter."
                )
            case .serviceUnavailable, .rateLimited: ("Too many forms are being received", "Try again in a moment.")
            default: ("That form cannot be read", refusal.hint ?? refusal.code.message)
            }
        return self.refusal(
            PageRefusal(
                status: refusal.code.httpStatus, title: explained.0, message: explained.1,
                retryAfter: refusal.retryAfter),
            nil, at: now, logged: refusal)
    }

    package func enterForm(_ request: PageRequest, at now: UnixTime) throws(Refusal) -> String? {
        guard let id = SessionCookie.id(in: request),
            let credentialID = sessions.use(id, at: now, prolongs: false)?.credentialID
        else { return nil }
        let place = PageQueue.place(of: credentialID, isCheck: request.isCheck)
        guard queue.enterForm(place, atMost: request.isCheck ? 1 : PageQueue.maximumOfCredential) else {
            throw Refusal(.rateLimited, "one credential sends too many forms at once", retryAfter: 1)
        }
        return place
    }

    package func leaveForm(_ place: String) { queue.leaveForm(place) }

    private func answer(
        _ page: any ConsolePage, _ parameters: [String: String], _ visit: Visit, hasPlace: Bool
    ) async -> PageAnswer {
        var visit = visit
        visit.parameters = parameters
        var answer: PageAnswer
        do {
            if let needs = page.needs, !visit.may(needs, of: parameters["app_id"]) {
                throw PageRefusal(
                    status: 403, title: "Your credential may not do that",
                    message: "It needs role \(needs.role.rawValue), for all apps that it concerns.")
            }
            let (isForm, isCheck) = (visit.request.method == "POST", visit.request.isCheck)
            if isForm { try Self.requireOwnForm(visit) }
            if !hasPlace {
                let shown = isForm && !isCheck ? try page.submit(visit, refusedWith: Self.full) : nil
                answer = refusal(Self.full, visit, at: visit.now, shown: shown)
            } else if isCheck {
                answer = renderer.answer(try await page.check(visit), visit)
            } else if isForm {
                switch try await page.submit(visit) {
                case .page(let page): answer = renderer.answer(page, visit)
                case .redirect(let path): answer = PageAnswer(status: 303, headers: [("Location", path)])
                }
            } else {
                answer = renderer.answer(try await page.show(visit), visit)
            }
        } catch {
            answer = refusal(Self.explained(error), visit, at: visit.now)
        }
        answer.route = PageRequest.base + page.path
        return answer
    }

    /// The id of the session and the person's visit; nil: the session has ended or does not exist, or its credential may no longer
    /// be used.
    private func visit(_ request: PageRequest, _ service: PageService) async throws -> (String, Visit)? {
        guard let id = SessionCookie.id(in: request),
            var session = sessions.use(id, at: service.now, prolongs: !request.isRefresh)
        else { return nil }
        guard let credential = try await service.credential(session.credentialID) else {
            sessions.end(id)
            return nil
        }
        if let notice = session.notice {
            if !(0..<Notice.life).contains(service.now - notice.madeAt) || notice.path != request.path
                || request.method != "GET" || request.isRefresh
            {
                session.notice = nil
            } else {
                sessions.tell(nil, in: id)
            }
        }
        let visit = Visit(
            request: request, service: service, credential: credential, session: session, sessionID: id,
            sessions: sessions)
        return (id, visit)
    }

    private static func requireOwnForm(_ visit: Visit) throws(PageRefusal) {
        guard visit.session.number(of: visit.request.form["token"]) != nil else {
            throw PageRefusal(
                status: 403, title: "That form is out of date",
                message: "It was made for another session. Open the page again, and repeat the change.")
        }
    }

    // MARK: Sessions

    private func signIn(_ request: PageRequest, _ service: PageService) async -> PageAnswer {
        var answer: PageAnswer
        if request.method == "POST" {
            do {
                let credential = try await service.signIn(
                    Self.typed(request.form["credential"]), from: request.address)
                // Always start a session with a new id, because others may know an id that the browser had before.
                if let old = SessionCookie.id(in: request) { sessions.end(old) }
                answer = PageAnswer(
                    status: 303,
                    headers: [
                        ("Location", SignIn.next(request.form["next"])),
                        SessionCookie.set(sessions.start(credential.id, at: service.now)),
                    ])
            } catch {
                answer = renderer.answer(SignIn.page(request, refused: error), nil, at: service.now)
                answer.refusal = error
                if let wait = error.retryAfter { answer.headers.append(("Retry-After", String(wait))) }
            }
        } else {
            answer = renderer.answer(SignIn.page(request), nil, at: service.now)
        }
        answer.route = PageRequest.base + SignIn.path
        return answer
    }

    /// The typed credential without the white space that a pasted one often has around it.
    private static func typed(_ text: String?) -> String {
        (text ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private func signOut(_ id: String, _ visit: Visit) async throws -> PageAnswer {
        guard visit.request.method == "POST" else {
            return PageAnswer(status: 303, headers: [("Location", SignIn.account)])
        }
        try Self.requireOwnForm(visit)
        let ended: Int
        if visit.request.form["everywhere"] != nil {
            ended = sessions.endAll(of: visit.credential.id)
        } else {
            sessions.end(id)
            ended = 1
        }
        // The sessions have ended, even if the event cannot be written.
        try? await visit.service.signedOut(visit.credential, sessions: ended)
        var answer = PageAnswer(
            status: 303,
            headers: [
                ("Location", PagePath.of("sign-in")), SessionCookie.removal,
                // The browser's back button must not show pages of the session.
                ("Clear-Site-Data", "\"cache\""),
            ])
        answer.route = PageRequest.base + SignIn.signOutPath
        return answer
    }

    // MARK: Refusals

    private static let full = PageRefusal(
        status: 429, title: "Too many pages are asked for",
        message: "The service works on a few pages at once, so that devices do not wait. Try again in a moment.",
        retryAfter: 1)

    /// - Parameter shown: the page that shows the refusal; nil: the general page.
    private func refusal(
        _ refusal: PageRefusal, _ visit: Visit?, at now: UnixTime, logged: Refusal? = nil, shown: Page? = nil
    ) -> PageAnswer {
        let page = Page(
            refusal.title, "refusal", ["message": .text(refusal.message)], status: refusal.status)
        var answer = renderer.answer(shown ?? page, visit, at: now)
        if let wait = refusal.retryAfter { answer.headers.append(("Retry-After", String(wait))) }
        answer.route = PageRequest.base
        answer.refusal =
            logged
            ?? Refusal(Self.code(refusal.status), refusal.reason ?? "\(refusal.title): \(refusal.message)")
        return answer
    }

    private static func code(_ status: Int) -> ErrorCode {
        switch status {
        case 403: .forbidden
        case 404: .notFound
        case 405: .methodNotAllowed
        case 409: .conflict
        case 429: .rateLimited
        case 503: .serviceUnavailable
        case 500: .internalError
        default: .invalidRequest
        }
    }

    private static func explained(_ error: any Error) -> PageRefusal {
        switch error {
        case let refusal as PageRefusal: return refusal
        case let refused as CallRefused:
            return PageRefusal(
                status: refused.status, title: "The service refused that", message: refused.message,
                reason: refused.reason)
        case let refusal as Refusal:
            return PageRefusal(
                status: refusal.code.httpStatus, title: "The service cannot answer now", message: refusal.code.message,
                retryAfter: refusal.retryAfter)
        default:
            return PageRefusal(status: 500, title: "The page failed", message: "The service's log has the reason.")
        }
    }
}
