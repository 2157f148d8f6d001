import Testing

@testable import SynheartAuth

/// The error that `body` throws; a failed expectation if it throws none or another code.
@discardableResult
func expectError(
    _ code: SynheartAuthError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> some Sendable
) async -> SynheartAuthError? {
    do {
        let value = try await body()
        Issue.record("gave \(value) instead of throwing \(code.text)", sourceLocation: sourceLocation)
    } catch let error as SynheartAuthError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record("threw \(error)", sourceLocation: sourceLocation)
    }
    return nil
}

/// Waits until something another task does has happened; real time only bounds it.
func eventually(_ condition: () async throws -> Bool) async throws {
    for _ in 0..<2000 {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(2))
    }
    Issue.record("never happened")
}
