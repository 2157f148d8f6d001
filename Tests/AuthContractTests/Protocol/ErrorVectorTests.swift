import Foundation
import Testing

@_spi(Service) @testable import AuthContract

/// The table of `ErrorCode`, compared with `errors.json`, the protocol document and the plugin's contract, which repeat parts of it.
/// SynheartAuthTests checks how a client handles the codes.
@Suite struct ProtocolErrorVectors {
    struct File: Decodable { let codes: [Code] }

    struct Code: Decodable {
        let code: String
        let status: Int
        let recovery: String
    }

    private static let table = ErrorCode.allCases.map { "\($0.rawValue) \($0.httpStatus) \($0.recovery)" }.sorted()

    @Test("errors.json has every code with its status and its recovery")
    func codes() throws {
        let file: File = try ProtocolVectors.load("errors")
        #expect(file.codes.map { "\($0.code) \($0.status) \($0.recovery)" }.sorted() == Self.table)
    }

    @Test("the protocol document has every code with its status and its recovery")
    func document() throws {
        let file = ProtocolVectors.documentation.appendingPathComponent("protocol.md")
        let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "| code | status | recovery | when | what a client does |"))
        let rows = lines.dropFirst(start + 2).prefix { $0.hasPrefix("|") }.flatMap { line in
            let cells = line.components(separatedBy: "|").map {
                $0.replacingOccurrences(of: "`", with: "").trimmingCharacters(in: .whitespaces)
            }
            return zip(cells[1].components(separatedBy: ", "), cells[2].components(separatedBy: ", ")).map {
                "\($0) \($1) \(cells[3])"
            }
        }
        #expect(rows.sorted() == Self.table)
    }

    @Test("the protocol document says which codes leave the effect of a request open")
    func effects() throws {
        let file = ProtocolVectors.documentation.appendingPathComponent("protocol.md")
        let text = try String(contentsOf: file, encoding: .utf8).replacingOccurrences(of: "\n", with: " ")
        #expect(text.contains("429 and 5xx say nothing: the request may have taken effect."))
        #expect(text.contains("Every other code means that the request had no effect."))
        for code in ErrorCode.allCases {
            let isOpen = code == .nonceReplay || code.httpStatus == 429 || code.httpStatus >= 500
            #expect(code.mayHaveTakenEffect == isOpen, "\(code.rawValue)")
        }
    }

    @Test("the plugin's contract has the recoveries of the codes that a client reports unchanged")
    func plugin() throws {
        struct Contract: Decodable {
            struct Errors: Decodable {
                struct Row: Decodable { let code: String, recovery: String }
                let codes: [Row]
                let service_recoveries: [String: String]
            }
            let errors: Errors
        }
        let file = ProtocolVectors.documentation.appendingPathComponent(
            "../Clients/flutter/synheart_auth/contract/channel.json")
        let errors = try JSONDecoder().decode(Contract.self, from: Data(contentsOf: file)).errors
        let own = Dictionary(uniqueKeysWithValues: errors.codes.map { ($0.code, $0.recovery) })
        for code in ErrorCode.allCases where code.httpStatus < 500 {
            // The contract also lists `NOT_REGISTERED` as a code of the client itself, for a device that never registered. That
            // row's recovery is not the one for the service's answer.
            let stated = code == .notRegistered ? nil : own[code.rawValue]
            let found = stated ?? errors.service_recoveries[code.rawValue] ?? "none"
            #expect(found == code.recovery.rawValue, "\(code.rawValue)")
        }
    }

    @Test("the service logs its own failures as errors, and a wrong configuration as a warning")
    func severities() {
        for code in ErrorCode.allCases {
            let expected: ErrorCode.Severity =
                code.httpStatus >= 500 ? .error : code == .misdirectedRequest ? .warning : .info
            #expect(code.severity == expected, "\(code.rawValue)")
        }
    }

    @Test("a failed signature and an unknown app or device are costly")
    func costs() {
        let costly = ErrorCode.allCases.filter(\.isCostly)
        #expect(Set(costly) == [.invalidSignature, .misdirectedRequest, .notRegistered, .unknownApp])
    }
}
