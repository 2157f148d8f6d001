internal import Bytes

/// The body of a streamed answer: pieces of one or more bytes, in order. It can be read once.
///
///     for try await piece in stream { … }
///
/// Reading throws `NETWORK_ERROR` if the connection ends before the answer does, and `CancellationError` if the
/// reading task is cancelled. Cancelling, or dropping the stream, ends the connection.
///
/// A reader that is slower than the network slows the server down. If the transport cannot slow the server down, up to
/// 256 MiB wait on the disk for the reader. Beyond that, reading throws `ANSWER_TOO_LARGE`.
public final class AnswerStream: AsyncSequence, Sendable {
    private let read: @Sendable () async throws(TransportError) -> [UInt8]?
    private let cancel: @Sendable () -> Void

    /// A stream of a custom transport.
    ///
    /// - Parameters:
    ///   - read: Returns the next bytes, which are not empty; nil at the end. Throws if the exchange fails.
    ///   - cancel: Ends the exchange, and a `read` that waits. The stream calls it when its reader is cancelled and when the
    ///     stream is dropped.
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

    /// An iterator. All iterators share the stream: each byte is returned once.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: self) }

    private func next() async throws -> [UInt8]? {
        let cancel = cancel
        let result = await withTaskCancellationHandler { () -> Result<[UInt8]?, TransportError> in
            do throws(TransportError) { return .success(try await self.read()) } catch { return .failure(error) }
        } onCancel: {
            cancel()
        }
        // A cancelled read may return nothing. That is not the end of the stream.
        try Task.checkCancellation()
        switch result {
        case .success(let piece): return piece
        case .failure(let error):
            let code: SynheartAuthError.Code = error == .readerTooSlow ? .answerTooLarge : .networkError
            throw SynheartAuthError(code, "the answer broke off: \(error)", cause: error).with(mayHaveHappened: true)
        }
    }
}

extension AnswerStream: Hashable {
    /// Whether `left` and `right` are the same object.
    public static func == (left: AnswerStream, right: AnswerStream) -> Bool { left === right }

    /// Hashes the identity of the stream.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
