extension AuthService {
    /// The stores of the service.
    public struct Stores: Sendable {
        /// Challenges. They live for seconds.
        public var challenges: any ChallengeStore
        /// Replay claims. All nodes that accept requests of an app share this store.
        public var replay: any ReplayStore
        /// App records.
        public var apps: any AppStore
        /// Devices and their keys.
        public var devices: any DeviceStore
        /// The audit log.
        public var audit: any AuditLog
        /// Service credentials and admin credentials.
        public var credentials: any CredentialStore
        /// The keys that sign device tokens.
        public var signingKeys: any SigningKeyStore
        /// Proofs that wait for their provider. Nil: during an outage, new devices are refused, whatever the policy is.
        public var pendingProofs: (any PendingProofStore)?
        /// Recorded refusals. Nil: no refusal is recorded, whatever the app's policy is.
        public var recordings: (any RecordingStore)?
        /// Counts of verdicts. Nil: verdicts are not counted for the history.
        public var history: (any VerdictHistoryStore)?
        /// Webhooks and their deliveries. Nil: there are no webhooks.
        public var webhooks: (any WebhookStore)?
        /// Archives of the audit log. Nil: the audit log has no archives.
        public var auditArchives: (any AuditArchiveStore)?
        /// Removes devices that ended long ago. Nil: these devices are never forgotten.
        public var endedDevices: (any EndedDeviceStore)?
        /// The version of the service that last started. Nil: a start with another version has no audit event.
        public var versions: (any VersionStore)?
        /// The rate limits and quotas of all nodes together. Nil: each node counts separately.
        public var limits: (any LimitStore)?

        /// Memberwise initializer.
        public init(
            challenges: any ChallengeStore, replay: any ReplayStore, apps: any AppStore, devices: any DeviceStore,
            audit: any AuditLog, credentials: any CredentialStore, signingKeys: any SigningKeyStore,
            pendingProofs: (any PendingProofStore)? = nil, recordings: (any RecordingStore)? = nil,
            history: (any VerdictHistoryStore)? = nil, limits: (any LimitStore)? = nil,
            webhooks: (any WebhookStore)? = nil,
            auditArchives: (any AuditArchiveStore)? = nil, endedDevices: (any EndedDeviceStore)? = nil,
            versions: (any VersionStore)? = nil
        ) {
            self.challenges = challenges
            self.replay = replay
            self.apps = apps
            self.devices = devices
            self.audit = audit
            self.credentials = credentials
            self.signingKeys = signingKeys
            self.pendingProofs = pendingProofs
            self.recordings = recordings
            self.history = history
            self.limits = limits
            self.webhooks = webhooks
            self.auditArchives = auditArchives
            self.endedDevices = endedDevices
            self.versions = versions
        }
    }
}
