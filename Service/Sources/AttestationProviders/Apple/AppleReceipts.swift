public import AppAttest
internal import AuthContract
public import AuthService
internal import Foundation

/// Where Apple is asked, and for how long.
public struct AppleReceiptSettings: Sendable {
    /// For keys of the production environment; another one is for tests.
    public var productionURL = "https://data.appattest.apple.com"
    /// For keys of the development environment; another one is for tests.
    public var developmentURL = "https://data-development.appattest.apple.com"
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
        let base =
            switch environment {
            case .production: settings.productionURL
            case .development: settings.developmentURL
            }
        do {
            // The bare token, as in Apple's own example, without a scheme before it.
            let request = ProviderRequest(
                url: base + "/v1/attestationData", headers: [("Authorization", try key.token(at: clock.now))],
                body: Array(Base64.standard.encode(receipt).utf8), maximumAnswer: 2 * Receipt.maximumSize)
            return Self.meaning(of: try await http.send(request, within: settings.deadline))
        } catch {
            return .unavailable(reason: "\(error)", retryAfter: nil)
        }
    }

    private static func meaning(of answer: ProviderAnswer) -> ReceiptAnswer {
        switch answer.status {
        case 200:
            let text = String(decoding: answer.body, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            guard let receipt = Base64.standard.decode(text), !receipt.isEmpty else {
                return .unavailable(reason: "an answer that is no base64", retryAfter: nil)
            }
            return .receipt(receipt)
        case 304: return .tooEarly
        case 400: return .badReceipt
        case 401: return .unauthorized
        case 404: return .noData
        case 429: return .tooManyRequests(retryAfter: answer.retryAfter)
        default: return .unavailable(reason: "Apple's server answered \(answer.status)", retryAfter: answer.retryAfter)
        }
    }
}
