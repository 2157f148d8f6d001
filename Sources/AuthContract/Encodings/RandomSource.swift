internal import Foundation

/// A source of unpredictable bytes. It is injected, so that tests can choose the bytes.
public protocol RandomSource: Sendable {
    /// `count` unpredictable bytes.
    func bytes(_ count: Int) -> [UInt8]
}

/// The operating system's generator.
public struct SystemRandom: RandomSource {
    /// Creates the source. It has no state.
    public init() {}

    public func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        // One call fills all bytes. The standard library's generator would make one call for every eight bytes.
        #if canImport(Darwin)
            // iOS, tvOS, watchOS and visionOS declare no `getentropy`, and the App Store refuses it.
            arc4random_buf(&bytes, count)
        #else
            if count > Self.limit || getentropy(&bytes, count) != 0 {
                var generator = SystemRandomNumberGenerator()
                for index in bytes.indices { bytes[index] = generator.next() }
            }
        #endif
        return bytes
    }

    #if !canImport(Darwin)
        /// The largest size of one `getentropy` call (POSIX.1-2024).
        private static let limit = 256
    #endif
}
