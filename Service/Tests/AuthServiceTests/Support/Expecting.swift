import AuthContract
import AuthService
import Testing

/// The refusal of an attempt; nil if it succeeded.
func refusal(_ attempt: () async throws -> some Any) async throws -> Refusal? {
    do {
        _ = try await attempt()
        return nil
    } catch let refusal as Refusal { return refusal }
}

/// Expects a refusal with this code, and returns it.
@discardableResult
func expect(
    _ code: ErrorCode, _ comment: @autoclosure () -> Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    _ attempt: () async throws -> some Any
) async throws -> Refusal? {
    let refusal = try await refusal(attempt)
    #expect(
        refusal?.code == code, comment() ?? Comment(rawValue: "\(refusal?.reason ?? "accepted")"),
        sourceLocation: sourceLocation)
    return refusal
}

/// Runs one task for each element. Returns their refusals in the order in which the tasks end; nil for a task that succeeded.
func concurrently<Element: Sendable>(
    _ elements: [Element], _ attempt: @escaping @Sendable (Element) async throws -> some Any
) async throws -> [Refusal?] {
    try await withThrowingTaskGroup(of: Refusal?.self) { group in
        for element in elements { group.addTask { try await refusal { try await attempt(element) } } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}

extension Sequence {
    func asyncMap<Mapped>(_ transform: (Element) async throws -> Mapped) async rethrows -> [Mapped] {
        var mapped: [Mapped] = []
        for element in self { mapped.append(try await transform(element)) }
        return mapped
    }
}
