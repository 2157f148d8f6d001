/// A metric that is read at each scrape, such as the size of a store.
public struct MetricsSource: Sendable {
    /// What the figure is.
    public enum Kind: Sendable {
        /// It goes up and down.
        case gauge
        /// It only grows, from 0 at the start of the process.
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
    ///   - kind: what the figure is.
    ///   - help: one sentence, for whoever looks at it.
    ///   - read: the value now; nil: the one before stays.
    public init(_ name: String, kind: Kind = .gauge, help: String, read: @escaping @Sendable () async -> Double?) {
        self.name = name
        self.kind = kind
        self.help = help
        self.read = read
    }
}
