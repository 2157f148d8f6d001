internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore

/// The pages of the operations listener.
extension OperationsResponder {
    /// Answers a request for a page.
    func page(
        _ pages: any OperationsPages, _ request: Request, _ target: RequestTarget, over connection: ConnectionContext
    ) async throws -> PageAnswer {
        var page = try pageRequest(request, target, over: connection)
        let room = forms.share()
        var place: String?
        defer {
            room.release()
            if let place { pages.leaveForm(place) }
        }
        if request.method == .post {
            let now = service.clock.now
            do {
                place = try pages.enterForm(page, at: now)
                page.form = try await form(
                    of: request,
                    upTo: place != nil ? PageRequest.maximumForm : PageRequest.maximumFormOfStrangers,
                    within: room, over: connection)
            } catch let error as Refusal {
                return pages.answer(page, refusedWith: error, at: now)
            }
        }
        let service = PageService(
            service: service, administration: administration, readiness: readiness,
            certificates: { [settings] in settings.tls.named })
        return await pages.answer(page, with: service)
    }

    private func pageRequest(
        _ request: Request, _ target: RequestTarget, over connection: ConnectionContext
    ) throws -> PageRequest {
        guard [.get, .head, .post].contains(request.method) else {
            throw MethodRefusal(allowed: ["GET", "HEAD", "POST"])
        }
        let provenance = try RequestProvenance(of: request.head, over: connection, trusting: proxies)
        let headers = request.headers
        var page = PageRequest(
            request.method.rawValue, target.path.text, host: headers[values: .host].first ?? "",
            from: provenance.address)
        page.query = try PageFields(parsing: target.query ?? "")
        page.cookies = Self.cookies(headers[values: .cookie])
        page.origin = Self.joined(headers[values: .origin])
        page.fetchSite = HTTPField.Name("Sec-Fetch-Site").flatMap { Self.joined(headers[values: $0]) }
        func has(_ name: String) -> Bool { HTTPField.Name(name).map { headers.contains($0) } ?? false }
        page.isRefresh = has(PageRequest.refreshHeader)
        page.isCheck = request.method == .post && has(PageRequest.checkHeader)
        page.isTLS = provenance.scheme == "https"
        return page
    }

    private func form(
        of request: Request, upTo limit: Int, within room: BodyBudget.Share, over connection: ConnectionContext
    ) async throws -> PageFields {
        let type = "application/x-www-form-urlencoded"
        guard request.headers[.contentType]?.lowercased() == type else {
            throw Refusal(.unsupportedMediaType, "Content-Type is not \(type)")
        }
        let bytes = try await request.bytes(upTo: limit, within: room, over: connection)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Refusal(.invalidRequest, "the form is not UTF-8", hint: "The form is not UTF-8")
        }
        return try PageFields(parsing: text)
    }

    /// The cookies of a request (RFC 6265 section 4.2.1). A part without `=` is no cookie. Only the ends of a name are trimmed. Spaces
    /// inside a name stay: browsers let any page of the domain set such a cookie, and it must not pass for one of ours.
    static func cookies(_ fields: [String]) -> [String: [String]] {
        var cookies: [String: [String]] = [:]
        for pair in fields.flatMap({ $0.split(separator: ";") }) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            let name = parts[0].drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            cookies[String(name), default: []].append(String(parts[1]))
        }
        return cookies
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func joined(_ values: [String]) -> String? {
        values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

extension APIResponse {
    /// The answer of a page.
    init(_ page: PageAnswer) {
        self.init(
            status: page.status, body: page.body, contentType: page.contentType, headers: page.headers,
            cacheControl: page.cacheControl)
        guard let refusal = page.refusal else { return }
        (outcome, code) = (refusal.code.rawValue, refusal.code)
    }
}
