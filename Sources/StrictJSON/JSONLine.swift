/// One object on one line, written member by member, such as a line of a log. The caller guarantees that no name is
/// repeated.
public struct JSONLine: Sendable {
    private var writer = JSONWriter(layout: .compact)
    private var isEmpty = true

    /// An object without members.
    public init() {}

    /// Adds a text.
    public mutating func add(_ name: String, _ value: String) {
        begin(name)
        writer.write(value)
    }

    /// Adds a number.
    public mutating func add(_ name: String, _ value: Int64) {
        begin(name)
        writer.write(.integer(value))
    }

    /// The complete line as UTF-8, with a line feed at the end.
    public consuming func bytes() -> [UInt8] {
        if isEmpty { writer.append(UInt8(ascii: "{")) }
        writer.append(UInt8(ascii: "}"))
        writer.append(UInt8(ascii: "\n"))
        return writer.bytes
    }

    private mutating func begin(_ name: String) {
        writer.append(UInt8(ascii: isEmpty ? "{" : ","))
        isEmpty = false
        writer.write(name)
        writer.append(UInt8(ascii: ":"))
    }
}
