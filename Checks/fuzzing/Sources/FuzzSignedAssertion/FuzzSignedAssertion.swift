import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import FuzzSupport

private let workshop = Workshop()
private let clientDataHash = Array(SHA256.hash(data: [1, 2, 3]))
private let publicKey = workshop.key.privateKey.publicKey

/// An assertion that the attested key signed after the grammar changed its content. The outcome must be the one that the
/// grammar expects, and verified values must equal the built ones.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var choices = Choices(start, count)
    let plan = AssertionPlan(&choices)
    var key = workshop.key
    guard let bytes = try? plan.device.assert(&key, clientDataHash: clientDataHash, options: plan.options) else {
        return 0
    }
    do throws(AppAttestError) {
        let verified = try AssertionVerifier(policy: plan.policy).verify(
            AssertionObject(parsing: bytes), clientDataHash: ClientDataHash(clientDataHash), publicKey: publicKey,
            attestedExtensions: plan.attested, previousCounter: plan.previous)
        plan.expectation.check(verified: true, "")
        plan.compare(verified, bytes)
    } catch {
        plan.expectation.check(verified: false, "\(error)")
    }
    return 0
}

private struct AssertionPlan {
    var expectation = Expectation()
    var options = AppleAssertionOptions()
    var policy = AppAttestPolicy(appIDs: [workshop.app])
    let device: AppleDevice
    let attested: Bool
    let previous: UInt32

    init(_ choices: inout Choices) {
        let appends = !choices.once(in: 3)
        attested = choices.once(in: 2)
        device = AppleDevice(
            system: appends ? .iOS("27.0.1") : .iOS("26.4"), app: AppleApp(appID: workshop.appID),
            authority: workshop.authority)
        previous = choices.pick(0, 1, 5, .max)
        let counter = choices.pick(1, 0, 5, 6, .max) as UInt32
        options.counter = counter
        expectation.refuse(if: counter <= previous)

        policy.requiresCategory = choices.once(in: 3)
        policy.acceptsUnknownCategories = choices.once(in: 3)
        if choices.once(in: 3) {
            policy.minimumBundleVersion = BundleVersion("5")
            policy.requiresBundleVersion = choices.once(in: 2)
        }
        var sent: ExtensionMap?
        if appends {
            let map = ExtensionMap(&choices)
            let entries = map.entries
            options.extensions = { _ in CBORMap(entries) }
            sent = map
        } else if choices.once(in: 2) {
            // The device signs the map at the start of the client data hash. Then an attacker moves it into the authenticator data.
            let map = ExtensionMap(&choices)
            options.movedFromHash = CBORValue.map(CBORMap(map.entries)).encoded
            sent = map
        }
        if let sent { expectation.refuse(if: sent.hasDuplicate || sent.isMalformed) }
        judge(attested ? sent : nil)
        change(&choices)
    }

    private mutating func judge(_ proven: ExtensionMap?) {
        let documented: Set<UInt32> = [1, 2, 3, 4, 5, 6, 10]
        if let category = proven?.category {
            expectation.refuse(
                if: !documented.contains(category) && (!policy.acceptsUnknownCategories || category == 0))
        } else {
            expectation.refuse(if: policy.requiresCategory)
        }
        if let version = proven?.version {
            expectation.refuse(
                if: policy.minimumBundleVersion != nil && !["5", "5.0.1", "10"].contains(version))
        } else {
            expectation.refuse(if: policy.requiresBundleVersion)
        }
    }

    private mutating func change(_ choices: inout Choices) {
        if choices.once(in: 4) { options.flags = choices.byte() }
        switch choices.below(24) {
        case 1:
            options.relyingParty = "TEAMID1234.com.example.other"
            expectation.refuse()
        case 2:
            options.signature = choices.pick(.raw, .zeroR, .trailingByte, .ofNonceAsDigest)
            expectation.refuse()
        case 3:
            let length = choices.below(200)
            options.authenticatorData = { Array($0.prefix(length)) }
            expectation.startOver()
        case 4:
            let (place, byte) = (choices.below(200), choices.byte())
            options.authenticatorData = { data in
                var data = data
                if place < data.count { data[place] = byte }
                return data
            }
            expectation.startOver()
        case 5:
            let after = choices.bytes(atMost: 30)
            options.authenticatorData = { $0 + after }
            if !after.isEmpty { expectation.startOver() }
        case 6: options.encode = { CBORValue.map(CBORMap($0.entries.reversed())).encoded }
        case 7:
            let index = choices.below(2)
            options.encode = { CBORValue.map(CBORMap($0.entries + [$0.entries[index]])).encoded }
            expectation.refuse()
        case 8:
            options.encode = { CBORValue.map(CBORMap($0.entries + [.init("more", 1)])).encoded }
            expectation.refuse()
        case 9:
            options.encode = { [0xBF] + CBORValue.map($0).encoded.dropFirst() + [0xFF] }
            expectation.refuse()
        case 10:
            options.encode = { [0xB8, 2] + CBORValue.map($0).encoded.dropFirst() }
            expectation.refuse()
        case 11:
            options.encode = { CBORValue.map($0).encoded + [0] }
            expectation.refuse()
        case 12:
            // The signature covers everything in an assertion except itself.
            let (place, mask) = (choices.below(300), choices.byte() | 1)
            options.encode = { map in
                var bytes = CBORValue.map(map).encoded
                bytes[place % bytes.count] ^= mask
                return bytes
            }
            expectation.refuse()
        default: break
        }
    }

    /// The verified values must equal the built ones. Parses the authenticator data again, by offsets alone: 37 octets,
    /// then nothing or one map.
    func compare(_ verified: VerifiedAssertion, _ bytes: [UInt8]) {
        guard let data = try? CBORValue(parsing: bytes).map?["authenticatorData"]?.bytes else {
            fatalError("verified, and not to be read")
        }
        require(data.count >= 37, "authenticator data of \(data.count) octets")
        require(Array(data[0..<32]) == Array(SHA256.hash(data: Array(workshop.appID.utf8))), "hash of the app")
        require(verified.counter == data[33..<37].reduce(0) { $0 << 8 | UInt32($1) }, "counter")
        require(verified.counter > previous, "a counter that did not grow")
        require(verified.extensions == nil || attested, "a map that nothing proves")
        require(verified.unprovenExtensions == nil || !attested, "a proven map that is said to be unproven")
        let extensions = verified.extensions ?? verified.unprovenExtensions
        guard data.count > 37 else { return require(extensions == nil, "a map from nowhere") }
        guard let sent = try? CBORValue(parsing: data[37...]).map, let extensions else {
            fatalError("what follows the 37 octets is not exactly one map, or is lost")
        }
        require(extensions.names == sent.entries.compactMap(\.key.text), "names")
        require(extensions.bundleVersion == sent["apple_bundle_version_01"]?.text, "bundle version")
    }
}
