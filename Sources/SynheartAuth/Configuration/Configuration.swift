public import AuthContract
public import Foundation

extension SynheartAuth {
    /// The auth service, the SDK's settings, and the parts that the SDK uses, such as the transport. `init(baseUrl:)`
    /// uses the platform's own parts; each part can be replaced.
    public struct Configuration: Sendable {
        /// The auth service.
        let origin: AuthOrigin
        /// Sends requests.
        public var transport: any HTTPTransport { didSet { own.insert(.transport) } }
        /// Keeps records.
        public var storage: any RecordStorage {
            didSet {
                own.insert(.storage)
                storageCalls = BlockingCalls()
            }
        }
        /// Keeps keys. The default on Apple's systems is the Secure Enclave. Elsewhere it is software keys in debug builds, and no
        /// key store in release builds. The SDK uses software keys in no other case, unless the app sets such a key store.
        public var keyStore: any KeyStore {
            didSet {
                own.insert(.keyStore)
                keyCalls = BlockingCalls()
            }
        }
        /// Attests the app and its key.
        public var attestation: any AttestationProvider { didSet { own.insert(.attestation) } }
        /// Tells the time.
        public var clock: any DeviceClock { didSet { own.insert(.clock) } }
        /// Makes nonces and jitter.
        public var random: any RandomSource { didSet { own.insert(.random) } }
        /// Waits between attempts and for deadlines.
        public var sleeper: any Sleeper { didSet { own.insert(.sleeper) } }
        /// Receives log entries. By default the unified logging system on Apple's systems. Elsewhere standard error in debug
        /// builds, and no log in release builds.
        public var logger: any AuthLogger { didSet { own.insert(.logger) } }
        /// The origins, besides the auth service's own, for which `send` and `sign` sign requests: https, or http on this machine.
        public var origins: Set<RequestOrigin> = []
        /// Earlier origins of the auth service, if it moved to another host. The SDK moves a record of an earlier origin to the
        /// present one. It sends nothing to earlier origins.
        public var aliases: Set<RequestOrigin> = []
        /// An id that the app itself gave this device. Registration sends it; the service stores and displays it, but never
        /// trusts it.
        public var deviceLocalID: UUID?
        /// The scheme that the app signs with: `one` (method, path, time and body), or `two` (RFC 9421), which also covers query
        /// and host, and covers the body by its digest. If the service has accepted scheme 2 from a device, the device signs under
        /// scheme 2 from then on, whatever this value is, because the service refuses a lower scheme. So choose one value for
        /// all of the app's requests.
        public var scheme = SignatureScheme.one
        /// Whether the SDK rotates a key by itself when it is due.
        public var rotatesAutomatically = true

        /// Asks the system for time to run while the SDK holds a file lock: iOS kills a suspended process that holds one.
        var runningTime: any RunningTime

        /// A part that an app can replace.
        private enum Part: String, CaseIterable {
            case transport, storage, keyStore, attestation, clock, random, sleeper, logger
        }

        /// The parts that the app set. The others are the platform's.
        private var own: Set<Part> = []

        /// The calls of the storage and the key store. Copies of a configuration share these objects, because a hanging call
        /// affects all copies.
        private(set) var storageCalls = BlockingCalls()
        private(set) var keyCalls = BlockingCalls()

        /// A configuration with this platform's parts.
        ///
        /// - Parameter baseUrl: The auth service, https; http only on this machine.
        /// - Throws: `NOT_CONFIGURED` if `baseUrl` is not the URL of a service.
        public init(baseUrl: String) throws(SynheartAuthError) {
            origin = try AuthOrigin(baseUrl)
            transport = DefaultTransport()
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

        /// The names of the members in which two configurations differ.
        func differences(from other: Self) -> [String] {
            let values: [(String, Bool)] = [
                ("baseUrl", origin == other.origin), ("origins", origins == other.origins),
                ("aliases", aliases == other.aliases), ("deviceLocalID", deviceLocalID == other.deviceLocalID),
                ("scheme", scheme == other.scheme),
                ("rotatesAutomatically", rotatesAutomatically == other.rotatesAutomatically),
            ]
            let parts = Part.allCases.map { part in
                let isSame =
                    own.contains(part) ? Self.isSame(value(part), other.value(part)) : !other.own.contains(part)
                return (part.rawValue, isSame)
            }
            return (values + parts).filter { !$0.1 }.map(\.0)
        }

        private func value(_ part: Part) -> any Sendable {
            switch part {
            case .transport: transport
            case .storage: storage
            case .keyStore: keyStore
            case .attestation: attestation
            case .clock: clock
            case .random: random
            case .sleeper: sleeper
            case .logger: logger
            }
        }

        /// Whether two parts are the same object, or equal values: `Hashable` ones, or structs with equal members.
        private static func isSame(_ one: Any, _ other: Any) -> Bool {
            guard type(of: one) == type(of: other) else { return false }
            if type(of: one) is AnyClass { return one as AnyObject === other as AnyObject }
            if let one = one as? any Hashable, let other = other as? any Hashable {
                return AnyHashable(one) == AnyHashable(other)
            }
            let (members, others) = (Mirror(reflecting: one), Mirror(reflecting: other))
            guard members.displayStyle == .struct, members.children.count == others.children.count else { return false }
            return zip(members.children, others.children).allSatisfy { isSame($0.value, $1.value) }
        }

        var isDevelopment: Bool {
            #if DEBUG
                attestation is DevelopmentAttestation
            #else
                false
            #endif
        }
    }
}
