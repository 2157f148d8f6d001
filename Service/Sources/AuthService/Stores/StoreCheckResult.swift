/// The result of one check that a store runs on itself, in words for the operator. `doctor` and `config check` print it.
public struct StoreCheckResult: Sendable, Hashable {
    /// The severity of a result.
    public enum Level: String, Sendable, Hashable, CaseIterable {
        /// No fault.
        case good
        /// The store works, but not as well or as safely as it could.
        case warning
        /// The service would not start, or could not keep its guarantees.
        case failure
    }

    /// The severity, which determines the exit code of `doctor`.
    public let level: Level
    /// The name of the check: short and stable, such as `postgresql_version`.
    public let check: String
    /// The result, as one sentence without secrets.
    public let sentence: String
    /// What the operator should do; nil if nothing needs to be done.
    public let advice: String?

    /// A result without a fault.
    public static func good(_ check: String, _ sentence: String) -> StoreCheckResult {
        StoreCheckResult(level: .good, check: check, sentence: sentence, advice: nil)
    }

    /// A result for a store that works, but should be improved.
    public static func warning(_ check: String, _ sentence: String, do advice: String) -> StoreCheckResult {
        StoreCheckResult(level: .warning, check: check, sentence: sentence, advice: advice)
    }

    /// A result for a fault that must be corrected.
    public static func failure(_ check: String, _ sentence: String, do advice: String) -> StoreCheckResult {
        StoreCheckResult(level: .failure, check: check, sentence: sentence, advice: advice)
    }
}
