internal import AuthContract
internal import Foundation
internal import SynheartAuth

/// What `configure` says.
struct Settings {
    let baseUrl: String
    let origins: [String]
    let aliases: [String]
    let rotatesAutomatically: Bool
    let developmentMode: Bool
}

/// What the plugin calls of the Swift client. Tests have another one.
protocol AuthClient: DeviceAuthenticating {
    func configure(
        _ settings: Settings, _ customize: (inout SynheartAuth.Configuration) -> Void
    ) throws(SynheartAuthError)

    func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, bodyBytes: some Collection<UInt8>,
        asserting: Bool
    ) async throws -> SignedHeaders

    func correctClockSkew(serverTimestamp: Double, appID: String?) async throws
}

extension SynheartAuth: AuthClient {
    func configure(
        _ settings: Settings, _ customize: (inout SynheartAuth.Configuration) -> Void
    ) throws(SynheartAuthError) {
        try configure(try Configuration(settings, customize))
    }
}

extension SynheartAuth.Configuration {
    /// The platform's parts, and what the settings say.
    init(_ settings: Settings, _ customize: (inout Self) -> Void) throws(SynheartAuthError) {
        try self.init(baseUrl: settings.baseUrl)
        origins = try Self.origins(settings.origins)
        aliases = try Self.origins(settings.aliases)
        rotatesAutomatically = settings.rotatesAutomatically
        if settings.developmentMode { try useDevelopmentMode() }
        customize(&self)
    }

    private static func origins(_ texts: [String]) throws(SynheartAuthError) -> Set<RequestOrigin> {
        var origins: Set<RequestOrigin> = []
        for text in texts {
            do throws(ContractError) { origins.insert(try RequestOrigin(text)) } catch {
                throw .fromCode("NOT_CONFIGURED", "not an origin: \(error.description)")
            }
        }
        return origins
    }

    /// A simulator has neither App Attest nor a Secure Enclave, so records and keys are in files.
    private mutating func useDevelopmentMode() throws(SynheartAuthError) {
        #if DEBUG
            let folder = NSHomeDirectory() + "/Library/Application Support/synheart-auth"
            storage = FileStorage(directory: folder)
            keyStore = SoftwareKeyStore(directory: folder + "/keys")
            attestation = DevelopmentAttestation()
        #else
            throw .fromCode("NOT_CONFIGURED", "a release build contains no development mode")
        #endif
    }
}
