import Crypto
import Foundation

/// A request that a device signed.
struct SignedRequest: Sendable {
    let deviceID: String
    let challenge: Data
    let signature: Data
    let method: String
    /// The path with its query.
    let path: String
    let body: Data

    /// The bytes that the device signs: everything that the server acts on, in a fixed order, and a challenge, so that a copy of
    /// the request is refused.
    var message: Data {
        let digest = Data(SHA256.hash(data: body)).base64EncodedString()
        return Data("example-server/1\n\(method)\n\(path)\n\(challenge.base64EncodedString())\n\(digest)\n".utf8)
    }

    /// Reads `Device <device id> <challenge> <signature>`, the last two in base64.
    init(authorization: String?, method: String, path: String, body: Data) throws(Refusal) {
        let words = (authorization ?? "").split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 4, words[0] == "Device", let challenge = Data(base64Encoded: words[2]),
            let signature = Data(base64Encoded: words[3])
        else { throw Refusal(.notAuthenticated, "no authorization of a device") }
        deviceID = words[1]
        self.challenge = challenge
        self.signature = signature
        self.method = method
        self.path = path
        self.body = body
    }
}
