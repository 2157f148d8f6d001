/// The error of a text that does not have the form that the contract requires.
public struct ContractError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The required form, for the developer. The errors of this module contain nothing of the input.
    public let description: String

    /// The code of the service's answer.
    public let code: ErrorCode

    /// Memberwise initializer.
    public init(_ description: String, code: ErrorCode = .invalidRequest) {
        self.description = description
        self.code = code
    }
}
