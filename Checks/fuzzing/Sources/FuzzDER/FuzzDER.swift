import LenientDER

/// Any bytes give a tree or an error, and every accessor of every element gives a value or an error.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let root = try? DERNode(parsing: bytes) else { return 0 }
    var pending = [root]
    while let node = pending.popLast() {
        var quirks: [DERQuirk] = []
        _ = try? node.sequence()
        _ = try? node.set(noting: &quirks)
        _ = try? node.explicitContent()
        _ = try? node.boolean(noting: &quirks)
        _ = try? node.integer(noting: &quirks)
        _ = try? node.octetString()
        _ = try? node.bitStringOctets()
        _ = try? node.namedBits(noting: &quirks)
        _ = try? node.null()
        _ = (try? node.objectIdentifier())?.description
        _ = try? node.text()
        _ = try? node.secondsSince1970(noting: &quirks)
        pending += node.children
    }
    return 0
}
