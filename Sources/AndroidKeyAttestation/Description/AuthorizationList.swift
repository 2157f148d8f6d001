internal import LenientDER

/// The properties of a key, as either the hardware or Android asserts them.
///
/// An optional property is nil if it is absent, or if its value has the wrong type.
public struct AuthorizationList: Sendable, Hashable {
    /// One authorization.
    public struct Entry: Sendable, Hashable {
        /// The tag's number.
        public let tag: UInt32
        /// The tag's name in Google's schema; nil for an unknown tag.
        public let name: String?
        /// The value of the authorization.
        public let value: Value
    }

    /// The values of authorizations.
    public enum Value: Sendable, Hashable {
        /// A number.
        case integer(Int64)
        /// A set of numbers, in the order in which they are written.
        case integers([Int64])
        /// A tag without content: its presence means true.
        case flag
        /// Octets.
        case octets([UInt8])
        /// A text.
        case text(String)
        /// The state of the device, as the boot loader reported it to the hardware.
        case rootOfTrust(RootOfTrust)
        /// The application that requested the attestation.
        case applicationID(AttestationApplicationID)
        /// The content of an unknown tag, or of a known tag whose value has the wrong type: the DER of one element, or the
        /// raw content if the tag does not hold exactly one.
        case unknown([UInt8])
    }

    /// The authorizations in their order in the encoding. Each tag occurs once: of a repeated unknown tag, only the first
    /// occurrence is kept.
    public let entries: [Entry]

    /// The value under a tag; nil if the tag is absent.
    public subscript(tag: UInt32) -> Value? {
        entries.first { $0.tag == tag }?.value
    }

    /// The purposes of the key, as numbers of KeyMint's `KeyPurpose`.
    public var purposes: [Int64]? {
        if case .integers(let values) = self[AuthorizationTag.purpose] { values } else { nil }
    }
    /// The algorithm of the key, as a number of KeyMint's `Algorithm`.
    public var algorithm: Int64? { integer(AuthorizationTag.algorithm) }
    /// The origin of the key, such as generated or imported: a number of KeyMint's `KeyOrigin`.
    public var origin: Int64? { integer(AuthorizationTag.origin) }
    /// The time when the key was made, in milliseconds since 1970 by the device's clock. Some devices write invalid values. No
    /// check uses it.
    public var creationDateTime: Int64? { integer(AuthorizationTag.creationDateTime) }
    /// The version of Android, such as 160000 for 16.
    public var osVersion: Int64? { integer(AuthorizationTag.osVersion) }
    /// The patch level of the system, such as 202611.
    public var osPatchLevel: Int64? { integer(AuthorizationTag.osPatchLevel) }
    /// The patch level of the vendor's image, such as 20261105. Some devices have 202611 or 0.
    public var vendorPatchLevel: Int64? { integer(AuthorizationTag.vendorPatchLevel) }
    /// The patch level of the boot image, such as 20261105. Some devices have 202611 or 0.
    public var bootPatchLevel: Int64? { integer(AuthorizationTag.bootPatchLevel) }
    /// Whether every application of the device may use the key.
    public var isOpenToAllApplications: Bool { self[AuthorizationTag.allApplications] != nil }
    /// The state of the device, as the boot loader reported it to the hardware.
    public var rootOfTrust: RootOfTrust? {
        if case .rootOfTrust(let value) = self[AuthorizationTag.rootOfTrust] { value } else { nil }
    }
    /// The application that requested the attestation.
    public var attestationApplicationID: AttestationApplicationID? {
        if case .applicationID(let value) = self[AuthorizationTag.attestationApplicationID] { value } else { nil }
    }

    private func integer(_ tag: UInt32) -> Int64? {
        if case .integer(let value) = self[tag] { value } else { nil }
    }
}

extension AuthorizationList {
    static let maximumCount = 128

    /// Reads a list. A wrong order, unknown tags and values of another type are only noted as quirks. A known tag that is
    /// repeated is an error, because two readers could use different occurrences.
    init(_ node: DERNode, named list: String, noting noted: inout QuirkCollector) throws(DERError) {
        let elements = try node.sequence()
        guard elements.count <= Self.maximumCount else { throw DERError(.tooManyNodes, at: node) }
        var entries: [Entry] = []
        var seen: Set<UInt32> = []
        for element in elements {
            guard element.tag.tagClass == .contextSpecific else {
                noted.note("unknown-element:\(list)")
                continue
            }
            let tag = element.tag.number
            let known = AuthorizationTag.known[tag]
            guard seen.insert(tag).inserted else {
                if known != nil { throw DERError(.invalidContent, at: element) }
                noted.note("repeated-unknown-tag:\(list):\(tag)")
                continue
            }
            let content = try? element.explicitContent()
            if let known, let content, let value = Value(content, known.kind, named: known.name, noting: &noted) {
                entries.append(Entry(tag: tag, name: known.name, value: value))
            } else {
                noted.note(known.map { "unexpected-type:\($0.name)" } ?? "unknown-tag:\(list):\(tag)")
                entries.append(
                    Entry(tag: tag, name: known?.name, value: .unknown(Array(content?.encoded ?? element.content))))
            }
        }
        let tags = entries.map(\.tag)
        if tags != tags.sorted() { noted.note("tags-out-of-order:\(list)") }
        self.entries = entries
    }
}

extension AuthorizationList.Value {
    /// Nil if the content does not have the type of its tag.
    fileprivate init?(
        _ node: DERNode, _ kind: AuthorizationTag.Kind, named name: String, noting noted: inout QuirkCollector
    ) {
        // If the value turns out to have another type, the quirks found while parsing it are dropped.
        var attempt = noted
        do {
            switch kind {
            case .integer: self = .integer(try node.integer(noting: &attempt.quirks))
            case .integers:
                var values: [Int64] = []
                for element in try node.set(noting: &attempt.quirks) {
                    values.append(try element.integer(noting: &attempt.quirks))
                }
                self = .integers(values)
            case .flag:
                try node.null()
                self = .flag
            case .octets: self = .octets(Array(try node.octetString()))
            case .text:
                let octets = try node.octetString()
                let text = String(decoding: octets, as: UTF8.self)
                self = text.utf8.elementsEqual(octets) ? .text(text) : .octets(Array(octets))
            case .rootOfTrust: self = .rootOfTrust(try RootOfTrust(node, noting: &attempt))
            case .applicationID:
                let inner = try DERNode(parsing: try node.octetString())
                self = .applicationID(try AttestationApplicationID(inner, noting: &attempt))
            }
        } catch {
            return nil
        }
        attempt.take(as: name)
        noted = attempt
    }
}
