import StrictJSON
import Testing

/// The last accepted and the first refused value of every bound of the reader.
@Suite("Bounds of JSON texts")
struct BoundaryTests {
    private func error(_ text: String, _ limits: JSONValue.Limits = .init()) -> JSONError? {
        do throws(JSONError) {
            _ = try JSONValue(parsing: text, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test("by default a text has at most 64 KiB and 16 levels")
    func defaults() {
        func text(_ count: Int) -> String { "[" + String(repeating: " ", count: count - 2) + "]" }
        #expect(error(text(65_536)) == nil)
        #expect(error(text(65_537))?.code == .tooLarge)
        func nested(_ levels: Int) -> String {
            String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        }
        #expect(error(nested(16)) == nil)
        #expect(error(nested(17))?.code == .tooDeep)
    }

    @Test("a limit is the greatest value that passes; objects and arrays are levels")
    func limits() {
        #expect(error("12", .init(bytes: 2)) == nil)
        #expect(error("12", .init(bytes: 1))?.code == .tooLarge)
        for text in ["[]", "{}", #"{"a":1}"#] {
            #expect(error(text, .init(depth: 1)) == nil)
            #expect(error(text, .init(depth: 0))?.code == .tooDeep)
        }
        #expect(error(#"{"a":{}}"#, .init(depth: 2)) == nil)
        #expect(error(#"{"a":[]}"#, .init(depth: 1))?.code == .tooDeep)
        #expect(error("1", .init(depth: 0)) == nil)
    }

    @Test("an error names the byte at which the text stops being JSON")
    func places() {
        for (text, code, offset) in [
            (#"{"a" 1}"#, .unexpectedByte, 5), (#"{a:1}"#, .unexpectedByte, 1), ("[1 2]", .unexpectedByte, 3),
            ("[1] 2", .trailingBytes, 4), ("-", .unexpectedEnd, 1), ("1.", .unexpectedEnd, 2),
            ("\"a\nb\"", .unexpectedByte, 2), ("\"\\n\nb\"", .unexpectedByte, 3), (#""\x""#, .unexpectedByte, 2),
            (#""\u00g0""#, .unexpectedByte, 5), ("trua", .unexpectedByte, 3), ("01", .trailingBytes, 1),
            ("[[]", .unexpectedEnd, 3), (#"{"a":1,"a":2}"#, .duplicateName, 13),
        ] as [(String, JSONError.Code, Int)] {
            let found = error(text)
            #expect(found?.code == code && found?.offset == offset, "\(text): \(String(describing: found))")
        }
    }

    @Test("control characters stand in strings only as escapes, from U+0000 to U+001F")
    func controlCharacters() throws {
        for prefix in ["", "\\n"] {
            for byte: UInt8 in [0x00, 0x09, 0x1F] {
                let text = Array("\"\(prefix)".utf8) + [byte, UInt8(ascii: "\"")]
                #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
            }
            for byte: UInt8 in [0x20, 0x21, 0x7F] {
                let text = Array("\"\(prefix)".utf8) + [byte, UInt8(ascii: "\"")]
                #expect(try JSONValue(parsing: text).string?.utf8.last == byte)
            }
        }
    }

    @Test("escapes mean what RFC 8259 says")
    func escapes() throws {
        for (text, meaning) in [
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u00E9""#, "A\u{E9}\u{E9}"),
            (#""\u0000\uFFFF\ud7ff\ue000""#, "\u{0}\u{FFFF}\u{D7FF}\u{E000}"),
            (#""\ud800\udc00\udbff\udfff\ud83d\ude00""#, "\u{10000}\u{10FFFF}\u{1F600}"),
            (#""\u09afx""#, "\u{9AF}x"),
        ] {
            #expect(try JSONValue(parsing: text).string.map { Array($0.utf8) } == Array(meaning.utf8))
        }
        for text in [
            #""\udc00""#, #""\ud800x""#, #""\ud800\n""#, #""\ud800\u0041""#, #""\ud800\ud800""#, #""\udfff""#,
            #""\ud800\udbff""#, #""\udbff\ue000""#, #""\ud800\ue000""#,
        ] {
            #expect(error(text)?.code == .invalidText, "\(text)")
        }
        for digit in ["/", ":", "@", "G", "`", "g"] { #expect(error("\"\\u000\(digit)\"")?.code == .unexpectedByte) }
    }

    @Test("numbers have the form of RFC 8259, and keep their digits")
    func numbers() throws {
        for text in ["0", "-0", "10", "1.5", "-1.05e+10", "1E-2", "0.0e0", "1e5"] {
            guard case .number(let number) = try JSONValue(parsing: text) else { continue }
            #expect(number.digits == text)
        }
        for text in ["+1", ".5", "1.", "1.e1", "1e", "1e+", "--1", "-", "0x1", "1a", "1d5", "1D5", "-a", "00"] {
            #expect(error(text) != nil, "\(text)")
        }
        guard case .number(let large) = try JSONValue(parsing: "1e999") else { return }
        #expect(large.double == nil && large.integer == nil)
        guard case .number(let half) = try JSONValue(parsing: "0.5") else { return }
        #expect(half.double == 0.5)
    }
}

@Suite("What is written")
struct WritingTests {
    @Test("control characters, DEL and what ends a line for Unicode are escaped, their neighbours are not")
    func escapes() {
        for (text, written) in [
            ("\u{0}\u{8}\u{9}\u{A}\u{D}\u{F}\u{10}\u{1F}", #"\u0000\u0008\t\n\r\u000f\u0010\u001f"#),
            (" !\"#[\\]~\u{7F}", ##" !\"#[\\]~\u007f"##),
            ("\u{80}\u{85}\u{9F}\u{A0}\u{BF}", "\\u0080\\u0085\\u009f\u{A0}\u{BF}"),
            ("\u{2027}\u{2028}\u{2029}\u{202A}\u{20A8}\u{2068}", "\u{2027}\\u2028\\u2029\u{202A}\u{20A8}\u{2068}"),
            ("a\u{2028}b\u{85}c", #"a\u2028b\u0085c"#), ("", ""), ("\u{E9}\u{1F600}", "\u{E9}\u{1F600}"),
        ] {
            #expect(JSONValue.string(text).text() == "\"\(written)\"")
        }
    }

    @Test("compact text has no spaces, pretty text two a level and one value a line")
    func layouts() {
        let value: JSONValue = ["a": [1, [], [true, .null]], "b": [:], "c": ["d": "e"]]
        #expect(value.text() == #"{"a":[1,[],[true,null]],"b":{},"c":{"d":"e"}}"#)
        #expect(
            value.text(.pretty) == """
                {
                  "a": [
                    1,
                    [],
                    [
                      true,
                      null
                    ]
                  ],
                  "b": {},
                  "c": {
                    "d": "e"
                  }
                }
                """)
    }
}

@Suite("Fields")
struct FieldTests {
    private let fields: JSONFields

    init() throws {
        fields = try JSONFields(
            JSONValue(
                parsing: #"{"i": 5, "list": [1, "a"], "object": {"x": 1}, "null": null, "choice": "b", "word": "w"}"#))
    }

    private enum Choice: String { case a, b }

    @Test("a range includes both ends and nothing beyond")
    func ranges() throws {
        for range: ClosedRange<Int64> in [5...5, 0...5, 5...9] {
            #expect(try fields.optionalInteger("i", in: range) == 5)
        }
        for range: ClosedRange<Int64> in [0...4, 6...9] {
            #expect(throws: JSONError(.wrongType, path: "i")) { try fields.optionalInteger("i", in: range) }
        }
        #expect(try fields.optionalInteger("absent", in: 0...1) == nil)
    }

    @Test("a required member is present, or the error names its path")
    func required() throws {
        #expect(try fields.choice("choice", Choice.self) == .b)
        #expect(throws: JSONError(.wrongType, path: "word")) { try fields.choice("word", Choice.self) }
        #expect(throws: JSONError(.missing, path: "absent")) { try fields.choice("absent", Choice.self) }
        #expect(try fields.object("object").integer("x") == 1)
        #expect(throws: JSONError(.missing, path: "object.y")) { try fields.object("object").integer("y") }
        #expect(throws: JSONError(.wrongType, path: "object.x")) { try fields.object("object").string("x") }
        #expect(throws: JSONError(.wrongType, path: "list")) { try fields.object("list") }
        #expect(throws: JSONError(.wrongType, path: "the body")) { try JSONFields([1]) }
        #expect(try fields.value("i") == 5)
        #expect(throws: JSONError(.missing, path: "null")) { try fields.value("null") }
        #expect(try fields.optionalArray("list")?.count == 2)
        #expect(throws: JSONError(.wrongType, path: "word")) { try fields.parsed("word") { _ in throw Bad.bad } as Int }
        #expect(try fields.parsed("word") { $0 + "!" } == "w!")
        #expect(throws: Never.self) { try fields.allowOnly("i", "list", "object", "null", "choice", "word") }
    }

    private enum Bad: Error { case bad }

    @Test("a member is set, replaced and removed by its name")
    func members() {
        var object = JSONObject([("a", 1), ("b", 2), ("a", 3)])
        #expect(object.members.map(\.name) == ["a", "b"] && object["a"] == 3)
        object["b"] = .null
        #expect(object["b"] == .some(.null) && object.members.count == 2)
        object["a"] = nil
        object["absent"] = nil
        #expect(object.members.map(\.name) == ["b"])
    }
}
