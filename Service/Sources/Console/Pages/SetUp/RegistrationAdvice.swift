internal import AuthContract

/// The checks to make after a registration was refused with a code.
enum RegistrationAdvice {
    /// - Parameters:
    ///   - code: the code of the answer, as the app's history counts it.
    ///   - platform: `ios`, `android`, or another text.
    static func sentence(_ code: String, on platform: String) -> String {
        switch ErrorCode(rawValue: code) {
        case .invalidAttestation where platform == "ios":
            "Team id and bundle id of the build, and its environment: builds that Xcode installs are development, those of "
                + "TestFlight and of the App Store production."
        case .invalidAttestation:
            "The package name; the certificate, which is the app signing key's and not the upload key's; and the response keys or "
                + "the service account, of the project that is linked in Play Console."
        case .attestationRequired:
            "The app sent no proof: App Attest does not work in a simulator, and Play Integrity needs Google Play."
        case .providerUnavailable:
            "A provider could not be asked. The page Now says which, and the service's log says why."
        case .devModeNotAllowed:
            "The build is in development mode. Only records of the channels staging and dev can allow that."
        case .unknownApp: "The app is disabled."
        case .invalidChallenge, .challengeExpired:
            "The challenge was not of this service, was used before, or is too old: the device must ask and register at one service."
        case .invalidRequest: "The request is not one of an SDK of this version. The service's log has the reason."
        case .clockSkew: "The clock of the device."
        case .rateLimited: "Too many attempts from one network. Try again in a minute."
        case .none: ""
        default: "The service's log has the reason."
        }
    }
}
