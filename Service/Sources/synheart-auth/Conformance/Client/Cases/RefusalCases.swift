import AuthContract

extension ClientCase {
    /// Refusals of requests to a backend or of the client's own calls, and the client's reactions.
    static let refusals: [ClientCase] = [
        .init(
            "replay-post", "Errors", "a POST that is NONCE_REPLAY is reported, and not sent again",
            [.register, .post], faults: [.post: [.refused(.nonceReplay)]]
        ) { trace in
            try trace.failed(1, .nonceReplay)
            try trace.came(.post, 1)
        },
        .init(
            "replay-get", "Errors", "a GET that is NONCE_REPLAY is signed again, once",
            [.register, .get, .get],
            faults: [.get: [.refused(.nonceReplay), .late(.zero), .refused(.nonceReplay), .refused(.nonceReplay)]]
        ) { trace in
            try trace.answered(1)
            try trace.failed(2, .nonceReplay)
            try trace.came(.get, 4)
        },
        .init(
            "replay-key", "Errors",
            "a POST with Idempotency-Key that is NONCE_REPLAY is signed again with the same key",
            [.register, .send("POST", RequestName.post.path, body: "{}", headers: [("Idempotency-Key", "a1")])],
            faults: [.post: [.refused(.nonceReplay)]]
        ) { trace in
            try trace.answered(1)
            let sent = try trace.came(.post, 2)
            try trace.require(sent.allSatisfy { $0.header("Idempotency-Key") == "a1" }, "the Idempotency-Key changed")
        },
        .init(
            "replay-own", "Errors", "a call of the protocol that is NONCE_REPLAY is signed again",
            [.register, .token], faults: [.token: [.refused(.nonceReplay)]]
        ) { trace in
            try trace.done(1)
            try trace.came(.token, 2)
        },
        reported(
            "misdirected", "MISDIRECTED_REQUEST is reported, and changes nothing", .misdirectedRequest, goesOn: true),
        reported("revoked", "after DEVICE_REVOKED the client stops, and registers nothing by itself", .deviceRevoked),
        reported("not-registered", "after NOT_REGISTERED the client leaves the reset to the app", .notRegistered),
        reported(
            "wrong-signature", "after INVALID_SIGNATURE the client leaves the reset to the app", .invalidSignature),
        .init(
            "key-expired", "Errors", "after KEY_EXPIRED the client rotates and signs again",
            [.register, .get], faults: [.get: [.refused(.keyExpired)]], newKeys: 1
        ) { trace in
            try trace.answered(1)
            try trace.came(.rotate, 1)
            try trace.signed(try trace.came(.get, 2)[1], by: trace.rotatedKeys.first)
        },
        .init(
            "other-scheme", "Signing a request",
            "a call that is UNSUPPORTED_SIG_VERSION is signed under the other scheme, once",
            [.register, .token], faults: [.token: [.refused(.unsupportedSigVersion)]]
        ) { trace in
            try trace.done(1)
            let isTwo = try trace.came(.token, 2).map { !$0.header(HeaderName.signatureInput).isEmpty }
            try trace.require(isTwo[0] != isTwo[1], "both requests have one scheme")
        },
    ]

    /// A case with a refusal that the client must report without registering by itself, because the app decides about the
    /// recovery.
    ///
    /// - Parameter goesOn: whether the next two steps, `register` and `get`, must succeed with the existing registration.
    ///   If false, the client may stop.
    private static func reported(
        _ id: String, _ sentence: String, _ code: ErrorCode, goesOn: Bool = false
    ) -> ClientCase {
        .init(
            id, "Errors", sentence, [.register, .get, .register, .get], faults: [.get: [.refused(code)]]
        ) { trace in
            try trace.failed(1, code)
            try trace.came(.register, 1)
            guard goesOn else { return }
            try trace.done(2)
            try trace.answered(3)
            try trace.came(.get, 2)
        }
    }
}
