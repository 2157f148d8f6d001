internal import AuthContract
public import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// Signing under both schemes, and sending. The header documents each function.

@_cdecl("synheart_auth_allow_origin")
public func allowOrigin(_ handle: OpaquePointer?, _ origin: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let text = CText.string(origin), let origin = try? RequestOrigin(text),
        origin.scheme == .https || origin.isLoopback
    else {
        return invalidArgument("origin: https://host or http://127.0.0.1:port, without a path", result)
    }
    Instance.of(handle).change { $0.origins.insert(origin) }
    return succeed([:], result)
}

@_cdecl("synheart_auth_allow_alias")
public func allowAlias(_ handle: OpaquePointer?, _ origin: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let text = CText.string(origin), let origin = try? RequestOrigin(text) else {
        return invalidArgument("origin: https://host, without a path", result)
    }
    Instance.of(handle).change { $0.aliases.insert(origin) }
    return succeed([:], result)
}

@_cdecl("synheart_auth_use_scheme")
public func useScheme(_ handle: OpaquePointer?, _ scheme: Int32, _ result: Result?) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let scheme = SignatureScheme(rawValue: Int(scheme)) else { return invalidArgument("scheme", result) }
    Instance.of(handle).change { $0.scheme = scheme }
    return succeed([:], result)
}

@_cdecl("synheart_auth_sign")
public func sign(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ request: UnsafePointer<synheart_auth_request>?,
    _ result: Result?
) -> Int32 {
    withRequest(request, result) { scheme, request in
        run(handle, appID, result) { sdk, appId in
            try await sdk.sign(
                appID: appId, scheme: scheme, method: request.method, url: request.url, body: RequestBody(request))
        } _: {
            ["headers": .object(JSONObject($0.fields.map { ($0.name, .string($0.value)) }))]
        }
    }
}

@_cdecl("synheart_auth_send")
public func send(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ request: UnsafePointer<synheart_auth_request>?,
    _ result: Result?, _ answer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?,
    _ answerLength: UnsafeMutablePointer<Int64>?
) -> Int32 {
    answer?.pointee = nil
    answerLength?.pointee = 0
    return withRequest(request, result) { scheme, request in
        if let problem = HostHeaders.problem(request.headers, scheme ?? .one) {
            return invalidArgument("headers: \(problem)", result)
        }
        return run(handle, appID, result, deadline: request.deadline) { sdk, appId in
            try await sdk.send(request, appID: appId, scheme: scheme)
        } _: { received in
            if let answer, let answerLength {
                answer.pointee = CText.copy(received.body)
                answerLength.pointee = answer.pointee == nil ? 0 : Int64(received.body.count)
            }
            let headers = received.headers.lines.map { line -> JSONValue in
                ["name": .string(line.name), "value": .string(line.value)]
            }
            return ["status": .integer(received.status), "headers": .array(headers)]
        }
    }
}

@_cdecl("synheart_auth_bytes_free")
public func freeBytes(_ bytes: UnsafeMutablePointer<UInt8>?) { free(bytes) }

/// Checks the host's struct and runs `body` with its content.
private func withRequest(
    _ request: UnsafePointer<synheart_auth_request>?, _ result: Result?,
    _ body: (SignatureScheme?, TransportRequest) -> Int32
) -> Int32 {
    guard let request = request?.pointee else { return invalidArgument("request", result) }
    let scheme: SignatureScheme?
    switch request.scheme {
    case 0: scheme = nil
    case 1: scheme = .one
    case 2: scheme = .two
    default: return invalidArgument("scheme", result)
    }
    guard let method = CText.string(request.method) else { return invalidArgument("method", result) }
    guard let url = CText.string(request.url) else { return invalidArgument("url", result) }
    guard let headers = headers(request.headers) else { return invalidArgument("headers", result) }
    guard let length = Int(exactly: request.body_length), let bytes = CText.bytes(request.body, length) else {
        return invalidArgument("body", result)
    }
    let file = CText.string(request.body_file)
    guard request.body_file == nil || (file != nil && bytes.isEmpty) else {
        return invalidArgument("body_file", result)
    }
    guard let deadline = deadline(request.deadline_ms, usual: .seconds(30)) else {
        return invalidArgument("deadline_ms", result)
    }
    // The answer is held in memory, so its size has a limit.
    guard (0...Int64(Int32.max)).contains(request.maximum_answer) else {
        return invalidArgument("maximum_answer", result)
    }
    let maximum = request.maximum_answer == 0 ? TransportRequest.usualMaximumAnswer : Int(request.maximum_answer)
    if let file {
        return body(
            scheme,
            TransportRequest(
                method: method, url: url, headers: headers, bodyFile: file, deadline: deadline, maximumAnswer: maximum))
    }
    return body(
        scheme,
        TransportRequest(
            method: method, url: url, headers: headers, body: bytes, deadline: deadline, maximumAnswer: maximum))
}

/// The header lines in a JSON object of texts; nil for any other form. NULL means no headers.
private func headers(_ pointer: UnsafePointer<CChar>?) -> HeaderFields? {
    guard let pointer else { return HeaderFields() }
    guard let text = CText.string(pointer), let object = try? JSONValue(parsing: Array(text.utf8)).object else {
        return nil
    }
    let lines = object.members.compactMap { member in member.value.string.map { (member.name, $0) } }
    return lines.count == object.members.count ? HeaderFields(lines) : nil
}
