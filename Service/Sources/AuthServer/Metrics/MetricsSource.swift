/// A metric that is read at each scrape, such as the size of a store.
package struct MetricsSource: Sendable {
    /// The kind of metric.
    package enum Kind: Sendable {
        /// A gauge, which rises and falls.
        case gauge
        /// A counter: it only grows, from 0 at the start of the process.
        case counter
    }

    let name: String
    let kind: Kind
    let help: String
    let read: @Sendable () async -> Double?

    /// A metric.
    ///
    /// - Parameters:
    ///   - name: such as `synheart_replay_claims`.
    ///   - kind: counter or gauge.
    ///   - help: one sentence.
    ///   - read: returns the current value; nil: the last value stays.
    package init(_ name: String, kind: Kind = .gauge, help: String, read: @escaping @Sendable () async -> Double?) {
        self.name = name
        self.kind = kind
        self.help = help
        self.read = read
    }
}
