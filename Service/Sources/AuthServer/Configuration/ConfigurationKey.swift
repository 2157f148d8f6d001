internal import AuthService

/// Every setting of the service by its name in a file. ``row`` has its type, default and meaning.
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
    case tracingCollector = "tracing.otlp"
    case tracingSample = "tracing.sample"
    case auditKeepDays = "audit.keep_days"
    case auditArchive = "audit.archive"
    case devicesForgetDays = "devices.forget_days"
    case database
    case postgresql = "stores.postgresql"
    case redis = "stores.redis"
    case losslessFailover = "stores.lossless_failover"
    case serviceKey = "service_key"
    case logLevel = "log_level"

    /// The type of a value.
    package enum Kind: Sendable, Hashable {
        case text
        /// Text that is never shown. It may be in a file of its own, named by the same key with `_file` appended.
        case secret
        /// A secret or a list of secrets. In a text, such as a variable or a file of its own, commas or white space separate them.
        case secrets
        case boolean
        case integer(ClosedRange<Int64>)
        /// A decimal number from 0 to 1. Environment variables, and YAML numbers other than integers, are read as text.
        case share
        /// A list of texts. In the environment, commas separate them.
        case texts
        case choice([String])
    }

    /// The type of the value.
    package var kind: Kind { row.kind }

    /// Whether SIGHUP applies a new value. Other settings need a restart.
    package var isReloadable: Bool { row.isReloadable }

    /// The flag of `serve`; nil if there is none.
    package var flag: String? { row.flag }

    /// Whether the key is about Apple's and Google's services. A new value replaces the clients and their caches.
    package var isProviders: Bool { rawValue.hasPrefix("providers.") && !isRoots }

    /// Whether the key names a file of root certificates that are trusted in addition to the built-in ones.
    package var isRoots: Bool { AddedRoot.Use(rawValue: rawValue) != nil }

    /// The environment variable.
    package var variable: String {
        let name = rawValue.hasPrefix("server.") ? rawValue.dropFirst("server.".count) : rawValue[...]
        return Self.prefix + name.split(separator: ".").joined(separator: "_").uppercased()
    }

    /// The prefix of every variable.
    package static let prefix = "SYNHEART_AUTH_"
}
