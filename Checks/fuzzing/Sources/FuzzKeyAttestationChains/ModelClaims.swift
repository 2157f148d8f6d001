import AttestationTestKit

/// The content of a key description that the fuzzer varies. The first value of each list is that of a good device.
struct ModelClaims: Hashable {
    enum Boot: Hashable, CaseIterable {
        case verified, nonCanonicallyLocked, listedKey, otherKey, unlocked, unverified, failed, unknownState, absent
    }

    /// An additional authorization in hardwareEnforced. It replaces the one with the same tag.
    enum Extra: Hashable, CaseIterable {
        case none, unknown, unknownSequence, largestTag, vendorPatchLevelZero, keySizeOfAnotherType
        case purposeOfAnotherType, originOfAnotherType, rootOfTrustOfAnotherType, allApplications
    }

    enum Whole: Hashable, CaseIterable {
        case written, empty, noFields, cutShort
    }

    var version: Int64 = 300
    var attestationLevel = 1
    var keyLevel = 1
    var hasChallenge = true
    var packages: [String]? = ["com.example.app"]
    var digests: [UInt8] = [0x11]
    var isOpen = false
    var isInSoftware = false
    var boot = Boot.verified
    var origin: Int64? = 0
    var purposes: [Int64] = [2, 3]
    var algorithm: Int64 = 3
    var patchLevel: Int64?
    var areSetsUnsorted = false
    var extra = Extra.none
    var whole = Whole.written

    static let versions: [Int64] = [300, 1, 2, 500, 501, 600, .max, 0, -1]
    static let levels = [1, 2, 0, 3]
    static let packageLists: [[String]?] = [
        ["com.example.app"], ["com.example.other", "com.example.app"], ["com.example.other"], [], nil,
    ]
    static let digestLists: [[UInt8]] = [[0x11], [0x22, 0x11], [0x22], []]
    static let origins: [Int64?] = [0, 1, 2, nil]
    static let purposeSets: [[Int64]] = [[2, 3], [2], [3], [2, 7], [2, 3, 1], []]
    static let algorithms: [Int64] = [3, 1, 4]
    static let patchLevels: [Int64?] = [nil, 202_601, 202_001, 202_613, 0]

    /// Changes one claim.
    mutating func change(_ choices: inout Choices) {
        switch choices.below(16) {
        case 0: version = choices.one(of: Self.versions)
        case 1: attestationLevel = choices.one(of: Self.levels)
        case 2: keyLevel = choices.one(of: Self.levels)
        case 3: (attestationLevel, keyLevel) = (2, 2)
        case 4: hasChallenge.toggle()
        case 5: packages = choices.one(of: Self.packageLists)
        case 6: digests = choices.one(of: Self.digestLists)
        case 7: isOpen.toggle()
        case 8: isInSoftware.toggle()
        case 9: boot = choices.one(of: Boot.allCases)
        case 10: origin = choices.one(of: Self.origins)
        case 11: purposes = choices.one(of: Self.purposeSets)
        case 12: algorithm = choices.one(of: Self.algorithms)
        case 13: patchLevel = choices.one(of: Self.patchLevels)
        case 14: extra = choices.one(of: Extra.allCases)
        default:
            if choices.flag() { areSetsUnsorted.toggle() } else { whole = choices.one(of: Whole.allCases) }
        }
    }

    static let listedBootKey = [UInt8](repeating: 0x77, count: 32)

    var options: KeyAttestationOptions {
        var options = KeyAttestationOptions()
        options.attestationVersion = version
        options.keyMintVersion = version
        options.attestationSecurityLevel = attestationLevel
        options.keyMintSecurityLevel = keyLevel
        options.packages = packages.map { $0.map { .init($0) } }
        options.signatureDigests = digests.map { [UInt8](repeating: $0, count: 32) }
        options.isOpenToAllApplications = isOpen
        options.areClaimsInSoftware = isInSoftware
        options.origin = origin
        options.purposes = purposes
        options.algorithm = algorithm
        options.osPatchLevel = patchLevel
        options.areSetsUnsorted = areSetsUnsorted
        switch boot {
        case .verified: break
        case .nonCanonicallyLocked: options.rootOfTrust?.deviceLocked = 0x01
        case .listedKey:
            options.rootOfTrust?.verifiedBootState = 1
            options.rootOfTrust?.verifiedBootKey = Self.listedBootKey
        case .otherKey: options.rootOfTrust?.verifiedBootState = 1
        case .unlocked: options.rootOfTrust?.deviceLocked = 0
        case .unverified: options.rootOfTrust?.verifiedBootState = 2
        case .failed: options.rootOfTrust?.verifiedBootState = 3
        case .unknownState: options.rootOfTrust?.verifiedBootState = 4
        case .absent: options.rootOfTrust = nil
        }
        let null: [UInt8] = [0x05, 0x00]
        switch extra {
        case .none: break
        case .unknown: options.additionalAuthorizations = [999: null]
        case .unknownSequence: options.additionalAuthorizations = [12: [0x30, 0x03, 0x02, 0x01, 0x01]]
        case .largestTag: options.additionalAuthorizations = [0x0FFF_FFFF: null]
        case .vendorPatchLevelZero: options.additionalAuthorizations = [718: [0x02, 0x01, 0x00]]
        case .keySizeOfAnotherType: options.additionalAuthorizations = [3: null]
        case .purposeOfAnotherType: options.additionalAuthorizations = [1: null]
        case .originOfAnotherType: options.additionalAuthorizations = [702: null]
        case .rootOfTrustOfAnotherType: options.additionalAuthorizations = [704: null]
        case .allApplications: options.additionalAuthorizations = [600: null]
        }
        return options
    }
}
