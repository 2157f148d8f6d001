internal import NIOCore
internal import Synchronization

/// A body that is sent to the backend piece by piece: a piece is written when the previous one was read, so memory is bounded.
///
/// One task writes and one task reads. When the reader stops, the rest of the body is dropped.
final class BodyPipe: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    private enum State {
        case empty
        case full(ByteBuffer, writer: CheckedContinuation<Void, Never>)
        case awaited(reader: CheckedContinuation<ByteBuffer?, any Error>)
        /// The rest of the body is dropped. The reader gets neither bytes nor the end of the body, because an end would make
        /// the body look complete.
        case discarding(reader: CheckedContinuation<ByteBuffer?, any Error>?)
        case ended((any Error)?)
        case closed
    }

    private let state = Mutex(State.empty)

    /// Closes the pipe when the last reference to this object is released.
    final class Closer: Sendable {
        fileprivate let pipe: BodyPipe

        init(_ pipe: BodyPipe) { self.pipe = pipe }

        deinit { pipe.close() }
    }

    /// Closes the pipe when the HTTP client releases this iterator.
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: Closer

        func next() async throws -> ByteBuffer? { try await reader.pipe.take() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: .init(self)) }

    /// Writes a piece, and returns when it is read or dropped. After the end, returns at once. A cancellation closes the pipe.
    func write(_ piece: ByteBuffer) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    switch state {
                    case .empty: state = .full(piece, writer: continuation)
                    case .awaited(let reader):
                        state = .empty
                        reader.resume(returning: piece)
                        continuation.resume()
                    case .full, .discarding, .ended, .closed: continuation.resume()
                    }
                }
            }
        } onCancel: {
            close()
        }
    }

    /// Drops the unread piece and later ones. A reader gets nothing until the pipe is closed or ends with an error, so its request
    /// is not aborted.
    func discard() {
        state.withLock { state in
            switch state {
            case .empty: state = .discarding(reader: nil)
            case .full(_, let writer):
                state = .discarding(reader: nil)
                writer.resume()
            case .awaited(let reader): state = .discarding(reader: reader)
            case .discarding, .ended, .closed: break
            }
        }
    }

    /// Ends the body.
    ///
    /// - Parameter error: aborts the request to the backend; nil: the body is complete.
    func finish(_ error: (any Error)? = nil) {
        state.withLock { state in
            switch state {
            case .empty: state = .ended(error)
            case .awaited(let reader):
                state = .closed
                if let error { reader.resume(throwing: error) } else { reader.resume(returning: nil) }
            case .discarding(let reader):
                guard let error else { break }
                guard let reader else {
                    state = .ended(error)
                    break
                }
                state = .closed
                reader.resume(throwing: error)
            // In state `full` the writer still waits in `write`, so it cannot end the body. In the other states the body has ended.
            case .full, .ended, .closed: break
            }
        }
    }

    /// Drops the unread piece and later ones, and fails the reader.
    func close() {
        state.withLock { state in
            switch state {
            case .full(_, let writer): writer.resume()
            case .awaited(let reader): reader.resume(throwing: CancellationError())
            case .discarding(let reader): reader?.resume(throwing: CancellationError())
            case .empty, .ended, .closed: break
            }
            state = .closed
        }
    }

    private func take() async throws -> ByteBuffer? {
        try await withCheckedThrowingContinuation { continuation in
            state.withLock { state in
                switch state {
                case .empty: state = .awaited(reader: continuation)
                case .full(let piece, let writer):
                    state = .empty
                    writer.resume()
                    continuation.resume(returning: piece)
                case .ended(let error):
                    state = .closed
                    if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: nil) }
                case .discarding(nil): state = .discarding(reader: continuation)
                case .awaited, .discarding, .closed: continuation.resume(throwing: CancellationError())
                }
            }
        }
    }
}
