import AuthContract
import StrictJSON

extension Body {
    static let all: [Body] = {
        do { return try table() } catch { return [] }
    }()

    static func table() throws -> [Body] {
        let appID = try AppID("com.example.app")
        let deviceID = try DeviceID("123e4567-e89b-42d3-a456-426614174000")
        let bytes = [UInt8](0..<32)
        let time = UnixTime(1_709_312_345)
        let assurance = Assurance(app: .appAttest, key: .appVouched, labels: ["a"])
        let identity = VerifiedIdentity(
            appID: appID, deviceID: deviceID, platform: .ios, assurance: assurance, signatureScheme: .two,
            keyAgeSeconds: 7)
        return [
            Body(
                sample: ChallengeRequest(appID: appID, purpose: .rotate), required: ["app_id"], optional: ["purpose"]
            ) { ChallengeRequest(appID: try $0.appID(), purpose: try $0.choice()) },
            Body(
                sample: ChallengeResponse(challenge: bytes, expiresAt: time, ttlSeconds: 90),
                required: ["challenge", "expires_at", "ttl_seconds"]
            ) { ChallengeResponse(challenge: $0.bytes(32), expiresAt: $0.time(), ttlSeconds: $0.integer()) },
            Body(
                sample: RegisterRequest(
                    appID: appID, publicKeyText: "TUZr", challenge: bytes, platform: .android, proof: "proof",
                    keyProof: bytes, keyAttestation: [bytes, bytes],
                    deviceLocalID: "123E4567-e89b-12d3-a456-426614174000"),
                required: ["app_id", "public_key", "challenge", "platform"],
                // On Android, proof and key attestation are each optional, because the other one may suffice.
                optional: ["proof", "key_proof", "key_attestation", "device_local_id"]
            ) { random in
                RegisterRequest(
                    appID: try random.appID(), publicKeyText: random.text(), challenge: random.bytes(in: 0...64),
                    platform: try random.choice(), proof: random.text(),
                    keyProof: random.perhaps { $0.bytes(in: 0...72) },
                    keyAttestation: random.perhaps { $0.chain() },
                    deviceLocalID: random.perhaps { RandomUUID(from: FixedRandom(byte: $0.bytes(1)[0])).text })
            },
            Body(
                sample: RegisterResponse(deviceID: deviceID, status: .pending), required: ["device_id", "status"]
            ) { RegisterResponse(deviceID: $0.deviceID(), status: try $0.choice()) },
            Body(
                sample: RotateKeyRequest(
                    appID: appID, deviceID: deviceID, newPublicKeyText: "TUZr", reason: .compromise, newKeyProof: bytes,
                    challenge: bytes, assertion: bytes, proof: "proof", keyAttestation: [bytes]),
                required: ["app_id", "device_id", "new_public_key"],
                optional: ["reason", "new_key_proof", "challenge", "assertion", "proof", "key_attestation"]
            ) { random in
                RotateKeyRequest(
                    appID: try random.appID(), deviceID: random.deviceID(), newPublicKeyText: random.text(),
                    reason: try random.choice(), newKeyProof: random.perhaps { $0.bytes(in: 0...72) },
                    challenge: random.perhaps { $0.bytes(32) }, assertion: random.perhaps { $0.bytes(in: 0...200) },
                    proof: random.perhaps { $0.text() }, keyAttestation: random.perhaps { $0.chain() })
            },
            Body(sample: RotateKeyResponse(effectiveAt: time), required: ["status", "effective_at"]) {
                RotateKeyResponse(effectiveAt: UnixTime($0.integer()))
            },
            Body(sample: TokenRequest(audience: "a"), required: [], optional: ["audience"]) {
                TokenRequest(audience: $0.perhaps { $0.text() })
            },
            Body(sample: TokenResponse(token: "t", expiresIn: 600), required: ["token", "token_type", "expires_in"]) {
                TokenResponse(token: $0.text(), expiresIn: $0.integer())
            },
            Body(
                sample: StatusResponse(
                    deviceID: deviceID, status: .registered, platform: .ios, registeredAt: time, keyRotatedAt: time,
                    keyAgeSeconds: 7, keyThumbprint: "x", mustRotate: true, assurance: assurance, serverTimestamp: time),
                required: [
                    "device_id", "status", "platform", "registered_at", "key_age_seconds", "key_thumbprint",
                    "must_rotate", "assurance", "server_timestamp",
                ], optional: ["key_rotated_at"]
            ) { random in
                StatusResponse(
                    deviceID: random.deviceID(), status: try random.choice(), platform: try random.choice(),
                    registeredAt: UnixTime(random.integer()), keyRotatedAt: random.perhaps { UnixTime($0.integer()) },
                    keyAgeSeconds: random.integer(), keyThumbprint: random.text(),
                    mustRotate: Bool.random(using: &random), assurance: try random.assurance(),
                    serverTimestamp: UnixTime(random.integer()))
            },
            Body(sample: assurance, required: ["app", "key"], optional: ["labels"]) { try $0.assurance() },
            Body(
                sample: ErrorBody(
                    code: "CLOCK_SKEW", message: "m", requestID: "r", serverTimestamp: time, verified: false),
                required: ["error", "server_timestamp"], optional: ["message", "request_id", "verified"]
            ) { random in
                ErrorBody(
                    code: try random.one(of: ErrorCode.allCases).rawValue, message: random.text(),
                    requestID: random.text(), serverTimestamp: UnixTime(random.integer()),
                    verified: random.perhaps { Bool.random(using: &$0) })
            },
            Body(
                sample: VerifyRequest(
                    method: "POST", scheme: "https", authority: "example.com", path: "/", query: "a=b",
                    headers: HeaderFields([("X-App-ID", "a")]), body: .bytes([1, 2, 3]),
                    verificationID: "123e4567-e89b-42d3-a456-426614174000", identityAudience: "a"),
                required: ["method", "scheme", "authority", "path", "headers", "body"],
                optional: ["query", "verification_id", "identity_audience"]
            ) { try $0.verifyRequest() },
            Body(
                sample: VerifyResponse.verified(identity),
                required: [
                    "verified", "app_id", "device_id", "platform", "assurance", "signature_scheme", "key_age_seconds",
                ]
            ) { random in
                let identity = try random.identity()
                guard Bool.random(using: &random) else { return .verified(identity) }
                return .observed(try random.choice(), random.perhaps { _ in identity })
            },
        ]
    }
}

extension SeededNumbers {
    mutating func appID() throws -> AppID {
        let length = Int.random(in: 1...128, using: &self)
        let text = String(
            (0..<length).map { _ in "AZaz09._-".randomElement(using: &self) ?? "a" })
        return try AppID(text)
    }

    mutating func deviceID() -> DeviceID { DeviceID(from: FixedRandom(byte: UInt8.random(in: 0...255, using: &self))) }

    mutating func choice<Value: CaseIterable>() throws -> Value { try one(of: Value.allCases) }

    mutating func integer() -> Int64 { Int64.random(in: .min ... .max, using: &self) }

    /// A time that ISO 8601 with a four-digit year can express.
    mutating func time() -> UnixTime { UnixTime(Int64.random(in: 0...253_402_300_799, using: &self)) }

    mutating func chain() -> [[UInt8]] {
        (0..<Int.random(in: 1...RegisterRequest.maximumChain, using: &self)).map { _ in bytes(in: 0...100) }
    }

    mutating func assurance() throws -> Assurance {
        Assurance(
            app: try choice(), key: try choice(),
            labels: (0..<Int.random(in: 0...3, using: &self)).map { _ in text() })
    }

    mutating func identity() throws -> VerifiedIdentity {
        VerifiedIdentity(
            appID: try appID(), deviceID: deviceID(), platform: try choice(), assurance: try assurance(),
            signatureScheme: try choice(), keyAgeSeconds: integer())
    }

    mutating func verifyRequest() throws -> VerifyRequest {
        let lines = (0..<Int.random(in: 0...5, using: &self)).map { _ in (text(), text()) }
        return VerifyRequest(
            method: try one(of: ["GET", "POST", "M-SEARCH"]), scheme: try one(of: ["http", "https"]),
            authority: text(), path: text(), query: perhaps { $0.text() }, headers: HeaderFields(lines),
            body: Bool.random(using: &self) ? .bytes(bytes(in: 0...100)) : .sha256(bytes(32)),
            verificationID: perhaps { $0.deviceID().text }, identityAudience: perhaps { $0.text() })
    }
}
