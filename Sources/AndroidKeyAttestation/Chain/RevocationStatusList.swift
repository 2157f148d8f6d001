public import StrictJSON

/// Google's list of certificates that are no longer trusted, as a value. The caller fetches it, and sets a new one.
///
/// The list is `{"entries": {"<serial>": {"status": "REVOKED" | "SUSPENDED", "reason": …}}}` at
/// `https://android.googleapis.com/attestation/status`; serials are lower-case hexadecimal without leading zeros
/// ([schema](https://developer.android.com/privacy-and-security/security-key-attestation#certificate_status)). Both states
/// refuse. Serials are compared as numbers: padded ones, DER octets and parts of a serial are how others missed entries.
public struct RevocationStatusList: Sendable {
    /// What the list says of a certificate.
    public struct Entry: Sendable, Hashable {
        /// `REVOKED`, `SUSPENDED`, or a word that is not known yet, which refuses as well.
        public let status: String
        /// Why, such as `KEY_COMPROMISE`.
        public let reason: String?

        /// Whether the state may end.
        public var isSuspension: Bool { status == "SUSPENDED" }
    }

    /// Where Google publishes the list. GET it, and honour the answer's `Cache-Control`.
    public static let googleURL = "https://android.googleapis.com/attestation/status"

    private let entries: [String: Entry]

    /// The largest list that is read: thirty times what Google's had in 2026.
    public static let maximumLength = 8 * 1024 * 1024

    /// Reads a list from its JSON text.
    public init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        try self.init(JSONValue(parsing: bytes, limits: .init(bytes: Self.maximumLength)))
    }

    /// Reads a list. One entry that cannot be read refuses the whole list: half a list would let the other half through.
    public init(_ json: JSONValue) throws(JSONError) {
        guard let members = try JSONFields(json).value("entries").object?.members else {
            throw JSONError(.wrongType, path: "entries")
        }
        var entries: [String: Entry] = [:]
        for member in members {
            guard let serial = Self.normalized(member.name) else { throw JSONError(.wrongType, path: "entries") }
            let fields = try JSONFields(member.value, path: "entries.\(serial)")
            // A reason is for people: one in a form to come must not cost the whole list.
            entries[serial] = Entry(
                status: try fields.string("status"), reason: fields.optionalValue("reason")?.string)
        }
        self.entries = entries
    }

    /// The number of entries.
    public var count: Int { entries.count }

    /// What the list says of a certificate; nil if it does not name it.
    ///
    /// - Parameter serialNumber: hexadecimal digits.
    public func entry(serialNumber: String) -> Entry? {
        Self.normalized(serialNumber).flatMap { entries[$0] }
    }

    /// The list as far as it is about these certificates: what it takes to judge their chain by it once more.
    public func json(about chain: KeyAttestationChain) -> JSONValue {
        let found = chain.certificates.compactMap { certificate -> (String, JSONValue)? in
            guard let serial = Self.normalized(certificate.serialNumber), let entry = entries[serial] else {
                return nil
            }
            var members = JSONObject([("status", .string(entry.status))])
            members["reason"] = entry.reason.map { .string($0) }
            return (serial, .object(members))
        }
        return ["entries": .object(JSONObject(found))]
    }

    private static func normalized(_ serial: String) -> String? {
        let digits = serial.utf8
        guard !digits.isEmpty, digits.count <= 128, serial.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
            return nil
        }
        let significant = serial.lowercased().drop { $0 == "0" }
        return significant.isEmpty ? "0" : String(significant)
    }
}
