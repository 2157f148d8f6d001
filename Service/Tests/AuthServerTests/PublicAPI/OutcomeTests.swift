@_spi(Service) import AuthContract
import AuthService
import Logging
import ServiceTestHelpers
import Testing

@testable import AuthServer

/// The response, the log line and the metrics of an outcome, without a server.
@Suite struct OutcomeTests {
    private let frame = ResponseFrame(requestID: "id", now: UnixTime(1_709_312_345))

    private func answer(_ outcome: Outcome) -> APIResponse { outcome.answer(in: frame) }

    @Test(arguments: ErrorCode.allCases) func `the answer of a refusal is what the table says`(code: ErrorCode) {
        var outcome = Outcome(of: HeaderFields())
        outcome.result = .failure(Refusal(code, "the precise reason"))
        let answer = answer(outcome)
        #expect(answer.status == code.httpStatus && answer.outcome == code.rawValue && answer.code == code)
        #expect(answer.headers.contains { $0 == (HeaderName.error, code.rawValue) })
        #expect(outcome.reason == "the precise reason")
        #expect(String(decoding: answer.body ?? [], as: UTF8.self).contains("precise") == false)
    }

    @Test(arguments: ErrorCode.allCases) func `the log line of a refusal has its severity`(code: ErrorCode) throws {
        for observed in [false, true] {
            let lines = LogLines()
            let answer = observed ? APIResponse.verdict(.observed(code, nil)) : frame.answer(Refusal(code, "x"))
            RequestLog(logger: lines.logger).write(
                requestID: "id", method: "GET", route: nil, answer: answer, reason: nil, took: .zero)
            let expected: Logger.Level =
                switch code {
                case .misdirectedRequest: .warning
                case .internalError, .serviceUnavailable, .providerUnavailable: .error
                default: .info
                }
            #expect(lines.all.map(\.level) == [expected])
            #expect(lines.all.first?.metadata["outcome"] == (observed ? "observed_" : "") + code.rawValue)
        }
    }

    @Test func `a registration is counted with the version in its verified evidence`() throws {
        var outcome = Outcome(of: HeaderFields())
        outcome.registration = RegisterRequest(
            appID: try AppID("com.example.app"), publicKeyText: "", challenge: [], platform: .android, proof: nil)
        for version in [nil, "41"] {
            outcome.registeredVersion = version
            let counted = outcome.counted(answer(outcome), isKnown: { _ in true })
            #expect(counted?.version == version ?? CountedVerdict.unknown)
            #expect(counted?.platform == .android)
        }
    }

    @Test func `a refusal counts as the security events of the table`() {
        let events = ErrorCode.allCases.compactMap { code in
            code.securityEvent.map { "\(code.rawValue) \($0)" }
        }
        #expect(
            events == [
                "DEV_MODE_NOT_ALLOWED development_mode_refused", "UNAUTHORIZED service_credential_refused",
                "FORBIDDEN service_credential_refused",
            ])
        for code in ErrorCode.allCases {
            let metrics = ServerMetrics(startedAt: UnixTime(0))
            var outcome = Outcome(of: HeaderFields())
            outcome.result = .failure(Refusal(code, "x"))
            metrics.count(outcome, answer(outcome), at: frame.now, took: .zero)
            let counted = metrics.text().split(separator: "\n").filter {
                $0.hasPrefix("synheart_security_events_total{") && !$0.hasSuffix(" 0")
            }
            let expected = code.securityEvent.map { #"synheart_security_events_total{event="\#($0)"} 1"# }
            #expect(counted.map(String.init) == [expected].compactMap { $0 }, "\(code.rawValue)")
        }
    }

    @Test func `a request that nothing answered is an internal error`() {
        #expect(answer(Outcome(of: HeaderFields())).status == 500)
    }
}
