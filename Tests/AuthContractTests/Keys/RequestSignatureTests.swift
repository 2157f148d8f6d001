import AuthContract
import Crypto
import Testing

/// Project Wycheproof: what a verifier must accept and must refuse.
@Suite struct WycheproofSignatures {
    struct File: Decodable {
        struct Group: Decodable {
            struct Key: Decodable { let uncompressed: String }
            struct Case: Decodable {
                let tcId: Int
                let comment: String
                let flags: [String]
                let msg: String
                let sig: String
                let result: String
            }
            let publicKey: Key
            let publicKeyDer: String
            let tests: [Case]
        }
        let numberOfTests: Int
        let testGroups: [Group]
    }

    func check(_ file: String, count: Int, read: ([UInt8]) throws -> RequestSignature) throws {
        let vectors = try Vectors.load(file, as: File.self)
        var checked = 0
        for group in vectors.testGroups {
            let key = try DevicePublicKey(hex(group.publicKeyDer))
            #expect(try DevicePublicKey(hex(group.publicKey.uncompressed)) == key)
            for test in group.tests {
                let signature = try? read(hex(test.sig))
                let isValid = signature?.isValid(for: hex(test.msg), by: key) ?? false
                #expect(isValid == (test.result == "valid"), "tcId \(test.tcId): \(test.comment)")
                // A parsed signature stays the same when it is written and parsed again, raw or as DER.
                if let signature, signature.raw.count == 64 {
                    let reread = try RequestSignature(raw: signature.raw)
                    #expect(reread.raw == signature.raw)
                    #expect(try RequestSignature(der: reread.der).raw == signature.raw)
                }
                checked += 1
            }
        }
        #expect(checked == count)
        #expect(vectors.numberOfTests == count)
    }

    @Test func `DER signatures are judged as Wycheproof says`() throws {
        try check("ecdsa_secp256r1_sha256_test", count: 484) { try RequestSignature(der: $0) }
    }

    @Test func `raw signatures are judged as Wycheproof says`() throws {
        try check("ecdsa_secp256r1_sha256_p1363_test", count: 262) { try RequestSignature(raw: $0) }
    }

    /// Strict DER: the parser accepts only the encoding that `der` writes.
    @Test func `a signature that is read is written the same`() throws {
        let vectors = try Vectors.load("ecdsa_secp256r1_sha256_test", as: File.self)
        for test in vectors.testGroups.flatMap(\.tests) {
            guard let signature = try? RequestSignature(der: hex(test.sig)) else { continue }
            #expect(signature.der == hex(test.sig), "tcId \(test.tcId): \(test.comment)")
        }
    }
}

@Suite struct RequestSignatures {
    let privateKey = P256.Signing.PrivateKey()
    let message = Array("message".utf8)

    func sign() throws -> RequestSignature { RequestSignature(try privateKey.signature(for: message)) }

    @Test func `every form is the same signature`() throws {
        let signature = try sign()
        #expect(signature.raw.count == 64)
        for form in [
            try RequestSignature(der: signature.der), try RequestSignature(raw: signature.raw),
            try RequestSignature(base64: signature.base64),
        ] {
            #expect(form.raw == signature.raw)
            #expect(form.isValid(for: message, by: DevicePublicKey(privateKey.publicKey)))
        }
    }

    @Test func `another key or message does not verify`() throws {
        let signature = try sign()
        #expect(!signature.isValid(for: message + [0], by: DevicePublicKey(privateKey.publicKey)))
        #expect(!signature.isValid(for: message, by: DevicePublicKey(P256.Signing.PrivateKey().publicKey)))
    }

    /// Anyone can turn (r, s) into (r, n - s), which is valid too. r stays the same, so it identifies a replay.
    @Test func `the signature with n - s is valid too, and r stays the same`() throws {
        for _ in 0..<20 {
            let signature = try sign()
            let other = try RequestSignature(raw: signature.r + GroupOrder.minus(Array(signature.raw.suffix(32))))
            #expect(other.isValid(for: message, by: DevicePublicKey(privateKey.publicKey)))
            #expect(other.raw != signature.raw)
            #expect(other.base64 != signature.base64)
            #expect(other.r == signature.r)
            #expect(try RequestSignature(der: other.der).r == signature.r)
        }
    }

    @Test func `r has 32 bytes even if it is short`() throws {
        let signature = try RequestSignature(der: [0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x02])
        #expect(Array(signature.r) == [UInt8](repeating: 0, count: 31) + [1])
        #expect(signature.raw.last == 2)
    }

    /// r + n is equivalent to r modulo n. It must be refused, because a replay could otherwise have another r.
    @Test func `r beyond the group order does not verify`() throws {
        for fill: UInt8 in [0x00, 0xFF] {
            let edge = [UInt8](repeating: fill, count: 32)
            let signature = try RequestSignature(raw: edge + (try sign()).raw.suffix(32))
            #expect(!signature.isValid(for: message, by: DevicePublicKey(privateKey.publicKey)))
        }
        let order = try RequestSignature(raw: GroupOrder.bytes + (try sign()).raw.suffix(32))
        #expect(!order.isValid(for: message, by: DevicePublicKey(privateKey.publicKey)))
    }

    @Test(arguments: [33, 34, 48, 64, 100, 127]) func `an integer longer than the order is refused`(length: Int) throws
    {
        let long = [UInt8](repeating: 0x11, count: length)
        for integers in [(long, [UInt8(1)]), ([UInt8(1)], long)] {
            let content =
                [0x02, UInt8(integers.0.count)] + integers.0 + [0x02, UInt8(integers.1.count)] + integers.1
            let head: [UInt8] = content.count < 128 ? [0x30] : [0x30, 0x81]
            #expect(throws: ContractError.self) {
                try RequestSignature(der: head + [UInt8(content.count)] + content)
            }
        }
    }

    @Test(arguments: [0, 1, 63, 65, 128]) func `a raw signature of another length is refused`(count: Int) {
        #expect(throws: ContractError.self) { try RequestSignature(raw: [UInt8](repeating: 1, count: count)) }
    }

    @Test func `the text is bounded and strict`() throws {
        let text = try sign().base64
        for bad in ["", text + "\n", text + text, String(repeating: "A", count: 132), "-" + text.dropFirst()] {
            #expect(throws: ContractError.self) { try RequestSignature(base64: bad) }
        }
    }

    @Test func `a truncated or extended signature is refused`() throws {
        let der = try sign().der
        for length in 0..<der.count {
            #expect(throws: ContractError.self) { try RequestSignature(der: Array(der.prefix(length))) }
        }
        #expect(throws: ContractError.self) { try RequestSignature(der: der + [0]) }
    }

    @Test func `any bytes are a signature or an error`() {
        var random = SeededNumbers(seed: 6)
        let der = (try? sign().der) ?? []
        for _ in 0..<5000 {
            var changed = der
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let signature = try? RequestSignature(der: changed) else { continue }
            #expect(signature.raw.count == 64)
            #expect(signature.der == changed)
        }
    }
}

/// n, the order of the group of P-256.
enum GroupOrder {
    static let bytes = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")

    static func minus(_ subtrahend: [UInt8]) -> [UInt8] {
        var borrow = 0
        var difference: [UInt8] = []
        for (left, right) in zip(bytes.reversed(), subtrahend.reversed()) {
            let digit = Int(left) - Int(right) - borrow
            borrow = digit < 0 ? 1 : 0
            difference.append(UInt8(digit + borrow * 256))
        }
        return difference.reversed()
    }
}
