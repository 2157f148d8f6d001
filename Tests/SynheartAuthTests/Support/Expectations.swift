import Testing

@testable import SynheartAuth

/// Expects that `body` throws an error with this code; nil accepts any code. Returns the error, or nil if `body`
/// throws no `SynheartAuthError`.
@discardableResult
func expectError(
    _ code: SynheartAuthError.Code?, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> some Sendable
) async -> SynheartAuthError? {
    do {
        let value = try await body()
        Issue.record("gave \(value) instead of throwing \(code?.text ?? "an error")", sourceLocation: sourceLocation)
    } catch let error as SynheartAuthError {
        #expect(code == nil || error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record("threw \(error)", sourceLocation: sourceLocation)
    }
    return nil
}

/// Expects a retryable error, which the SDK throws while it only suspects that a key or record is lost. Advances the clock by
/// two seconds, after which the SDK may confirm the suspicion.
func expectSuspicion(
    _ code: SynheartAuthError.Code? = nil, on clock: TestClock, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> some Sendable
) async {
    do {
        let value = try await body()
        Issue.record("gave \(value) instead of a suspicion", sourceLocation: sourceLocation)
    } catch let error as SynheartAuthError {
        #expect(code == nil || error.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(error.isRetryable, "\(error)", sourceLocation: sourceLocation)
        #expect(error.retryAfter == .seconds(2), "\(error)", sourceLocation: sourceLocation)
    } catch {
        Issue.record("threw \(error)", sourceLocation: sourceLocation)
    }
    clock.advance(.seconds(2))
}

/// Waits until another task has caused the condition. Records an issue if that takes more than about 30 seconds.
func eventually(_ condition: () async throws -> Bool) async throws {
    for _ in 0..<15_000 {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(2))
    }
    Issue.record("never happened")
}
