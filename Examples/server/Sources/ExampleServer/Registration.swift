import AndroidKeyAttestation
import AppAttest
import Crypto
import Foundation
import PlayIntegrity

/// An iPhone's registration. `Data` is base64 in JSON.
struct AppleRegistration: Codable, Sendable {
    let challenge: Data
    /// As `DCAppAttestService.generateKey()` returns it.
    let keyID: String
    /// As `attestKey(_:clientDataHash:)` returns it, for SHA-256 of the challenge.
    let attestation: Data
}

/// An Android phone's registration.
struct AndroidRegistration: Codable, Sendable {
    let challenge: Data
    /// SubjectPublicKeyInfo of the key, as `PublicKey.getEncoded()` returns it.
    let publicKey: Data
    /// As `KeyStore.getCertificateChain` returns it, leaf first. The key was made with the challenge as its attestation
    /// challenge.
    let certificates: [Data]
    /// Play Integrity's token of a classic request with the nonce `AndroidRegistration.nonce`.
    let integrityToken: String

    /// The nonce for an integrity token. A verdict is about a device, not about a key, so the nonce binds the verdict to
    /// this challenge and this key.
    static func nonce(challenge: Data, publicKey: Data) -> String {
        Data(SHA256.hash(data: challenge + publicKey)).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

extension AppleVerifiers {
    /// Verifies the attestation of an iPhone's registration, and returns the device's key.
    func verify(_ registration: AppleRegistration, at now: Date) throws(Refusal) -> Device.Key {
        guard let keyID = KeyID(base64: registration.keyID) else { throw Refusal(.badRequest, "not a key id") }
        do {
            let attestation = try attestations.verify(
                registration.attestation, keyID: keyID,
                clientDataHash: ClientDataHash(hashing: registration.challenge), at: now)
            return .appAttest(
                attestation.publicKey, attestedExtensions: attestation.attestedExtensions,
                counter: attestation.counter)
        } catch { throw Refusal(.attestationRefused, "\(error)") }
    }
}

extension AndroidVerifiers {
    /// Verifies the verdict and the key's certificates of an Android registration, and returns the device's key.
    func verify(_ registration: AndroidRegistration, at now: Date) throws(Refusal) -> Device.Key {
        guard let publicKey = try? P256.Signing.PublicKey(derRepresentation: registration.publicKey) else {
            throw Refusal(.badRequest, "not a P-256 public key")
        }
        let nonce = AndroidRegistration.nonce(
            challenge: registration.challenge, publicKey: registration.publicKey)
        do {
            switch try IntegrityToken(registration.integrityToken).decode(with: responseKeys) {
            case .decoded(let verdict): _ = try play.verify(verdict, binding: .nonce(nonce), at: now)
            case .refused(let error): throw error
            // The token may be good, but this server cannot check it. Another policy could accept it unchecked.
            case .couldNotCheck(let reason): throw Refusal(.couldNotCheck, "\(reason)")
            }
            _ = try keys.verify(
                KeyAttestationChain(der: registration.certificates), challenge: registration.challenge,
                publicKey: publicKey, at: now)
        } catch let refusal as Refusal {
            throw refusal
        } catch { throw Refusal(.attestationRefused, "\(error)") }
        return .keystore(publicKey)
    }
}
