internal import Bytes
internal import CBOR
internal import LenientDER
public import StrictJSON

/// The way in which a device got the key that signs its attestations.
public enum Provisioning: String, Sendable, Hashable {
    /// The factory installed one key for a batch of devices. The certificates of this key may have expired. The verifier
    /// accepts expired certificates of such a key.
    case factory
    /// Remote key provisioning: each device gets its own key, which is valid for some weeks.
    case remote = "rkp"
    /// Not provisioned: the key is published in Android's sources. The verifier refuses such a chain, so it never reports this value.
    case software
    /// Unknown: the names of the certificates do not tell.
    case unknown
}

extension Provisioning {
    /// Google's rule for the subject of the certificate below the root: `Droid CA2` of Google means remote provisioning, and
    /// otherwise a serial number in the name means a factory.
    init(certificateBelowRoot subject: CertificateName) {
        if subject.onlyValue(of: CertificateName.commonName) == "Droid CA2",
            subject.onlyValue(of: CertificateName.organization) == "Google LLC"
        {
            self = .remote
        } else {
            self = subject.values(of: CertificateName.serialNumber).isEmpty ? .unknown : .factory
        }
    }
}

/// Information of Google's provisioning server about a device (extension 1.3.6.1.4.1.11129.2.1.30, CBOR). No check
/// uses it.
///
/// It is read only from the attestation certificate, the one above the leaf. An attested key cannot have issued that certificate.
public struct ProvisioningInfo: Sendable, Hashable {
    private let map: CBORMap

    /// Certificates issued to the device in the last 30 days, roughly; nil if absent. A high number hints at abuse.
    public var certificatesIssued: Int64? { map[.integer(1)]?.integer }
    /// The name of the manufacturer, as the device claims it; nil if absent.
    public var manufacturer: String? { map[.integer(3)]?.text }

    /// Nil if the extension is not a CBOR map.
    init?(_ extensionValue: ArraySlice<UInt8>) {
        guard let map = try? CBORValue(parsing: extensionValue).map else { return nil }
        self.map = map
    }

    /// Every entry, unknown ones included. Keys are texts or decimal numbers. Bytes are lower-case hexadecimal. Other items are
    /// written as their CBOR encoding in hexadecimal: floats, tagged values, integers beyond 64 bits, keys of another type, and
    /// keys whose name is already used. If the encoding is used too, ` (2)` and so on follow it.
    public var json: JSONObject { map.json }
}

extension CBORMap {
    fileprivate var json: JSONObject {
        var object = JSONObject()
        for entry in entries {
            let encoded = Hexadecimal.encode(entry.key.encoded)
            var name = entry.key.text ?? entry.key.integer.map { String($0) } ?? encoded
            var count = 1
            while object[name] != nil {
                name = count == 1 ? encoded : "\(encoded) (\(count))"
                count += 1
            }
            object[name] = entry.value.json
        }
        return object
    }
}

extension CBORValue {
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .bytes(let octets): .string(Hexadecimal.encode(octets))
        case .array(let elements): .array(elements.map(\.json))
        case .map(let map): .object(map.json)
        case .simple(20): false
        case .simple(21): true
        case .simple(22): .null
        default: integer.map { .integer($0) } ?? .string(Hexadecimal.encode(encoded))
        }
    }
}
