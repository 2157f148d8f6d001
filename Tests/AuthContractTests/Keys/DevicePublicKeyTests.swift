import AuthContract
import Crypto
import Foundation
import Testing

@Suite struct DevicePublicKeys {
    let key = P256.Signing.PrivateKey().publicKey
    var spki: [UInt8] { Array(key.derRepresentation) }

    @Test func `a key is read as SPKI and as a point`() throws {
        let fromSPKI = try DevicePublicKey(spki)
        let fromPoint = try DevicePublicKey(key.x963Representation)
        #expect(fromSPKI == fromPoint)
        #expect(fromSPKI.hashValue == fromPoint.hashValue)
        #expect(fromPoint == DevicePublicKey(key))
        #expect(fromPoint.spki == spki)
        #expect(fromPoint.spki.count == 91)
        #expect(try DevicePublicKey(base64: fromPoint.base64) == fromPoint)
    }

    @Test func `different points are different keys`() {
        #expect(DevicePublicKey(key) != DevicePublicKey(P256.Signing.PrivateKey().publicKey))
    }

    /// Object identifiers, tags, lengths, unused bits and the point's form: each of these 27 bytes has one allowed value.
    @Test(arguments: 0..<27) func `another byte before the point is refused`(at index: Int) {
        for bit in 0..<8 {
            var changed = spki
            changed[index] ^= 1 << bit
            #expect(throws: ContractError.self) { try DevicePublicKey(changed) }
        }
    }

    @Test func `a point off the curve is refused`() {
        for index in [27, 58, 59, 90] {
            var changed = spki
            changed[index] ^= 1
            #expect(throws: ContractError.self) { try DevicePublicKey(changed) }
            #expect(throws: ContractError.self) { try DevicePublicKey(changed.suffix(65)) }
        }
        #expect(throws: ContractError.self) { try DevicePublicKey([0x04] + [UInt8](repeating: 0, count: 64)) }
        #expect(throws: ContractError.self) { try DevicePublicKey([0x04] + [UInt8](repeating: 0xFF, count: 64)) }
    }

    @Test func `coordinates beyond the field are refused`() throws {
        // `root` is the y coordinate of the point with x = 0, so it is a square root of the curve's constant b. `field` is
        // the field's prime p: as an x coordinate it also means 0, but it is not reduced modulo p.
        let field = hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
        let root = hex("66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4")
        #expect(throws: Never.self) { try DevicePublicKey([0x04] + [UInt8](repeating: 0, count: 32) + root) }
        #expect(throws: ContractError.self) { try DevicePublicKey([0x04] + field + root) }
    }

    @Test func `another form of key is refused`() {
        let point = Array(key.x963Representation)
        let compressed = Array(key.compressedRepresentation)
        let refused: [[UInt8]] = [
            [], [0x00], [0x04], compressed, Array(key.rawRepresentation), Array(key.compactRepresentation ?? Data()),
            [0x06] + point.dropFirst(), [0x07] + point.dropFirst(), [0x00] + point.dropFirst(),
            // SPKI of the compressed point, as some libraries write it.
            hex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + compressed,
            Array(P384.Signing.PrivateKey().publicKey.derRepresentation),
            Array(P384.Signing.PrivateKey().publicKey.x963Representation),
            Array(P521.Signing.PrivateKey().publicKey.derRepresentation),
            Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation), Array(key.pemRepresentation.utf8),
        ]
        for bytes in refused { #expect(throws: ContractError.self) { try DevicePublicKey(bytes) } }
    }

    @Test func `trailing bytes are refused`() {
        #expect(throws: ContractError.self) { try DevicePublicKey(spki + [0]) }
        #expect(throws: ContractError.self) { try DevicePublicKey(key.x963Representation + [0]) }
    }

    @Test func `a truncated key is refused`() {
        for length in 0..<91 { #expect(throws: ContractError.self) { try DevicePublicKey(spki.prefix(length)) } }
    }

    @Test func `the text is strict base64`() {
        let text = DevicePublicKey(key).base64
        for bad in ["", text + "\n", " " + text, text.replacingOccurrences(of: "=", with: ""), text + "AAAA"] {
            #expect(throws: ContractError.self) { try DevicePublicKey(base64: bad) }
        }
    }

    /// The key of the examples in RFC 9449 (DPoP), and its thumbprint from section 6.1. RFC 7638's own example has an RSA key.
    @Test func `the thumbprint is the one of RFC 7638`() throws {
        let x = Base64.url.decode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs") ?? []
        let y = Base64.url.decode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA") ?? []
        #expect(
            try DevicePublicKey([0x04] + x + y).thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }
}
