/// Whether two byte strings are equal, in a time that depends only on their lengths.
public func constantTimeEquals(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
    constantTimeEquals(Array(left), Array(right))
}

/// Whether two arrays are equal. Not generic, so that other modules need no specialization.
public func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(0 as UInt8) { difference, pair in difference | (pair.0 ^ pair.1) } == 0
}
