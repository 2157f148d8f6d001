/// A bundle version (`CFBundleVersion`) that can be compared: up to eight numbers with dots between them.
public struct BundleVersion: Sendable, Hashable, Comparable {
    /// The version as it was written.
    public let text: String
    private let numbers: [UInt64]

    /// Nil unless the version is 1 to 8 numbers of 1 to 18 digits each, separated by dots. Other versions have no order.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count <= 8 else { return nil }
        var numbers: [UInt64] = []
        for part in parts {
            guard (1...18).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            numbers.append(part.reduce(0) { $0 * 10 + UInt64($1 - 0x30) })
        }
        while numbers.last == 0 { numbers.removeLast() }
        self.text = text
        self.numbers = numbers
    }

    /// Compares the numbers from the left.
    public static func < (left: Self, right: Self) -> Bool { left.numbers.lexicographicallyPrecedes(right.numbers) }
    /// Whether the numbers are equal. Zeros at the end are ignored.
    public static func == (left: Self, right: Self) -> Bool { left.numbers == right.numbers }
    /// Hashes the numbers.
    public func hash(into hasher: inout Hasher) { hasher.combine(numbers) }
}
