internal import AuthContract
internal import AuthService
internal import Bytes
internal import RESP

/// A time in which a bucket has lost no claims.
///
/// Redis keeps the epoch in a hash beside the claims. The claim script compares the epoch's id in the same step. The hash holds
/// the run id, the replication id and the number of evicted keys. If one of them changes, the next epoch begins, and requests
/// dated around the recorded clock readings are refused (protocol, *Loss of history*).
struct Epoch: Sendable, Hashable {
    let id: String
    /// The readings of the clock around which claims were lost.
    let losses: [Int64]

    /// Seconds for which a node may use a server after a majority confirmed it.
    static let lease: Int64 = 5
    /// The largest difference between the clocks of a node and its server, in seconds. Beyond it, the node does not use the
    /// server.
    static let clockTolerance: Int64 = 30
    /// The largest difference between the clocks of two nodes, in seconds: one is ahead of the server, the other behind.
    static let nodesApart = 2 * clockTolerance
    /// The smallest future window that is assumed, in seconds.
    private static let leastWindow: Int64 = 5

    init(id: String, losses: [Int64]) {
        self.id = id
        self.losses = losses
    }

    /// Reads a script's answer: the id, and the readings, separated by commas.
    init?(_ words: [RESPValue]) {
        guard let id = words[0].text, (1...64).contains(id.utf8.count), let text = words[1].text else { return nil }
        var losses: [Int64] = []
        for word in text.split(separator: ",") {
            guard let reading = Int64(word), (0...(1 << 40)).contains(reading) else { return nil }
            losses.append(reading)
        }
        self.init(id: id, losses: losses)
    }

    static func newID() -> String { Hexadecimal.encode(SystemRandom().bytes(8)) }

    /// Whether requests dated now may be refused, with the widest future window.
    func refuses(at now: UnixTime) -> Bool {
        retryAfter(timestamp: now, futureWindow: SignaturePolicy.maximumFutureWindow) != nil
    }

    /// The seconds until a request dated now can be judged; nil if a request of this date can be judged.
    ///
    /// A lost claim was dated at most `ReplayClaim.life` before, and at most `futureWindow` after, a reading of some node's
    /// clock. Nodes may have used the lost data until their lease ended.
    func retryAfter(timestamp: UnixTime, futureWindow: Int64) -> Int64? {
        guard !losses.isEmpty else { return nil }
        let window = min(max(futureWindow, Self.leastWindow), 3600)
        var next = timestamp.seconds
        while let reading = losses.first(where: {
            $0 - ReplayClaim.life - Self.nodesApart <= next && next <= $0 + Self.lease + Self.nodesApart + window
        }) { next = reading + Self.lease + Self.nodesApart + window + 1 }
        return next == timestamp.seconds ? nil : next - timestamp.seconds
    }
}
