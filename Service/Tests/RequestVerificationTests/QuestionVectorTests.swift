import AuthContract
import StrictJSON
import Testing

import class Bytes.Locked

@testable import RequestVerification

@Suite struct QuestionVectorTests {
    private static let answer = ServiceResponse(
        status: 200, headers: HeaderFields(), body: Array(#"{"verified": false, "observed": "INVALID_REQUEST"}"#.utf8))

    @Test("each request of the vectors is asked about as they say, or refused")
    func questions() async throws {
        var ids: Set<String> = []
        let cases = try BackendVectors.cases(BackendVectors.document(), "questions")
        #expect(cases.count >= 55)
        for item in cases {
            let name = try item.string("name")
            let asked = Locked<[ServiceRequest]>([])
            let verifier = try RequestVerifier(
                BackendVectors.configuration(item.string("instance")),
                exchange: { request in
                    asked.withLock { $0.append(request) }
                    return Self.answer
                }, pause: { _ in }, now: { UnixTime(0) })
            let request = try BackendVectors.request(item.object("request"))
            let answer = await verifier.verify(request)
            let questions = asked.withLock { $0 }
            guard let expected = item.optionalValue("asked") else {
                let refused = try item.object("refused")
                #expect(questions.isEmpty, "\(name)")
                #expect(answer.refusal != nil, "\(name)")
                if let code = try refused.optionalString("error") {
                    #expect(answer.refusal?.code == code, "\(name)")
                    #expect(answer.refusal.map { Int64($0.status) } == (try refused.integer("status")), "\(name)")
                }
                continue
            }
            #expect(answer == .observed(code: "INVALID_REQUEST"), "\(name)")
            try #require(questions.count == 1, "\(name)")
            let question = try VerifyRequest(parsing: try #require(questions[0].body))
            let id = try #require(question.verificationID)
            #expect(ids.insert(id).inserted, "\(name): an id is used again")
            #expect(Normal(question) == Normal(try VerifyRequest(JSONFields(expected))), "\(name)")
        }
    }

    @Test("identity headers of the vectors' requests do not reach the app")
    func identityHeaders() throws {
        for item in try BackendVectors.cases(BackendVectors.document(), "questions") {
            var headers = try BackendVectors.request(item.object("request")).headers
            headers.removeIdentityHeaders()
            let claims = headers.lines.filter {
                $0.name.lowercased().contains("verified") || $0.name.lowercased().contains("identity")
            }
            #expect(claims.isEmpty)
        }
    }

    @Test("a question goes to the service with the credential")
    func addressee() async throws {
        let asked = Locked<[ServiceRequest]>([])
        let verifier = try RequestVerifier(
            BackendVectors.configuration("origin", service: "https://auth.example.com/"),
            exchange: { request in
                asked.withLock { $0.append(request) }
                return Self.answer
            }, pause: { _ in }, now: { UnixTime(0) })
        _ = await verifier.verify(BackendVectors.request())
        let question = try #require(asked.withLock { $0.first })
        #expect(question.url == "https://auth.example.com/auth/v1/verify")
        #expect(question.headers.values("Authorization") == ["Bearer \(BackendVectors.credential)"])
        #expect(question.headers.values("Content-Type") == ["application/json"])
    }

    @Test("a digest in place of the body is passed on, and its length is not compared")
    func digest() throws {
        let rules = try QuestionRules(BackendVectors.configuration("origin"), now: { UnixTime(0) })
        var request = BackendVectors.request()
        let digest = [UInt8](repeating: 7, count: 32)
        request.body = .sha256(digest)
        request.headers.lines.append(.init("Content-Length", "5000000"))
        #expect(try rules.question(about: request, id: "id").body == .sha256(digest))
        request.headers.lines.append(.init("Content-Length", "5000000"))
        #expect(throws: RefusalAnswer.self) { try rules.question(about: request, id: "id") }
    }

    @Test("a request says which scheme signed it, and the digest of its body")
    func schemes() throws {
        var request = BackendVectors.request()
        #expect(!request.usesSchemeTwo)
        #expect(request.contentDigest == nil)
        request.headers.lines.append(.init("signature-input", "synheart=()"))
        request.headers.lines.append(.init("content-digest", ContentDigest(of: [1]).field))
        #expect(request.usesSchemeTwo)
        #expect(request.contentDigest == ContentDigest(of: [1]).sha256)
        request.headers.lines.append(.init("content-digest", ContentDigest(of: [2]).field))
        #expect(request.contentDigest == nil)
        request.headers.lines.append(.init("x-synheart-sig-version", "1"))
        #expect(!request.usesSchemeTwo)
    }

    /// A question to the service in a form for comparison: without its id, and with the headers grouped by lower-case name.
    private struct Normal: Equatable {
        let method: String
        let scheme: String
        let authority: String
        let path: String
        let query: String?
        let headers: [String: [String]]
        let body: VerifyRequest.Body

        init(_ question: VerifyRequest) {
            method = question.method
            scheme = question.scheme
            authority = question.authority
            path = question.path
            query = question.query
            headers = Dictionary(grouping: question.headers.lines) { $0.name.lowercased() }
                .mapValues { $0.map(\.value) }
            body = question.body
        }
    }
}
