/// A kind of call to Apple's or Google's services.
package enum ProviderCall: String, Sendable, CaseIterable {
    /// An exchange of an App Attest receipt.
    case appleReceipt = "apple_receipt"
    /// The decoding of a Play Integrity token.
    case playIntegrity = "play_integrity"
    /// An access token for a service account of Google.
    case accessToken = "google_access_token"
    /// A list of revoked keys.
    case revocationList = "revocation_list"
}

/// How a call to a provider ended.
package enum ProviderResult: String, Sendable, CaseIterable {
    /// With a status below 400.
    case answered
    /// With a status from 400 to 499 other than 429. Such a status is not always an error: Apple answers 404 for a device without data.
    case refused
    /// With status 429: the quota is used up.
    case limited
    /// With a status from 500 on.
    case failed
    /// Not within the deadline.
    case tooSlow = "too_slow"
    case unreachable
    case tooLarge = "too_large"
    /// The caller stopped waiting.
    case cancelled

    /// - Parameter status: the status of an HTTP response.
    package init(status: Int) {
        self =
            switch status {
            case ..<400: .answered
            case 429: .limited
            case ..<500: .refused
            default: .failed
            }
    }
}

/// Observes each call to a provider, for metrics and traces.
package protocol ProviderObserver: Sendable {
    /// Runs a call.
    ///
    /// - Parameters:
    ///   - call: the kind of the call.
    ///   - send: sends the request with additional headers.
    func observing<Answer: Sendable>(
        _ call: ProviderCall,
        _ send: (_ headers: [(name: String, value: String)]) async -> (answer: Answer, result: ProviderResult)
    ) async -> Answer
}
