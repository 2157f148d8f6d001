import AuthContract
import AuthServer
import AuthService
import Foundation
import SQLiteStores

/// Checks of the database file and the files next to it.
struct StoreChecks {
    let configuration: ServiceConfiguration

    /// The path of the database file, with links resolved. The database's other files are next to it.
    private var path: String {
        (try? SQLiteStores.resolvedPath(configuration.databasePath)) ?? configuration.databasePath
    }
    private var folder: String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

    private static let advisedDiskSpace: Int64 = 1 << 30
    private static let leastDiskSpace: Int64 = 100 << 20

    /// Runs all checks.
    ///
    /// - Returns: whether a service currently has the database open.
    func run(_ report: inout DoctorReport) async -> Bool {
        checkDisk(&report)
        do { try SQLiteStores.requireNotLost(path) } catch {
            report.fail("database", "\(error)", do: "do what it says, or name another file with --database")
            return error.code == .inUse
        }
        let key = checkKey(&report)
        checkClaims(&report)
        do { try configuration.checkDatabasePlace() } catch {
            report.fail("database", "\(path) is not a regular file", do: "name another file with --database")
            return false
        }
        guard FileManager.default.fileExists(atPath: path) else {
            report.warn(
                "database", "there is none at \(path)", do: "`serve` or `apps add` makes it, where it is meant to be")
            return false
        }
        guard let file = checkFile(&report) else { return false }
        // The checks of the content need the key. `doctor` changes nothing, and opening an older file would migrate it.
        guard let key, file.damages.isEmpty, !file.isOlder else { return file.isServed }
        do {
            let stores = try SQLiteStores(path: path, role: .administration)
            if await fits(key, stores, &report) {
                var service = AuthService(stores: stores.all, key: key)
                service.auditTrail.folder = configuration.auditArchive
                await ContentChecks(service: service, stores: stores.all, origins: configuration.origins)
                    .run(&report)
            }
            await stores.close()
        } catch {
            report.fail("database", "\(error)", do: "see above; `readyz` of a running service names what fails")
        }
        return file.isServed
    }

    /// Reports and returns the state of the database file. Returns nil if the file cannot be opened as a store.
    private func checkFile(_ report: inout DoctorReport) -> DatabaseInspection? {
        let file: DatabaseInspection
        do { file = try DatabaseInspection.of(path) } catch {
            report.fail("database", "\(error)", do: "mend what it says, or name another file with --database")
            return nil
        }
        SecretFileChecks.checkMode(of: path, named: "database", &report)
        let users = file.isServed ? "a service has it open" : "no service has it open"
        if !file.damages.isEmpty {
            report.fail(
                "database", "\(path) is damaged: \(file.damages.joined(separator: "; "))",
                do: "stop the service and restore a backup, or try sqlite3's .recover on a copy")
        } else if file.isOlder {
            report.warn(
                "database", "\(path) is of an older version; \(users)",
                do: "make a backup: the next start brings it to this version, and there is no way back")
        } else {
            report.ok("database", "\(path) is whole; \(users)")
        }
        return file
    }

    /// The service key; nil if there is none, or if it cannot be used.
    private func checkKey(_ report: inout DoctorReport) -> ServiceKey? {
        do {
            if let key = try configuration.serviceKey {
                report.ok("service_key", "comes from the configuration")
                return key
            }
        } catch {
            report.fail("service_key", "\(error)", do: "configure the key that the database was made with")
            return nil
        }
        let file = ServiceKeyFile(database: path)
        guard FileManager.default.fileExists(atPath: file.path) else {
            if SQLiteStores.hasDatabase(at: path), configuration.isWithheld(.serviceKey) {
                report.warnWithheld(.serviceKey)
            } else if SQLiteStores.hasDatabase(at: path) {
                report.fail(
                    "service_key", "\(file.path) is not there, and what the database seals cannot be opened without it",
                    do: "put it back from your backup, or configure service_key; a new one would open nothing")
            } else {
                report.ok("service_key", "\(file.path) will be made with the database")
            }
            return nil
        }
        do {
            guard let key = try file.load() else { return nil }
            if SecretFileChecks.checkMode(of: file.path, named: "service_key", &report) {
                report.ok("service_key", "\(file.path) is a key")
            }
            return key
        } catch {
            report.fail("service_key", "\(error)", do: "put the right file back from your backup")
            return nil
        }
    }

    /// Whether the key belongs to the database.
    private func fits(_ key: ServiceKey, _ stores: SQLiteStores, _ report: inout DoctorReport) async -> Bool {
        do {
            try await ServiceKeyRules(store: stores.serviceKeys, key: key).inspect()
            report.ok("database_key", "\(key.checks[0]) is the database's")
            return true
        } catch let error as StoreError {
            report.fail("database", "the key cannot be compared: \(error)", do: "run doctor again")
            return false
        } catch {
            report.fail(
                "service_key", "the key \(error)", do: "nothing starts under this key: configure the database's own")
            return false
        }
    }

    private func checkClaims(_ report: inout DoctorReport) {
        let folder = path + "-claims"
        let files = FileManager.default
        guard files.fileExists(atPath: folder) else {
            guard files.fileExists(atPath: path) else { return report.ok("claims", "\(folder) will be made") }
            return report.warn(
                "claims", "\(folder) is not there",
                do:
                    "before the first start that is right; later its history is lost, and requests of before are refused"
            )
        }
        guard files.isWritableFile(atPath: folder) else {
            return report.fail(
                "claims", "\(folder) cannot be written by this user", do: "give it to the user of the service, mode 700"
            )
        }
        guard !files.fileExists(atPath: folder + "/damaged") else {
            return report.warn(
                "claims", "a damaged segment was put aside as \(folder)/damaged",
                do: "check the disk; remove the file after your inspection")
        }
        report.ok("claims", "\(folder) can be written")
    }

    private func checkDisk(_ report: inout DoctorReport) {
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: folder)
        guard let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value else {
            return report.fail(
                "disk", "\(folder) is not there or cannot be read", do: "make it, or name another file")
        }
        let sentence = "\(free >> 20) MiB are free for \(folder)"
        if free < Self.leastDiskSpace {
            report.fail("disk", sentence, do: "make room: a service without room answers 503")
        } else if free < Self.advisedDiskSpace {
            report.warn("disk", sentence, do: "make room soon: a service without room answers 503")
        } else {
            report.ok("disk", sentence)
        }
    }
}
