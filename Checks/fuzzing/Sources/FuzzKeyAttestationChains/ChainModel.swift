import AttestationTestKit

/// Choices that the fuzzer's bytes make. When no bytes are left, every choice is the first one, which is the honest one.
struct Choices {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    mutating func below(_ count: Int) -> Int { count > 0 ? Int(rest.popFirst() ?? 0) % count : 0 }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    mutating func flag() -> Bool { below(2) == 1 }

    var isEmpty: Bool { rest.isEmpty }
}

/// A key of the model. The model has all private keys, and the bytes choose which one signs a certificate.
enum ModelKey: Hashable, CaseIterable {
    case attestation, factoryIntermediate, droidCA3, droidCA2, registered, attackers, anotherAttackers
}

/// The key that signed a certificate.
enum Signer: Hashable {
    case key(ModelKey)
    case root(RootKind)
}

enum RootKind: Hashable {
    case factory, remote
}

/// The content of a certificate, before it is encoded.
struct ModelCertificate: Hashable {
    typealias Name = [KeyAttestationCertificate.Attribute]

    enum Extension: Hashable {
        case description(ModelClaims)
        case virtualMachine
        /// The map `{1: count}`. If `count` is nil, a value that is not a map.
        case provisioningInfo(count: UInt8?)
        case other
    }

    enum Validity: Hashable, CaseIterable {
        case usual, beginsNow, endsNow, past, future
    }

    var subject: Name
    var key: ModelKey
    var extensions: [Extension] = []
    var validity = Validity.usual
    var isRevoked = false

    static let names: [Name] = [
        [.commonName("Android Keystore Key")], [.serialNumber("90e8da3cadfc7820"), .title("TEE")],
        [.serialNumber("90e8da3cadfc7820"), .title("StrongBox")], [.organization("TEE"), .commonName("2c85cdc1")],
        [.organization("StrongBox"), .commonName("2c85cdc1")], [.organization("AVF"), .commonName("76bfa19e")],
        [.organization("Google LLC"), .commonName("Droid CA3")],
        [.organization("Google LLC"), .commonName("Droid CA2")], [.commonName("Droid CA2")],
        [.organization("Google LLC"), .organization("Example"), .commonName("Droid CA2")],
        [.organization("TEE"), .organization("AVF")], [.title("StrongBox"), .title("TEE")], [],
        RootKind.factory.subject, RootKind.remote.subject,
    ]
}

extension RootKind {
    /// The subject name of the test kit's root of this kind.
    var subject: ModelCertificate.Name {
        switch self {
        case .factory: [.serialNumber("0123456789abcdef")]
        case .remote: [.commonName("Key Attestation Test CA1"), .organization("Example")]
        }
    }
}

/// A certificate with the choices that were made when it was signed.
struct SignedCertificate: Hashable {
    var certificate: ModelCertificate
    var issuer: ModelCertificate.Name
    var signer: Signer
    var isSignatureBroken = false
}

/// One certificate of the chain as it is sent.
enum SentCertificate: Hashable {
    case signed(SignedCertificate)
    case root(RootKind)

    var subject: ModelCertificate.Name {
        switch self {
        case .signed(let signed): signed.certificate.subject
        case .root(let kind): kind.subject
        }
    }

    var issuer: ModelCertificate.Name {
        switch self {
        case .signed(let signed): signed.issuer
        case .root(let kind): kind.subject
        }
    }

    var key: Signer {
        switch self {
        case .signed(let signed): .key(signed.certificate.key)
        case .root(let kind): .root(kind)
        }
    }

    var signer: Signer {
        switch self {
        case .signed(let signed): signed.signer
        case .root(let kind): .root(kind)
        }
    }

    var signed: SignedCertificate? { if case .signed(let signed) = self { signed } else { nil } }

    var extensions: [ModelCertificate.Extension] { signed?.certificate.extensions ?? [] }
}
