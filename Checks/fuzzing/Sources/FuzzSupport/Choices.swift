/// An input as a list of choices: a grammar asks, and the fuzzer's bytes answer.
///
/// After the end of the input, every answer is 0, which grammars use for the honest choice. So an empty input makes an
/// honest object, and a longer input changes more of it.
public struct Choices {
    private var rest: ArraySlice<UInt8>

    /// The choices of one input.
    public init(_ start: UnsafePointer<UInt8>, _ count: Int) {
        rest = Array(UnsafeBufferPointer(start: start, count: count))[...]
    }

    /// The next byte.
    public mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number from 0 up to, but not including, `count`, which is 1 to 65536.
    public mutating func below(_ count: Int) -> Int {
        let value = count > 256 ? Int(byte()) << 8 | Int(byte()) : Int(byte())
        return value % max(count, 1)
    }

    /// True for the last of `count` numbers. An input that has ended gives the number 0, so false.
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

/// The outcome that a verifier must have for an object. By default it must verify.
public struct Expectation {
    /// Whether a change was made that a verifier may refuse or accept.
    private var isOpen = false
    /// The lines of the grammar that made changes which must be refused.
    private var refusals: [UInt] = []

    /// An object without changes: it must verify.
    public init() {}

    /// Records a change that must be refused, if `condition` is true.
    public mutating func refuse(if condition: Bool = true, line: UInt = #line) {
        if condition { refusals.append(line) }
    }

    /// Records a change whose outcome the grammar does not define. If the object still verifies, its values must equal the built
    /// ones.
    public mutating func leaveOpen(if condition: Bool = true) {
        if condition { isOpen = true }
    }

    /// Forgets what must be refused, because a later change may have undone the earlier ones.
    public mutating func startOver() {
        refusals.removeAll()
        isOpen = true
    }

    /// Joins another expectation: the object must be refused if either must, and may be refused if either may.
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
