internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var credentialChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A credential is read unchanged by its id") { stores in
                let samples = try Samples(stores)
                let (one, other) = (samples.credential(), samples.credential(role: .admin, scope: .allApps))
                let gateways = ForwardedBodies.allCases.map { samples.credential(bodies: $0) }
                for credential in [one, other] + gateways {
                    try await stores.add(credential, samples)
                }
                for gateway in gateways {
                    try expect(try await stores.credentials.credential(gateway.id), is: gateway, "a gateway's")
                }
                try expect(try await stores.credentials.credential(one.id), is: one, "the credential")
                try expect(try await stores.credentials.credential(other.id), is: other, "the one without apps")
                try expect(try await stores.credentials.credential(samples.text()), is: nil, "one that is not there")
                try expect(
                    try await stores.codes(samples), is: .init(repeating: .credentialCreated, count: 5), "the log")
            },
            ConformanceCheck("Credentials are listed newest first, in whatever order they were added") { stores in
                let samples = try Samples(stores)
                let credentials = [20, 0, 10].map { samples.credential(createdAt: stores.now - $0) }
                for credential in credentials {
                    try await stores.add(credential, samples)
                }
                let ids = Set(credentials.map(\.id))
                let listed = try await stores.credentials.credentials().filter { ids.contains($0.id) }
                try expect(listed, is: [credentials[1], credentials[2], credentials[0]], "the list")
            },
            ConformanceCheck("A second credential with the same id is refused") { stores in
                let samples = try Samples(stores)
                let first = samples.credential()
                try await stores.add(first, samples)
                let second = samples.credential(id: first.id)
                do {
                    try await stores.add(second, samples)
                    throw Unmet(found: "the second insertion succeeded")
                } catch is StoreError {}
                try expect(try await stores.credentials.credential(first.id), is: first, "the credential")
                try expect(try await stores.codes(samples), is: [.credentialCreated], "the log")
            },
            ConformanceCheck("Of 64 revocations of one credential one succeeds and stays") { stores in
                let samples = try Samples(stores)
                let credential = samples.credential()
                try await stores.add(credential, samples)
                let revoked = try await concurrently(64) { number in
                    try await stores.credentials.save(
                        samples.revocation(of: credential, at: stores.now + Int64(number)))
                }
                try expect(revoked.count { $0 }, is: 1, "how many revocations took effect")
                let winner = try unwrap(revoked.firstIndex(of: true), "winner")
                var wanted = credential
                wanted.revokedAt = stores.now + Int64(winner)
                try expect(try await stores.credentials.credential(credential.id), is: wanted, "the credential")
                try expect(try await stores.codes(samples), is: [.credentialRevoked, .credentialCreated], "the log")
            },
            ConformanceCheck("An unknown credential is not revoked") { stores in
                let samples = try Samples(stores)
                let revocation = samples.revocation(of: samples.credential(), at: stores.now)
                try expect(try await !stores.credentials.save(revocation), "it was revoked")
                try expect(try await stores.codes(samples), is: [], "the log")
            },
            ConformanceCheck("A credential is changed or removed only if it is unchanged since it was read") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                try await stores.provide(other.app, samples)
                let (credential, bystander) = (samples.credential(), samples.credential())
                for credential in [credential, bystander] { try await stores.add(credential, samples) }
                var (widened, ended) = (credential, credential)
                widened.scope = .apps([samples.app, other.app])
                ended.revokedAt = stores.now
                for outdated in [widened, ended] {
                    for after in [credential, nil] {
                        let change = CredentialChange(
                            from: outdated, to: after, recording: samples.event(.credentialNarrowed))
                        try expect(try await !stores.credentials.save(change), "an outdated change was saved")
                    }
                }
                try expect(try await stores.credentials.credential(credential.id), is: credential, "the credential")
                let wider = CredentialChange(
                    from: credential, to: widened, recording: samples.event(.credentialNarrowed))
                try expect(try await stores.credentials.save(wider), "the change was not saved")
                try expect(try await stores.credentials.credential(credential.id), is: widened, "after the change")
                let removal = CredentialChange(from: widened, to: nil, recording: nil)
                try expect(try await stores.credentials.save(removal), "the removal was not saved")
                try expect(try await !stores.credentials.save(removal), "the removal was saved twice")
                try expect(try await stores.credentials.credential(credential.id), is: nil, "after the removal")
                try expect(try await stores.credentials.credential(bystander.id), is: bystander, "another one")
                let wanted: [AuditEvent.Code] = [.credentialNarrowed, .credentialCreated, .credentialCreated]
                try expect(try await stores.codes(samples), is: wanted, "the log")
            },
            ConformanceCheck("A credential for an unknown app is refused") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                try await stores.provide(samples.app, samples)
                let credential = samples.credential(scope: .apps([samples.app, other.app]))
                let inserted = try await stores.credentials.insert(
                    credential, recording: samples.event(.credentialCreated))
                try expect(!inserted, "it was inserted")
                try expect(try await stores.credentials.credential(credential.id), is: nil, "the credential")
                try expect(try await stores.codes(samples), is: [], "the log")
            },
            ConformanceCheck("Removing an app revokes its credentials and erases its recordings and pending proofs") {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                let alone = samples.credential()
                let shared = samples.credential(scope: .apps([samples.app, other.app]))
                let all = samples.credential(role: .admin, scope: .allApps)
                for credential in [alone, shared, all] { try await stores.add(credential, samples) }
                for one in [samples, other] {
                    try await stores.recordings.keep(one.refusal(), within: .standard)
                    try await stores.pendingProofs.keep(one.proof())
                }
                try await stores.remove(samples.app, samples)
                let ended = try await stores.credentials.credential(alone.id)
                try expect(ended?.revokedAt, is: stores.now, "when the app's own credential ended")
                let narrowed = try await stores.credentials.credential(shared.id)
                try expect(narrowed?.scope, is: .apps([other.app]), "the apps of a shared credential")
                try expect(narrowed?.revokedAt, is: nil, "when a shared credential ended")
                try expect(try await stores.credentials.credential(all.id), is: all, "a credential for all apps")
                for (one, count) in [(samples, 0), (other, 1)] {
                    let kept = try await stores.recordings.recordings(of: one.app, before: nil, limit: 10)
                    try expect(kept.count, is: count, "the number of refusals")
                    try expect(try await stores.proofs(of: one, pageOf: 1000).count, is: count, "the number of proofs")
                }
                let codes = try await stores.codes(samples)
                try expect(codes.count { $0 == .appRemoved }, is: 1, "the removals in the log")
                try expect(codes.count { $0 == .credentialRevoked }, is: 1, "the revocations in the log")
                try expect(codes.count { $0 == .credentialNarrowed }, is: 1, "the narrowed credentials in the log")
                try await stores.recordings.keep(samples.refusal(), within: .standard)
                let late = try await stores.recordings.recordings(of: samples.app, before: nil, limit: 10)
                try expect(late, is: [], "a refusal that is kept after the removal")
            },
            ConformanceCheck("An app is removed only with every credential that names it") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                let (known, late) = (samples.credential(), samples.credential(scope: .apps([samples.app, other.app])))
                for credential in [known, late] { try await stores.add(credential, samples) }
                var outdated = late
                outdated.scope = .apps([samples.app])
                let all = samples.credential(role: .admin, scope: .allApps)
                try await stores.add(all, samples)
                for credentials in [[], [known], [known, outdated], [known, late, all]] {
                    let changes = credentials.map { samples.revocation(of: $0, at: stores.now) }
                    let removal = samples.removal(of: Samples.record(of: samples.app), changing: changes)
                    try expect(try await stores.apps.save(removal), is: .conflict, "removing with \(changes.count)")
                }
                for credential in [known, late, all] {
                    let stored = try await stores.credentials.credential(credential.id)
                    try expect(stored, is: credential, "a credential after the refused removals")
                }
                try expect(try await stores.apps.app(samples.app) != nil, "the app is gone")
                try expect(try await !stores.codes(samples).contains(.appRemoved), "a removal is in the log")
                try await stores.remove(samples.app, samples)
            },
            ConformanceCheck("A credential is revoked even if its apps are removed concurrently") { stores in
                for round in 0..<64 {
                    let (samples, other) = (try Samples(stores), try Samples(stores))
                    for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                    let credential = samples.credential(scope: .apps([samples.app, other.app]))
                    try await stores.add(credential, samples)
                    async let first: Void = stores.remove(samples.app, samples)
                    // In even rounds, both apps are removed concurrently. In odd rounds, one app is removed while the credential is
                    // revoked.
                    async let second: Void =
                        round.isMultiple(of: 2)
                        ? stores.remove(other.app, other) : stores.revoke(credential.id, samples)
                    try await first
                    try await second
                    let stored = try await stores.credentials.credential(credential.id)
                    try expect(stored?.revokedAt != nil, "the credential goes on")
                }
            },
            ConformanceCheck("A credential inserted while its app is removed is refused or revoked") { stores in
                for _ in 0..<64 {
                    let samples = try Samples(stores)
                    try await stores.provide(samples.app, samples)
                    let credential = samples.credential()
                    async let inserted = stores.credentials.insert(
                        credential, recording: samples.event(.credentialCreated))
                    async let removed: Void = stores.remove(samples.app, samples)
                    try await removed
                    let isInserted = try await inserted
                    let stored = try await stores.credentials.credential(credential.id)
                    try expect(stored != nil, is: isInserted, "whether the credential is there")
                    try expect(stored?.revokedAt != nil, is: isInserted, "whether it has ended")
                }
            },
        ]
    }
}

extension Samples {
    fileprivate func text() -> String { Hexadecimal.encode(bytes(8)) }

    fileprivate func revocation(of credential: Credential, at time: UnixTime) -> CredentialChange {
        var after = credential
        after.revokedAt = time
        return CredentialChange(from: credential, to: after, recording: event(.credentialRevoked))
    }

    /// The change of a credential that loses an app: the credential is narrowed to its other apps, or revoked if it
    /// has no others. Returns nil if the credential does not name the app or is already revoked.
    fileprivate func loss(of app: AppID, to credential: Credential) -> CredentialChange? {
        let rest = credential.scope.named.subtracting([app])
        guard credential.loses(app) else { return nil }
        if rest.isEmpty { return revocation(of: credential, at: now) }
        var after = credential
        after.scope = .apps(rest)
        return CredentialChange(from: credential, to: after, recording: event(.credentialNarrowed))
    }

    fileprivate func credential(
        id: String? = nil, role: CredentialRole = .service, scope: CredentialScope? = nil, createdAt: UnixTime? = nil,
        expiresAt: UnixTime? = nil, revokedAt: UnixTime? = nil, bodies: ForwardedBodies = .headers
    ) -> Credential {
        Credential(
            id: id ?? text(), name: "é 🔑 \"name\"", role: role, scope: scope ?? .apps([app]), secretHash: bytes(),
            createdAt: createdAt ?? now, expiresAt: expiresAt ?? now + 3600, revokedAt: revokedAt, bodies: bodies)
    }
}

extension StoresUnderTest {
    /// Inserts a credential, and adds its apps.
    fileprivate func add(_ credential: Credential, _ samples: Samples) async throws {
        for app in credential.scope.named { try await provide(app, samples) }
        let inserted = try await credentials.insert(credential, recording: samples.event(.credentialCreated))
        try expect(inserted, "the credential was not inserted")
    }

    /// Removes an app. Reads the credentials and tries again whenever another change was faster.
    fileprivate func remove(_ app: AppID, _ samples: Samples) async throws {
        while true {
            let known = try unwrap(try await apps.app(app), "app to remove")
            let changes = try await credentials.credentials().compactMap { samples.loss(of: app, to: $0) }
            switch try await apps.save(samples.removal(of: known, changing: changes)) {
            case .saved: return
            case .conflict: continue
            case .hasDevices: throw Unmet(found: "the app has devices")
            }
        }
    }

    /// Revokes a credential unless it is already revoked. Tries again whenever another change was faster.
    fileprivate func revoke(_ id: String, _ samples: Samples) async throws {
        while true {
            let credential = try unwrap(try await credentials.credential(id), "credential to revoke")
            guard credential.revokedAt == nil else { return }
            if try await credentials.save(samples.revocation(of: credential, at: now)) { return }
        }
    }

    /// The codes of the events of the check's app, newest first.
    func codes(_ samples: Samples) async throws -> [AuditEvent.Code] {
        try await audit.events(app: samples.app, device: nil, before: nil, limit: 100).compactMap(\.event.code)
    }
}
