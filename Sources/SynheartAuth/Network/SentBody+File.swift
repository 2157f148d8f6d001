#if !canImport(Security)
    internal import Bytes
    internal import Dispatch
    internal import Foundation

    /// A body that is being sent. Outside Apple's systems it is first copied to a temporary file, so that a body other than the
    /// signed one is not sent at all, and a slow source keeps no connection open.
    final class SentBody: Sendable {
        let path: String
        private let hasName = Locked(true)

        /// Copies a body to its file.
        static func make(_ source: BodySource, within limit: Duration) async throws -> SentBody {
            let isWanted = Locked(true)
            defer { isWanted.withLock { $0 = false } }
            let (original, copy) = (source.original, source.copy)
            return try await BodyPump.run(within: limit) { give in
                do {
                    _ = give(.success(try SentBody(original(), copy) { isWanted.withLock { $0 } }))
                } catch {
                    if error is UnreadableBody { copy?.noteBroken(isOnItsWay: false) }
                    _ = give(.failure(error))
                }
            }
        }

        private init(_ stream: InputStream, _ copy: BodyCopy?, while isWanted: () -> Bool) throws {
            var reader = CheckedReader(stream, copy?.measure)
            defer { reader.close() }
            var path = Array((NSTemporaryDirectory() + "/synheart-auth-body-XXXXXX").utf8CString)
            let descriptor = path.withUnsafeMutableBufferPointer { $0.baseAddress.map { mkstemp($0) } ?? -1 }
            guard descriptor >= 0 else { throw UnkeptBody(number: errno) }
            defer { close(descriptor) }
            self.path = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            while true {
                guard isWanted() else { throw SilentBody() }
                let piece = try reader.next()
                if piece.isEmpty { return }
                try Self.write(piece, descriptor)
            }
        }

        private static func write(_ piece: [UInt8], _ descriptor: Int32) throws(UnkeptBody) {
            var done = 0
            while done < piece.count {
                let count = piece.withUnsafeBytes {
                    Foundation.write(descriptor, $0.baseAddress?.advanced(by: done), piece.count - done)
                }
                guard count > 0 else {
                    if count < 0, errno == EINTR { continue }
                    throw UnkeptBody(number: errno)
                }
                done += count
            }
        }

        deinit {
            guard let name = takeName() else { return }
            DispatchQueue.global().async { unlink(name) }
        }

        /// Removes the file's name, so that the file does not stay if the process is killed. An open descriptor can still be read.
        func removeName() { takeName().map { _ = unlink($0) } }

        private func takeName() -> String? {
            hasName.withLock { hasName in
                defer { hasName = false }
                return hasName ? path : nil
            }
        }

        /// A stream of the file.
        func takeStream() throws -> InputStream {
            guard let stream = InputStream(fileAtPath: path) else { throw UnreadableBody() }
            return stream
        }
    }
#endif
