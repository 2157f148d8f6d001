import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Rotations, and the rights of previous keys.
    static let rotations: [ConformanceCase] = [
        .init("rotation", "Rotation", "after a rotation the new key signs") { stage in
            let phone = try await stage.register()
            try await stage.rotate(phone)
            try await stage.accepted(try phone.signed(.token, at: stage.now), "the new key")
        },
        .init("rotation-unsigned", "Rotation", "a rotation that the current key does not sign is refused") { stage in
            let phone = try await stage.register()
            let new = P256.Signing.PrivateKey()
            let request = try phone.signed(.rotateKey, try phone.rotation(to: new), at: stage.now, by: new)
            try await stage.refused(request, .invalidSignature)
        },
        .init("rotation-key-proof", "Re-attestation", "a new key proof by another key is refused") { stage in
            let phone = try await stage.register()
            let body = try phone.rotation(to: .init(), proof: .init())
            try await stage.refused(try phone.signed(.rotateKey, body, at: stage.now), .invalidAttestation)
        },
        .init("rotation-foreign-key", "Rotation", "a rotation to the key of another device is refused") { stage in
            let (phone, other) = (try await stage.register(), try await stage.register())
            let body = try phone.rotation(to: other.key)
            try await stage.refused(try phone.signed(.rotateKey, body, at: stage.now), .rotationFailed)
        },
        .init("rotation-to-itself", "The same rotation again", "a first rotation to the current key is refused") {
            stage in
            let phone = try await stage.register()
            let body = try phone.rotation(to: phone.key)
            try await stage.refused(try phone.signed(.rotateKey, body, at: stage.now), .rotationFailed)
        },
        .init("rotation-repeated", "The same rotation again", "the same rotation again gets the same answer") { stage in
            let phone = try await stage.register()
            let (old, body, first) = try await stage.rotate(phone)
            for (signer, what) in [(old, "the old key"), (phone.key, "the new key")] {
                let answer = try await stage.accepted(
                    try phone.signed(.rotateKey, body, at: stage.now, by: signer), "signed by \(what)")
                let again = try? RotateKeyResponse(parsing: answer.body)
                try stage.require(again == first, "signed by \(what): another effective_at")
            }
        },
        .init("rotation-together", "Rotation", "of 6 rotations at once, one is accepted") { stage in
            let phone = try await stage.register()
            let keys = (0..<6).map { _ in P256.Signing.PrivateKey() }
            let requests = try keys.map { try phone.signed(.rotateKey, try phone.rotation(to: $0), at: stage.now) }
            let answers = try await withThrowingTaskGroup(of: (Int, WireResponse).self) { group in
                for (index, request) in requests.enumerated() {
                    group.addTask { (index, try await stage.sendOnce(request)) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let accepted = answers.filter(\.1.isSuccess)
            if let (index, _) = accepted.first { phone.rotated(to: keys[index]) }
            try stage.require(accepted.count == 1, "\(accepted.count) were accepted")
            let codes = [ErrorCode.rotationFailed, .invalidSignature].map(\.rawValue)
            let other = answers.first { !$0.1.isSuccess && !codes.contains($0.1.code ?? "") }
            try stage.require(other == nil, "another one: came \(other?.1.text ?? "")")
        },
        .init("overlap", "Overlap", "the old key signs for a while, but gets no token and deregisters nothing") {
            stage in
            let phone = try await stage.register()
            let (old, _, _) = try await stage.rotate(phone)
            try await stage.accepted(try phone.signed(.status, at: stage.now, by: old), "its status")
            try await stage.refused(
                try phone.signed(.token, at: stage.now, by: old), .invalidSignature, what: "a token")
            try await stage.refused(
                try phone.signed(.device, at: stage.now, by: old), .invalidSignature, what: "deregistration")
            let body = try phone.rotation(to: .init())
            try await stage.refused(
                try phone.signed(.rotateKey, body, at: stage.now, by: old), .rotationFailed, what: "another rotation")
        },
        .init("overlap-end", "Overlap", "after the overlap the old key is INVALID_SIGNATURE") { stage in
            let phone = try await stage.register()
            let (old, _, _) = try await stage.rotate(phone)
            try await stage.wait(62, for: "the usual overlap")
            try await stage.refused(try phone.signed(.status, at: stage.now, by: old), .invalidSignature)
        },
        .init("rotation-compromise", "Overlap", "after a rotation for a compromise the old key signs nothing") {
            stage in
            let phone = try await stage.register()
            let (old, _, _) = try await stage.rotate(phone, reason: .compromise)
            try await stage.refused(try phone.signed(.status, at: stage.now, by: old), .invalidSignature)
            try await stage.accepted(try phone.signed(.status, at: stage.now), "the new key")
        },
        .init("rotation-back", "Rotation", "a rotation back to an old key is refused") { stage in
            let phone = try await stage.register()
            let (old, _, _) = try await stage.rotate(phone)
            let body = try phone.rotation(to: old)
            try await stage.refused(try phone.signed(.rotateKey, body, at: stage.now), .rotationFailed)
        },
        .init("retired-key", "The same key again", "an old key does not register again") { stage in
            let phone = try await stage.register()
            let (old, _, _) = try await stage.rotate(phone)
            try await stage.refuses(phone.platform, .invalidAttestation) { $0.key = old }
        },
    ]
}

extension Stage {
    /// Rotates a phone's key. Skips the case if the app demands that a rotation attests again.
    @discardableResult
    func rotate(
        _ phone: Phone, reason: RotationReason = .scheduled
    ) async throws -> (old: P256.Signing.PrivateKey, body: [UInt8], answer: RotateKeyResponse) {
        let (old, new) = (phone.key, P256.Signing.PrivateKey())
        let body = try phone.rotation(to: new, reason: reason)
        let answer = try await send(try phone.signed(.rotateKey, body, at: now))
        guard answer.code != ErrorCode.attestationRequired.rawValue else {
            throw CaseEnd.skipped("the app's rotations attest again (keys.reattest_on_rotation)")
        }
        guard answer.isSuccess, let rotated = try? RotateKeyResponse(parsing: answer.body) else {
            throw CaseEnd.fails("a rotation: came \(answer.text)")
        }
        phone.rotated(to: new)
        return (old, body, rotated)
    }
}
