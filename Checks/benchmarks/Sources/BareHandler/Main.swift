import Crypto
import Foundation
import Hummingbird

/// The comparison for the HTTP benchmark: a handler that only verifies a P-256 signature, one of 8,192 at random.
@main
struct BareHandler {
    static func main() async throws {
        let keys = (0..<64).map { _ in P256.Signing.PrivateKey() }
        let signed = try (0..<8192).map { index in
            let message = Array("GET\n/v1/\(index)\n1712345678\n".utf8)
            return (
                key: keys[index % 64].publicKey, message: message,
                signature: try keys[index % 64].signature(for: message)
            )
        }
        let router = Router()
        router.get("/auth/v1/device/status") { _, _ -> HTTPResponse.Status in
            let one = signed[Int.random(in: 0..<signed.count)]
            return one.key.isValidSignature(one.signature, for: one.message) ? .ok : .unauthorized
        }
        let app = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in
                print("ready port=\(channel.localAddress?.port ?? 0)")
                fflush(nil)
            })
        try await app.runService()
    }
}
