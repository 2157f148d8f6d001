/// Why a request is refused: a code for the client, a reason for the log.
public struct Refusal: Error, Sendable {
    /// The codes for clients, which never change. `status` in Routes.swift is their HTTP status.
    public enum Code: String, Sendable {
        case badRequest = "BAD_REQUEST"
        case challengeUnknown = "CHALLENGE_UNKNOWN"
        case attestationRefused = "ATTESTATION_REFUSED"
        case couldNotCheck = "COULD_NOT_CHECK"
        case keyTaken = "KEY_TAKEN"
        case notAuthenticated = "NOT_AUTHENTICATED"
    }

    public let code: Code
    /// The reason, for the log only: it would tell an attacker what to correct.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
