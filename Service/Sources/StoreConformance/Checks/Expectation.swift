/// A guarantee that a check found broken.
struct Unmet: Error {
    let found: String
}

func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw Unmet(found: otherwise()) }
}

func expect<Value: Equatable>(_ found: Value, is wanted: Value, _ what: String) throws {
    guard found == wanted else { throw Unmet(found: "\(what) is \(found), not \(wanted)") }
}

func unwrap<Value>(_ value: Value?, _ what: String) throws -> Value {
    guard let value else { throw Unmet(found: "there is no \(what)") }
    return value
}

/// Runs `body` concurrently for each number from 0 up to `count`, and returns the results in the order of these numbers.
func concurrently<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) async throws -> Value
) async throws -> [Value] {
    try await withThrowingTaskGroup(of: (Int, Value).self) { group in
        for number in 0..<count { group.addTask { (number, try await body(number)) } }
        var results: [(Int, Value)] = []
        for try await result in group { results.append(result) }
        return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
}
