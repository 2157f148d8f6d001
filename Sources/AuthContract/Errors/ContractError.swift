/// A text that does not have the form that the contract demands.
public struct ContractError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the form must be, for the developer. Holds nothing of the input.
    public let description: String

    /// The code of the service's answer.
    public let code: ErrorCode

    /// Memberwise initializer.
    public init(_ description: String, code: ErrorCode = .invalidRequest) {
        self.description = description
        self.code = code
    }
}
