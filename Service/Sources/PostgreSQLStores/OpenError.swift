public import AuthService

/// Why the database could not be opened.
public typealias PostgreSQLOpenError = StoreOpenError
