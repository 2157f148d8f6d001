internal import Crypto

/// The frames of a backup: pieces of 64 KiB, each sealed with AES-256-GCM.
///
/// A frame's nonce is its number and whether it is the last one. So the reader detects frames that were removed, repeated or
/// moved, a cut end, and bytes after the end (STREAM, Hoang, Reyhanitabar, Rogaway and Vizár 2015, as age uses it).
enum BackupFrame {
    /// The number of content bytes in each frame. The last frame may have fewer.
    static let size = 64 << 10
    static let tagSize = 16

    static func nonce(_ number: UInt64, isLast: Bool) throws -> AES.GCM.Nonce {
        let counter = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        return try AES.GCM.Nonce(data: [0, 0, 0] + counter + [isLast ? 1 : 0])
    }
}

/// Seals a stream of bytes.
struct BackupFrameWriter {
    private let key: SymmetricKey
    private let write: ([UInt8]) throws -> Void
    private var pending: [UInt8] = []
    private var number: UInt64 = 0

    init(key: SymmetricKey, write: @escaping ([UInt8]) throws -> Void) {
        self.key = key
        self.write = write
    }

    mutating func append(_ bytes: some Sequence<UInt8>) throws {
        pending.append(contentsOf: bytes)
        var start = 0
        // Seal a frame only if more bytes follow: the rest becomes the last frame, which must not be empty.
        while pending.count - start > BackupFrame.size {
            try seal(pending[start..<(start + BackupFrame.size)], isLast: false)
            start += BackupFrame.size
        }
        if start > 0 { pending.removeFirst(start) }
    }

    mutating func finish() throws {
        try seal(pending[...], isLast: true)
        pending = []
    }

    private mutating func seal(_ bytes: ArraySlice<UInt8>, isLast: Bool) throws {
        let nonce = try BackupFrame.nonce(number, isLast: isLast)
        let box = try AES.GCM.seal(bytes, using: key, nonce: nonce)
        try write(Array(box.ciphertext) + Array(box.tag))
        number += 1
    }
}

/// Opens a stream of frames.
struct BackupFrameReader {
    private let key: SymmetricKey
    /// Returns at most as many bytes as its argument says, and none at the end of the backup.
    private let read: (Int) throws -> [UInt8]
    private var pending: [UInt8]
    private var number: UInt64 = 0
    private var isEnded = false

    /// - Parameter pending: bytes that were read already.
    init(key: SymmetricKey, pending: [UInt8], read: @escaping (Int) throws -> [UInt8]) {
        self.key = key
        self.pending = pending
        self.read = read
    }

    /// The bytes of the next frame; nil after the last one.
    mutating func next() throws -> [UInt8]? {
        guard !isEnded else { return nil }
        let size = BackupFrame.size + BackupFrame.tagSize
        var hasMore = true
        // Read one byte beyond the frame: if there is one, the frame is not the last one.
        while hasMore, pending.count <= size {
            let more = try read(size + 1 - pending.count)
            hasMore = !more.isEmpty
            pending += more
        }
        isEnded = pending.count <= size
        let frame = pending.prefix(size)
        pending = Array(pending.dropFirst(size))
        let damaged = BackupError(
            .damaged, "is damaged or incomplete at frame \(number + 1): use another copy, or another backup")
        guard frame.count >= BackupFrame.tagSize else { throw damaged }
        guard
            let box = try? AES.GCM.SealedBox(
                nonce: BackupFrame.nonce(number, isLast: isEnded), ciphertext: frame.dropLast(BackupFrame.tagSize),
                tag: frame.suffix(BackupFrame.tagSize)),
            let bytes = try? AES.GCM.open(box, using: key)
        else { throw damaged }
        number += 1
        return Array(bytes)
    }
}
