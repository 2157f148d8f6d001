public import StrictJSON
public import Verification

/// Writes the document from which a refusal can be replayed.
///
/// AuthService cannot replay refusals itself. AttestationInspection's `RecordingFile` writes such documents.
public protocol RecordingWriter: Sendable {
    /// The document of a refused proof, and the name of the proof's format.
    ///
    /// - Parameters:
    ///   - proof: what was refused.
    ///   - subject: app, device, occasion and time, for people.
    /// - Throws: if the inputs or the policies cannot be read.
    func document(of proof: RefusedProof, subject: JSONObject) throws -> (format: String, document: JSONObject)
}
