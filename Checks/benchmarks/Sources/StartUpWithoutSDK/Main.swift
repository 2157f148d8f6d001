import Crypto
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An app without the SDK: makes a URLSession, reads a key from a file, makes one signature and ends. `Checks/benchmarks/startup`
/// measures its start.
@main
struct StartUpWithoutSDK {
    static func main() async throws {
        let session = URLSession(configuration: .ephemeral)
        let file = URL(fileURLWithPath: CommandLine.arguments[1])
        guard let bytes = try? Data(contentsOf: file) else {
            return try P256.Signing.PrivateKey().rawRepresentation.write(to: file)
        }
        let key = try P256.Signing.PrivateKey(rawRepresentation: bytes)
        print(session, try key.signature(for: Data("GET /".utf8)).rawRepresentation.count)
    }
}
