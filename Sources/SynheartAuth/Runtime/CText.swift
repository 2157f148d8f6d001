internal import Bytes
internal import Dispatch
internal import Foundation

/// Converts text and bytes between C and Swift. Input from C is checked; output to C is malloc'd.
package enum CText {
    /// A C string as UTF-8; nil for NULL, for malformed UTF-8, and beyond 64 KiB.
    package static func string(_ pointer: UnsafePointer<CChar>?) -> String? {
        guard let pointer else { return nil }
        let length = strnlen(pointer, 65_537)
        guard length <= 65_536 else { return nil }
        let bytes = UnsafeRawBufferPointer(start: pointer, count: length)
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.elementsEqual(bytes) ? text : nil
    }

    /// A copy of the bytes; nil if the length is negative, if it is 2 GiB or more, or if the pointer is NULL and the length is not 0.
    /// The length is limited because Swift stops the process if it cannot allocate the copy.
    package static func bytes(_ pointer: UnsafePointer<UInt8>?, _ length: Int) -> [UInt8]? {
        if length == 0 { return [] }
        guard let pointer, (0...Int(Int32.max)).contains(length) else { return nil }
        return Array(UnsafeBufferPointer(start: pointer, count: length))
    }

    /// A malloc'd copy, which the caller frees.
    package static func copy(_ text: String) -> UnsafeMutablePointer<CChar>? { strdup(text) }

    /// A malloc'd copy of bytes, which the caller frees; nil if there are none.
    package static func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<UInt8>? {
        guard !bytes.isEmpty, let memory = malloc(bytes.count)?.bindMemory(to: UInt8.self, capacity: bytes.count) else {
            return nil
        }
        memory.initialize(from: bytes, count: bytes.count)
        return memory
    }
}

/// Whether this process is a fork of one that used the SDK before. A fork has none of the SDK's threads, so every wait would last
/// for ever.
package var isForkedProcess: Bool { getpid() != firstProcess }
private let firstProcess = getpid()

/// Waits for asynchronous work, and blocks the caller's thread, which must not be one of Swift's thread pool. Returns nil in a
/// forked process.
///
/// - Parameter body: The work. It limits its own time, and returns nil if it was abandoned.
package func wait<Value: Sendable>(_ body: @escaping @Sendable () async -> Value?) -> Value? {
    guard !isForkedProcess else { return nil }
    let done = DispatchSemaphore(value: 0)
    let box = Locked<Value?>(nil)
    Task.detached {
        let value = await body()
        box.withLock { $0 = value }
        done.signal()
    }
    done.wait()
    return box.withLock { $0 }
}
