import AuthServer
import AuthService
import SQLiteStores

/// The service key that a command or the service uses, and its source.
struct StoreKey {
    let key: ServiceKey
    /// The source of the key, for messages.
    private let source: String
    /// The stores that the key seals, for messages.
    private let place: StorePlace

    /// The configured key, or else the key in the file next to a SQLite database.
    ///
    /// - Parameter creating: whether to create the key file if neither a key nor a database exists. An existing database was sealed
    ///   with a key, and a new key could not open it.
    init(_ configuration: ServiceConfiguration, of place: StorePlace, creating: Bool) throws {
        self.place = place
        // Look for the database before the key: another process that creates both creates the key first. In the other order, this
        // process could miss the new key and find the new database.
        let hasDatabase = place.file.map { SQLiteStores.hasDatabase(at: $0) } ?? true
        if let key = try configuration.serviceKey {
            (self.key, source) = (key, "service_key of \(configuration.origin(of: .serviceKey))")
            return
        }
        guard let database = place.file else {
            throw CommandFailure(.impossible, "there is no service_key (\(ConfigurationKey.serviceKey.variable))")
        }
        let file = ServiceKeyFile(database: database)
        source = file.path
        if let key = try file.load() {
            self.key = key
            return
        }
        guard creating, !hasDatabase else {
            // If the file is not a database, report that instead.
            if hasDatabase { try SQLiteStores.checkFile(database) }
            throw CommandFailure(
                .impossible,
                "there is no service key for \(database): neither \(file.path) nor service_key "
                    + "(\(ConfigurationKey.serviceKey.variable)). Configure the key that the service uses, or put the file "
                    + "back from your backup"
                    + (hasDatabase ? "; no key is created beside an existing database" : ""))
        }
        // Do not create a key if the database was lost: a restored database needs the old key, in the same file.
        try SQLiteStores.requireNotLost(database)
        try file.create()
        guard let key = try file.load() else {
            throw CommandFailure(.impossible, "\(file.path) was removed while it was created")
        }
        self.key = key
    }

    /// The rules that check whether this key fits the stores.
    func rules(_ stores: any StoreEngine) -> ServiceKeyRules { ServiceKeyRules(store: stores.serviceKeys, key: key) }

    /// Runs `body`. If the key is refused, the error names the key's source and the place of the stores.
    func explaining<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch let error as ServiceKeyError {
            throw CommandFailure(.impossible, "the service key (\(source)) for \(place) \(error)")
        }
    }

    /// For the service: throws if the key does not fit the stores. Otherwise tells the stores that the service seals with it.
    func admitService(to stores: any StoreEngine) async throws {
        try await explaining { try await rules(stores).admit(writing: true) }
        stores.serviceSeals(with: key.checks[0])
    }

    /// For commands that run next to a service: throws if the key does not fit the stores. If `writing`, also throws if the
    /// first key is new and a running service is not configured with it.
    func admitCommand(to stores: any StoreEngine, writing: Bool) async throws {
        try await explaining { try await rules(stores).admit(writing: writing, lock: stores.lock) }
        // Each change checks the key again, because the key may be rotated after the check above.
        if writing { stores.allowWrites(whileSealing: key.checks[0]) }
    }
}

extension ServiceConfiguration {
    fileprivate func origin(of key: ConfigurationKey) -> String {
        all.first { $0.key == key }?.origin.description ?? "the configuration"
    }
}
