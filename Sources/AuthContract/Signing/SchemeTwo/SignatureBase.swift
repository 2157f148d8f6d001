internal import Crypto

/// What a scheme 2 signature signs (RFC 9421 section 2.5): a line for each component, and one for the parameters.
public struct SignatureBase: Sendable, Hashable {
    /// The bytes whose SHA-256 is signed; ASCII, and the first of them is `"`.
    public let bytes: [UInt8]

    /// The base of a request.
    ///
    /// - Parameters:
    ///   - method: As it is on the wire; case counts.
    ///   - target: Path and query as they are on the wire; no query counts as an empty one.
    public init(
        method: String, origin: RequestOrigin, target: RequestTarget, contentDigest: ContentDigest, appID: AppID,
        deviceID: DeviceID, parameters: SchemeTwoParameters
    ) throws(ContractError) {
        guard method.isToken else { throw ContractError("the method must be a token") }
        let lines = SchemeTwo.Component.allCases.map { component -> (component: StructuredField.Item, value: String) in
            let value =
                switch component {
                case .method: method
                case .scheme: origin.scheme.rawValue
                case .authority: origin.authority
                case .path: target.path.text
                case .query: "?" + (target.query ?? "")
                case .contentDigest: contentDigest.field
                case .appID: appID.text
                case .deviceID: deviceID.text
                }
            return (StructuredField.Item(.string(component.rawValue)), value)
        }
        try self.init(lines: lines, parameters: parameters.input.parameters)
    }

    /// A base of any components, in this order.
    init(
        lines: [(component: StructuredField.Item, value: String)], parameters: [StructuredField.Parameter]
    ) throws(ContractError) {
        let components = lines.map(\.component)
        guard Set(components).count == components.count else {
            throw ContractError("a signature must not cover a component twice")
        }
        var text = ""
        for (component, value) in lines {
            // A line break would let one component pass for two.
            guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                throw ContractError("what a signature covers must be printable ASCII")
            }
            text += "\(component.text): \(value)\n"
        }
        text += "\"@signature-params\": \(StructuredField.InnerList(components, parameters).text)"
        bytes = Array(text.utf8)
    }

    /// The SHA-256 of the base: what a replay is known by. Unlike the signature's bytes, nobody can vary it without the key.
    public var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
