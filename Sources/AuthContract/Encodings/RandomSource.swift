/// Where unpredictable bytes come from; injected, so that a test can say which.
public protocol RandomSource: Sendable {
    /// `count` bytes that nobody can predict.
    func bytes(_ count: Int) -> [UInt8]
}

/// The operating system's generator.
public struct SystemRandom: RandomSource {
    /// The generator of this process.
    public init() {}

    public func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            var word = generator.next()
            for _ in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}
