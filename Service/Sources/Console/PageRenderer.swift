internal import AuthContract
internal import AuthServer
internal import AuthService
internal import Mustache

/// Renders pages, with the headers that every page has.
struct PageRenderer: Sendable {
    /// All templates, parsed once in a process.
    private static let library = Result {
        var library = MustacheLibrary()
        for (name, text) in Templates.partials { try library.register(text, named: name) }
        for (name, text) in Templates.all { try library.register(Templates.inLayout(text), named: name) }
        return library
    }

    private let library: MustacheLibrary

    /// - Throws: if a template cannot be parsed.
    init() throws { library = try Self.library.get() }

    /// - Parameter visit: the visit of the signed-in person; nil: the page shows no person and no links.
    func answer(_ page: Page, _ visit: Visit?, at now: UnixTime) -> PageAnswer {
        if let file = page.download {
            let disposition = ("Content-Disposition", "attachment; filename=\"\(file.name)\"")
            return PageAnswer(
                body: file.bytes, contentType: file.contentType, headers: Self.headers + [disposition])
        }
        var values = page.values
        values["page"] = Self.frame(page, visit, at: now)
        let text = library.render(PageValue.object(values).rendered, withTemplate: page.template) ?? ""
        return PageAnswer(status: page.status, body: Array(text.utf8), headers: Self.headers)
    }

    func answer(_ page: Page, _ visit: Visit) -> PageAnswer { answer(page, visit, at: visit.now) }

    /// The values that every page shows, under the name `page`.
    private static func frame(_ page: Page, _ visit: Visit?, at now: UnixTime) -> PageValue {
        let links: [PageValue] = PageTable.navigation.compactMap { link in
            guard let visit, link.needs.map({ visit.may($0) }) ?? true else { return nil }
            let path = String(visit.request.path.dropFirst(PageRequest.base.count))
            return [
                "title": .text(link.title), "path": .text(PageRequest.base + link.path),
                "current": .flag(PageTable.isCurrent(link.path, at: path)),
            ]
        }
        return [
            "title": .text(page.title), "stylesheet": .text(Assets.stylesheet.path),
            "script": .text(Assets.script.path),
            "refresh": page.refresh.map { .text(String($0)) } ?? .none, "links": .list(links),
            "person": visit.map { ["name": .text($0.credential.name), "role": .text($0.credential.role.rawValue)] }
                ?? .none,
            "token": .optional(visit?.session.newToken()),
            "notice": visit?.session.notice.map {
                ["sentence": .text($0.sentence), "commands": $0.commands.value]
            } ?? .none,
            "now": Moment(time: now, now: now).value, "home": .text(PageRequest.base),
            "account": .text(SignIn.account), "version": .text(Build.version),
        ]
    }

    /// The headers of every page. A page loads content only from its own origin (images also from `data:` URLs), and sends forms
    /// and requests only to it. No page can be framed.
    static let headers: [(String, String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
                + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        ),
        // `no-referrer` must not be used here: it makes browsers send forms with `Origin: null` (Fetch, "append a request Origin
        // header").
        ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
        (
            "Permissions-Policy",
            "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()"
        ),
    ]
}
