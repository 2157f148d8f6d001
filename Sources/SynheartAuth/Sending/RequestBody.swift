internal import AuthContract
internal import Crypto
internal import Foundation

/// What a request carries: bytes, or a file that is never in memory as a whole.
package enum RequestBody: Sendable {
    case bytes([UInt8])
    case file(String)

    package init(_ request: TransportRequest) { self = request.bodyFile.map { .file($0) } ?? .bytes(request.body) }

    func digest() async throws(SynheartAuthError) -> ContentDigest {
        switch self {
        case .bytes(let body): return ContentDigest(of: body)
        case .file(let path):
            // A queue of its own: a large file must not keep the keys' queue waiting.
            let queue = BlockingQueue(label: "ai.synheart.auth.digest")
            return try await queue.run { () throws(SynheartAuthError) in try Self.digest(ofFileAt: path) }
        }
    }

    private static let pieceSize = 64 * 1024

    private static func digest(ofFileAt path: String) throws(SynheartAuthError) -> ContentDigest {
        guard let stream = InputStream(fileAtPath: path) else { throw unreadable }
        stream.open()
        defer { stream.close() }
        var hash = SHA256()
        var piece = [UInt8](repeating: 0, count: pieceSize)
        while true {
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
