internal import Bytes
public import StrictJSON

// The content of an object, mostly by the names in the standards and Apple's documentation. Bytes are hexadecimal. Nothing is
// verified.

extension AttestationObject {
    /// The content of the attestation, for people. No part of it is verified.
    public var json: JSONObject {
        let receipt: JSONValue = (try? Receipt(parsing: receipt)).map { .object($0.json) } ?? .hexadecimal(receipt)
        let statement = JSONObject([
            ("x5c", .array(certificates.map { AppleCertificate.json(of: $0) })), ("receipt", receipt),
        ])
        return JSONObject([
            ("fmt", "apple-appattest"), ("attStmt", .object(statement)), ("authData", .object(authenticatorData.json)),
        ])
    }
}

extension AssertionObject {
    /// The content of the assertion, for people. No part of it is verified.
    public var json: JSONObject {
        JSONObject([
            ("signature", .hexadecimal(signature)), ("authenticatorData", .object(authenticatorData.json)),
        ])
    }
}

extension Receipt {
    /// The content of the receipt, for people. No part of it is verified.
    public var json: JSONObject {
        JSONObject([
            ("content", .object(fields.json)),
            ("certificates", .array(signedData.certificates.map { .object($0.json) })),
            ("hasSignedAttributes", .bool(signedData.signedAttributes != nil)),
            ("signature", .hexadecimal(signedData.signature)),
        ])
    }
}

extension AuthenticatorData {
    var json: JSONObject {
        JSONObject(present: [
            "rpIdHash": .hexadecimal(relyingPartyIDHash), "flags": .string("0x" + Hexadecimal.encode([flags])),
            "counter": .integer(counter),
            "credential": credential.map { credential in
                .object(
                    JSONObject(present: [
                        "aaguid": .hexadecimal(credential.aaguid),
                        "environment": AttestEnvironment(aaguid: credential.aaguid).map { .string($0.rawValue) },
                        "credentialId": .hexadecimal(credential.identifier),
                        "publicKey": .object(JSONObject(credential.key)),
                    ]))
            },
            "extensions": extensions.map { .object(JSONObject($0)) },
        ])
    }
}

extension ReceiptFields {
    fileprivate var json: JSONObject {
        JSONObject(present: [
            "2 App ID": .string(appID), "3 attested public key": AppleCertificate.json(of: attestedCertificate),
            "4 client hash": .hexadecimal(clientHash), "5 token": token.map { .string($0) },
            "6 receipt type": .string(kind.rawValue), "7 environment": environment.map { .string($0) },
            "12 creation time": texts[12].map { .string($0) }, "17 risk metric": texts[17].map { .string($0) },
            "19 not before": texts[19].map { .string($0) }, "21 expiration time": texts[21].map { .string($0) },
            "unknown fields": unknownTypes.isEmpty ? nil : .array(unknownTypes.map { .integer($0) }),
        ])
    }
}

extension AppleCertificate {
    /// The content of a certificate. Bytes that are not a certificate become hexadecimal.
    fileprivate static func json(of bytes: [UInt8]) -> JSONValue {
        AppleCertificate(bytes).map { .object($0.json) } ?? .hexadecimal(bytes)
    }
}
