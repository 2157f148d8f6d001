#if !(canImport(Security) && canImport(CryptoKit) && canImport(DeviceCheck))
    internal import Foundation

    /// The defaults without a vendor's hardware: records in files, and in debug builds keys in files. A release build has no key
    /// store until the configuration names one.
    enum PlatformParts {
        static var storage: any Storage { FileStorage(directory: directory) }
        static var attestation: any AttestationProvider { NoAttestation() }
        static var logger: any AuthLogger {
            #if DEBUG
                StandardErrorLogger()
            #else
                SilentLogger()
            #endif
        }

        static var runtimeKeyStore: any KeyStore { keyStore }
        static var runtimeSecrets: any RuntimeSecrets { StoredSecrets(storage: storage) }
        static var runningTime: any RunningTime { UnlimitedTime() }

        static var keyStore: any KeyStore {
            #if DEBUG
                SoftwareKeyStore(directory: directory + "/keys")
            #else
                NoKeyStore()
            #endif
        }

        /// `$XDG_STATE_HOME/synheart-auth`, else `~/.local/state/synheart-auth`.
        private static var directory: String {
            let environment = ProcessInfo.processInfo.environment
            if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state + "/synheart-auth" }
            return NSHomeDirectory() + "/.local/state/synheart-auth"
        }
    }
#endif
