import AttestationInspection
import AuthService
import StrictJSON
import Verification

/// Makes the JSON documents of recordings, whose checks `attestation replay` repeats.
struct RecordingFiles: RecordingWriter {
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject) {
        let file = try RecordingFile(of: proof, about: subject)
        return (file.format, file.json)
    }
}
