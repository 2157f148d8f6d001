internal import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation

/// The body of a request: bytes, or a file or a source that is read in pieces.
package enum RequestBody: Sendable {
    case bytes([UInt8])
    case file(String)
    case source(BodySource)
    /// A body that was read before.
    case read(ContentDigest)

    package init(_ request: TransportRequest) {
        self =
            request.bodySource.map { .source($0) } ?? request.bodyFile.map { .file($0) } ?? .bytes(request.body)
    }

    func digest() async throws(SynheartAuthError) -> ContentDigest {
        switch self {
        case .bytes(let body): return ContentDigest(of: body)
        case .read(let digest): return digest
        case .file(let path): return try await Self.digest(of: { try Self.open(path) })
        case .source(let source): return try await Self.digest(of: { try source.open() })
        }
    }

    /// The digest of a stream. In calls of its own, so that a large body does not block the providers' calls.
    private static func digest(
        of open: @escaping @Sendable () throws -> InputStream
    ) async throws(SynheartAuthError) -> ContentDigest {
        let life = Locked(true)
        let ending = await BlockingCalls().run(.digest, limit: nil, leavesBehind: true) {
            () -> Result<ContentDigest, SynheartAuthError> in
            do throws(SynheartAuthError) {
                return .success(try Self.digest(of: open) { life.withLock { $0 } })
            } catch {
                return .failure(error)
            }
        }
        guard case .returned(let result) = ending else {
            life.withLock { $0 = false }
            throw .cancelled
        }
        return try result.get()
    }

    /// A regular file. Opening a FIFO would wait for its writer.
    private static func open(_ path: String) throws(UnreadableBody) -> InputStream {
        let file = (path as NSString).resolvingSymlinksInPath
        guard let type = try? FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType,
            type == .typeRegular, let stream = InputStream(fileAtPath: file)
        else { throw UnreadableBody() }
        return stream
    }

    private static func digest(
        of open: () throws -> InputStream, while isWanted: () -> Bool
    ) throws(SynheartAuthError) -> ContentDigest {
        var hash = SHA256()
        do {
            let reader = PieceReader(try open())
            defer { reader.close() }
            while isWanted() {
                let piece = try reader.next()
                if piece.isEmpty { break }
                piece.withUnsafeBytes { hash.update(bufferPointer: $0) }
            }
        } catch {
            throw SynheartAuthError(.signingFailed, "the body's file or source cannot be read", cause: error)
        }
        do throws(ContractError) {
            return try ContentDigest(sha256: Array(hash.finalize()))
        } catch {
            throw SynheartAuthError(.cryptoError, error.description)
        }
    }
}
