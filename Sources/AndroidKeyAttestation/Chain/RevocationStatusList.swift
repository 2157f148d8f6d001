public import StrictJSON

/// Google's list of certificates that are no longer trusted, as a value. The caller fetches it, and replaces it with a
/// newer one.
///
/// The list is `{"entries": {"<serial>": {"status": "REVOKED" | "SUSPENDED", "reason": …}}}` at
/// `https://android.googleapis.com/attestation/status`; serials are lower-case hexadecimal without leading zeros
/// ([schema](https://developer.android.com/privacy-and-security/security-key-attestation#certificate_status)). A certificate in
/// either state is refused. Serial numbers are compared as numbers: other verifiers missed entries because they compared padded
/// texts, DER bytes or parts of a serial number.
public struct RevocationStatusList: Sendable {
    /// The entry of the list for a certificate.
    public struct Entry: Sendable, Hashable {
        /// `REVOKED`, `SUSPENDED`, or a word that Google adds later. A certificate with any status is refused.
        public let status: String
        /// The reason, such as `KEY_COMPROMISE`; nil if the list gives none.
        public let reason: String?

        /// Whether the status is a suspension, which may be temporary.
        public var isSuspension: Bool { status == "SUSPENDED" }
    }

    /// The URL where Google publishes the list. Fetch it with GET, and obey the `Cache-Control` of the response.
    public static let googleURL = "https://android.googleapis.com/attestation/status"

    private let entries: [String: Entry]

    /// The largest list that is read, in bytes: thirty times the size of Google's in 2026.
    public static let maximumLength = 8 * 1024 * 1024

    /// Reads a list from its JSON text.
    public init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        try self.init(JSONValue(parsing: bytes, limits: .init(bytes: Self.maximumLength)))
    }

    /// Reads a list. One malformed entry makes the whole list invalid: if the entry were skipped, its certificate would be
    /// accepted.
    public init(_ json: JSONValue) throws(JSONError) {
        guard let members = try JSONFields(json).value("entries").object?.members else {
            throw JSONError(.wrongType, path: "entries")
        }
        var entries: [String: Entry] = [:]
        for member in members {
            guard let serial = Self.normalized(member.name) else { throw JSONError(.wrongType, path: "entries") }
            let fields = try JSONFields(member.value, path: "entries.\(serial)")
            // The reason is only for people, so a reason of an unknown form must not refuse the whole list.
            entries[serial] = Entry(
                status: try fields.string("status"), reason: fields.optionalValue("reason")?.string)
        }
        self.entries = entries
    }

    /// The number of entries.
    public var count: Int { entries.count }

    /// The entry for a certificate; nil if the list does not have it.
    ///
    /// - Parameter serialNumber: hexadecimal digits.
    public func entry(serialNumber: String) -> Entry? {
        Self.normalized(serialNumber).flatMap { entries[$0] }
    }

    /// The list's entries for the certificates of a chain, in the form of the list. They suffice to verify the chain again.
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
