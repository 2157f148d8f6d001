internal import Bytes
internal import CBOR
internal import LenientDER
public import StrictJSON

/// How a device got the key that signs its attestations.
public enum Provisioning: String, Sendable, Hashable {
    /// In the factory, one key for a batch of devices. Expiry of its certificates means nothing.
    case factory
    /// Remotely, a key of its own for some weeks.
    case remote = "rkp"
    /// Not at all: the key is in Android's sources.
    case software
    /// Neither can be told from the names.
    case unknown
}

extension Provisioning {
    /// Google's way to tell, by the subject of the certificate below the root: `Droid CA2` provisions remotely, a serial
    /// number as a name is a factory's.
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

/// What Google's provisioning server noted about a device (extension 1.3.6.1.4.1.11129.2.1.30, CBOR): advice only.
///
/// It is read from the attestation certificate alone, the one above the leaf: only Google can have issued it.
public struct ProvisioningInfo: Sendable, Hashable {
    private let map: CBORMap

    /// Certificates issued to the device in the last 30 days, roughly; a high number hints at abuse.
    public var certificatesIssued: Int64? { map[.integer(1)]?.integer }
    /// The maker, by its own account.
    public var manufacturer: String? { map[.integer(3)]?.text }

    /// Nil if the extension is no CBOR map.
    init?(_ extensionValue: ArraySlice<UInt8>) {
        guard let map = try? CBORValue(parsing: extensionValue).map else { return nil }
        self.map = map
    }

    /// Every entry, also those that have no meaning here. Keys are texts or decimal numbers, octets lower-case
    /// hexadecimal; a key or a value that JSON has no form for is the hexadecimal of its encoding.
    public var json: JSONObject { map.json }
}

extension CBORMap {
    fileprivate var json: JSONObject {
        var object = JSONObject()
        for entry in entries {
            let encoded = Hexadecimal.encode(entry.key.encoded)
            let name = entry.key.text ?? entry.key.integer.map { String($0) } ?? encoded
            object[object[name] == nil ? name : encoded] = entry.value.json
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
