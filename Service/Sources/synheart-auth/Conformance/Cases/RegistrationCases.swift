import AttestationTestKit
import AuthContract
import Bytes
import Crypto
import Foundation
import StrictJSON

extension ConformanceCase {
    /// Registrations of iPhones.
    static let appleRegistrations: [ConformanceCase] = [
        .init("ios-registers", "Register", "an attested iPhone is registered") { stage in
            if !stage.platforms.isEmpty { try stage.requirePlatform(.ios) }
            let phone = try await stage.register(.ios)
            try await stage.accepted(try phone.signed(.status, at: stage.now), "its status")
        },
        ios("ios-challenge", "an attestation over another challenge") {
            $0.attestedChallenge = SystemRandom().bytes(32)
        },
        ios("ios-foreign-key", "an attestation of another key") { $0.attested = .init() },
        ios("ios-app", "an attestation of another app") { $0.appleApp.appID = "TESTTEAM01.com.example.other" },
        ios("ios-environment", "an attestation of Apple's development environment") {
            $0.appleApp.environment = .development
        },
        .init("ios-authority", "Register", "an attestation of an unknown authority is refused") { stage in
            let other = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
            try await stage.refuses(.ios, .invalidAttestation) { $0.apple = other }
        },
        .init("ios-chain", "Register", "an attestation whose certificates do not chain up is refused") { stage in
            let other = try AppleAuthority(from: Date(timeIntervalSinceNow: -2 * 86_400))
            try await stage.refuses(.ios, .invalidAttestation) { $0.attestation.signedBy = other }
        },
        ios("ios-nonce", "an attestation without its nonce") { $0.attestation.nonce = .missing },
        ios("ios-counter", "an attestation of a key that has asserted") { $0.attestation.counter = 1 },
        ios("ios-android-chain", "an iPhone's registration with an Android chain") { $0.sendsChain = true },
    ]

    /// Registrations of Android phones.
    static let googleRegistrations: [ConformanceCase] = [
        .init("android-registers", "Register", "an Android phone with token and chain is registered") { stage in
            if !stage.platforms.isEmpty { try stage.requirePlatform(.android) }
            let phone = try await stage.register(.android)
            try await stage.accepted(try phone.signed(.status, at: stage.now), "its status")
        },
        android("android-challenge", "evidence over another challenge") {
            $0.attestedChallenge = SystemRandom().bytes(32)
        },
        android("android-foreign-key", "evidence of another key") { $0.attested = .init() },
        android("android-package", "a token of another package") { $0.token.package = "com.example.other" },
        android("android-certificate", "a token of an app that others signed") {
            $0.token.certificateDigests = [[UInt8](repeating: 0x22, count: 32)]
        },
        android("android-token-signature", "a token that Google did not sign") { $0.token.isSignedByOther = true },
        android("android-token-age", "a token of yesterday") { $0.token.ageSeconds = 86_400 },
        android("android-unrecognized", "a token of an app that Play does not know") {
            $0.token.recognitionVerdict = "UNRECOGNIZED_VERSION"
        },
        android("android-device", "a token of a device without integrity") { $0.token.deviceLabels = [] },
        android("android-chain-root", "a chain under an unknown root") { $0.chain.isRootLookAlike = true },
        android("android-chain-signature", "a chain with a wrong signature") { $0.chain.brokenSignature = 1 },
        android("android-chain-package", "a chain of another package") {
            $0.chain.packages = [.init("com.example.other")]
        },
        android("android-chain-software", "a chain of a key in software") {
            $0.chain.attestationSecurityLevel = 0
            $0.chain.keyMintSecurityLevel = 0
        },
        android("android-unlocked", "a chain of a phone whose boot loader is unlocked") {
            $0.chain.rootOfTrust?.deviceLocked = 0
            $0.chain.rootOfTrust?.verifiedBootState = 2
        },
    ]

    /// Other registrations: wrong key proofs and malformed keys, copies, keys that were registered before, development mode.
    static let repeatedRegistrations: [ConformanceCase] = [
        .init("key-proof", "Register", "a key proof by another key is refused") { stage in
            try await stage.refuses(try stage.ordinary, .invalidAttestation) { $0.prover = .init() }
        },
        .init("register-key-form", "Names and encodings", "a key that is not on the curve, or compressed, is refused") {
            stage in
            let compressed = P256.Signing.PrivateKey().publicKey.compressedRepresentation
            let texts = [
                Base64.standard.encode(Array(compressed)), Base64.standard.encode([4] + SystemRandom().bytes(64)),
                Base64.url.encode(DevicePublicKey(P256.Signing.PrivateKey().publicKey).spki) + "-_",
            ]
            for text in texts {
                try await stage.refuses(try stage.ordinary, .invalidRequest, what: text) { $0.keyText = text }
            }
        },
        .init("register-copy", "Challenge", "a copy of an accepted registration is refused") { stage in
            let platform = try stage.ordinary
            let first = try stage.enrolment(platform, challenge: try await stage.challenge())
            try stage.enter(first.parts, platform, try await stage.accepted(first.request))
            try await stage.refused(first.request, .invalidChallenge)
        },
        .init("register-old-proof", "Register", "the proof of another registration is refused") { stage in
            let platform = try stage.ordinary
            let first = try stage.enrolment(platform, challenge: try await stage.challenge())
            try stage.enter(first.parts, platform, try await stage.accepted(first.request))
            guard let body = try? RegisterRequest(parsing: first.request.body) else { return }
            try await stage.refuses(platform, .invalidAttestation, what: "the same key") {
                $0.proof = body.proof
                $0.key = first.parts.key
            }
            try await stage.refuses(platform, .invalidAttestation, what: "another key") { $0.proof = body.proof }
        },
        .init("register-same-key", "The same key again", "the same key gets the same device id") { stage in
            let platform = try stage.ordinary
            let phone = try await stage.register(platform)
            let (parts, request) = try stage.enrolment(platform, challenge: try await stage.challenge()) {
                $0.key = phone.key
            }
            let again = try stage.enter(parts, platform, try await stage.accepted(request))
            try stage.require(again.id == phone.id, "it got \(again.id) after \(phone.id)")
        },
        .init("register-development", "Development mode", "a development proof without its header is refused") {
            stage in
            try await stage.refuses(.ios, .devModeNotAllowed) { $0.proof = RegisterRequest.developmentProof }
        },
        .init("register-left-key", "The same key again", "the key of a device that deregistered stays refused") {
            stage in
            let platform = try stage.ordinary
            let phone = try await stage.register(platform)
            try await stage.accepted(try phone.signed(.device, at: stage.now), "deregistration")
            try await stage.refuses(platform, .invalidAttestation) { $0.key = phone.key }
        },
    ]

    private static func ios(
        _ id: String, _ what: String, _ change: @escaping @Sendable (inout Enrolment) -> Void
    ) -> ConformanceCase {
        .init(id, "Register", "\(what) is refused") { stage in
            try await stage.refuses(.ios, .invalidAttestation, what: "", change)
        }
    }

    private static func android(
        _ id: String, _ what: String, _ change: @escaping @Sendable (inout Enrolment) -> Void
    ) -> ConformanceCase {
        .init(id, "Register", "\(what) is refused") { stage in
            try await stage.refuses(.android, .invalidAttestation, what: "", change)
        }
    }
}
