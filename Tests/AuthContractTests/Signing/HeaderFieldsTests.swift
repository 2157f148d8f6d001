import AuthContract
import Testing

@Suite struct HeaderLines {
    let fields = HeaderFields([
        ("X-App-ID", "a"), ("x-app-id", "b"), ("X-Once", "once"), ("X-App-IDs", "c"), ("X-Empty", ""),
    ])

    @Test func `a field is found in any case`() {
        #expect(fields.values("x-APP-id") == ["a", "b"])
        #expect(fields.values("X-ONCE") == ["once"])
        #expect(fields.values("X-None").isEmpty)
    }

    @Test func `a required field must be present exactly once`() throws {
        #expect(try fields.one("x-once") == "once")
        #expect(try fields.one("x-empty").isEmpty)
        #expect(throws: ContractError.self) { try fields.one("X-App-ID") }
        #expect(throws: ContractError.self) { try fields.one("X-None") }
        #expect(try fields.atMostOne("X-None") == nil)
        #expect(throws: ContractError.self) { try fields.atMostOne("X-App-ID") }
    }

    /// The Kelvin sign (U+212A) is not a k. `@` and the backquote differ only in bit 0x20, like A and a, but are not letters.
    @Test func `only ASCII letters match in another case`() {
        #expect(HeaderFields([("X-\u{212A}ey", "1")]).values("X-Key").isEmpty)
        #expect(HeaderFields([("@", "1")]).values("`").isEmpty)
        // Names are compared in words of several bytes. A carriage return differs from a hyphen only in bit 0x20, like an
        // upper-case letter from its lower-case form.
        let names = ["X-App-ID", "X-Synheart-App-ID"]
        for (name, position) in names.flatMap({ name in name.utf8.indices.map { (name, $0) } }) {
            var other = Array(name.utf8)
            other[name.utf8.distance(from: name.startIndex, to: position)] ^= 0x20
            let isLetter = name[position].isLetter
            #expect(HeaderFields([(String(decoding: other, as: UTF8.self), "1")]).contains(name) == isLetter)
        }
    }

    @Test func `white space around a value is removed`() throws {
        #expect(try HeaderFields([("A", " \t b c\t ")]).one("a") == "b c")
        #expect(try HeaderFields([("A", " \t")]).one("a").isEmpty)
        // Only spaces and tabs are removed. Other white space stays in the value, and the parser of the value refuses it.
        #expect(try HeaderFields([("A", "\u{A0}b\n")]).one("a") == "\u{A0}b\n")
    }
}
