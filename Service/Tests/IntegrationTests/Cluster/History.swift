import Foundation

/// The answers that several clients got from a cluster, ordered by one shared clock, and the rules that the cluster must obey.
///
/// Each rule is judged only from answers, not from the state of nodes and stores.
actor History {
    typealias Moment = ContinuousClock.Instant

    /// A single send of a signed request to one node.
    struct Use: Sendable {
        /// The same value for each send of one request, even under another nonce.
        let request: String
        let device: String
        let node: Int
        let sent: Moment
        let answered: Moment
        let isAccepted: Bool
    }

    /// A store's outage: from a time when the store was certainly unavailable to its return. `until` is nil before the return.
    struct Outage: Sendable {
        let what: String
        /// The node that lost the store; nil: every node.
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

    /// Records that a registration with this challenge was accepted.
    func took(_ challenge: String) { challenges[challenge, default: 0] += 1 }

    /// Records that the device's revocation was acknowledged now.
    func revoked(_ device: String) { revocations[device] = revocations[device] ?? .now }

    func problem(_ text: String) { problems.append(text) }

    /// Begins an outage: from now on this node must accept nothing. If `node` is nil, no node may accept anything.
    func begins(_ what: String, for node: Int? = nil) {
        outages.append(Outage(what: what, node: node, from: .now, until: nil))
    }

    /// Ends an outage: requests may be accepted again.
    func ends(_ what: String) {
        for index in outages.indices where outages[index].what == what && outages[index].until == nil {
            outages[index].until = .now
        }
    }

    /// The number of accepted requests.
    var accepted: Int { uses.count { $0.isAccepted } }

    /// The number of requests that a node accepted.
    func acceptances(by node: Int) -> Int { uses.count { $0.node == node && $0.isAccepted } }

    /// The time of the first answer by which a node accepted a request that was sent after this moment; nil: none yet.
    func firstAcceptance(by node: Int, after moment: Moment) -> Moment? {
        uses.filter { $0.node == node && $0.isAccepted && $0.sent >= moment }.map(\.answered).min()
    }

    /// Every violated rule.
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
