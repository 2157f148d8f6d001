/// What a scheme 1 signature signs: `METHOD \n path \n timestamp \n body`.
public enum SchemeOneMessage {
    /// The bytes whose SHA-256 is signed. The method is put in upper case; the body is as on the wire.
    public static func bytes(method: String, path: String, timestamp: UnixTime, body: [UInt8]) -> [UInt8] {
        let lineFeed = UInt8(ascii: "\n")
        var bytes: [UInt8] = []
        bytes.reserveCapacity(method.utf8.count + path.utf8.count + UnixTime.maximumDigits + 3 + body.count)
        // ASCII alone: Unicode has letters whose upper case is one of A-Z.
        for byte in method.utf8 { bytes.append(byte.upperCased) }
        bytes.append(lineFeed)
        bytes.append(contentsOf: path.utf8)
        bytes.append(lineFeed)
        timestamp.appendDigits(to: &bytes)
        bytes.append(lineFeed)
        bytes.append(contentsOf: body)
        return bytes
    }
}
