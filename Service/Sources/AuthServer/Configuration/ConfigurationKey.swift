internal import Logging

/// Every setting of the service: its name in a file, in the environment and as a flag, its type, its default.
package enum ConfigurationKey: String, Sendable, CaseIterable {
    case host = "server.host"
    case port = "server.port"
    case publicOrigin = "server.public_origin"
    case otherOrigins = "server.other_origins"
    case tlsCertificate = "server.tls_certificate"
    case tlsKey = "server.tls_key"
    case trustedProxies = "server.trusted_proxies"
    case nat64Prefixes = "server.nat64_prefixes"
    case insecureHTTP = "server.insecure_http"
    case maximumConnections = "server.maximum_connections"
    case maximumConnectionsPerAddress = "server.maximum_connections_per_address"
    case drainSeconds = "server.drain_seconds"
    case shutdownSeconds = "server.shutdown_seconds"
    case operationsHost = "operations.host"
    case operationsPort = "operations.port"
    case operationsHosts = "operations.hosts"
    case operationsTLSCertificate = "operations.tls_certificate"
    case operationsTLSKey = "operations.tls_key"
    case operationsInsecureHTTP = "operations.insecure_http"
    case metricsHost = "metrics.host"
    case metricsPort = "metrics.port"
    case headerBytes = "limits.header_bytes"
    case deviceBodyBytes = "limits.device_body_bytes"
    case verifiedBodyBytes = "limits.verified_body_bytes"
    case allBodiesBytes = "limits.all_bodies_bytes"
    case idleSeconds = "limits.idle_seconds"
    case headSeconds = "limits.head_seconds"
    case bodySeconds = "limits.body_seconds"
    case enrolmentBurst = "protection.enrolment_burst"
    case enrolmentPerMinute = "protection.enrolment_per_minute"
    case failedSignatureBurst = "protection.failed_signature_burst"
    case failedSignaturePerMinute = "protection.failed_signature_per_minute"
    case strangerBurst = "protection.stranger_burst"
    case strangerPerMinute = "protection.stranger_per_minute"
    case deviceBurst = "protection.device_burst"
    case devicePerMinute = "protection.device_per_minute"
    case rotationBurst = "protection.rotation_burst"
    case rotationPerHour = "protection.rotation_per_hour"
    case claimsOfOneApp = "protection.claims_of_one_app"
    case cachedDevices = "protection.cached_devices"
    case appleTeamID = "providers.apple_team_id"
    case appleKeyID = "providers.apple_key_id"
    case appleKey = "providers.apple_key"
    case receiptsPerHour = "providers.receipts_per_hour"
    case appleURL = "providers.apple_url"
    case googleURL = "providers.google_url"
    case appleRoots = "providers.apple_roots"
    case appleReceiptRoots = "providers.apple_receipt_roots"
    case googleRoots = "providers.google_roots"
    case revocationsDirectory = "providers.revocations_directory"
    case revocationsMaximumAge = "providers.revocations_maximum_age_seconds"
    case database
    case postgresql = "stores.postgresql"
    case redis = "stores.redis"
    case serviceKey = "service_key"
    case logLevel = "log_level"

    /// The type of a value.
    package enum Kind: Sendable, Hashable {
        case text
        /// Text that is never shown. It may be in a file of its own, named by the same key with `_file` appended.
        case secret
        /// A secret or a list of secrets. In the environment and in a file of its own, commas or white space separate them.
        case secrets
        case boolean
        case integer(ClosedRange<Int64>)
        /// A list of texts. In the environment, commas separate them.
        case texts
        case choice([String])
    }

    /// The type of the value.
    package var kind: Kind {
        switch self {
        case .host, .publicOrigin, .tlsCertificate, .tlsKey, .operationsHost, .operationsTLSCertificate,
            .operationsTLSKey, .metricsHost, .database, .appleTeamID, .appleKeyID, .appleURL, .googleURL,
            .appleRoots, .appleReceiptRoots, .googleRoots, .revocationsDirectory:
            .text
        case .serviceKey: .secrets
        // The URLs contain passwords.
        case .appleKey, .postgresql, .redis: .secret
        case .receiptsPerHour: .integer(1...1_000_000)
        case .revocationsMaximumAge: .integer(60...31_622_400)
        case .insecureHTTP, .operationsInsecureHTTP: .boolean
        case .otherOrigins, .trustedProxies, .nat64Prefixes, .operationsHosts: .texts
        case .port, .operationsPort, .metricsPort: .integer(0...65_535)
        case .maximumConnections, .maximumConnectionsPerAddress: .integer(1...1_000_000)
        case .drainSeconds, .shutdownSeconds: .integer(0...3600)
        case .headerBytes: .integer(1024...65_536)
        case .deviceBodyBytes: .integer(1024...1_048_576)
        case .verifiedBodyBytes: .integer(0...67_108_864)
        case .allBodiesBytes: .integer(1_048_576...1_099_511_627_776)
        case .idleSeconds, .headSeconds, .bodySeconds: .integer(1...3600)
        case .enrolmentBurst, .enrolmentPerMinute, .failedSignatureBurst, .failedSignaturePerMinute, .strangerBurst,
            .strangerPerMinute:
            .integer(1...1_000_000)
        // With a higher value, one device could hold more live claims than the stores are built for.
        case .deviceBurst, .devicePerMinute: .integer(1...10_000)
        case .rotationBurst, .rotationPerHour: .integer(1...10_000)
        case .claimsOfOneApp: .integer(1...1_000_000_000)
        case .cachedDevices: .integer(1...10_000_000)
        case .logLevel: .choice(Logger.Level.allCases.map(\.rawValue))
        }
    }

    /// Whether SIGHUP applies a new value. Other settings need a restart.
    package var isReloadable: Bool {
        switch self {
        case .tlsCertificate, .tlsKey, .operationsTLSCertificate, .operationsTLSKey, .nat64Prefixes,
            .maximumConnections, .maximumConnectionsPerAddress, .headerBytes,
            .deviceBodyBytes, .verifiedBodyBytes, .allBodiesBytes, .idleSeconds, .headSeconds, .bodySeconds,
            .enrolmentBurst, .enrolmentPerMinute, .failedSignatureBurst, .failedSignaturePerMinute, .strangerBurst,
            .strangerPerMinute, .deviceBurst, .devicePerMinute, .rotationBurst, .rotationPerHour, .claimsOfOneApp,
            .appleTeamID, .appleKeyID, .appleKey,
            .receiptsPerHour, .appleURL,
            .googleURL, .appleRoots, .appleReceiptRoots, .googleRoots, .revocationsDirectory, .revocationsMaximumAge,
            .logLevel:
            true
        case .host, .port, .publicOrigin, .otherOrigins, .trustedProxies, .insecureHTTP, .drainSeconds,
            .shutdownSeconds, .operationsHost, .operationsPort, .operationsHosts, .operationsInsecureHTTP,
            .metricsHost, .metricsPort, .cachedDevices, .database,
            .postgresql, .redis,
            .serviceKey:
            false
        }
    }

    /// Whether the key is about Apple's and Google's services.
    package var isProviders: Bool { rawValue.hasPrefix("providers.") }

    /// The environment variable.
    package var variable: String {
        let name =
            switch self {
            case .host, .port, .publicOrigin, .otherOrigins, .tlsCertificate, .tlsKey, .trustedProxies, .nat64Prefixes,
                .insecureHTTP, .maximumConnections, .maximumConnectionsPerAddress, .drainSeconds, .shutdownSeconds:
                String(rawValue.dropFirst("server.".count))
            default: rawValue.split(separator: ".").joined(separator: "_")
            }
        return Self.prefix + name.uppercased()
    }

    /// The prefix of every variable.
    package static let prefix = "SYNHEART_AUTH_"

    /// The flag of `serve`; nil if there is none.
    package var flag: String? {
        switch self {
        case .host: "--host"
        case .port: "--port"
        case .publicOrigin: "--public-origin"
        case .tlsCertificate: "--tls-certificate"
        case .tlsKey: "--tls-key"
        case .trustedProxies: "--trusted-proxy"
        case .insecureHTTP: "--insecure-http"
        case .operationsPort: "--operations-port"
        case .database: "--database"
        case .postgresql: "--postgresql"
        case .redis: "--redis"
        case .logLevel: "--log-level"
        default: nil
        }
    }
}
