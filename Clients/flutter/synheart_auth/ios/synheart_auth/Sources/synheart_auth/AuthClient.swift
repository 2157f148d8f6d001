internal import AuthContract
internal import Foundation
internal import SynheartAuth

/// The arguments of `configure`.
struct Settings: Hashable {
    let baseUrl: String
    let origins: Set<String>
    let aliases: Set<String>
    let scheme: SignatureScheme
    let rotatesAutomatically: Bool
    let developmentMode: Bool
}

/// Dart's configuration in this process. All engines, isolates and hot restarts share one client. So a second `configure` with
/// the same values changes nothing, and one with other values is refused.
@MainActor
final class Configured {
    /// The configuration of this process.
    static let process = Configured()

    private var settings: Settings?

    /// Applies settings, unless they are applied already. After a failure of `apply`, a later call applies anew.
    ///
    /// - Throws: the error of `apply`, or ``ConfiguredOtherwise``.
    func once(_ settings: Settings, apply: () throws -> Void) throws {
        if let before = self.settings {
            let different = before.differences(from: settings)
            if !different.isEmpty { throw ConfiguredOtherwise(members: different) }
        } else {
            try apply()
            self.settings = settings
        }
    }
}

/// `configure` was called again, with other values.
struct ConfiguredOtherwise: Error {
    let members: [String]

    var message: String { "this app is configured already, with another \(members.joined(separator: ", "))" }
}

extension Settings {
    fileprivate func differences(from other: Settings) -> [String] {
        let same = [
            ("baseUrl", baseUrl == other.baseUrl), ("origins", origins == other.origins),
            ("aliases", aliases == other.aliases), ("scheme", scheme == other.scheme),
            ("rotatesAutomatically", rotatesAutomatically == other.rotatesAutomatically),
            ("developmentMode", developmentMode == other.developmentMode),
        ]
        return same.filter { !$0.1 }.map(\.0)
    }
}

/// The part of the Swift client that the plugin calls. Tests replace it.
protocol AuthClient: DeviceAuthenticating {
    func configure(
        _ settings: Settings, _ customize: (inout SynheartAuth.Configuration) -> Void
    ) throws(SynheartAuthError)
}

extension SynheartAuth: AuthClient {
    func configure(
        _ settings: Settings, _ customize: (inout SynheartAuth.Configuration) -> Void
    ) throws(SynheartAuthError) {
        try configure(Configuration(settings, customize))
    }
}

extension SynheartAuth.Configuration {
    /// A configuration with Apple's key store, storage and attestation, and with these settings.
    init(_ settings: Settings, _ customize: (inout Self) -> Void) throws(SynheartAuthError) {
        try self.init(baseUrl: settings.baseUrl)
        origins = try Self.origins(settings.origins)
        aliases = try Self.origins(settings.aliases)
        scheme = settings.scheme
        rotatesAutomatically = settings.rotatesAutomatically
        if settings.developmentMode { try useDevelopmentMode() }
        customize(&self)
    }

    private static func origins(_ texts: Set<String>) throws(SynheartAuthError) -> Set<RequestOrigin> {
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
