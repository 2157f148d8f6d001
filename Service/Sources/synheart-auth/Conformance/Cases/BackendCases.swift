import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Cases for a route of a backend, behind a gateway or a library that asks `/verify`. The route echoes nothing, so
    /// only the status and the header with a refusal's code show whether a request reached it.
    static let backends: [ConformanceCase] = [
        .init("backend-reached", "Verification for other services", "a signed request reaches the backend") { stage in
            let route = try BackendRoute(stage)
            let answer = try await stage.send(try route.signed(try await stage.phone(), at: stage.now), to: route.base)
            try stage.require(!BackendRoute.isRefusal(answer), "it was refused: \(answer.text)")
        },
        .init("backend-refusal", "Forward authentication", "a refusal reaches the phone with its code and the time") {
            stage in
            let (phone, route) = try await stage.backend()
            let request = try route.signed(phone, at: stage.now - 700)
            let answer = try await stage.send(request, to: route.base)
            let code = answer.headers.values(HeaderName.error)
            try stage.require(
                answer.status >= 400 && code == [ErrorCode.clockSkew.rawValue],
                "a request of 700 s ago: came \(answer.status), \(HeaderName.error) \(code)")
            try stage.require(answer.headers.contains(HeaderName.serverTime), "no \(HeaderName.serverTime)")
        },
        attack("backend-unsigned", "Signing a request", "an unsigned request") { _, route, _ in
            WireRequest(
                method: route.method, target: route.path, headers: [("Content-Type", "application/json")],
                body: route.body)
        },
        attack("backend-foreign-body", "Forwarded bodies", "a signed request with another body") { phone, route, now in
            try phone.signed("POST", route.path, Array("{}".utf8), at: now).with(body: route.foreignBody)
        },
        attack("backend-attached-body", "Forwarded bodies", "a body on a request that was signed without one") {
            phone, route, now in
            try phone.signed("POST", route.path, [], at: now).with(body: route.foreignBody)
        },
        attack("backend-chunked-body", "Forwarded bodies", "a body in chunks on a request that was signed without one")
        {
            phone, route, now in
            var request = try phone.signed("POST", route.path, [], at: now).with(body: route.foreignBody)
            request.isChunked = true
            return request
        },
        attack("backend-chunked-foreign", "Forwarded bodies", "another body in chunks on a signed request") {
            phone, route, now in
            var request = try phone.signed("POST", route.path, Array("{}".utf8), at: now)
                .with(body: route.foreignBody)
            request.isChunked = true
            return request
        },
        attack("backend-method", "Scheme 1", "a signed request under another method") { phone, route, now in
            var request = try route.signed(phone, at: now)
            request.method = "PUT"
            return request
        },
        attack("backend-other-path", "Scheme 1", "a request that was signed for another path") { phone, route, now in
            try phone.signed(route.method, "/conformance", route.body, at: now).to(route.path)
        },
        attack("backend-slashes", "Strictness", "a signed request with a slash more in its path") { phone, route, now in
            try route.signed(phone, at: now).to("/" + route.path)
        },
        attack("backend-parameter", "Strictness", "a signed request with a parameter in its path") {
            phone, route, now in
            try route.signed(phone, at: now).to(route.path + ";a=b")
        },
        attack("backend-dot-segments", "Strictness", "a signed request with dot segments in its path") {
            phone, route, now in
            try route.signed(phone, at: now).to("/conformance/.." + route.path)
        },
        attack("backend-query", "Query", "a query on a signed POST") {
            phone, route, now in
            try phone.signed("POST", route.path, [], at: now).to(route.path + "?a=1")
        },
        attack("backend-forged-identity", "Forward authentication", "an unsigned request with identity headers") {
            phone, route, _ in
            WireRequest(
                method: route.method, target: route.path,
                headers: [
                    ("Content-Type", "application/json"), ("X-Synheart-Verified-App", phone.appID.text),
                    ("X-Synheart-Verified-Device", phone.id.text), ("X-Synheart-Verified-Platform", "ios"),
                    ("X-Synheart-Verified-Assurance", "app=app-attest, key=app-vouched"),
                    ("X-Synheart-Identity", "e30"),
                ], body: route.body)
        },
        attack("backend-forged-original", "Forward authentication", "a signed GET that names itself as the original") {
            phone, route, now in
            let path = "/conformance"
            var request = try phone.signed("GET", path, [], at: now).to(route.path).with(body: route.foreignBody)
            request.method = "POST"
            request.headers += [
                ("X-Original-Method", "GET"), ("X-Original-URI", path), ("X-Forwarded-Method", "GET"),
                ("X-Forwarded-Uri", path), ("X-Original-Content-Length", "none"),
                ("X-Original-Transfer-Encoding", "none"),
            ]
            return request
        },
        attack("backend-time", "Freshness", "a signed request of 700 s ago") { phone, route, now in
            try route.signed(phone, at: now - 700)
        },
        .init("backend-replay", "Replay", "a copy of a request that reached the backend does not reach it") { stage in
            let (phone, route) = try await stage.backend()
            let request = try route.signed(phone, at: stage.now)
            let first = try await stage.send(request, to: route.base)
            try stage.require(!BackendRoute.isRefusal(first), "the request itself: \(first.text)")
            let copy = try await stage.send(request, to: route.base)
            try stage.require(BackendRoute.isRefusal(copy), "the copy reached it: \(copy.text)")
        },
        .init("backend-replay-together", "Replay", "of 8 copies at once, one reaches the backend") { stage in
            let (phone, route) = try await stage.backend()
            let request = try route.signed(phone, at: stage.now)
            let answers = try await stage.sendTogether(Array(repeating: (request, route.base), count: 8))
            let reached = answers.count { !BackendRoute.isRefusal($0) }
            try stage.require(reached == 1, "\(reached) reached it")
        },
        .init("backend-deregistered", "Who may do what", "a device that deregistered reaches nothing after 6 s") {
            stage in
            let (_, route) = try await stage.backend()
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.device, at: stage.now), "deregistration")
            try await Task.sleep(for: .seconds(6))
            let answer = try await stage.send(try route.signed(phone, at: stage.now), to: route.base)
            try stage.require(BackendRoute.isRefusal(answer), "it reached the backend: \(answer.text)")
        },
    ]

    /// A case about a request that must not reach the backend.
    private static func attack(
        _ id: String, _ section: String, _ what: String,
        _ request: @escaping @Sendable (Phone, BackendRoute, UnixTime) throws -> WireRequest
    ) -> ConformanceCase {
        .init(id, section, "\(what) does not reach the backend") { stage in
            let (phone, route) = try await stage.backend()
            let answer = try await stage.send(try request(phone, route, stage.now), to: route.base)
            try stage.require(BackendRoute.isRefusal(answer), "it reached the backend: \(answer.text)")
        }
    }
}

/// The route of `--backend`.
struct BackendRoute: Sendable {
    /// Scheme and authority.
    let base: String
    /// The signed path.
    let path: String
    /// The method and the body of an honest request.
    let method: String
    let body: [UInt8]
    /// A body that is not signed, and that the backend would accept like `{}`.
    let foreignBody = Array("{ }".utf8)

    /// Skips the case if the command line names no route.
    init(_ stage: Stage) throws {
        guard let url = stage.options.backend, let (base, path) = Self.parts(url) else {
            throw CaseEnd.skipped("--backend names no route")
        }
        (self.base, self.path) = (base, path)
        let isRead = stage.options.backendIsRead
        (method, body) = (isRead ? "GET" : "POST", isRead ? [] : Array("{}".utf8))
    }

    /// Origin and path of a URL; nil if one of them is missing or not valid, or if there is a query.
    static func parts(_ url: String) -> (base: String, path: String)? {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, let path = try? RequestPath("/" + parts[3]) else { return nil }
        let base = parts.prefix(3).joined(separator: "/")
        return (try? RequestOrigin(base)).map { _ in (base, path.text) }
    }

    /// An honest request to the route, signed under scheme 1.
    func signed(_ phone: Phone, at time: UnixTime) throws -> WireRequest {
        try phone.signed(method, path, body, at: time)
    }

    /// Whether the gateway refused the request, with a code or one of these statuses. Other errors are the backend's own.
    static func isRefusal(_ answer: WireResponse) -> Bool {
        answer.status >= 400
            && (answer.headers.contains(HeaderName.error) || [400, 401, 403, 413, 421, 503].contains(answer.status))
    }
}

extension Stage {
    /// A phone and the route. Skips the case if a signed request does not reach the route, because then refusals prove nothing.
    fileprivate func backend() async throws -> (phone: Phone, route: BackendRoute) {
        let (route, phone) = (try BackendRoute(self), try await phone())
        let answer = try await send(try route.signed(phone, at: now), to: route.base)
        guard !BackendRoute.isRefusal(answer) else {
            throw CaseEnd.skipped("a signed \(route.method) does not reach the backend: \(answer.text)")
        }
        return (phone, route)
    }
}
