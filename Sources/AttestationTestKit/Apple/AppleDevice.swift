internal import Bytes
internal import CBOR
internal import Crypto
public import Foundation

/// A simulated Apple device with one app on it: makes attestations, assertions and receipts in the shapes of real ones.
///
///     let authority = try AppleAuthority(from: now)
///     let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
///     var key = AppleAttestKey()
///     let attestation = try device.attest(key, clientDataHash: hash, at: now)
///     let assertion = try device.assert(&key, clientDataHash: hash)
public struct AppleDevice: Sendable {
    /// The operating system.
    public var system: AppleSystem
    /// The app.
    public var app: AppleApp
    /// The authority that attests.
    public var authority: AppleAuthority

    /// A device.
    public init(system: AppleSystem, app: AppleApp, authority: AppleAuthority) {
        self.system = system
        self.app = app
        self.authority = authority
    }

    /// Makes the result of `DCAppAttestService.attestKey(_:clientDataHash:)`: an attestation object.
    public func attest(
        _ key: AppleAttestKey, clientDataHash: [UInt8], at date: Date,
        options: AppleAttestationOptions = AppleAttestationOptions()
    ) throws -> [UInt8] {
        let authenticatorData = attestationData(of: key, options)
        let nonce = Array(SHA256.hash(data: authenticatorData + clientDataHash))
        let leaf = try leaf(for: key, nonce: nonce, at: date, options)
        let receipt =
            try options.madeReceipt
            ?? receipt(leaf: leaf, clientDataHash: clientDataHash, at: date, options: options.receipt)
        let certificates = options.certificates([leaf, authority.intermediate.certificate])
        return options.encode(
            CBORMap([
                .init("fmt", .text(options.format)),
                .init("attStmt", ["x5c": .array(certificates.map { .bytes($0) }), "receipt": .bytes(receipt)]),
                .init("authData", .bytes(authenticatorData)),
            ]))
    }

    /// Makes the result of `DCAppAttestService.generateAssertion(_:clientDataHash:)`: an assertion. Increases the
    /// counter of the key.
    public func assert(
        _ key: inout AppleAttestKey, clientDataHash: [UInt8],
        options: AppleAssertionOptions = AppleAssertionOptions()
    ) throws -> [UInt8] {
        key.counter &+= 1
        let appended = appendedMap.map { CBORValue.map(options.extensions($0)).encoded } ?? []
        let authenticatorData =
            options.authenticatorData(
                head(options.relyingParty, options.flags, options.counter ?? key.counter) + appended)
            + options.movedFromHash
        let nonce = SHA256.hash(data: authenticatorData + clientDataHash)
        let signature = try signature(of: nonce, by: key.privateKey, options.signature)
        return options.encode(
            CBORMap([.init("signature", .bytes(signature)), .init("authenticatorData", .bytes(authenticatorData))]))
    }

    /// Makes the receipt that Apple's server returns in exchange for another one. It has a risk metric.
    public func exchangedReceipt(
        for key: AppleAttestKey, clientDataHash: [UInt8], riskMetric: Int, at date: Date,
        options: AppleReceiptOptions = AppleReceiptOptions()
    ) throws -> [UInt8] {
        let nonce = [UInt8](repeating: 0, count: 32)
        let leaf = try leaf(for: key, nonce: nonce, at: date, AppleAttestationOptions())
        return try exchangedReceipt(
            leaf: leaf, clientDataHash: clientDataHash, riskMetric: riskMetric, at: date, options: options)
    }

    /// Makes the receipt that Apple's server returns in exchange for another one, for the key in this certificate.
    ///
    /// - Parameters:
    ///   - leaf: the first certificate of the key's attestation, DER.
    ///   - clientDataHash: the client data hash of the attestation.
    ///   - riskMetric: Apple's metric in the new receipt.
    ///   - date: the time of the exchange.
    ///   - options: the deviations from a real receipt.
    public func exchangedReceipt(
        leaf: [UInt8], clientDataHash: [UInt8], riskMetric: Int, at date: Date,
        options: AppleReceiptOptions = AppleReceiptOptions()
    ) throws -> [UInt8] {
        var options = options
        options.riskMetric = riskMetric
        return try receipt(leaf: leaf, clientDataHash: clientDataHash, at: date, options: options)
    }

    // MARK: Authenticator data

    private func attestationData(of key: AppleAttestKey, _ options: AppleAttestationOptions) -> [UInt8] {
        let identifier = options.credentialID ?? key.keyID
        let length = options.credentialIDLength ?? UInt16(clamping: identifier.count)
        let coseKey = options.coseKey(
            CBORMap([
                .init(1, 2), .init(3, -7), .init(-1, 1), .init(-2, .bytes(Array(key.x963[1..<33]))),
                .init(-3, .bytes(Array(key.x963[33..<65]))),
            ]))
        let appended = appendedMap.map { CBORValue.map(options.extensions($0)).encoded } ?? []
        let data =
            head(options.relyingParty, options.flags, options.counter) + (options.aaguid ?? app.aaguid)
            + [UInt8(length >> 8), UInt8(length & 0xFF)] + identifier + CBORValue.map(coseKey).encoded + appended
            + options.afterExtensions
        return options.authenticatorData(data)
    }

    private func head(_ relyingParty: String?, _ flags: UInt8?, _ counter: UInt32) -> [UInt8] {
        // Assertions have the flags of attestations, as in real objects. So an assertion announces credential data, but has none.
        let flags = flags ?? (system.appendsExtensions && system.platform == .iOS ? 0xC0 : 0x40)
        let counterBytes = (0..<4).reversed().map { UInt8(truncatingIfNeeded: counter >> (8 * $0)) }
        return Array(SHA256.hash(data: Array((relyingParty ?? app.appID).utf8))) + [flags] + counterBytes
    }

    /// The extension map, with shorter names first as in real maps; nil if the system appends none.
    private var appendedMap: CBORMap? {
        guard system.appendsExtensions else { return nil }
        var entries: [CBORMap.Entry] = []
        if let version = app.bundleVersion { entries.append(.init("apple_bundle_version_01", .text(version))) }
        if let category = app.category {
            let octets = (0..<4).map { UInt8(truncatingIfNeeded: category >> (8 * $0)) }
            entries.append(.init("apple_validation_category_01", .bytes(octets)))
        }
        return CBORMap(entries)
    }

    // MARK: Signatures

    private func signature(
        of nonce: SHA256Digest, by key: P256.Signing.PrivateKey, _ form: AppleAssertionOptions.Signature
    ) throws -> [UInt8] {
        let signature = try form == .ofNonceAsDigest ? key.signature(for: nonce) : key.signature(for: Array(nonce))
        switch form {
        case .der, .ofNonceAsDigest: return Array(signature.derRepresentation)
        case .raw: return Array(signature.rawRepresentation)
        case .trailingByte: return Array(signature.derRepresentation) + [0]
        case .zeroR:
            let s = DERWriter.integer(magnitude: Array(signature.rawRepresentation.suffix(32)))
            return DERWriter.sequence(DERWriter.integer(0), s)
        }
    }
}
