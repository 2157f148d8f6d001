/// Text that is not in the form the contract asks for.
public struct ContractError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What an honest developer has to change. Holds nothing of the input.
    public let description: String

    /// What the service answers it with.
    public let code: ErrorCode

    /// An error with this explanation.
    public init(_ description: String, code: ErrorCode = .invalidRequest) {
        self.description = description
        self.code = code
    }
}
