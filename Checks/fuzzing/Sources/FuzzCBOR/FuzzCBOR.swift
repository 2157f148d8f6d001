import CBOR

/// A parsed value is encoded to the same bytes again, because every value has one encoding.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let (value, end) = try? CBORValue.parsePrefix(of: bytes) {
        precondition(value.encoded == Array(bytes[..<end]), "written otherwise than it was read")
    }
    return 0
}
