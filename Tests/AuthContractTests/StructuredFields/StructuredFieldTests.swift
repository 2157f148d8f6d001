import Testing

@testable import AuthContract

/// Dictionaries of RFC 9651, with cases of httpwg/structured-field-tests.
@Suite struct StructuredFields {
    func canonical(_ text: String) -> String? {
        (try? StructuredField.Dictionary(parsing: text, field: "Test"))?.text
    }

    static let read: [(String, String)] = [
        ("", ""), ("  ", ""), ("a", "a"), ("a=1", "a=1"), ("a=1,b=2", "a=1, b=2"), ("a=1 ,  b=2", "a=1, b=2"),
        ("a=1\t,\tb=2", "a=1, b=2"), (" a=1 ", "a=1"), ("a=?1", "a"), ("a=?0", "a=?0"), ("a;x;y=?0", "a;x;y=?0"),
        ("a=?1;x=?1", "a;x"), ("*a-_.*9=1", "*a-_.*9=1"), ("a=b; q=1.0", "a=b;q=1.0"),
        ("a=(1 2); q=1.0", "a=(1 2);q=1.0"),
        ("a=3;c;d=5", "a=3;c;d=5"), ("a=b;  c=1  ,  d=e; f=2; g=3", "a=b;c=1, d=e;f=2;g=3"), ("a=()", "a=()"),
        ("a=(  )", "a=()"), ("a=( \"x\"   \"y\" )", #"a=("x" "y")"#), ("a=(1;p 2;q=z);r", "a=(1;p 2;q=z);r"),
        // Integers and decimals
        ("a=0", "a=0"), ("a=-0", "a=0"), ("a=00042", "a=42"), ("a=-42", "a=-42"),
        ("a=999999999999999", "a=999999999999999"), ("a=-999999999999999", "a=-999999999999999"),
        ("a=1.5", "a=1.5"), ("a=1.500", "a=1.5"), ("a=-1.05", "a=-1.05"), ("a=0.001", "a=0.001"),
        ("a=999999999999.999", "a=999999999999.999"), ("a=01.10", "a=1.1"),
        // Strings
        (#"a="""#, #"a="""#), (#"a="a b~!""#, #"a="a b~!""#), (#"a="\"\\""#, #"a="\"\\""#),
        // Tokens
        ("a=*", "a=*"), ("a=a:b/c!#$%&'*+-.^_`|~", "a=a:b/c!#$%&'*+-.^_`|~"), ("a=A1", "a=A1"),
        // Byte Sequences and Dates
        ("a=::", "a=::"), ("a=:aGVsbG8=:", "a=:aGVsbG8=:"), ("a=@1659578233", "a=@1659578233"), ("a=@-1", "a=@-1"),
    ]

    @Test(arguments: read) func `a dictionary is read, and written in its canonical form`(
        _ text: String, _ canonical: String
    ) {
        #expect(self.canonical(text) == canonical)
        #expect(self.canonical(canonical) == canonical)
    }

    static let refused: [String] = [
        "a=1, b=2,", "a=1,,b=2", ",", ",a=1", "a=1 b=2", "a=1;", "a=", "=1", "A=1", "1=1", "-a=1", "a =1", "a= 1",
        "a=b;q =0.5", "a=b;q= 0.5", "a=b ;q=0.5", "a=b;\tq=1", "\ta=1", "é=1", "a=é", "a=1\n", "a=1\r\nb=2", "a\u{0}",
        // Repeated keys: the RFC uses the last one, but another parser may use the first.
        "a=1,b=2,a=1", "a=1;x=1;x=2", "a=(1;x;x)",
        // Inner lists
        "a=(", "a=)", "a=(1", "a=(1 ", "a=(1,2)", "a=((1))", "a=(1\t2)", "a=(\"x\"\"y\")", "a=(1)2", "(1)", "a=(1 2",
        // Numbers
        "a=-", "a=--1", "a=+1", "a=1000000000000000", "a=1.", "a=.1", "a=1.2345", "a=1234567890123.1", "a=1.2.3",
        "a=1e3", "a=-.5", "a=1-", "a=٣",
        // Strings
        #"a=""#, #"a="x"#, #"a="\x""#, #"a="\"#, "a=\"\n\"", "a=\"\u{7F}\"", "a=\"é\"", "a='x'", #"a="x"y"#,
        // Byte Sequences that are not closed, not padded or not canonical, or have white space
        "a=:", "a=:aGVsbG8=", "a=:aGVsbG8:", "a=:aGVsbG9=:", "a=:aGVs bG8=:", "a=:_-8=:", "a=:====:", "a=:aGVsbG8=\n:",
        // Booleans, Dates, Display Strings
        "a=?", "a=?2", "a=?10", "a=?true", "a=@", "a=@1.5", "a=@x", "a=%\"x\"", "a={1}", "a=[1]", "a=<1>",
    ]

    @Test(arguments: refused) func `a malformed dictionary is refused`(_ text: String) {
        #expect(canonical(text) == nil)
    }

    @Test func `each value has the type of its syntax`() throws {
        let dictionary = try StructuredField.Dictionary(
            parsing: #"a=1, b="1", c=:MQ==:, d=?1, e=one, f=@1, g=1.25, h=-0.5, i=("x";p=1)"#, field: "Test")
        let values = dictionary.entries.map { entry -> StructuredField.BareItem? in
            if case .item(let item) = entry.member { item.value } else { nil }
        }
        #expect(
            values == [
                .integer(1), .string("1"), .bytes([0x31]), .boolean(true), .token("one"), .date(1),
                .decimal(thousandths: 1250), .decimal(thousandths: -500), nil,
            ])
        #expect(
            dictionary["i"] == .innerList(.init([.init(.string("x"), [.init("p", .integer(1))])])))
        #expect(dictionary["z"] == nil)
        #expect(values.map { $0?.integer } == [1] + [Int64?](repeating: nil, count: 8))
        #expect(values[4]?.string == nil)
        #expect(values[1]?.bytes == nil)
    }

    @Test func `a dictionary is bounded`() {
        let count = StructuredFieldParser.maximumCount
        func members(_ count: Int) -> String { (0..<count).map { "a\($0)" }.joined(separator: ",") }
        #expect(canonical(members(count)) != nil)
        #expect(canonical(members(count + 1)) == nil)
        func items(_ count: Int) -> String { "a=(\((0..<count).map { "\($0)" }.joined(separator: " ")))" }
        #expect(canonical(items(count)) != nil)
        #expect(canonical(items(count + 1)) == nil)
        func parameters(_ count: Int) -> String { "a" + (0..<count).map { ";p\($0)" }.joined() }
        #expect(canonical(parameters(count)) != nil)
        #expect(canonical(parameters(count + 1)) == nil)
        func length(_ count: Int) -> String { "a=\"" + String(repeating: "x", count: count - 4) + "\"" }
        #expect(canonical(length(StructuredFieldParser.maximumLength)) != nil)
        #expect(canonical(length(StructuredFieldParser.maximumLength + 1)) == nil)
    }

    /// Any text is refused or parsed. A parsed value has one form, which parses to the same value.
    @Test func `any text is a dictionary or an error`() throws {
        var random = SeededNumbers(seed: 8)
        var accepted = 0
        for text in StructuredFieldMutations.texts(count: 20_000, random: &random) {
            guard let dictionary = try? StructuredField.Dictionary(parsing: text, field: "Test") else { continue }
            accepted += 1
            #expect(try StructuredField.Dictionary(parsing: dictionary.text, field: "Test") == dictionary)
        }
        #expect(accepted > 1000)
    }

    @Test func `a truncated Signature-Input is refused or has fewer members`() {
        let text = #"synheart=("@method" "x-app-id";req);created=1;nonce="a\"b";alg=x"#
        for length in 0..<text.utf8.count {
            guard let read = canonical(String(text.prefix(length))) else { continue }
            #expect(read.utf8.count <= length)
        }
    }
}

/// Dictionaries with a few changed bytes, like a fuzzer's first attempts.
enum StructuredFieldMutations {
    static func texts(count: Int, random: inout SeededNumbers) -> [String] {
        let seeds = StructuredFields.read.map(\.0) + StructuredFields.refused
        let bytes = Array("ab1*\"\\:;=,.?@() -_\t%/Z".utf8)
        return (0..<count).map { _ in
            var text = Array((seeds.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let index = Int.random(in: 0...text.count, using: &random)
                let byte = bytes.randomElement(using: &random) ?? 0
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.insert(byte, at: index)
                case 1 where index < text.count: text[index] = byte
                case 2 where index < text.count: text.remove(at: index)
                default: break
                }
            }
            return String(decoding: text, as: UTF8.self)
        }
    }
}
