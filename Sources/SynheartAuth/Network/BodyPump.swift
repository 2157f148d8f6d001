internal import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation

/// A body's stream cannot be read, or returns other bytes than before.
struct UnreadableBody: Error {}

/// The app's stream did not answer in time, or the caller was cancelled.
struct SilentBody: Error {}

/// The temporary file of a body cannot be written, as on a full disk.
struct UnkeptBody: Error, CustomStringConvertible {
    let number: Int32
    var description: String { "the body's temporary file cannot be written: \(String(cString: strerror(number)))" }
}

/// Reads a stream in pieces.
struct PieceReader {
    private static let pieceSize = 64 * 1024
    private let stream: InputStream

    init(_ stream: InputStream) {
        self.stream = stream
        stream.open()
    }

    func close() { stream.close() }

    /// The next bytes; none at the end.
    func next() throws(UnreadableBody) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        let count = stream.read(&piece, maxLength: piece.count)
        guard count >= 0 else { throw UnreadableBody() }
        return Array(piece.prefix(count))
    }
}

/// Reads a body to send it. If the body was read before, returns the last piece only if both readings gave the same bytes. Without
/// the last piece, the receiver has no complete body.
struct CheckedReader {
    private let reader: PieceReader
    /// The result of the first reading; nil if this is the first reading.
    private let measure: BodyMeasure?
    private var hash = SHA256()
    private var count: Int64 = 0
    private var ahead: [UInt8]?

    init(_ stream: InputStream, _ measure: BodyMeasure?) {
        reader = PieceReader(stream)
        self.measure = measure
    }

    func close() { reader.close() }

    /// The next bytes; none at the end.
    mutating func next() throws(UnreadableBody) -> [UInt8] {
        if ahead == nil { ahead = try read() }
        guard let piece = ahead, !piece.isEmpty else { return [] }
        ahead = try read()
        return piece
    }

    private mutating func read() throws(UnreadableBody) -> [UInt8] {
        let piece = try reader.next()
        guard let measure else { return piece }
        piece.withUnsafeBytes { hash.update(bufferPointer: $0) }
        count += Int64(piece.count)
        guard count <= measure.count, !piece.isEmpty || Array(hash.finalize()) == measure.digest.sha256 else {
            throw UnreadableBody()
        }
        return piece
    }
}

/// Reads bodies to send, on threads that may block. A body that hangs keeps its thread, so the number of threads is small. If
/// none is free, a body waits for one within its time limit.
enum BodyPump {
    /// The threads for bodies that are sent concurrently.
    static let threads = BoundedThreads(limit: 16)

    /// Runs `body` on a thread, and returns the first value that `body` gives, or throws after `limit`. `body` may continue after
    /// that. `give` returns false once the caller no longer waits.
    static func run<Value: Sendable>(
        within limit: Duration,
        _ body: @escaping @Sendable (_ give: @Sendable (Result<Value, any Error>) -> Bool) -> Void
    ) async throws -> Value {
        let result = await withDeadline(limit, TaskSleeper()) { await threads.run(leavesBehind: true, body) }
        guard let result = result ?? nil else { throw SilentBody() }
        return try result.get()
    }
}
