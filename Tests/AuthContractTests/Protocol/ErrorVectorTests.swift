import AuthContract
import Testing

/// `docs/vectors/errors.json`: the codes. SynheartAuthTests runs the vectors about the client.
@Suite struct ProtocolErrorVectors {
    struct File: Decodable { let codes: [Code] }

    struct Code: Decodable {
        let code: String
        let status: Int
    }

    @Test("every code has its status")
    func codes() throws {
        let file: File = try ProtocolVectors.load("errors")
        let expected = Dictionary(uniqueKeysWithValues: file.codes.map { ($0.code, $0.status) })
        let ours = Dictionary(uniqueKeysWithValues: ErrorCode.allCases.map { ($0.rawValue, $0.httpStatus) })
        #expect(ours == expected)
    }
}
