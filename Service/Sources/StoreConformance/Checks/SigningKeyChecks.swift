internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var signingKeyChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Signing keys are read unchanged, oldest first") { stores in
                let samples = try Samples(stores)
                let keys = [samples.signingKey(), samples.signingKey(), samples.signingKey()]
                for key in keys {
                    let newest = try await stores.signingKeys.signingKeys().last?.id
                    let added = try await stores.signingKeys.addSigningKey(
                        key, after: newest, recording: samples.event(.signingKeyRotated))
                    try expect(added, "a key was not added")
                }
                try expect(try await stores.signingKeys.signingKeys().suffix(3), is: keys[...], "the list")
                try expect(try await stores.codes(samples).count, is: 3, "the number of events")
            },
            ConformanceCheck("A signing key is added only after the newest one") { stores in
                let samples = try Samples(stores)
                let first = samples.signingKey()
                _ = try await stores.signingKeys.addSigningKey(
                    first, after: try await stores.signingKeys.signingKeys().last?.id,
                    recording: samples.event(.signingKeyRotated))
                for newest in [nil, "another"] {
                    let added = try await stores.signingKeys.addSigningKey(
                        samples.signingKey(), after: newest, recording: samples.event(.signingKeyRotated))
                    try expect(!added, "it was added after \(newest ?? "none")")
                }
                try expect(try await stores.signingKeys.signingKeys().last, is: first, "the newest key")
                try expect(try await stores.codes(samples).count, is: 1, "the number of events")
            },
            ConformanceCheck("Of 64 signing keys added after one key one succeeds") { stores in
                let samples = try Samples(stores)
                let newest = try await stores.signingKeys.signingKeys().last?.id
                let keys = (0..<64).map { _ in samples.signingKey() }
                let added = try await concurrently(64) { number in
                    try await stores.signingKeys.addSigningKey(
                        keys[number], after: newest, recording: samples.event(.signingKeyRotated))
                }
                try expect(added.count { $0 }, is: 1, "how many were added")
                let winner = try unwrap(added.firstIndex(of: true), "winner")
                try expect(try await stores.signingKeys.signingKeys().last, is: keys[winner], "the newest key")
                try expect(try await stores.codes(samples).count, is: 1, "the number of events")
            },
            ConformanceCheck(
                "A signing key is revoked only while the newest key is known, and the new key becomes the newest"
            ) {
                stores in
                let samples = try Samples(stores)
                var keys = [samples.signingKey(), samples.signingKey()]
                for key in keys {
                    _ = try await stores.signingKeys.addSigningKey(
                        key, after: try await stores.signingKeys.signingKeys().last?.id,
                        recording: samples.event(.signingKeyRotated))
                }
                func revoke(
                    _ id: String, newest: String, promoting successor: String? = nil, adding key: StoredSigningKey?
                ) async throws -> Bool {
                    try await stores.signingKeys.revokeSigningKey(
                        id, newest: newest, promoting: successor, adding: key,
                        recording: samples.event(.signingKeyRevoked))
                }
                func left() async throws -> [StoredSigningKey] {
                    try await stores.signingKeys.signingKeys().suffix(keys.count)
                }
                let added = samples.signingKey()
                try expect(
                    try await revoke(keys[0].id, newest: keys[0].id, adding: added), is: false,
                    "with another newest key")
                try expect(
                    try await revoke("not there", newest: keys[1].id, adding: added), is: false,
                    "a key that is not there")
                try expect(try await left(), is: keys, "the keys after both")
                for key in keys + [added] {
                    try expect(try await stores.signingKeys.isRevokedSigningKey(key.id), is: false, "revoked before")
                }
                let revoked = keys
                try expect(try await revoke(keys[1].id, newest: keys[1].id, adding: added), is: true, "the newest")
                keys = [keys[0], added]
                try expect(try await left(), is: keys, "the keys after the newest was revoked")
                try expect(
                    try await revoke(keys[0].id, newest: added.id, promoting: added.id, adding: nil), is: true,
                    "an older one")
                keys = [added]
                keys[0].signsFrom = stores.now
                try expect(try await left(), is: keys, "the keys after the older one was revoked")
                for key in revoked {
                    try expect(try await stores.signingKeys.isRevokedSigningKey(key.id), is: true, "revoked after")
                }
                try expect(try await stores.signingKeys.isRevokedSigningKey(added.id), is: false, "the one left")
                try expect(try await stores.codes(samples).count, is: 4, "the number of events")
            },
            ConformanceCheck("Only the named signing keys are removed") { stores in
                let samples = try Samples(stores)
                let keys = [samples.signingKey(), samples.signingKey(), samples.signingKey()]
                for key in keys {
                    _ = try await stores.signingKeys.addSigningKey(
                        key, after: try await stores.signingKeys.signingKeys().last?.id,
                        recording: samples.event(.signingKeyRotated))
                }
                try await stores.signingKeys.removeSigningKeys([keys[0].id, keys[1].id, "not there"])
                let left = try await stores.signingKeys.signingKeys().filter { keys.contains($0) }
                try expect(left, is: [keys[2]], "the keys left")
            },
        ]
    }
}

extension Samples {
    fileprivate func signingKey() -> StoredSigningKey {
        StoredSigningKey(id: Base64.url.encode(bytes()), sealedKey: bytes(60), createdAt: now)
    }
}
