internal import AuthContract
internal import AuthService
internal import Bytes
internal import RESP

/// A time during which a bucket has lost no claims.
///
/// Redis keeps it in a hash beside the claims. Every claim compares its id in the same script. It names the process, its time as a
/// master and the number of evicted keys. If one of them is another now, the next epoch begins, and with it the dates around these
/// readings of the clock are refused (protocol, *Loss of history*).
struct Epoch: Sendable, Hashable {
    let id: String
    /// The readings of the clock around which claims were lost.
    let losses: [Int64]

    /// Seconds for which a node may use a server after a majority named it.
    static let lease: Int64 = 5
    /// Seconds that the clocks of a node and its server may be apart: a node uses no server beyond it.
    static let clockTolerance: Int64 = 30
    /// Seconds that the clocks of two nodes may be apart: one is ahead of the server, the other behind.
    static let nodesApart = 2 * clockTolerance
    /// The least future window that is assumed.
    private static let leastWindow: Int64 = 5

    init(id: String, losses: [Int64]) {
        self.id = id
        self.losses = losses
    }

    /// Reads what the script answers: the id, and the readings with commas between them.
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

    /// Whether requests dated now may still be refused, with the widest future window.
    func refuses(at now: UnixTime) -> Bool {
        retryAfter(timestamp: now, futureWindow: SignaturePolicy.maximumFutureWindow) != nil
    }

    /// The seconds after which a new request can be judged; nil if a request of this date can be judged.
    ///
    /// A claim that was lost was dated at most `ReplayClaim.life` before, and `futureWindow` after, a reading of some node's
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
