public import AuthContract

extension SynheartAuth {
    /// Everything that the SDK stands on. `init(baseUrl:)` takes the platform's own; each part can be replaced.
    public struct Configuration: Sendable {
        /// The auth service.
        let origin: AuthOrigin
        /// Carries requests.
        public var transport: any Transport
        /// Keeps records.
        public var storage: any Storage { didSet { storageCalls = BlockingCalls() } }
        /// Keeps keys. Software keys are used only where they are named here.
        public var keyStore: any KeyStore { didSet { keyCalls = BlockingCalls() } }
        /// Has the device's maker vouch for it.
        public var attestation: any AttestationProvider
        /// Tells the time.
        public var clock: any DeviceClock
        /// Makes nonces and jitter.
        public var random: any RandomSource
        /// Waits.
        public var sleeper: any Sleeper
        /// Receives what there is to say.
        public var logger: any AuthLogger
        /// Where `send` and `sign` may take signatures beside the auth service: https, or this machine.
        public var origins: Set<RequestOrigin> = []
        /// Whether a key is replaced by itself when it is due.
        public var rotatesAutomatically = true

        /// The calls of the storage and of the key store: the same for all copies, as a call that hangs hangs for all of them.
        private(set) var storageCalls = BlockingCalls()
        private(set) var keyCalls = BlockingCalls()

        /// The auth service at `baseUrl` (https; http only on this machine) and this platform's parts.
        ///
        /// - Throws: `NOT_CONFIGURED` for anything that is not the URL of a service.
        public init(baseUrl: String) throws(SynheartAuthError) {
            origin = try AuthOrigin(baseUrl)
            transport = URLSessionTransport()
            clock = SystemClock()
            random = SystemRandom()
            sleeper = TaskSleeper()
            logger = SilentLogger()
            storage = PlatformParts.storage
            keyStore = PlatformParts.keyStore
            attestation = PlatformParts.attestation
        }

        /// The service's scheme, host and port, such as `https://auth.example.com`.
        public var baseUrl: String { origin.text }

        var isDevelopment: Bool {
            #if DEBUG
                attestation is DevelopmentAttestation
            #else
                false
            #endif
        }
    }
}
