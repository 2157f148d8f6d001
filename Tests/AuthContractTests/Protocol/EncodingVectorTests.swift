import AuthContract
import Crypto
import Foundation
import StrictJSON
import Testing

/// `docs/vectors/keys.json` and `encodings.json`.
@Suite struct ProtocolEncodingVectors {
    struct Text: Decodable {
        let text: String
        let valid: Bool
        let canonical: String?
        let seconds: Int64?
        let bytesHex: String?
    }

    struct PublicKey: Decodable {
        let name: String
        let text: String
        let valid: Bool
        let publicKey: String?
        let thumbprint: String?
    }

    struct Signature: Decodable {
        let name: String
        let text: String
        let valid: Bool
        let rHex: String?
        let sHex: String?
    }

    struct ChallengeBody: Decodable {
        let name: String
        let bodyHex: String
        let valid: Bool
        let purpose: String?
    }

    struct File: Decodable {
        let appIds: [Text]
        let deviceIds: [Text]
        let requestNonces: [Text]
        let timestamps: [Text]
        let times: [Text]
        let base64: [Text]
        let base64url: [Text]
        let publicKeys: [PublicKey]
        let signatures: [Signature]
        let challengeRequests: [ChallengeBody]
    }

    let file: File

    init() throws { file = try ProtocolVectors.load("encodings") }

    @Test("every file of docs/vectors is one that a test runs, here or in another room")
    func files() throws {
        let here = [
            "assertions", "encodings", "errors", "keys", "registration", "rotation", "scheme1", "scheme2", "tokens",
        ]
        let elsewhere = ["access", "backend", "clock", "policies", "requests", "retry", "states"]
        let found = try FileManager.default.contentsOfDirectory(atPath: ProtocolVectors.folder.path)
        #expect(found.filter { $0.hasSuffix(".json") }.sorted() == (here + elsewhere).map { "\($0).json" }.sorted())
    }

    @Test("private key, public key, point and thumbprint belong together")
    func keys() throws {
        let keys = try ProtocolVectors.keys()
        #expect(keys.keys.sorted() == ["attest", "device", "next", "service"])
        for key in keys.values {
            let derived = DevicePublicKey(try key.signing().publicKey)
            #expect(derived.base64 == key.publicKey, "\(key.name)")
            #expect(try key.jwk.verifying() == derived, "\(key.name)")
            #expect(derived.x963 == hex(key.x963Hex) && derived.thumbprint == key.thumbprint, "\(key.name)")
            let digest = Array(SHA256.hash(data: Array(key.thumbprintInput.utf8)))
            #expect(Base64.url.encode(digest) == key.thumbprint, "\(key.name)")
            #expect(key.jwk.kty == "EC" && key.jwk.crv == "P-256")
        }
    }

    @Test("app ids, device ids and nonces are read or refused")
    func ids() {
        for item in file.appIds { #expect(parsed { try AppID(item.text) }?.text == item.accepted, "\(item)") }
        for item in file.deviceIds { #expect(parsed { try DeviceID(item.text) }?.text == item.accepted, "\(item)") }
        for item in file.requestNonces {
            #expect(parsed { try RequestNonce(item.text) }?.text == item.canonical, "\(item)")
            #expect((item.canonical != nil) == item.valid)
        }
    }

    @Test("timestamps and ISO 8601 times are read and written")
    func times() {
        for item in file.timestamps {
            #expect(parsed { try UnixTime(header: item.text) }?.seconds == item.seconds, "\(item)")
        }
        for item in file.times {
            let time = parsed { try UnixTime(iso8601: item.text) }
            #expect(time?.seconds == item.seconds && time?.iso8601 == item.accepted, "\(item)")
        }
        for item in file.timestamps + file.times { #expect((item.seconds != nil) == item.valid) }
    }

    @Test("base64 and base64url are read and written")
    func base64() {
        for (coder, items) in [(Base64.standard, file.base64), (Base64.url, file.base64url)] {
            for item in items {
                let bytes = coder.decode(item.text)
                #expect(bytes == item.bytesHex.map(hex) && (bytes != nil) == item.valid, "\(item)")
                if let bytes { #expect(coder.encode(bytes) == item.text) }
            }
        }
    }

    @Test("public keys are read in each form and written in one")
    func publicKeys() {
        for item in file.publicKeys {
            let key = parsed { try DevicePublicKey(base64: item.text) }
            #expect(key?.base64 == item.publicKey && (key != nil) == item.valid, "\(item.name)")
            #expect(key?.thumbprint == item.thumbprint, "\(item.name)")
        }
    }

    @Test("DER signatures are read strictly and written the same")
    func signatures() {
        for item in file.signatures {
            let signature = parsed { try RequestSignature(base64: item.text) }
            #expect((signature != nil) == item.valid, "\(item.name)")
            #expect(signature?.raw == item.rHex.map { hex($0) + hex(item.sHex ?? "") }, "\(item.name)")
            if let signature { #expect(signature.base64 == item.text, "\(item.name)") }
        }
    }

    @Test("JSON bodies are read strictly")
    func bodies() {
        for item in file.challengeRequests {
            let body = parsed { try ChallengeRequest(parsing: hex(item.bodyHex)) }
            #expect((body != nil) == item.valid && body?.purpose.rawValue == item.purpose, "\(item.name)")
        }
    }
}

extension ProtocolEncodingVectors.Text {
    /// The text, if it is valid.
    fileprivate var accepted: String? { valid ? text : nil }
}
