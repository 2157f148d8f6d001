internal import AuthContract
internal import AuthService
internal import Bytes
internal import Dispatch
internal import Foundation
internal import StrictJSON

/// Writes log lines without blocking the thread that logs.
///
/// Lines wait in a bounded queue, and one thread writes them. If the reader is slow or gone, only that thread waits. If the
/// queue is full, a line is dropped and counted. As soon as there is room, a line reports how many were dropped.
package final class LogWriter: Sendable {
    /// The maximum size of the queue.
    package struct Bounds: Sendable {
        package var lines = 8192
        package var bytes = 4 * 1024 * 1024

        /// The defaults.
        package init() {}
    }

    private struct Queue: Sendable {
        var lines = 0
        var text: [UInt8] = []
        /// Lost lines in total.
        var dropped = 0
        /// Lost lines that no line has reported yet.
        var unreported = 0
        var flushes: [DispatchSemaphore] = []

        mutating func lose(_ lines: Int) {
            dropped += lines
            unreported += lines
        }
    }

    private let queue = Locked(Queue())
    private let work = DispatchSemaphore(value: 0)
    /// How long a line waits for further lines, so that the thread wakes once and writes many. If every line woke the thread,
    /// a busy service would answer a tenth fewer requests (`Checks/benchmarks/http`).
    private let gathering: DispatchTimeInterval
    private let bounds: Bounds
    private let output: @Sendable ([UInt8]) -> Int

    /// Starts the thread that writes to a file descriptor, for the life of the process.
    ///
    /// - Parameters:
    ///   - descriptor: an open file descriptor, such as 2 for standard error. Nothing closes it.
    ///   - bounds: the largest amount that waits in the queue.
    package convenience init(descriptor: Int32, bounds: Bounds = Bounds()) {
        self.init(bounds: bounds) { Self.write($0, to: descriptor) }
    }

    /// - Parameters:
    ///   - bounds: the largest amount that waits in the queue.
    ///   - gathering: how long a line may wait for others.
    ///   - output: writes bytes, and returns how many of them it wrote before it failed. It may block.
    init(
        bounds: Bounds = Bounds(), gathering: DispatchTimeInterval = .milliseconds(20),
        output: @escaping @Sendable ([UInt8]) -> Int
    ) {
        self.bounds = bounds
        self.gathering = gathering
        self.output = output
        let thread = Thread { self.run() }
        thread.name = "log"
        thread.start()
    }

    /// Lost lines since the start: the queue was full, or writing to the descriptor failed.
    package var dropped: Int { queue.withLock(\.dropped) }

    /// Puts a line into the queue, or drops it if the queue is full.
    ///
    /// - Parameter line: one line, with its line end.
    func write(_ line: [UInt8]) {
        let wakes = queue.withLock { queue in
            guard queue.lines < bounds.lines, queue.text.count + line.count <= bounds.bytes else {
                queue.lose(1)
                return false
            }
            let wasHalfFull = isHalfFull(queue)
            queue.lines += 1
            queue.text += line
            return queue.lines == 1 || isHalfFull(queue) && !wasHalfFull
        }
        if wakes { work.signal() }
    }

    private func isHalfFull(_ queue: Queue) -> Bool {
        queue.lines > bounds.lines / 2 || queue.text.count > bounds.bytes / 2
    }

    /// Waits until everything that was logged before is written or lost, up to this time limit.
    ///
    /// - Returns: false if the time limit ended the wait.
    @discardableResult
    package func flush(within limit: Duration) -> Bool {
        let flushed = DispatchSemaphore(value: 0)
        queue.withLock { $0.flushes.append(flushed) }
        work.signal()
        let (whole, attoseconds) = limit.components
        let seconds = Double(whole) + Double(attoseconds) / 1e18
        return flushed.wait(timeout: .now() + seconds) == .success
    }

    private func run() {
        var capacity = 0
        while true {
            work.wait()
            // A flush or a half-full queue ends the wait, so that no line is dropped while the thread sleeps.
            _ = work.wait(timeout: .now() + gathering)
            let (batch, flushes) = take(leaving: capacity)
            capacity = batch.count
            let written = batch.isEmpty ? 0 : output(batch)
            if written < batch.count {
                let lost = batch[written...].count { $0 == UInt8(ascii: "\n") }
                queue.withLock { $0.lose(lost) }
            }
            for flushed in flushes { flushed.signal() }
        }
    }

    /// All waiting lines, followed by the report on dropped lines, and the semaphores of callers that wait in `flush`.
    ///
    /// - Parameter capacity: the bytes to reserve in the empty buffer that the queue gets, so that it need not grow again.
    private func take(leaving capacity: Int) -> (batch: [UInt8], flushes: [DispatchSemaphore]) {
        var batch: [UInt8] = []
        batch.reserveCapacity(capacity)
        let (unreported, flushes) = queue.withLock { queue in
            swap(&queue.text, &batch)
            // Report dropped lines only together with other lines: a flush of an empty queue writes nothing.
            let unreported = batch.isEmpty ? 0 : queue.unreported
            defer { (queue.lines, queue.unreported, queue.flushes) = (0, queue.unreported - unreported, []) }
            return (unreported, queue.flushes)
        }
        if unreported > 0 { batch += Self.report(unreported) }
        return (batch, flushes)
    }

    private static func report(_ count: Int) -> [UInt8] {
        var line = JSONLine()
        line.add("time", SystemClock().now.iso8601)
        line.add("level", "warning")
        line.add("logger", "log")
        line.add("message", "log lines were dropped: their reader was too slow")
        line.add("dropped", Int64(count))
        return line.bytes()
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                written += count
            } else if count < 0, errno == EINTR {
                continue
            } else if count < 0, errno == EAGAIN {
                // Another process that shares the descriptor made it non-blocking, so wait until it accepts more bytes.
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = Foundation.poll(&poll, 1, -1)
            } else {
                return written
            }
        }
        return written
    }
}
