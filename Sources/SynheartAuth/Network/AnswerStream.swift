internal import Bytes

/// The body of a streamed answer: pieces of one or more bytes, in order. It can be read once.
///
///     for try await piece in stream { … }
///
/// Reading throws `NETWORK_ERROR` if the connection ends before the answer does, and `CancellationError` if the reading task is
/// cancelled. Cancelling, or dropping the stream, ends the connection.
public final class AnswerStream: AsyncSequence, Sendable {
    private let read: @Sendable () async throws(TransportError) -> [UInt8]?
    private let cancel: @Sendable () -> Void

    /// A stream of a transport's own.
    ///
    /// - Parameters:
    ///   - read: Returns the next bytes, which are not empty; nil at the end. Throws if no more come.
    ///   - cancel: Ends the exchange, and a `read` that waits. The stream calls it when its reader is cancelled and when it is dropped.
    public init(
        read: @escaping @Sendable () async throws(TransportError) -> [UInt8]?, cancel: @escaping @Sendable () -> Void
    ) {
        self.read = read
        self.cancel = cancel
    }

    /// A stream of bytes in memory.
    public convenience init(_ body: [UInt8]) {
        let rest = Locked(body)
        self.init(
            read: {
                rest.withLock { rest in
                    defer { rest = [] }
                    return rest.isEmpty ? nil : rest
                }
            }, cancel: { rest.withLock { $0 = [] } })
    }

    deinit { cancel() }

    /// Reads the stream.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let stream: AnswerStream

        /// The next bytes; nil at the end.
        public func next() async throws -> [UInt8]? { try await stream.next() }
    }

    /// An iterator. All iterators share the stream: each byte comes once.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: self) }

    private func next() async throws -> [UInt8]? {
        let cancel = cancel
        let result = await withTaskCancellationHandler { () -> Result<[UInt8]?, TransportError> in
            do throws(TransportError) { return .success(try await self.read()) } catch { return .failure(error) }
        } onCancel: {
            cancel()
        }
        // What a cancelled read returns is not the end.
        try Task.checkCancellation()
        switch result {
        case .success(let piece): return piece
        case .failure(let error):
            throw SynheartAuthError(.networkError, "the answer broke off: \(error)", cause: error)
                .with(mayHaveHappened: true)
        }
    }
}

extension AnswerStream: Hashable {
    /// Whether they are the same stream.
    public static func == (left: AnswerStream, right: AnswerStream) -> Bool { left === right }

    /// By identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The bytes of an answer between a transport that does not wait and a reader. Up to 1 MiB lies in memory, the rest in a file without
/// a name, so that a slow reader costs no more memory.
final class AnswerBuffer: Sendable {
    private enum Ending: Sendable {
        case whole
        case broken(TransportError)
    }

    private struct State: Sendable {
        var pieces: [[UInt8]] = []
        var count = 0
        var overflow: OverflowFile?
        var ending: Ending?
        var waiter: CheckedContinuation<Void, Never>?

        var hasNews: Bool { !pieces.isEmpty || overflow?.isEmpty == false || ending != nil }
    }

    private static let memory = 1024 * 1024
    private let state = Locked(State())
    private let stop: @Sendable () -> Void

    /// - Parameter stop: Ends the exchange.
    init(stop: @escaping @Sendable () -> Void) { self.stop = stop }

    /// The stream that reads the buffer.
    var stream: AnswerStream {
        AnswerStream(read: { () async throws(TransportError) in try await self.read() }, cancel: { self.cancel() })
    }

    /// Adds bytes that arrived.
    func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let isStored = update { state in
            guard state.ending == nil else { return true }
            if state.overflow?.isEmpty ?? true, state.count + bytes.count <= Self.memory {
                state.pieces.append(bytes)
                state.count += bytes.count
                return true
            }
            if state.overflow == nil { state.overflow = OverflowFile() }
            return state.overflow?.append(bytes) ?? false
        }
        guard !isStored else { return }
        end(TransportError("the answer's temporary file cannot be written"))
        stop()
    }

    /// Ends the answer: nil if it is whole.
    func end(_ error: TransportError?) {
        update { if $0.ending == nil { $0.ending = error.map { .broken($0) } ?? .whole } }
    }

    private func cancel() {
        let wasRunning = update { state in
            let wasRunning = state.ending == nil
            state.ending = .broken(TransportError("cancelled"))
            (state.pieces, state.count, state.overflow) = ([], 0, nil)
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
            let next = state.withLock { state -> Result<[UInt8]?, TransportError>? in
                if !state.pieces.isEmpty {
                    let piece = state.pieces.removeFirst()
                    state.count -= piece.count
                    return .success(piece)
                }
                if let overflow = state.overflow, !overflow.isEmpty {
                    return overflow.next().map { .success($0) }
                        ?? .failure(TransportError("the answer's temporary file cannot be read"))
                }
                switch state.ending {
                case .whole: return .success(nil)
                case .broken(let error): return .failure(error)
                case nil: return nil
                }
            }
            if let next { return try next.get() }
            await withCheckedContinuation { continuation in
                // A second reader takes the place of the first one, which looks again.
                let earlier = state.withLock { state in
                    defer { state.waiter = state.hasNews ? nil : continuation }
                    return state.hasNews ? continuation : state.waiter
                }
                earlier?.resume()
            }
        }
    }
}
