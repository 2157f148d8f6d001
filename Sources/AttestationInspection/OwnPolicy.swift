internal import StrictJSON

extension JSONFields {
    /// The policy that an input line brings along. Text there is the name of a policy that lies elsewhere, and says nothing.
    func ownPolicy() throws(JSONError) -> JSONFields? {
        guard optionalValue("policy")?.string == nil else { return nil }
        return try optionalObject("policy")
    }
}
