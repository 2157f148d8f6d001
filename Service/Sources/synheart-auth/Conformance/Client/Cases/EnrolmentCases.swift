import AuthContract
import StrictJSON

extension ClientCase {
    /// Registrations that meet a fault.
    static let registrations: [ClientCase] = [
        .init(
            "challenge-dropped", "Retry", "a challenge that is not answered is asked for again, after a second",
            [.register], faults: [.challenge: [.dropped]]
        ) { trace in
            try trace.done(0)
            let sent = try trace.came(.challenge, 2)
            try trace.waited(1, after: sent[0], before: sent[1])
        },
        .init(
            "challenge-page", "Errors", "a page with status 200 in place of a challenge is a network error",
            [.register], faults: [.challenge: [.paged(200)]]
        ) { trace in
            try trace.done(0)
            try trace.came(.challenge, 2)
        },
        .init(
            "challenge-large", "Retry", "an answer of more than 64 KiB is a network error",
            [.register], faults: [.challenge: [.padded]]
        ) { trace in
            try trace.done(0)
            try trace.came(.challenge, 2)
        },
        .init(
            "challenge-redirect", "HTTP", "a redirect is a network error, and is not followed",
            [.register], faults: [.challenge: [.redirected]]
        ) { trace in
            try trace.done(0)
            try trace.staysHere()
            try trace.came(.challenge, 2)
        },
        .init(
            "challenge-limited", "Retry", "a client that is limited reports it, or waits as long as Retry-After says",
            [.register], faults: [.challenge: [.refused(.rateLimited, retryAfter: 2)]]
        ) { trace in
            let sent = try trace.came(.challenge, atLeast: 1)
            guard sent.count > 1 else { return try trace.failed(0, .rateLimited) }
            try trace.waited(2, after: sent[0], before: sent[1])
        },
        .init(
            "register-lost", "Answers that are lost",
            "a client whose registration is not answered sends the same key with a new challenge",
            [.register, .get], faults: [.register: [.lost]]
        ) { trace in
            try trace.done(0)
            try trace.answered(1)
            try trace.registersAgain()
        },
        .init(
            "register-killed", "Answers that are lost",
            "a client that is killed while it registers sends the same key at its next launch",
            [.register], [.register, .get], faults: [.register: [.killed(afterService: true)]]
        ) { trace in
            try trace.done(0, launch: 1)
            try trace.answered(1, launch: 1)
            try trace.registersAgain()
        },
        .init(
            "register-unavailable", "Retry", "Retry-After replaces the computed pause, and the challenge is a new one",
            [.register], faults: [.register: [.refused(.serviceUnavailable, retryAfter: 2)]]
        ) { trace in
            try trace.done(0)
            try trace.registersAgain()
            let (first, second) = (trace.requests(.register)[0], try trace.came(.challenge, 2)[1])
            try trace.waited(2, after: first, before: second)
        },
        .init(
            "register-page", "Errors", "the page of a gateway with status 403 is no verdict",
            [.register, .get], faults: [.register: [.paged(403)]]
        ) { trace in
            try trace.done(0)
            try trace.answered(1)
            try trace.registersAgain()
        },
        .init(
            "register-id", "Names and encodings",
            "a device id that is no lower-case UUID is not what the service sends",
            [.register, .get], faults: [.register: [.misnamed]]
        ) { trace in
            try trace.done(0)
            try trace.answered(1)
            try trace.registersAgain()
        },
        startsAgain("register-challenge", .invalidChallenge),
        startsAgain("register-expired", .challengeExpired),
        .init(
            "register-refused", "Errors", "INVALID_ATTESTATION is reported as ATTESTATION_FAILED, and not retried",
            [.register], faults: [.register: [.refused(.invalidAttestation)]]
        ) { trace in
            try trace.failed(0, "ATTESTATION_FAILED")
            try trace.came(.register, 1)
        },
        .init(
            "pending", "Pending devices",
            "a pending device signs for no backend, and asks for its status at the next launch",
            [.register, .get], [.register, .get], faults: [.register: [.pended]]
        ) { trace in
            try trace.done(0)
            try trace.failed(1, "NOT_REGISTERED")
            try trace.done(0, launch: 1)
            try trace.answered(1, launch: 1)
            try trace.came(.register, 1)
            try trace.came(.status, atLeast: 1)
            try trace.came(.get, 1)
        },
    ]

    /// A case in which the service refuses a registration, and the client must start again.
    private static func startsAgain(_ id: String, _ code: ErrorCode) -> ClientCase {
        .init(
            id, "Errors", "after \(code.rawValue) the client starts again with a new challenge", [.register],
            faults: [.register: [.refused(code)]]
        ) { trace in
            try trace.done(0)
            try trace.registersAgain()
        }
    }
}

extension ClientTrace {
    /// Requires two registrations with the same key and different challenges.
    fileprivate func registersAgain() throws {
        let sent = try came(.register, 2)
        try require(registeredKeys.count == 1, "the client made another key")
        let challenges = Set(sent.map { $0.json["challenge"]?.string })
        try require(challenges.count == 2, "the client used a challenge twice")
    }

    /// Requires that no redirect was followed.
    func staysHere() throws {
        let strayed = arrivals.first { $0.name.path == RequestName.elsewhere }
        try require(strayed == nil, "the client followed a redirect")
    }
}

extension Fault {
    /// An answer that is larger than any real one.
    fileprivate static let padded = Fault.changed { answer in
        answer.edit { $0.append(("padding", .string(String(repeating: " ", count: 128 * 1024)))) }
    }

    /// The answer to a registration, with a device id in capitals, which the service never returns.
    fileprivate static let misnamed = Fault.changed { answer in
        answer.edit { $0 = [("device_id", "4E8B7C1A-0000-4000-8000-000000000000"), ("status", "registered")] }
    }

    /// The answer `pending` in place of `registered`.
    fileprivate static let pended = Fault.changed { answer in
        answer.edit { members in
            members = members.map { $0.0 == "status" ? ("status", "pending") : $0 }
        }
    }
}
