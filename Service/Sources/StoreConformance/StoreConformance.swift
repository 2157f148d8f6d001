public import AuthContract
public import AuthService

/// The requirements for every implementation of the service's stores, as checks to run against yours:
///
/// ```swift
/// @Test(arguments: StoreConformance.checks)
/// func `my stores keep every guarantee`(_ check: ConformanceCheck) async throws {
///     try await check.run(on: StoresUnderTest(MyStores(), now: SystemClock().now))
/// }
/// ```
public enum StoreConformance {
    /// What a set of checks tests: one store protocol, or two protocols for the same data.
    public enum Store: String, Sendable, Hashable, CaseIterable {
        /// `ChallengeStore`.
        case challenges
        /// `ReplayStore`.
        case replay
        /// `AppStore`.
        case apps
        /// `DeviceStore` and `EndedDeviceStore`.
        case devices
        /// `AuditLog` and `AuditArchiveStore`.
        case audit
        /// `ReceiptStore`.
        case receipts
        /// `CredentialStore`.
        case credentials
        /// `SigningKeyStore`.
        case signingKeys
        /// `PendingProofStore`.
        case pendingProofs
        /// `RecordingStore`.
        case recordings
        /// `VerdictHistoryStore`.
        case history
        /// `ServiceKeyStore`.
        case serviceKeys
        /// `WebhookStore`.
        case webhooks
        /// `VersionStore`.
        case versions
    }

    /// All checks, of all stores.
    public static var checks: [ConformanceCheck] { Store.allCases.flatMap { checks(of: $0) } }

    /// The checks of some stores.
    ///
    /// Only the checks of challenges, replay, pending proofs and history use one store alone. All others also read the audit log,
    /// and most of them write to other stores. Run these on stores of one back end.
    public static func checks(of stores: Store...) -> [ConformanceCheck] {
        stores.flatMap { store in
            switch store {
            case .challenges: challengeChecks
            case .replay: replayChecks
            case .apps: appChecks
            case .devices:
                deviceInsertionChecks + deviceChangeChecks + deviceFactChecks + rotationChecks + listingChecks
                    + deviceCountChecks + endedDeviceChecks
            case .audit: auditChecks + auditArchiveChecks + noChangeNoEventChecks
            case .receipts: receiptChecks
            case .credentials: credentialChecks
            case .signingKeys: signingKeyChecks
            case .pendingProofs: pendingProofChecks
            case .recordings: recordedRefusalChecks
            case .history: historyChecks + historyAgreementChecks
            case .serviceKeys: serviceKeyChecks
            case .webhooks: webhookChecks + webhookDeliveryChecks
            case .versions: versionChecks
            }
        }
    }
}

/// The stores that a check runs on.
///
/// They may contain other data: each check uses its own ids and keys. Some checks change the other data: for example, the
/// checks of the archives remove audit events. Nothing else may write to the stores while a check runs. To test one store, start
/// from stores that pass, and replace the store in question.
public struct StoresUnderTest: Sendable {
    /// Challenges.
    public var challenges: any ChallengeStore
    /// Replay claims.
    public var replay: any ReplayStore
    /// App records.
    public var apps: any AppStore
    /// Devices and their keys.
    public var devices: any DeviceStore
    /// The audit log. The other stores append to it.
    public var audit: any AuditLog
    /// The App Attest receipts of `devices`.
    public var receipts: any ReceiptStore
    /// Credentials.
    public var credentials: any CredentialStore
    /// The keys that sign device tokens.
    public var signingKeys: any SigningKeyStore
    /// Proofs that their provider, such as Google, has not checked yet. The devices of these proofs need not be in
    /// `devices`.
    public var pendingProofs: any PendingProofStore
    /// Recorded refusals.
    public var recordings: any RecordingStore
    /// Counts of verdicts.
    public var history: any VerdictHistoryStore
    /// Keeps the values by which a service key is recognized, and reads and replaces the rows of the other stores that are sealed with it.
    public var serviceKeys: any ServiceKeyStore
    /// The archives of the audit log. If nil, the checks of the archives are skipped.
    public var auditArchives: (any AuditArchiveStore)?
    /// The store that forgets ended devices of `devices`. If nil, the checks of this store are skipped.
    public var endedDevices: (any EndedDeviceStore)?
    /// Webhooks. If nil, the checks of webhooks are skipped.
    public var webhooks: (any WebhookStore)?
    /// The version of the service that started last. If nil, the checks of this store are skipped.
    public var versions: (any VersionStore)?
    /// The current time by the stores' own clock.
    public var now: UnixTime

    /// Memberwise initializer.
    public init(
        challenges: any ChallengeStore, replay: any ReplayStore, apps: any AppStore, devices: any DeviceStore,
        audit: any AuditLog, receipts: any ReceiptStore, credentials: any CredentialStore,
        signingKeys: any SigningKeyStore, pendingProofs: any PendingProofStore,
        recordings: any RecordingStore, history: any VerdictHistoryStore, serviceKeys: any ServiceKeyStore,
        webhooks: (any WebhookStore)? = nil,
        auditArchives: (any AuditArchiveStore)? = nil, endedDevices: (any EndedDeviceStore)? = nil,
        versions: (any VersionStore)? = nil, now: UnixTime
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
        self.recordings = recordings
        self.history = history
        self.serviceKeys = serviceKeys
        self.webhooks = webhooks
        self.auditArchives = auditArchives
        self.endedDevices = endedDevices
        self.versions = versions
        self.now = now
    }

    /// Takes all stores from one object. The stores that may be nil are set if the object implements them.
    public init(
        _ stores: some ChallengeStore & ReplayStore & AppStore & DeviceStore & AuditLog & ReceiptStore & CredentialStore
            & SigningKeyStore & PendingProofStore & RecordingStore & VerdictHistoryStore & ServiceKeyStore,
        now: UnixTime
    ) {
        self.init(
            challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores, receipts: stores,
            credentials: stores, signingKeys: stores, pendingProofs: stores, recordings: stores, history: stores,
            serviceKeys: stores,
            webhooks: stores as? any WebhookStore, auditArchives: stores as? any AuditArchiveStore,
            endedDevices: stores as? any EndedDeviceStore, versions: stores as? any VersionStore, now: now)
    }
}

/// The check of one guarantee.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
    /// The guarantee as a sentence.
    public let name: String
    private let body: @Sendable (StoresUnderTest) async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (StoresUnderTest) async throws -> Void) {
        self.name = name
        self.body = body
    }

    /// Runs the check. Throws `ConformanceFailure` if the guarantee does not hold, and rethrows the stores' errors.
    public func run(on stores: StoresUnderTest) async throws {
        do { try await body(stores) } catch let failure as Unmet {
            throw ConformanceFailure(guarantee: name, found: failure.found)
        }
    }

    public var description: String { name }
}

/// The error of a check that found a guarantee broken.
public struct ConformanceFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the check.
    public let guarantee: String
    /// The actual behavior that the check found.
    public let found: String

    public var description: String { "\(guarantee): not so, \(found)" }
}
