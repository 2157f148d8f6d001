internal import StrictJSON

extension JSONType {
    /// The JSON Schema of a value of this type.
    var schema: JSONValue {
        var schema = JSONObject()
        switch self {
        case .text: schema["type"] = "string"
        case .boolean: schema["type"] = "boolean"
        case .integer(let range):
            schema["type"] = "integer"
            schema["minimum"] = .integer(range.lowerBound)
            if range.upperBound < .max { schema["maximum"] = .integer(range.upperBound) }
        case .choice(let values):
            let (hasText, hasNumber) = (values.contains { $0.string != nil }, values.contains { $0.integer != nil })
            schema["type"] = hasText && hasNumber ? ["string", "integer"] : hasText ? "string" : "integer"
            schema["enum"] = .array(values)
        case .array(let element, let count):
            schema["type"] = "array"
            if count.lowerBound > 0 { schema["minItems"] = .integer(count.lowerBound) }
            if count.upperBound < .max { schema["maxItems"] = .integer(count.upperBound) }
            schema["items"] = element.schema
        case .object(let members):
            schema["type"] = "object"
            schema["additionalProperties"] = false
            schema["required"] = .array(members.filter(\.isRequired).map { .string($0.name) })
            schema["properties"] = .object(JSONObject(members.map { ($0.name, $0.schema) }))
        case .anyObject: schema["type"] = "object"
        case .either(let types): schema["anyOf"] = .array(types.map(\.schema))
        case .named(let name, _): schema["$ref"] = .string("#/components/schemas/\(name)")
        }
        return .object(schema)
    }
}

extension JSONMemberDescription {
    /// The JSON Schema of the member. `null` is treated as absent, unless the member is required.
    var schema: JSONValue {
        var schema = type.schema.object ?? JSONObject()
        if !isRequired {
            if let types = schema["type"] { schema["type"] = .array((types.array ?? [types]) + ["null"]) }
            if let values = schema["enum"]?.array { schema["enum"] = .array(values + [.null]) }
            if let choices = schema["anyOf"]?.array { schema["anyOf"] = .array([["type": "null"]] + choices) }
        }
        schema["description"] = .string(meaning)
        // An object's default consists of its members' defaults.
        if members == nil, let defaultValue { schema["default"] = defaultValue }
        return .object(schema)
    }
}
