internal import Bytes
internal import Crypto
internal import CryptoExtras
public import Foundation

extension GoogleAuthority {
    /// The response keys as Play Console's text file has them: lines `DECRYPTION_KEY=…` and `VERIFICATION_KEY=…`.
    public func consoleText() throws -> String {
        "DECRYPTION_KEY=\(decryptionKey)\nVERIFICATION_KEY=\(try verificationKey())\n"
    }

    /// `DECRYPTION_KEY`: 32 octets in base64.
    public var decryptionKey: String { Base64.standard.encode(tokenEncryption) }

    /// `VERIFICATION_KEY`: a SubjectPublicKeyInfo in base64.
    public func verificationKey() throws -> String {
        Base64.standard.encode(try tokenSigning.subjectPublicKeyInfo)
    }

    /// The file that Play Console encrypts for an uploaded RSA public key (RSA-OAEP with SHA-1).
    public func encryptedKeysFile(publicKeyPEM: String) throws -> [UInt8] {
        let key = try _RSA.Encryption.PublicKey(pemRepresentation: publicKeyPEM)
        return Array(try key.encrypt(Data(try consoleText().utf8), padding: .PKCS1_OAEP))
    }

    /// A classic token for a nonce: a compact JWE around a compact JWS. An app's server decodes it with the response keys.
    ///
    /// - Parameters:
    ///   - nonce: the `nonce` of the request, base64url; nil leaves it out.
    ///   - time: the time of creation.
    ///   - options: the verdict, and the token's faults.
    public func classicToken(
        nonce: String?, at time: Date, options: PlayTokenOptions = PlayTokenOptions()
    ) throws -> String {
        let payload = try VerdictWriter(options: options, nonce: nonce, requestHash: options.otherBinding, time: time)
            .text
        let signingInput =
            Base64.url.encode(Array(options.signatureHeader.utf8)) + "." + Base64.url.encode(Array(payload.utf8))
        let signed = signingInput + "." + Base64.url.encode(try signature(over: signingInput, options))

        let contentKey = SymmetricKey(size: .bits256)
        let wrappingKey =
            options.isEncryptedForOther ? SymmetricKey(size: .bits256) : SymmetricKey(data: tokenEncryption)
        let header = Base64.url.encode(Array(options.encryptionHeader.utf8))
        let box = try AES.GCM.seal(Data(signed.utf8), using: contentKey, authenticating: Data(header.utf8))
        var tag = Data(box.tag)
        if options.isTagBroken { tag[tag.startIndex] ^= 1 }
        let parts = [
            try AES.KeyWrap.wrap(contentKey, using: wrappingKey), Data(box.nonce), Data(box.ciphertext), tag,
        ]
        return ([header] + parts.map { Base64.url.encode($0) }).joined(separator: ".")
    }

    private func signature(over text: String, _ options: PlayTokenOptions) throws -> Data {
        guard case .p256(let raw) = tokenSigning, !options.isSignedByOther else {
            return try P256.Signing.PrivateKey().signature(for: Data(text.utf8)).rawRepresentation
        }
        return try P256.Signing.PrivateKey(rawRepresentation: raw).signature(for: Data(text.utf8)).rawRepresentation
    }

    /// A standard token for a request hash: opaque to everyone but this test kit. See ``decodeAnswer(package:token:)``.
    ///
    /// - Parameters:
    ///   - requestHash: the `requestHash` of the request; nil leaves it out.
    ///   - time: the time of creation.
    ///   - options: the verdict.
    public func standardToken(
        requestHash: String?, at time: Date, options: PlayTokenOptions = PlayTokenOptions()
    ) throws -> String {
        let payload = try VerdictWriter(
            options: options, nonce: options.otherBinding, requestHash: requestHash, time: time
        )
        .text
        let box = try AES.GCM.seal(Data(payload.utf8), using: SymmetricKey(data: tokenEncryption))
        return Base64.url.encode(box.combined ?? Data())
    }

    /// An answer of Google's decode service.
    public struct DecodeAnswer: Sendable {
        /// The HTTP status.
        public let status: Int
        /// The JSON body.
        public let body: [UInt8]
    }

    /// The answer of Google's decode service to a token of this authority, classic or standard: the payload if the token is of
    /// this package, otherwise 400.
    public func decodeAnswer(package: String, token: String) -> DecodeAnswer {
        guard let payload = decode(token), payload.contains("\"requestPackageName\":\"\(package)\"") else {
            let error = """
                {"error":{"code":400,"message":"Integrity token cannot be decrypted due to invalid arguments.",\
                "status":"INVALID_ARGUMENT"}}
                """
            return DecodeAnswer(status: 400, body: Array(error.utf8))
        }
        return DecodeAnswer(status: 200, body: Array(#"{"tokenPayloadExternal":\#(payload)}"#.utf8))
    }

    private func decode(_ token: String) -> String? {
        let parts = token.split(separator: ".").compactMap { Base64.url.decode($0) }
        if parts.count == 1, let box = try? AES.GCM.SealedBox(combined: parts[0]) {
            let opened = try? AES.GCM.open(box, using: SymmetricKey(data: tokenEncryption))
            return opened.map { String(decoding: $0, as: UTF8.self) }
        }
        guard parts.count == 5, let header = token.split(separator: ".").first,
            let key = try? AES.KeyWrap.unwrap(parts[1], using: SymmetricKey(data: tokenEncryption)),
            let nonce = try? AES.GCM.Nonce(data: parts[2]),
            let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: parts[3], tag: parts[4]),
            let signed = try? AES.GCM.open(box, using: key, authenticating: Data(header.utf8))
        else { return nil }
        let signedParts = String(decoding: signed, as: UTF8.self).split(separator: ".")
        guard signedParts.count == 3 else { return nil }
        return Base64.url.decode(signedParts[1]).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Writes a verdict in the form of Google's documentation.
private struct VerdictWriter {
    let options: PlayTokenOptions
    let nonce: String?
    let requestHash: String?
    let time: Date

    var text: String {
        get throws {
            if let payload = options.payload { return payload }
            let data = try JSONSerialization.data(
                withJSONObject: payload, options: [.sortedKeys, .withoutEscapingSlashes])
            return String(decoding: data, as: UTF8.self)
        }
    }

    private var payload: [String: Any] {
        var payload: [String: Any] = [:]
        if options.hasRequestDetails {
            payload["requestDetails"] = members([
                ("requestPackageName", options.package), ("nonce", nonce), ("requestHash", requestHash),
                ("timestampMillis", options.hasTimestamp ? number(timestamp) : nil),
            ])
        }
        payload["appIntegrity"] = members([
            ("appRecognitionVerdict", options.recognitionVerdict),
            ("packageName", options.appPackage ?? options.package),
            (
                "certificateSha256Digest",
                options.certificateDigests.map { $0.map { Base64.url.encode($0) } }
            ),
            ("versionCode", options.versionCode.map(number)),
        ])
        payload["deviceIntegrity"] = members([
            ("deviceRecognitionVerdict", options.deviceLabels),
            ("deviceAttributes", options.sdkVersion.map { ["sdkVersion": $0] }),
            ("recentDeviceActivity", options.activityLevel.map { ["deviceActivityLevel": $0] }),
            ("deviceRecall", options.recallBits.map { ["values": $0] }),
        ])
        payload["accountDetails"] = members([("appLicensingVerdict", options.licensingVerdict)])
        let environment = members([
            ("playProtectVerdict", options.playProtectVerdict),
            ("appAccessRiskVerdict", options.appsDetected.map { ["appsDetected": $0] }),
        ])
        if !environment.isEmpty { payload["environmentDetails"] = environment }
        if let isTestingResponse = options.isTestingResponse {
            payload["testingDetails"] = ["isTestingResponse": isTestingResponse]
        }
        return payload
    }

    private var timestamp: Int64 {
        Int64(((time.timeIntervalSince1970 - options.ageSeconds) * 1000).rounded())
    }

    private func number(_ value: Int64) -> Any { options.areNumbersPlain ? value : String(value) }

    private func members(_ members: [(String, Any?)]) -> [String: Any] {
        Dictionary(uniqueKeysWithValues: members.compactMap { name, value in value.map { (name, $0) } })
    }
}
