#if os(Linux)
    internal import Foundation
#endif

/// A source of unpredictable bytes. It is injected, so that tests can choose the bytes.
public protocol RandomSource: Sendable {
    /// `count` unpredictable bytes.
    func bytes(_ count: Int) -> [UInt8]

    /// 16 unpredictable bytes as two big-endian numbers, for ids.
    func words() -> (UInt64, UInt64)
}

extension RandomSource {
    public func words() -> (UInt64, UInt64) {
        let bytes = bytes(16)
        return (bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }, bytes[8...].reduce(0) { $0 << 8 | UInt64($1) })
    }
}

/// The operating system's generator.
public struct SystemRandom: RandomSource {
    /// A generator of this process.
    public init() {}

    public func bytes(_ count: Int) -> [UInt8] {
        #if os(Linux)
            // getentropy gives up to 256 bytes in one system call. The generator below makes one call for each 8 bytes.
            var all = [UInt8](repeating: 0, count: count)
            if count <= 256, getentropy(&all, count) == 0 { return all }
        #endif
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

    public func words() -> (UInt64, UInt64) {
        #if os(Linux)
            var words: (UInt64, UInt64) = (0, 0)
            if withUnsafeMutableBytes(of: &words, { getentropy($0.baseAddress, $0.count) }) == 0 { return words }
        #endif
        var generator = SystemRandomNumberGenerator()
        return (generator.next(), generator.next())
    }
}
