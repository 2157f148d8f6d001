/// The message of a scheme 1 signature: `METHOD\npath\ntimestamp\nbody`.
public enum SchemeOneMessage {
    /// The bytes to hash and sign. The method is converted to upper case; the body is as sent.
    public static func bytes(method: String, path: String, timestamp: UnixTime, body: [UInt8]) -> [UInt8] {
        let lineFeed = UInt8(ascii: "\n")
        var bytes: [UInt8] = []
        bytes.reserveCapacity(method.utf8.count + path.utf8.count + UnixTime.maximumDigits + 3 + body.count)
        // Converts only ASCII: some other Unicode letters have an upper case in A-Z.
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
