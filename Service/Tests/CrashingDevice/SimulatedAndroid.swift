import AttestationTestKit
import AuthContract
import Foundation
import SynheartAuth

/// Android's proofs, made by the test kit: a Play Integrity token, and the key's certificate chain.
struct SimulatedAndroid: AttestationProvider {
    let authority: GoogleAuthority
    let keys: AttestedKeyStore
    var platform: Platform { .android }

    /// Reads the authority from the file that the test wrote.
    init(authority path: String, keys: AttestedKeyStore) throws {
        authority = try JSONDecoder().decode(
            GoogleAuthority.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        self.keys = keys
    }

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        do {
            return AttestationEvidence(
                proof: try authority.classicToken(
                    nonce: subject.bindingNonce.playIntegrityText, at: Date(), options: PlayTokenOptions()),
                keyAttestation: try authority.attest(
                    subject.publicKey.verifyingKey, challenge: keys.challenge(of: subject.alias), at: Date(),
                    options: KeyAttestationOptions()))
        } catch { throw AttestationError(.refused, reason: "\(error)") }
    }
}

/// Keys in files. Each key keeps the challenge that it was created with, because the hardware puts that challenge into the
/// key's attestation.
struct AttestedKeyStore: KeyStore {
    let base: SoftwareKeyStore
    let directory: String
    var protection: KeyProtection { base.protection }
    var attestsKeys: Bool { true }

    private func file(_ alias: KeyAlias) -> URL { URL(fileURLWithPath: "\(directory)/\(alias).challenge") }

    func challenge(of alias: KeyAlias) throws -> [UInt8] { Array(try Data(contentsOf: file(alias))) }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try Data(challenge ?? []).write(to: file(alias), options: .atomic)
        } catch { throw KeyStoreError(.failed, reason: "\(error)") }
        return try base.create(alias, challenge: challenge)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        try base.sign(message, with: alias)
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
}
