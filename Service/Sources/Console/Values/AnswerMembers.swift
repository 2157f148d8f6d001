internal import StrictJSON

/// Members of the API's answers, read by their names. An absent member is nil, and a page shows nothing for it.
extension JSONValue {
    /// A member of an object; nil if this is not an object or lacks the member.
    subscript(_ name: String) -> JSONValue? { object?[name] }
    /// The elements; none if this is not a list.
    var elements: [JSONValue] { array ?? [] }
    /// The members in their order; none if this is not an object.
    var pairs: [(name: String, value: JSONValue)] { object?.members.map { ($0.name, $0.value) } ?? [] }
}
