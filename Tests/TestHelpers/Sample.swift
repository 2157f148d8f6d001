import Foundation

/// What a run takes of a long search: everything, or every eighth element if `FAST_TESTS` is in the environment.
///
/// `scripts/test --fast` sets the variable.
public func sample<Element>(_ all: some Sequence<Element>) -> [Element] {
    let step = ProcessInfo.processInfo.environment["FAST_TESTS"] == nil ? 1 : 8
    return all.enumerated().filter { $0.offset % step == 0 }.map(\.element)
}
