internal import Bytes
internal import Crypto
package import Foundation
internal import SwiftASN1
internal import X509

/// The checks of a receipt as separate functions. ``ReceiptVerifier`` runs all of them, in this order.
///
/// They follow Apple, *Assessing fraud risk*, and also check fields 4 and 7 and the purpose of the signer's
/// certificate.
package struct ReceiptSteps: Sendable {
    private let path: CertificatePath

    package init(trustAnchors: TrustAnchors) {
        path = CertificatePath(anchors: trustAnchors.receipts)
    }

    /// Step 1: the signer has signed the payload.
    package func verifySignature(_ receipt: Receipt) throws(AppAttestError) {
        let signer = try signer(of: receipt)
        guard let publicKey = signer.publicKey else {
            throw AppAttestError(.wrongLeafKey, .signature, "the signer's key is not on P-256")
        }
        guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: receipt.signedData.signature) else {
            throw AppAttestError(.malformedSignature, .signature, "the signature is not ECDSA in DER")
        }
        let content = receipt.signedData.content
        if let attributes = receipt.signedData.signedAttributes {
            // No signature covers the attributes, and Apple has written none since 2020-11. So attributes in a later receipt may
            // come from an attacker.
            guard receipt.fields.creationTime < SignedAttributes.end else {
                throw AppAttestError(.malformedSignedAttributes, .signature, "attributes in a receipt since 2020-11")
            }
            guard attributes.describe(content, createdAt: receipt.fields.creationTime) else {
                throw AppAttestError(
                    .contentDigestMismatch, .signature, "the signed attributes are about other content")
            }
        }
        guard publicKey.isValidSignature(signature, for: content) else {
            throw AppAttestError(.signatureInvalid, .signature, "the signer has not signed this")
        }
    }

    /// Step 2: the chain is the signer, an intermediate and a pinned root, valid when the receipt was created. The signer's
    /// certificate is one for receipts.
    package func verifyCertificateChain(_ receipt: Receipt) throws(AppAttestError) {
        let signer = try signer(of: receipt)
        let others = receipt.signedData.certificates.filter { $0.bytes != signer.bytes }
        guard let intermediate = others.first(where: { $0.certificate.subject == signer.certificate.issuer }) else {
            throw AppAttestError(.untrustedChain, .certificateChain, "no certificate of the issuer")
        }
        // A further certificate is accepted only if it is a copy of a pinned root, because no signature covers the list.
        let unexplained = others.filter { other in
            other.bytes != intermediate.bytes && !path.anchors.contains { $0.bytes == other.bytes }
        }
        guard unexplained.isEmpty, Set(others.map(\.bytes)).count == others.count else {
            throw AppAttestError(.untrustedChain, .certificateChain, "a certificate that is not part of the chain")
        }
        try path.verify(
            leaf: signer, intermediate: intermediate.bytes, at: receipt.fields.creationTime, leeway: 0)
        guard signer.extensionValue(AppleIdentifier.receiptSigner) != nil else {
            throw AppAttestError(.signerNotForReceipts, .certificateChain, "the signer is not one for receipts")
        }
    }

    /// Step 3: field 2 is an allowed app.
    package func verifyAppID(_ receipt: Receipt, _ allowed: Set<AppleAppID>) throws(AppAttestError) {
        guard allowed.contains(where: { $0.text == receipt.fields.appID }) else {
            throw AppAttestError(.appIDNotAllowed, .appID, "the receipt is for another app")
        }
    }

    /// Step 4: field 3 is a certificate of the attested key.
    package func verifyPublicKey(_ receipt: Receipt, _ keyID: KeyID) throws(AppAttestError) {
        guard let found = receipt.unverifiedKeyID else {
            throw AppAttestError(.fieldMalformed, .publicKey, "field 3 is not a certificate of a P-256 key")
        }
        guard found == keyID else {
            throw AppAttestError(.publicKeyMismatch, .publicKey, "the receipt is for another key")
        }
    }

    /// Step 5: field 4 is the client data hash that was attested.
    package func verifyClientDataHash(
        _ receipt: Receipt, _ clientDataHash: ClientDataHash
    ) throws(AppAttestError) {
        guard constantTimeEquals(receipt.fields.clientHash, clientDataHash.bytes) else {
            throw AppAttestError(
                .clientDataHashMismatch, .clientDataHash, "the receipt is for another attestation of the key")
        }
    }

    /// Step 6: field 7, if present, names an allowed environment. Apple does not document the field.
    package func verifyEnvironment(
        _ receipt: Receipt, _ allowed: Set<AttestEnvironment>
    ) throws(AppAttestError) {
        guard let found = receipt.fields.environment else { return }
        guard allowed.contains(where: { $0.receiptName == found }) else {
            throw AppAttestError(.environmentMismatch, .environment, "the receipt is of another environment")
        }
    }

    /// Step 7: the receipt is not dated later than `date` plus the leeway. If the policy has a maximum age, the receipt
    /// must not be older than this, and must not have expired.
    package func verifyTimes(
        _ receipt: Receipt, _ policy: ReceiptVerifier.Policy, at date: Date
    ) throws(AppAttestError) {
        let age = date.timeIntervalSince(receipt.fields.creationTime)
        guard age >= -policy.clockLeeway else {
            throw AppAttestError(.createdInFuture, .times, "created \(-age) s from now")
        }
        guard let maximumAge = policy.maximumAge else { return }
        guard date < receipt.fields.expirationTime else {
            throw AppAttestError(.receiptExpired, .times, "expired")
        }
        guard age <= maximumAge else {
            throw AppAttestError(.receiptTooOld, .times, "created \(age) s ago")
        }
    }

    private func signer(of receipt: Receipt) throws(AppAttestError) -> AppleCertificate {
        let data = receipt.signedData
        let signers = data.certificates.filter { data.namesAsSigner($0) }
        guard let signer = signers.first, signers.count == 1 else {
            throw AppAttestError(.signerMismatch, .signature, "the signer's certificate is not there, or not alone")
        }
        return signer
    }
}

extension SignedData {
    /// Whether SignerInfo names this certificate by issuer and serial number.
    fileprivate func namesAsSigner(_ certificate: AppleCertificate) -> Bool {
        guard let name = try? DER.parse(signerIssuer), let issuer = try? DistinguishedName(derEncoded: name),
            let number = try? DER.parse(signerSerial), let serial = try? ArraySlice<UInt8>(derEncoded: number)
        else { return false }
        return issuer == certificate.certificate.issuer
            && serial.elementsEqual(certificate.certificate.serialNumber.bytes)
    }
}
