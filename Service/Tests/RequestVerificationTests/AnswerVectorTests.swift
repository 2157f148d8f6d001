import AuthContract
import StrictJSON
import Testing

@testable import RequestVerification

/// The cases `answers` of `docs/vectors/backend.json`, over HTTP.
@Suite(.serialized) struct AnswerVectorTests {
    @Test("each answer and each fault of the service has the outcome that the vectors say")
    func answers() async throws {
        let service = try await PlayedService()
        let normal = try BackendVectors.configuration("origin", service: service.url)
        var hasty = normal
        hasty.timeout = .milliseconds(500)
        let (patient, quick) = (try verifier(normal), try verifier(hasty))
        let cases = try BackendVectors.cases(BackendVectors.document(), "answers")
        #expect(cases.count >= 107)
        for item in cases {
            let name = try item.string("name")
            service.begin(try BackendVectors.cases(item, "answers"))
            var request = try BackendVectors.signedRequest()
            if let method = try item.optionalString("method") {
                request.method = method
                request.body = .bytes([])
                request.headers.lines.removeAll { $0.name == "Content-Length" }
            }
            let verifier = try item.optionalString("instance") == "quick" ? quick : patient
            var answer = await verifier.verify(request)
            for _ in 1..<(try item.optionalInteger("requests") ?? 1) { answer = await verifier.verify(request) }
            let questions = service.questions
            #expect(Int64(questions.count) == (try item.integer("asked")), "\(name)")
            if try item.optionalInteger("requests") == nil {
                #expect(Set(questions).count == 1, "\(name): a question changed when it was asked again")
            }
            if let passes = try item.optionalObject("passes") {
                try expect(answer, passes: passes, name)
            } else {
                try expect(answer, refused: item.object("refused"), item, name)
            }
        }
        await patient.shutdown()
        await quick.shutdown()
        await service.close()
    }

    @Test("connections to the service are kept")
    func connections() async throws {
        let service = try await PlayedService()
        service.begin([
            try JSONFields(["status": 200, "body": #"{"verified": false, "observed": "INVALID_REQUEST"}"#])
        ])
        let verifier = try verifier(BackendVectors.configuration("origin", service: service.url))
        for _ in 0..<50 { _ = await verifier.verify(BackendVectors.request()) }
        #expect(service.connections == 1)
        await verifier.shutdown()
        guard case .unavailable = await verifier.verify(BackendVectors.request()) else {
            Issue.record("a verifier that was shut down gives an answer")
            return
        }
        await service.close()
    }

    @Test("a status below 100 is no answer, and the next one is read")
    func statuses() async throws {
        let service = try await PlayedService()
        let verifier = try verifier(BackendVectors.configuration("origin", service: service.url))
        let good = try JSONFields(["status": 200, "body": #"{"verified": false, "observed": "INVALID_REQUEST"}"#])
        for status: JSONValue in [0, 42, 99] {
            let bad = try JSONFields(["status": status, "body": "{}"])
            service.begin([bad])
            guard case .unavailable = await verifier.verify(BackendVectors.request()) else {
                Issue.record("\(status)")
                continue
            }
            service.begin([bad, good])
            #expect(await verifier.verify(BackendVectors.request()).observedCode == "INVALID_REQUEST", "\(status)")
        }
        await verifier.shutdown()
        await service.close()
    }

    private func verifier(_ configuration: RequestVerifierConfiguration) throws -> RequestVerifier {
        try RequestVerifier(configuration, pause: { _ in }, now: { UnixTime(1) })
    }

    private func expect(_ answer: VerificationAnswer, passes: JSONFields, _ name: String) throws {
        if let code = try passes.optionalString("observed") {
            #expect(answer == .observed(code: code), "\(name)")
            return
        }
        let identity = try #require(answer.identity, "\(name)")
        let expected = try passes.object("identity")
        #expect(identity.appID.text == (try expected.string("app_id")), "\(name)")
        #expect(identity.deviceID.text == (try expected.string("device_id")), "\(name)")
        #expect(identity.platform.rawValue == (try expected.string("platform")), "\(name)")
        #expect(identity.assurance == (try Assurance(expected.object("assurance"))), "\(name)")
        #expect(Int64(identity.signatureScheme.rawValue) == (try expected.integer("signature_scheme")), "\(name)")
        #expect(identity.keyAgeSeconds == (try expected.integer("key_age_seconds")), "\(name)")
    }

    private func expect(
        _ answer: VerificationAnswer, refused: JSONFields, _ item: JSONFields, _ name: String
    ) throws {
        let refusal = try #require(answer.refusal, "\(name)")
        #expect(Int64(refusal.status) == (try refused.integer("status")), "\(name)")
        #expect(refusal.headers.values("X-Synheart-Error") == [try refused.string("error")], "\(name)")
        #expect(refusal.headers.values("Cache-Control") == ["no-store"], "\(name)")
        #expect(refusal.headers.values("Content-Type") == ["application/json"], "\(name)")
        #expect(refusal.headers.values("Content-Length") == [String(refusal.body.count)], "\(name)")
        for header in refused.optionalValue("headers")?.object?.members ?? [] {
            #expect(refusal.headers.values(header.name) == (header.value.string.map { [$0] } ?? []), "\(name)")
        }
        let body = try JSONFields(JSONValue(parsing: refusal.body))
        #expect(Set(body.names) == ["error", "message", "request_id", "server_timestamp"], "\(name)")
        #expect(try body.string("error") == refused.string("error"), "\(name)")
        guard case .refused = answer else {
            #expect(refusal.status == 503, "\(name)")
            return
        }
        let sent = try #require(try BackendVectors.cases(item, "answers").last).string("body")
        let said = try JSONFields(JSONValue(parsing: sent))
        for member in body.names { #expect(try body.value(member) == said.value(member), "\(name): \(member)") }
    }
}
