import AppAttest
import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing

@Suite struct ReceiptExchangeTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000.5)

    @Test func `a request is the receipt in base64, signed with ES256 by the team's key, for the key's own server`()
        throws
    {
        let key = P256.Signing.PrivateKey()
        let signer = DeviceCheckSigner(teamID: "TEAMID1234", keyID: "KEYID56789", privateKey: key)
        let request = try ReceiptExchangeRequest(
            receipt: [1, 2, 3], environment: .production, signedBy: signer, at: Self.now)
        #expect(request.url == "https://data.appattest.apple.com/v1/attestationData")
        #expect(request.body == Array("AQID".utf8))
        let parts = request.authorization.split(separator: ".")
        try #require(parts.count == 3)
        let decoded = try parts.map { try #require(Base64.url.decode($0)) }
        #expect(try JSONValue(parsing: decoded[0]) == ["alg": "ES256", "kid": "KEYID56789", "typ": "JWT"])
        #expect(try JSONValue(parsing: decoded[1]) == ["iss": "TEAMID1234", "iat": 1_790_000_000])
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: decoded[2])
        #expect(key.publicKey.isValidSignature(signature, for: Array("\(parts[0]).\(parts[1])".utf8)))

        let sandbox = try ReceiptExchangeRequest(
            receipt: [1], environment: .development, signedBy: signer, at: Self.now)
        #expect(sandbox.url == "https://data-development.appattest.apple.com/v1/attestationData")
        let other = try ReceiptExchangeRequest(
            receipt: [1], environment: .production, signedBy: signer, at: Self.now, server: "http://127.0.0.1:8080")
        #expect(other.url == "http://127.0.0.1:8080/v1/attestationData")
        #expect("\(signer)" == "TEAMID1234/KEYID56789" && !String(reflecting: signer).contains("private"))
    }

    @Test func `every answer has its meaning, and one that cannot be read is no receipt`() {
        func answer(_ status: Int, _ body: String = "") -> ReceiptExchangeAnswer {
            ReceiptExchangeAnswer(status: status, body: Data(body.utf8))
        }
        #expect(answer(200, "AQID\n") == .receipt([1, 2, 3]))
        let tooLong = String(repeating: "A", count: ReceiptExchangeAnswer.maximumBody + 4)
        for body in ["", "AQI", "not base64", tooLong] { #expect(answer(200, body) == .unavailable(status: 200)) }
        #expect(answer(304) == .tooEarly)
        #expect(answer(400) == .badReceipt)
        #expect(answer(401) == .unauthorized)
        #expect(answer(404) == .noData)
        #expect(answer(429) == .tooManyRequests)
        #expect(answer(503) == .unavailable(status: 503))
        #expect(answer(302) == .unavailable(status: 302))
    }
}
