import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import FuzzSupport

private let workshop = Workshop()
private let clientDataHash = Array(SHA256.hash(data: [1, 2, 3]))
/// The receipt in every attestation object. The verifier of attestations does not read it.
private let receipt: [UInt8] = {
    let device = AppleDevice(
        system: .iOS("27.0"), app: AppleApp(appID: workshop.appID), authority: workshop.authority)
    let made = try? device.exchangedReceipt(
        for: workshop.key, clientDataHash: clientDataHash, riskMetric: 3, at: workshop.now)
    guard let made else { fatalError("the test kit made no receipt") }
    return made
}()

/// An attestation with a valid certificate and a correct nonce, made after the grammar changed the object's content. The outcome
/// must be the one that the grammar expects, and verified values must equal the built ones.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var choices = Choices(start, count)
    let plan = AttestationPlan(&choices)
    guard
        let object = try? plan.device.attest(
            workshop.key, clientDataHash: clientDataHash, at: workshop.now, options: plan.options)
    else { return 0 }
    let verifier = plan.verifiers
    do throws(AppAttestError) {
        let verified = try verifier.verify(
            object, keyID: workshop.keyID, clientDataHash: ClientDataHash(clientDataHash), at: workshop.now)
        plan.expectation.check(verified: true, "")
        plan.compare(verified, object)
    } catch {
        plan.expectation.check(verified: false, "\(error)")
    }
    return 0
}

/// One verifier for each policy, because making one takes longer than a verification.
private let verifiers: [AttestationVerifier] = (0..<16).map { bits in
    var policy = AppAttestPolicy(appIDs: [workshop.app], environments: [.production])
    if bits & 1 != 0 { policy.environments.insert(.development) }
    policy.requiresCategory = bits & 2 != 0
    policy.acceptsUnknownCategories = bits & 4 != 0
    if bits & 8 != 0 {
        policy.minimumBundleVersion = BundleVersion("5")
        policy.requiresBundleVersion = true
    }
    return AttestationVerifier(policy: policy, trustAnchors: workshop.anchors)
}

private struct AttestationPlan {
    var expectation = Expectation()
    /// The expectation for the authenticator data alone. It starts over if a later change replaces these bytes.
    private var data = Expectation()
    var options = AppleAttestationOptions()
    var device: AppleDevice
    let verifiers: AttestationVerifier
    private let system: LeafElements
    private let map: ExtensionMap?
    private let environment: AttestEnvironment
    /// Whether the grammar may have changed the receipt, which the certificate does not cover.
    private var isReceiptChanged = false

    init(_ choices: inout Choices) {
        let version = choices.pick("27.0.1", "26.4", "14.0", "28.0", "26.2", "18.1")
        let isMac = choices.once(in: 4)
        environment = choices.pick(.production, .development)
        let bits = choices.below(16)
        verifiers = FuzzSignedAttestation.verifiers[bits]
        device = AppleDevice(
            system: isMac ? .macOS("27.0") : .iOS(version),
            app: AppleApp(
                appID: workshop.appID, environment: environment == .production ? .production : .development),
            authority: workshop.authority)
        let appends = isMac || version.hasPrefix("27") || version.hasPrefix("28")
        options.madeReceipt = receipt
        data.refuse(if: environment == .development && bits & 1 == 0)

        // The leaf's properties.
        let key = LeafElements(
            [(4, .integer(isMac ? 13 : 10)), (1200, .integer(0)), (1204, .octets(Array(workshop.appID.utf8)))],
            known: [4, 1204], &choices)
        system = LeafElements(
            [
                (1400, .octets(Array((isMac ? "27.0" : version).utf8))), (1403, .octets(Array("24A446".utf8))),
                (1026, .octets(Array((isMac ? "macosx" : "iphoneos").utf8))),
            ], known: [1026, 1400, 1403], &choices)
        let (keyElements, systemElements) = (key.der, system.der)
        options.keyProperties = { _ in keyElements }
        options.systemProperties = { _ in systemElements }
        expectation.refuse(if: !key.isDER || key.isMalformed(integers: [4]))
        expectation.refuse(if: !system.isDER || system.isMalformed(integers: []))
        expectation.refuse(if: key.text(1204) != workshop.appID)

        // The access control is only checked on a Mac.
        let saysMac = system.text(1026) == "macosx" || key[4] == .integer(13)
        let control = choices.pick(0, 1, 2, 3)
        let junk = choices.bytes(atMost: 80)
        switch control {
        case 0: options.accessControl = isMac || saysMac ? AppleAccessControl.mac : AppleAccessControl.iPhone
        case 1: options.accessControl = AppleAccessControl.iPhone
        case 2: options.accessControl = []
        default: options.accessControlExtension = { _ in junk }
        }
        if control == 3 { options.accessControl = AppleAccessControl.mac }
        expectation.refuse(if: saysMac && control != 0)

        // The extension map.
        map = appends ? ExtensionMap(&choices) : nil
        if let map {
            let entries = map.entries
            options.extensions = { _ in CBORMap(entries) }
            data.refuse(if: map.hasDuplicate || map.isMalformed)
            data.refuse(if: !Self.appendsMap(system.text(1400)))
        }
        judge(map, bits)
        changeAuthenticatorData(&choices, bits)
        expectation.add(data)
        changeLeaf(&choices)
        changeObject(&choices)
    }

    private mutating func judge(_ map: ExtensionMap?, _ bits: Int) {
        let documented: Set<UInt32> = [1, 2, 3, 4, 5, 6, 10]
        if let category = map?.category {
            data.refuse(
                if: !documented.contains(category) && (bits & 4 == 0 || category == 0))
        } else {
            data.refuse(if: bits & 2 != 0)
        }
        if bits & 8 != 0 { data.refuse(if: !["5", "5.0.1", "10"].contains(map?.version ?? "")) }
    }

    /// Whether a system of this version appends a map: its first number, of at most nine digits, is 27 or more.
    private static func appendsMap(_ version: String?) -> Bool {
        let digits = (version ?? "").prefix { $0 != "." }
        let isNumber = (1...9).contains(digits.utf8.count) && digits.utf8.allSatisfy { 0x30...0x39 ~= $0 }
        return isNumber && Int(digits) ?? 0 >= 27
    }

    /// Judges bytes that follow the key. If the object has no map and the leaf names a system that appends one, the bytes may form
    /// a map by chance.
    private mutating func judgeAppended(_ bits: Int) {
        guard map == nil, Self.appendsMap(system.text(1400)) else { return data.refuse() }
        data.startOver()
        data.refuse(if: environment == .development && bits & 1 == 0)
    }

    private mutating func changeAuthenticatorData(_ choices: inout Choices, _ bits: Int) {
        if choices.once(in: 4) { options.flags = choices.byte() }
        switch choices.below(24) {
        case 1:
            options.counter = UInt32(choices.byte())
            data.refuse(if: options.counter != 0)
        case 2:
            options.relyingParty = "TEAMID1234.com.example.other"
            data.refuse()
        case 3:
            let aaguid = (0..<16).map { _ in choices.byte() }
            options.aaguid = aaguid
            data.refuse()
        case 4:
            let identifier = choices.bytes(atMost: 40)
            options.credentialID = identifier
            data.refuse(if: identifier != workshop.key.keyID)
        case 5:
            let length = UInt16(choices.byte()) << 8 | UInt16(choices.byte())
            options.credentialIDLength = length
            data.refuse(if: length != 32)
        case 6: options.coseKey = { CBORMap($0.entries.reversed()) }
        case 7:
            let index = choices.below(5)
            options.coseKey = { key in CBORMap(key.entries.enumerated().filter { $0.offset != index }.map(\.element)) }
            data.refuse()
        case 8:
            options.coseKey = { CBORMap($0.entries + [.init(2, .bytes([1]))]) }
            data.refuse()
        case 9:
            options.coseKey = { CBORMap($0.entries + [$0.entries[0]]) }
            data.refuse()
        case 10:
            let other = workshop.otherKey.x963
            options.coseKey = { key in
                CBORMap(key.entries.map { $0.key == -2 ? .init(-2, .bytes(Array(other[1..<33]))) : $0 })
            }
            data.refuse()
        case 11:
            let after = choices.bytes(atMost: 40)
            options.afterExtensions = after
            if !after.isEmpty { judgeAppended(bits) }
        case 12:
            options.afterExtensions = CBORValue.map(CBORMap([.init("apple_bundle_version_01", "9999")])).encoded
            judgeAppended(bits)
        case 13:
            let length = choices.below(300)
            options.authenticatorData = { Array($0.prefix(length)) }
            data.startOver()
        case 14:
            let (place, byte) = (choices.below(300), choices.byte())
            options.authenticatorData = { data in
                var data = data
                if place < data.count { data[place] = byte }
                return data
            }
            data.startOver()
        case 15:
            let (place, byte) = (choices.below(300), choices.byte())
            options.authenticatorData = { $0.prefix(place) + [byte] + $0.dropFirst(place) }
            data.startOver()
        default: break
        }
    }

    private mutating func changeLeaf(_ choices: inout Choices) {
        switch choices.below(32) {
        case 1:
            let value = choices.bytes(atMost: 60)
            options.nonce = choices.pick(.missing, .doubled, .twoOctetStrings, .trailingByte, .other(value))
            expectation.refuse()
        case 2:
            let seconds = Double(choices.below(5)) - 2
            options.notBefore = workshop.now.addingTimeInterval(seconds)
            expectation.refuse(if: seconds > 0)
        case 3:
            let seconds = Double(choices.below(5)) - 2
            options.notAfter = workshop.now.addingTimeInterval(seconds)
            expectation.refuse(if: seconds < 0)
        case 4:
            options.leafIsAuthority = true
            expectation.refuse()
        case 5:
            options.keyUsage = choices.byte()
            expectation.refuse(if: options.keyUsage & 0x80 == 0)
        case 6:
            let apple: [UInt64] = [1, 2, 840, 113635, 100, 4, 24]
            let usages =
                [[], [[1, 3, 6, 1, 5, 5, 7, 3, 2]], [apple, [1, 3, 6, 1, 5, 5, 7, 3, 2]], [apple]] as [[[UInt64]]]
            let usage = usages[choices.below(4)]
            options.extendedKeyUsage = usage
            expectation.refuse(if: usage != [apple])
        case 7:
            let isCritical = choices.once(in: 2)
            options.leafExtensions = [
                .init([1, 2, 3, UInt64(choices.below(60000))], critical: isCritical, choices.bytes(atMost: 20))
            ]
            expectation.refuse(if: isCritical)
        case 8:
            options.signedBy = workshop.other
            expectation.refuse()
        case 9:
            options.leafKey = workshop.otherKey
            expectation.refuse()
        case 10:
            options.leafCurve = .p384
            expectation.refuse()
        case 11:
            options.leafAlgorithm = choices.pick(.sha384, .sha1)
            expectation.refuse(if: options.leafAlgorithm == .sha1)
            expectation.leaveOpen()
        case 12:
            let place = choices.below(4)
            let root = workshop.authority.attestationRoot
            options.certificates = { list in
                switch place {
                case 0: list.reversed()
                case 1: Array(list.prefix(1))
                case 2: list + [root]
                default: [list[0], root]
                }
            }
            expectation.refuse()
        default: break
        }
    }

    private mutating func changeObject(_ choices: inout Choices) {
        switch choices.below(24) {
        case 1: options.encode = { CBORValue.map(CBORMap($0.entries.reversed())).encoded }
        case 2:
            let index = choices.below(3)
            options.encode = { CBORValue.map(CBORMap($0.entries + [$0.entries[index]])).encoded }
            expectation.refuse()
        case 3:
            options.encode = { CBORValue.map(CBORMap($0.entries + [.init("more", 1)])).encoded }
            expectation.refuse()
        case 4:
            options.encode = { [0xBF] + CBORValue.map($0).encoded.dropFirst() + [0xFF] }
            expectation.refuse()
        case 5:
            options.encode = { [0xB8, 3] + CBORValue.map($0).encoded.dropFirst() }
            expectation.refuse()
        case 6:
            let after = [choices.byte()]
            options.encode = { CBORValue.map($0).encoded + after }
            expectation.refuse()
        case 7:
            options.format = choices.pick("apple", "apple-appattest ", "")
            expectation.refuse()
        case 8, 9:
            // Changes a byte anywhere. The certificate does not cover the receipt.
            let (place, mask) = (choices.below(8192), choices.byte() | 1)
            isReceiptChanged = true
            options.encode = { map in
                var bytes = CBORValue.map(map).encoded
                bytes[place % bytes.count] ^= mask
                return bytes
            }
            expectation.leaveOpen()
        default: break
        }
    }

    /// The verified values must equal the built ones.
    func compare(_ verified: VerifiedAttestation, _ object: [UInt8]) {
        require(verified.keyID == workshop.keyID, "key id")
        require(
            Array(verified.publicKey.x963Representation) == workshop.key.x963 && verified.counter == 0, "public key")
        require(verified.appID == workshop.app && verified.environment == environment, "app or environment")
        require(verified.systemVersion == system.text(1400) && verified.systemBuild == system.text(1403), "system")
        require(verified.platform?.rawValue == system.text(1026), "platform")
        guard let map = try? CBORValue(parsing: object).map, let data = map["authData"]?.bytes else {
            fatalError("verified, and not to be read")
        }
        compare(verified, authenticatorData: data)
        guard !isReceiptChanged else { return }
        require(verified.receipt == map["attStmt"]?.map?["receipt"]?.bytes, "receipt")
    }

    /// Parses the authenticator data again by offsets alone: 55 octets, the key id, a COSE key of 77 octets, then
    /// nothing or one map.
    private func compare(_ verified: VerifiedAttestation, authenticatorData data: [UInt8]) {
        require(data.count >= 164, "authenticator data of \(data.count) octets")
        require(Array(data[0..<32]) == Array(SHA256.hash(data: Array(workshop.appID.utf8))), "hash of the app")
        require(Array(data[33..<37]) == [0, 0, 0, 0] && Array(data[53..<55]) == [0, 32], "counter or length")
        require(Array(data[55..<87]) == workshop.key.keyID, "credential id")
        guard data.count > 164 else { return require(verified.extensions == nil, "a map from nowhere") }
        guard let sent = try? CBORValue(parsing: data[164...]).map, let extensions = verified.extensions else {
            fatalError("what follows the key is not exactly one map, or is lost")
        }
        require(Self.appendsMap(system.text(1400)), "a map of a system that appends none")
        require(extensions.names == sent.entries.compactMap(\.key.text), "names")
        require(extensions.bundleVersion == sent["apple_bundle_version_01"]?.text, "bundle version")
        let category: UInt32? =
            switch sent["apple_validation_category_01"] {
            case .bytes(let octets)?: octets.reversed().reduce(0) { $0 << 8 | UInt32($1) }
            case .unsigned(let number)?: UInt32(exactly: number)
            default: nil
            }
        require(extensions.category?.rawValue == category, "category")
    }
}
