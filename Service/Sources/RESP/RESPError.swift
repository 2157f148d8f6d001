/// Why bytes are not RESP, or exceed the limits of the decoder.
public struct RESPError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong. No byte of the input is in it.
    public let description: String

    init(_ description: String) { self.description = description }
}
