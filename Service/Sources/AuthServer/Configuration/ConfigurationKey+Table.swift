internal import AuthService
internal import Logging
package import StrictJSON

/// The description of a setting. The reader, `config show`, the flags' help and the documentation use it.
package struct SettingDescription: Sendable {
    /// The type of the value.
    package let kind: ConfigurationKey.Kind
    /// The default; null: none.
    package let standard: JSONValue
    /// The flag of `serve`; nil if there is none.
    package let flag: String?
    /// Whether SIGHUP applies a new value. Other settings need a restart.
    package let isReloadable: Bool
    /// The effect of the setting.
    package let meaning: String
    /// Whether most operators set this setting. Other settings are documented on a separate page.
    package let isEveryday: Bool

    fileprivate static func everyday(
        _ kind: ConfigurationKey.Kind, default standard: JSONValue = .null, flag: String? = nil, reload: Bool = false,
        _ meaning: String
    ) -> Self {
        Self(
            kind: kind, standard: standard, flag: flag, isReloadable: reload, meaning: meaning, isEveryday: true)
    }

    fileprivate static func advanced(
        _ kind: ConfigurationKey.Kind, default standard: JSONValue = .null, flag: String? = nil, reload: Bool = false,
        _ meaning: String
    ) -> Self {
        Self(
            kind: kind, standard: standard, flag: flag, isReloadable: reload, meaning: meaning, isEveryday: false)
    }
}

extension ConfigurationKey {
    /// The row of this setting in the table of all settings.
    package var row: SettingDescription {
        let (server, protection) = (ServerSettings(), ServiceConfiguration.protection)
        return switch self {
        case .host: .everyday(.text, default: .string(server.host), flag: "--host", "The public listener's address.")
        case .port:
            .everyday(
                .port, default: .integer(server.port), flag: "--port", "The public listener's port; 0 picks a free one."
            )
        case .publicOrigin:
            .everyday(
                .text, flag: "--public-origin", "Where clients reach the service, such as https://auth.example.com.")
        case .otherOrigins:
            .everyday(
                .texts, default: [], "More such origins, at most 16: an old host name, a name inside the cluster.")
        case .tlsCertificate:
            .everyday(
                .text, flag: "--tls-certificate", reload: true,
                "The public listener's certificate chain, PEM, leaf first.")
        case .tlsKey:
            .everyday(
                .text, flag: "--tls-key", reload: true,
                "Its private key, PEM. The service re-reads both when they change.")
        case .trustedProxies:
            .everyday(
                .texts, default: [], flag: "--trusted-proxy",
                "A proxy's address or network, such as 10.0.0.0/8, whose X-Forwarded headers count. May be repeated.")
        case .nat64Prefixes:
            .advanced(
                .texts, default: [], reload: true,
                "Further NAT64 prefixes beside `64:ff9b::/96`, at most 16. An address in one of them counts as the IPv4 address in it."
            )
        case .insecureHTTP:
            .advanced(
                .boolean, default: false, flag: "--insecure-http",
                "Serve another address than loopback without TLS and without trusted proxies.")
        case .maximumConnections:
            .everyday(
                .connections, default: .integer(server.maximumConnections), reload: true,
                "The largest number of connections on each listener, about 28 kB of memory each while idle.")
        case .maximumConnectionsPerAddress:
            .advanced(
                .connections, reload: true,
                "The largest number of connections of one peer address on each listener. Without it: a quarter of all.")
        case .drainSeconds:
            .advanced(
                .pause, default: .integer(server.drain.components.seconds),
                "How long requests are accepted after SIGTERM. With trusted proxies the default is 5.")
        case .shutdownSeconds:
            .everyday(
                .pause, default: .integer(server.shutdown.components.seconds),
                "How long requests in flight may take to finish when the service stops.")
        case .operationsHost:
            .advanced(.text, default: .string(server.operations.host), "The operations listener's address.")
        case .operationsPort:
            .everyday(
                .port, default: .integer(server.operations.port), flag: "--operations-port",
                "The operations listener's port; 0 picks a free one.")
        case .operationsHosts:
            .everyday(
                .texts, default: .array(server.operations.hosts.map { .string($0) }),
                "The names that the operations listener allows in `Host`, without ports.")
        case .operationsTLSCertificate:
            .advanced(.text, reload: true, "The operations listener's certificate chain, PEM, leaf first.")
        case .operationsTLSKey: .advanced(.text, reload: true, "Its private key, PEM.")
        case .operationsInsecureHTTP:
            .advanced(
                .boolean, default: false, "Serve the operations listener on another address than loopback without TLS.")
        case .metricsHost:
            .advanced(
                .text, default: .string(MetricsListenerSettings(port: 0).host),
                "The address of the listener that `metrics.port` opens.")
        case .metricsPort:
            .advanced(.port, "The port of a listener for `/metrics`, `/healthz` and `/readyz` alone, in plain HTTP.")
        case .headerBytes:
            .advanced(
                .integer(1024...65_536), default: .integer(server.limits.headerBlock), reload: true,
                "The largest target and header fields of a request.")
        case .deviceBodyBytes:
            .advanced(
                .integer(1024...1_048_576), default: .integer(server.limits.deviceBody), reload: true,
                "The largest body of a device.")
        case .verifiedBodyBytes:
            .everyday(
                .integer(0...67_108_864), default: .integer(server.limits.verifiedBody), reload: true,
                "The largest decoded body of a request that `/verify` judges.")
        case .allBodiesBytes:
            .advanced(
                .integer(1_048_576...1_099_511_627_776), default: .integer(server.limits.allBodies), reload: true,
                "The largest bodies of all requests in flight together, without the first 16 KiB of each.")
        case .idleSeconds:
            .advanced(
                .deadline, default: .integer(server.deadlines.idle.components.seconds), reload: true,
                "The time between two requests of a connection.")
        case .headSeconds:
            .advanced(
                .deadline, default: .integer(server.deadlines.head.components.seconds), reload: true,
                "The time to the end of a request's head, TLS included.")
        case .bodySeconds:
            .advanced(
                .deadline, default: .integer(server.deadlines.body.components.seconds), reload: true,
                "The time to the end of a request's body.")
        case .enrolmentBurst:
            .advanced(
                .rate, default: .integer(Int(protection.enrolment.burst)), reload: true,
                "Challenges and registrations of one address in a burst.")
        case .enrolmentPerMinute:
            .everyday(
                .rate, default: .integer(Int(protection.enrolment.perMinute)), reload: true,
                "Challenges and registrations of one address in a minute, in the long run.")
        case .failedSignatureBurst:
            .advanced(
                .rate, default: .integer(Int(protection.failedSignatures.burst)), reload: true,
                "Signatures that did not verify, of one device at one address in a burst.")
        case .failedSignaturePerMinute:
            .advanced(
                .rate, default: .integer(Int(protection.failedSignatures.perMinute)), reload: true,
                "The same in a minute, in the long run.")
        case .strangerBurst:
            .advanced(
                .rate, default: .integer(Int(protection.strangers.burst)), reload: true,
                "Unknown devices, apps and credentials that one address names in a burst.")
        case .strangerPerMinute:
            .advanced(
                .rate, default: .integer(Int(protection.strangers.perMinute)), reload: true,
                "The same in a minute, in the long run.")
        case .deviceBurst:
            .advanced(
                .deviceRate, default: .integer(Int(protection.device.burst)), reload: true,
                "Verified requests of one device in a burst.")
        case .devicePerMinute:
            .advanced(
                .deviceRate, default: .integer(Int(protection.device.perMinute)), reload: true,
                "Verified requests of one device in a minute, in the long run.")
        case .rotationBurst:
            .advanced(
                .deviceRate, default: .integer(Int(protection.rotations.burst)), reload: true,
                "Accepted key rotations of one device in a burst. Repeats of the same rotation do not count.")
        case .rotationPerHour:
            .advanced(
                .deviceRate, default: .integer(Int(protection.rotations.perHour.rounded())), reload: true,
                "Accepted key rotations of one device in an hour, in the long run.")
        case .claimsOfOneApp:
            .advanced(
                .integer(2...1_000_000_000), default: .integer(protection.claimsOfOneApp), reload: true,
                "The most live claims of one app. Further requests are refused with 429. A request makes two claims.")
        case .cachedDevices:
            .advanced(.integer(1...10_000_000), default: .integer(protection.cachedDevices), "Cached device rows.")
        case .appleTeamID:
            .advanced(.text, reload: true, "The team of the DeviceCheck key that signs receipt requests.")
        case .appleKeyID: .advanced(.text, reload: true, "The id of the DeviceCheck key.")
        case .appleKey:
            .advanced(.secret, reload: true, "The DeviceCheck key, PEM. All three or none: receipts are not refreshed.")
        case .receiptsPerHour:
            .advanced(
                .rate, default: .integer(ReceiptRefreshPolicy().requestsPerHour), reload: true,
                "Requests to Apple in an hour.")
        case .appleURL:
            .advanced(.text, reload: true, "For tests: another receipt service than Apple's, for both environments.")
        case .googleURL:
            .advanced(.text, reload: true, "For tests: another Play Integrity service than Google's.")
        case .appleRoots:
            .advanced(
                .text, reload: true,
                "A PEM file with roots that are trusted for App Attest attestations beside the built-in one.")
        case .appleReceiptRoots:
            .advanced(
                .text, reload: true,
                "A PEM file with roots that are trusted for App Attest receipts beside the built-in one.")
        case .googleRoots:
            .advanced(
                .text, reload: true,
                "A PEM file with roots that are trusted for Android key attestations beside the built-in ones.")
        case .revocationsDirectory:
            .advanced(
                .text, reload: true,
                "The folder for copies of status lists. Without it: `<database>-revocations`, and none with PostgreSQL."
            )
        case .revocationsMaximumAge:
            .advanced(
                .integer(60...31_622_400), default: .integer(RevocationListState.maximumAge), reload: true,
                "The time since its last confirmation after which a status list is not used.")
        case .auditKeepDays:
            .advanced(
                .integer(7...36_500),
                "Audit events older than this move to files in `audit.archive`. Without it: none do.")
        case .auditArchive:
            .advanced(.text, "The folder of the audit log's archives. `audit verify` reads it.")
        case .devicesForgetDays:
            .advanced(
                .integer(1...36_500),
                "Devices that were deregistered or rejected for longer lose everything but the tombstone. Without it: none do."
            )
        case .database: .everyday(.text, default: "synheart-auth.sqlite", flag: "--database", "The SQLite database.")
        // Secret, because the URLs may contain passwords.
        case .postgresql:
            .advanced(
                .secret, flag: "--postgresql",
                "A PostgreSQL URL, such as postgresql://auth@db.example.com/auth, in place of SQLite.")
        case .redis:
            .advanced(
                .secret, flag: "--redis",
                "A Redis or Valkey URL, such as rediss://redis.example.com, beside PostgreSQL.")
        case .losslessFailover:
            .advanced(
                .boolean, default: false,
                "No replica of PostgreSQL is promoted that may lack an acknowledged commit. Then its failover loses no replay claim."
            )
        case .serviceKey:
            .advanced(
                .secrets,
                "32 bytes in base64, or a list while the key is rotated. Without it: the file `<database>.key`.")
        case .tracingCollector:
            .advanced(
                .text,
                "An OpenTelemetry collector that gets spans by OTLP/HTTP, such as http://127.0.0.1:4318. Without it: no traces."
            )
        case .tracingSample:
            .advanced(
                .share, default: 1,
                "The share of requests that are traced, from 0 to 1, unless a trusted proxy's `traceparent` decides.")
        case .logLevel:
            .everyday(
                .choice(Logger.Level.allCases.map(\.rawValue)), default: "info", flag: "--log-level", reload: true,
                "trace, debug, info, notice, warning, error or critical.")
        }
    }
}

extension ConfigurationKey.Kind {
    fileprivate static let port = integer(0...65_535)
    fileprivate static let connections = integer(1...1_000_000)
    fileprivate static let pause = integer(0...3600)
    fileprivate static let deadline = integer(1...3600)
    fileprivate static let rate = integer(1...1_000_000)
    /// The range of the rate limits for one device. With a higher limit, one device could hold more unexpired replay
    /// claims (records of used nonces and signatures) than the stores are built for.
    fileprivate static let deviceRate = integer(1...10_000)
}
