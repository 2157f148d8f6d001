internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var credentialChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A credential is read unchanged by its id") { stores in
                let samples = try Samples(stores)
                let (one, other) = (samples.credential(), samples.credential(role: .admin, scope: .allApps))
                for credential in [one, other] {
                    try await stores.add(credential, samples)
                }
                try expect(try await stores.credentials.credential(one.id), is: one, "the credential")
                try expect(try await stores.credentials.credential(other.id), is: other, "the one without apps")
                try expect(try await stores.credentials.credential(samples.text()), is: nil, "one that is not there")
                try expect(try await stores.codes(samples), is: [.credentialCreated, .credentialCreated], "the log")
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
                    try await stores.credentials.revoke(
                        credential.id, at: stores.now + Int64(number), recording: samples.event(.credentialRevoked))
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
                let revoked = try await stores.credentials.revoke(
                    samples.text(), at: stores.now, recording: samples.event(.credentialRevoked))
                try expect(!revoked, "it was revoked")
                try expect(try await stores.codes(samples), is: [], "the log")
            },
            ConformanceCheck("Credentials that ended before a time are removed, and no others") { stores in
                let samples = try Samples(stores)
                // Long ago, so that no credential of another check ended before.
                let time = stores.now - 1_000_000
                let removed = [
                    samples.credential(createdAt: time - 9, expiresAt: time - 1),
                    samples.credential(createdAt: time - 9, revokedAt: time - 1),
                    samples.credential(createdAt: time - 9, expiresAt: time - 1, revokedAt: time),
                ]
                let kept = [
                    samples.credential(createdAt: time - 9, expiresAt: time),
                    samples.credential(createdAt: time - 9, revokedAt: time), samples.credential(createdAt: time - 9),
                    samples.credential(createdAt: stores.now + 1_000_000),
                ]
                for credential in removed + kept {
                    try await stores.add(credential, samples)
                }
                try expect(try await stores.credentials.remove(endedBefore: time), is: 3, "how many were removed")
                for credential in removed {
                    try expect(try await stores.credentials.credential(credential.id), is: nil, "one that ended")
                }
                for credential in kept {
                    try expect(
                        try await stores.credentials.credential(credential.id), is: credential, "one that stays")
                }
                try expect(try await stores.credentials.remove(endedBefore: time), is: 0, "how many the second time")
            },
            ConformanceCheck("The newest credential is not removed, however long ago it ended") { stores in
                let samples = try Samples(stores)
                let time = stores.now - 1_000_000
                let newest = samples.credential(createdAt: stores.now + 2_000_000, expiresAt: time - 1)
                try await stores.add(newest, samples)
                _ = try await stores.credentials.remove(endedBefore: time)
                try expect(try await stores.credentials.credential(newest.id), is: newest, "the newest one")
                let next = samples.credential(createdAt: stores.now + 2_000_001)
                try await stores.add(next, samples)
                try expect(try await stores.credentials.remove(endedBefore: time), is: 1, "how many after a newer one")
            },
            ConformanceCheck("A credential for an app that is not there is refused") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                try await stores.provide(samples.app, samples)
                let credential = samples.credential(scope: .apps([samples.app, other.app]))
                let inserted = try await stores.credentials.insert(
                    credential, recording: samples.event(.credentialCreated))
                try expect(!inserted, "it was inserted")
                try expect(try await stores.credentials.credential(credential.id), is: nil, "the credential")
                try expect(try await stores.codes(samples), is: [], "the log")
            },
            ConformanceCheck("A removed app takes its credentials, its recorded refusals and its pending proofs along")
            {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                let alone = samples.credential()
                let shared = samples.credential(scope: .apps([samples.app, other.app]))
                let all = samples.credential(role: .admin, scope: .allApps)
                for credential in [alone, shared, all] { try await stores.add(credential, samples) }
                for one in [samples, other] {
                    try await stores.evidence.keep(one.refusal(), within: .standard)
                    try await stores.pendingProofs.keep(one.proof())
                }
                let event = samples.event(.appRemoved)
                try expect(try await stores.apps.remove(samples.app, recording: event), "the app was not removed")
                let ended = try await stores.credentials.credential(alone.id)
                try expect(ended?.revokedAt, is: event.at, "when the app's own credential ended")
                let narrowed = try await stores.credentials.credential(shared.id)
                try expect(narrowed?.scope, is: .apps([other.app]), "the apps of a shared credential")
                try expect(narrowed?.revokedAt, is: nil, "when a shared credential ended")
                try expect(try await stores.credentials.credential(all.id), is: all, "a credential for all apps")
                for (one, count) in [(samples, 0), (other, 1)] {
                    let kept = try await stores.evidence.evidence(of: one.app, before: nil, limit: 10)
                    try expect(kept.count, is: count, "the number of refusals")
                    try expect(try await stores.proofs(of: one, pageOf: 1000).count, is: count, "the number of proofs")
                }
                let codes = try await stores.codes(samples)
                try expect(codes.count { $0 == .appRemoved }, is: 1, "the removals in the log")
                try expect(codes.count { $0 == .credentialRevoked }, is: 1, "the revocations in the log")
                try expect(codes.count { $0 == .credentialNarrowed }, is: 1, "the narrowed credentials in the log")
                try await stores.evidence.keep(samples.refusal(), within: .standard)
                let late = try await stores.evidence.evidence(of: samples.app, before: nil, limit: 10)
                try expect(late, is: [], "a refusal that is kept after the removal")
            },
            ConformanceCheck("Removals of its apps and a revocation at once end a credential for good") { stores in
                for round in 0..<64 {
                    let (samples, other) = (try Samples(stores), try Samples(stores))
                    for app in [samples.app, other.app] { try await stores.provide(app, samples) }
                    let credential = samples.credential(scope: .apps([samples.app, other.app]))
                    try await stores.add(credential, samples)
                    async let first = stores.apps.remove(samples.app, recording: samples.event(.appRemoved))
                    // Both apps, or one of them and a revocation.
                    async let second =
                        round.isMultiple(of: 2)
                        ? stores.apps.remove(other.app, recording: other.event(.appRemoved))
                        : stores.credentials.revoke(
                            credential.id, at: stores.now, recording: samples.event(.credentialRevoked))
                    try expect(try await first, "the app was not removed")
                    try expect(try await second, "the other app was not removed, or the credential not revoked")
                    let stored = try await stores.credentials.credential(credential.id)
                    try expect(stored?.revokedAt != nil, "the credential goes on")
                }
            },
            ConformanceCheck("A credential for an app and the removal of the app never both stay") { stores in
                for _ in 0..<64 {
                    let samples = try Samples(stores)
                    try await stores.provide(samples.app, samples)
                    let credential = samples.credential()
                    async let inserted = stores.credentials.insert(
                        credential, recording: samples.event(.credentialCreated))
                    async let removed = stores.apps.remove(samples.app, recording: samples.event(.appRemoved))
                    try expect(try await removed, "the app was not removed")
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

    fileprivate func credential(
        id: String? = nil, role: CredentialRole = .service, scope: CredentialScope? = nil, createdAt: UnixTime? = nil,
        expiresAt: UnixTime? = nil, revokedAt: UnixTime? = nil
    ) -> Credential {
        Credential(
            id: id ?? text(), name: "é 🔑 \"name\"", role: role, scope: scope ?? .apps([app]), secretHash: bytes(),
            createdAt: createdAt ?? now, expiresAt: expiresAt ?? now + 3600, revokedAt: revokedAt)
    }
}

extension StoresUnderTest {
    /// Inserts a credential, whose apps are provided.
    fileprivate func add(_ credential: Credential, _ samples: Samples) async throws {
        for app in credential.scope.named { try await provide(app, samples) }
        let inserted = try await credentials.insert(credential, recording: samples.event(.credentialCreated))
        try expect(inserted, "the credential was not inserted")
    }

    /// The codes of the events of the check's app, newest first.
    func codes(_ samples: Samples) async throws -> [AuditEvent.Code] {
        try await audit.events(app: samples.app, device: nil, before: nil, limit: 100).map(\.event.code)
    }
}
