import AuthContract

extension ClientCase {
    /// Requests to a backend: their bytes, and how often they are sent.
    static let requests: [ClientCase] = [
        .init(
            "path", "Signing a request", "path and query go on the wire as they were given",
            [.register, .send("GET", "/v1/a%2Fb//c%20d/~e?q=a%2Bb&r=")]
        ) { trace in
            try trace.answered(1)
            let target = trace.arrivals.last { $0.request.method == "GET" }?.request.target ?? "none"
            try trace.require(target == "/v1/a%2Fb//c%20d/~e?q=a%2Bb&r=", "the target came as \(target)")
        },
        .init(
            "body", "Signing a request", "a body goes on the wire byte by byte",
            [.register, .send("POST", RequestName.post.path, body: text)]
        ) { trace in
            try trace.answered(1)
            let body = try trace.came(.post, 1)[0].request.body
            try trace.require(body == Array(text.utf8), "the body came as \(String(decoding: body, as: UTF8.self))")
        },
        notRepeated("lost-post", "a POST whose answer was lost is not sent again", .post, .post, .lost),
        notRepeated("lost-get", "a GET whose answer was lost is not sent again", .get, .get, .lost),
        notRepeated("cut-answer", "a request whose answer was cut short is not sent again", .get, .get, .cut),
        .init(
            "late-answer", "Retry", "a client waits for an answer that comes late, and sends nothing meanwhile",
            [.register, .post], faults: [.post: [.late(.seconds(3))]]
        ) { trace in
            try trace.answered(1)
            try trace.came(.post, 1)
        },
        .init(
            "redirect", "HTTP", "a redirect of a signed request is not followed",
            [.register, .get, .post, .get],
            faults: [.get: [.redirected], .post: [.redirected]]
        ) { trace in
            try trace.staysHere()
            try trace.answered(3)
            try trace.came(.get, 2)
            try trace.came(.post, 1)
        },
        .init(
            "pages", "Errors", "pages of a gateway are no verdicts, and each request is sent once",
            [.register, .get, .get, .get, .get, .get],
            faults: [.get: [.paged(401), .paged(403), .paged(409), .paged(503)]]
        ) { trace in
            try trace.answered(5)
            try trace.came(.get, 5)
            try trace.came(.register, 1)
        },
        .init(
            "unavailable", "Errors", "a request to a backend that is unavailable is sent once",
            [.register, .post, .post], faults: [.post: [.refused(.serviceUnavailable, retryAfter: 1)]]
        ) { trace in
            try trace.answered(2)
            try trace.came(.post, 2)
        },
        .init(
            "code-below-400", "Errors", "X-Synheart-Error says nothing below status 400", [.register, .get],
            faults: [.get: [.changed { $0.set(HeaderName.error, ErrorCode.deviceRevoked.rawValue) }]]
        ) { trace in
            try trace.answered(1)
            try trace.came(.get, 1)
        },
    ]

    private static let text = "{\"b\" : 1,\r\n\t\"a\":\"\u{FC}\\u00e9\" }\n"

    /// A case with a request that the client must not repeat, because it may have had an effect.
    private static func notRepeated(
        _ id: String, _ sentence: String, _ name: RequestName, _ step: ClientStep, _ fault: Fault
    ) -> ClientCase {
        // HTTP libraries may repeat a request by themselves if a reused connection ends. The first request is answered,
        // so that the second one, which meets the fault, reuses its connection.
        .init(id, "Retry", sentence, [.register, step, step, step], faults: [name: [.late(.zero), fault]]) { trace in
            try trace.answered(1)
            try trace.failed(2, "NETWORK_ERROR")
            try trace.answered(3)
            try trace.came(name, 3)
        }
    }
}
