internal import StrictJSON

extension JSONValue {
    /// An object of these members, in this order, where a name is not a literal.
    static func members(_ members: (String, JSONValue)...) -> JSONValue { .object(JSONObject(members)) }
}
