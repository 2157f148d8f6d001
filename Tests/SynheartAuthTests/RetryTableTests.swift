import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// The retry table, row by row, and against `docs/protocol.md`.
@Suite struct RetryTableTests {
    private func verdict(_ code: ErrorCode) -> SynheartAuthError {
        let body = ErrorBody(
            code: code.rawValue, message: "m", requestID: "r", serverTimestamp: UnixTime(1_709_312_345))
        return ServiceVerdict.error(of: TransportResponse(status: code.httpStatus, body: body.bytes))
    }

    @Test(
        "an error of each code has the recovery and the remedy of its row",
        arguments: RetryTable.own + RetryTable.service)
    func codes(row: RetryTable.Row) {
        let error = SynheartAuthError(row.code, "m")
        #expect(error.code == row.code && error.recovery == row.recovery && error.remedy == row.remedy)
        #expect(error.isRetryable == (row.recovery == .retry))
    }

    @Test(
        "an error of each situation has the code, the recovery and the remedy of its row",
        arguments: RetryTable.Situation.allCases)
    func situations(situation: RetryTable.Situation) throws {
        let row = try #require(RetryTable.situations[situation])
        let error = SynheartAuthError(situation, "m")
        #expect(error.code == row.code && error.recovery == row.recovery && error.remedy == row.remedy)
    }

    @Test func `no code has two rows, and every code of the taxonomy has one`() {
        let codes = (RetryTable.own + RetryTable.service).map(\.code)
        #expect(Set(codes).count == codes.count)
        #expect(RetryTable.own.map(\.code) == ErrorTable.rows.map(\.code))
    }

    @Test("every code of the service has a row", arguments: ErrorCode.allCases)
    func serviceCodes(code: ErrorCode) throws {
        let reported = RetryTable.reported(code)
        #expect((RetryTable.renamed[code] == nil) == RetryTable.service.contains { $0.code == reported })
        let row = try #require((RetryTable.own + RetryTable.service).first { $0.code == reported })
        let error = verdict(code)
        #expect(error.code == reported && error.recovery == row.recovery && error.remedy == row.remedy)
    }

    @Test func `every 5xx of the service is a network error`() {
        for code in ErrorCode.allCases {
            #expect((code.httpStatus >= 500) == (RetryTable.reported(code) == .networkError), "\(code.rawValue)")
        }
    }

    @Test func `the table advises what the protocol document says`() throws {
        let rows = try Self.documentedRows()
        #expect(Set(rows.map(\.code)) == Set(ErrorCode.allCases.map(\.rawValue)))
        for (code, recovery) in rows {
            let known = try #require(ErrorCode(rawValue: code))
            #expect(RetryTable.row(of: RetryTable.reported(known)).recovery.rawValue == recovery, "\(code)")
        }
    }

    /// The arguments repeat what the last column of the error table in `docs/protocol.md` tells a client to do after each of these codes.
    @Test(
        "the SDK's remedy for a refusal is the one in the protocol document",
        arguments: [
            (ErrorCode.invalidChallenge, RetryTable.Remedy.newChallenge), (.challengeExpired, .newChallenge),
            (.invalidAttestation, .none), (.providerUnavailable, .backOff), (.serviceUnavailable, .backOff),
            (.internalError, .backOff), (.notRegistered, .confirm), (.invalidSignature, .finishRotation),
            (.clockSkew, .learnClock), (.nonceReplay, .signAgain), (.deviceRevoked, .confirm), (.devicePending, .none),
            (.keyExpired, .rotate), (.assertionRequired, .assert), (.invalidAssertion, .none), (.rotationFailed, .none),
            (.unsupportedSigVersion, .signOtherScheme), (.rateLimited, .none), (.unknownApp, .none),
            (.attestationRequired, .attestRotation),
        ])
    func remedies(code: ErrorCode, remedy: RetryTable.Remedy) {
        #expect(verdict(code).remedy == remedy)
    }

    @Test func `each policy is the one in the protocol document`() throws {
        let lines = try ProtocolVectors.document().split(separator: "\n")
        #expect(lines.contains("| challenge and register | 1 s | 500 ms | 30 s | 5 |"))
        #expect(lines.contains("| rotation | 60 s | 0 | 1 h | 3 in a cycle, then at the next launch |"))
        let registration = RetryPolicy.registration
        #expect(registration.base == .seconds(1) && registration.jitter == .milliseconds(500))
        #expect(registration.maximum == .seconds(30) && registration.attempts == 5)
        let rotation = RetryPolicy.rotation
        #expect(rotation.base == .seconds(60) && rotation.jitter == .zero)
        #expect(rotation.maximum == .seconds(3600) && rotation.attempts == 3)
        #expect(RetryTable.longestRetryAfter == .seconds(300))
    }

    /// Code and recovery of each row of the table in the chapter *Errors*; a row may name several codes.
    private static func documentedRows() throws -> [(code: String, recovery: String)] {
        let lines = try ProtocolVectors.document().components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "| code | status | recovery | when | what a client does |"))
        return lines.dropFirst(start + 2).prefix { $0.hasPrefix("|") }.flatMap { line in
            let cells = line.components(separatedBy: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let recovery = cells[3].trimmingCharacters(in: CharacterSet(charactersIn: "`"))
            return cells[1].components(separatedBy: ", ").map {
                ($0.trimmingCharacters(in: CharacterSet(charactersIn: "`")), recovery)
            }
        }
    }
}
