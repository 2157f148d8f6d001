import Foundation

/// The part of a long search that this run includes: everything, or the elements whose position is K modulo N if the environment
/// variable `TEST_SAMPLE` is `K/N`.
///
/// `.ci/run` takes a sixth, another one each day; `scripts/test --fast` takes an eighth.
public func sample<Element>(_ all: some Sequence<Element>) -> [Element] {
    all.enumerated().filter { isSampled($0.offset) }.map(\.element)
}

/// Whether this run includes the element at a position of a long search.
public func isSampled(_ position: Int) -> Bool { position % share.of == share.part }

private let share: (part: Int, of: Int) = {
    guard let text = ProcessInfo.processInfo.environment["TEST_SAMPLE"] else { return (0, 1) }
    let words = text.split(separator: "/").map { Int($0) }
    guard words.count == 2, let part = words[0], let of = words[1], (0..<of).contains(part) else {
        preconditionFailure("TEST_SAMPLE is K/N, K below N, but is \(text)")
    }
    return (part, of)
}()
