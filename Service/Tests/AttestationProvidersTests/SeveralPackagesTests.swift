import AttestationTestKit
import AuthContract
import AuthService
import Bytes
import Foundation
import PlayIntegrity
import ServiceTestHelpers
import Testing

@testable import AttestationProviders

/// A token for the last of three packages: Google is asked about each package in turn.
@Suite(.timeLimit(.minutes(15))) struct SeveralPackagesTests {
    private static let packages = ["com.example.first", "com.example.second", GoogleStandIn.package]
    private static let good = DecodeResult.decoded(requestHash: "aGFzaA")
    private static let denied = StandIn.Answer.text(
        403, #"{"error":{"code":403,"message":"…","status":"PERMISSION_DENIED"}}"#)

    @Test func `Google is asked for each package until one has a verdict`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode(for: Self.packages) == Self.good)
            #expect(test.packages == Self.packages)
            #expect(try await test.decode(for: Self.packages.reversed()) == Self.good)
            #expect(test.packages.count == 4)
        }
    }

    /// Answers that do not concern the token: an unlinked project, no quota, an unknown package, an unexpected status.
    static let silent: [(StandIn.Answer, PlayIntegrityUnavailable.Code)] = [
        (denied, .projectNotLinked), (.text(429, "{}", ["retry-after": "120"]), .quotaExceeded),
        (.text(404, "{}"), .unexpectedAnswer),
        (.text(400, #"{"error":{"status":"FAILED_PRECONDITION"}}"#), .unexpectedAnswer),
        (.text(200, "<html>"), .unexpectedAnswer), (.text(302, "", ["location": "/elsewhere"]), .unexpectedAnswer),
    ]

    @Test(arguments: silent.indices) func `a refusal for one package does not end the search`(
        _ index: Int
    ) async throws {
        try await GoogleUnderTest.run { test async throws in
            let (answer, code) = Self.silent[index]
            test.google.always(answer, for: Self.packages[0])
            #expect(try await test.decode(for: Self.packages) == Self.good)
            // No package has a verdict. The token may be for the first package, about which Google did not decide, so
            // it is not refused.
            #expect(try await test.decode(for: Self.packages, "bm8") == .couldNotCheck(code))
        }
    }

    @Test func `a token that Google refuses for every package is refused`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode(for: Self.packages, "bm8") == .refused(.rejectedByGoogle))
            #expect(test.decodings == 3)
            for package in Self.packages { test.google.always(Self.denied, for: package) }
            #expect(try await test.decode(for: Self.packages) == .couldNotCheck(.projectNotLinked))
            #expect(test.decodings == 6)
        }
    }

    @Test func `an unlinked project is explained once for its package`() async throws {
        try await GoogleUnderTest.run { test async throws in
            for package in Self.packages.dropLast() { test.google.always(Self.denied, for: package) }
            for _ in 0..<3 { #expect(try await test.decode(for: Self.packages) == Self.good) }
            let explanations = test.log.all.map(\.text).filter { $0.contains("linked to the app in Play Console") }
            #expect(explanations.count == 2)
        }
    }

    @Test func `a package without quota is paused, and the others are tried`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.always(.text(429, "{}", ["retry-after": "120"]), for: Self.packages[0])
            for _ in 0..<3 { #expect(try await test.decode(for: Self.packages) == Self.good) }
            #expect(test.packages.count { $0 == Self.packages[0] } == 1)
        }
    }

    @Test func `an outage ends the search`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.always(.text(503, "{}"), for: Self.packages[0])
            #expect(try await test.decode(for: Self.packages) == .couldNotCheck(.providerUnavailable))
            #expect(test.packages == [String](repeating: Self.packages[0], count: 3))
        }
    }

    @Test func `an account that Google does not accept ends the search`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.tokenScript.then(.text(400, #"{"error":"invalid_grant"}"#))
            #expect(try await test.decode(for: Self.packages) == .couldNotCheck(.unauthenticated))
            #expect(test.service.received.count == 1)
        }
    }

    @Test func `a classic token that no key here opens is decoded by Google`() async throws {
        try await GoogleUnderTest.run { test async throws in
            let token = try test.google.authority.classicToken(
                nonce: "bm9uY2Ugbm9uY2U", at: Date(timeIntervalSince1970: TimeInterval(noon.seconds)))
            let old = try GoogleAuthority()
            let keys = [
                try ResponseKeys(decryptionKey: old.decryptionKey, verificationKey: old.verificationKey())
            ]
            let outcome = try IntegrityToken(token).decode(with: keys)
            #expect(DecodeResult(outcome) == .refused(.keyUnwrapFailed))
            #expect(outcome.mayBeDecodedByGoogle)
            #expect(try await test.decode(for: Self.packages, token) == .decoded(requestHash: nil))
        }
    }
}
