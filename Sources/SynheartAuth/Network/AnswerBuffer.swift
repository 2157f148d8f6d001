internal import Bytes

/// The bytes of an answer between a transport and a reader. The buffer keeps up to 1 MiB in memory. Once 512 KiB wait
/// for the reader, the buffer asks the transport to pause until the reader has read everything.
///
/// A paused URLSession still delivers bytes that it has already received. The buffer writes them to files without
/// names, so that a slow reader uses no more memory. If the files would exceed a limit, the buffer ends the exchange.
/// Files are written on the transport's thread, and read on one of a few threads of the SDK.
final class AnswerBuffer: Sendable {
    private enum Ending: Sendable {
        case whole
        case broken(TransportError)
    }

    private struct State: Sendable {
        var pieces: [[UInt8]] = []
        var count = 0
        /// The number of bytes that are being written to files.
        var arriving = 0
        /// The number of bytes that can be read from files.
        var onDisk = 0
        var isPaused = false
        var ending: Ending?
        var waiter: CheckedContinuation<Void, Never>?

        var hasNews: Bool { !pieces.isEmpty || onDisk > 0 || (ending != nil && arriving == 0) }
    }

    private enum Step: Sendable {
        case piece([UInt8]?)
        case readDisk
        case broken(TransportError)
    }

    /// The largest number of bytes on the disk: 256 MiB.
    static let usualLimit = 256 * 1024 * 1024
    private static let memory = 1024 * 1024
    /// The smallest piece in memory: bytes that arrive are added to the last piece until it has this size.
    private static let smallest = 16 * 1024
    private static let threads = BoundedThreads(limit: 4)

    private let state = Locked(State())
    /// The files, in order. Bytes are added to the last file and read from the first one, which is deleted at its end.
    private let files = Locked<[OverflowFile]>([])
    private let limit: Int
    private let flow: @Sendable (Bool) -> Void
    private let stop: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: The most bytes on the disk.
    ///   - flow: Pauses (false) or continues (true) the exchange. It runs under the buffer's lock.
    ///   - stop: Ends the exchange.
    init(
        limit: Int = AnswerBuffer.usualLimit, flow: @escaping @Sendable (_ isFlowing: Bool) -> Void = { _ in },
        stop: @escaping @Sendable () -> Void
    ) {
        (self.limit, self.flow, self.stop) = (limit, flow, stop)
    }

    /// The stream that reads the buffer.
    var stream: AnswerStream {
        AnswerStream(read: { () async throws(TransportError) in try await self.read() }, cancel: { self.cancel() })
    }

    /// Adds bytes that arrived. Called on one thread at a time.
    func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let isForDisk = update { state in
            guard state.ending == nil else { return false }
            if state.arriving + state.onDisk == 0, state.count + bytes.count <= Self.memory {
                // Join small pieces: a server may send single bytes, and each piece has an overhead.
                if let last = state.pieces.indices.last, state.pieces[last].count < Self.smallest {
                    state.pieces[last] += bytes
                } else {
                    state.pieces.append(bytes)
                }
                state.count += bytes.count
                if state.count >= Self.memory / 2 { pause(&state) }
                return false
            }
            state.arriving += bytes.count
            pause(&state)
            return true
        }
        guard isForDisk else { return }
        let problem = write(bytes)
        update { state in
            state.arriving -= bytes.count
            if problem == nil { state.onDisk += bytes.count }
        }
        guard let problem else { return }
        end(problem)
        stop()
    }

    private func write(_ bytes: [UInt8]) -> TransportError? {
        files.withLock { files in
            guard files.reduce(bytes.count, { $0 + $1.size }) <= limit else { return .readerTooSlow }
            if files.last?.isFull ?? true, let file = OverflowFile() { files.append(file) }
            guard let file = files.last, file.append(bytes) else {
                return TransportError("the answer's temporary file cannot be written")
            }
            return nil
        }
    }

    /// Ends the answer. `error` is nil if the answer is complete.
    func end(_ error: TransportError?) {
        update { if $0.ending == nil { $0.ending = error.map { .broken($0) } ?? .whole } }
    }

    private func cancel() {
        let wasRunning = update { state in
            let wasRunning = state.ending == nil
            state.ending = .broken(TransportError("cancelled"))
            (state.pieces, state.count, state.onDisk) = ([], 0, 0)
            return wasRunning
        }
        if wasRunning { stop() }
    }

    /// Changes the state, and wakes the reader if there is something to read.
    private func update<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, waiter) = state.withLock { state in
            let value = change(&state)
            guard state.hasNews else { return (value, nil as CheckedContinuation<Void, Never>?) }
            defer { state.waiter = nil }
            return (value, state.waiter)
        }
        waiter?.resume()
        return value
    }

    private func read() async throws(TransportError) -> [UInt8]? {
        while true {
            switch nextStep() {
            case .piece(let piece): return piece
            case .broken(let error): throw error
            case .readDisk: return try await readDisk()
            case nil: await news()
            }
        }
    }

    /// The reader's next step; nil if it must wait.
    private func nextStep() -> Step? {
        state.withLock { state in
            if !state.pieces.isEmpty {
                let piece = state.pieces.removeFirst()
                state.count -= piece.count
                continueIfRead(&state)
                return .piece(piece)
            }
            if state.onDisk > 0 { return .readDisk }
            guard let ending = state.ending, state.arriving == 0 else { return nil }
            switch ending {
            case .whole: return .piece(nil)
            case .broken(let error): return .broken(error)
            }
        }
    }

    private func readDisk() async throws(TransportError) -> [UInt8] {
        let files = files
        let piece = await withDeadline(.seconds(30), TaskSleeper()) {
            await Self.threads.run(leavesBehind: true) { (give: ([UInt8]?) -> Bool) in
                _ = give(
                    files.withLock { files in
                        guard let file = files.first, let piece = file.next() else { return nil }
                        if file.isEmpty { files.removeFirst() }
                        return piece
                    })
            }
        }
        guard let piece = (piece ?? nil) ?? nil else {
            // After the deadline the abandoned read may still remove its piece from the file. The answer then lacks that piece, so
            // the bytes after it must not be read.
            cancel()
            throw TransportError("the answer's temporary file cannot be read")
        }
        update { state in
            // `onDisk` may be negative for a moment: the writer adds the size of a piece only after the piece can be read.
            state.onDisk -= piece.count
            continueIfRead(&state)
        }
        return piece
    }

    private func pause(_ state: inout State) {
        guard !state.isPaused else { return }
        state.isPaused = true
        flow(false)
    }

    private func continueIfRead(_ state: inout State) {
        guard state.isPaused, state.count + state.onDisk + state.arriving == 0 else { return }
        state.isPaused = false
        if state.ending == nil { flow(true) }
    }

    /// Waits for something to read.
    private func news() async {
        await withCheckedContinuation { continuation in
            // A second reader replaces the first one, which then checks again.
            let earlier = state.withLock { state in
                defer { state.waiter = state.hasNews ? nil : continuation }
                return state.hasNews ? continuation : state.waiter
            }
            earlier?.resume()
        }
    }
}
