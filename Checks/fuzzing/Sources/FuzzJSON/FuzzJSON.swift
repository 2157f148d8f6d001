import StrictJSON

/// A parsed value is written as text that parses to the same value.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let value = try? JSONValue(parsing: bytes) {
        let again = try? JSONValue(parsing: value.bytes, limits: .init(bytes: .max))
        precondition(again == value, "read otherwise than it was written")
    }
    return 0
}
