extension String {
    /// Gives the text's UTF-8 where it lies; its view is read some ten times as slowly.
    @inlinable
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        try utf8.withContiguousStorageIfAvailable(body) ?? Array(utf8).withUnsafeBufferPointer(body)
    }

    /// Whether both are the same bytes: `==` is also true of other ones that mean the same characters.
    package func hasSameBytes(as other: String) -> Bool {
        utf8.count == other.utf8.count && withBytes { bytes in other.withBytes { bytes.elementsEqual($0) } }
    }
}
