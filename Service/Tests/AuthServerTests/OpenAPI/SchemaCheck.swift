import StrictJSON

/// Validates an example against its schema. Checks some keywords of JSON Schema 2020-12, and ignores others, such as `maxLength`.
struct SchemaCheck {
    let schemas: JSONObject

    /// The faults of a value, each with the place at which it was found.
    func failures(of value: JSONValue, in schema: JSONValue, at place: String) -> [String] {
        guard let schema = schema.object else { return [] }
        var failures: [String] = []
        func check(_ holds: Bool, _ what: String) { if !holds { failures.append("\(place): \(what)") } }
        if let reference = schema["$ref"]?.string {
            let name = String(reference.dropFirst("#/components/schemas/".count))
            guard let target = schemas[name] else { return ["\(place): \(reference) leads nowhere"] }
            failures += self.failures(of: value, in: target, at: place)
        }
        let types = schema["type"]?.array?.compactMap(\.string) ?? schema["type"]?.string.map { [$0] }
        if let types { check(types.contains { Self.isOf($0, value) }, "is none of \(types)") }
        if let constant = schema["const"] { check(value == constant, "is not \(constant)") }
        if let words = schema["enum"]?.array { check(words.contains(value), "is none of \(words)") }
        if let pattern = schema["pattern"]?.string, let text = value.string {
            check((try? Regex(pattern).wholeMatch(in: text)) != nil, "does not match \(pattern)")
        }
        if let minimum = schema["minimum"]?.integer, let number = value.integer { check(number >= minimum, "is small") }
        if let maximum = schema["maximum"]?.integer, let number = value.integer { check(number <= maximum, "is large") }
        if let least = schema["minItems"]?.integer, let array = value.array { check(array.count >= least, "is short") }
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where value.object != nil {
            check(value.object?[name] != nil, "lacks \(name)")
        }
        for (keyword, isOne) in [("anyOf", false), ("oneOf", true)] {
            guard let choices = schema[keyword]?.array else { continue }
            let fitting = choices.filter { self.failures(of: value, in: $0, at: place).isEmpty }.count
            check(isOne ? fitting == 1 : fitting > 0, "fits \(fitting) of \(keyword)")
        }
        for element in value.array ?? [] {
            if let items = schema["items"] { failures += self.failures(of: element, in: items, at: place + "[]") }
        }
        for member in value.object?.members ?? [] {
            let below = "\(place).\(member.name)"
            if let property = schema["properties"]?.object?[member.name] {
                failures += self.failures(of: member.value, in: property, at: below)
            } else if let others = schema["additionalProperties"] {
                if others == false { failures.append("\(below): is not known") }
                failures += self.failures(of: member.value, in: others, at: below)
            }
        }
        return failures
    }

    private static func isOf(_ type: String, _ value: JSONValue) -> Bool {
        switch type {
        case "object": value.object != nil
        case "array": value.array != nil
        case "string": value.string != nil
        case "integer": value.integer != nil
        case "boolean": value.bool != nil
        case "null": value.isNull
        default: false
        }
    }
}
