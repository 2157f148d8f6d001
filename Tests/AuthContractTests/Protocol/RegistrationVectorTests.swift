import AuthContract
import Crypto
import StrictJSON
import Testing

/// `docs/vectors/registration.json`, `rotation.json` and `assertions.json`.
@Suite struct ProtocolRegistrationVectors {
    struct Registration: Decodable {
        let bindings: [Binding]
        let keyProofs: [KeyProofCase]

        struct Binding: Decodable {
            let name: String
            let challenge: String
            let challengeHex: String
            let publicKey: String
            let bindingNonceHex: String
            let playNonce: String
            let keyProofMessageHex: String
        }

        struct KeyProofCase: Decodable {
            let name: String
            let publicKey: String
            let bindingNonceHex: String
            let keyProof: String
            let verifies: Bool
        }
    }

    struct Rotation: Decodable {
        let newKeyProofs: [Proof]
        let rotationNonces: [Nonce]
        let bodies: [Body]

        struct Proof: Decodable {
            let name: String
            let deviceId: String
            let newPublicKey: String
            let messageHex: String
            let newKeyProof: String
            let verifies: Bool
        }

        struct Nonce: Decodable {
            let name: String
            let challenge: String
            let deviceId: String
            let newPublicKey: String
            let rotationNonceHex: String
            let playNonce: String
        }

        struct Body: Decodable {
            let name: String
            let valid: Bool
            let reason: String?
        }
    }

    struct Assertions: Decodable {
        let clientDataHashes: [Hash]
        let fields: [Field]
        let requests: [Request]

        struct Field: Decodable {
            let text: String
            let required: Bool
            let prefix: String?
        }

        struct Request: Decodable {
            let name: String
            let signedHex: String
            let clientDataHashHex: String
            let error: String?
        }

        struct Hash: Decodable {
            let name: String
            let signedHex: String
            let clientDataHashHex: String
        }
    }

    @Test("the binding nonce and the message of key_proof are those of the vector")
    func bindings() throws {
        let file: Registration = try ProtocolVectors.load("registration")
        for item in file.bindings {
            let challenge = try [UInt8](base64: item.challenge)
            let nonce = BindingNonce(challenge: challenge, publicKeyText: item.publicKey)
            #expect(challenge == hex(item.challengeHex) && nonce.bytes == hex(item.bindingNonceHex), "\(item.name)")
            #expect(nonce.playIntegrityText == item.playNonce, "\(item.name)")
            #expect(KeyProof.registration(nonce) == hex(item.keyProofMessageHex), "\(item.name)")
        }
    }

    @Test("key_proof is a DER signature by the new key over the message")
    func keyProofs() throws {
        let file: Registration = try ProtocolVectors.load("registration")
        for item in file.keyProofs {
            let message = KeyProof.registration(try BindingNonce(bytes: hex(item.bindingNonceHex)))
            let proof = parsed { try RequestSignature(base64: item.keyProof) }
            let verifies = proof?.isValid(for: message, by: try DevicePublicKey(base64: item.publicKey)) ?? false
            #expect(verifies == item.verifies, "\(item.name)")
        }
    }

    @Test("new_key_proof is a DER signature by the new key over its message")
    func newKeyProofs() throws {
        let file: Rotation = try ProtocolVectors.load("rotation")
        for item in file.newKeyProofs {
            let message = KeyProof.rotation(
                deviceID: try DeviceID(item.deviceId), newPublicKeyText: item.newPublicKey)
            #expect(message == hex(item.messageHex), "\(item.name)")
            let proof = parsed { try RequestSignature(base64: item.newKeyProof) }
            let verifies = proof?.isValid(for: message, by: try DevicePublicKey(base64: item.newPublicKey)) ?? false
            #expect(verifies == item.verifies, "\(item.name)")
        }
    }

    @Test("the rotation nonce is the one of the vector")
    func rotationNonces() throws {
        let file: Rotation = try ProtocolVectors.load("rotation")
        for item in file.rotationNonces {
            let nonce = BindingNonce(
                rotationChallenge: try [UInt8](base64: item.challenge), deviceID: try DeviceID(item.deviceId),
                newPublicKeyText: item.newPublicKey)
            #expect(nonce.bytes == hex(item.rotationNonceHex), "\(item.name)")
            #expect(nonce.playIntegrityText == item.playNonce, "\(item.name)")
        }
    }

    @Test("bodies of rotations are read or refused")
    func rotationBodies() throws {
        let file: Rotation = try ProtocolVectors.load("rotation")
        // The bodies exactly as in the file: a typed copy would omit unknown members.
        let raw = try JSONValue(parsing: ProtocolVectors.bytes("rotation"), limits: .init(bytes: 1 << 20))
        let bodies = (raw.object?["bodies"]?.array ?? []).compactMap { $0.object?["body"] }
        #expect(bodies.count == file.bodies.count)
        for (item, body) in zip(file.bodies, bodies) {
            let request = parsed { try RotateKeyRequest(parsing: body.bytes) }
            #expect((request != nil) == item.valid && request?.reason.rawValue == item.reason, "\(item.name)")
        }
    }

    @Test("the clientDataHash of an assertion is the SHA-256 of the signed bytes")
    func clientDataHashes() throws {
        let file: Assertions = try ProtocolVectors.load("assertions")
        for item in file.clientDataHashes {
            #expect(Array(SHA256.hash(data: hex(item.signedHex))) == hex(item.clientDataHashHex), "\(item.name)")
        }
    }

    @Test("a client reads X-Synheart-Assertion of a refusal as its case says")
    func assertionFields() throws {
        let file: Assertions = try ProtocolVectors.load("assertions")
        for item in file.fields {
            let demand = parsed { try AssertionDemand(headerValue: item.text) }
            #expect((demand != nil) == item.required && demand?.prefix == item.prefix, "\(item.text)")
        }
    }

    @Test("the signed bytes of a request with an assertion are those of its vector, and its header is base64 once")
    func assertionRequests() throws {
        let file: Assertions = try ProtocolVectors.load("assertions")
        let json = try JSONValue(parsing: ProtocolVectors.bytes("assertions"), limits: .init(bytes: 1 << 20))
        let requests = try #require(json.object?["requests"]?.array)
        for (item, json) in zip(file.requests, requests) {
            let asked = try VerifyRequest(parsing: #require(json.object?["request"]).bytes)
            let body: [UInt8] = if case .bytes(let bytes) = asked.body { bytes } else { [] }
            let target = try RequestTarget(path: RequestPath(asked.path), query: asked.query)
            let signed: [UInt8] =
                switch try SignatureHeaders(asked.headers) {
                case .one(let headers):
                    SchemeOneMessage.bytes(
                        method: asked.method, path: asked.path, timestamp: headers.timestamp, body: body)
                case .two(let headers):
                    try headers.base(
                        method: asked.method, origin: RequestOrigin(scheme: asked.scheme, authority: asked.authority),
                        target: target
                    ).bytes
                }
            #expect(signed == hex(item.signedHex), "\(item.name)")
            #expect(Array(SHA256.hash(data: signed)) == hex(item.clientDataHashHex), "\(item.name)")
            let value = parsed { try asked.headers.one(HeaderName.assertion) }
            let assertion = value.flatMap { Base64.standard.decode($0) }
            #expect((assertion == nil) == (item.error == "INVALID_REQUEST"), "\(item.name)")
        }
    }
}
