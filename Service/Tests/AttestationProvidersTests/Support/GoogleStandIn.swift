import AttestationTestKit
import AuthContract
import AuthService
import Bytes
import Crypto
import CryptoExtras
import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

@testable import AttestationProviders

/// A stand-in for Google's token endpoint and Play Integrity. It checks each request as Google does.
final class GoogleStandIn: Sendable {
    static let package = "com.example.app"

    let authority: GoogleAuthority
    let clock: ManualClock
    /// Answers that are given before the usual ones.
    let tokenScript = Script()
    let decodeScript = Script()
    /// Answers for one package that always replace the usual ones.
    private let packageAnswers = Locked<[String: StandIn.Answer]>([:])
    private let issued = Locked<[String]>([])
    private let valid = Locked<String?>(nil)
    /// The faults that this stand-in found in requests. A test that expects no fault fails if there is one.
    private let faults = Locked<[String]>([])

    init(clock: ManualClock = ManualClock()) throws {
        authority = try GoogleAuthority()
        self.clock = clock
    }

    var tokensIssued: Int { issued.withLock { $0.count } }
    var complaints: [String] { faults.withLock { $0 } }

    func always(_ answer: StandIn.Answer, for package: String) { packageAnswers.withLock { $0[package] = answer } }

    func withdrawTokens() { valid.withLock { $0 = nil } }

    func answer(_ request: StandIn.Received) -> StandIn.Answer {
        guard request.method == "POST" else { return complain(405, "method \(request.method)") }
        return request.path == "/token" ? issueToken(request) : decode(request)
    }

    private func issueToken(_ request: StandIn.Received) -> StandIn.Answer {
        if let scripted = tokenScript.next() { return scripted }
        guard request["content-type"] == "application/x-www-form-urlencoded" else {
            return complain(400, "content type of the form")
        }
        let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        guard request.text.hasPrefix(prefix), let token = OpenedJWT(request.text.dropFirst(prefix.count)) else {
            return complain(400, "form")
        }
        let account = Self.accountFields
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: account["private_key"]?.string ?? ""),
            key.publicKey.isValidSignature(
                .init(rawRepresentation: token.signature), for: SHA256.hash(data: token.signingInput),
                padding: .insecurePKCS1v1_5)
        else { return complain(400, "signature of the assertion") }
        guard token.header["alg"] == "RS256", token.header["kid"] == account["private_key_id"],
            token.claims["iss"] == account["client_email"],
            token.claims["scope"] == "https://www.googleapis.com/auth/playintegrity",
            token.claims["aud"]?.string?.hasSuffix("/token") == true,
            token.claims["iat"]?.integer == clock.now.seconds, token.claims["exp"]?.integer == clock.now.seconds + 3600
        else { return complain(400, "claims of the assertion") }
        let number = issued.withLock { issued in
            issued.append("ya29.token-\(issued.count + 1)")
            return issued.count
        }
        valid.withLock { $0 = "ya29.token-\(number)" }
        return .text(200, #"{"access_token":"ya29.token-\#(number)","expires_in":3599,"token_type":"Bearer"}"#)
    }

    private func decode(_ request: StandIn.Received) -> StandIn.Answer {
        guard let token = valid.withLock({ $0 }), request["authorization"] == "Bearer \(token)" else {
            return .text(401, #"{"error":{"code":401,"message":"…","status":"UNAUTHENTICATED"}}"#)
        }
        if let scripted = decodeScript.next() { return scripted }
        let package = String(request.path.dropFirst("/v1/".count).prefix { $0 != ":" })
        if let answer = packageAnswers.withLock({ $0[package] }) { return answer }
        guard request["content-type"] == "application/json", request.path == "/v1/\(package):decodeIntegrityToken",
            let body = (try? JSONValue(parsing: request.body))?.object, body.members.count == 1,
            let integrityToken = body["integrityToken"]?.string
        else { return complain(400, "request to decode: \(request.path)") }
        let answer = authority.decodeAnswer(package: package, token: integrityToken)
        return .whole(answer.status, ["content-type": "application/json"], answer.body)
    }

    private func complain(_ status: Int, _ fault: String) -> StandIn.Answer {
        faults.withLock { $0.append(fault) }
        return .text(status, #"{"error":"invalid_request"}"#)
    }

    // MARK: The account of the vectors

    static let vectors: JSONObject = {
        guard let url = Bundle.module.url(forResource: "server-api", withExtension: "json", subdirectory: "Vectors"),
            let data = try? Data(contentsOf: url), let json = (try? JSONValue(parsing: data))?.object
        else { return JSONObject() }
        return json
    }()

    static var accountFields: JSONObject { vectors["service_account_json"]?.object ?? JSONObject() }

    static func account(tokensAt url: String) -> Secret {
        var fields = accountFields
        fields["token_uri"] = .string(url + "/token")
        return Secret(JSONValue.object(fields).text())
    }

    func token() throws -> String {
        try authority.standardToken(
            requestHash: "aGFzaA", at: Date(timeIntervalSince1970: TimeInterval(noon.seconds)))
    }
}

/// The providers, connected to a stand-in.
struct GoogleUnderTest {
    let google: GoogleStandIn
    let service: StandIn
    let providers: GoogleProviders
    let pauses: Pauses
    let log: LogLines

    static func run(
        _ settings: GoogleSettings = .patient, pause: (@Sendable (Duration) async throws -> Void)? = nil,
        _ body: (GoogleUnderTest) async throws -> Void
    ) async throws {
        let google = try GoogleStandIn()
        var settings = settings
        let log = LogLines()
        try await StandIn.run {
            google.answer($0)
        } _: { service in
            try await withHTTP { http in
                let pauses = Pauses()
                settings.playIntegrityURL = service.url
                let providers = GoogleProviders(
                    http: http, lists: RevocationLists(http: http, clock: google.clock), settings: settings,
                    clock: google.clock, random: NoRandom(), pause: pause ?? pauses.pause, logger: log.logger)
                try await body(
                    GoogleUnderTest(google: google, service: service, providers: providers, pauses: pauses, log: log))
            }
        }
    }

    func decode(_ token: String? = nil, by app: String = "com.example.app") async throws -> DecodeResult {
        DecodeResult(
            await providers.decode(
                try token ?? google.token(), package: GoogleStandIn.package, for: try caller(app)))
    }

    func caller(_ app: String = "com.example.app") throws -> IntegrityCaller {
        IntegrityCaller(app: try AppID(app), serviceAccount: GoogleStandIn.account(tokensAt: service.url))
    }

    /// Asks Google about each package until one has a verdict.
    func decode(for packages: [String], _ token: String? = nil) async throws -> DecodeResult {
        DecodeResult(await providers.decode(try token ?? google.token(), packages: packages, for: try caller()))
    }

    var decodings: Int { service.received.count { $0.path != "/token" } }
    /// The requested packages, in order.
    var packages: [String] {
        service.received.filter { $0.path != "/token" }.map { String($0.path.dropFirst(4).prefix { $0 != ":" }) }
    }
}

extension GoogleSettings {
    /// Deadlines that even a busy machine meets. Other tests cover short deadlines.
    static var patient: GoogleSettings {
        var settings = GoogleSettings()
        settings.decodeDeadline = .seconds(100)
        settings.accessTokenDeadline = .seconds(40)
        return settings
    }
}
