import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import FuzzSupport

private let workshop = Workshop()
private let clientDataHash = Array(SHA256.hash(data: [1, 2, 3]))
// Created once, because each verifier caches the intermediate.
private let fresh = ReceiptVerifier(trustAnchors: workshop.anchors)
private let stored = ReceiptVerifier(policy: .stored, trustAnchors: workshop.anchors)
/// The leaf certificate of the attested key, which is field 3 of a receipt.
private let leaf: [UInt8] = {
    let device = AppleDevice(
        system: .iOS("27.0"), app: AppleApp(appID: workshop.appID), authority: workshop.authority)
    let object = try? device.attest(workshop.key, clientDataHash: clientDataHash, at: workshop.now)
    guard let object, let statement = try? CBORValue(parsing: object).map?["attStmt"]?.map,
        let leaf = statement["x5c"]?.array?.first?.bytes
    else { fatalError("the test kit made no attestation") }
    return leaf
}()

/// A receipt that the test kit's signer signed, with the fields that the grammar chose. The outcome must be the one that
/// the grammar expects, and verified values must equal the built ones.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var choices = Choices(start, count)
    let plan = ReceiptPlan(&choices)
    guard
        var bytes = try? plan.device.exchangedReceipt(
            leaf: leaf, clientDataHash: clientDataHash, riskMetric: 3, at: workshop.now, options: plan.options)
    else { return 0 }
    if let (place, mask) = plan.flip { bytes[place % bytes.count] ^= mask }
    let expected = ReceiptExpectations(
        appIDs: [workshop.app], keyID: workshop.keyID, clientDataHash: ClientDataHash(clientDataHash),
        environment: .production)
    do throws(AppAttestError) {
        let verifier = plan.maximumAge == nil ? stored : fresh
        let verified = try verifier.verify(bytes, against: expected, at: workshop.now)
        plan.expectation.check(verified: true, "")
        plan.compare(verified.fields)
    } catch {
        plan.expectation.check(verified: false, "\(error)")
    }
    return 0
}

private struct ReceiptPlan {
    typealias Field = AppleReceiptOptions.Field

    var expectation = Expectation()
    var options = AppleReceiptOptions()
    let device = AppleDevice(
        system: .iOS("27.0"), app: AppleApp(appID: workshop.appID), authority: workshop.authority)
    var maximumAge: TimeInterval? = 300
    /// A byte that is changed after everything was signed.
    var flip: (place: Int, mask: UInt8)?
    private var fields: [Field] = []

    init(_ choices: inout Choices) {
        let isAttest = choices.once(in: 2)
        let age = choices.pick(0, 300, 301, -60, -61, 86_400) as Int
        if choices.once(in: 4) { maximumAge = nil }
        fields = [
            Field(6, isAttest ? "ATTEST" : "RECEIPT"), Field(2, workshop.appID), Field(3, leaf),
            Field(4, clientDataHash),
            Field(5, "token"), Field(7, "production"),
            Field(12, Self.text(workshop.now.addingTimeInterval(-Double(age)))),
            Field(21, Self.text(workshop.now.addingTimeInterval(90 * 86400))),
        ]
        if !isAttest {
            fields += [Field(17, "3"), Field(19, Self.text(workshop.now.addingTimeInterval(86400)))]
        }
        for _ in 0..<choices.below(3) { changeField(&choices) }
        let made = fields
        options.fields = { _ in made }
        judgeFields()
        // The model judges the age only if the creation time is still the honest one.
        if self[12] == Array(Self.text(workshop.now.addingTimeInterval(-Double(age))).utf8) {
            expectation.refuse(if: age < -60 || (age > 300 && maximumAge != nil))
        } else {
            expectation.leaveOpen()
        }
        changeEnvelope(&choices)
    }

    /// The time in whole seconds, in Apple's format. The texts are cached, because formatting a date costs more than a verification.
    private static func text(_ date: Date) -> String {
        if let known = texts[date] { return known }
        let text = date.formatted(.iso8601).replacingOccurrences(of: "Z", with: ".000Z")
        texts[date] = text
        return text
    }

    // libFuzzer runs one input after another, on one thread.
    nonisolated(unsafe) private static var texts: [Date: String] = [:]

    private mutating func changeField(_ choices: inout Choices) {
        let place = choices.below(fields.count)
        switch choices.below(8) {
        case 0: fields.reverse()
        case 1: fields.remove(at: place)
        case 2: fields.insert(fields[place], at: choices.below(fields.count))
        case 3: fields.append(Field(choices.below(4096) + 100, choices.bytes(atMost: 60)))
        case 4: fields[place].value = choices.bytes(atMost: 40)
        case 5:
            fields[place].value = Array(
                choices.pick("", "sandbox", "production", "ATTEST", "3", "-1", "2026-09-21T14:13:20Z").utf8)
        case 6: fields[place].type = choices.below(64)
        default: fields.swapAt(place, choices.below(fields.count))
        }
        // A set of fields is never empty, so that the indices below are valid.
        if fields.isEmpty { fields = [Field(6, "ATTEST")] }
    }

    private subscript(type: Int) -> [UInt8]? { fields.first { $0.type == type }?.value }

    /// Applies the rules for the fields, as an independent model. Leaves the outcome open if a time is not an honest one.
    private mutating func judgeFields() {
        expectation.refuse(if: Set(fields.map(\.type)).count != fields.count || fields.count > 64)
        let isReceipt = self[6] == Array("RECEIPT".utf8)
        expectation.refuse(if: !isReceipt && self[6] != Array("ATTEST".utf8))
        for type in [2, 3, 4, 6, 12, 21] + (isReceipt ? [17, 19] : []) { expectation.refuse(if: self[type] == nil) }
        expectation.refuse(if: self[2] != Array(workshop.appID.utf8))
        expectation.refuse(if: self[4] != clientDataHash)
        expectation.refuse(if: self[3] != leaf)
        expectation.refuse(if: self[7].map { $0 != Array("production".utf8) } ?? false)
        if let token = self[5] { expectation.refuse(if: Array(String(decoding: token, as: UTF8.self).utf8) != token) }
        if isReceipt {
            expectation.refuse(if: self[17].map { Int(String(decoding: $0, as: UTF8.self)) ?? -1 < 0 } ?? true)
        }
        for type in [12, 21] + (isReceipt ? [19] : []) {
            let honest = self[type].map { String(decoding: $0, as: UTF8.self) }.map(Self.isHonestTime) ?? false
            if !honest { expectation.leaveOpen() }
        }
        // A change may have put an honest time into the field of another time, such as the expiry (field 21) into the creation time
        // (field 12). The model does not judge such a receipt.
        let times = [12, 21].map { type in self[type].map { String(decoding: $0, as: UTF8.self) } ?? "" }
        if times[0] > "2026-09-21T14:14:20" || times[1] < "2026-12-01" { expectation.leaveOpen() }
    }

    private static func isHonestTime(_ text: String) -> Bool {
        text.utf8.count == 24 && text.hasSuffix(".000Z") && text.hasPrefix("2026-")
    }

    private mutating func changeEnvelope(_ choices: inout Choices) {
        options.chunkSize = choices.pick(1000, 1, 7, 65536)
        options.isIndefinite = !choices.once(in: 4)
        switch choices.below(24) {
        case 1:
            options.signerInfos = choices.pick(0, 2)
            expectation.refuse()
        case 2:
            options.signedAttributes = choices.pick(.unsigned, .signed, .unsignedOfOtherContent, .appleUntil2020())
            expectation.refuse()
        case 3:
            options.algorithm = choices.pick(.sha1, .sha384)
            expectation.refuse()
        case 4:
            options.signedBy = workshop.other
            expectation.refuse()
        case 5:
            options.appended = [choices.byte()]
            expectation.refuse()
        case 6:
            options.namedSerialNumber = [1] + choices.bytes(atMost: 10)
            expectation.refuse()
        case 7:
            options.namedIssuer = DERBuilder.universal(&choices)
            expectation.refuse()
        case 8:
            let form = choices.below(6)
            let root = workshop.other.receiptRoot
            options.certificates = { list in
                switch form {
                case 0: list.reversed()
                case 1: Array(list.prefix(2))
                case 2: Array(list.prefix(1))
                case 3: list + [list[2]]
                case 4: [list[0], list[1], root]
                default: [list[0], list[0], list[1]]
                }
            }
            expectation.refuse(if: form > 1)
        case 9, 10:
            // Bytes outside the content are the BER around the signed part. A change there may be tolerated, but must
            // not change any value.
            flip = (choices.below(16384), choices.byte() | 1)
            expectation.leaveOpen()
        default: break
        }
    }

    /// The verified values must equal the built ones.
    func compare(_ verified: ReceiptFields) {
        require(verified.appID == workshop.appID && verified.attestedCertificate == leaf, "app or certificate")
        require(verified.clientHash == clientDataHash, "client hash")
        require(verified.kind.rawValue == String(decoding: self[6] ?? [], as: UTF8.self), "kind")
        require(verified.environment == self[7].map { String(decoding: $0, as: UTF8.self) }, "environment")
        require(verified.token == self[5].map { String(decoding: $0, as: UTF8.self) }, "token")
        let metric = verified.kind == .receipt ? self[17].flatMap { Int(String(decoding: $0, as: UTF8.self)) } : nil
        require(verified.riskMetric == metric, "metric")
        let known: Set = [2, 3, 4, 5, 6, 7, 12, 17, 19, 21]
        require(
            verified.unknownTypes == fields.map(\.type).filter { !known.contains($0) }.sorted(), "unknown fields")
    }
}
