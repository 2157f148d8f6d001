import AuthContract
import AuthService
import StoreConformance
import Testing

/// A check that never fails proves nothing. Each of these stores has one fault, and the check must find it.
struct ChecksCanFailTests {
    private static let now = UnixTime(1_750_000_000)

    /// Grants every claim.
    private struct ForgetfulReplay: ReplayStore {
        func claim(
            _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
            futureWindow: Int64, tag: ClaimTag?
        ) async throws(StoreError) -> ClaimOutcome { .claimed }

        func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool { true }
    }

    /// Suspends between reading and removing a challenge.
    private actor RacyChallenges: ChallengeStore {
        private var held: [[UInt8]: IssuedChallenge] = [:]

        func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
            held[challenge.bytes] = challenge
        }

        func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
            let found = held[bytes]
            await Task.yield()
            held[bytes] = nil
            return found
        }
    }

    /// Returns true even if it recorded nothing.
    private struct CarelessReceipts: ReceiptStore {
        let stores: MemoryStores

        func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt? {
            try await stores.takeDueReceipt(at: now, lease: lease)
        }

        func record(
            _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
        ) async throws(StoreError) -> Bool {
            _ = try await stores.record(change, of: due, recording: event)
            return true
        }
    }

    /// Changes and removes credentials without comparing the stored ones with those that the caller expects, and lists
    /// them in another order.
    private struct EagerCredentials: CredentialStore {
        let stores: MemoryStores

        func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) -> Bool {
            try await stores.insert(credential, recording: event)
        }

        func credential(_ id: String) async throws(StoreError) -> Credential? { try await stores.credential(id) }

        func credentials() async throws(StoreError) -> [Credential] { try await stores.credentials().reversed() }

        func save(_ change: CredentialChange) async throws(StoreError) -> Bool {
            guard let stored = try await stores.credential(change.before.id) else { return true }
            return try await stores.save(CredentialChange(from: stored, to: change.after, recording: change.event))
        }
    }

    /// Ignores the stored signing keys, and removes none.
    private struct BlindSigningKeys: SigningKeyStore {
        let stores: MemoryStores

        func signingKeys() async throws(StoreError) -> [StoredSigningKey] { try await stores.signingKeys() }

        func save(_ change: SigningKeyChange) async throws(StoreError) -> Bool {
            let stored = try await stores.signingKeys()
            let blind = SigningKeyChange(
                from: stored, to: stored + change.added, revoking: change.revoked, at: change.at,
                recording: change.event)
            return try await stores.save(blind)
        }

        func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
            try await stores.isRevokedSigningKey(id)
        }
    }

    /// Always returns the first page, and erases nothing.
    private struct CircularProofs: PendingProofStore {
        let stores: MemoryStores

        func keep(_ proof: PendingProof) async throws(StoreError) { try await stores.keep(proof) }

        func pendingProofs(after device: DeviceID?, limit: Int) async throws(StoreError) -> [PendingProof] {
            try await stores.pendingProofs(after: nil, limit: limit)
        }

        func erasePendingProof(of device: DeviceID) async throws(StoreError) {}
    }

    /// Keeps every delivery forever, even that of a change that it refused.
    private actor HoardingWebhooks: WebhookStore {
        private let stores: MemoryStores
        private var all: [String: [WebhookDelivery]] = [:]

        init(_ stores: MemoryStores) { self.stores = stores }

        func webhooks() async throws(StoreError) -> [Webhook] { try await stores.webhooks() }

        func webhook(_ id: String) async throws(StoreError) -> Webhook? { try await stores.webhook(id) }

        func insert(_ webhook: Webhook, recording event: AuditEvent) async throws(StoreError) -> Bool {
            try await stores.insert(webhook, recording: event)
        }

        func save(_ change: WebhookChange) async throws(StoreError) -> Bool {
            all[change.before.id, default: []] += change.deliveries
            return try await stores.save(change)
        }

        func deliveries(of id: String, limit: Int) async throws(StoreError) -> [WebhookDelivery] {
            Array((all[id] ?? []).reversed().prefix(max(limit, 0)))
        }
    }

    /// Replaces the stored version without comparing it with the version that the caller expects.
    private struct EagerVersions: VersionStore {
        let stores: MemoryStores

        func serviceVersion() async throws(StoreError) -> String? { try await stores.serviceVersion() }

        func replaceServiceVersion(
            _ current: String?, with version: String, recording event: AuditEvent?
        ) async throws(StoreError) -> Bool {
            let stored = try await stores.serviceVersion()
            return try await stores.replaceServiceVersion(stored, with: version, recording: event)
        }
    }

    /// Returns events with any code.
    private struct CodeBlindAudit: AuditLog {
        let stores: MemoryStores

        func append(_ event: AuditEvent) async throws(StoreError) { try await stores.append(event) }

        func events(
            app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            try await stores.events(app: app, device: device, codes: nil, after: after, before: before, limit: limit)
        }

        func events(
            app: AppID?, device: DeviceID?, after: Int64, limit: Int
        ) async throws(StoreError) -> [RecordedAuditEvent] {
            try await stores.events(app: app, device: device, after: after, limit: limit)
        }

        func firstBrokenLink() async throws(StoreError) -> Int64? { try await stores.firstBrokenLink() }

        func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? { try await stores.link(at: sequence) }
    }

    /// Runs the checks in `names` on in-memory stores with one faulty store among them. Returns the guarantees that fail.
    private func failures(
        among names: Set<String>, replay: (any ReplayStore)? = nil, challenges: (any ChallengeStore)? = nil,
        receipts: (MemoryStores) -> any ReceiptStore = { $0 },
        credentials: (MemoryStores) -> any CredentialStore = { $0 },
        signingKeys: (MemoryStores) -> any SigningKeyStore = { $0 },
        pendingProofs: (MemoryStores) -> any PendingProofStore = { $0 },
        webhooks: (MemoryStores) -> (any WebhookStore)? = { _ in nil },
        audit: (MemoryStores) -> any AuditLog = { $0 },
        versions: (MemoryStores) -> (any VersionStore)? = { _ in nil }
    ) async throws -> Set<String> {
        var broken: Set<String> = []
        for check in StoreConformance.checks where names.contains(check.name) {
            let memory = MemoryStores()
            let stores = StoresUnderTest(
                challenges: challenges ?? memory, replay: replay ?? memory, apps: memory, devices: memory,
                audit: audit(memory), receipts: receipts(memory), credentials: credentials(memory),
                signingKeys: signingKeys(memory), pendingProofs: pendingProofs(memory), recordings: memory,
                history: memory, serviceKeys: memory, webhooks: webhooks(memory),
                versions: versions(memory), now: SystemClock().now)
            do { try await check.run(on: stores) } catch let failure as ConformanceFailure {
                broken.insert(failure.guarantee)
            }
        }
        return broken
    }

    @Test func `a replay store that keeps nothing fails`() async throws {
        let names: Set<String> = [
            "A claimed value is taken, and the outcome names it",
            "Of 64 tasks that claim one pair one succeeds",
            "A clock that steps back does not free purged claims",
        ]
        #expect(try await failures(among: names, replay: ForgetfulReplay()) == names)
    }

    @Test func `a challenge store that races fails`() async throws {
        let names: Set<String> = ["Of 64 callers that take one challenge exactly one gets it"]
        #expect(try await failures(among: names, challenges: RacyChallenges()) == names)
    }

    @Test func `a receipt store that reports every outcome as recorded fails`() async throws {
        let names: Set<String> = [
            "An outcome is recorded once, and only under the current lease",
            "An outcome for replaced evidence is not recorded",
        ]
        #expect(try await failures(among: names, receipts: CarelessReceipts.init) == names)
    }

    @Test func `a credential store that does not compare or lists in another order fails`() async throws {
        let names: Set<String> = [
            "Of 64 revocations of one credential one succeeds and stays",
            "An unknown credential is not revoked",
            "Credentials are listed newest first, in whatever order they were added",
            "A credential is changed or removed only if it is unchanged since it was read",
        ]
        #expect(try await failures(among: names, credentials: EagerCredentials.init) == names)
    }

    @Test func `a signing key store that does not compare and removes nothing fails`() async throws {
        let names: Set<String> = [
            "A signing key is added only after the newest one",
            "Of 64 signing keys added after one key one succeeds",
            "A revocation conflicts if the keys changed; its new key becomes the newest",
            "Only the named signing keys are removed",
        ]
        #expect(try await failures(among: names, signingKeys: BlindSigningKeys.init) == names)
    }

    @Test func `a proof store that repeats its first page and erases nothing fails`() async throws {
        let names: Set<String> = [
            "A proof is read unchanged until it is erased",
            "Proofs are listed in the order of their device ids, in pages without gaps or repeats",
        ]
        #expect(try await failures(among: names, pendingProofs: CircularProofs.init) == names)
    }

    @Test func `an audit log that does not look at codes fails`() async throws {
        let names: Set<String> = ["Events are found by their codes between two others, newest first"]
        #expect(try await failures(among: names, audit: CodeBlindAudit.init) == names)
    }

    @Test func `a version store that does not compare fails`() async throws {
        let names: Set<String> = ["The service's version changes with its event, if it is still the one that was read"]
        #expect(try await failures(among: names, versions: { EagerVersions(stores: $0) }) == names)
    }

    @Test func `a webhook store that keeps every delivery fails`() async throws {
        let names: Set<String> = [
            "Deliveries are saved with the change that they led to, and listed newest first",
            "Of 16 changes with deliveries at once one succeeds, and its deliveries alone are kept",
            "A webhook keeps its newest 100 deliveries, and other webhooks keep theirs",
            "Removing a webhook removes its deliveries",
        ]
        #expect(try await failures(among: names, webhooks: { HoardingWebhooks($0) }) == names)
    }
}
