import AuthContract
import AuthServer
import Crypto
import StrictJSON

extension ConformanceCase {
    /// The status of a device, and refusals of devices that are unknown, deregistered or revoked.
    static let access: [ConformanceCase] = [
        .init("status", "Status and deregistration", "the status names the device and its current key") { stage in
            let phone = try await stage.register()
            for when in ["before a rotation", "after it"] {
                let answer = try await stage.accepted(try phone.signed(.status, at: stage.now), when)
                guard let status = try? StatusResponse(parsing: answer.body) else {
                    throw CaseEnd.fails("the body is no status")
                }
                try stage.require(status.deviceID == phone.id && status.status == .registered, "another device")
                let thumbprint = DevicePublicKey(phone.key.publicKey).thumbprint
                try stage.require(status.keyThumbprint == thumbprint, "\(when): another key")
                if when == "after it" { return }
                try stage.require(status.keyRotatedAt == nil, "it says that its key rotated")
                try await stage.rotate(phone)
            }
        },
        .init("unknown-device", "Who may do what", "a device that is not there is NOT_REGISTERED") { stage in
            let phone = try await stage.phone()
            let id = DeviceID(from: SystemRandom())
            try await stage.refused(
                try phone.signed(.status, at: stage.now).with([(HeaderName.deviceID, id.text)]), .notRegistered)
        },
        .init("deregistered", "Status and deregistration", "a device that deregistered is NOT_REGISTERED everywhere") {
            stage in
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.device, at: stage.now), "deregistration")
            for route in [Route.status, .token, .device] {
                try await stage.refused(
                    try phone.signed(route, at: stage.now), .notRegistered, what: route.rawValue)
            }
            let body = try phone.rotation(to: .init())
            try await stage.refused(
                try phone.signed(.rotateKey, body, at: stage.now), .notRegistered, what: Route.rotateKey.rawValue)
        },
        .init("revoked", "Who may do what", "a device that an operator revokes is DEVICE_REVOKED within 5 s") { stage in
            guard let operations = stage.options.operations else { throw CaseEnd.skipped("--operations names none") }
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.status, at: stage.now))
            _ = try await operations.ask(
                .revokeDevice, ["app_id": stage.appID.text, "device_id": phone.id.text],
                body: JSONObject([("reason", "conformance")]))
            // The device is in a cache of each node for at most 5 s.
            for url in [stage.options.url, stage.options.secondURL].compactMap(\.self) {
                try await stage.within(6) {
                    try await stage.send(try phone.signed(.status, at: stage.now), to: url).isSuccess == false
                }
                for route in [Route.status, .token, .device] {
                    try await stage.refused(
                        try phone.signed(route, at: stage.now), at: url, .deviceRevoked, what: route.rawValue)
                }
            }
            try await stage.refuses(phone.platform, .deviceRevoked, what: "registration of its key") {
                $0.key = phone.key
            }
        },
    ]

    /// Two nodes of one service.
    static let nodes: [ConformanceCase] = [
        node("nodes-register", "Register", "a phone that registers at one node signs at the other") { stage, second in
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.token, at: stage.now), at: second)
        },
        node("nodes-challenge", "Challenge", "a challenge of one node is used up at the other") { stage, second in
            let platform = try stage.ordinary
            let first = try stage.enrolment(platform, challenge: try await stage.challenge())
            try stage.enter(first.parts, platform, try await stage.accepted(first.request, at: second))
            try await stage.refused(first.request, .invalidChallenge)
        },
        node("nodes-replay", "Replay", "a copy of an accepted request is NONCE_REPLAY at the other node") {
            stage, second in
            let phone = try await stage.register()
            for (first, other) in [(stage.options.url, second), (second, stage.options.url)] {
                let request = try phone.signed(.token, at: stage.now)
                try await stage.accepted(request, at: first)
                try await stage.refused(request, at: other, .nonceReplay)
            }
        },
        node("nodes-replay-together", "Replay", "of 16 copies at both nodes at once, one is accepted") {
            stage, second in
            let phone = try await stage.register()
            let request = try phone.signed(.token, at: stage.now)
            try await stage.oneIsAccepted(
                of: (0..<16).map { (request, $0.isMultiple(of: 2) ? stage.options.url : second) })
        },
        node("nodes-rotation", "Rotation", "after a rotation at one node, the old key gets no token at the other") {
            stage, second in
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.token, at: stage.now), at: second)
            let (old, _, _) = try await stage.rotate(phone)
            try await stage.accepted(try phone.signed(.token, at: stage.now), at: second, "the new key")
            try await stage.refused(try phone.signed(.token, at: stage.now, by: old), at: second, .invalidSignature)
        },
        node("nodes-deregistration", "Status and deregistration", "deregistration at one node holds at the other") {
            stage, second in
            let phone = try await stage.register()
            try await stage.accepted(try phone.signed(.status, at: stage.now), at: second)
            try await stage.accepted(try phone.signed(.device, at: stage.now))
            try await stage.refused(try phone.signed(.token, at: stage.now), at: second, .notRegistered)
        },
        node("nodes-clocks", "HTTP", "the clocks of both nodes are at most 5 s apart") { stage, second in
            let request = WireRequest(method: "GET", target: Route.status.rawValue)
            var times: [Int64] = []
            for url in [stage.options.url, second, stage.options.url] {
                let value = try await stage.send(request, to: url).headers.values(HeaderName.serverTime).first
                guard let value, let time = try? UnixTime(header: value) else {
                    throw CaseEnd.fails("no \(HeaderName.serverTime)")
                }
                times.append(time.seconds)
            }
            let apart = max(times[0] - times[1], times[1] - times[2], 0)
            try stage.require(apart <= 5, "they are \(apart) s apart")
        },
    ]

    private static func node(
        _ id: String, _ section: String, _ sentence: String,
        _ run: @escaping @Sendable (Stage, String) async throws -> Void
    ) -> ConformanceCase {
        .init(id, section, sentence) { stage in
            guard let second = stage.options.secondURL else { throw CaseEnd.skipped("--second-url names no node") }
            try await run(stage, second)
        }
    }
}

extension Stage {
    /// Waits until a condition holds, for at most this many seconds.
    fileprivate func within(_ seconds: Int, _ isSo: () async throws -> Bool) async throws {
        for _ in 0..<(seconds * 4) {
            if try await isSo() { return }
            try await Task.sleep(for: .milliseconds(250))
        }
    }
}
