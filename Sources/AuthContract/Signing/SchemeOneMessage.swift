/// What a scheme 1 signature signs: `METHOD \n path \n timestamp \n body`.
public enum SchemeOneMessage {
    /// The bytes whose SHA-256 is signed. The method is put in upper case; the body is as on the wire.
    public static func bytes(method: String, path: String, timestamp: UnixTime, body: some Collection<UInt8>) -> [UInt8]
    {
        // ASCII alone: Unicode has letters whose upper case is one of A-Z.
        let method = String(decoding: method.utf8.map(\.upperCased), as: UTF8.self)
        let head = "\(method)\n\(path)\n\(timestamp.seconds)\n"
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.utf8.count + body.count)
        bytes.append(contentsOf: head.utf8)
        bytes.append(contentsOf: body)
        return bytes
    }
}
