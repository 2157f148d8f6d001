internal import StrictJSON

extension JSONValue {
    /// An object with these members in this order, for computed names.
    static func members(_ members: (String, JSONValue)...) -> JSONValue { .object(JSONObject(members)) }
}
