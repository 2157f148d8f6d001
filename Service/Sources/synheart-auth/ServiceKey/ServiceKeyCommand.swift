import ArgumentParser
import AuthServer
import AuthService
import Foundation
import StrictJSON

/// The commands for the key that seals secrets in the database.
struct ServiceKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service-key", abstract: "Rotate the key that seals secrets in the database.",
        discussion: """
            The key is service_key of the configuration, else the file <database>.key. To replace it:

              1. Make a key (openssl rand -base64 32) and list it before the present one:
                 as a list in service_key, separated by a comma in
                 SYNHEART_AUTH_SERVICE_KEY, or as the first line of the key file.
              2. Restart the service: of several nodes, every one. A node that does not
                 know the new key refuses all that needs a secret after step 3.
                 Until then, commands with the new list that change something are
                 refused.
              3. Run `service-key rotate`. It may be interrupted and run again.
              4. Remove the old key, and restart the service.

            To go back to the old key, stop the service, list the old key first, run `service-key rotate`, and start the \
            service.
            """,
        subcommands: [Rotate.self])

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seal everything again with the first of the listed keys, and forget the others.",
            discussion: """
                Works on the database itself, beside a service that may be running with the same list of keys.

                  synheart-auth service-key rotate
                  synheart-auth service-key rotate --config /etc/synheart-auth.yaml
                """)
        @OptionGroup var stores: StoreOptions
        @Option(
            help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
        var config: String?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let configuration = try ServiceConfiguration.inEffect(
                    config: config, flags: stores.flags, for: .store)
                let opened = try await OpenedStores.forCommand(configuration)
                let (engine, key) = (opened.engine, opened.key)
                try await closing(engine.close) {
                    let count = try await key.explaining {
                        try await key.rules(engine).rotate(actor: SystemUser.actor, lock: engine.lock)
                    }
                    let name = key.key.checks[0].description
                    try output.done(
                        "sealed \(count) again; \(name) is the only key now",
                        JSONObject([("key", .string(name)), ("resealed", .integer(Int64(count)))]))
                }
            }
        }
    }
}
