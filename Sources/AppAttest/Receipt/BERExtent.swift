/// Finds the end of the first BER item (X.690 section 8.1), for receipts that were stored with other bytes after
/// them.
enum BERExtent {
    private static let maximumDepth = 32

    /// The number of bytes of the first item. Nil if the item is cut off or nested too deeply, or if more than 3 octets encode its length.
    static func ofFirstItem(in bytes: [UInt8]) -> Int? {
        end(of: bytes[...], depth: 0)
    }

    private static func end(of bytes: ArraySlice<UInt8>, depth: Int) -> Int? {
        guard depth < maximumDepth, var position = afterTag(bytes), position < bytes.endIndex else { return nil }
        let first = bytes[position]
        position += 1
        switch first {
        case 0x80:
            while true {
                let rest = bytes[position...]
                if rest.starts(with: [0, 0]) { return position + 2 }
                guard let next = end(of: rest, depth: depth + 1) else { return nil }
                position = next
            }
        case 0..<0x80: return advance(position, by: Int(first), in: bytes)
        default:
            let count = Int(first & 0x7F)
            guard count <= 3, bytes.endIndex - position >= count else { return nil }
            let length = bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
            return advance(position + count, by: length, in: bytes)
        }
    }

    private static func afterTag(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first else { return nil }
        guard first & 0x1F == 0x1F else { return bytes.startIndex + 1 }
        // A long tag number: every byte but the last one has its highest bit set.
        return bytes.dropFirst().firstIndex { $0 & 0x80 == 0 }.map { $0 + 1 }
    }

    private static func advance(_ position: Int, by length: Int, in bytes: ArraySlice<UInt8>) -> Int? {
        length <= bytes.endIndex - position ? position + length : nil
    }
}
