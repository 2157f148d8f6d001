internal import AuthContract
internal import Bytes
public import Foundation

/// A body that is read in pieces and never completely in memory. It is opened once for its digest, and once for each copy of the
/// request that is sent, and must give the same bytes each time.
public final class BodySource: Sendable {
    /// Opens the app's stream. It may block.
    let original: @Sendable () throws -> InputStream
    /// The copy of a signed body that this source reads; nil for the app's own source.
    let copy: BodyCopy?
    private let sent = Locked<SentBody?>(nil)

    /// A body that is read from the streams that `open` makes.
    ///
    /// - Parameter open: Makes an unopened stream of the whole body. The SDK opens, reads and closes it on a thread that may block.
    public init(_ open: @escaping @Sendable () throws -> InputStream) { (original, copy) = (open, nil) }

    init(_ copy: BodyCopy, _ original: BodySource) { (self.original, self.copy) = (original.original, copy) }

    /// The length of the body in bytes; nil for a source that the app made. A transport that announces it (`Content-Length`)
    /// ensures that a truncated body is not taken for a complete one.
    public var length: Int64? { copy?.measure.count }

    /// An unopened stream of the complete body, for a transport. The app's stream is opened and read on one of a few threads of
    /// the SDK.
    ///
    /// If the bytes are not the signed ones, the stream stops before its last bytes, or is not created. A transport opens the
    /// body once, because it sends a request once. It must keep the source while it reads the stream: if the source is released,
    /// a stream that stopped early looks like one that has ended.
    ///
    /// - Parameter limit: The time limit for opening the app's stream, including the wait for a thread. Outside Apple's systems it
    ///   also includes reading the stream.
    public func open(within limit: Duration = .seconds(30)) async throws -> InputStream {
        try await send(within: limit).takeStream()
    }

    /// Starts sending the body of a request, within its deadline.
    func sent(for request: TransportRequest) async throws(TransportError) -> SentBody {
        do {
            return try await send(within: request.deadline)
        } catch is SilentBody {
            throw TransportError("the body's source did not answer in time")
        } catch let error as UnkeptBody {
            throw TransportError(error.description)
        } catch {
            throw TransportError("the body's source cannot be read: \(error)", isUnsendable: true)
        }
    }

    /// Starts sending the body. The source retains the result, because the body's stream needs the result until the stream ends.
    func send(within limit: Duration) async throws -> SentBody {
        guard copy?.beginsNow() ?? true else { throw UnreadableBody() }
        let body = try await SentBody.make(self, within: limit)
        sent.withLock { $0 = body }
        return body
    }
}

extension BodySource: Hashable {
    /// Whether `left` and `right` are the same object.
    public static func == (left: BodySource, right: BodySource) -> Bool { left === right }

    /// Hashes the identity of the source.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The length and digest of a body, known after it was read once.
struct BodyMeasure: Sendable {
    let count: Int64
    let digest: ContentDigest
}

/// One copy of a signed body that is being sent. A transport opens it once.
final class BodyCopy: Sendable {
    private struct State: Sendable {
        var isOpened = false
        var isBroken = false
        var mustEnd = false
        var whenBroken: (@Sendable () -> Void)?
    }

    let measure: BodyMeasure
    private let original: BodySource
    private let state = Locked(State())

    init(of original: BodySource, _ measure: BodyMeasure) {
        self.original = original
        self.measure = measure
    }

    /// The source that the transport opens.
    var source: BodySource { BodySource(self, original) }

    /// Notes an opening. Returns whether it is the first one.
    func beginsNow() -> Bool {
        state.withLock { state in
            defer { state.isOpened = true }
            return !state.isOpened
        }
    }

    /// Whether the body could not be read again, or had other bytes.
    var isBroken: Bool { state.withLock { $0.isBroken } }

    /// Runs `action` when the body turns out to be broken while it is sent; immediately if it already has.
    func whenBroken(_ action: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            if !state.mustEnd { state.whenBroken = action }
            return state.mustEnd
        }
        if isNow { action() }
    }

    /// Notes that the body is broken.
    ///
    /// - Parameter isOnItsWay: Whether some of it may have been sent, so that the exchange must end.
    func noteBroken(isOnItsWay: Bool) {
        let action = state.withLock { state in
            state.isBroken = true
            guard isOnItsWay else { return nil as (@Sendable () -> Void)? }
            state.mustEnd = true
            defer { state.whenBroken = nil }
            return state.whenBroken
        }
        action?()
    }
}
