import AttestationProviders
import AuthContract
import AuthServer
import AuthService
import Foundation
import Glibc
import Logging

/// Settings that only the start of the service needs, and their checks. `serve` and `config check` share them, so that both agree.
extension ServiceConfiguration {
    /// Refuses settings that can be read, but that `serve` refuses when it starts.
    func checkStart() async throws(ConfigurationError) {
        _ = try await deviceCheckKey()
        _ = try addedRoots()
        try checkArchive()
        try await checkServers()
        try checkDatabasePlace()
        guard secret(.postgresql) == nil else { return }
        var about = stat()
        let folder = URL(fileURLWithPath: databasePath).deletingLastPathComponent().path
        guard stat(folder, &about) == 0, about.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(ConfigurationKey.database.rawValue, "its folder does not exist")
        }
    }

    /// Refuses an archive folder that does not exist: old events would stay in the log unnoticed.
    func checkArchive() throws(ConfigurationError) {
        guard auditKeepDays != nil, let folder = auditArchive else { return }
        var about = stat()
        guard stat(folder.path, &about) == 0, about.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(ConfigurationKey.auditArchive.rawValue, "\(folder.path) is not a folder")
        }
    }

    /// The job that moves old events of the audit log to files; nil: the settings do not ask for it.
    func archiver(of service: AuthService, logger: Logger) -> AuditArchiver? {
        guard let days = auditKeepDays, let folder = auditArchive else { return nil }
        return AuditArchiver(of: service, to: folder, keepDays: days, logger: logger)
    }

    /// Refuses store servers that do not answer, or that do not give the guarantees that the service needs.
    private func checkServers() async throws(ConfigurationError) {
        guard let postgresql = secret(.postgresql) else { return }
        let findings = await ServerStoreChecks(self, postgresql: postgresql).findings()
        guard let failure = findings.first(where: { $0.level == .failure }) else { return }
        let key = failure.check.hasPrefix("redis") ? ConfigurationKey.redis : .postgresql
        throw ConfigurationError(
            key.rawValue, "\(failure.sentence)" + (failure.advice.map { " (\($0))" } ?? ""))
    }

    /// The key that signs receipt requests; nil: not configured.
    func deviceCheckKey() async throws(ConfigurationError) -> DeviceCheckKey? {
        guard let team = text(.appleTeamID), let id = text(.appleKeyID), let pem = secret(.appleKey) else { return nil }
        do throws(ContractError) {
            return try DeviceCheckKey(teamID: team, keyID: id, pem: pem)
        } catch {
            throw ConfigurationError(ConfigurationKey.appleKey.rawValue, error.description)
        }
    }

    /// The roots that the settings add to the built-in ones. Each call reads the files.
    ///
    /// - Parameter leavesOutExpired: whether to leave out an expired root instead of refusing it, because an expired root must not
    ///   stop the service.
    func addedRoots(leavingOutExpired leavesOutExpired: Bool = false) throws(ConfigurationError) -> AddedRoots {
        var roots = AddedRoots()
        for use in AddedRoot.Use.allCases {
            guard let path = ConfigurationKey(rawValue: use.rawValue).flatMap({ text($0) }) else { continue }
            do {
                let text = String(decoding: try FileContents.read(path, maximum: 256 << 10), as: UTF8.self)
                try roots.add(text, for: use, at: SystemClock().now, leavingOutExpired: leavesOutExpired)
            } catch {
                throw ConfigurationError(use.rawValue, "\(path): \(error)")
            }
        }
        return roots
    }

    /// Refuses a database that is not a file: SQLite would wait forever for the writer of a named pipe.
    func checkDatabasePlace() throws(ConfigurationError) {
        guard secret(.postgresql) == nil else { return }
        var about = stat()
        guard stat(databasePath, &about) == 0, about.st_mode & S_IFMT != S_IFREG else { return }
        throw ConfigurationError(ConfigurationKey.database.rawValue, "is not a regular file. Name another one")
    }
}
