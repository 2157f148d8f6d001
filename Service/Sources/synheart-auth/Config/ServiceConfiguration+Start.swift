import AttestationProviders
import AuthContract
import AuthServer
import Foundation
import Glibc

/// What only the start of the service needs of its settings. `serve` and `config check` ask the same, so that they agree.
extension ServiceConfiguration {
    /// Refuses what `serve` would refuse, beyond what reading the settings refuses.
    func checkStart() async throws(ConfigurationError) {
        _ = try await deviceCheckKey()
        try checkDatabasePlace()
        var about = stat()
        let folder = URL(fileURLWithPath: databasePath).deletingLastPathComponent().path
        guard stat(folder, &about) == 0, about.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(ConfigurationKey.database.rawValue, "its folder does not exist")
        }
    }

    /// The key that signs requests about receipts; nil: none is configured.
    func deviceCheckKey() async throws(ConfigurationError) -> DeviceCheckKey? {
        guard let team = text(.appleTeamID), let id = text(.appleKeyID), let pem = secret(.appleKey) else { return nil }
        do throws(ContractError) {
            return try DeviceCheckKey(teamID: team, keyID: id, pem: pem)
        } catch {
            throw ConfigurationError(ConfigurationKey.appleKey.rawValue, error.description)
        }
    }

    /// Refuses a database that is something else than a file: SQLite would wait for ever for the writer of a named pipe.
    func checkDatabasePlace() throws(ConfigurationError) {
        var about = stat()
        guard stat(databasePath, &about) == 0, about.st_mode & S_IFMT != S_IFREG else { return }
        throw ConfigurationError(ConfigurationKey.database.rawValue, "is not a regular file. Name another one")
    }
}
