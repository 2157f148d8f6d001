import AuthServer
import AuthService
import Logging

/// Re-reads the configuration at each SIGHUP, and applies the settings that can change while the service runs.
struct Reloading {
    /// Reads file, environment and flags.
    let read: @Sendable () throws -> ServiceConfiguration
    let service: AuthService
    let server: AuthServer
    let providers: ReloadableProviders
    let level: LogLevel
    let logger: Logger

    /// Reloads at each signal until the task is cancelled.
    ///
    /// Reloadable settings are compared with the previous reload. Settings that need a restart are compared with the start, so
    /// that the log names them at each reload until the service restarts or the change is reverted.
    func run(from configuration: ServiceConfiguration, at hangups: AsyncStream<Void>) async {
        var current = configuration
        for await _ in hangups {
            do {
                let new = try read()
                try await apply(new, replacing: current, startedWith: configuration)
                current = new
            } catch {
                logger.error(
                    "the configuration was not read again: nothing changed", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Applies a configuration. The steps that can fail run first, so that an unusable configuration changes nothing.
    private func apply(
        _ new: ServiceConfiguration, replacing old: ServiceConfiguration, startedWith started: ServiceConfiguration
    ) async throws {
        let changes = new.changes(from: old)
        let roots = try new.addedRoots(leavingOutExpired: true)
        var settings = try new.server
        settings.maximumConnections = min(settings.maximumConnections, OpenFiles.makeRoomForConnections())
        let replacement = changes.contains(where: \.isProviders) ? try await providers.prepare(new) : nil
        let first = try started.server
        var fixed: [ConfigurationKey] = []
        if (first.tls == nil) != (settings.tls == nil) { fixed += [.tlsCertificate, .tlsKey] }
        if (first.operations.tls == nil) != (settings.operations.tls == nil) {
            fixed += [.operationsTLSCertificate, .operationsTLSKey]
        }
        try server.apply(settings)
        service.apply(new.protection)
        level.current = new.logLevel
        if let replacement { providers.use(replacement) }
        let areTrusted = await trust(roots)

        func needsRestart(_ key: ConfigurationKey) -> Bool {
            !key.isReloadable || fixed.contains(key)
        }
        logger.notice(
            "the configuration was read again",
            metadata: [
                "applied": "\(Self.names(changes.filter { !needsRestart($0) && (areTrusted || !$0.isRoots) }))",
                "needs_restart": "\(Self.names(new.changes(from: started).filter(needsRestart)))",
            ])
    }

    /// Trusts the roots of the new configuration besides the built-in ones, and no others.
    ///
    /// - Returns: false if the audit log could not be written. In that case no root is added, but the roots that the new
    ///   configuration omits are removed.
    private func trust(_ roots: AddedRoots) async -> Bool {
        let old = service.roots.added
        var areTrusted = true
        do {
            try await service.trust(roots)
            if old != roots.added, !roots.added.isEmpty {
                logger.notice("roots were added to the built-in ones", metadata: roots.added.logged)
            }
        } catch {
            areTrusted = false
            logger.error(
                "no roots were added: the audit log could not be written. Send SIGHUP again",
                metadata: ["reason": "\(error)"])
        }
        let removed = old.filter { !roots.added.contains($0) }
        if !removed.isEmpty {
            logger.warning(
                "added roots were removed: devices that attested under them stay registered",
                metadata: ["labels": "\(removed.map(\.label).joined(separator: ", "))"])
        }
        roots.warnOfExpired(logger)
        return areTrusted
    }

    private static func names(_ keys: [ConfigurationKey]) -> String {
        keys.isEmpty ? "nothing" : keys.map(\.rawValue).joined(separator: ", ")
    }
}

extension [AddedRoot] {
    /// The fields of a log line about these roots.
    var logged: Logger.Metadata {
        ["roots": "\(map { "\($0.use.rawValue) \($0.label) \($0.subject)" }.joined(separator: "; "))"]
    }
}

extension AddedRoots {
    /// Logs the expired roots that were left out.
    func warnOfExpired(_ logger: Logger) {
        guard !expired.isEmpty else { return }
        logger.warning("expired roots are not trusted: remove them from the file", metadata: expired.logged)
    }
}

extension ServiceConfiguration {
    /// The lowest level that is logged.
    var logLevel: Logger.Level { text(.logLevel).flatMap(Logger.Level.init(rawValue:)) ?? .info }
}
