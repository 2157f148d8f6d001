internal import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation

/// The body of a request: bytes, or a file or a source that is read in pieces.
package enum RequestBody: Sendable {
    case bytes([UInt8])
    case file(String)
    case source(BodySource)
    /// The digest of a body that was already read.
    case read(ContentDigest)

    package init(_ request: TransportRequest) {
        self =
            request.bodySource.map { .source($0) } ?? request.bodyFile.map { .file($0) } ?? .bytes(request.body)
    }

    func digest(_ sleeper: any Sleeper) async throws(SynheartAuthError) -> ContentDigest {
        switch self {
        case .bytes(let body): return ContentDigest(of: body)
        case .read(let digest): return digest
        case .file(let path): return try await Self.measure({ try Self.open(path) }, sleeper).digest
        case .source(let source): return try await Self.measure(source.original, sleeper).digest
        }
    }

    /// The threads for bodies that are read concurrently for their digests.
    static let threads = BoundedThreads(limit: 16)

    /// Reads a stream once, for its length and digest. The whole stream may take long. But if no piece arrives in a
    /// period of 30 seconds, the call throws and abandons the reading. A reading that hangs keeps its thread.
    static func measure(
        _ open: @escaping @Sendable () throws -> InputStream, _ sleeper: any Sleeper
    ) async throws(SynheartAuthError) -> BodyMeasure {
        let progress = Locked(Progress())
        let reading = Task {
            await threads.run(leavesBehind: true) { (give: (Result<BodyMeasure, SynheartAuthError>) -> Bool) in
                do throws(SynheartAuthError) {
                    _ = give(.success(try read(open) { progress.withLock { $0.go() } }))
                } catch {
                    _ = give(.failure(error))
                }
            }
        }
        let watch = Task {
            while (try? await sleeper.sleep(for: .seconds(30), .deadline)) != nil {
                guard progress.withLock({ $0.hasMoved() }) else { return reading.cancel() }
            }
        }
        let result = await withTaskCancellationHandler {
            await reading.value
        } onCancel: {
            reading.cancel()
        }
        watch.cancel()
        guard let result else {
            let isCancelled = Task.isCancelled
            progress.withLock { $0.isWanted = false }
            if isCancelled { throw .cancelled }
            throw SynheartAuthError(.signingFailed, "the body's file or source does not answer")
        }
        return try result.get()
    }

    private struct Progress: Sendable {
        var isWanted = true
        private var pieces = 0
        private var seen = 0

        /// Records that the next piece is about to be read. Returns false if the reading was abandoned.
        mutating func go() -> Bool {
            pieces += 1
            return isWanted
        }

        /// Whether the reading has moved on since the last call.
        mutating func hasMoved() -> Bool {
            defer { seen = pieces }
            return pieces != seen
        }
    }

    /// The stream of a regular file. Other files are refused: opening a FIFO would wait for its writer.
    private static func open(_ path: String) throws(UnreadableBody) -> InputStream {
        let file = (path as NSString).resolvingSymlinksInPath
        guard let type = try? FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType,
            type == .typeRegular, let stream = InputStream(fileAtPath: file)
        else { throw UnreadableBody() }
        return stream
    }

    private static func read(
        _ open: () throws -> InputStream, while isWanted: () -> Bool
    ) throws(SynheartAuthError) -> BodyMeasure {
        var (hash, count) = (SHA256(), Int64(0))
        do {
            let reader = PieceReader(try open())
            defer { reader.close() }
            while isWanted() {
                let piece = try reader.next()
                if piece.isEmpty { break }
                piece.withUnsafeBytes { hash.update(bufferPointer: $0) }
                count += Int64(piece.count)
            }
        } catch {
            throw SynheartAuthError(.signingFailed, "the body's file or source cannot be read", cause: error)
        }
        do throws(ContractError) {
            return BodyMeasure(count: count, digest: try ContentDigest(sha256: Array(hash.finalize())))
        } catch {
            throw SynheartAuthError(.cryptoError, error.description)
        }
    }
}
