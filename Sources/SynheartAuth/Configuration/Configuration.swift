public import AuthContract
public import Foundation

extension SynheartAuth {
    /// The parts that the SDK uses. `init(baseUrl:)` takes the platform's own; each part can be replaced.
    public struct Configuration: Sendable {
        /// The auth service.
        let origin: AuthOrigin
        /// Sends requests.
        public var transport: any HTTPTransport
        /// Keeps records.
        public var storage: any RecordStorage { didSet { storageCalls = BlockingCalls() } }
        /// Keeps keys. The SDK uses software keys only if this names them.
        public var keyStore: any KeyStore { didSet { keyCalls = BlockingCalls() } }
        /// Attests the app and its key.
        public var attestation: any AttestationProvider
        /// Tells the time.
        public var clock: any DeviceClock
        /// Makes nonces and jitter.
        public var random: any RandomSource
        /// Waits between attempts and for deadlines.
        public var sleeper: any Sleeper
        /// Receives log entries. By default the unified logging system on Apple's systems; elsewhere standard error in debug builds.
        public var logger: any AuthLogger
        /// The origins besides the auth service for which `send` and `sign` sign: https, or this machine.
        public var origins: Set<RequestOrigin> = []
        /// Earlier origins of the auth service, if it moved to another host. A record of theirs moves along. The SDK sends nothing to
        /// them.
        public var aliases: Set<RequestOrigin> = []
        /// An id that the app itself gave this device. Registration sends it; the service stores and shows it, and never trusts it.
        public var deviceLocalID: UUID?
        /// Whether the SDK rotates a key by itself when it is due.
        public var rotatesAutomatically = true

        /// Covers the time that the SDK holds a lock.
        var runningTime: any RunningTime

        /// The calls of the storage and the key store. Copies of a configuration share them, because they share a call that hangs.
        private(set) var storageCalls = BlockingCalls()
        private(set) var keyCalls = BlockingCalls()

        /// A configuration with this platform's parts.
        ///
        /// - Parameter baseUrl: The auth service, https; http only on this machine.
        /// - Throws: `NOT_CONFIGURED` if `baseUrl` is not the URL of a service.
        public init(baseUrl: String) throws(SynheartAuthError) {
            origin = try AuthOrigin(baseUrl)
            transport = URLSessionTransport()
            clock = SystemClock()
            random = SystemRandom()
            sleeper = TaskSleeper()
            logger = PlatformParts.logger
            storage = PlatformParts.storage
            keyStore = PlatformParts.keyStore
            attestation = PlatformParts.attestation
            runningTime = PlatformParts.runningTime
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
