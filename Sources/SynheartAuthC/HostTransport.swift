internal import AuthContract
internal import Bytes
public import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// The host's HTTP client. The header documents each function.

/// The answer to a request, which the C program gives while its callback runs.
private final class HostAnswer: Sendable {
    typealias Outcome = Swift.Result<TransportResponse, TransportError>

    let outcome = Locked<Outcome?>(nil)
    let maximum: Int

    init(maximum: Int) { self.maximum = maximum }

    // The host gets a number in place of a pointer, so that a call after the callback has returned finds nothing.
    private static let running = Locked<(last: UInt, answers: [UInt: HostAnswer])>((0, [:]))

    /// Runs the callback with a number that stands for this answer until the callback has returned.
    func during<Value>(_ callback: (OpaquePointer?) -> Value) -> Value {
        let number = Self.running.withLock { running in
            running.last += 1
            running.answers[running.last] = self
            return running.last
        }
        defer { Self.running.withLock { $0.answers[number] = nil } }
        return callback(OpaquePointer(bitPattern: number))
    }

    static func of(_ number: OpaquePointer) -> HostAnswer? {
        running.withLock { $0.answers[UInt(bitPattern: number)] }
    }
}

@_cdecl("synheart_auth_http_answer_set")
public func setHTTPAnswer(
    _ answer: OpaquePointer?, _ status: Int32, _ headers: UnsafePointer<CChar>?, _ body: UnsafePointer<UInt8>?,
    _ length: Int64
) -> Int32 {
    let malformed = Int32(SYNHEART_AUTH_INVALID_ARGUMENT.rawValue)
    guard let answer = answer.flatMap(HostAnswer.of), (100...599).contains(status),
        let fields = headerLines(headers), body != nil || length == 0, length >= 0
    else { return malformed }
    let outcome: HostAnswer.Outcome
    if length > answer.maximum {
        outcome = .failure(.tooLarge)
    } else {
        guard let body = CText.bytes(body, Int(length)) else { return malformed }
        outcome = .success(TransportResponse(status: Int(status), headers: fields, body: body))
    }
    return answer.outcome.withLock { given in
        guard given == nil else { return malformed }
        given = outcome
        return 0
    }
}

/// The header lines in a JSON array `[{"name":"…","value":"…"}, …]`; nil for any other form. NULL means no headers.
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

    /// Sends on one of 16 threads, so that a host that hangs does not block Swift's pool. Other requests wait only if all threads
    /// hang. The SDK abandons the call at the deadline. A request that waits for a thread until its deadline is not sent.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let outcome = await threads.run({ self.exchange(request) }) else {
            throw TransportError("the host's HTTP client was too busy to send the request", mayHaveArrived: false)
        }
        return try outcome.get()
    }

    private func exchange(_ request: TransportRequest) -> HostAnswer.Outcome {
        guard let send = host.table.send else { return .failure(TransportError("the host has no HTTP client")) }
        let headers: JSONValue = .array(
            request.headers.lines.map { ["name": .string($0.name), "value": .string($0.value)] })
        let answer = HostAnswer(maximum: request.maximumAnswer)
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
                            return answer.during { send(host.table.user, &message, $0) }
                        }
                    }
                }
            }
        }
        guard status == 0, let given = answer.outcome.withLock({ $0 }) else {
            return .failure(TransportError("the host's HTTP client got no answer (\(status))"))
        }
        return given
    }
}

@_cdecl("synheart_auth_set_transport")
public func setTransport(
    _ handle: OpaquePointer?, _ transport: UnsafePointer<synheart_auth_transport>?, _ result: Result?
) -> Int32 {
    guard let table = transport.flatMap({ synheart_auth_transport.copy($0) }) else {
        return invalidArgument("transport: version or size", result)
    }
    // The transport calls the table's `release` when it is freed, also if this function fails below.
    let transport = HostTransport(table)
    guard let handle else { return invalidArgument("handle", result) }
    guard table.send != nil else { return invalidArgument("transport.send", result) }
    Instance.of(handle).change { $0.transport = transport }
    return succeed([:], result)
}
