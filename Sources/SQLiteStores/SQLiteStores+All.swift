public import AuthService

extension SQLiteStores {
    /// Credentials of services and operators.
    public var credentials: any CredentialStore { SQLiteCredentialStore(database: database) }

    /// The keys that sign device tokens.
    public var signingKeys: any SigningKeyStore { SQLiteSigningKeyStore(database: database) }

    /// Everything that the service stands on.
    public var all: AuthService.Stores {
        AuthService.Stores(
            challenges: challenges, replay: replay, apps: apps, devices: devices, audit: audit,
            credentials: credentials, signingKeys: signingKeys)
    }
}
