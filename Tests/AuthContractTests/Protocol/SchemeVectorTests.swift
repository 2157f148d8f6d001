import AuthContract
import Crypto
import Testing

/// `docs/vectors/scheme1.json`.
@Suite struct ProtocolSchemeOneVectors {
    struct File: Decodable {
        let messages: [Message]
        let signatures: [Signature]
        let headers: [Headers]
        let paths: [Path]
        let targets: [Target]
    }

    struct Message: Decodable {
        let name: String
        let method: String
        let path: String
        let timestamp: Int64
        let bodyHex: String
        let messageHex: String
        let key: String
        let signature: String
    }

    struct Signature: Decodable {
        let name: String
        let key: String
        let messageHex: String
        let signature: String
        let verifies: Bool
    }

    struct Headers: Decodable {
        let name: String
        let headers: [[String]]
        let valid: Bool
        let error: String?
        let appId: String?
        let deviceId: String?
        let timestamp: Int64?
        let nonce: String?
        let rHex: String?
    }

    struct Path: Decodable {
        let path: String
        let valid: Bool
    }

    struct Target: Decodable {
        let target: String
        let valid: Bool
        let path: String?
        let query: String?
    }

    let file: File
    let keys: [String: ProtocolVectors.Key]

    init() throws {
        file = try ProtocolVectors.load("scheme1")
        keys = try ProtocolVectors.keys()
    }

    @Test("messages are those of the vector, and their signatures verify")
    func messages() throws {
        for item in file.messages {
            let bytes = SchemeOneMessage.bytes(
                method: item.method, path: item.path, timestamp: UnixTime(item.timestamp), body: hex(item.bodyHex))
            #expect(bytes == hex(item.messageHex), "\(item.name)")
            let key = try #require(keys[item.key]).verifying()
            #expect(try RequestSignature(base64: item.signature).isValid(for: bytes, by: key), "\(item.name)")
        }
    }

    @Test("each signature verifies or not, as the vector says")
    func signatures() throws {
        for item in file.signatures {
            let (signature, key) = (try RequestSignature(base64: item.signature), try #require(keys[item.key]))
            #expect(
                signature.isValid(for: hex(item.messageHex), by: try key.verifying()) == item.verifies, "\(item.name)")
        }
    }

    @Test("headers are read, with the r and nonce that a verifier claims")
    func headers() {
        for item in file.headers {
            let fields = HeaderFields(item.headers.map { ($0[0], $0[1]) })
            #expect(code { try SignatureHeaders(fields) } == item.error, "\(item.name)")
            let headers = parsed { try SchemeOneHeaders(fields) }
            #expect((headers != nil) == item.valid && headers?.appID.text == item.appId, "\(item.name)")
            #expect(headers?.deviceID.text == item.deviceId, "\(item.name)")
            #expect(headers?.timestamp.seconds == item.timestamp && headers?.nonce.text == item.nonce, "\(item.name)")
            #expect(headers.map { Array($0.signature.r) } == item.rHex.map(hex), "\(item.name)")
        }
    }

    @Test("paths stay as sent or are refused")
    func paths() {
        for item in file.paths {
            #expect(parsed { try RequestPath(item.path) }?.text == (item.valid ? item.path : nil), "\(item.path)")
        }
    }

    @Test("targets are split into path and query or refused")
    func targets() {
        for item in file.targets {
            let target = parsed { try RequestTarget(item.target) }
            #expect((target != nil) == item.valid && target?.path.text == item.path, "\(item.target)")
            #expect(target?.query == item.query, "\(item.target)")
        }
    }
}

/// `docs/vectors/scheme2.json`.
@Suite struct ProtocolSchemeTwoVectors {
    struct File: Decodable {
        let origins: [Origin]
        let contentDigests: [Digest]
        let bases: [Base]
        let signatures: [Signature]
        let headers: [Headers]
    }

    struct Origin: Decodable {
        let scheme: String
        let authority: String
        let valid: Bool
        let normalScheme: String?
        let normalAuthority: String?
    }

    struct Digest: Decodable {
        let bodyHex: String
        let contentDigest: String
    }

    struct Base: Decodable {
        let name: String
        let method: String
        let scheme: String
        let authority: String
        let path: String
        let query: String?
        let bodyHex: String
        let appId: String
        let deviceId: String
        let contentDigest: String
        let signatureParams: String
        let signatureBase: String
        let claimHex: String
        let key: String
        let signature: String
    }

    struct Signature: Decodable {
        let name: String
        let key: String
        let signatureBase: String
        let signature: String
        let verifies: Bool
    }

    struct Headers: Decodable {
        let name: String
        let headers: [[String]]
        let valid: Bool
        let error: String?
        let appId: String?
        let deviceId: String?
        let created: Int64?
        let nonce: String?
        let keyid: String?
        let signatureParams: String?
    }

    let file: File
    let keys: [String: ProtocolVectors.Key]

    init() throws {
        file = try ProtocolVectors.load("scheme2")
        keys = try ProtocolVectors.keys()
    }

    @Test("origins are normalised or refused")
    func origins() {
        for item in file.origins {
            let origin = parsed { try RequestOrigin(scheme: item.scheme, authority: item.authority) }
            #expect((origin != nil) == item.valid, "\(item)")
            #expect(
                origin?.scheme.rawValue == item.normalScheme && origin?.authority == item.normalAuthority, "\(item)")
        }
    }

    @Test("Content-Digest is the one of the vector")
    func contentDigests() {
        for item in file.contentDigests { #expect(ContentDigest(of: hex(item.bodyHex)).field == item.contentDigest) }
    }

    @Test("signature bases and claims are those of the vector, and their signatures verify")
    func bases() throws {
        for item in file.bases {
            // Parses a client's headers, as a verifier does.
            let headers = try SchemeTwoHeaders(
                HeaderFields([
                    ("X-App-ID", item.appId), ("X-Device-ID", item.deviceId), ("Content-Digest", item.contentDigest),
                    ("Signature-Input", "synheart=\(item.signatureParams)"),
                    ("Signature", "synheart=:\(item.signature):"),
                ]))
            #expect(headers.contentDigest == ContentDigest(of: hex(item.bodyHex)), "\(item.name)")
            let base = try headers.base(
                method: item.method, origin: RequestOrigin(scheme: item.scheme, authority: item.authority),
                target: RequestTarget(path: RequestPath(item.path), query: item.query))
            #expect(String(decoding: base.bytes, as: UTF8.self) == item.signatureBase, "\(item.name)")
            #expect(base.digest == hex(item.claimHex), "\(item.name)")
            let key = try #require(keys[item.key]).verifying()
            #expect(headers.signature.isValid(for: base.bytes, by: key), "\(item.name)")
            #expect(headers.parameters.keyID == key.thumbprint, "\(item.name)")
        }
    }

    @Test("each signature verifies or not, as the vector says")
    func signatures() throws {
        for item in file.signatures {
            let signature = try RequestSignature(raw: [UInt8](base64: item.signature))
            let key = try #require(keys[item.key]).verifying()
            #expect(
                signature.isValid(for: Array(item.signatureBase.utf8), by: key) == item.verifies, "\(item.name)")
        }
    }

    @Test("headers are read or refused, as the vector says")
    func headers() {
        for item in file.headers {
            let fields = HeaderFields(item.headers.map { ($0[0], $0[1]) })
            #expect(code { try SignatureHeaders(fields) } == item.error, "\(item.name)")
            let headers = parsed { try SchemeTwoHeaders(fields) }
            #expect((headers != nil) == item.valid && headers?.appID.text == item.appId, "\(item.name)")
            #expect(headers?.deviceID.text == item.deviceId, "\(item.name)")
            #expect(headers?.parameters.created.seconds == item.created, "\(item.name)")
            #expect(headers?.parameters.nonce == item.nonce && headers?.parameters.keyID == item.keyid, "\(item.name)")
            // The signature covers `Signature-Input` as the verifier serializes it, which may differ from the sent text.
            let base = headers.flatMap { headers in
                parsed {
                    try headers.base(
                        method: "GET", origin: RequestOrigin("https://api.example.com"), target: RequestTarget("/"))
                }
            }
            let line = base.flatMap { String(decoding: $0.bytes, as: UTF8.self).split(separator: "\n").last }.map(
                String.init)
            #expect(line == item.signatureParams.map { "\"@signature-params\": \($0)" }, "\(item.name)")
        }
    }
}
