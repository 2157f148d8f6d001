internal import Bytes
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
        let content = DERWriter.element(
            [0x31],
            fields.flatMap { field in
                DERWriter.sequence(
                    DERWriter.integer(field.type), DERWriter.integer(1), DERWriter.octetString(field.value))
            })
        let certificates = options.certificates([
            signer.fraudSigner.certificate, signer.fraudIntermediate.certificate, signer.fraudRoot.certificate,
        ])
        let info = try signerInfo(of: content, at: date.addingTimeInterval(options.age), by: signer, options)
        let infos = Array(repeating: info, count: options.signerInfos).flatMap(\.self)
        let parts = AppleBER(isIndefinite: options.isIndefinite)
        let receipt = parts.node(
            [0x30],
            DERWriter.objectIdentifier([1, 2, 840, 113549, 1, 7, 2]),
            parts.node(
                [0xA0],
                parts.node(
                    [0x30], DERWriter.integer(1), DERWriter.set(options.algorithm.digestIdentifier),
                    parts.node(
                        [0x30], DERWriter.objectIdentifier([1, 2, 840, 113549, 1, 7, 1]),
                        parts.node([0xA0], parts.chunks(of: content, size: options.chunkSize))),
                    parts.node([0xA0], certificates.flatMap(\.self)), DERWriter.set(infos))))
        return receipt + options.appended
    }

    private func signerInfo(
        of content: [UInt8], at date: Date, by signer: AppleAuthority, _ options: AppleReceiptOptions
    ) throws -> [UInt8] {
        let attributes = attributes(of: content, at: date, options)
        let signed = options.signedAttributes == .signed ? attributes : content
        return DERWriter.sequence(
            DERWriter.integer(1),
            DERWriter.sequence(
                options.namedIssuer ?? signer.fraudIntermediate.name,
                DERWriter.integer(magnitude: options.namedSerialNumber ?? signer.fraudSigner.serialNumber)),
            options.algorithm.digestIdentifier,
            options.signedAttributes == .none ? [] : [0xA0] + attributes.dropFirst(),
            options.algorithm.identifier,
            DERWriter.octetString(try signer.fraudSigner.key.sign(signed, with: options.algorithm)))
    }

    /// The attributes of SignerInfo, as `SET OF Attribute` (RFC 5652 section 5.3).
    private func attributes(of content: [UInt8], at date: Date, _ options: AppleReceiptOptions) -> [UInt8] {
        let type = attribute(3, DERWriter.objectIdentifier([1, 2, 840, 113549, 1, 7, 1]))
        guard case .appleUntil2020(let delay) = options.signedAttributes else {
            let described = options.signedAttributes == .unsignedOfOtherContent ? content + [0] : content
            return DERWriter.set(type, attribute(4, DERWriter.octetString(options.algorithm.digest(described))))
        }
        let second = Date(timeIntervalSince1970: (date.timeIntervalSince1970).rounded(.down) + delay)
        let algorithms = DERWriter.sequence(
            options.algorithm.digestIdentifier,
            DERWriter.explicit(1, DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, 2])))
        return DERWriter.set(
            type, attribute(5, DERWriter.time(second)), attribute(52, algorithms),
            attribute(4, DERWriter.octetString(options.algorithm.digest(content))))
    }

    private func attribute(_ number: UInt64, _ value: [UInt8]) -> [UInt8] {
        DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 113549, 1, 9, number]), DERWriter.set(value))
    }

    private func receiptFields(
        leaf: [UInt8], clientDataHash: [UInt8], at date: Date, _ options: AppleReceiptOptions
    ) -> [AppleReceiptOptions.Field] {
        let token = Base64.standard.encode(SHA512.hash(data: leaf))
        var fields: [AppleReceiptOptions.Field] = [
            .init(6, options.riskMetric == nil ? "ATTEST" : "RECEIPT"), .init(2, app.appID), .init(3, leaf),
            .init(4, clientDataHash), .init(5, token), .init(7, app.receiptEnvironment),
            .init(12, RFC3339.text(date) ?? ""),
        ]
        if let metric = options.riskMetric {
            // Like Apple's server, put the metric first and do not sort the SET.
            fields.insert(.init(17, String(metric)), at: 0)
            fields.append(.init(19, RFC3339.text(date.addingTimeInterval(86400)) ?? ""))
        }
        fields.append(.init(21, RFC3339.text(date.addingTimeInterval(90 * 86400)) ?? ""))
        return fields
    }
}

/// Writes nodes with indefinite lengths and content in chunks, as Apple's server does, or everything in DER.
private struct AppleBER {
    let isIndefinite: Bool

    func node(_ tag: [UInt8], _ parts: [UInt8]...) -> [UInt8] {
        let content = parts.flatMap(\.self)
        return isIndefinite ? tag + [0x80] + content + [0, 0] : DERWriter.element(tag, content)
    }

    func chunks(of content: [UInt8], size: Int) -> [UInt8] {
        guard isIndefinite else { return DERWriter.octetString(content) }
        let starts = stride(from: 0, to: content.count, by: max(1, size))
        return node(
            [0x24], starts.flatMap { DERWriter.octetString(Array(content[$0..<min($0 + max(1, size), content.count)])) }
        )
    }
}
