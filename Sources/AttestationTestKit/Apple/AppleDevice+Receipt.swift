internal import Crypto
internal import Foundation

extension AppleDevice {
    /// A receipt as Apple writes it: SignedData in BER.
    func receipt(
        leaf: [UInt8], clientDataHash: [UInt8], at date: Date, options: AppleReceiptOptions
    ) throws -> [UInt8] {
        let signer = options.signedBy ?? authority
        let fields = options.fields(
            receiptFields(leaf: leaf, clientDataHash: clientDataHash, at: date.addingTimeInterval(options.age), options)
        )
        let content = AppleDER.node(
            [0x31],
            fields.flatMap { field in
                AppleDER.sequence(AppleDER.integer(field.type), AppleDER.integer(1), AppleDER.octets(field.value))
            })
        let certificates = options.certificates([
            signer.fraudSigner.certificate, signer.fraudIntermediate.certificate, signer.fraudRoot.certificate,
        ])
        let info = try signerInfo(of: content, at: date.addingTimeInterval(options.age), by: signer, options)
        let infos = Array(repeating: info, count: options.signerInfos).flatMap(\.self)
        let parts = AppleBER(isIndefinite: options.isIndefinite)
        let receipt = parts.node(
            [0x30],
            AppleDER.identifier([1, 2, 840, 113549, 1, 7, 2]),
            parts.node(
                [0xA0],
                parts.node(
                    [0x30], AppleDER.integer(1), AppleDER.set(options.algorithm.digestIdentifier),
                    parts.node(
                        [0x30], AppleDER.identifier([1, 2, 840, 113549, 1, 7, 1]),
                        parts.node([0xA0], parts.chunks(of: content, size: options.chunkSize))),
                    parts.node([0xA0], certificates.flatMap(\.self)), AppleDER.set(infos))))
        return receipt + options.appended
    }

    private func signerInfo(
        of content: [UInt8], at date: Date, by signer: AppleAuthority, _ options: AppleReceiptOptions
    ) throws -> [UInt8] {
        let attributes = attributes(of: content, at: date, options)
        let signed = options.signedAttributes == .signed ? attributes : content
        return AppleDER.sequence(
            AppleDER.integer(1),
            AppleDER.sequence(
                options.namedIssuer ?? signer.fraudIntermediate.name,
                AppleDER.integer(magnitude: options.namedSerialNumber ?? signer.fraudSigner.serialNumber)),
            options.algorithm.digestIdentifier,
            options.signedAttributes == .none ? [] : [0xA0] + attributes.dropFirst(),
            options.algorithm.identifier,
            AppleDER.octets(try signer.fraudSigner.key.sign(signed, with: options.algorithm)))
    }

    /// SET OF Attribute.
    private func attributes(of content: [UInt8], at date: Date, _ options: AppleReceiptOptions) -> [UInt8] {
        let type = attribute(3, AppleDER.identifier([1, 2, 840, 113549, 1, 7, 1]))
        guard case .appleUntil2020(let delay) = options.signedAttributes else {
            let described = options.signedAttributes == .unsignedOfOtherContent ? content + [0] : content
            return AppleDER.set(type, attribute(4, AppleDER.octets(options.algorithm.digest(described))))
        }
        let second = Date(timeIntervalSince1970: (date.timeIntervalSince1970).rounded(.down) + delay)
        let algorithms = AppleDER.sequence(
            options.algorithm.digestIdentifier, AppleDER.tagged(1, AppleDER.identifier([1, 2, 840, 10045, 4, 3, 2])))
        return AppleDER.set(
            type, attribute(5, AppleDER.time(second)), attribute(52, algorithms),
            attribute(4, AppleDER.octets(options.algorithm.digest(content))))
    }

    private func attribute(_ number: UInt, _ value: [UInt8]) -> [UInt8] {
        AppleDER.sequence(AppleDER.identifier([1, 2, 840, 113549, 1, 9, number]), AppleDER.set(value))
    }

    private func receiptFields(
        leaf: [UInt8], clientDataHash: [UInt8], at date: Date, _ options: AppleReceiptOptions
    ) -> [AppleReceiptOptions.Field] {
        let token = Data(SHA512.hash(data: leaf)).base64EncodedString()
        var fields: [AppleReceiptOptions.Field] = [
            .init(6, options.riskMetric == nil ? "ATTEST" : "RECEIPT"), .init(2, app.appID), .init(3, leaf),
            .init(4, clientDataHash), .init(5, token), .init(7, app.receiptEnvironment), .init(12, date.receiptText),
        ]
        if let metric = options.riskMetric {
            // Apple's server writes the metric first: the SET is in no order.
            fields.insert(.init(17, String(metric)), at: 0)
            fields.append(.init(19, date.addingTimeInterval(86400).receiptText))
        }
        fields.append(.init(21, date.addingTimeInterval(90 * 86400).receiptText))
        return fields
    }
}

/// Lengths and chunks as Apple's server writes them, or DER.
private struct AppleBER {
    let isIndefinite: Bool

    func node(_ tag: [UInt8], _ parts: [UInt8]...) -> [UInt8] {
        let content = parts.flatMap(\.self)
        return isIndefinite ? tag + [0x80] + content + [0, 0] : AppleDER.node(tag, content)
    }

    func chunks(of content: [UInt8], size: Int) -> [UInt8] {
        guard isIndefinite else { return AppleDER.octets(content) }
        let starts = stride(from: 0, to: content.count, by: max(1, size))
        return node(
            [0x24], starts.flatMap { AppleDER.octets(Array(content[$0..<min($0 + max(1, size), content.count)])) })
    }
}
