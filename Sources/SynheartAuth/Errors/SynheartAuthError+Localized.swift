public import Foundation

extension SynheartAuthError: LocalizedError {
    /// A description in English, for logs and alerts of debug builds. Apps show their users their own texts.
    public var errorDescription: String? { ErrorTable.row(of: code).message }

    /// Code and message.
    public var failureReason: String? { description }

    /// The remedy for the app; nil if there is none.
    public var recoverySuggestion: String? {
        switch recovery {
        case .none: nil
        case .retry: retryAfter.map { "Try again after \($0.components.seconds) s." } ?? "Try again later."
        case .configure: "Call configure first."
        case .register: "Call registerDevice."
        case .rotate: "Call rotateKey."
        case .reset: "Call resetDeviceIdentity, then registerDevice."
        case .correctClock: "Ask the user to correct the device's clock."
        }
    }
}
