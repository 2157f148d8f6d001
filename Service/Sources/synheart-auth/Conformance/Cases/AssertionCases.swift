import AttestationTestKit
import AuthContract
import Bytes
import Crypto
import StrictJSON

extension ConformanceCase {
    /// App Attest assertions.
    static let assertions: [ConformanceCase] = [
        .init("assertion-accepted", "Assertions", "a request with a valid assertion is accepted") { stage in
            try stage.requirePlatform(.ios)
            let phone = try await stage.register(.ios)
            for _ in 0..<2 {
                try await stage.accepted(try phone.asserted(try phone.signed(.status, at: stage.now)))
            }
        },
        assertion("assertion-message", "an assertion over another request") { phone, request in
            try phone.asserted(request, message: Array("another".utf8))
        },
        assertion("assertion-foreign-key", "an assertion by another App Attest key") { phone, request in
            try phone.asserted(request, by: AppleAttestKey())
        },
        assertion("assertion-app", "an assertion of another app") { phone, request in
            var options = AppleAssertionOptions()
            options.relyingParty = "TESTTEAM01.com.example.other"
            return try phone.asserted(request, options: options)
        },
        assertion("assertion-form", "an assertion that is none") { _, request in
            request.with([(HeaderName.assertion, "AAAA")])
        },
        .init("assertion-counter", "What a verifier checks", "a counter that was used is INVALID_ASSERTION") { stage in
            try stage.requirePlatform(.ios)
            let phone = try await stage.register(.ios)
            var options = AppleAssertionOptions()
            options.counter = 7
            try await stage.accepted(try phone.asserted(try phone.signed(.status, at: stage.now), options: options))
            for counter: UInt32 in [7, 6] {
                options.counter = counter
                try await stage.refused(
                    try phone.asserted(try phone.signed(.status, at: stage.now), options: options), .invalidAssertion,
                    what: "\(counter) after 7")
            }
        },
        .init("assertion-twice", "Assertions", "a request with two assertions is refused") { stage in
            try stage.requirePlatform(.ios)
            let phone = try await stage.register(.ios)
            var request = try phone.asserted(try phone.signed(.status, at: stage.now))
            request.headers.append((HeaderName.assertion, request.value(HeaderName.assertion)))
            try await stage.refused(request, .invalidRequest, .invalidAssertion)
        },
        .init("assertion-demanded", "Assertions", "a path of the policy needs an assertion, however it is written") {
            stage in
            guard let path = stage.options.assertedPath else { throw CaseEnd.skipped("--asserted-path names none") }
            try stage.requirePlatform(.ios)
            let phone = try await stage.register(.ios)
            let end = path.dropFirst()
            for path in [path, path + "/below", "/" + path, "\(path);a", "/%\(escape(end))"] {
                let request = try phone.signed("POST", path, Array("{}".utf8), at: stage.now)
                let answer = try await stage.verify(request)
                try stage.require(
                    answer.code == ErrorCode.assertionRequired.rawValue, "\(path): came \(answer.text)")
                try stage.require(
                    answer.headers.values(HeaderName.assertion).first?.hasPrefix("required") == true,
                    "\(path): no \(HeaderName.assertion)")
            }
            let request = try phone.asserted(try phone.signed("POST", path, Array("{}".utf8), at: stage.now))
            try await stage.verifies(request, of: phone)
        },
    ]

    /// A path whose first character is percent-encoded, without the percent sign, which the caller adds. An escaped slash
    /// if the path is empty.
    private static func escape(_ path: Substring) -> String {
        guard let first = path.utf8.first else { return "2F" }
        return Hexadecimal.encode([first]) + path.dropFirst()
    }

    private static func assertion(
        _ id: String, _ what: String, _ change: @escaping @Sendable (Phone, WireRequest) throws -> WireRequest
    ) -> ConformanceCase {
        .init(id, "What a verifier checks", "\(what) is INVALID_ASSERTION, also where none is needed") { stage in
            try stage.requirePlatform(.ios)
            let phone = try await stage.register(.ios)
            try await stage.refused(try change(phone, try phone.signed(.status, at: stage.now)), .invalidAssertion)
        }
    }
}
