package import AuthContract

/// A kind of request that a service must refuse.
package enum BadTraffic: String, Sendable, Hashable, CaseIterable {
    /// A request that was accepted before.
    case replay
    /// A request with a signature for another path.
    case signature
    /// A request of a device that is unknown to the service.
    case stranger
    /// A request dated an hour ago.
    case clock
    /// A request whose nonce is malformed.
    case malformed
    /// A registration with an invalid attestation.
    case attestation

    /// The code with which the service must refuse the request. If a rate limit is reached, `RATE_LIMITED` is correct too.
    package var code: ErrorCode {
        switch self {
        case .replay: .nonceReplay
        case .signature: .invalidSignature
        case .stranger: .notRegistered
        case .clock: .clockSkew
        case .malformed: .invalidRequest
        case .attestation: .invalidAttestation
        }
    }

    func isRefused(with code: String?) -> Bool { code == self.code.rawValue || code == ErrorCode.rateLimited.rawValue }
}

/// The share of each kind of bad requests in a load.
package struct BadShares: Sendable, Hashable {
    private let percent: [BadTraffic: Double]

    /// Creates the shares from each kind's percentage of all requests. An empty dictionary means no bad requests.
    package init(percent: [BadTraffic: Double] = [:]) { self.percent = percent.filter { $0.value > 0 } }

    /// The sum of the percentages of all kinds.
    package var total: Double { percent.values.reduce(0, +) }

    /// The kind of the bad request with this number; nil if the request is a good one. Bad requests are spread evenly
    /// over the numbers, and the kinds are spread evenly over the bad requests.
    func kind(of number: Int) -> BadTraffic? {
        let before = count(before: number)
        guard count(before: number + 1) > before else { return nil }
        // The fractional parts of the multiples of the golden ratio fill the interval from 0 to 1 evenly.
        var place = (Double(before) * 0.618_033_988_749_895).truncatingRemainder(dividingBy: 1) * total
        let kinds = BadTraffic.allCases.filter { percent[$0] != nil }
        for kind in kinds {
            place -= percent[kind] ?? 0
            if place < 0 { return kind }
        }
        return kinds.last
    }

    /// The number of bad requests among the requests with smaller numbers.
    func count(before number: Int) -> Int { Int((Double(number) * min(total, 100) / 100).rounded(.down)) }
}
