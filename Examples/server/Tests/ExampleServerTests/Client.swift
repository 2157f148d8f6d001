import AndroidKeyAttestation
import AppAttest
import AttestationTestKit
import Crypto
import Foundation
import Hummingbird
import Logging
import PlayIntegrity
import Testing

@testable import ExampleServer

/// Calls the server's router without a network. The server's verifiers trust the test kit's simulated Apple and Google.
struct Client {
    static let now = Date(timeIntervalSince1970: 1_780_000_000)
    static let package = "com.example.app"

    let app = AppleApp(appID: "TEAMID1234.com.example.app")
    let apple: AppleAuthority
    let google: GoogleAuthority
    private let responder: RouterResponder<DeviceContext>

    init(hasResponseKeys: Bool = true) throws {
        apple = try AppleAuthority(from: Self.now.addingTimeInterval(-86_400))
        google = try GoogleAuthority.p256()
        let keys = try ResponseKeys(
            decryptionKey: google.decryptionKey, verificationKey: google.verificationKey())
        let gate = Gate(
            apple: AppleVerifiers(
                appID: try #require(AppleAppID(app.appID)),
                trustAnchors: try #require(TrustAnchors(pem: apple.rootsPEM))),
            android: AndroidVerifiers(
                package: Self.package, certificateDigest: [UInt8](repeating: 0x11, count: 32),
                responseKeys: hasResponseKeys ? [keys] : [],
                trustAnchors: try KeyAttestationTrustAnchors(pem: google.rootsPEM()), statusList: nil),
            now: { Self.now })
        responder = makeRouter(gate).buildResponder()
    }

    struct Answer {
        let status: Int
        let body: Data

        func decoded<Body: Decodable>(as type: Body.Type) throws -> Body { try JSONDecoder().decode(type, from: body) }

        /// The code of a refusal.
        var code: String? {
            struct Failure: Decodable {
                struct Message: Decodable { let message: String }
                let error: Message
            }
            return try? decoded(as: Failure.self).error.message
        }
    }

    func post(_ path: String, _ body: Data = Data(), authorization: String? = nil) async throws -> Answer {
        var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: path)
        head.headerFields[.authorization] = authorization
        let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body)))
        let context = DeviceContext(source: TestSource())
        let response: Response
        do { response = try await responder.respond(to: request, context: context) } catch let error as HTTPError {
            response = try error.response(from: request, context: context)
        }
        let collected = Collected()
        try await response.body.write(Writer(collected: collected))
        return Answer(status: response.status.code, body: await collected.data)
    }

    func post(_ path: String, json: some Encodable) async throws -> Answer {
        try await post(path, JSONEncoder().encode(json))
    }

    func challenge() async throws -> Data {
        try await post("/challenges").decoded(as: ExampleServer.IssuedChallenge.self).challenge
    }

    private struct TestSource: RequestContextSource {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    }

    private actor Collected {
        var data = Data()
        func append(_ bytes: Data) { data += bytes }
    }

    private struct Writer: ResponseBodyWriter {
        let collected: Collected

        mutating func write(_ buffer: ByteBuffer) async throws {
            await collected.append(Data(buffer.readableBytesView))
        }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}

/// An iPhone with its attested key.
struct Phone {
    let client: Client
    let device: AppleDevice
    var key = AppleAttestKey()

    init(_ client: Client) {
        self.client = client
        device = AppleDevice(system: .iOS("27.0.1"), app: client.app, authority: client.apple)
    }

    func registration(options: AppleAttestationOptions = .init()) async throws -> AppleRegistration {
        let challenge = try await client.challenge()
        return AppleRegistration(
            challenge: challenge, keyID: Data(key.keyID).base64EncodedString(),
            attestation: Data(
                try device.attest(
                    key, clientDataHash: ClientDataHash(hashing: challenge).bytes, at: Client.now, options: options)))
    }

    mutating func authorization(_ id: String, _ path: String, _ body: Data) async throws -> String {
        let challenge = try await client.challenge()
        let message = try SignedRequest(
            authorization: "Device \(id) \(challenge.base64EncodedString()) AA==", method: "POST", path: path,
            body: body
        ).message
        let assertion = try device.assert(&key, clientDataHash: ClientDataHash(hashing: message).bytes)
        return "Device \(id) \(challenge.base64EncodedString()) \(Data(assertion).base64EncodedString())"
    }
}

/// An Android phone with its attested key.
struct AndroidPhone {
    let client: Client
    let key = P256.Signing.PrivateKey()

    func registration(
        token: PlayTokenOptions = .init(), chain: KeyAttestationOptions = .init(), nonce: String? = nil
    ) async throws -> AndroidRegistration {
        let challenge = try await client.challenge()
        let publicKey = key.publicKey.derRepresentation
        return AndroidRegistration(
            challenge: challenge, publicKey: publicKey,
            certificates: try client.google.attest(
                key.publicKey, challenge: Array(challenge), at: Client.now, options: chain
            ).map { Data($0) },
            integrityToken: try client.google.classicToken(
                nonce: nonce ?? AndroidRegistration.nonce(challenge: challenge, publicKey: publicKey), at: Client.now,
                options: token))
    }

    func authorization(_ id: String, _ path: String, _ body: Data) async throws -> String {
        let challenge = try await client.challenge()
        let message = try SignedRequest(
            authorization: "Device \(id) \(challenge.base64EncodedString()) AA==", method: "POST", path: path,
            body: body
        ).message
        let signature = try key.signature(for: message).derRepresentation
        return "Device \(id) \(challenge.base64EncodedString()) \(signature.base64EncodedString())"
    }
}
