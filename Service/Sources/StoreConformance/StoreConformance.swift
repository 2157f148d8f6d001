public import AuthContract
public import AuthService

/// What every implementation of the service's stores must do, as checks that anybody can run against theirs:
///
///     @Test(arguments: StoreConformance.checks)
///     func conforms(_ check: ConformanceCheck) async throws {
///         try await check.run(on: makeMyStores())
///     }
public enum StoreConformance {
    /// All checks, of all stores.
    public static var checks: [ConformanceCheck] {
        challengeChecks + replayChecks + appChecks + deviceChecks + rotationChecks + listingChecks + auditChecks
            + receiptChecks + credentialChecks + signingKeyChecks + pendingProofChecks + evidenceChecks
            + serviceKeyChecks
    }
}

/// The stores that a check runs on. They may hold other things already: a check uses ids and keys of its own. Audit events
/// of others must not arrive while one runs.
public struct StoresUnderTest: Sendable {
    public let challenges: any ChallengeStore
    public let replay: any ReplayStore
    public let apps: any AppStore
    public let devices: any DeviceStore
    public let audit: any AuditLog
    public let receipts: any ReceiptStore
    public let credentials: any CredentialStore
    public let signingKeys: any SigningKeyStore
    public let pendingProofs: any PendingProofStore
    public let evidence: any EvidenceStore
    public let serviceKeys: any ServiceKeyStore
    /// What the stores' own clock shows.
    public let now: UnixTime

    /// Stores of one back end.
    public init(
        challenges: any ChallengeStore, replay: any ReplayStore, apps: any AppStore, devices: any DeviceStore,
        audit: any AuditLog, receipts: any ReceiptStore, credentials: any CredentialStore,
        signingKeys: any SigningKeyStore, pendingProofs: any PendingProofStore,
        evidence: any EvidenceStore, serviceKeys: any ServiceKeyStore, now: UnixTime
    ) {
        self.challenges = challenges
        self.replay = replay
        self.apps = apps
        self.devices = devices
        self.audit = audit
        self.receipts = receipts
        self.credentials = credentials
        self.signingKeys = signingKeys
        self.pendingProofs = pendingProofs
        self.evidence = evidence
        self.serviceKeys = serviceKeys
        self.now = now
    }

    /// Stores that are one object.
    public init(
        _ stores: some ChallengeStore & ReplayStore & AppStore & DeviceStore & AuditLog & ReceiptStore & CredentialStore
            & SigningKeyStore & PendingProofStore & EvidenceStore & ServiceKeyStore, now: UnixTime
    ) {
        self.init(
            challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores, receipts: stores,
            credentials: stores, signingKeys: stores, pendingProofs: stores, evidence: stores, serviceKeys: stores,
            now: now)
    }
}

/// One guarantee and how it is checked.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
    /// The guarantee as a sentence.
    public let name: String
    private let body: @Sendable (StoresUnderTest) async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (StoresUnderTest) async throws -> Void) {
        self.name = name
        self.body = body
    }

    /// Runs the check; throws `ConformanceFailure` where the guarantee does not hold, and what the stores throw.
    public func run(on stores: StoresUnderTest) async throws {
        do { try await body(stores) } catch let failure as Unmet {
            throw ConformanceFailure(guarantee: name, found: failure.found)
        }
    }

    public var description: String { name }
}

/// A guarantee that does not hold.
public struct ConformanceFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the check.
    public let guarantee: String
    /// What was seen instead.
    public let found: String

    public var description: String { "not so: \(guarantee): \(found)" }
}
