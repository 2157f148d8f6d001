internal import AndroidKeyAttestation
internal import AppAttest
internal import Bytes
internal import Crypto
internal import SwiftASN1
internal import X509

/// The root of a certificate chain that does not lead to a trusted root. Nothing about it is proven.
package struct UntrustedRoot: Sendable, Hashable {
    /// The provider of the root, as in metrics.
    package enum Provider: String, Sendable, Hashable, CaseIterable {
        /// Apple's App Attest.
        case appAttest = "app_attest"
        /// Android's key attestation.
        case keyAttestation = "key_attestation"
    }

    /// The provider whose attestation has this chain.
    package let provider: Provider
    /// The name of the root in the last certificate of the chain, at most 256 characters. The sender chose it.
    package let name: String
    /// The SHA-256 of the last certificate of the chain, hexadecimal. Apple's chains do not contain the root, and Google's chains
    /// may lack it too.
    package let lastCertificate: String

    init(of object: AttestationObject) {
        let last = object.certificates.last ?? []
        provider = .appAttest
        name = String(((try? Certificate(derEncoded: last)).map { "\($0.issuer)" } ?? "").prefix(256))
        lastCertificate = Hexadecimal.encode(SHA256.hash(data: last))
    }

    init(of chain: [[UInt8]]) {
        let last = chain.last ?? []
        provider = .keyAttestation
        name = String(((try? AttestationCertificate(der: last))?.issuer.description ?? "").prefix(256))
        lastCertificate = Hexadecimal.encode(SHA256.hash(data: last))
    }
}
