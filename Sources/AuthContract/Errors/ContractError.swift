/// Text that is not in the form the contract asks for. The service answers it with `INVALID_REQUEST`.
public struct ContractError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What an honest developer has to change. Holds nothing of the input.
    public let description: String

    /// An error with this explanation.
    public init(_ description: String) { self.description = description }
}
