internal import AuthContract
internal import AuthServer
internal import AuthService

/// The sign-in page, which asks for a credential.
enum SignIn {
    static let path = "/sign-in"
    static let signOutPath = "/sign-out"
    static let account = PagePath.of("account")

    /// - Parameter refused: why the last attempt was refused; nil: no attempt was refused.
    static func page(_ request: PageRequest, refused: Refusal? = nil) -> Page {
        let asked = request.method == "POST" ? request.form["next"] : request.query["next"]
        let next = next(asked)
        let hasLostForm = (request.method == "POST" ? request.form : request.query)[lostForm] != nil
        return Page(
            "Sign in", "sign-in",
            [
                "problem": refused.map { .text(sentence($0)) } ?? .none,
                "next": .text(next),
                "hasNext": .flag(
                    asked == next && !hasLostForm && (next != PageRequest.base || request.method != "POST")),
                "hasLostForm": .flag(hasLostForm && refused == nil),
            ], status: refused?.code.httpStatus ?? 200)
    }

    private static func sentence(_ refusal: Refusal) -> String {
        switch refusal.code {
        case .unauthorized: "The service does not know this credential, or it has expired or was revoked."
        case .forbidden: "A service credential cannot sign in. Use one with role viewer, operator or admin."
        case .rateLimited: "Too many attempts. Wait \(refusal.retryAfter ?? 60) seconds."
        default: "The service cannot check credentials now. Try again."
        }
    }

    /// Redirects a person to the sign-in page, which leads back to the requested page. If the request submitted a form,
    /// the sign-in page says that nothing was changed.
    static func redirect(from request: PageRequest) -> PageAnswer {
        let isForm = request.method == "POST" && request.path != PageRequest.base + signOutPath
        let isPage =
            isForm || request.method != "POST" && (request.path != PageRequest.base || request.isReadFromElsewhere)
        let query = isForm ? [] : request.query.all.map { ($0.name, Optional($0.value)) }
        let asked = request.path + PagePath.query(query)
        return PageAnswer(
            status: 303,
            headers: [
                (
                    "Location",
                    PagePath.of("sign-in", query: [("next", isPage ? asked : nil), (lostForm, isForm ? "yes" : nil)])
                )
            ])
    }

    /// The query parameter and form field of the sign-in page which says that a form was sent after its session had ended.
    private static let lostForm = "ended"

    /// The path to open after the sign-in: the wanted path if it belongs to the console, otherwise the console's first page.
    static func next(_ wanted: String?) -> String {
        guard let wanted, wanted.utf8.count <= 2048, wanted.hasPrefix(PageRequest.base + "/"),
            wanted.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "\\") }), !wanted.contains("//")
        else { return PageRequest.base }
        return wanted
    }
}
