import AttestationInspection
import AuthService
import StrictJSON
import Verification

/// Makes the JSON documents of recordings. `attestation replay` reads such a document and repeats the checks.
struct RecordingFiles: RecordingWriter {
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject) {
        let file = try RecordingFile(of: proof, about: subject)
        return (file.format, file.json)
    }
}
