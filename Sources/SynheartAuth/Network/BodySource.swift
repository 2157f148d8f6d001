internal import AuthContract
internal import Bytes
internal import Crypto
public import Foundation

/// A body that is read in pieces and never lies in memory as a whole. It is opened once for its digest, and once for each copy of the
/// request that is sent, and must give the same bytes each time.
public final class BodySource: Sendable {
    private let opening: @Sendable () throws -> InputStream

    /// A body.
    ///
    /// - Parameter open: Makes a stream of the whole body that is not open yet. The SDK opens, reads and closes it on a thread that may
    ///   block.
    public init(_ open: @escaping @Sendable () throws -> InputStream) { opening = open }

    /// A stream of the whole body, not open yet: for a transport, which sends it and does not know its length. The stream fails before
    /// its last bytes if they are not the signed ones. A transport opens the body once: it sends a request once.
    public func open() throws -> InputStream { try opening() }
}

extension BodySource: Hashable {
    /// Whether they are the same source.
    public static func == (left: BodySource, right: BodySource) -> Bool { left === right }

    /// By identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
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

/// A body's stream cannot be read, or gives other bytes than before.
struct UnreadableBody: Error {}

/// Reads a body a second time. It gives the last piece only if the digest is that of the first time: what leaves is not a whole body
/// before that.
private struct CheckedReader {
    private let reader: PieceReader
    private let digest: [UInt8]
    private var hash = SHA256()
    private var ahead: [UInt8]?

    init(_ stream: InputStream, _ digest: [UInt8]) {
        reader = PieceReader(stream)
        self.digest = digest
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
        piece.withUnsafeBytes { hash.update(bufferPointer: $0) }
        guard !piece.isEmpty || Array(hash.finalize()) == digest else { throw UnreadableBody() }
        return piece
    }
}

/// One copy of a signed body on its way. A transport opens it once.
final class BodyCopy: Sendable {
    private struct State: Sendable {
        var isOpened = false
        var isBroken = false
        var whenBroken: (@Sendable () -> Void)?
        #if !canImport(FoundationNetworking)
            var pump: BodyPump?
        #endif
    }

    private let original: BodySource
    private let digest: [UInt8]
    private let state = Locked(State())

    init(of original: BodySource, digest: ContentDigest) {
        self.original = original
        self.digest = digest.sha256
    }

    /// Whether the body could not be read again, or gave other bytes.
    var isBroken: Bool { state.withLock { $0.isBroken } }

    /// Runs `action` once the body turns out to be broken; at once if it has.
    func whenBroken(_ action: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            if !state.isBroken { state.whenBroken = action }
            return state.isBroken
        }
        if isNow { action() }
    }

    /// What the transport opens.
    var source: BodySource {
        BodySource { [self] in
            let isFirst = state.withLock { state in
                defer { state.isOpened = true }
                return !state.isOpened
            }
            guard isFirst else { throw UnreadableBody() }
            return try stream(CheckedReader(try original.open(), digest))
        }
    }

    private func noteBroken() {
        let action = state.withLock { state in
            defer { state.whenBroken = nil }
            state.isBroken = true
            return state.whenBroken
        }
        action?()
    }

    #if canImport(FoundationNetworking)
        private func stream(_ reader: CheckedReader) throws -> InputStream {
            CheckedStream(reader) { [weak self] in self?.noteBroken() }
        }
    #else
        private func stream(_ reader: CheckedReader) throws -> InputStream {
            var input: InputStream?
            var output: OutputStream?
            Stream.getBoundStreams(withBufferSize: 64 * 1024, inputStream: &input, outputStream: &output)
            guard let input, let output else { throw UnreadableBody() }
            let pump = BodyPump(reader, output) { [weak self] in self?.noteBroken() }
            // The end of the output is the end of the body. So a broken one stays open as long as this copy.
            state.withLock { $0.pump = pump }
            Thread.detachNewThread { pump.run() }
            return input
        }
    #endif
}

#if canImport(FoundationNetworking)
    /// A stream that fails where the body differs. swift-corelibs-foundation takes a stream of any class, and ends a request whose
    /// stream fails.
    private final class CheckedStream: InputStream {
        private var reader: CheckedReader
        private let fail: () -> Void
        private var rest: ArraySlice<UInt8> = []
        private var status = Stream.Status.notOpen

        init(_ reader: CheckedReader, fail: @escaping () -> Void) {
            self.reader = reader
            self.fail = fail
            super.init(data: Data())
        }

        override var streamStatus: Stream.Status { status }
        override var streamError: (any Error)? { status == .error ? UnreadableBody() : nil }
        override var hasBytesAvailable: Bool { status == .open || status == .error }
        override func open() { if status == .notOpen { status = .open } }

        override func close() {
            if status != .closed { reader.close() }
            status = .closed
        }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
            guard status == .open else { return status == .atEnd ? 0 : -1 }
            if rest.isEmpty {
                do throws(UnreadableBody) {
                    rest = try reader.next()[...]
                } catch {
                    status = .error
                    fail()
                    return -1
                }
            }
            if rest.isEmpty { status = .atEnd }
            let piece = rest.prefix(length)
            for (offset, byte) in piece.enumerated() { buffer[offset] = byte }
            rest = rest.dropFirst(piece.count)
            return piece.count
        }
    }
#else
    /// Writes a body into one end of a pair of streams, whose other end URLSession reads: it takes no stream of another class.
    ///
    /// Unchecked: only the thread of `run` uses its members.
    private final class BodyPump: @unchecked Sendable {
        private var reader: CheckedReader
        private let output: OutputStream
        private let fail: @Sendable () -> Void

        init(_ reader: CheckedReader, _ output: OutputStream, fail: @escaping @Sendable () -> Void) {
            self.reader = reader
            self.output = output
            self.fail = fail
        }

        /// Runs on a thread of its own, to the end of the body, or until nobody reads.
        func run() {
            output.open()
            defer { reader.close() }
            do throws(UnreadableBody) {
                while true {
                    let piece = try reader.next()
                    guard !piece.isEmpty else { return output.close() }
                    var done = 0
                    while done < piece.count {
                        let count = piece.withUnsafeBufferPointer { bytes in
                            bytes.baseAddress.map { output.write($0 + done, maxLength: piece.count - done) } ?? -1
                        }
                        guard count > 0 else { return }
                        done += count
                    }
                }
            } catch {
                fail()
            }
        }
    }
#endif
