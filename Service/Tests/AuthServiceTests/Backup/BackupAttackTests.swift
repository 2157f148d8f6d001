import Testing

@testable import AuthService

/// Changes to a backup by an attacker who can write it and does not know its key.
struct BackupAttackTests {
    private let key: ServiceKey
    /// A backup of one frame.
    private let small: [UInt8]
    /// A backup of four frames. The last frame is short.
    private let large: [UInt8]

    init() throws {
        key = try #require(ServiceKey([UInt8](repeating: 1, count: 32)))
        small = try BackupSample.small(key: key)
        var sample = try BackupSample(key: key)
        for number in 0..<4 {
            try sample.add(
                [.text("app\(number)"), .text(String(repeating: "\(number)", count: 60_000))], of: .apps)
        }
        large = try sample.finish()
    }

    private func isRefused(_ bytes: [UInt8]) -> Bool { BackupSample.refusal(bytes, key: key) != nil }

    /// Splits a backup into its first line, with the line end, and its frames.
    private func parts(_ backup: [UInt8]) throws -> (header: [UInt8], frames: [[UInt8]]) {
        let end = try #require(backup.firstIndex(of: UInt8(ascii: "\n"))) + 1
        let size = BackupFrame.size + BackupFrame.tagSize
        let frames = stride(from: end, to: backup.count, by: size).map { start in
            Array(backup[start..<min(start + size, backup.count)])
        }
        return (Array(backup[..<end]), frames)
    }

    @Test func `the samples are whole`() throws {
        #expect(!isRefused(small) && !isRefused(large))
        #expect(try parts(small).frames.count == 1)
        #expect(try parts(large).frames.count == 4)
    }

    @Test(arguments: [0x01, 0x80] as [UInt8]) func `a changed bit in any byte is found`(_ bit: UInt8) {
        for index in small.indices {
            var changed = small
            changed[index] ^= bit
            if !isRefused(changed) { Issue.record("byte \(index)") }
        }
    }

    @Test func `a changed byte at the edges of each frame is found`() throws {
        let (header, frames) = try parts(large)
        var start = header.count
        for frame in frames {
            for offset in [0, 1, frame.count / 2, frame.count - 17, frame.count - 16, frame.count - 1] {
                var changed = large
                changed[start + offset] ^= 1
                if !isRefused(changed) { Issue.record("byte \(start + offset)") }
            }
            start += frame.count
        }
    }

    @Test func `a cut at any byte is found`() throws {
        for count in small.indices where !isRefused(Array(small.prefix(count))) { Issue.record("\(count) bytes") }
        let (header, frames) = try parts(large)
        var end = header.count
        for frame in frames {
            for count in [end, end + 1, end + 16, end + frame.count - 1]
            where !isRefused(Array(large.prefix(count))) { Issue.record("\(count) bytes") }
            end += frame.count
        }
    }

    @Test func `frames that are moved, repeated, removed or added are found`() throws {
        let (header, frames) = try parts(large)
        let last = frames.count - 1
        for first in 0...last {
            var removed = frames
            removed.remove(at: first)
            #expect(isRefused(header + removed.joined()), "without \(first)")
            #expect(isRefused(header + frames.joined() + frames[first]), "\(first) at the end")
            for second in 0...last where first != second {
                var swapped = frames
                swapped.swapAt(first, second)
                #expect(isRefused(header + swapped.joined()), "\(first) and \(second)")
                var repeated = frames
                repeated[second] = frames[first]
                #expect(isRefused(header + repeated.joined()), "\(first) for \(second)")
            }
        }
        #expect(isRefused(large + [0]))
        #expect(isRefused(header))
    }

    @Test func `frames of another backup of the same key are found`() throws {
        var sample = try BackupSample(key: key)
        for number in 0..<4 {
            try sample.add(
                [.text("app\(number)"), .text(String(repeating: "\(number)", count: 60_000))], of: .apps)
        }
        let (header, frames) = try parts(large)
        let (otherHeader, otherFrames) = try parts(try sample.finish())
        #expect(isRefused(otherHeader + frames.joined()))
        for place in frames.indices {
            var mixed = frames
            mixed[place] = otherFrames[place]
            #expect(isRefused(header + mixed.joined()), "frame \(place)")
        }
    }

    @Test(arguments: [[], [0x0A], Array("SQLite format 3\u{0}".utf8), [UInt8](repeating: 0x61, count: 1000)])
    func `another file is no backup`(_ bytes: [UInt8]) {
        #expect(BackupSample.refusal(bytes, key: key)?.code == .notABackup)
    }
}
