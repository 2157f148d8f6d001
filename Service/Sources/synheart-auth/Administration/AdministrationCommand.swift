import ArgumentParser
import AuthServer
import Foundation

/// The options for the store that a command uses, and for its output.
struct AdministrationOptions: ParsableArguments {
    @OptionGroup var stores: StoreOptions
    @Option(help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
    var config: String?
    @Option(
        help: ArgumentHelp(
            "A running service's operations listener, such as http://127.0.0.1:9464, in place of the stores.",
            discussion: "Default: $SYNHEART_AUTH_URL, where no store is named by a flag. Plain http on loopback alone.")
    )
    var url: String?
    @Option(
        name: .customLong("credential-file"),
        help:
            "The file with the credential for --url. Default: $SYNHEART_AUTH_CREDENTIAL, else $SYNHEART_AUTH_CREDENTIAL_FILE."
    )
    var credentialFile: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if url != nil, stores.isGiven || config != nil {
            throw ValidationError(
                "--url excludes --database, --postgresql, --redis and --config: it is the one or the other")
        }
        if credentialFile != nil, stores.isGiven { throw ValidationError("--credential-file goes with --url") }
    }

    /// Opens the admin API that these options select: on the store, or of a running service.
    func open(creating: Bool = false) async throws -> any Administration {
        let environment = ProcessInfo.processInfo.environment
        let variable = environment[ConfigurationKey.prefix + "URL"]
        if let url = url ?? (!stores.isGiven && config == nil ? variable : nil) {
            return try RemoteService(
                url: url,
                credential: CredentialSource.credential(file: credentialFile, environment: environment))
        }
        // Without this check, the command would ignore the credential file and work on the default database, where it has all rights.
        guard credentialFile == nil else {
            throw ValidationError("--credential-file goes with --url, or with \(ConfigurationKey.prefix)URL")
        }
        let configuration = try ServiceConfiguration.inEffect(
            config: config, flags: stores.flags, for: .store)
        return try await LocalStore.open(configuration, creating: creating)
    }
}

/// A command that works on the store, directly or over HTTP.
protocol AdministrationCommand: AsyncParsableCommand {
    var options: AdministrationOptions { get }
    /// Whether the command creates a missing database.
    static var makesDatabase: Bool { get }

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws
}

extension AdministrationCommand {
    static var makesDatabase: Bool { false }

    func run() async throws {
        try await reporting {
            let administration = try await options.open(creating: Self.makesDatabase)
            try await closing(administration.close) { try await perform(administration, options.output) }
        }
    }
}

/// The number of elements that a command lists.
struct LimitOptions: ParsableArguments {
    @Option(help: "The largest number of elements.") var limit = 50

    func validate() throws {
        guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit is from 1 to 1000000") }
    }
}
