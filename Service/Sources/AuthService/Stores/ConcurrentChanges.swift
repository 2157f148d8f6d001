internal import AuthContract

/// The error of a read-decide-save loop that lost to another change at every attempt.
struct ConcurrentChanges {
    /// The largest number of attempts. A new store needs three: two to add the two signing keys, or to find that another node added
    /// them, and one to read both keys. The other attempts are for changes by other processes.
    static let maximumAttempts = 8

    private let reason: String

    init(of subject: String) {
        reason = "another change of \(subject) was faster, \(Self.maximumAttempts) times in a row"
    }

    var storeError: StoreError { StoreError(.unavailable, reason) }
    var refusal: Refusal { Refusal(.serviceUnavailable, reason, retryAfter: 1) }
}
