extension AuthService {
    /// The stores of the service.
    public struct Stores: Sendable {
        public var challenges: any ChallengeStore
        public var replay: any ReplayStore
        public var apps: any AppStore
        public var devices: any DeviceStore
        public var audit: any AuditLog
        public var credentials: any CredentialStore
        public var signingKeys: any SigningKeyStore
        /// Nil: during an outage of a provider, registrations are refused whatever the app's policy is.
        public var pendingProofs: (any PendingProofStore)?
        /// Nil: no refusal is recorded, whatever the app's policy is.
        public var evidence: (any EvidenceStore)?
        /// The rate limits and quotas of all nodes together. Nil: each node counts separately.
        public var limits: (any LimitStore)?

        /// Stores of these kinds.
        public init(
            challenges: any ChallengeStore, replay: any ReplayStore, apps: any AppStore, devices: any DeviceStore,
            audit: any AuditLog, credentials: any CredentialStore, signingKeys: any SigningKeyStore,
            pendingProofs: (any PendingProofStore)? = nil, evidence: (any EvidenceStore)? = nil,
            limits: (any LimitStore)? = nil
        ) {
            self.challenges = challenges
            self.replay = replay
            self.apps = apps
            self.devices = devices
            self.audit = audit
            self.credentials = credentials
            self.signingKeys = signingKeys
            self.pendingProofs = pendingProofs
            self.evidence = evidence
            self.limits = limits
        }
    }
}
