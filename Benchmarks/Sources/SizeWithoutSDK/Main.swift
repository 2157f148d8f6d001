import Crypto
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An app that signs and sends with what it has anyway: what the SDK adds is measured against it.
@main
struct SizeWithoutSDK {
    static func main() async throws {
        let key = P256.Signing.PrivateKey()
        var request = URLRequest(url: URL(string: CommandLine.arguments[1])!)
        let signature = try key.signature(for: Data(request.url!.path.utf8))
        request.setValue(signature.derRepresentation.base64EncodedString(), forHTTPHeaderField: "X-Signature")
        let (data, _) = try await URLSession.shared.data(for: request)
        print(data.count)
    }
}
