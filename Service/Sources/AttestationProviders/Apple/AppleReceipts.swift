public import AppAttest
internal import AuthContract
public import AuthService
internal import Foundation

/// Where Apple is asked, and for how long.
public struct AppleReceiptSettings: Sendable {
    /// For keys of the production environment; another one is for tests.
    public var productionURL = ReceiptExchangeRequest.server(of: .production)
    /// For keys of the development environment; another one is for tests.
    public var developmentURL = ReceiptExchangeRequest.server(of: .development)
    /// The longest that one exchange takes.
    public var deadline: Duration = .seconds(15)

    /// The defaults.
    public init() {}
}

/// Apple's server for receipts
/// ([Assessing fraud risk](https://developer.apple.com/documentation/devicecheck/assessing-fraud-risk)).
public struct AppleReceipts: ReceiptExchange {
    private let http: ProviderHTTP
    private let keys: [DeviceCheckKey]
    private let settings: AppleReceiptSettings
    private let clock: any ServiceClock

    /// Exchanges over one HTTP client.
    ///
    /// - Parameters:
    ///   - http: the client.
    ///   - keys: one a team; an App ID is asked about with the key that names its prefix.
    ///   - settings: addresses and deadlines.
    ///   - clock: the time that requests are signed at.
    public init(
        http: ProviderHTTP, keys: [DeviceCheckKey], settings: AppleReceiptSettings = AppleReceiptSettings(),
        clock: any ServiceClock = SystemClock()
    ) {
        self.http = http
        self.keys = keys
        self.settings = settings
        self.clock = clock
    }

    /// Asks once.
    public func exchange(
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
                    url: request.url, headers: [("Authorization", request.authorization)], body: request.body,
                    maximumAnswer: ReceiptExchangeAnswer.maximumBody),
                within: settings.deadline)
            return Self.meaning(of: answer)
        } catch {
            return .unavailable(reason: "\(error)", retryAfter: nil)
        }
    }

    private static func meaning(of answer: ProviderAnswer) -> ReceiptAnswer {
        switch ReceiptExchangeAnswer(status: answer.status, body: answer.body) {
        case .receipt(let receipt): .receipt(receipt)
        case .tooEarly: .tooEarly
        case .badReceipt: .badReceipt
        case .unauthorized: .unauthorized
        case .noData: .noData
        case .tooManyRequests: .tooManyRequests(retryAfter: answer.retryAfter)
        case .unavailable(status: 200): .unavailable(reason: "an answer that is no base64", retryAfter: nil)
        case .unavailable(let status):
            .unavailable(reason: "Apple's server answered \(status)", retryAfter: answer.retryAfter)
        }
    }
}
