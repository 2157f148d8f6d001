internal import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation

/// The body of a request: bytes, or a file that is read in pieces.
package enum RequestBody: Sendable {
    case bytes([UInt8])
    case file(String)

    package init(_ request: TransportRequest) { self = request.bodyFile.map { .file($0) } ?? .bytes(request.body) }

    func digest() async throws(SynheartAuthError) -> ContentDigest {
        switch self {
        case .bytes(let body): return ContentDigest(of: body)
        case .file(let path):
            // Calls of its own, so that a large file does not block the providers' calls.
            let life = Locked(true)
            let digest = await BlockingCalls().run(.digest, limit: nil, leavesBehind: true) {
                () -> Result<ContentDigest, SynheartAuthError> in
                do throws(SynheartAuthError) {
                    return .success(try Self.digest(ofFileAt: path) { life.withLock { $0 } })
                } catch {
                    return .failure(error)
                }
            }
            guard case .returned(let result) = digest else {
                life.withLock { $0 = false }
                throw .cancelled
            }
            return try result.get()
        }
    }

    private static let pieceSize = 64 * 1024

    /// The digest of a regular file. Opening a FIFO would wait for its writer.
    private static func digest(
        ofFileAt path: String, while isWanted: () -> Bool
    ) throws(SynheartAuthError) -> ContentDigest {
        let file = (path as NSString).resolvingSymlinksInPath
        guard let type = try? FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType,
            type == .typeRegular, let stream = InputStream(fileAtPath: file)
        else { throw unreadable }
        stream.open()
        defer { stream.close() }
        var hash = SHA256()
        var piece = [UInt8](repeating: 0, count: pieceSize)
        while isWanted() {
            let count = stream.read(&piece, maxLength: pieceSize)
            guard count >= 0 else { throw unreadable }
            if count == 0 { break }
            piece.withUnsafeBytes { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
        }
        do throws(ContractError) {
            return try ContentDigest(sha256: Array(hash.finalize()))
        } catch {
            throw SynheartAuthError(.cryptoError, error.description)
        }
    }

    private static var unreadable: SynheartAuthError {
        SynheartAuthError(.signingFailed, "the body's file cannot be read")
    }
}
