internal import StrictJSON

extension JSONValue {
    /// An object with these members in this order. Unlike in a literal, the names may be computed.
    static func members(_ members: (String, JSONValue)...) -> JSONValue { .object(JSONObject(members)) }
}
