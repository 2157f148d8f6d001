#if !(canImport(Security) && canImport(CryptoKit) && canImport(DeviceCheck))
    internal import Foundation

    /// The defaults on systems other than Apple's: records in files, and in debug builds keys in files. A release build
    /// has no key store until the configuration names one.
    enum PlatformParts {
        static var storage: any RecordStorage { FileStorage(directory: directory) }
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

        /// `synheart-auth` in `$XDG_STATE_HOME`, else in `$HOME/.local/state`, else in `.local/state` of the user's home directory.
        static var directory: String { directory(ProcessInfo.processInfo.environment) }

        /// The directory in this environment. Relative paths are ignored, because they depend on the folder in which the process
        /// was started.
        static func directory(_ environment: [String: String]) -> String {
            if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state + "/synheart-auth" }
            // Prefer `HOME`: NSHomeDirectory reads the user database, which is not adapted to containers and CI.
            let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? NSHomeDirectory()
            return home + "/.local/state/synheart-auth"
        }
    }
#endif
