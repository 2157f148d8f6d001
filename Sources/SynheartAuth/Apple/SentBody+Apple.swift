#if canImport(Security)
    internal import Bytes
    internal import Foundation
    internal import Security

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// A body that is being sent: the thread that reads the body writes it to one end of a pair of streams, and URLSession reads
    /// the other end. URLSession accepts no custom stream classes.
    ///
    /// Unchecked: only the thread that reads the body uses `output`.
    final class SentBody: @unchecked Sendable {
        private let output: OutputStream
        private let input: Locked<Input>

        /// Unchecked: passed once, to one reader.
        private struct Input: @unchecked Sendable {
            var stream: InputStream?
        }

        /// Opens a body and returns. A thread then reads the body, to its end or until the stream for URLSession is released.
        static func make(_ source: BodySource, within limit: Duration) async throws -> SentBody {
            let (original, copy) = (source.original, source.copy)
            let body = try SentBody()
            do {
                try await BodyPump.run(within: limit) { (give: (Result<Void, any Error>) -> Bool) in
                    var reader: CheckedReader
                    do {
                        reader = CheckedReader(try original(), copy?.measure)
                    } catch {
                        _ = give(.failure(error))
                        return
                    }
                    defer { reader.close() }
                    guard give(.success(())) else { return }
                    do throws(UnreadableBody) {
                        try body.pass(&reader)
                    } catch {
                        copy?.noteBroken(isOnItsWay: true)
                    }
                }
            } catch {
                // Release the input. If the app's stream opens later, the thread's writes then fail, and the thread ends.
                _ = try? body.takeStream()
                throw error
            }
            return body
        }

        private init() throws(UnreadableBody) {
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            Stream.getBoundStreams(withBufferSize: 64 * 1024, inputStream: &input, outputStream: &output)
            guard let input, let output else { throw UnreadableBody() }
            self.output = output
            self.input = Locked(Input(stream: input))
        }

        /// Writes the body. Closes the output only after the last piece, because closing it marks the body as complete. The
        /// output of a broken body stays open until this object is released.
        private func pass(_ reader: inout CheckedReader) throws(UnreadableBody) {
            output.open()
            while true {
                let piece = try reader.next()
                guard !piece.isEmpty else { return output.close() }
                guard write(piece) else { return }
            }
        }

        /// Waits for room, and writes. Returns false if the reader is gone.
        private func write(_ bytes: [UInt8]) -> Bool {
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBufferPointer { bytes in
                    bytes.baseAddress.map { output.write($0 + done, maxLength: bytes.count - done) } ?? -1
                }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }

        /// Returns the stream. A second call throws. When the stream is released, the writing ends.
        func takeStream() throws -> InputStream {
            let taken = input.withLock { input in
                defer { input.stream = nil }
                return input
            }
            guard let stream = taken.stream else { throw UnreadableBody() }
            return stream
        }

        /// The task that sends the body.
        func task(_ message: URLRequest, _ length: Int64?, in session: URLSession) throws -> URLSessionDataTask {
            session.upload(message, try takeStream(), length)
        }
    }
#endif
