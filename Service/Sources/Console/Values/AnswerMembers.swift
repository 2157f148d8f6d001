internal import StrictJSON

/// Members of the API's answers, read by their paths. An answer that lacks one shows nothing in its place.
extension JSONValue {
    /// A member of an object; nil if this is no object, or lacks it.
    subscript(_ name: String) -> JSONValue? { object?[name] }
    /// The elements; none if this is no list.
    var elements: [JSONValue] { array ?? [] }
    /// The members in their order; none if this is no object.
    var pairs: [(name: String, value: JSONValue)] { object?.members.map { ($0.name, $0.value) } ?? [] }
}
