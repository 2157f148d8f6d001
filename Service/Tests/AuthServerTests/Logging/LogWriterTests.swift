import AuthContract
import Bytes
import Foundation
import Logging
import StrictJSON
import Testing

@testable import AuthServer

/// The log never blocks its callers, drops lines only if the reader is too slow, and reports that.
@Suite struct LogWriterTests {
    /// A reader that waits for a signal before it reads.
    private final class SlowReader: Sendable {
        private let open = DispatchSemaphore(value: 0)
        private let reached = DispatchSemaphore(value: 0)
        private let bytes = Locked<[UInt8]>([])

        func take(_ batch: [UInt8]) -> Int {
            reached.signal()
            open.wait()
            open.signal()
            bytes.withLock { $0 += batch }
            return batch.count
        }

        /// Waits until the writer's thread is blocked in the reader.
        func waitUntilReached() { reached.wait() }

        func startReading() { open.signal() }

        var lines: [String] {
            String(decoding: bytes.withLock { $0 }, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    private static func line(_ number: Int) -> [UInt8] { Array("line \(number)\n".utf8) }

    private static func bounds(lines: Int = 8192, bytes: Int = 1 << 22) -> LogWriter.Bounds {
        var bounds = LogWriter.Bounds()
        (bounds.lines, bounds.bytes) = (lines, bytes)
        return bounds
    }

    @Test func `lines are written in their order`() {
        let reader = SlowReader()
        reader.startReading()
        let writer = LogWriter { reader.take($0) }
        for number in 0..<1000 { writer.write(Self.line(number)) }
        #expect(writer.flush(within: .seconds(20)))
        #expect(reader.lines == (0..<1000).map { "line \($0)" })
        #expect(writer.dropped == 0)
    }

    @Test func `lines wait for others until a flush, or until the queue is half full`() {
        let batches = Locked<[Int]>([])
        let written = DispatchSemaphore(value: 0)
        let writer = LogWriter(bounds: Self.bounds(lines: 100), gathering: .seconds(3600)) { batch in
            batches.withLock { $0.append(batch.count { $0 == 10 }) }
            written.signal()
            return batch.count
        }
        for number in 0..<3 { writer.write(Self.line(number)) }
        #expect(writer.flush(within: .seconds(20)))
        #expect(batches.withLock { $0 } == [3])
        written.wait()
        for number in 0..<51 { writer.write(Self.line(number)) }
        #expect(written.wait(timeout: .now() + 20) == .success)
        #expect(batches.withLock { $0 } == [3, 51])
        #expect(writer.dropped == 0)
    }

    @Test func `a stuck reader blocks no logger, and lines beyond the bound are dropped and reported`()
        throws
    {
        let reader = SlowReader()
        let writer = LogWriter(bounds: Self.bounds(lines: 100)) { reader.take($0) }
        writer.write(Self.line(0))
        reader.waitUntilReached()
        for number in 1...250 { writer.write(Self.line(number)) }
        #expect(writer.dropped == 150)
        reader.startReading()
        #expect(writer.flush(within: .seconds(20)))
        #expect(reader.lines.dropLast() == (0...100).map { "line \($0)" })
        let report = try #require(try JSONValue(parsing: Array((reader.lines.last ?? "").utf8)).object)
        #expect(report["dropped"]?.integer == 150)
        #expect(report["level"]?.string == "warning")
        // The writer does not report the dropped lines again.
        writer.write(Self.line(251))
        #expect(writer.flush(within: .seconds(20)))
        #expect(reader.lines.last == "line 251")
        #expect(writer.dropped == 150)
    }

    @Test func `the waiting bytes are bounded like the lines`() {
        let reader = SlowReader()
        let writer = LogWriter(bounds: Self.bounds(bytes: 100)) { reader.take($0) }
        writer.write(Self.line(0))
        reader.waitUntilReached()
        for _ in 0..<3 { writer.write([UInt8](repeating: 65, count: 49) + [10]) }
        #expect(writer.dropped == 1)
        reader.startReading()
    }

    @Test func `a flush ends in time without a reader`() {
        let reader = SlowReader()
        let writer = LogWriter { reader.take($0) }
        writer.write(Self.line(0))
        reader.waitUntilReached()
        #expect(!writer.flush(within: .milliseconds(50)))
        reader.startReading()
        #expect(writer.flush(within: .seconds(20)))
    }

    @Test func `lines that cannot be written count as dropped`() {
        let isBroken = Locked(true)
        let written = Locked<[UInt8]>([])
        let writer = LogWriter { batch in
            // The first line fits, then the pipe breaks.
            let count = isBroken.withLock { $0 } ? min(7, batch.count) : batch.count
            written.withLock { $0 += batch.prefix(count) }
            return count
        }
        writer.write(Self.line(0) + Self.line(1) + Self.line(2))
        #expect(writer.flush(within: .seconds(20)))
        #expect(writer.dropped == 2)
        isBroken.withLock { $0 = false }
        writer.write(Self.line(3))
        #expect(writer.flush(within: .seconds(20)))
        let text = String(decoding: written.withLock { $0 }, as: UTF8.self)
        #expect(text.hasPrefix("line 0\nline 3\n"))
        #expect(text.contains("\"dropped\":2"))
    }

    @Test func `a non-blocking pipe gets every line`() throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        let writer = LogWriter(descriptor: descriptor)
        let line = [UInt8](repeating: 65, count: 999) + [10]
        for _ in 0..<500 { writer.write(line) }
        var count = 0
        while count < 500_000, case let piece = pipe.fileHandleForReading.availableData, !piece.isEmpty {
            count += piece.count
        }
        #expect(count == 500_000)
        #expect(writer.dropped == 0)
    }

    @Test(
        arguments: [
            ("plain", 512, "plain"), ("a\nb\u{1b}[31m\u{7f}", 512, "a\\u{a}b\\u{1b}[31m\\u{7f}"),
            ("\u{9b}\u{2028}\u{202e}", 512, "\\u{9b}\\u{2028}\\u{202e}"), ("é", 512, "é"), ("ééé", 5, "éé"),
            ("\u{1}\u{1}", 9, "\\u{1}"), ("abc", 3, "abc"), ("abcd", 3, "abc"),
        ])
    func `text from outside is bounded, and its control characters are escaped`(
        text: String, limit: Int, logged: String
    ) {
        #expect(LogText.bounded(text, to: limit) == logged)
    }

    @Test func `names in a log line are escaped like values`() throws {
        let reader = SlowReader()
        reader.startReading()
        let writer = LogWriter { reader.take($0) }
        let logger = Logger(label: "test") { JSONLogHandler(label: $0, level: LogLevel(.info), writer: writer) }
        let text = "a\u{9b}\u{202e}\u{2028}"
        logger.info("m", metadata: ["\(text)": "1", "nested": ["\(text)": ["\(text)"]]])
        #expect(writer.flush(within: .seconds(20)))
        let line = try #require(reader.lines.first)
        #expect(!line.unicodeScalars.contains { text.unicodeScalars.dropFirst().contains($0) }, "\(line)")
        #expect(line.contains(#""a\\u{9b}\\u{202e}\\u{2028}":"1""#), "\(line)")
    }

    @Test func `a request of 18 KB makes a short line`() throws {
        let reader = SlowReader()
        reader.startReading()
        let writer = LogWriter { reader.take($0) }
        let logger = Logger(label: "test") { JSONLogHandler(label: $0, level: LogLevel(.info), writer: writer) }
        let text = String(repeating: "\u{1}", count: 18_000)
        RequestLog(logger: logger).write(
            requestID: "1", method: "GET", route: nil, answer: APIResponse(status: 404), reason: text, took: .zero)
        logger.info("\(text)", metadata: ["reason": "\(text)", "other": "\(text)"])
        #expect(writer.flush(within: .seconds(20)))
        let lines = try reader.lines.map { try #require(try JSONValue(parsing: Array($0.utf8)).object) }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { ($0["reason"]?.string?.utf8.count).map { (500...512).contains($0) } == true })
        #expect(reader.lines.allSatisfy { $0.utf8.count < 8192 })
    }

    @Test func `the level of all loggers without their own changes at once`() {
        let level = LogLevel(.info)
        let writer = LogWriter { $0.count }
        let first = Logger(label: "first") { JSONLogHandler(label: $0, level: level, writer: writer) }
        var own = Logger(label: "own") { JSONLogHandler(label: $0, level: level, writer: writer) }
        own.logLevel = .error
        level.current = .debug
        #expect(first.logLevel == .debug)
        #expect(own.logLevel == .error)
    }
}
