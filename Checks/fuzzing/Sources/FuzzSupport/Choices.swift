/// An input as a list of choices: a grammar asks, and the fuzzer's bytes answer.
///
/// When the input has ended every answer is 0, which grammars take for "as it should be". So an empty input makes an honest
/// object, and a longer one differs from it in more places.
public struct Choices {
    private var rest: ArraySlice<UInt8>

    /// The choices of one input.
    public init(_ start: UnsafePointer<UInt8>, _ count: Int) {
        rest = Array(UnsafeBufferPointer(start: start, count: count))[...]
    }

    /// The next byte.
    public mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number from 0 up to but not including `count`, which is 1 to 65536.
    public mutating func below(_ count: Int) -> Int {
        let value = count > 256 ? Int(byte()) << 8 | Int(byte()) : Int(byte())
        return value % max(count, 1)
    }

    /// Yes for one answer in `count`, and not for 0.
    public mutating func once(in count: Int) -> Bool { below(count) == count - 1 && count > 1 }

    /// One of several; the first is the honest one.
    public mutating func pick<Value>(_ first: Value, _ others: Value...) -> Value {
        let index = below(others.count + 1)
        return index == 0 ? first : others[index - 1]
    }

    /// Returns at most this many bytes.
    public mutating func bytes(atMost count: Int) -> [UInt8] {
        let count = min(below(count + 1), rest.count)
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}

/// What a verifier must make of an object: by default, verify it.
public struct Expectation {
    /// Nothing must refuse, and something may.
    private var isOpen = false
    /// The lines of the grammar that made changes which must be refused.
    private var refusals: [UInt] = []

    /// Everything is as it should be.
    public init() {}

    /// Something was changed that must be refused, if a condition holds.
    public mutating func refuse(if condition: Bool = true, line: UInt = #line) {
        if condition { refusals.append(line) }
    }

    /// Something was changed of which the grammar does not say what becomes of it. If it verifies, it must say what was built.
    public mutating func leaveOpen(if condition: Bool = true) {
        if condition { isOpen = true }
    }

    /// A later change may have undone the earlier ones.
    public mutating func startOver() {
        refusals.removeAll()
        isOpen = true
    }

    /// What must be refused for either of two reasons, and may be refused if one of them is open.
    public mutating func add(_ other: Self) {
        refusals += other.refusals
        isOpen = isOpen || other.isOpen
    }

    /// Stops the fuzzer if an outcome is not the expected one.
    public func check(verified: Bool, _ reason: @autoclosure () -> String) {
        if verified {
            require(refusals.isEmpty, "verified, in spite of lines \(refusals)")
        } else {
            require(isOpen || !refusals.isEmpty, "refused: \(reason())")
        }
    }
}

/// Stops the fuzzer, with a message in release builds too, if a condition does not hold.
public func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { fatalError(message()) }
}
