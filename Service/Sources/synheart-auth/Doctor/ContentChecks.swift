import AuthContract
import AuthServer
import AuthService
import Foundation
import StrictJSON
import SwiftASN1
import X509

/// Checks that need the database's content: audit log, trusted proxies, clock, keys, credentials, origins, apps.
struct ContentChecks {
    let service: AuthService
    let stores: AuthService.Stores
    /// The origins at which clients reach the service.
    let origins: [RequestOrigin]
    /// Whether another check compares this machine's clock with the clock of PostgreSQL, which all nodes share.
    var hasServerClock = false

    private static let day: Int64 = 86_400

    func run(_ report: inout DoctorReport) async {
        do {
            try await checkAudit(&report)
            try await checkProxies(&report)
            try await checkClock(&report)
            try await checkSigningKeys(&report)
            try await checkCredentials(&report)
            let keys = try await stores.signingKeys.signingKeys().map(\.id)
            await OriginChecks(origins: origins, keys: Set(keys)).run(&report)
        } catch {
            report.fail("database", "\(error)", do: "look at the disk and at who else uses the file")
        }
        do {
            let (records, unreadable) = try await service.apps.readableRecords()
            for app in unreadable {
                report.fail(
                    "apps", "the record of \(app) cannot be read: it is damaged, or of a newer version",
                    do: "start the newest version that ran, or restore a backup: this app's requests are refused")
            }
            if records.isEmpty {
                report.warn("apps", "there are none", do: "`apps example` prints a record for `apps add`")
            }
            for record in records { check(record, &report) }
        } catch {
            report.fail(
                "apps", "\(error)", do: "use the service key that the database was made with; it is in your backup")
        }
    }

    private func checkAudit(_ report: inout DoctorReport) async throws {
        switch try await service.auditTrail.verify() {
        case .brokenLink(let sequence):
            report.fail(
                "audit", "event \(sequence) is changed or not there",
                do: "the database was changed: compare it with a backup and with heads kept elsewhere")
        case .archiveMissing(let first):
            report.fail(
                "audit", "the archive that begins with event \(first) cannot be read in the folder of audit.archive",
                do: "name the folder in audit.archive, let this user read it, or put the files of the archive back")
        case .archiveBroken(let first):
            report.fail(
                "audit", "the archive that begins with event \(first) is changed, or not signed by this service",
                do: "compare its file with a copy kept elsewhere")
        case .intact, .cut, .rewritten, .headOfOtherKey:
            report.ok("audit", "the chain has no break; `audit verify --head` also finds a cut end")
        }
    }

    /// Warns about trusted proxies that sent requests without a client address within the last day.
    private func checkProxies(_ report: inout DoctorReport) async throws {
        let since = service.clock.now - Self.day
        let end = try await stores.audit.link(at: nil)?.sequence ?? 0
        let events = try await stores.audit.events(
            app: nil, device: nil, codes: [.securityEvent], after: max(0, end - AdminRoute.searchedEvents), before: nil,
            limit: 1000
        ).map(\.event)
        let named = events.filter { $0.at >= since && $0.detail["event"]?.string == AuthService.unnamedEvent }
        for proxy in Set(named.compactMap { $0.detail["address"]?.string }).sorted() {
            report.warn(
                "trusted_proxies", "\(proxy) sent requests that name no client address: its clients share one limit",
                do: "make it append the client's address to X-Forwarded-For, or take it out of server.trusted_proxies")
        }
    }

    private func checkClock(_ report: inout DoctorReport) async throws {
        switch try await NewestEvents(of: stores.audit, at: service.clock.now) {
        case .agree: report.ok("clock", "it is \(service.clock.now.iso8601), not before any of the newest events")
        case .clockBehind(let seconds) where !hasServerClock:
            report.fail(
                "clock", "this machine's clock is \(seconds) s behind the newest event",
                do: "set the clock, and let NTP keep it: the service is not ready before")
        case .clockBehind(let seconds), .someAhead(let seconds):
            report.warn(
                "clock", "some of the newest events are dated up to \(seconds) s later than now",
                do: "look which machine's clock was ahead, and let NTP keep it")
        }
    }

    private func checkSigningKeys(_ report: inout DoctorReport) async throws {
        guard let newest = try await stores.signingKeys.signingKeys().last else {
            return report.ok("signing_keys", "none yet: the first one is made when it is needed")
        }
        let unreadable: [String]
        do { unreadable = try await service.signingKeys.unreadable() } catch {
            return report.fail(
                "signing_keys", "they cannot be opened", do: "use the service key that the database was made with")
        }
        for id in unreadable {
            report.fail(
                "signing_keys", "\(id) is damaged: its tokens are refused, and it signs none",
                do: "`signing-keys revoke \(id)`, which puts another one in its place")
        }
        let age = (service.clock.now - newest.createdAt) / Self.day
        guard age <= 365 else {
            return report.warn(
                "signing_keys", "the newest is \(age) days old", do: "`signing-keys rotate`; it interrupts nothing")
        }
        report.ok("signing_keys", "the newest is \(age) days old")
    }

    private func checkCredentials(_ report: inout DoctorReport) async throws {
        let now = service.clock.now
        let live = try await service.credentials.list().filter { $0.revokedAt == nil && $0.expiresAt > now }
        guard !live.isEmpty else {
            return report.warn("credentials", "no credential is valid", do: "`credentials create` makes one")
        }
        for credential in live {
            let name = "the \(credential.role.rawValue) credential \(credential.name) (\(credential.id))"
            report.note(name, ending: credential.expiresAt)
        }
        for credential in live where credential.expiresAt - now < 14 * Self.day {
            report.warn(
                "credentials", "\(credential.name) (\(credential.id)) ends \(credential.expiresAt.iso8601)",
                do: "make a new one, and revoke this one when it is in use")
        }
        report.ok("credentials", "neither expired nor revoked: \(live.count)")
    }

    // MARK: Apps

    private func check(_ record: AppRecord, _ report: inout DoctorReport) {
        let name = "app \(record.appID)"
        do { try service.apps.check(record) } catch {
            return report.fail(name, "the record cannot be used: \(error)", do: "mend it with `apps change`")
        }
        let faults = record.sourceFaults
        for fault in faults { report.fail(name, fault, do: "mend it with `apps change`") }
        for (message, advice) in doubts(record) { report.warn(name, message, do: advice) }
        // An element of `trust_anchors` may have several certificates.
        let texts = (record.ios?.trustAnchors ?? []) + (record.android?.trustAnchors ?? [])
        for anchor in texts.flatMap({ (try? PEMDocument.parseMultiple(pemString: $0)) ?? [] }) {
            check(anchor, of: name, &report)
        }
        if faults.isEmpty {
            report.ok(name, "channel \(record.buildChannel.rawValue), mode \(record.mode.rawValue)")
        }
    }

    /// The settings that are allowed, but seldom intended.
    private func doubts(_ record: AppRecord) -> [(message: String, advice: String)] {
        var doubts: [(String, String)] = []
        if !record.enabled {
            doubts.append(("it is disabled", "enable it with `apps change`, where it is meant to be used"))
        }
        if record.mode == .observe {
            doubts.append(
                ("it observes: other services' requests are not refused", "set mode enforce after the roll-out"))
        }
        if record.developmentIntegrityAllowed {
            doubts.append(
                ("any client may register in development mode", "allow that only on a developer's machine"))
        }
        if record.signature.minimumScheme == .two, record.signature.authorities.isEmpty {
            doubts.append(
                (
                    "scheme 2 is required, but no authorities are named: /verify refuses all",
                    "name signature.authorities"
                ))
        }
        if record.ios?.assertionsRequiredOn.isEmpty == false {
            doubts.append(
                (
                    "assertions_required_on protects only paths that the service reads like the server behind it",
                    "list the paths that need no assertion in ios.assertions_required_except instead"
                ))
        }
        guard let android = record.android else { return doubts }
        if android.proof != .playIntegrity, android.keyAttestation.statusList == "none" {
            doubts.append(
                ("no list of revoked attestation keys is asked", "set key_attestation.status_list to Google's list"))
        }
        if android.proof != .keyAttestation, android.playIntegrity.keys.isEmpty,
            android.playIntegrity.serviceAccount == nil
        {
            doubts.append(
                (
                    "Play Integrity tokens can be decoded neither here nor by Google",
                    "give play_integrity.keys or a service_account"
                ))
        }
        return doubts
    }

    private func check(_ anchor: PEMDocument, of name: String, _ report: inout DoctorReport) {
        guard let certificate = try? Certificate(pemDocument: anchor) else { return }
        let until = UnixTime(Int64(certificate.notValidAfter.timeIntervalSince1970))
        report.note("a trust anchor of \(name)", ending: until)
        guard service.clock.now > until else { return }
        report.fail(
            name, "a trust anchor is no longer good since \(until.iso8601)", do: "replace it with `apps change`")
    }
}
