import AuthContract
import Logging
import StrictJSON
import Testing

import class Bytes.Locked

@testable import RequestVerification

/// The cases `tokens` and `key_sets` of `docs/vectors/backend.json`, and the tokens of `docs/vectors/tokens.json`.
@Suite struct TokenVectorTests {
    /// A service that publishes keys, and the clocks of a verifier.
    private final class Published: Sendable {
        struct State: Sendable {
            var now: Int64 = 0
            var uptime: Int64 = 0
            var keys: JSONValue?
            var spaces = 0
            var cacheControl: String?
            var fetches = 0
        }

        let state = Locked(State())

        func verifier(_ configuration: TokenVerifierConfiguration) throws -> TokenVerifier {
            let state = state
            var configuration = configuration
            configuration.logger.logLevel = .critical
            return try TokenVerifier(
                configuration, exchange: { _ in state.withLock(Self.answer) },
                uptime: { .seconds(state.withLock(\.uptime)) }, now: { UnixTime(state.withLock(\.now)) })
        }

        private static func answer(_ state: inout State) -> ServiceResponse {
            state.fetches += 1
            guard let keys = state.keys else { return ServiceResponse(status: 500, headers: HeaderFields(), body: []) }
            if keys == "redirect" {
                return ServiceResponse(status: 302, headers: HeaderFields([("Location", "/elsewhere")]), body: [])
            }
            let bytes = keys.string.map { Array($0.utf8) } ?? keys.bytes
            let isTooLong = bytes.count + state.spaces > ServiceHTTP.answerLimit
            return ServiceResponse(
                status: 200, headers: HeaderFields(state.cacheControl.map { [("Cache-Control", $0)] } ?? []),
                body: isTooLong ? nil : bytes)
        }
    }

    private func configuration(_ item: JSONFields, _ shared: JSONFields) throws -> TokenVerifierConfiguration {
        func text(_ name: String) throws -> String { try item.optionalString(name) ?? shared.string(name) }
        var configuration = TokenVerifierConfiguration(issuer: try text("issuer"), audience: try text("audience"))
        configuration.tokenType =
            try item.optionalString("token_type") ?? shared.optionalString("token_type") ?? "synheart-device+jwt"
        configuration.channels = Set(
            try item.optionalStrings("channels") ?? shared.optionalStrings("channels") ?? ["production"])
        configuration.leeway = try shared.optionalInteger("leeway") ?? 0
        return configuration
    }

    private func outcome(_ verifier: TokenVerifier, _ token: String) async -> (name: String, token: DeviceToken?) {
        do { return ("valid", try await verifier.verify(token)) } catch .unavailable {
            return ("unavailable", nil)
        } catch { return ("refused", nil) }
    }

    @Test("each token of the vectors is valid or refused, as they say", arguments: ["backend", "tokens"])
    func tokens(_ file: String) async throws {
        let document = try BackendVectors.document(file)
        let shared = try file == "backend" ? document.object("tokens") : document
        let cases = try BackendVectors.cases(shared, file == "backend" ? "cases" : "tokens")
        #expect(cases.count > 10)
        for item in cases {
            let name = try item.string("name")
            let published = Published()
            let (now, keys) = (try item.integer("now"), try shared.value(file == "backend" ? "keys" : "jwks"))
            published.state.withLock {
                $0.now = now
                $0.keys = keys
            }
            let verifier = try published.verifier(configuration(item, shared))
            let found = await outcome(verifier, try item.string("token"))
            #expect(found.name == (try item.bool("valid") ? "valid" : "refused"), "\(name)")
            guard let token = found.token else { continue }
            let part = try item.string("token").split(separator: ".")[1]
            let claims = try JSONFields(JSONValue(parsing: try #require(Base64.url.decode(part))))
            #expect(token.deviceID.text == (try claims.string("sub")), "\(name)")
            #expect(token.appID.text == (try claims.string("app_id")), "\(name)")
            #expect(token.audience == (try claims.string("aud")), "\(name)")
            #expect(token.channel == (try claims.string("channel")), "\(name)")
            #expect(token.platform.rawValue == (try claims.string("platform")), "\(name)")
            #expect(token.assurance == (try Assurance(claims.object("assurance"))), "\(name)")
            #expect(token.issuedAt.seconds == (try claims.integer("iat")), "\(name)")
            #expect(token.expiresAt.seconds == (try claims.integer("exp")), "\(name)")
            #expect(token.tokenID == (try claims.string("jti")), "\(name)")
            #expect(token.deviceKey.thumbprint == (try claims.object("cnf").string("jkt")), "\(name)")
        }
    }

    @Test("keys are read, kept and dropped as the vectors say")
    func keySets() async throws {
        let document = try BackendVectors.document()
        let (shared, sets) = (try document.object("tokens"), try document.object("key_sets"))
        let now = try sets.integer("now")
        for item in try BackendVectors.cases(sets, "cases") {
            let name = try item.string("name")
            let published = Published()
            let verifier = try published.verifier(configuration(item, shared))
            let cacheControl = try item.optionalString("cache_control")
            for step in try BackendVectors.cases(item, "steps") {
                let (at, keys) = (try step.integer("at"), step.optionalValue("keys"))
                let spaces = Int(try step.optionalInteger("spaces") ?? 0)
                published.state.withLock {
                    $0.now = now
                    $0.uptime = at
                    $0.keys = keys
                    $0.spaces = spaces
                    $0.cacheControl = cacheControl
                }
                let found = await outcome(verifier, try step.string("token"))
                #expect(found.name == (try step.string("outcome")), "\(name), at \(at)")
                #expect(
                    Int64(published.state.withLock(\.fetches)) == (try step.integer("fetches")), "\(name), at \(at)")
            }
        }
    }

    @Test("tokens that wait for the keys share one reading")
    func sharedReading() async throws {
        let shared = try BackendVectors.document().object("tokens")
        let item = try #require(try BackendVectors.cases(shared, "cases").first)
        let (token, now, keys) = (try item.string("token"), try item.integer("now"), try shared.value("keys"))
        let fetches = Locked(0)
        let verifier = try TokenVerifier(
            configuration(item, shared),
            exchange: { _ in
                fetches.withLock { $0 += 1 }
                for _ in 0..<100 { await Task.yield() }
                return ServiceResponse(status: 200, headers: HeaderFields(), body: keys.bytes)
            }, uptime: { .zero }, now: { UnixTime(now) })
        let valid = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<32 { group.addTask { (try? await verifier.verify(token)) != nil } }
            return await group.reduce(into: 0) { count, isValid in count += isValid ? 1 : 0 }
        }
        #expect(valid == 32)
        #expect(fetches.withLock { $0 } == 1)
    }
}
