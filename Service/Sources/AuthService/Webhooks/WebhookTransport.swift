internal import AuthContract

/// Sends deliveries to receivers. AttestationProviders has the implementation for HTTP.
public protocol WebhookTransport: Sendable {
    /// Sends one delivery. It returns within ten seconds, whatever the receiver does.
    func post(_ request: WebhookRequest) async -> WebhookOutcome
}

/// One attempt to deliver an event.
public struct WebhookRequest: Sendable {
    /// The URL of the receiver.
    public let url: WebhookURL
    /// The header fields, with the signature.
    public let headers: [(name: String, value: String)]
    /// The body, as JSON.
    public let body: [UInt8]

    /// Memberwise initializer.
    public init(url: WebhookURL, headers: [(name: String, value: String)], body: [UInt8]) {
        self.url = url
        self.headers = headers
        self.body = body
    }
}

/// The result of a delivery.
public enum WebhookOutcome: Sendable, Hashable {
    /// The receiver answered with this status.
    case answered(status: Int)
    /// There was no answer, for this reason: a short text without anything that the receiver sent.
    case failed(String)

    /// The status of the answer; nil: there was none.
    var status: Int? {
        guard case .answered(let status) = self else { return nil }
        return status
    }

    /// The reason why the event must be delivered again; nil: it was delivered.
    var failure: String? {
        switch self {
        case .answered(let status) where (200..<300).contains(status): nil
        case .answered(let status) where (300..<400).contains(status): "status \(status): redirects are not followed"
        case .answered(let status): "status \(status)"
        case .failed(let reason): reason
        }
    }
}

/// Counts the deliveries of webhooks. Its calls must return at once.
public protocol WebhookObserver: Sendable {
    /// Counts an attempt that ended.
    func attempted(delivered: Bool)
    /// Counts an event that was given up.
    func gaveUp()
    /// Sets the number of events after the position of each webhook.
    func backlog(_ events: [String: Int64])
}
