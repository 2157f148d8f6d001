public import AppAttest

/// Exchanges a receipt for a newer one with Apple's server
/// ([Assessing fraud risk](https://developer.apple.com/documentation/devicecheck/assessing-fraud-risk)).
public protocol ReceiptExchange: Sendable {
    /// Asks once, within its own deadline. An outage is an answer, not an error.
    ///
    /// - Parameters:
    ///   - receipt: the stored receipt.
    ///   - appID: the App ID of the receipt. Its prefix selects the key that signs the request.
    ///   - environment: Apple's environment in which the key was attested, production or development.
    func exchange(_ receipt: [UInt8], appID: AppleAppID, environment: AttestEnvironment) async -> ReceiptAnswer
}

/// The result of one exchange.
public enum ReceiptAnswer: Sendable, Hashable {
    /// 200: a newer receipt, not verified.
    case receipt([UInt8])
    /// 304: too early. The receipt contains the time from which it can be exchanged.
    case tooEarly
    /// 400: the receipt cannot be read, or is of the other environment. Also the answer if the stored App ID or
    /// environment cannot be read. Apple is not asked then.
    case badReceipt
    /// 401: the developer's key is not accepted.
    case unauthorized
    /// 404: Apple has no data about the device. This is normal 30 days after the last attestation. The receipt is kept,
    /// because data may exist again after the device attests again.
    case noData
    /// 429: too many requests. `retryAfter` is the seconds to wait, if Apple named them.
    case tooManyRequests(retryAfter: Int64?)
    /// 5xx, an undocumented status, a 200 whose body cannot be read, or no answer.
    case unavailable(reason: String, retryAfter: Int64?)
    /// No key is configured for the App ID's prefix, so Apple was not asked.
    case noKey
}
