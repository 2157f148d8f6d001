internal import AuthService
internal import Bytes
internal import Dispatch

/// The address that a delivery may connect to.
///
/// A name is resolved here, and the connection goes to the address that was checked: if the name resolves to another address a
/// moment later (DNS rebinding), that has no effect.
enum ReceiverAddress {
    /// The reason why there is no address to connect to.
    enum Failure: Error, Hashable {
        case unresolved
        case refused(String)
    }

    private typealias Lookup = OnceValue<[WebhookAddress]?>

    /// The lookups that run, with the callers that wait for each.
    private static let lookups = Locked<[String: [Lookup]]>([:])
    /// The largest number of names that are looked up at once, and of callers that wait for one name. It is bounded, because a
    /// resolver that hangs blocks a thread for each name.
    private static let maximumLookups = 64
    static let deadline = DispatchTimeInterval.seconds(5)

    /// Resolves a host within five seconds. If the host is an address, the call needs no resolver and never waits.
    ///
    /// - Parameters:
    ///   - host: a name or an address without brackets.
    ///   - isLoopback: whether the URL itself names this machine.
    static func find(_ host: String, loopback isLoopback: Bool) async throws(Failure) -> String {
        if let literal = WebhookAddress.all(of: host, literal: true) {
            return try choose(literal, loopback: isLoopback)
        }
        guard let found = await lookUp(host, by: { WebhookAddress.all(of: $0, literal: false) }) else {
            throw .unresolved
        }
        return try choose(found, loopback: isLoopback)
    }

    /// The addresses of a name; nil if there are none, if they do not arrive in time, or if too many lookups or callers wait. A
    /// name has at most one lookup at a time.
    static func lookUp(
        _ host: String, within deadline: DispatchTimeInterval = Self.deadline,
        by resolve: @escaping @Sendable (String) -> [WebhookAddress]?
    ) async -> [WebhookAddress]? {
        let found = Lookup()
        let isFirst: Bool? = lookups.withLock { lookups in
            guard let waiting = lookups[host] else {
                guard lookups.count < maximumLookups else { return nil }
                lookups[host] = [found]
                return true
            }
            let current = waiting.filter { !$0.isGiven }
            guard current.count < maximumLookups else { return nil }
            lookups[host] = current + [found]
            return false
        }
        guard let isFirst else { return nil }
        if isFirst {
            // Use a separate serial queue, which has its own thread, because the threads of the global queue serve the stores.
            DispatchQueue(label: "synheart.webhooks.name").async {
                let addresses = resolve(host)
                for waiting in lookups.withLock({ $0.removeValue(forKey: host) }) ?? [] { waiting.give(addresses) }
            }
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + deadline) { [weak found] in found?.give(nil) }
        return await found.value
    }

    /// Chooses the first address. If one address is forbidden, all are refused, because a name with an allowed and a forbidden
    /// address is an attack.
    private static func choose(_ all: [WebhookAddress], loopback isLoopback: Bool) throws(Failure) -> String {
        for address in all where !address.isAllowed(loopback: isLoopback) { throw .refused(address.text) }
        guard let chosen = all.first else { throw .unresolved }
        return chosen.text
    }
}
