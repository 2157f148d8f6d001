extension JSONFields {
    /// Overrides `value` by the member, if the object has it. `null` makes it nil.
    ///
    /// - Parameters:
    ///   - name: the member.
    ///   - value: the default, which the member overrides.
    ///   - read: nil for a value that is not understood, which is an error that names the member.
    public func overlay<Value>(
        _ name: String, on value: inout Value?, _ read: (JSONValue) -> Value?
    ) throws(JSONError) {
        guard names.contains(name) else { return }
        guard let given = optionalValue(name) else {
            value = nil
            return
        }
        guard let new = read(given) else { throw JSONError(.wrongType, path: pathOf(name)) }
        value = new
    }

    /// The same for a value that is not optional: `null` makes it `none`.
    public func overlay<Value>(
        _ name: String, on value: inout Value, none: Value, _ read: (JSONValue) -> Value?
    ) throws(JSONError) {
        var optional: Value? = value
        try overlay(name, on: &optional, read)
        value = optional ?? none
    }
}

extension JSONValue {
    /// The elements of an array as a set; nil if this is no array, or if an element is not understood.
    public func set<Element: Hashable>(of read: (JSONValue) -> Element?) -> Set<Element>? {
        guard let array else { return nil }
        let elements = array.compactMap(read)
        return elements.count == array.count ? Set(elements) : nil
    }
}
