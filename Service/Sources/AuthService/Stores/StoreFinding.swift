/// What a store's own check of itself found, in an operator's words: `doctor` and `config check` print it.
public struct StoreFinding: Sendable, Hashable {
    /// How bad it is.
    public enum Level: String, Sendable, Hashable, CaseIterable {
        /// As it should be.
        case good
        /// It works, but not as well or not as safely as it could.
        case warning
        /// The service would not start, or would lose what it promises.
        case failure
    }

    public let level: Level
    /// What was checked: a short stable name, such as `postgresql_version`.
    public let check: String
    /// One sentence without secrets.
    public let sentence: String
    /// What to do about it; nil if nothing needs to be done.
    public let advice: String?

    /// A finding that is as it should be.
    public static func good(_ check: String, _ sentence: String) -> StoreFinding {
        StoreFinding(level: .good, check: check, sentence: sentence, advice: nil)
    }

    /// A finding that works, but should be improved.
    public static func warning(_ check: String, _ sentence: String, do advice: String) -> StoreFinding {
        StoreFinding(level: .warning, check: check, sentence: sentence, advice: advice)
    }

    /// A finding that must be mended.
    public static func failure(_ check: String, _ sentence: String, do advice: String) -> StoreFinding {
        StoreFinding(level: .failure, check: check, sentence: sentence, advice: advice)
    }
}
