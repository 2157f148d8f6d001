import AuthContract
import Crypto
import Foundation
import StrictJSON

extension ConformanceCase {
    /// The form of every answer, the service's clock, and the refusals of unknown paths and methods.
    static let answers: [ConformanceCase] = [
        .init("answer-headers", "HTTP", "every answer has the service's time, a request id and no-store") { stage in
            let requests = [
                WireRequest.json(.challenge, ChallengeRequest(appID: stage.appID).bytes),
                WireRequest(method: "GET", target: Route.status.rawValue),
                WireRequest(method: "GET", target: "/auth/v1/conformance"),
            ]
            for request in requests {
                let headers = try await stage.send(request).headers
                let time = headers.values(HeaderName.serverTime)
                try stage.require(
                    time.count == 1 && time.allSatisfy { (try? UnixTime(header: $0)) != nil },
                    "\(request.target): \(HeaderName.serverTime) is \(time)")
                try stage.require(
                    headers.values(HeaderName.requestID).count == 1, "\(request.target): no \(HeaderName.requestID)")
                let cache = headers.values("Cache-Control")
                try stage.require(cache == ["no-store"], "\(request.target): Cache-Control is \(cache)")
            }
        },
        .init("clock", "HTTP", "the service's clock and this machine's are at most 5 s apart") { stage in
            let before = Int64(Date().timeIntervalSince1970)
            let answer = try await stage.sendOnce(WireRequest(method: "GET", target: Route.status.rawValue))
            let after = Int64(Date().timeIntervalSince1970)
            guard let time = answer.headers.values(HeaderName.serverTime).first.flatMap({ try? UnixTime(header: $0) })
            else { throw CaseEnd.fails("no \(HeaderName.serverTime)") }
            let apart = max(before - time.seconds, time.seconds - after, 0)
            try stage.require(apart <= 5, "they are \(apart) s apart")
        },
        .init("error-form", "Errors", "a refusal has its code, its id and its time, in the body and in headers") {
            stage in
            let answer = try await stage.send(WireRequest(method: "GET", target: Route.status.rawValue))
            guard let body = try? ErrorBody(parsing: answer.body) else {
                throw CaseEnd.fails("the body is not an error of the contract")
            }
            let code = ErrorCode.invalidRequest
            try stage.require(
                answer.status == code.httpStatus && body.code == code.rawValue, "expected \(code), came \(answer.text)")
            let header = answer.headers.values(HeaderName.error)
            try stage.require(header == [body.code], "\(HeaderName.error) is \(header), the body says \(body.code)")
            let id = answer.headers.values(HeaderName.requestID)
            try stage.require(
                id == [body.requestID], "\(HeaderName.requestID) is \(id), the body has \(body.requestID)")
            let time = answer.headers.values(HeaderName.serverTime)
            try stage.require(
                time == [body.serverTimestamp.description],
                "\(HeaderName.serverTime) is \(time), the body says \(body.serverTimestamp)")
        },
        .init("error-problem", "Errors", "a client that accepts problem details gets them (RFC 9457)") { stage in
            let answer = try await stage.send(
                WireRequest(
                    method: "GET", target: Route.status.rawValue, headers: [("Accept", "application/problem+json")]))
            try stage.require(
                answer.headers.values("Content-Type").first?.hasPrefix("application/problem+json") == true
                    && answer.json["code"]?.string == ErrorCode.invalidRequest.rawValue,
                "the answer is none")
        },
        .init("unknown-path", "Errors", "a path that is not there is NOT_FOUND") { stage in
            try await stage.refused(WireRequest(method: "GET", target: "/auth/v1/conformance"), .notFound)
        },
        .init("wrong-method", "Errors", "another method is METHOD_NOT_ALLOWED, and Allow has the right one") { stage in
            let answer = try await stage.send(WireRequest(method: "GET", target: Route.token.rawValue))
            try stage.require(
                answer.status == 405 && answer.code == ErrorCode.methodNotAllowed.rawValue, "came \(answer.text)")
            try stage.require(answer.headers.values("Allow") == ["POST"], "no Allow: POST")
        },
    ]

    /// Bodies: which ones are refused, and whether they arrive unchanged.
    static let bodies: [ConformanceCase] = [
        .init("strict-json", "Names and encodings", "duplicate keys, wrong types and trailing bytes are refused") {
            stage in
            let app = #""app_id":"\#(stage.appID)""#
            for body in ["{\(app),\(app)}", "{\(app)} x", #"{"app_id":1}"#, "[]", "", #"{\#(app),"purpose":"other"}"#] {
                try await stage.refused(.json(.challenge, Array(body.utf8)), .invalidRequest, what: "\"\(body)\"")
            }
        },
        .init("unknown-keys", "Names and encodings", "unknown keys are ignored") { stage in
            try await stage.accepted(.json(.challenge, Array(#"{"app_id":"\#(stage.appID)","x_unknown":[1]}"#.utf8)))
        },
        .init("not-json", "Errors", "a body that is not declared as plain JSON is UNSUPPORTED_MEDIA_TYPE") { stage in
            let request = WireRequest.json(.challenge, ChallengeRequest(appID: stage.appID).bytes)
            try await stage.refused(request.with([("Content-Type", "text/plain")]), .unsupportedMediaType)
            try await stage.refused(
                request.with([("Content-Encoding", "compress")]), .unsupportedMediaType, what: "Content-Encoding")
        },
        .init("too-large", "Errors", "a body of more than 64 KiB is refused") { stage in
            let padding = String(repeating: "a", count: 70_000)
            let body = #"{"app_id":"\#(stage.appID)","padding":"\#(padding)"}"#
            // The service may close the connection before all of the body was sent.
            do { try await stage.stopped(.json(.challenge, Array(body.utf8))) } catch is NoAnswer {}
        },
        .init("body-unchanged", "Scheme 1", "a signed body arrives byte by byte, with its white space") { stage in
            let phone = try await stage.phone()
            let body = Array(" {\t\"x\": \"\u{e9}\\u00e9\" \r\n} \n".utf8)
            try await stage.accepted(try phone.signed(.token, body, at: stage.now))
        },
        .init("body-large", "Scheme 1", "a signed body of 60,000 bytes arrives whole") { stage in
            let phone = try await stage.phone()
            let body = Array("{\"x\":\"\(String(repeating: "a", count: 60_000))\"}".utf8)
            try await stage.accepted(try phone.signed(.token, body, at: stage.now))
        },
        .init("body-chunked", "Scheme 1", "a signed body arrives whole if it is sent in chunks") { stage in
            let phone = try await stage.phone()
            var request = try phone.signed(.token, at: stage.now)
            request.isChunked = true
            try await stage.accepted(request)
        },
    ]
}
