import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Answers of the service to backends and gateways.
    static let verifications: [ConformanceCase] = [
        .init("verify", "Verification for other services", "a phone's request is verified, with its identity") {
            stage in
            let phone = try await stage.phone()
            try await stage.verifies(try phone.signed("POST", readings, Array("{}".utf8), at: stage.now), of: phone)
        },
        .init("verify-credential", "Verification for other services", "without a credential nothing is verified") {
            stage in
            let phone = try await stage.phone()
            let request = try phone.signed("POST", readings, Array("{}".utf8), at: stage.now)
            for credential in [nil, "sya_conformance"] {
                let answer = try await stage.send(try stage.question(request, credential: credential))
                try stage.requireRefusal(answer, [.unauthorized])
                try stage.require(answer.json["verified"] == nil, "the answer has a verdict")
            }
        },
        .init("verify-other-app", "Verification for other services", "a credential is good for its own apps") { stage in
            guard let app = stage.options.otherAppID else { throw CaseEnd.skipped("--other-app names none") }
            let phone = try await stage.phone()
            let request = try phone.signed("POST", readings, Array("{}".utf8), at: stage.now)
                .with([(HeaderName.appID, app.text)])
            try stage.requireRefusal(try await stage.verify(request), [.forbidden])
        },
        .init("verify-changes", "Verification for other services", "a changed request is INVALID_SIGNATURE") { stage in
            let phone = try await stage.phone()
            let request = { try phone.signed("POST", readings, Array("{}".utf8), at: stage.now) }
            try await stage.rejects(try request().with(body: Array("{ }".utf8)), .invalidSignature, what: "body")
            try await stage.rejects(try request().to("/v1/other"), .invalidSignature, what: "path")
            var other = try request()
            other.method = "PUT"
            try await stage.rejects(other, .invalidSignature, what: "method")
        },
        .init("verify-replay", "Replay", "a copy of a verified request is NONCE_REPLAY") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed("POST", readings, Array("{}".utf8), at: stage.now)
            try await stage.verifies(request, of: phone)
            try await stage.rejects(request, .nonceReplay)
        },
        .init("verify-again", "Verification for other services", "the same question with its id gets the same verdict")
        {
            stage in
            let phone = try await stage.phone()
            let request = try phone.signed("POST", readings, Array("{}".utf8), at: stage.now)
            let id = RandomUUID(from: SystemRandom()).text
            for url in [stage.options.url, stage.options.secondURL ?? stage.options.url] {
                try await stage.verifies(request, of: phone, id: id, at: url)
            }
            try await stage.rejects(request, .nonceReplay, what: "without the id")
        },
        .init("verify-paths", "Strictness", "a path with dot segments, in any writing, is refused") { stage in
            let phone = try await stage.phone()
            for path in [
                "/v1/../x", "/v1/..;a/x", "/v1/%2e%2e/x", "/v1/..%2fx", "/v1/a;../x", "/v1/..%5Cx", "/v1/x%00", "v1/x",
            ] {
                try await stage.rejects(
                    try phone.signed("POST", path, [], at: stage.now), .invalidRequest, what: path)
            }
        },
        .init("verify-digest", "Scheme 1", "under scheme 1, a digest is no body") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed("POST", readings, Array("{}".utf8), at: stage.now)
            let digest = ContentDigest(of: request.body).sha256
            let answer = try await stage.send(
                try stage.question(request, credential: stage.credential, .sha256(digest)))
            try stage.require(answer.code == ErrorCode.invalidRequest.rawValue, "came \(answer.text)")
        },
        .init("forward-credential", "Forward authentication", "without a credential nothing is forwarded") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed("GET", readings, [], at: stage.now)
                .to(Route.forward.rawValue + readings)
            let answer = try await stage.send(request)
            try stage.requireRefusal(answer, [.unauthorized])
        },
        .init("forward", "Forward authentication", "a request in the path form is verified once") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed("GET", readings, [], at: stage.now)
                .to(Route.forward.rawValue + readings)
                .with([
                    (HeaderName.serviceCredential, try stage.credential), ("X-Synheart-Verified-Device", "conformance"),
                ])
            let answer = try await stage.accepted(request)
            try stage.require(
                answer.headers.values("X-Synheart-Verified-Device") == [phone.id.text],
                "X-Synheart-Verified-Device is \(answer.headers.values("X-Synheart-Verified-Device"))")
            let copy = try await stage.send(request)
            try stage.require(
                copy.status == 403 && copy.code == ErrorCode.nonceReplay.rawValue, "a copy: came \(copy.text)")
        },
    ]

    private static let readings = "/v1/conformance"
}

extension Stage {
    /// The credential of a backend. Skips the case if there is none.
    var credential: String {
        get throws {
            guard let credential = options.credential else { throw CaseEnd.skipped("--credential-file names none") }
            return credential
        }
    }

    /// A question to `/verify` about a request that a backend received.
    func question(
        _ request: WireRequest, credential: String?, _ body: VerifyRequest.Body? = nil, id: String? = nil
    ) throws -> WireRequest {
        let question = VerifyRequest(
            method: request.method, scheme: "https", authority: "conformance.invalid", path: request.target, query: nil,
            headers: HeaderFields(request.headers.map { ($0.name, $0.value) }), body: body ?? .bytes(request.body),
            verificationID: id)
        return WireRequest.json(.verify, question.bytes).with([("Authorization", credential.map { "Bearer \($0)" })])
    }

    /// Asks `/verify` about a request, and returns the answer. Skips the case if the app is in mode observe.
    func verify(_ request: WireRequest, id: String? = nil, at url: String? = nil) async throws -> WireResponse {
        let answer = try await send(try question(request, credential: try credential, id: id), to: url)
        guard answer.json["observed"] == nil else { throw CaseEnd.skipped("the app is in mode observe") }
        return answer
    }

    /// Asks `/verify` about a request, and fails the case unless the request is verified.
    func verifies(_ request: WireRequest, of phone: Phone, id: String? = nil, at url: String? = nil) async throws {
        let answer = try await verify(request, id: id, at: url)
        guard case .verified(let identity)? = try? VerifyResponse(parsing: answer.body), answer.isSuccess else {
            throw CaseEnd.fails("expected a verified request, came \(answer.text)")
        }
        try require(identity.deviceID == phone.id && identity.appID == appID, "another identity was verified")
    }

    /// Asks `/verify` about a request, and fails the case unless the request is refused with this code.
    func rejects(_ request: WireRequest, _ code: ErrorCode, what: String = "") async throws {
        let answer = try await verify(request)
        try requireRefusal(answer, [code], what)
        try require(answer.json["verified"] == false, "the answer has no verified: false")
    }
}
