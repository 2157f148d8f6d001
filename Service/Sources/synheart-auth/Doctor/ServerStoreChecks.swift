import AuthContract
import AuthServer
import AuthService
import PostgreSQLStores
import RedisStores

/// Checks of the servers that keep the service's state.
struct ServerStoreChecks {
    let postgresql: String
    let redis: String?
    /// The largest number of live replay claims of one app. It is compared with the memory of the Redis servers.
    let claimsOfOneApp: Int
    /// The origins at which clients reach the service.
    let origins: [RequestOrigin]
    /// The folder of the audit log's archives; nil: it is not configured.
    let archive: AuditArchiveFolder?
    let isFailoverLossless: Bool

    init(_ configuration: ServiceConfiguration, postgresql: String) {
        self.postgresql = postgresql
        redis = configuration.secret(.redis)
        claimsOfOneApp = configuration.protection.claimsOfOneApp
        origins = configuration.origins
        (archive, isFailoverLossless) = (configuration.auditArchive, configuration.isFailoverLossless)
    }

    /// Checks whether the service could work with PostgreSQL and Redis.
    func findings() async -> [StoreCheckResult] {
        var options = PostgreSQLStores.Options()
        options.isFailoverLossless = isFailoverLossless
        guard let redis else { return await PostgreSQLStores.diagnose(postgresql, options: options) }
        let place = try? RedisStores.place(of: redis)
        if let place { options.claims = place }
        let database = await PostgreSQLStores.diagnose(postgresql, options: options)
        let others = await RedisStores.diagnose(redis, claimsOfOneApp: claimsOfOneApp)
        // List the check of the claim keeper, the store that keeps the claims, last. If it fails because Redis cannot be used,
        // the reader must see Redis's failure first: choosing another keeper would not help.
        let isKeeper = { (result: StoreCheckResult) in result.check == "claim_keeper" }
        return database.filter { !isKeeper($0) } + others + (place == nil ? [] : database.filter(isKeeper))
    }

    /// Runs all checks. If the key opens the database, checks its content too.
    func run(_ key: ServiceKey?, _ report: inout DoctorReport) async {
        for finding in await findings() { report.add(finding) }
        guard let key,
            let stores = try? await ServerStores.forCommand(postgresql: postgresql, redis: redis, creating: false)
        else { return }
        if stores.postgresql.use.failovers > 0 {
            report.warn(
                "postgresql_primary", "a former primary takes writes, and the nodes use another one",
                do: "stop it, or make it a standby")
        }
        do {
            try await ServiceKeyRules(store: stores.serviceKeys, key: key).inspect()
            report.ok("service_key", "\(key.checks[0]) is the database's")
            var service = AuthService(stores: stores.all, key: key)
            service.auditTrail.folder = archive
            await ContentChecks(service: service, stores: stores.all, origins: origins, hasServerClock: true).run(
                &report)
        } catch let error as StoreError {
            report.fail("postgresql", "the key cannot be compared: \(error)", do: "run doctor again")
        } catch {
            report.fail(
                "service_key", "the key \(error)", do: "nothing starts under this key: configure the right one")
        }
        await stores.close()
    }
}

extension DoctorReport {
    /// Adds the result of a store's own check.
    mutating func add(_ finding: StoreCheckResult) {
        let advice = finding.advice ?? "see the page PostgreSQL and Redis of the documentation"
        switch finding.level {
        case .good: ok(finding.check, finding.sentence)
        case .warning: warn(finding.check, finding.sentence, do: advice)
        case .failure: fail(finding.check, finding.sentence, do: advice)
        }
    }
}
