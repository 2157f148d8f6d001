public import AuthService

/// Why the file could not be opened.
public typealias OpenError = StoreOpenError
