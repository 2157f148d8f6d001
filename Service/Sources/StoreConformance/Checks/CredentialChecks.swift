internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var credentialChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A credential is read unchanged by its id") { stores in
                let samples = try Samples(stores)
                let (one, other) = (samples.credential(), samples.credential(role: .admin, apps: []))
                for credential in [one, other] {
                    try await stores.credentials.insert(credential, recording: samples.event(.credentialCreated))
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
                    try await stores.credentials.insert(credential, recording: samples.event(.credentialCreated))
                }
                let ids = Set(credentials.map(\.id))
                let listed = try await stores.credentials.credentials().filter { ids.contains($0.id) }
                try expect(listed, is: [credentials[1], credentials[2], credentials[0]], "the list")
            },
            ConformanceCheck("A second credential with the same id is refused") { stores in
                let samples = try Samples(stores)
                let first = samples.credential()
                try await stores.credentials.insert(first, recording: samples.event(.credentialCreated))
                let second = samples.credential(id: first.id)
                do {
                    try await stores.credentials.insert(second, recording: samples.event(.credentialCreated))
                    throw Unmet(found: "the second insertion succeeded")
                } catch is StoreError {}
                try expect(try await stores.credentials.credential(first.id), is: first, "the credential")
                try expect(try await stores.codes(samples), is: [.credentialCreated], "the log")
            },
            ConformanceCheck("Of 64 revocations of one credential one succeeds and stays") { stores in
                let samples = try Samples(stores)
                let credential = samples.credential()
                try await stores.credentials.insert(credential, recording: samples.event(.credentialCreated))
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
                    try await stores.credentials.insert(credential, recording: samples.event(.credentialCreated))
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
                try await stores.credentials.insert(newest, recording: samples.event(.credentialCreated))
                _ = try await stores.credentials.remove(endedBefore: time)
                try expect(try await stores.credentials.credential(newest.id), is: newest, "the newest one")
                let next = samples.credential(createdAt: stores.now + 2_000_001)
                try await stores.credentials.insert(next, recording: samples.event(.credentialCreated))
                try expect(try await stores.credentials.remove(endedBefore: time), is: 1, "how many after a newer one")
            },
        ]
    }
}

extension Samples {
    fileprivate func text() -> String { Hexadecimal.encode(bytes(8)) }

    fileprivate func credential(
        id: String? = nil, role: CredentialRole = .service, apps: Set<AppID>? = nil, createdAt: UnixTime? = nil,
        expiresAt: UnixTime? = nil, revokedAt: UnixTime? = nil
    ) -> Credential {
        Credential(
            id: id ?? text(), name: "é 🔑 \"name\"", role: role, apps: apps ?? [app], secretHash: bytes(),
            createdAt: createdAt ?? now, expiresAt: expiresAt ?? now + 3600, revokedAt: revokedAt)
    }
}

extension StoresUnderTest {
    /// The codes of the events of the check's app, newest first.
    func codes(_ samples: Samples) async throws -> [AuditEvent.Code] {
        try await audit.events(app: samples.app, device: nil, before: nil, limit: 100).map(\.event.code)
    }
}
