import AuthContract
import Crypto
import Foundation
import StrictJSON
import Testing

/// The worked examples of `docs/protocol.md`: fenced blocks below a comment `<!-- example: NAME -->`.
@Suite struct ProtocolDocumentExamples {
    private let examples: [String: String]
    private let device: Device
    private let nonce: BindingNonce

    /// The example device.
    private struct Device: Decodable {
        let appId: String
        let deviceId: String
        let key: ProtocolVectors.JWK
        let newKey: ProtocolVectors.JWK
    }

    private struct Missing: Error { let example: String }

    init() throws {
        examples = try Self.read()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        device = try decoder.decode(Device.self, from: Data((examples["device"] ?? "").utf8))
        nonce = BindingNonce(
            challenge: try [UInt8](base64: examples["challenge"] ?? "-"),
            publicKeyText: try device.key.verifying().base64)
    }

    private static func read() throws -> [String: String] {
        let file = ProtocolVectors.documentation.appendingPathComponent("protocol.md")
        let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        var examples: [String: String] = [:]
        for (index, line) in lines.enumerated() where line.hasPrefix("<!-- example: ") {
            let name = String(line.dropFirst("<!-- example: ".count).dropLast(" -->".count))
            let block = lines[(index + 1)...]
            guard block.first?.hasPrefix("```") == true, let end = block.dropFirst().firstIndex(of: "```"),
                examples[name] == nil
            else { throw Missing(example: name) }
            examples[name] = lines[(index + 2)..<end].joined(separator: "\n")
        }
        return examples
    }

    // MARK: Reading examples

    private func text(_ name: String) throws -> String {
        guard let text = examples[name] else { throw Missing(example: name) }
        return text
    }

    /// Reads a dump. Each line has an offset, bytes in hexadecimal, and the same bytes as text between bars.
    private func dump(_ name: String) throws -> [UInt8] {
        let lines = try text(name).split(separator: "\n")
        let bytes = lines.flatMap { line in hex(String(line.dropFirst(6).prefix { $0 != "|" })) }
        for (index, line) in lines.enumerated() {
            let shown = bytes.dropFirst(16 * index).prefix(16).map {
                0x20...0x7E ~= $0 ? Character(UnicodeScalar($0)) : "."
            }
            #expect(line.hasSuffix("|\(String(shown))|"), "\(name)")
            #expect(line.hasPrefix(String(repeating: "0", count: 4 - String(16 * index, radix: 16).count)), "\(name)")
        }
        return bytes
    }

    /// A request as sent.
    private struct Request {
        let method: String
        let target: RequestTarget
        let headers: HeaderFields
        let body: [UInt8]
    }

    private func request(_ name: String) throws -> Request {
        let parts = try text(name).components(separatedBy: "\n\n")
        let lines = parts[0].split(separator: "\n").map(String.init)
        let start = lines[0].split(separator: " ").map(String.init)
        let headers = HeaderFields(
            lines.dropFirst().map { line in
                let colon = line.firstIndex(of: ":") ?? line.endIndex
                return (String(line[..<colon]), String(line[colon...].dropFirst()))
            })
        let body = Array(parts.dropFirst().joined(separator: "\n\n").utf8)
        #expect(try headers.one("Content-Length") == "\(body.count)", "\(name)")
        return Request(method: start[0], target: try RequestTarget(start[1]), headers: headers, body: body)
    }

    // MARK: Recomputing examples

    @Test("each example of the document is recomputed by a test")
    func names() {
        #expect(
            examples.keys.sorted() == [
                "assertion-hash", "assertion-header", "binding-nonce", "challenge", "device", "key-proof",
                "key-proof-message", "new-key-proof", "new-key-proof-message", "play-nonce", "public-key",
                "public-key-bytes",
                "register-request", "rotate-request", "rotation-nonce", "scheme1-der", "scheme1-digest",
                "scheme1-message", "scheme1-r", "scheme1-request", "scheme2-base", "scheme2-claim", "scheme2-request",
                "scheme2-signature-bytes", "thumbprint", "thumbprint-input", "token", "token-claims", "token-header",
                "verify-request",
            ])
    }

    @Test("the key, its thumbprint and the private keys belong together")
    func keys() throws {
        let key = try device.key.verifying()
        #expect(try text("public-key") == key.base64)
        #expect(try dump("public-key-bytes") == key.spki)
        #expect(try text("thumbprint") == key.thumbprint)
        let digest = Array(SHA256.hash(data: Array(try text("thumbprint-input").utf8)))
        #expect(Base64.url.encode(digest) == key.thumbprint)
        for jwk in [device.key, device.newKey] {
            let secret = try #require(jwk.d.flatMap { Base64.url.decode($0) })
            let derived = DevicePublicKey(try P256.Signing.PrivateKey(rawRepresentation: secret).publicKey)
            #expect(try jwk.verifying() == derived)
        }
    }

    @Test("the registration example has its nonce and key proof")
    func registration() throws {
        #expect(try hex(text("binding-nonce")) == nonce.bytes)
        #expect(try text("play-nonce") == nonce.playIntegrityText)
        let message = try dump("key-proof-message")
        #expect(message == KeyProof.registration(nonce))
        let proof = try RequestSignature(base64: text("key-proof"))
        #expect(proof.isValid(for: message, by: try device.key.verifying()))
        let request = try request("register-request")
        #expect(request.method == "POST" && request.target.path.text == Route.register.rawValue)
        let body = try RegisterRequest(parsing: request.body)
        #expect(body.appID.text == device.appId && body.platform == .ios && body.keyProof == proof.der)
        #expect(BindingNonce(challenge: body.challenge, publicKeyText: body.publicKeyText) == nonce)
    }

    @Test("the scheme 1 example has its message, digest, DER, r and clientDataHash")
    func schemeOne() throws {
        let request = try request("scheme1-request")
        let headers = try SchemeOneHeaders(request.headers)
        #expect(headers.appID.text == device.appId && headers.deviceID.text == device.deviceId)
        let message = SchemeOneMessage.bytes(
            method: request.method, path: request.target.path.text, timestamp: headers.timestamp, body: request.body)
        #expect(try dump("scheme1-message") == message)
        #expect(headers.signature.isValid(for: message, by: try device.key.verifying()))
        #expect(try dump("scheme1-der") == headers.signature.der)
        #expect(try hex(text("scheme1-r")) == Array(headers.signature.r))
        let digest = Array(SHA256.hash(data: message))
        #expect(try hex(text("scheme1-digest")) == digest)
        #expect(try hex(text("assertion-hash")) == digest)
        let vectors = try JSONValue(parsing: ProtocolVectors.bytes("assertions"), limits: .init(bytes: 1 << 20))
        let lines = vectors.object?["requests"]?.array?.first?.object?["request"]?.object?["headers"]?.array
        let value = lines?.last?.array?.last?.string
        #expect(try text("assertion-header") == "\(HeaderName.assertion): \(value ?? "")")
    }

    @Test("the scheme 2 example has its base, signature and claim")
    func schemeTwo() throws {
        let request = try request("scheme2-request")
        let headers = try SchemeTwoHeaders(request.headers)
        #expect(headers.appID.text == device.appId && headers.deviceID.text == device.deviceId)
        #expect(headers.contentDigest == ContentDigest(of: request.body))
        let key = try device.key.verifying()
        #expect(headers.parameters.keyID == key.thumbprint)
        let origin = try RequestOrigin(scheme: "https", authority: request.headers.one("Host"))
        let base = try headers.base(method: request.method, origin: origin, target: request.target)
        #expect(try text("scheme2-base") == String(decoding: base.bytes, as: UTF8.self))
        #expect(headers.signature.isValid(for: base.bytes, by: key))
        #expect(try dump("scheme2-signature-bytes") == headers.signature.raw)
        #expect(try hex(text("scheme2-claim")) == base.digest)
    }

    @Test("the rotation example has its proof and nonce, and the old key signs it")
    func rotation() throws {
        let newKey = try device.newKey.verifying()
        let deviceID = try DeviceID(device.deviceId)
        let message = KeyProof.rotation(deviceID: deviceID, newPublicKeyText: newKey.base64)
        #expect(try Array(text("new-key-proof-message").utf8) == message)
        let proof = try RequestSignature(base64: text("new-key-proof"))
        #expect(proof.isValid(for: message, by: newKey))
        let nonce = BindingNonce(
            rotationChallenge: try [UInt8](base64: text("challenge")), deviceID: deviceID,
            newPublicKeyText: newKey.base64)
        #expect(try hex(text("rotation-nonce")) == nonce.bytes)

        let request = try request("rotate-request")
        #expect(request.method == "POST" && request.target.path.text == Route.rotateKey.rawValue)
        let headers = try SchemeOneHeaders(request.headers)
        let signed = SchemeOneMessage.bytes(
            method: request.method, path: request.target.path.text, timestamp: headers.timestamp, body: request.body)
        #expect(headers.signature.isValid(for: signed, by: try device.key.verifying()))
        let body = try RotateKeyRequest(parsing: request.body)
        #expect(body.appID.text == device.appId && body.deviceID == deviceID && body.reason == .scheduled)
        #expect(body.newPublicKeyText == newKey.base64 && body.newKeyProof == proof.der)
    }

    @Test("the token example verifies and has its claims")
    func token() throws {
        let parts = try text("token").split(separator: ".").map { Base64.url.decode($0) ?? [] }
        try #require(parts.count == 3)
        #expect(try JSONValue(parsing: parts[0]) == JSONValue(parsing: text("token-header")))
        #expect(try JSONValue(parsing: parts[1]) == JSONValue(parsing: text("token-claims")))
        let vectors = try JSONValue(parsing: ProtocolVectors.bytes("tokens"), limits: .init(bytes: 1 << 20))
        #expect(try vectors.object?["tokens"]?.array?.first?.object?["token"] == .string(text("token")))
    }

    @Test("the verify example is the request of scheme 1")
    func verify() throws {
        let asked = try VerifyRequest(parsing: Array(text("verify-request").utf8))
        let request = try request("scheme1-request")
        #expect(asked.method == request.method && asked.path == request.target.path.text && asked.query == nil)
        #expect(asked.body == .bytes(request.body) && asked.scheme == "https")
        #expect(try asked.authority == request.headers.one("Host"))
        let sent = request.headers.lines.filter { $0.name.hasPrefix("X-") }
        #expect(asked.headers.lines == sent)
    }
}
