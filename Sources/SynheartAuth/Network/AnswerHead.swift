#if !canImport(Security)
    internal import AuthContract
    internal import Bytes

    /// The head of an answer, built line by line as libcurl reports it: the status line, the fields, a blank line. libcurl
    /// also reports the heads of interim answers (1xx) before it, and the trailer fields of the body after it.
    struct AnswerHead: Sendable {
        /// The largest number of bytes of all heads and the trailer together.
        static let limit = 256 * 1024

        private(set) var headers = HeaderFields()
        /// The status; nil until the head of the final answer is complete.
        private(set) var status: Int?
        private var announced = 0
        private var count = 0
        private var folds = 0

        /// Takes a line with its end. Returns false if the head is malformed or too large.
        mutating func take(_ line: some Collection<UInt8>) -> Bool {
            count += line.count
            guard count <= Self.limit else { return false }
            // The trailer is not used (RFC 9110 section 6.5.1).
            guard status == nil else { return true }
            let text = line.reversed().drop { $0 == 0x0A || $0 == 0x0D }.reversed()
            if text.isEmpty { return end() }
            if text.starts(with: Array("HTTP/".utf8)) { return begin(Array(text)) }
            // A folded line continues the value before it (RFC 9112 section 5.2).
            if text.first == 0x20 || text.first == 0x09 { return fold(text.drop { $0 == 0x20 || $0 == 0x09 }) }
            guard announced > 0, let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return false }
            let name = String(decoding: text[..<colon], as: UTF8.self)
            guard name.isToken else { return false }
            let value = String(decoding: text[text.index(after: colon)...], as: UTF8.self)
            headers.lines.append(HeaderFields.Line(name, value))
            return true
        }

        /// The length of the body, from `Content-Length`. Nil before the final head is complete, if there is a
        /// `Transfer-Encoding`, or if there is no `Content-Length` or several different ones.
        var length: Int? {
            let lengths = Set(headers.values("Content-Length"))
            guard status != nil, lengths.count == 1, !headers.contains("Transfer-Encoding") else { return nil }
            return lengths.first.flatMap { Int($0) }
        }

        /// Begins a head with its status line (RFC 9112 section 4).
        private mutating func begin(_ line: [UInt8]) -> Bool {
            let code = line.drop { $0 != 0x20 }.drop { $0 == 0x20 }.prefix { $0 != 0x20 }
            guard code.count == 3, code.allSatisfy({ (0x30...0x39).contains($0) }),
                let status = Int(String(decoding: code, as: UTF8.self)), status >= 100
            else { return false }
            (headers, announced) = (HeaderFields(), status)
            return true
        }

        private mutating func fold(_ text: some Sequence<UInt8>) -> Bool {
            // Limit the folded lines, because each one copies the value.
            folds += 1
            guard folds <= 100, let last = headers.lines.popLast() else { return false }
            headers.lines.append(
                HeaderFields.Line(last.name, last.value + " " + String(decoding: Array(text), as: UTF8.self)))
            return true
        }

        /// Ends a head. After an interim answer another head follows; 101 is final, because the client never asks for another protocol.
        private mutating func end() -> Bool {
            guard announced > 0 else { return false }
            // Refuse codings other than `chunked`, because libcurl would decode them, even if that takes very long.
            let codings = headers.values("Transfer-Encoding").flatMap { $0.split(separator: ",") }
            guard codings.allSatisfy({ HeaderFields.Line("", String($0)).value.lowercased() == "chunked" }) else {
                return false
            }
            if announced >= 200 || announced == 101 { status = announced } else { announced = 0 }
            return true
        }
    }
#endif
