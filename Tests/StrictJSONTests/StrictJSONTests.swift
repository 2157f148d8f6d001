import Foundation
import StrictJSON
import Testing

/// JSONTestSuite (nst/JSONTestSuite, MIT): what a parser must accept, must refuse, and may decide.
@Suite struct JSONTestSuite {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let expect: String
        let base64: String
        var testDescription: String { name }
        var bytes: Data { Data(base64Encoded: base64) ?? Data() }
    }

    static let cases: [Case] = {
        guard
            let url = Bundle.module.url(
                forResource: "json_test_suite", withExtension: "json", subdirectory: "Vectors"),
            let data = try? Data(contentsOf: url), let cases = try? JSONDecoder().decode([Case].self, from: data)
        else { return [] }
        return cases
    }()

    /// RFC 8259 accepts these texts. This parser refuses them on purpose, because two parsers could read them differently.
    static let refusedOnPurpose: Set<String> = [
        "test_parsing/y_object_duplicated_key.json", "test_parsing/y_object_duplicated_key_and_value.json",
    ]

    /// A part of the names of the cases that the RFC leaves open and this parser accepts: numbers of any size. The caller
    /// converts or refuses such numbers.
    static let openAndAccepted = "i_number_"

    @Test func `the whole suite is read`() { #expect(Self.cases.count == 340) }

    @Test(arguments: cases) func `a text is parsed as the suite says`(_ test: Case) {
        let parsed = try? JSONValue(parsing: test.bytes, limits: .init(bytes: 1 << 20, depth: 16))
        switch test.expect {
        case _ where Self.refusedOnPurpose.contains(test.name): #expect(parsed == nil)
        case "accept": #expect(parsed != nil)
        case "reject": #expect(parsed == nil)
        case "implementation-defined": #expect((parsed != nil) == test.name.contains(Self.openAndAccepted))
        default: break
        }
        // The parsed value is written as text that parses to the same value.
        if let parsed {
            #expect((try? JSONValue(parsing: parsed.bytes)) == parsed)
            #expect((try? JSONValue(parsing: parsed.text(.pretty))) == parsed)
        }
    }

    @Test(arguments: [100_000, 17]) func `depth is bounded`(levels: Int) {
        let bomb =
            [UInt8](repeating: UInt8(ascii: "["), count: levels) + [UInt8](repeating: UInt8(ascii: "]"), count: levels)
        #expect(throws: JSONError.self) { try JSONValue(parsing: bomb, limits: .init(bytes: 1 << 20)) }
    }
}

@Suite struct JSONParsing {
    func code(_ text: String) -> JSONError.Code? {
        do {
            _ = try JSONValue(parsing: text)
            return nil
        } catch { return error.code }
    }

    @Test func `every error names its kind`() {
        #expect(code("") == .unexpectedEnd)
        #expect(code("{} x") == .trailingBytes)
        #expect(code(#"{"a":1,"a":1}"#) == .duplicateName)
        #expect(code(#"{"a":1,"\u0061":1}"#) == .duplicateName)
        #expect(code(#"["\ud800"]"#) == .invalidText)
        #expect(code(String(repeating: "[", count: 17)) == .tooDeep)
        #expect(code("[" + String(repeating: " ", count: 1 << 16) + "]") == .tooLarge)
        #expect(code("\u{FEFF}{}") == .unexpectedByte)
        #expect(code(" \r\n\t[1] \n") == nil)
    }

    /// In small objects, every pair of names is compared. In larger ones, the names are sorted, and neighbors are
    /// compared.
    @Test(arguments: [2, 3, 16, 17, 100]) func `a repeated name is refused at any position`(count: Int) {
        let names = (0..<count).map { "name\($0)" }
        func text(_ names: [String]) -> String { "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}" }
        #expect(code(text(names)) == nil)
        for doubled in [0, count / 2, count - 1] {
            for place in [0, count / 2, count - 1] where place != doubled {
                var changed = names
                changed[place] = names[doubled]
                #expect(code(text(changed)) == .duplicateName, "\(doubled) at \(place)")
            }
        }
    }

    /// The Kelvin sign and K are equal as Swift strings, but they are different names in JSON.
    @Test func `names are compared by code points`() throws {
        let value = try JSONValue(parsing: #"{"\u212a":1,"K":2}"#)
        #expect(value.object?["K"]?.integer == 2)
        #expect(value.object?["\u{212A}"]?.integer == 1)
    }

    @Test func `an integer is exact or absent`() throws {
        let value = try JSONValue(parsing: "[9223372036854775807, 9223372036854775808, 1.0, 1e2, -0]")
        #expect(value.array?.map(\.integer) == [.max, nil, nil, nil, 0])
    }

    @Test func `a text that is cut anywhere is refused`() {
        let text = Array(#"{"a":[1,-2.5e+3,"x\n\u00e9\ud83d\ude00",true,false,null],"b":{}}"#.utf8)
        #expect((try? JSONValue(parsing: text)) != nil)
        for length in 0..<text.count {
            #expect(throws: JSONError.self) { try JSONValue(parsing: text.prefix(length)) }
        }
    }
}

@Suite struct JSONFieldsReading {
    let fields: JSONFields

    init() throws {
        fields = try JSONFields(
            try JSONValue(parsing: #"{"s":"x","i":7,"b":true,"n":null,"o":{"i":"no"},"l":["a","b"],"m":["a",1]}"#))
    }

    @Test func `each type is read, and null counts as absent`() throws {
        #expect(try fields.string("s") == "x")
        #expect(try fields.integer("i") == 7)
        #expect(try fields.bool("b"))
        #expect(try fields.optionalString("n") == nil)
        #expect(try fields.optionalStrings("l") == ["a", "b"])
        #expect(try fields.optionalInteger("absent") == nil)
    }

    @Test func `errors name the path`() throws {
        #expect(throws: JSONError(.missing, path: "absent")) { try fields.string("absent") }
        #expect(throws: JSONError(.missing, path: "n")) { try fields.string("n") }
        #expect(throws: JSONError(.wrongType, path: "s")) { try fields.integer("s") }
        #expect(throws: JSONError(.wrongType, path: "o.i")) { try fields.object("o").integer("i") }
        #expect(throws: JSONError(.wrongType, path: "m")) { try fields.optionalStrings("m") }
        #expect(throws: JSONError(.wrongType, path: "i")) { try fields.optionalInteger("i", in: 8...9) }
        #expect(throws: JSONError(.unknownName, path: "l")) { try fields.allowOnly("s", "i", "b", "n", "o", "m") }
    }

    @Test("strings and names are the same when their code points are")
    func exactEquality() throws {
        #expect("\u{212A}" as String == "K")
        #expect(JSONValue.string("\u{212A}") != "K")
        #expect(JSONValue.array(["e\u{301}"]) != ["\u{E9}"])
        #expect(try JSONValue(parsing: "{\"\u{212A}\": 1}") != JSONValue(parsing: #"{"K": 1}"#))
        #expect(try JSONValue(parsing: #"{"K": [1, null, true, "a"]}"#) == ["K": [1, .null, true, "a"]])
    }
}

struct JSONLineTests {
    @Test func `a line is one object`() throws {
        var line = JSONLine()
        line.add("plain", "text")
        line.add("needs \"escapes\"", "a\nb\u{2028}\u{0}\\")
        line.add("number", .min)
        let bytes = line.bytes()
        #expect(bytes.last == UInt8(ascii: "\n"))
        #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 })
        let expected: JSONValue = [
            "plain": "text", "needs \"escapes\"": "a\nb\u{2028}\u{0}\\", "number": .integer(Int64.min),
        ]
        #expect(try JSONValue(parsing: Array(bytes.dropLast())) == expected)
        #expect(JSONLine().bytes() == Array("{}\n".utf8))
    }
}
