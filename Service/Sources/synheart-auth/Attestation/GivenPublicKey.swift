import AuthContract
import Bytes
import StrictJSON

extension DevicePublicKey {
    /// Reads a key as people store it: PEM, base64 of the SubjectPublicKeyInfo or of the point, or the bytes of either.
    ///
    /// - Parameter place: the option or the file, for the error.
    init(given bytes: [UInt8], by place: String) throws(CommandFailure) {
        let text = String(decoding: bytes, as: UTF8.self)
        if text.contains("-----BEGIN ") {
            let blocks = PEM.blocks(in: text) ?? []
            guard let block = blocks.first, blocks.count == 1, block.label == "PUBLIC KEY" else {
                let found = blocks.isEmpty ? "PEM that cannot be read" : blocks.map(\.label).joined(separator: ", ")
                throw CommandFailure(.impossible, "\(place): expected one PEM block PUBLIC KEY, found \(found)")
            }
            try self.init(readable: block.der, by: place)
        } else {
            let isKey = (try? DevicePublicKey(bytes)) != nil
            try self.init(readable: isKey ? bytes : Base64.decodeLenient(text) ?? bytes, by: place)
        }
    }

    private init(readable bytes: [UInt8], by place: String) throws(CommandFailure) {
        do throws(ContractError) { try self.init(bytes) } catch {
            throw CommandFailure(
                .impossible,
                """
                \(place): expected a P-256 key, as SubjectPublicKeyInfo (91 bytes) or uncompressed point (65 bytes), in PEM or \
                base64; found \(bytes.count) bytes that are neither
                """)
        }
    }

    /// The single-line forms of the key: the thumbprint (RFC 7638), and the SubjectPublicKeyInfo in base64.
    var forms: [(String, JSONValue)] { [("thumbprint", .string(thumbprint)), ("der", .string(base64))] }

    /// The SubjectPublicKeyInfo in PEM.
    var pem: String { PEM.encode(spki, label: "PUBLIC KEY") }
}
