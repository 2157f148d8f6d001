import Foundation

/// What several clients saw of a cluster, in the order of a clock that they share, and the rules that it must obey.
///
/// Every rule is judged from answers alone: what the nodes and the stores believe does not count.
actor History {
    typealias Moment = ContinuousClock.Instant

    /// One send of a signed request to one node.
    struct Use: Sendable {
        /// The same for each send of one request, also under another nonce.
        let request: String
        let device: String
        let node: Int
        let sent: Moment
        let answered: Moment
        let isAccepted: Bool
    }

    /// While a store was away: from when it surely was to when it came back.
    struct Outage: Sendable {
        let what: String
        /// The node that was without it; nil: every node.
        let node: Int?
        let from: Moment
        var until: Moment?
    }

    private var uses: [Use] = []
    private var challenges: [String: Int] = [:]
    private var revocations: [String: Moment] = [:]
    private var outages: [Outage] = []
    private(set) var problems: [String] = []

    func used(_ use: Use) { uses.append(use) }

    /// A registration with this challenge was accepted.
    func took(_ challenge: String) { challenges[challenge, default: 0] += 1 }

    /// The revocation was acknowledged now.
    func revoked(_ device: String) { revocations[device] = revocations[device] ?? .now }

    func problem(_ text: String) { problems.append(text) }

    /// From now on this node, or every node, may accept nothing.
    func begins(_ what: String, for node: Int? = nil) {
        outages.append(Outage(what: what, node: node, from: .now, until: nil))
    }

    /// The store may be used again.
    func ends(_ what: String) {
        for index in outages.indices where outages[index].what == what && outages[index].until == nil {
            outages[index].until = .now
        }
    }

    /// How often something was accepted.
    var accepted: Int { uses.count { $0.isAccepted } }

    /// How many requests a node accepted.
    func acceptances(by node: Int) -> Int { uses.count { $0.node == node && $0.isAccepted } }

    /// The first request that a node accepted after it was sent after this moment; nil if there is none.
    func firstAcceptance(by node: Int, after moment: Moment) -> Moment? {
        uses.filter { $0.node == node && $0.isAccepted && $0.sent >= moment }.map(\.answered).min()
    }

    /// Every rule that is broken.
    ///
    /// - Parameter revocationLimit: how long after its acknowledgement a revocation may be unknown to a node.
    func violations(revocationLimit: Duration) -> [String] {
        var found = problems
        for (request, sends) in Dictionary(grouping: uses.filter(\.isAccepted), by: \.request) where sends.count > 1 {
            found.append("request \(request) was accepted \(sends.count) times, by nodes \(sends.map(\.node))")
        }
        for (challenge, count) in challenges where count > 1 {
            found.append("challenge \(challenge) was taken \(count) times")
        }
        for use in uses where use.isAccepted {
            if let revoked = revocations[use.device], use.sent > revoked + revocationLimit {
                found.append("node \(use.node) accepted \(use.device) \(use.sent - revoked) after its revocation")
            }
            for outage in outages
            where outage.node ?? use.node == use.node && use.sent > outage.from && use.answered < outage.until ?? .now {
                found.append("node \(use.node) accepted a request while \(outage.what)")
            }
        }
        return found
    }
}
