/// A source of unpredictable bytes. It is injected, so that tests can choose the bytes.
public protocol RandomSource: Sendable {
    /// `count` unpredictable bytes.
    func bytes(_ count: Int) -> [UInt8]
}

/// The operating system's generator.
public struct SystemRandom: RandomSource {
    /// A generator of this process.
    public init() {}

    public func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        // Eight bytes at a time: on Linux each number is a system call.
        let words = stride(from: 0, to: count, by: 8).map { _ in generator.next() }
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }
}
