internal import Crypto

/// The message of a scheme 2 signature (RFC 9421 section 2.5): one line for each component, and one for the parameters.
public struct SignatureBase: Sendable, Hashable {
    /// The bytes to hash and sign. They are ASCII and begin with `"`.
    public let bytes: [UInt8]

    /// The signature base of a request.
    ///
    /// - Parameters:
    ///   - method: The method as sent. Upper and lower case differ.
    ///   - origin: The destination.
    ///   - target: Path and query as sent. A missing query is signed as an empty one.
    ///   - contentDigest: The digest of the body, also of an empty one.
    ///   - appID: The app of the device.
    ///   - deviceID: The device that signs.
    ///   - parameters: The parameters in `Signature-Input`.
    public init(
        method: String, origin: RequestOrigin, target: RequestTarget, contentDigest: ContentDigest, appID: AppID,
        deviceID: DeviceID, parameters: SchemeTwoParameters
    ) throws(ContractError) {
        guard method.isMethod else { throw ContractError("the method must be 1 to 32 letters or '-'") }
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

    /// A base from component lines and the parameters' inner list, both already serialized.
    init(lines: [(component: String, value: String)], parameters: String) throws(ContractError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        for (component, value) in lines {
            // A line break in a value could forge another component.
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

    /// The SHA-256 of the base. Replay protection records this digest as used: unlike the signature's bytes, the digest
    /// cannot be changed without the key.
    public var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
