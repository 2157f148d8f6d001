import Bytes
import Foundation

@testable import SynheartAuth

/// A stream whose bytes are generated when they are read. Another seed gives other bytes.
final class MadeUp: InputStream {
    private let length: Int
    private let seed: UInt8
    private var given = 0

    init(length: Int, seed: UInt8 = 0) {
        (self.length, self.seed) = (length, seed)
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override var streamStatus: Stream.Status { .notOpen }
    override var hasBytesAvailable: Bool { given < length }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let count = min(maxLength, length - given)
        memset(buffer, Int32(UInt8(truncatingIfNeeded: given >> 16) ^ seed), count)
        given += count
        return count
    }
}

extension BodySource {
    /// A source that calls `body` at each opening, and passes it the number of the opening. The first one has the number 1.
    convenience init(_ opened: Locked<Int>, _ body: @escaping @Sendable (_ opening: Int) throws -> InputStream) {
        self.init {
            try body(
                opened.withLock { opened in
                    opened += 1
                    return opened
                })
        }
    }
}

/// A body that waits at a gate when it is read, and ends after the gate.
final class GatedBody: InputStream {
    private let gate: Gate
    private let before: Int
    private var given = 0

    /// - Parameter before: The number of bytes before the gate.
    init(_ gate: Gate, before: Int = 0) {
        (self.gate, self.before) = (gate, before)
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override var streamStatus: Stream.Status { .notOpen }
    override var hasBytesAvailable: Bool { true }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard given < before else {
            gate.pass()
            return 0
        }
        let count = min(maxLength, before - given)
        memset(buffer, 1, count)
        given += count
        return count
    }
}

/// Sends the SDK's own requests to the fake service, and the app's over the network.
struct Routing: HTTPTransport {
    let service: FakeService
    let network: any HTTPTransport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        request.url.hasPrefix(FakeService.origin)
            ? try await service.send(request) : try await network.send(request)
    }
}
