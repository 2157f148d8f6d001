/// The tags of an authorization list, with their names in Google's schema
/// ([Key and ID attestation](https://source.android.com/docs/security/features/keystore/attestation)).
enum AuthorizationTag {
    enum Kind: Sendable {
        case integer, integers, flag, octets, text, rootOfTrust, applicationID
    }

    static let purpose: UInt32 = 1
    static let algorithm: UInt32 = 2
    static let allApplications: UInt32 = 600
    static let creationDateTime: UInt32 = 701
    static let origin: UInt32 = 702
    static let rootOfTrust: UInt32 = 704
    static let osVersion: UInt32 = 705
    static let osPatchLevel: UInt32 = 706
    static let attestationApplicationID: UInt32 = 709
    static let vendorPatchLevel: UInt32 = 718
    static let bootPatchLevel: UInt32 = 719

    static let known: [UInt32: (name: String, kind: Kind)] = [
        purpose: ("purpose", .integers),
        algorithm: ("algorithm", .integer),
        3: ("keySize", .integer),
        4: ("blockMode", .integers),
        5: ("digest", .integers),
        6: ("padding", .integers),
        7: ("callerNonce", .flag),
        8: ("minMacLength", .integer),
        10: ("ecCurve", .integer),
        11: ("mlDsaVariant", .integer),
        200: ("rsaPublicExponent", .integer),
        203: ("mgfDigest", .integers),
        303: ("rollbackResistance", .flag),
        305: ("earlyBootOnly", .flag),
        400: ("activeDateTime", .integer),
        401: ("originationExpireDateTime", .integer),
        402: ("usageExpireDateTime", .integer),
        405: ("usageCountLimit", .integer),
        502: ("userSecureId", .integer),
        503: ("noAuthRequired", .flag),
        504: ("userAuthType", .integer),
        505: ("authTimeout", .integer),
        506: ("allowWhileOnBody", .flag),
        507: ("trustedUserPresenceRequired", .flag),
        508: ("trustedConfirmationRequired", .flag),
        509: ("unlockedDeviceRequired", .flag),
        allApplications: ("allApplications", .flag),
        601: ("applicationId", .octets),
        creationDateTime: ("creationDateTime", .integer),
        origin: ("origin", .integer),
        703: ("rollbackResistant", .flag),
        rootOfTrust: ("rootOfTrust", .rootOfTrust),
        osVersion: ("osVersion", .integer),
        osPatchLevel: ("osPatchLevel", .integer),
        attestationApplicationID: ("attestationApplicationId", .applicationID),
        710: ("attestationIdBrand", .text),
        711: ("attestationIdDevice", .text),
        712: ("attestationIdProduct", .text),
        713: ("attestationIdSerial", .text),
        714: ("attestationIdImei", .text),
        715: ("attestationIdMeid", .text),
        716: ("attestationIdManufacturer", .text),
        717: ("attestationIdModel", .text),
        vendorPatchLevel: ("vendorPatchLevel", .integer),
        bootPatchLevel: ("bootPatchLevel", .integer),
        720: ("deviceUniqueAttestation", .flag),
        721: ("identityCredentialKey", .flag),
        723: ("attestationIdSecondImei", .text),
        724: ("moduleHash", .octets),
    ]
}
