internal import Bytes
public import StrictJSON

extension KeyDescription {
    /// Every field under its name in Google's schema; octets as lower-case hexadecimal.
    public var json: JSONValue {
        [
            "attestationVersion": .integer(attestationVersion),
            "attestationSecurityLevel": .string(attestationSecurityLevel.name),
            "keyMintVersion": .integer(keyMintVersion),
            "keyMintSecurityLevel": .string(keyMintSecurityLevel.name),
            "attestationChallenge": .string(Hexadecimal.encode(attestationChallenge)),
            "uniqueId": .string(Hexadecimal.encode(uniqueID)),
            "softwareEnforced": softwareEnforced.json,
            "hardwareEnforced": hardwareEnforced.json,
        ]
    }
}

extension AuthorizationList {
    /// Every authorization under its name in Google's schema, an unknown one under its number.
    public var json: JSONValue {
        .object(JSONObject(entries.map { ($0.name ?? "[\($0.tag)]", $0.value.json) }))
    }
}

extension AuthorizationList.Value {
    var json: JSONValue {
        switch self {
        case .integer(let value): .integer(value)
        case .integers(let values): .array(values.map { .integer($0) })
        case .flag: true
        case .octets(let octets), .unknown(let octets): .string(Hexadecimal.encode(octets))
        case .text(let text): .string(text)
        case .rootOfTrust(let root):
            [
                "verifiedBootKey": .string(Hexadecimal.encode(root.verifiedBootKey)),
                "deviceLocked": .bool(root.isDeviceLocked),
                "verifiedBootState": .integer(root.verifiedBootState.rawValue),
                "verifiedBootHash": root.verifiedBootHash.map { .string(Hexadecimal.encode($0)) } ?? .null,
            ]
        case .applicationID(let application):
            [
                "packages": .array(
                    application.packages.map { ["name": .string($0.name), "version": .integer($0.version)] }),
                "signatureDigests": .array(application.signatureDigests.map { .string(Hexadecimal.encode($0)) }),
            ]
        }
    }
}
