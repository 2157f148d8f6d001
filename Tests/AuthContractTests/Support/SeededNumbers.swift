import AuthContract

extension SeededNumbers {
    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }

    mutating func bytes(in counts: ClosedRange<Int>) -> [UInt8] { bytes(Int.random(in: counts, using: &self)) }

    /// Text in several scripts, with everything that JSON must escape.
    mutating func text(upTo count: Int = 24) -> String {
        let alphabet = Array("aZ09 ._-/\\\"\n\t\u{0}\u{1F}\u{7F}é漢😀\u{2028}e\u{301}".unicodeScalars)
        var text = ""
        for _ in 0..<Int.random(in: 0...count, using: &self) {
            text.unicodeScalars.append(alphabet[Int.random(in: 0..<alphabet.count, using: &self)])
        }
        return text
    }

    mutating func perhaps<Value>(_ value: (inout SeededNumbers) -> Value) -> Value? {
        Bool.random(using: &self) ? value(&self) : nil
    }

    mutating func one<Value>(of values: some Collection<Value>) throws -> Value {
        guard let value = values.randomElement(using: &self) else { throw NothingToChooseFrom() }
        return value
    }

    struct NothingToChooseFrom: Error {}
}

/// A random source that always returns the same bytes.
struct FixedRandom: RandomSource {
    let byte: UInt8

    func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }
}
