public import NIOCore

/// A command as an array of bulk strings, the form that every server reads.
public struct RESPCommand: Sendable, Hashable {
    /// The bytes for the wire.
    public private(set) var buffer: ByteBuffer
    /// The number of arguments that are still to be added.
    private var missing: Int

    /// A command with `count` words. It begins with `words`, and `add` adds the others.
    ///
    /// - Parameters:
    ///   - words: the first words.
    ///   - count: the total number of words; nil: `words` are all of them.
    public init(_ words: String..., count: Int? = nil) { self.init(words, count: count) }

    /// A command that begins with these words. `count` is the total number of words; nil: these are all of them.
    public init(_ words: [String], count: Int? = nil) {
        buffer = ByteBuffer()
        let count = max(count ?? 0, words.count)
        missing = count
        buffer.reserveCapacity(words.reduce(16) { $0 + $1.utf8.count + 8 } + 48 * (count - words.count))
        writeHead(UInt8(ascii: "*"), count)
        for word in words { add(word) }
    }

    /// Whether all arguments were added. After an incomplete command, the server would read the next command as the missing
    /// arguments.
    public var isComplete: Bool { missing == 0 }

    /// Adds a text.
    public mutating func add(_ text: String) {
        writeHead(UInt8(ascii: "$"), text.utf8.count)
        buffer.writeString(text)
        end()
    }

    /// Adds bytes.
    public mutating func add(bytes: some Collection<UInt8>) {
        writeHead(UInt8(ascii: "$"), bytes.count)
        buffer.writeBytes(bytes)
        end()
    }

    /// Adds one argument that consists of a text and bytes, without joining them first.
    public mutating func add(_ prefix: String, bytes: some Collection<UInt8>) {
        writeHead(UInt8(ascii: "$"), prefix.utf8.count + bytes.count)
        buffer.writeString(prefix)
        buffer.writeBytes(bytes)
        end()
    }

    /// Adds one argument that consists of a text and two numbers after it, eight bytes each, big-endian.
    public mutating func add(_ prefix: String, _ high: UInt64, _ low: UInt64) {
        writeHead(UInt8(ascii: "$"), prefix.utf8.count + 16)
        buffer.writeString(prefix)
        buffer.writeInteger(high)
        buffer.writeInteger(low)
        end()
    }

    /// Adds a number as decimal digits.
    public mutating func add(_ number: Int64) {
        withDigits(of: number) { digits in
            writeHead(UInt8(ascii: "$"), digits.count)
            buffer.writeBytes(digits)
        }
        end()
    }

    private mutating func end() {
        buffer.writeInteger(0x0D0A as UInt16)
        missing -= 1
    }

    private mutating func writeHead(_ type: UInt8, _ count: Int) {
        buffer.writeInteger(type)
        withDigits(of: Int64(count)) { buffer.writeBytes($0) }
        buffer.writeInteger(0x0D0A as UInt16)
    }

    /// Passes the decimal digits of the number to `body` without creating a string, because commands are built for every request.
    private func withDigits(of number: Int64, _ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var (rest, start) = (number.magnitude, digits.count)
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                start -= 1
                digits[start] = UInt8(ascii: "-")
            }
            body(UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }
}
