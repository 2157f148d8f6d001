internal import AuthContract
internal import AuthServer
internal import AuthService
internal import Crypto
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import RequestVerification

/// The body of a request: either read completely before the request is verified, or streamed after that, with the signed digest.
struct IncomingBody {
    /// The body is shorter than its stated length.
    private struct Incomplete: Error {}

    private let limits: AuthProxySettings
    private let connection: SidecarConnection
    private let isPresent: Bool
    private let length: Int?
    /// The digest that a body beyond `bodyLimit` must have; nil: such a body is refused.
    private let digest: [UInt8]?
    private var awaitsContinue: Bool
    private var pieces: RequestBody.AsyncIterator
    /// The bytes that were read. `next` is the piece that exceeded the limit.
    private var read: [UInt8] = []
    private var next: ByteBuffer?
    private var isStreamed = false

    /// - Throws: `Declined` if the length is too large.
    init(
        of request: Request, _ received: ReceivedRequest, limits: AuthProxySettings, over connection: SidecarConnection
    ) throws(Declined) {
        self.limits = limits
        self.connection = connection
        // A request with neither `Content-Length` nor `Transfer-Encoding` has no body (RFC 9112 section 6.3).
        isPresent = request.headers.contains(.contentLength) || request.headers.contains(.transferEncoding)
        length = request.headers[.contentLength].flatMap { Int($0) }
        awaitsContinue = request.headers.contains(.expect)
        pieces = request.body.makeAsyncIterator()
        let mayStream = limits.streamLimit > limits.bodyLimit && received.usesSchemeTwo
        digest = mayStream ? received.contentDigest : nil
        if let length, length > maximum { throw tooLarge }
    }

    private var maximum: Int { digest == nil ? limits.bodyLimit : limits.streamLimit }

    private var tooLarge: Declined {
        Declined(.unsupported, status: 413, .payloadTooLarge, "The body has more than \(maximum) bytes.")
    }

    /// Reads the body, up to `bodyLimit`. For a larger body that may be streamed, returns only the signed digest.
    ///
    /// - Parameter room: the memory for the body.
    /// - Throws: `Declined` if the body is too large, or if `room` has no memory left.
    mutating func describe(within room: BodyBudget.Share) async throws -> ReceivedRequest.Body {
        guard isPresent else { return .bytes([]) }
        if let length, length > limits.bodyLimit, let digest {
            isStreamed = true
            return .sha256(digest)
        }
        try await sendContinue()
        while let piece = try await pieces.next(isolation: #isolation) {
            guard read.count + piece.readableBytes <= limits.bodyLimit else {
                guard let digest else { throw tooLarge }
                (next, isStreamed) = (piece, true)
                return .sha256(digest)
            }
            do { try room.cover(read.count + piece.readableBytes) } catch {
                throw Declined.unavailable(
                    503, "Too many large requests arrive.", .unavailable, error.reason)
            }
            read.append(contentsOf: piece.readableBytesView)
        }
        // After a cancellation the body ends early and looks complete.
        try Task.checkCancellation()
        return .bytes(read)
    }

    /// Sends the request to the backend with this body.
    ///
    /// - Parameter isVerified: whether a streamed body must have the signed digest.
    /// - Throws: `BackendFailure`; `Declined` if the body is too large or is not the signed one. In these cases, the backend
    ///   has not received the whole body.
    mutating func send(
        to backend: Backend, _ method: String, _ target: String, _ headers: HeaderFields, isVerified: Bool
    ) async throws -> Backend.Answer {
        guard isStreamed else {
            return try await backend.send(method, target, headers: headers, body: .bytes(read))
        }
        let pipe = BodyPipe()
        let body = Backend.Body.pipe(
            pipe, length: length.map { Int64($0) }, within: limits.server.deadlines.body)
        async let answer = Self.send(method, target, headers, body, pipe, to: backend)
        do {
            try await stream(into: pipe, expecting: isVerified ? digest : nil)
        } catch {
            // Abort the request to the backend before its body is complete.
            pipe.finish(error)
            throw error
        }
        return try await answer
    }

    private static func send(
        _ method: String, _ target: String, _ headers: HeaderFields, _ body: Backend.Body, _ pipe: BodyPipe,
        to backend: Backend
    ) async throws -> Backend.Answer {
        do {
            return try await backend.send(method, target, headers: headers, body: body)
        } catch {
            pipe.close()
            throw error
        }
    }

    /// Writes the body. The last piece is written only if the whole body has this digest; nil: the digest is not checked.
    private mutating func stream(into pipe: BodyPipe, expecting digest: [UInt8]?) async throws {
        try await sendContinue()
        var hash = SHA256()
        var count = 0
        var held: ByteBuffer?
        var piece = read.isEmpty ? nil : ByteBuffer(bytes: read)
        if piece == nil { (piece, next) = (next, nil) }
        read = []
        while true {
            if piece == nil { (piece, next) = (next, nil) }
            if piece == nil { piece = try await pieces.next(isolation: #isolation) }
            guard let current = piece else { break }
            piece = nil
            guard current.readableBytes > 0 else { continue }
            count += current.readableBytes
            guard count <= limits.streamLimit else { throw tooLarge }
            current.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
            if let held { await pipe.write(held) }
            held = current
        }
        try Task.checkCancellation()
        guard length == nil || count == length else { throw Incomplete() }
        if let digest, Array(hash.finalize()) != digest {
            let code = ErrorCode.invalidSignature
            throw Declined(
                .refused, status: code.httpStatus, code, code.message,
                reason: "the body has another digest than was signed")
        }
        if let held { await pipe.write(held) }
        pipe.finish()
    }

    private mutating func sendContinue() async throws {
        guard awaitsContinue else { return }
        awaitsContinue = false
        try await connection.sendContinue()
    }
}
