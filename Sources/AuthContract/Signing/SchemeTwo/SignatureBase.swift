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
    ///   - origin: Where the request goes.
    ///   - contentDigest: Of the body, an empty one too.
    ///   - appID: Whose device it is.
    ///   - deviceID: The device that signs.
    ///   - parameters: What stands behind the components in `Signature-Input`.
    public init(
        method: String, origin: RequestOrigin, target: RequestTarget, contentDigest: ContentDigest, appID: AppID,
        deviceID: DeviceID, parameters: SchemeTwoParameters
    ) throws(ContractError) {
        guard method.isToken else { throw ContractError("the method must be a token") }
        try self.init(
            lines: Self.components.map { component, identifier in
                switch component {
                case .method: (identifier, method)
                case .scheme: (identifier, origin.scheme.rawValue)
                case .authority: (identifier, origin.authority)
                case .path: (identifier, target.path.text)
                case .query: (identifier, "?" + (target.query ?? ""))
                case .contentDigest: (identifier, contentDigest.field)
                case .appID: (identifier, appID.text)
                case .deviceID: (identifier, deviceID.text)
                }
            }, parameters: parameters.input)
    }

    /// A base of components, each written as a structured field item, and of the parameters' inner list.
    init(lines: [(component: String, value: String)], parameters: String) throws(ContractError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        for (component, value) in lines {
            // A line break would let one component pass for two.
            guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                throw ContractError("what a signature covers must be printable ASCII")
            }
            bytes += component.utf8
            bytes += ": ".utf8
            bytes += value.utf8
            bytes += "\n".utf8
        }
        bytes += "\"@signature-params\": ".utf8
        bytes += parameters.utf8
        self.bytes = bytes
    }

    private static let components = SchemeTwo.Component.allCases.map { ($0, $0.identifier) }

    /// The SHA-256 of the base: what a replay is known by. Unlike the signature's bytes, nobody can vary it without the key.
    public var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
