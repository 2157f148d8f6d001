#if canImport(Security)
    internal import Foundation
    internal import Security

    /// The secrets of Synheart Core's runtime, as Keychain items. An item has the service and the key that the caller
    /// passes, unchanged, so that secrets of deployed apps are found.
    struct KeychainSecrets: RuntimeSecrets {
        private let confirmed: ConfirmedLook

        init(pause: @escaping @Sendable () -> Void = ConfirmedLook.pause) { confirmed = ConfirmedLook(pause: pause) }

        func read(service: String, key: String) -> StorageReading {
            item(service, key).read { look in confirmed.run { look(nil) } }
        }

        /// Reads without confirming that a secret is absent.
        func look(service: String, key: String) -> StorageReading { item(service, key).read() }

        func write(_ bytes: [UInt8], service: String, key: String) throws(StorageError) {
            try item(service, key).write(bytes)
        }

        func remove(service: String, key: String) throws(StorageError) { try item(service, key).remove() }

        private func item(_ service: String, _ key: String) -> KeychainItem {
            KeychainItem(service: service, account: key, accessGroup: nil)
        }
    }
#endif
