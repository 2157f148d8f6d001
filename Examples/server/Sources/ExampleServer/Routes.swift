import Foundation
import Hummingbird

/// The context of a request. `DeviceAuthentication` stores the id of the device that signed the request.
public struct DeviceContext: RequestContext {
    public var coreContext: CoreRequestContextStorage
    var deviceID: String?
    /// The largest accepted body, in bytes. An attestation has about 6 kB, a certificate chain a little more.
    public let maxUploadSize = 64 * 1024

    public init(source: Source) { coreContext = .init(source: source) }

    init(source: some RequestContextSource) { coreContext = .init(source: source) }
}

/// The routes of the server.
///
/// | route | what |
/// |---|---|
/// | `POST /challenges` | a challenge, for one registration or one signed request |
/// | `POST /devices/ios`, `POST /devices/android` | registers a device |
/// | `POST /readings` | a route for registered devices alone |
public func makeRouter(_ gate: Gate) -> Router<DeviceContext> {
    let router = Router(context: DeviceContext.self)
    router.add(middleware: RefusalResponses())
    router.post("challenges") { _, _ in
        EditedResponse(status: .created, response: IssuedChallenge(challenge: await gate.challenge()))
    }
    router.post("devices/ios") { request, context in
        let registration = try await request.decode(as: AppleRegistration.self, context: context)
        return EditedResponse(status: .created, response: RegisteredDevice(id: try await gate.register(registration)))
    }
    router.post("devices/android") { request, context in
        let registration = try await request.decode(as: AndroidRegistration.self, context: context)
        return EditedResponse(status: .created, response: RegisteredDevice(id: try await gate.register(registration)))
    }
    router.group().add(middleware: DeviceAuthentication(gate: gate)).post("readings") { request, context in
        // A real server stores the reading here. The body is the one that the device signed.
        let body = try await request.body.collect(upTo: context.maxUploadSize)
        return ReadingAccepted(device: context.deviceID ?? "", bytes: body.readableBytes)
    }
    return router
}

struct IssuedChallenge: ResponseCodable {
    let challenge: Data
}

struct RegisteredDevice: ResponseCodable {
    let id: String
}

struct ReadingAccepted: ResponseCodable {
    let device: String
    let bytes: Int
}

/// Lets only signed requests of registered devices pass, and tells the routes who signed.
struct DeviceAuthentication: RouterMiddleware {
    let gate: Gate

    func handle(
        _ request: Request, context: DeviceContext, next: (Request, DeviceContext) async throws -> Response
    ) async throws -> Response {
        var (request, context) = (request, context)
        // Collected before verification, because the signature covers the body. The routes read the same bytes.
        let body = try await request.collectBody(upTo: context.maxUploadSize)
        context.deviceID = try await gate.verify(
            SignedRequest(
                authorization: request.headers[.authorization], method: request.method.rawValue,
                path: request.uri.string, body: Data(body.readableBytesView)))
        return try await next(request, context)
    }
}

/// Answers a refusal with its code, and logs its reason.
struct RefusalResponses: RouterMiddleware {
    func handle(
        _ request: Request, context: DeviceContext, next: (Request, DeviceContext) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch let refusal as Refusal {
            context.logger.notice(
                "refused", metadata: ["code": "\(refusal.code.rawValue)", "reason": "\(refusal.reason)"])
            throw HTTPError(refusal.code.status, message: refusal.code.rawValue)
        }
    }
}

extension Refusal.Code {
    var status: HTTPResponse.Status {
        switch self {
        case .badRequest: .badRequest
        case .challengeUnknown, .attestationRefused: .forbidden
        case .couldNotCheck: .serviceUnavailable
        case .keyTaken: .conflict
        case .notAuthenticated: .unauthorized
        }
    }
}
