internal import AuthContract
internal import Bytes
public import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// The host's HTTP client. The header documents each function.

/// The answer that a host gives during its callback.
private final class HostAnswer: Sendable {
    let answer = Locked<TransportResponse?>(nil)

    static func of(_ pointer: OpaquePointer) -> HostAnswer {
        Unmanaged<HostAnswer>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    }
}

@_cdecl("synheart_auth_http_answer_set")
public func setHTTPAnswer(
    _ answer: OpaquePointer?, _ status: Int32, _ headers: UnsafePointer<CChar>?, _ body: UnsafePointer<UInt8>?,
    _ length: Int64
) -> Int32 {
    let malformed = Int32(SYNHEART_AUTH_INVALID_ARGUMENT.rawValue)
    guard let answer, (100...599).contains(status), let fields = headerLines(headers),
        let length = Int(exactly: length), let body = CText.bytes(body, length)
    else { return malformed }
    return HostAnswer.of(answer).answer.withLock { answer in
        guard answer == nil else { return malformed }
        answer = TransportResponse(status: Int(status), headers: fields, body: body)
        return 0
    }
}

/// `[{"name":"…","value":"…"}, …]`; nil for any other form. NULL means no headers.
private func headerLines(_ pointer: UnsafePointer<CChar>?) -> HeaderFields? {
    guard let pointer else { return HeaderFields() }
    guard let text = CText.string(pointer), let lines = try? JSONValue(parsing: Array(text.utf8)).array else {
        return nil
    }
    let pairs = lines.compactMap { line -> (String, String)? in
        guard let name = line.object?["name"]?.string, let value = line.object?["value"]?.string else { return nil }
        return (name, value)
    }
    return pairs.count == lines.count ? HeaderFields(pairs) : nil
}

/// The host's HTTP client as a transport.
final class HostTransport: HTTPTransport {
    private let host: HostTable<synheart_auth_transport>
    private let threads = BoundedThreads(limit: 16)

    init(_ table: synheart_auth_transport) { host = HostTable(table) }

    deinit { host.table.release?(host.table.user) }

    /// Sends on one of a few threads, so that a host that hangs blocks neither Swift's pool nor, at first, other requests. The
    /// SDK abandons the call at the deadline. A request that waits for a thread until then is not sent.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let outcome = await threads.run({ self.exchange(request) }) else {
            throw TransportError("the host's HTTP client was too busy to send the request")
        }
        return try outcome.get()
    }

    private typealias Outcome = Swift.Result<TransportResponse, TransportError>

    private func exchange(_ request: TransportRequest) -> Outcome {
        guard let send = host.table.send else { return .failure(TransportError("the host has no HTTP client")) }
        let headers: JSONValue = .array(
            request.headers.lines.map { ["name": .string($0.name), "value": .string($0.value)] })
        let answer = HostAnswer()
        let status = request.method.withCString { method in
            request.url.withCString { url in
                headers.text().withCString { headers in
                    (request.bodyFile ?? "").withCString { file in
                        request.body.withUnsafeBufferPointer { body in
                            var message = synheart_auth_http_request(
                                method: method, url: url, headers: headers,
                                body: body.isEmpty ? nil : body.baseAddress, body_length: Int64(body.count),
                                body_file: request.bodyFile == nil ? nil : file,
                                deadline_ms: request.deadline.wholeMilliseconds,
                                maximum_answer: Int64(request.maximumAnswer))
                            return withExtendedLifetime(answer) {
                                send(
                                    host.table.user, &message,
                                    OpaquePointer(Unmanaged.passUnretained(answer).toOpaque()))
                            }
                        }
                    }
                }
            }
        }
        guard status == 0, let given = answer.answer.withLock({ $0 }) else {
            return .failure(TransportError("the host's HTTP client got no answer (\(status))"))
        }
        return given.body.count > request.maximumAnswer ? .failure(.tooLarge) : .success(given)
    }
}

@_cdecl("synheart_auth_set_transport")
public func setTransport(
    _ handle: OpaquePointer?, _ transport: UnsafePointer<synheart_auth_transport>?, _ result: Result?
) -> Int32 {
    guard let table = transport.flatMap({ synheart_auth_transport.copy($0) }) else {
        return invalidArgument("transport: version or size", result)
    }
    // From here on `release` must be called.
    let transport = HostTransport(table)
    guard let handle else { return invalidArgument("handle", result) }
    guard table.send != nil else { return invalidArgument("transport.send", result) }
    Instance.of(handle).change { $0.transport = transport }
    return succeed([:], result)
}
