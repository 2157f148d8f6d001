import Crypto
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The part that both apps of the size comparison have: it signs and sends a request.
public func signAndSend(to url: String) async throws -> Int {
    guard let address = URL(string: url) else { throw URLError(.badURL) }
    let key = P256.Signing.PrivateKey()
    var request = URLRequest(url: address)
    let signature = try key.signature(for: Data(url.utf8))
    request.setValue(signature.derRepresentation.base64EncodedString(), forHTTPHeaderField: "X-Signature")
    return try await URLSession.shared.data(for: request).0.count
}
