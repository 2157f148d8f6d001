internal import Bytes
internal import LenientDER

/// A deviation from the standards that occurs in chains of genuine devices.
///
/// Quirks never refuse anything. They are shown in logs and by `attestation inspect`.
public struct KeyAttestationQuirk: Sendable, Hashable {
    /// The place of the quirk.
    public enum Place: Sendable, Hashable {
        /// The certificate with this index, the leaf being 0.
        case certificate(Int)
        /// The key description.
        case keyDescription
        /// A contradiction between the certificates and the key description.
        case chain
    }

    /// The place of the quirk.
    public let place: Place
    /// The kind of the quirk, in a stable form such as `bool-nonDER:deviceLocked=01`.
    public let text: String

    init(_ place: Place, _ text: String) {
        self.place = place
        self.text = text
    }
}

extension KeyAttestationQuirk: CustomStringConvertible {
    /// Place and text, such as `cert0:crldp-unparsable`.
    public var description: String {
        switch place {
        case .certificate(let index): "cert\(index):\(text)"
        case .keyDescription: "kd:\(text)"
        case .chain: text
        }
    }
}

/// Collects quirks. The DER parser adds its quirks to ``quirks``; `take(as:)` notes them under the name of the parsed field.
struct QuirkCollector {
    var quirks: [DERQuirk] = []
    private(set) var found: [String] = []

    mutating func take(as field: String) {
        for quirk in quirks { note(quirk.kind.name(in: field)) }
        quirks.removeAll()
    }

    mutating func note(_ text: String) { found.append(text) }
}

extension DERQuirk.Kind {
    fileprivate func name(in field: String) -> String {
        switch self {
        case .nonCanonicalBoolean(let octet): "bool-nonDER:\(field)=\(Hexadecimal.encode([octet]))"
        case .unsortedSet: "set-unsorted:\(field)"
        case .nonMinimalBitString: "\(field)-trailing-zero-bits(non-minimal)"
        case .nonMinimalInteger: "integer-non-minimal:\(field)"
        case .generalizedTimeBefore2050: "generalizedtime-before-2050:\(field)"
        }
    }
}
