internal import Bytes
public import Foundation
internal import SwiftASN1

/// The fields of a receipt: an unordered SET of `SEQUENCE { INTEGER type, INTEGER version, OCTET STRING value }`.
///
/// (Apple, *Assessing fraud risk*; field 7 is not documented, but every real receipt has it.)
public struct ReceiptFields: Sendable {
    /// Whether the receipt came with an attestation or from Apple's server.
    public enum Kind: String, Sendable, Hashable {
        /// From an attestation.
        case attest = "ATTEST"
        /// From an exchange with Apple's server. It has a risk metric.
        case receipt = "RECEIPT"
    }

    /// Field 2: the App ID.
    public let appID: String
    /// Field 3: the certificate of the attested key, DER.
    public let attestedCertificate: [UInt8]
    /// Field 4: the client data hash that was attested.
    public let clientHash: [UInt8]
    /// Field 5: a token that only Apple can interpret; nil if absent.
    public let token: String?
    /// Field 6: the source of the receipt.
    public let kind: Kind
    /// Field 7: `sandbox` or `production`; nil if absent. The parser accepts any text.
    public let environment: String?
    /// Field 12: when the receipt was created.
    public let creationTime: Date
    /// Field 17, only in a ``Kind/receipt``: the approximate number of keys that the device had attested for the app in
    /// 30 days.
    public let riskMetric: Int?
    /// Field 19, only in a ``Kind/receipt``: when the receipt may be exchanged again.
    public let notBefore: Date?
    /// Field 21: when the receipt expires.
    public let expirationTime: Date
    /// The types of fields that this parser does not know.
    public let unknownTypes: [Int]
    /// The original texts of the times and the risk metric (fields 12, 17, 19 and 21), by field number.
    public let texts: [Int: String]

    init(parsing content: [UInt8]) throws(AppAttestError) {
        let fields = try RawFields(parsing: content)
        guard let kind = Kind(rawValue: try fields.text(6)) else { throw fields.malformed(6) }
        self.kind = kind
        appID = try fields.text(2)
        attestedCertificate = try fields.required(3)
        clientHash = try fields.required(4)
        token = try fields.optionalText(5)
        environment = try fields.optionalText(7)
        creationTime = try fields.date(12)
        expirationTime = try fields.date(21)
        switch kind {
        case .receipt:
            guard let metric = Int(try fields.text(17)), metric >= 0 else { throw fields.malformed(17) }
            riskMetric = metric
            notBefore = try fields.date(19)
        case .attest:
            riskMetric = nil
            notBefore = nil
        }
        texts = fields.values.filter { [12, 17, 19, 21].contains($0.key) }
            .mapValues { String(decoding: $0, as: UTF8.self) }
        unknownTypes = fields.values.keys.filter { ![2, 3, 4, 5, 6, 7, 12, 17, 19, 21].contains($0) }.sorted()
    }
}

/// The fields by type. A repeated type is refused.
private struct RawFields {
    static let maximumCount = 64

    private(set) var values: [Int: [UInt8]] = [:]

    init(parsing content: [UInt8]) throws(AppAttestError) {
        guard let root = try? DER.parse(content), root.identifier == .set, case .constructed(let nodes) = root.content
        else { throw AppAttestError(.malformedReceipt, .receiptFields, "the payload is not a SET in DER") }
        for node in nodes {
            guard let (type, value) = try? Self.field(node), values.count < Self.maximumCount else {
                throw AppAttestError(.malformedReceipt, .receiptFields, "a field cannot be read, or there are too many")
            }
            guard values.updateValue(value, forKey: type) == nil else {
                throw AppAttestError(.fieldDuplicated, .receiptFields, "field \(type) is there twice")
            }
        }
    }

    private static func field(_ node: ASN1Node) throws -> (Int, [UInt8]) {
        try DER.sequence(node, identifier: .sequence) { nodes in
            let type = try Int(derEncoded: &nodes)
            // The version is undocumented, and 1 in every known receipt. Others are accepted, because a new version
            // need not change the meaning.
            _ = try Int(derEncoded: &nodes)
            return (type, Array(try ASN1OctetString(derEncoded: &nodes).bytes))
        }
    }

    func required(_ type: Int) throws(AppAttestError) -> [UInt8] {
        guard let value = values[type] else {
            throw AppAttestError(.fieldMissing, .receiptFields, "field \(type) is missing")
        }
        return value
    }

    func text(_ type: Int) throws(AppAttestError) -> String {
        let octets = try required(type)
        let text = String(decoding: octets, as: UTF8.self)
        guard text.utf8.elementsEqual(octets) else { throw malformed(type) }
        return text
    }

    func optionalText(_ type: Int) throws(AppAttestError) -> String? {
        values[type] == nil ? nil : try text(type)
    }

    func date(_ type: Int) throws(AppAttestError) -> Date {
        guard let date = RFC3339.date(try text(type)) else { throw malformed(type) }
        return date
    }

    func malformed(_ type: Int) -> AppAttestError {
        AppAttestError(.fieldMalformed, .receiptFields, "field \(type) cannot be read")
    }
}
