import AttestationInspection
import AuthService
import StrictJSON
import Verification

/// Writes refused proofs as evidence files, which `attestation replay` judges again.
struct EvidenceFiles: EvidenceWriter {
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject) {
        let file = try EvidenceFile(of: proof, about: subject)
        return (file.format, file.json)
    }
}
