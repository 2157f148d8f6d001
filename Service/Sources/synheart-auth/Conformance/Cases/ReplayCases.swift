import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Copies of accepted and refused requests, and nonces that are used again.
    static let replays: [ConformanceCase] = [
        replay("replay-copy", "a copy of an accepted request") { $0 },
        replay("replay-nonce", "a copy under a new nonce") {
            $0.with([(HeaderName.nonce, RequestNonce(from: SystemRandom()).text)])
        },
        replay("replay-nonce-case", "a copy whose nonce has capitals") {
            $0.with([(HeaderName.nonce, $0.value(HeaderName.nonce).uppercased())])
        },
        replay("replay-other-s", "a copy under a new nonce with the other s") { request in
            let signature = try RequestSignature(base64: request.value(HeaderName.signature)).withOtherS
            return request.with([
                (HeaderName.signature, signature.base64), (HeaderName.nonce, RequestNonce(from: SystemRandom()).text),
            ])
        },
        .init("replay-nonce-reused", "Replay", "another request under a nonce that was used is NONCE_REPLAY") { stage in
            let phone = try await stage.phone()
            let nonce = RequestNonce(from: SystemRandom())
            try await stage.accepted(try phone.signed(.token, at: stage.now, nonce: nonce))
            try await stage.refused(try phone.signed(.token, at: stage.now, nonce: nonce), .nonceReplay)
        },
        .init("replay-read", "Replay", "a copy of an accepted GET is NONCE_REPLAY, unless the app allows it") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.status, at: stage.now)
            try await stage.accepted(request)
            try await stage.refused(request, .nonceReplay)
        },
        .init("replay-together", "Replay", "of 16 copies at once, one is accepted") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.token, at: stage.now)
            try await stage.oneIsAccepted(of: Array(repeating: (request, stage.options.url), count: 16))
        },
        .init("replay-delete", "Replay", "a copy of a deregistration does not succeed again") { stage in
            let phone = try await stage.register()
            let request = try phone.signed(.device, at: stage.now)
            try await stage.accepted(request)
            try await stage.refused(request, .notRegistered, .nonceReplay)
        },
        .init("claim-stays", "Replay", "a copy of a request that was refused after its claims is NONCE_REPLAY") {
            stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.token, Array(#"{"audience":1}"#.utf8), at: stage.now)
            try await stage.refused(request, .invalidRequest)
            try await stage.refused(request, .nonceReplay)
        },
        .init("claim-after-signature", "Replay", "a request whose signature is wrong takes no claim") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.token, at: stage.now)
            try await stage.refused(request.with(body: Array("{ }".utf8)), .invalidSignature)
            try await stage.accepted(request)
        },
    ]

    private static func replay(
        _ id: String, _ what: String, _ change: @escaping @Sendable (WireRequest) throws -> WireRequest
    ) -> ConformanceCase {
        .init(id, "Replay", "\(what) is NONCE_REPLAY") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.token, at: stage.now)
            try await stage.accepted(request)
            try await stage.refused(try change(request), .nonceReplay)
        }
    }
}

extension Stage {
    /// Sends copies concurrently. One must be accepted, and all others must be refused with NONCE_REPLAY.
    func oneIsAccepted(of copies: [(request: WireRequest, url: String)]) async throws {
        let answers = try await sendTogether(copies)
        let accepted = answers.count(where: \.isSuccess)
        try require(accepted == 1, "\(accepted) were accepted")
        let other = answers.first { !$0.isSuccess && $0.code != ErrorCode.nonceReplay.rawValue }
        try require(other == nil, "a copy: expected 409 NONCE_REPLAY, came \(other?.text ?? "")")
    }
}
