import Foundation
import Hummingbird
import RequestVerification
import RequestVerificationHummingbird

let environment = ProcessInfo.processInfo.environment
let verifier = try RequestVerifier(
    RequestVerifierConfiguration(
        service: environment["AUTH_SERVICE"] ?? "https://auth.example.com",
        credential: environment["SYNHEART_CREDENTIAL"] ?? "", source: .origin("https://api.example.com")))

@Sendable func hello(_ request: Request, context: VerifiedRequestContext) -> String {
    "hello \(context.identity?.deviceID.text ?? "unknown device")\n"
}

let router = Router(context: VerifiedRequestContext.self)
router.add(middleware: VerificationMiddleware(verifier))
router.get("hello", use: hello)
router.post("hello", use: hello)
let port = environment["PORT"].flatMap { Int($0) } ?? 8000
let application = Application(router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)))
try await application.runService()
