import AuthContract
import StrictJSON
import Testing

/// The rules for every body. Each body is one row of the table in `BodyTable.swift`.
@Suite struct Bodies {
    @Test(arguments: Body.all) func `a written body is read as the same`(_ body: Body) throws {
        for seed in 0..<200 { try body.roundTrip(seed: UInt64(seed)) }
    }

    @Test(arguments: Body.all) func `the sample has every member`(_ body: Body) {
        #expect(Set(body.sample.members.map(\.name)) == body.required.union(body.optional))
    }

    @Test(arguments: Body.all) func `a missing required member is refused`(_ body: Body) {
        for name in body.required {
            var (missing, null) = (body.sample, body.sample)
            missing[name] = nil
            null[name] = .null
            #expect(!body.reads(missing), "without \(name)")
            #expect(!body.reads(null), "\(name): null")
        }
    }

    @Test(arguments: Body.all) func `an optional member may be missing or null`(_ body: Body) {
        for name in body.optional {
            var (missing, null) = (body.sample, body.sample)
            missing[name] = nil
            null[name] = .null
            #expect(body.reads(missing), "without \(name)")
            #expect(body.reads(null), "\(name): null")
        }
    }

    @Test(arguments: Body.all) func `a member of another type is refused`(_ body: Body) throws {
        let half = try JSONValue(parsing: "0.5")
        let values: [JSONValue] = ["\u{0}", 1, true, [1], ["a": 1], half]
        for member in body.sample.members {
            for value in values where !value.isOfTheSameType(as: member.value) {
                var changed = body.sample
                changed[member.name] = value
                #expect(!body.reads(changed), "\(member.name): \(value.text())")
            }
        }
    }

    @Test(arguments: Body.all) func `an unknown member is ignored`(_ body: Body) {
        var extended = body.sample
        extended["x_unknown"] = ["of": ["a newer", 1, .null]]
        #expect(body.reads(extended))
        #expect(body.rewrites(extended) == body.rewrites(body.sample))
    }

    @Test(arguments: Body.all) func `a duplicate member is refused`(_ body: Body) {
        for member in body.sample.members {
            let again = ",\(JSONValue.string(member.name).text()):\(member.value.text())}"
            let text = JSONValue.object(body.sample).text().dropLast() + again
            #expect(!body.readsText(String(text)), "\(member.name)")
        }
    }

    @Test(arguments: Body.all) func `anything but one object is refused`(_ body: Body) {
        let text = JSONValue.object(body.sample).text()
        for bad in ["", "null", "[]", "\"\"", "1", "[\(text)]", text + text, text + "x", String(text.dropLast())] {
            #expect(!body.readsText(bad))
        }
        #expect(body.readsText(" \n\(text)\r\n\t"))
    }

    @Test(arguments: Body.all) func `a body beyond the limit is refused`(_ body: Body) {
        let text = JSONValue.object(body.sample).text() + String(repeating: " ", count: 64 * 1024)
        #expect(!body.readsText(text))
    }
}

extension JSONValue {
    fileprivate func isOfTheSameType(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.string, .string), (.bool, .bool), (.array, .array), (.object, .object), (.null, .null): true
        // An integer and a fraction have different types.
        case (.number(let left), .number(let right)): (left.integer == nil) == (right.integer == nil)
        default: false
        }
    }
}

/// One kind of body, type-erased.
struct Body: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let sample: JSONObject
    let required: Set<String>
    let optional: Set<String>
    let rewrites: @Sendable (JSONObject) -> JSONObject?
    let readsText: @Sendable (String) -> Bool
    private let roundTripOf: @Sendable (UInt64) throws -> Void

    func reads(_ object: JSONObject) -> Bool { rewrites(object) != nil }

    func roundTrip(seed: UInt64) throws { try roundTripOf(seed) }

    init<Value: WireBody & Equatable>(
        sample: Value, required: Set<String>, optional: Set<String> = [],
        any: @escaping @Sendable (inout SeededNumbers) throws -> Value
    ) {
        testDescription = "\(Value.self)"
        self.sample = sample.json
        self.required = required
        self.optional = optional
        rewrites = { object in (try? Value(parsing: JSONValue.object(object).bytes))?.json }
        readsText = { text in (try? Value(parsing: Array(text.utf8))) != nil }
        roundTripOf = { seed in
            var random = SeededNumbers(seed: seed)
            let value = try any(&random)
            #expect(try Value(parsing: value.bytes) == value)
        }
    }
}
