internal import AuthService
internal import NIOConcurrencyHelpers

/// The current settings of connections and requests. Connections and requests that begin after a change use the new settings.
final class ReloadableSettings: Sendable {
    private let settings: NIOLockedValueBox<ServerSettings>
    let bodies: BodyBudget
    private let heldCertificate = NIOLockedValueBox<TLSCertificate?>(nil)

    init(_ settings: ServerSettings) {
        self.settings = NIOLockedValueBox(settings)
        bodies = BodyBudget(bytes: settings.limits.allBodies)
    }

    /// The certificate of the public listener; nil until the server runs, and if it runs without TLS.
    var certificate: TLSCertificate? {
        get { heldCertificate.withLockedValue { $0 } }
        set { heldCertificate.withLockedValue { $0 = newValue } }
    }

    var limits: RequestLimits { settings.withLockedValue(\.limits) }
    var deadlines: ReadDeadlines { settings.withLockedValue(\.deadlines) }
    var maximumConnections: Int { settings.withLockedValue(\.maximumConnections) }
    var nat64: NAT64Prefixes { settings.withLockedValue(\.nat64) }
    var connectionsOfOnePeer: Int { settings.withLockedValue(\.connectionsOfOnePeer) }

    /// Applies the settings that can change while the server runs.
    ///
    /// - Throws: `ConfigurationError` if the certificate cannot be used. In that case nothing changes.
    func apply(_ new: ServerSettings) throws(ConfigurationError) {
        // Pipes were read once, at the start.
        if let certificate, let files = new.tls, files != certificate.loaded.files || files.canBeReadAgain {
            certificate.use(try TLSCertificate.load(files))
        }
        bodies.resize(to: new.limits.allBodies)
        settings.withLockedValue { settings in
            settings.limits = new.limits
            settings.deadlines = new.deadlines
            settings.maximumConnections = new.maximumConnections
            settings.maximumConnectionsOfOnePeer = new.maximumConnectionsOfOnePeer
            settings.nat64 = new.nat64
        }
    }
}
