package import AppAttest
internal import AuthContract
package import AuthService
internal import Foundation

/// Addresses and deadline of Apple's receipt service.
package struct AppleReceiptSettings: Sendable {
    /// The server for keys of the production environment. Tests set another one.
    package var productionURL = ReceiptExchangeRequest.server(of: .production)
    /// The server for keys of the development environment. Tests set another one.
    package var developmentURL = ReceiptExchangeRequest.server(of: .development)
    /// The deadline of one exchange.
    package var deadline: Duration = .seconds(15)

    /// The defaults.
    package init() {}
}

/// A client of Apple's server for receipts
/// ([Assessing fraud risk](https://developer.apple.com/documentation/devicecheck/assessing-fraud-risk)).
package struct AppleReceipts: ReceiptExchange {
    private let http: ProviderHTTP
    private let keys: [DeviceCheckKey]
    private let settings: AppleReceiptSettings
    private let clock: any ServiceClock

    /// A receipt exchange over an HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - keys: one key for each team. The prefix of the App ID selects the key.
    ///   - settings: addresses and deadlines.
    ///   - clock: the time at which requests are signed.
    package init(
        http: ProviderHTTP, keys: [DeviceCheckKey], settings: AppleReceiptSettings = AppleReceiptSettings(),
        clock: any ServiceClock = SystemClock()
    ) {
        self.http = http
        self.keys = keys
        self.settings = settings
        self.clock = clock
    }

    /// Exchanges a receipt in one request. Without a key for the App ID, nothing is sent.
    package func exchange(
        _ receipt: [UInt8], appID: AppleAppID, environment: AttestEnvironment
    ) async -> ReceiptAnswer {
        guard let key = keys.first(where: { $0.isFor(appID) }) else { return .noKey }
        let server =
            switch environment {
            case .production: settings.productionURL
            case .development: settings.developmentURL
            }
        do {
            let request = try ReceiptExchangeRequest(
                receipt: receipt, environment: environment, signedBy: key.signer,
                at: Date(timeIntervalSince1970: TimeInterval(clock.now.seconds)), server: server)
            let answer = try await http.send(
                ProviderRequest(
                    call: .appleReceipt, url: request.url, headers: [("Authorization", request.authorization)],
                    body: request.body,
                    maximumResponse: ReceiptExchangeAnswer.maximumBody),
                within: settings.deadline)
            return Self.meaning(of: answer)
        } catch {
            return .unavailable(reason: "\(error)", retryAfter: nil)
        }
    }

    private static func meaning(of answer: ProviderResponse) -> ReceiptAnswer {
        switch ReceiptExchangeAnswer(status: answer.status, body: answer.body) {
        case .receipt(let receipt): .receipt(receipt)
        case .tooEarly: .tooEarly
        case .badReceipt: .badReceipt
        case .unauthorized: .unauthorized
        case .noData: .noData
        case .tooManyRequests: .tooManyRequests(retryAfter: answer.retryAfter)
        case .unavailable(200): .unavailable(reason: "the body of the response is not base64", retryAfter: nil)
        case .unavailable(let status):
            .unavailable(reason: "Apple's server answered \(status)", retryAfter: answer.retryAfter)
        }
    }
}
