/// The error for bytes that are not RESP, or that exceed the limits of the decoder.
public struct RESPError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The fault. The text contains no byte of the input.
    public let description: String

    init(_ description: String) { self.description = description }
}
