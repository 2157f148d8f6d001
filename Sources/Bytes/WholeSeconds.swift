extension Int64 {
    /// A number of seconds as HTTP header fields write it (`delta-seconds`, RFC 9111 section 1.2.2): 1 to 18 digits; nil for
    /// any other text. More than `maximum`, by default a day, is read as `maximum`.
    public init?(wholeSeconds text: some StringProtocol, atMost maximum: Int64 = 86_400) {
        guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let seconds = Int64(text)
        else { return nil }
        self = Swift.min(seconds, maximum)
    }
}
