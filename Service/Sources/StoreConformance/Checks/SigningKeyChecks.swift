internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var signingKeyChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Signing keys are read unchanged, oldest first") { stores in
                let samples = try Samples(stores)
                var keys = [samples.signingKey(), samples.signingKey(), samples.signingKey()]
                keys[1].signsFrom = stores.now + 7
                for key in keys { try await stores.add([key], samples) }
                try expect(try await stores.signingKeys.signingKeys().suffix(3), is: keys[...], "the list")
                try expect(try await stores.codes(samples).count, is: 3, "the number of events")
            },
            ConformanceCheck("A resealed signing key keeps its times") { stores in
                let samples = try Samples(stores)
                var key = samples.signingKey()
                key.signsFrom = stores.now + 7
                try await stores.add([key], samples)
                let row = SealedRow(kind: .signingKey, id: key.id, value: key.sealedKey)
                try expect(try await stores.serviceKeys.reseal([(row, [1, 2, 3])]), is: 1, "how many were replaced")
                let resealed = StoredSigningKey(
                    id: key.id, sealedKey: [1, 2, 3], createdAt: key.createdAt, signsFrom: key.signsFrom)
                try expect(try await stores.signingKeys.signingKeys().last, is: resealed, "the key")
            },
            ConformanceCheck("A signing key is added only after the newest one") { stores in
                let samples = try Samples(stores)
                let first = samples.signingKey()
                try await stores.add([first], samples)
                let stored = try await stores.signingKeys.signingKeys()
                let another = samples.signingKey()
                let older = Array(stored.dropLast())
                for before in [[], older, older + [another], stored + [another]] where before != stored {
                    let change = samples.change(before, to: before + [samples.signingKey()])
                    try expect(try await !stores.signingKeys.save(change), "it was added after \(before.count) keys")
                }
                try expect(try await stores.signingKeys.signingKeys(), is: stored, "the keys")
                try expect(try await stores.codes(samples).count, is: 1, "the number of events")
            },
            ConformanceCheck("Of 64 signing keys added after one key one succeeds") { stores in
                let samples = try Samples(stores)
                let stored = try await stores.signingKeys.signingKeys()
                let keys = (0..<64).map { _ in samples.signingKey() }
                let added = try await concurrently(64) { number in
                    try await stores.signingKeys.save(samples.change(stored, to: stored + [keys[number]]))
                }
                try expect(added.count { $0 }, is: 1, "how many were added")
                let winner = try unwrap(added.firstIndex(of: true), "winner")
                try expect(try await stores.signingKeys.signingKeys(), is: stored + [keys[winner]], "the keys")
                try expect(try await stores.codes(samples).count, is: 1, "the number of events")
            },
            ConformanceCheck(
                "A revocation conflicts if the keys changed; its new key becomes the newest"
            ) {
                stores in
                let samples = try Samples(stores)
                let keys = [samples.signingKey(), samples.signingKey()]
                try await stores.add(keys, samples)
                let before = try await stores.signingKeys.signingKeys()
                let others = Array(before.dropLast(2))
                let added = samples.signingKey()
                func revoke(
                    _ id: String, from known: [StoredSigningKey], to after: [StoredSigningKey]
                ) async throws -> Bool {
                    try await stores.signingKeys.save(
                        samples.change(known, to: after, revoking: id, .signingKeyRevoked))
                }
                for known in [others + [keys[0]], others + [keys[1]], others + [keys[1], keys[0]], before + [added]] {
                    let isSaved = try await revoke(keys[0].id, from: known, to: others + [added])
                    try expect(!isSaved, "a key was revoked with other keys")
                }
                var promoted = keys[1]
                promoted.signsFrom = stores.now
                let isSaved = try await revoke(keys[0].id, from: others + [promoted, keys[1]], to: others)
                try expect(!isSaved, "a key was revoked with another time of signing")
                try expect(try await stores.signingKeys.signingKeys(), is: before, "the keys after these")
                for key in keys + [added] {
                    try expect(try await stores.signingKeys.isRevokedSigningKey(key.id), is: false, "revoked before")
                }
                var now = others + [keys[0], added]
                try expect(try await revoke(keys[1].id, from: before, to: now), is: true, "the newest")
                try expect(try await stores.signingKeys.signingKeys(), is: now, "the keys after the newest")
                var left = added
                left.signsFrom = stores.now
                let isRevoked = try await revoke(keys[0].id, from: now, to: others + [left])
                try expect(isRevoked, is: true, "an older one")
                now = others + [left]
                try expect(try await stores.signingKeys.signingKeys(), is: now, "the keys after the older one")
                for key in keys {
                    try expect(try await stores.signingKeys.isRevokedSigningKey(key.id), is: true, "revoked after")
                }
                try expect(try await stores.signingKeys.isRevokedSigningKey(added.id), is: false, "the one left")
                try expect(try await stores.codes(samples).count, is: 3, "the number of events")
            },
            ConformanceCheck("Only the named signing keys are removed") { stores in
                let samples = try Samples(stores)
                let keys = [samples.signingKey(), samples.signingKey(), samples.signingKey()]
                try await stores.add(keys, samples)
                let before = try await stores.signingKeys.signingKeys()
                let after = before.filter { $0 != keys[0] && $0 != keys[2] }
                let removal = SigningKeyChange(from: before, to: after, at: stores.now, recording: nil)
                try expect(try await stores.signingKeys.save(removal), "they were not removed")
                try expect(try await stores.signingKeys.signingKeys(), is: after, "the keys left")
                for key in keys {
                    try expect(try await stores.signingKeys.isRevokedSigningKey(key.id), is: false, "revoked")
                }
                try expect(try await stores.codes(samples).count, is: 1, "the number of events")
            },
        ]
    }
}

extension Samples {
    fileprivate func signingKey() -> StoredSigningKey {
        StoredSigningKey(id: Base64.url.encode(bytes()), sealedKey: bytes(60), createdAt: now)
    }

    fileprivate func change(
        _ before: [StoredSigningKey], to after: [StoredSigningKey], revoking id: String? = nil,
        _ code: AuditEvent.Code = .signingKeyRotated
    ) -> SigningKeyChange {
        SigningKeyChange(from: before, to: after, revoking: id, at: now, recording: event(code))
    }
}

extension StoresUnderTest {
    fileprivate func add(_ keys: [StoredSigningKey], _ samples: Samples) async throws {
        let stored = try await signingKeys.signingKeys()
        try expect(try await signingKeys.save(samples.change(stored, to: stored + keys)), "a key was not added")
    }
}
