import AttestationInspection
import AuthService
import StrictJSON

/// Writes refused proofs as evidence files, which `attestation replay` judges again.
struct EvidenceFiles: EvidenceWriter {
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject) {
        var options = VerificationOptions()
        options.policy = proof.policy
        options.keepsBuiltInRoots = proof.keepsBuiltInRoots
        options.rootsPEM = proof.rootsPEM
        options.statusList = proof.statusList
        // The keys decode the token, and are not stored.
        options.playKeys = proof.playKeys
        let file = try EvidenceFile(of: proof.line, options: options, about: subject, refusal: (proof.code, proof.step))
        return (file.format, file.json)
    }
}
