import ArgumentParser
import AuthServer
import Foundation

/// The sources of the settings: a file, overridden by the environment, overridden by flags.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The configuration file, .json or .yaml. Default: $SYNHEART_AUTH_CONFIG, else none.") var config:
        String?
    @Option(help: .of(.host)) var host: String?
    @Option(help: .of(.port)) var port: String?
    @Option(name: .customLong("operations-port"), help: .of(.operationsPort)) var operationsPort: String?
    @Option(name: .customLong("public-origin"), help: .of(.publicOrigin)) var publicOrigin: String?
    @Option(name: .customLong("tls-certificate"), help: .of(.tlsCertificate)) var tlsCertificate: String?
    @Option(name: .customLong("tls-key"), help: .of(.tlsKey)) var tlsKey: String?
    @Option(name: .customLong("trusted-proxy"), help: .of(.trustedProxies)) var trustedProxies: [String] = []
    @Flag(name: .customLong("insecure-http"), help: .of(.insecureHTTP)) var insecureHTTP = false
    @Option(name: .customLong("log-level"), help: .of(.logLevel)) var logLevel: String?
    @OptionGroup var stores: StoreOptions

    /// The settings in effect.
    func configuration(for scope: ServiceConfiguration.Scope = .service) throws -> ServiceConfiguration {
        try ServiceConfiguration.inEffect(config: config, flags: flags, for: scope)
    }

    /// The settings in effect, re-read while the service runs.
    ///
    /// - Throws: if the configuration file is not a regular file. A pipe can be read only once: the service would apply a
    ///   configuration without settings.
    func configurationAgain() throws -> ServiceConfiguration {
        if let path = ServiceConfiguration.path(config), FileContents.isReadOnce(path) {
            throw CommandFailure(
                .refused,
                "\(path) is no regular file, and what is no regular file can be read only once. Start the service with a "
                    + "regular file to reload its configuration")
        }
        return try configuration()
    }

    /// The settings in effect. Throws if `serve` would not start with them.
    @discardableResult
    func checkedConfiguration() async throws -> ServiceConfiguration {
        let configuration = try configuration()
        do throws(ConfigurationError) {
            try await configuration.checkStart()
        } catch {
            throw CommandFailure(.refused, error.description)
        }
        return configuration
    }

    private var flags: [ConfigurationKey: [String]] {
        let single: [(ConfigurationKey, String?)] = [
            (.host, host), (.port, port), (.operationsPort, operationsPort), (.publicOrigin, publicOrigin),
            (.tlsCertificate, tlsCertificate), (.tlsKey, tlsKey), (.logLevel, logLevel),
            (.insecureHTTP, insecureHTTP ? "true" : nil),
        ]
        var flags = stores.flags
        flags[.trustedProxies] = trustedProxies
        for (key, value) in single { flags[key] = value.map { [$0] } }
        return flags
    }
}

extension ArgumentHelp {
    /// The help of the flag of a setting.
    static func of(_ key: ConfigurationKey) -> ArgumentHelp { ArgumentHelp(key.row.meaning) }
}

extension ServiceConfiguration {
    /// The configuration file from the flag, else from the environment; nil: none.
    fileprivate static func path(_ flag: String?) -> String? {
        flag ?? ProcessInfo.processInfo.environment[ConfigurationKey.prefix + "CONFIG"]
    }

    /// The settings of the file, the environment of this process and the command line.
    static func inEffect(
        config: String?, flags: [ConfigurationKey: [String]], for scope: Scope
    ) throws -> ServiceConfiguration {
        let environment = ProcessInfo.processInfo.environment
        do {
            let file = try path(config).map { try ConfigurationFile(path: $0) }
            return try ServiceConfiguration(file: file, environment: environment, flags: flags, for: scope)
        } catch let error as ConfigurationError {
            // `serve` and `config` judge the configuration itself, so a bad one is `refused`. Other commands need a valid
            // configuration for their own work, so they report `impossible`.
            throw CommandFailure(scope == .service ? .refused : .impossible, error.description)
        }
    }
}
