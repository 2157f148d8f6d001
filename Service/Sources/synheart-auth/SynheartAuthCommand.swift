import ArgumentParser
import AuthServer

/// The command line of the auth service.
struct SynheartAuthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "synheart-auth",
        abstract: "Device identity: the auth service, its administration, and tools for attestations.",
        discussion: """
            Try it:
              synheart-auth demo                     # an iPhone's and an Android's life
              synheart-auth apps example > app.json  # an app record to start from
              synheart-auth apps add --file app.json
              synheart-auth serve

            Exit codes:
              0   done
              1   refused or not found
              2   not possible: no database, no connection, output without a reader
              64  the command line is wrong
            """,
        version: Build.version,
        subcommands: [
            ServeCommand.self, ProxyCommand.self, DemoCommand.self, AppsCommand.self, CredentialsCommand.self,
            SigningKeysCommand.self, PolicyCommand.self,
            ConfigCommand.self, DoctorCommand.self, DevicesCommand.self, StatisticsCommand.self, AuditCommand.self,
            WebhooksCommand.self,
            DeviceCommand.self, SimulateCommand.self, ConformanceCommand.self, RecordingsCommand.self,
            AttestationCommand.self, PlayIntegrityCommand.self, ServiceKeyCommand.self, KeeperCommand.self,
            MigrateCommand.self,
            MigrateStoreCommand.self, BackupCommand.self, RestoreCommand.self,
        ])

    /// Runs the command that the arguments name.
    ///
    /// - Returns: the exit code of the process.
    static func runToExitCode() async -> Int32 {
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitCode.success.rawValue
        } catch let interrupted as Interrupted {
            interrupted.end()
        } catch {
            return tell(error)
        }
    }

    /// Prints the parser's message: help and completion scripts to standard output, errors to standard error.
    private static func tell(_ error: any Error) -> Int32 {
        let (code, text) = (exitCode(for: error), fullMessage(for: error))
        guard !text.isEmpty else { return code.rawValue }
        guard code.isSuccess else {
            StandardError.print(text)
            return code.rawValue
        }
        do throws(CommandFailure) {
            try StandardOutput.print(script: text)
            return code.rawValue
        } catch {
            return error.tell()
        }
    }
}
