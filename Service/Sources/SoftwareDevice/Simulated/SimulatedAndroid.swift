package import AttestationTestKit
package import AuthContract
package import Foundation
package import SynheartAuth

/// Play Integrity and key attestation of an Android phone, simulated by the test kit: a classic token and a certificate chain
/// from a test authority.
package struct SimulatedAndroid: AttestationProvider {
    private let package: String
    private let authority: GoogleAuthority
    private let options: KeyAttestationOptions
    private let now: @Sendable () -> Date

    /// The SHA-256 of the certificate that simulated apps are signed with.
    package static let certificateDigest = [UInt8](repeating: 0x11, count: 32)

    /// A phone with the app `package` on it.
    ///
    /// - Parameters:
    ///   - package: the app's package.
    ///   - authority: signs in place of Google.
    ///   - options: the phone's properties; by default a locked bootloader and a trusted environment.
    ///   - now: the time at which tokens and certificates are issued.
    package init(
        package: String, authority: GoogleAuthority, options: KeyAttestationOptions = KeyAttestationOptions(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.package = package
        self.authority = authority
        var options = options
        options.packages = [.init(package)]
        options.signatureDigests = [Self.certificateDigest]
        self.options = options
        self.now = now
    }

    package var platform: Platform { .android }

    package func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        var verdict = PlayTokenOptions()
        verdict.package = package
        verdict.certificateDigests = [Self.certificateDigest]
        do {
            return AttestationEvidence(
                proof: try authority.classicToken(
                    nonce: subject.bindingNonce.playIntegrityText, at: now(), options: verdict),
                keyAttestation: try authority.attest(
                    subject.publicKey.verifyingKey, challenge: subject.challenge, at: now(), options: options))
        } catch { throw AttestationError(.refused, reason: "\(error)") }
    }
}
