// Stand-in for a pair of bound streams, which swift-corelibs-foundation does not have. The input ends when the output is closed or
// released.
import Foundation

extension Stream {
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let buffer = BoundBuffer(size: bufferSize)
        inputStream?.pointee = BoundInput(buffer)
        outputStream?.pointee = BoundOutput(buffer)
    }
}

/// Unchecked: `condition` guards every member.
private final class BoundBuffer: @unchecked Sendable {
    let condition = NSCondition()
    let size: Int
    var bytes: [UInt8] = []
    var isEnded = false
    var isRead = true

    init(size: Int) { self.size = size }

    func change(_ change: (BoundBuffer) -> Void) {
        condition.withLock {
            change(self)
            condition.broadcast()
        }
    }
}

private final class BoundInput: InputStream {
    private let buffer: BoundBuffer
    private var status = Stream.Status.notOpen

    init(_ buffer: BoundBuffer) {
        self.buffer = buffer
        super.init(data: Data())
    }

    deinit { buffer.change { $0.isRead = false } }

    override var streamStatus: Stream.Status { status }
    override var hasBytesAvailable: Bool { true }
    override func open() { status = .open }
    override func close() { buffer.change { $0.isRead = false } }

    /// Reads buffered bytes. Fails if none arrive within half a second, because a waiting read blocks its thread. On
    /// Apple's systems, URLSession waits without a thread, and can be cancelled meanwhile.
    override func read(_ target: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        buffer.condition.withLock {
            let end = Date(timeIntervalSinceNow: 0.5)
            while buffer.bytes.isEmpty, !buffer.isEnded {
                guard buffer.isRead, buffer.condition.wait(until: end) else { return -1 }
            }
            let piece = buffer.bytes.prefix(length)
            UnsafeMutableRawBufferPointer(start: target, count: length).copyBytes(from: piece)
            buffer.bytes.removeFirst(piece.count)
            buffer.condition.broadcast()
            return piece.count
        }
    }
}

private final class BoundOutput: OutputStream {
    private let buffer: BoundBuffer
    private var status = Stream.Status.notOpen

    init(_ buffer: BoundBuffer) {
        self.buffer = buffer
        super.init(toMemory: ())
    }

    required init(toMemory: ()) {
        buffer = BoundBuffer(size: 0)
        super.init(toMemory: ())
    }

    deinit { buffer.change { $0.isEnded = true } }

    override var streamStatus: Stream.Status { status }
    override func open() { status = .open }
    override func close() {
        status = .closed
        buffer.change { $0.isEnded = true }
    }

    override func write(_ source: UnsafePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open else { return -1 }
        return buffer.condition.withLock {
            while buffer.isRead, buffer.bytes.count >= buffer.size { buffer.condition.wait() }
            guard buffer.isRead else { return -1 }
            let count = min(length, buffer.size - buffer.bytes.count)
            buffer.bytes += UnsafeBufferPointer(start: source, count: count)
            buffer.condition.broadcast()
            return count
        }
    }
}
