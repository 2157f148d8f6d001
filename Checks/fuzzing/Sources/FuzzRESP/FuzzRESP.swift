import NIOCore
import RESP

/// The decoder must read the same values and refuse the same input, however the bytes are split.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let step = bytes.first else { return 0 }
    let input = bytes.dropFirst()
    let whole = read(input, by: input.count)
    precondition(read(input, by: Int(step % 7) + 1) == whole, "the split decides what is read")
    return 0
}

/// The values, and whether the bytes after them are refused.
private func read(_ bytes: ArraySlice<UInt8>, by step: Int) -> Reading {
    var limits = RESPDecoder.Limits()
    (limits.depth, limits.elements, limits.bulkLength, limits.lineLength, limits.size) = (4, 64, 256, 128, 2048)
    var (decoder, buffer, reading) = (RESPDecoder(limits: limits), ByteBuffer(), Reading())
    var rest = bytes
    while !rest.isEmpty {
        buffer.writeBytes(rest.prefix(max(1, step)))
        rest = rest.dropFirst(max(1, step))
        do {
            // Compared as text, because NaN equals nothing.
            while let value = try decoder.next(&buffer) { reading.values.append("\(value)") }
        } catch {
            reading.isRefused = true
            return reading
        }
    }
    return reading
}

private struct Reading: Equatable {
    var values: [String] = []
    var isRefused = false
}
