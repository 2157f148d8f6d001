internal import Bytes
internal import CBOR
internal import SwiftASN1

extension AttestationObject {
    /// Everything in it.
    package var described: DescribedValue {
        .named([
            "fmt": .text("apple-appattest"),
            "attStmt": .named([
                "x5c": .list(certificates.map { AppleCertificate($0)?.described ?? .bytes($0) }),
                "receipt": (try? Receipt(parsing: receipt))?.described ?? .bytes(receipt),
            ]),
            "authData": authenticatorData.described,
        ])
    }
}

extension AssertionObject {
    /// Everything in it.
    package var described: DescribedValue {
        .named(["signature": .bytes(signature), "authenticatorData": authenticatorData.described])
    }
}

extension AuthenticatorData {
    /// Everything in it.
    package var described: DescribedValue {
        .named([
            "rpIdHash": .bytes(relyingPartyIDHash),
            "flags": .text("0x" + Hexadecimal.encode([flags])),
            "counter": .number(Int64(counter)),
            "credential": credential.map { credential in
                .named([
                    "aaguid": .bytes(credential.aaguid),
                    "environment": AttestEnvironment(aaguid: credential.aaguid).map { .text($0.rawValue) },
                    "credentialId": .bytes(credential.identifier),
                    "publicKey": DescribedValue(credential.key),
                ])
            },
            "extensions": describedExtensions,
        ])
    }

    /// The map that newer systems append.
    package var describedExtensions: DescribedValue? { extensions.map { DescribedValue($0) } }

    /// What it says of how the app was signed, where that can be read.
    package var claimedExtensions: AuthenticatorExtensions? {
        extensions.flatMap { try? AuthenticatorExtensions($0) }
    }

    /// The environment that the AAGUID names.
    package var claimedEnvironment: AttestEnvironment? {
        credential.flatMap { AttestEnvironment(aaguid: $0.aaguid) }
    }
}

extension Receipt {
    /// Everything in it.
    package var described: DescribedValue {
        .named([
            "content": fields.described,
            "certificates": .list(signedData.certificates.map(\.described)),
            "hasSignedAttributes": .flag(hasSignedAttributes),
            "signature": .bytes(signedData.signature),
        ])
    }
}

extension ReceiptFields {
    /// Everything in it, by the names of Apple's documentation.
    package var described: DescribedValue {
        .named([
            "2 App ID": .text(appID),
            "3 attested public key": AppleCertificate(attestedCertificate)?.described ?? .bytes(attestedCertificate),
            "4 client hash": .bytes(clientHash),
            "5 token": token.map { .text($0) },
            "6 receipt type": .text(kind.rawValue),
            "7 environment": environment.map { .text($0) },
            "12 creation time": texts[12].map { .text($0) },
            "17 risk metric": texts[17].map { .text($0) },
            "19 not before": texts[19].map { .text($0) },
            "21 expiration time": texts[21].map { .text($0) },
            "unknown fields": unknownTypes.isEmpty ? nil : .list(unknownTypes.map { .number(Int64($0)) }),
        ])
    }
}
