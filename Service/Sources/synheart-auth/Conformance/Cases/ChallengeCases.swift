import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// The form and lifetime of challenges, and refusals of challenges that are used, unknown, expired or for another purpose or app.
    static let challenges: [ConformanceCase] = [
        .init("challenge-form", "Challenge", "a challenge has 32 bytes and lives at most 90 s") { stage in
            let answer = try await stage.accepted(.json(.challenge, ChallengeRequest(appID: stage.appID).bytes))
            guard let challenge = try? ChallengeResponse(parsing: answer.body) else {
                throw CaseEnd.fails("the body is no challenge")
            }
            try stage.require(challenge.challenge.count == 32, "it has \(challenge.challenge.count) bytes")
            try stage.require(1...90 ~= challenge.ttlSeconds, "it lives \(challenge.ttlSeconds) s")
            let end = stage.now + challenge.ttlSeconds
            try stage.require(-30...30 ~= challenge.expiresAt - end, "expires_at and ttl_seconds differ")
        },
        .init("challenge-unknown-app", "Challenge", "an app that is not there is UNKNOWN_APP") { stage in
            let app = try AppID("conformance.\(RandomUUID(from: SystemRandom()).text)")
            try await stage.refused(.json(.challenge, ChallengeRequest(appID: app).bytes), .unknownApp)
        },
        .init("challenge-once", "Challenge", "a challenge can be used once") { stage in
            let platform = try stage.ordinary
            let challenge = try await stage.challenge()
            let first = try stage.enrolment(platform, challenge: challenge)
            try stage.enter(first.parts, platform, try await stage.accepted(first.request))
            try await stage.refuses(platform, with: challenge, .invalidChallenge)
        },
        .init("challenge-together", "Challenge", "of 16 registrations with one challenge, one is accepted") { stage in
            let platform = try stage.ordinary
            let challenge = try await stage.challenge()
            let attempts = try (0..<16).map { _ in try stage.enrolment(platform, challenge: challenge) }
            let accepted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for (parts, request) in attempts {
                    group.addTask {
                        let answer = try await stage.sendOnce(request)
                        guard answer.isSuccess else { return false }
                        try stage.enter(parts, platform, answer)
                        return true
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try stage.require(accepted == 1, "\(accepted) were accepted")
        },
        .init("challenge-consumed", "Register", "a registration that is refused consumes its challenge") { stage in
            let platform = try stage.ordinary
            let challenge = try await stage.challenge()
            let wrong = try stage.enrolment(platform, challenge: challenge) { $0.prover = .init() }
            try await stage.refused(wrong.request, .invalidAttestation)
            try await stage.refuses(platform, with: challenge, .invalidChallenge)
        },
        .init("challenge-unknown", "Challenge", "a challenge that the service did not make is refused") { stage in
            try await stage.refuses(try stage.ordinary, with: SystemRandom().bytes(32), .invalidChallenge)
        },
        .init("challenge-purpose", "Challenge", "a challenge for a rotation does not register") { stage in
            let challenge = try await stage.challenge(.rotate)
            try await stage.refuses(try stage.ordinary, with: challenge, .invalidChallenge)
        },
        .init("challenge-other-app", "Challenge", "a challenge of another app is refused") { stage in
            guard let other = stage.options.otherAppID else { throw CaseEnd.skipped("--other-app names none") }
            let challenge = try await stage.challenge(app: other)
            try await stage.refuses(try stage.ordinary, with: challenge, .invalidChallenge)
        },
        .init("challenge-expiry", "Challenge", "a challenge whose time is over is CHALLENGE_EXPIRED") { stage in
            let answer = try await stage.accepted(.json(.challenge, ChallengeRequest(appID: stage.appID).bytes))
            guard let challenge = try? ChallengeResponse(parsing: answer.body) else {
                throw CaseEnd.fails("the body is no challenge")
            }
            try stage.require(0...600 ~= challenge.ttlSeconds, "it lives \(challenge.ttlSeconds) s")
            try await stage.wait(challenge.ttlSeconds + 2, for: "a challenge's end")
            try await stage.refuses(try stage.ordinary, with: challenge.challenge, .challengeExpired)
        },
    ]
}

extension Stage {
    /// Sends a registration that is valid except for its challenge, and must be refused.
    func refuses(_ platform: Platform, with challenge: [UInt8], _ code: ErrorCode) async throws {
        let (parts, request) = try enrolment(platform, challenge: challenge)
        let answer = try await send(request)
        if answer.isSuccess { _ = try? enter(parts, platform, answer) }
        try requireRefusal(answer, [code])
    }
}
