package import AuthContract
package import AuthService
internal import Foundation
internal import StrictJSON

/// The settings, in the types that the server and AuthService use.
extension ServiceConfiguration {
    static let protection = ProtectionSettings()

    /// The server's settings.
    package var server: ServerSettings {
        get throws(ConfigurationError) {
            var server = ServerSettings()
            server.host = text(.host) ?? server.host
            server.port = number(.port)
            server.tls = try files(.tlsCertificate, .tlsKey, of: "server")
            server.operations.tls = try files(.operationsTLSCertificate, .operationsTLSKey, of: "operations")
            if value(.metricsPort).integer != nil, let host = text(.metricsHost) {
                server.metrics = MetricsListenerSettings(host: host, port: number(.metricsPort))
            }
            server.trustedProxies = try TrustedProxies(texts(.trustedProxies))
            do { server.nat64 = try NAT64Prefixes(texts(.nat64Prefixes)) } catch {
                throw ConfigurationError(ConfigurationKey.nat64Prefixes.rawValue, error.description)
            }
            server.insecureHTTP = flag(.insecureHTTP)
            server.maximumConnections = number(.maximumConnections)
            server.maximumConnectionsOfOnePeer = value(.maximumConnectionsPerAddress).integer.flatMap(
                Int.init(exactly:))
            server.publicOrigin = try publicOrigin?.description
            server.drain = .seconds(number(.drainSeconds))
            server.shutdown = .seconds(number(.shutdownSeconds))
            server.operations.host = text(.operationsHost) ?? server.operations.host
            server.operations.port = number(.operationsPort)
            server.operations.hosts = texts(.operationsHosts)
            server.operations.insecureHTTP = flag(.operationsInsecureHTTP)
            server.limits.headerBlock = number(.headerBytes)
            server.limits.deviceBody = number(.deviceBodyBytes)
            server.limits.verifiedBody = number(.verifiedBodyBytes)
            server.limits.allBodies = number(.allBodiesBytes)
            server.deadlines.idle = .seconds(number(.idleSeconds))
            server.deadlines.head = .seconds(number(.headSeconds))
            server.deadlines.body = .seconds(number(.bodySeconds))
            try server.check()
            return server
        }
    }

    /// The rate limits of the service, the largest number of unexpired replay claims of one app, and the size of the device cache.
    package var protection: ProtectionSettings {
        var protection = Self.protection
        protection.enrolment = rate(.enrolmentBurst, .enrolmentPerMinute)
        protection.failedSignatures = rate(.failedSignatureBurst, .failedSignaturePerMinute)
        protection.strangers = rate(.strangerBurst, .strangerPerMinute)
        protection.device = rate(.deviceBurst, .devicePerMinute)
        protection.rotations = Rate(
            burst: Double(number(.rotationBurst)), perHour: Double(number(.rotationPerHour)))
        protection.claimsOfOneApp = number(.claimsOfOneApp)
        protection.cachedDevices = number(.cachedDevices)
        return protection
    }

    /// The origin at which clients reach the service; nil if it is not set.
    package var publicOrigin: RequestOrigin? {
        get throws(ConfigurationError) {
            guard let text = text(.publicOrigin) else { return nil }
            do {
                return try RequestOrigin(text)
            } catch {
                throw ConfigurationError(ConfigurationKey.publicOrigin.rawValue, error.description)
            }
        }
    }

    /// Further origins at which clients reach the service.
    package var otherOrigins: [RequestOrigin] {
        get throws(ConfigurationError) {
            let texts = texts(.otherOrigins)
            do {
                // A signature may be checked with each origin, so their number is bounded.
                guard texts.count <= 16 else { throw ContractError("must be at most 16 origins") }
                return try texts.map { try RequestOrigin($0) }
            } catch {
                throw ConfigurationError(ConfigurationKey.otherOrigins.rawValue, "\(error)")
            }
        }
    }

    /// All valid origins at which clients reach the service.
    package var origins: [RequestOrigin] {
        AuthService.origins((try? publicOrigin) ?? nil, (try? otherOrigins) ?? [])
    }

    /// The configured service keys, 32 bytes in base64 each; nil if none is configured. The first key is the one that seals.
    package var serviceKey: ServiceKey? {
        get throws(ConfigurationError) {
            guard let texts = secrets(.serviceKey) else { return nil }
            guard let key = Self.serviceKey(texts) else {
                throw ConfigurationError(
                    ConfigurationKey.serviceKey.rawValue,
                    "must be 32 bytes in base64, or a list of at most \(ServiceKey.maximum) different ones")
            }
            return key
        }
    }

    /// Parses service keys; nil if one is malformed or repeated, or if there are none or too many.
    package static func serviceKey(_ texts: [String]) -> ServiceKey? {
        let keys = texts.compactMap { Base64.standard.decode($0) }
        return keys.count == texts.count ? ServiceKey(keys) : nil
    }

    /// The settings of the receipt exchange.
    package var receiptRefresh: ReceiptRefreshPolicy {
        ReceiptRefreshPolicy(requestsPerHour: Int64(number(.receiptsPerHour)))
    }

    /// The maximum age of a list of revoked attestation keys: the seconds since its source last confirmed it. An older list is not used.
    package var revocationsMaximumAge: Int64 { Int64(number(.revocationsMaximumAge)) }

    /// Where spans are sent, and the share of requests that are traced; nil: no collector is configured.
    package var tracing: (url: String, share: Double)? {
        get throws(ConfigurationError) {
            guard let text = text(.tracingCollector) else { return nil }
            // Accept the collector's base URL and its URL for spans: collectors document either one.
            let path = "/v1/traces"
            let base = text.hasSuffix(path) ? String(text.dropLast(path.utf8.count)) : text
            guard let url = URL(string: base), let scheme = url.scheme?.lowercased(),
                scheme == "http" || scheme == "https",
                url.host().map({ !$0.isEmpty }) == true, url.user() == nil, url.query() == nil, url.fragment() == nil
            else {
                throw ConfigurationError(
                    ConfigurationKey.tracingCollector.rawValue,
                    "must be a URL such as http://127.0.0.1:4318, without user, query and fragment")
            }
            let share = ConfigurationKey.Kind.share(value(.tracingSample)) ?? 1
            return ((base.hasSuffix("/") ? String(base.dropLast()) : base) + path, share)
        }
    }

    /// The folder of the audit log's archives; nil: events are not archived.
    package var auditArchive: AuditArchiveFolder? { text(.auditArchive).map { AuditArchiveFolder($0) } }

    /// Whether every replica of PostgreSQL that is promoted has all acknowledged commits.
    package var isFailoverLossless: Bool { value(.losslessFailover).bool ?? false }

    /// The age in days from which audit events are archived; nil: no events are.
    package var auditKeepDays: Int64? { value(.auditKeepDays).integer }

    /// The days after which a deregistered or rejected device loses everything but its tombstone; nil: never.
    package var devicesForgetDays: Int64? { value(.devicesForgetDays).integer }

    /// Refuses settings of stores that exclude each other or are incomplete. Commands that open the store make this check too.
    func checkStores() throws(ConfigurationError) {
        guard secret(.postgresql) != nil else {
            guard secret(.redis) == nil else {
                throw ConfigurationError(
                    ConfigurationKey.redis.rawValue,
                    "needs stores.postgresql: Redis keeps challenges, claims and rates, and devices need a database")
            }
            return
        }
        guard !isGiven(.database) else {
            throw ConfigurationError(
                ConfigurationKey.database.rawValue, "excludes stores.postgresql: it is the one or the other")
        }
        guard secrets(.serviceKey) != nil || isWithheld(.serviceKey) else {
            throw ConfigurationError(
                ConfigurationKey.serviceKey.rawValue,
                "must be given with stores.postgresql: every node has the same key, and none is made")
        }
    }

    /// Refuses inconsistent settings. Reading the settings of the service includes this check, so that a service with inconsistent
    /// settings does not start.
    func checkCombinations() throws(ConfigurationError) {
        guard !texts(.operationsHosts).isEmpty else {
            throw ConfigurationError(
                ConfigurationKey.operationsHosts.rawValue, "must name a host; otherwise the listener answers no request"
            )
        }
        guard !isFailoverLossless || secret(.postgresql) != nil || isWithheld(.postgresql) else {
            throw ConfigurationError(
                ConfigurationKey.losslessFailover.rawValue, "needs stores.postgresql: SQLite has no failover")
        }
        try checkAddresses()
        let apple = [text(.appleTeamID) != nil, text(.appleKeyID) != nil, secret(.appleKey) != nil]
        guard apple.allSatisfy({ $0 == apple[0] }) || apple[0] && apple[1] && isWithheld(.appleKey) else {
            throw ConfigurationError(
                ConfigurationKey.appleKey.rawValue,
                "goes with providers.apple_team_id and providers.apple_key_id: give all three or none")
        }
        guard !isGiven(.auditKeepDays) || isGiven(.auditArchive) else {
            throw ConfigurationError(
                ConfigurationKey.auditKeepDays.rawValue, "needs audit.archive, the folder for the files")
        }
        _ = (try server, try publicOrigin, try otherOrigins, try serviceKey, try tracing)
    }

    /// Refuses two listeners at one address, and `metrics.host` without `metrics.port`.
    private func checkAddresses() throws(ConfigurationError) {
        guard !isGiven(.metricsHost) || isGiven(.metricsPort) else {
            throw ConfigurationError(
                ConfigurationKey.metricsHost.rawValue, "needs metrics.port, without which there is no such listener")
        }
        let listeners: [(host: ConfigurationKey, port: ConfigurationKey)] = [
            (.host, .port), (.operationsHost, .operationsPort), (.metricsHost, .metricsPort),
        ]
        for (index, later) in listeners.enumerated() where number(later.port) != 0 {
            for earlier in listeners.prefix(index)
            where number(earlier.port) == number(later.port) && text(earlier.host) == text(later.host) {
                throw ConfigurationError(later.port.rawValue, "must not be \(earlier.port.rawValue)")
            }
        }
    }

    /// The certificate and the key of a listener: both or neither.
    private func files(
        _ certificate: ConfigurationKey, _ key: ConfigurationKey, of group: String
    ) throws(ConfigurationError) -> TLSFiles? {
        switch (text(certificate), text(key)) {
        case (nil, nil): return nil
        case (let path?, let keyPath?): return TLSFiles(certificate: path, key: keyPath, of: group)
        case (_?, nil): throw ConfigurationError(key.rawValue, "is missing beside \(certificate.rawValue)")
        case (nil, _?): throw ConfigurationError(certificate.rawValue, "is missing beside \(key.rawValue)")
        }
    }

    private func number(_ key: ConfigurationKey) -> Int { value(key).integer.flatMap(Int.init(exactly:)) ?? 0 }

    private func flag(_ key: ConfigurationKey) -> Bool { value(key).bool ?? false }

    private func texts(_ key: ConfigurationKey) -> [String] { (value(key).array ?? []).compactMap(\.string) }

    private func rate(_ burst: ConfigurationKey, _ perMinute: ConfigurationKey) -> Rate {
        Rate(burst: Double(number(burst)), perMinute: Double(number(perMinute)))
    }
}
