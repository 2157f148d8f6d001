internal import Bytes

/// An implementation of the eight functions of Synheart Core's runtime.
package struct RuntimeHost: Sendable {
    package typealias Text = UnsafePointer<CChar>?
    package typealias NewText = UnsafeMutablePointer<CChar>?
    package typealias Octets = UnsafePointer<UInt8>?

    let generateKey: @Sendable (Text) -> NewText
    let signBytes: @Sendable (Text, Octets, Int) -> NewText
    let getAttestation: @Sendable (Text, Octets, Int) -> NewText
    let keyExists: @Sendable (Text) -> Int32
    let deleteKey: @Sendable (Text) -> Int32
    let secureStore: @Sendable (Text, Text, Text) -> Int32
    let secureLoad: @Sendable (Text, Text) -> NewText
    let secureDelete: @Sendable (Text, Text) -> Int32

    /// The functions, in the order in which the runtime lists them.
    package init(
        generateKey: @escaping @Sendable (Text) -> NewText,
        signBytes: @escaping @Sendable (Text, Octets, Int) -> NewText,
        getAttestation: @escaping @Sendable (Text, Octets, Int) -> NewText,
        keyExists: @escaping @Sendable (Text) -> Int32, deleteKey: @escaping @Sendable (Text) -> Int32,
        secureStore: @escaping @Sendable (Text, Text, Text) -> Int32,
        secureLoad: @escaping @Sendable (Text, Text) -> NewText, secureDelete: @escaping @Sendable (Text, Text) -> Int32
    ) {
        self.generateKey = generateKey
        self.signBytes = signBytes
        self.getAttestation = getAttestation
        self.keyExists = keyExists
        self.deleteKey = deleteKey
        self.secureStore = secureStore
        self.secureLoad = secureLoad
        self.secureDelete = secureDelete
    }
}

/// The host that the runtime's functions call: an installed one, or `PlatformRuntime.platform` by default.
package enum RuntimeHostRegistry {
    private static let installed = Locked<RuntimeHost?>(nil)

    /// The host. It stays the same from its first use on.
    static var host: RuntimeHost {
        installed.withLock { installed in
            if let installed { return installed }
            let host = RuntimeHost(PlatformRuntime.platform)
            installed = host
            return host
        }
    }

    /// Installs a host. Returns false if a function was already used, or a host is installed.
    package static func install(_ host: RuntimeHost) -> Bool {
        installed.withLock { installed in
            guard installed == nil else { return false }
            installed = host
            return true
        }
    }
}
