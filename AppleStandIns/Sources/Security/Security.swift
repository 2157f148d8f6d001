import Crypto
// Stand-in for Security.framework: what the SDK calls, with the same spelling, types and statuses.
@_exported import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFDictionary = NSDictionary
public typealias CFString = NSString
public typealias CFData = NSData
public typealias CFError = NSError
public typealias CFBoolean = NSNumber
public typealias CFAllocator = NSObject
public typealias OSStatus = Int32
public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
nonisolated(unsafe) public let kCFAllocatorDefault: CFAllocator? = nil

public var errSecSuccess: OSStatus { 0 }
public var errSecItemNotFound: OSStatus { -25300 }
public var errSecDuplicateItem: OSStatus { -25299 }
public var errSecInteractionNotAllowed: OSStatus { -25308 }
public var errSecAuthFailed: OSStatus { -25293 }
public var errSecNotAvailable: OSStatus { -25291 }
public var errSecInDarkWake: OSStatus { -25320 }
public var errSecUnimplemented: OSStatus { -4 }
public var errSecMissingEntitlement: OSStatus { -34018 }
public var errSecParam: OSStatus { -50 }
public var errSecDiskFull: OSStatus { -34 }
public typealias CFIndex = Int
public typealias CFTypeID = UInt
public func CFGetTypeID(_ object: CFTypeRef) -> CFTypeID { object is SecKey ? SecKeyGetTypeID() : 0 }
public func SecKeyGetTypeID() -> CFTypeID { 314 }
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }
public func CFErrorGetDomain(_ error: CFError) -> CFString { NSString(string: error.domain) }

// On Apple these are C constants (`let kSecClass: CFString`).
nonisolated(unsafe) public let kSecClass: CFString = "class"
nonisolated(unsafe) public let kSecClassKey: CFString = "keys"
nonisolated(unsafe) public let kSecClassGenericPassword: CFString = "genp"
nonisolated(unsafe) public let kSecAttrKeyType: CFString = "type"
nonisolated(unsafe) public let kSecAttrKeyTypeECSECPrimeRandom: CFString = "73"
nonisolated(unsafe) public let kSecAttrKeySizeInBits: CFString = "bsiz"
nonisolated(unsafe) public let kSecAttrTokenID: CFString = "tkid"
nonisolated(unsafe) public let kSecAttrTokenIDSecureEnclave: CFString = "com.apple.setoken"
nonisolated(unsafe) public let kSecPrivateKeyAttrs: CFString = "private"
nonisolated(unsafe) public let kSecAttrIsPermanent: CFString = "perm"
nonisolated(unsafe) public let kSecAttrApplicationTag: CFString = "atag"
nonisolated(unsafe) public let kSecAttrAccessControl: CFString = "accc"
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
nonisolated(unsafe) public let kSecReturnRef: CFString = "r_Ref"
nonisolated(unsafe) public let kSecReturnData: CFString = "r_Data"
nonisolated(unsafe) public let kSecMatchLimit: CFString = "m_Limit"
nonisolated(unsafe) public let kSecMatchLimitOne: CFString = "m_LimitOne"
nonisolated(unsafe) public let kSecValueData: CFString = "v_Data"
nonisolated(unsafe) public let kSecAttrAccount: CFString = "acct"
nonisolated(unsafe) public let kSecAttrService: CFString = "svce"
nonisolated(unsafe) public let kSecAttrAccessible: CFString = "pdmn"
nonisolated(unsafe) public let kSecAttrAccessGroup: CFString = "agrp"
nonisolated(unsafe) public let kSecUseDataProtectionKeychain: CFString = "nleg"

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let privateKeyUsage = Self(rawValue: 1 << 30)
    public static let biometryCurrentSet = Self(rawValue: 1 << 3)
    public static let userPresence = Self(rawValue: 1)
}
public final class SecAccessControl: NSObject, @unchecked Sendable {
    let flags: SecAccessControlCreateFlags; init(_ f: SecAccessControlCreateFlags) { flags = f }
}
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { .init(flags) }

public final class SecKey: NSObject, @unchecked Sendable {
    enum Backing { case priv(P256.Signing.PrivateKey), pub(P256.Signing.PublicKey) }
    let backing: Backing
    init(_ b: Backing) { backing = b }
}
public struct SecKeyAlgorithm: RawRepresentable, Hashable, @unchecked Sendable {
    public let rawValue: CFString
    public init(rawValue: CFString) { self.rawValue = rawValue }
    public static let ecdsaSignatureMessageX962SHA256 = Self(rawValue: "algid:sign:ECDSA:message-X962:SHA256")
}

/// What a test makes the Keychain do.
public enum StandInKeychain {
    struct State {
        var keys: [Data: SecKey] = [:]
        var items: [String: Data] = [:]
        var failures: [OSStatus] = []
        var signingFailure: (domain: String, code: Int)?
        var isUnlockedSinceBoot = true
        var isFull = false
        var creationStatus: OSStatus?
        var exportStatus: OSStatus?
    }

    private static let lock = NSLock()
    nonisolated(unsafe) private static var state = State()

    static func with<Value>(_ body: (inout State) -> Value) -> Value { lock.withLock { body(&state) } }

    public static func reset() { with { $0 = State() } }
    /// The next calls that can fail do, with these statuses.
    public static func fail(_ statuses: OSStatus...) { with { $0.failures = statuses } }
    /// Every signature fails like this until told otherwise.
    public static func failSigning(domain: String, code: Int?) {
        with { $0.signingFailure = code.map { (domain, $0) } }
    }
    /// Before its first unlock nothing can be read or written.
    public static func setUnlockedSinceBoot(_ isUnlocked: Bool) { with { $0.isUnlockedSinceBoot = isUnlocked } }
    /// Every key that is made, or whose public half is asked for, fails like this until told otherwise.
    public static func failCreation(_ status: OSStatus?) { with { $0.creationStatus = status } }
    public static func failExport(_ status: OSStatus?) { with { $0.exportStatus = status } }
    /// A full disk: nothing can be added or changed.
    public static func setFull(_ isFull: Bool) { with { $0.isFull = isFull } }
    public static func loseKeys() { with { $0.keys = [:] } }
    public static var tags: Set<String> { with { Set($0.keys.keys.map { String(decoding: $0, as: UTF8.self) }) } }
    public static var itemCount: Int { with { $0.items.count } }

    static func status(_ state: inout State, writes: Bool = false) -> OSStatus? {
        if !state.failures.isEmpty { return state.failures.removeFirst() }
        if writes, state.isFull { return errSecDiskFull }
        return state.isUnlockedSinceBoot ? nil : errSecInteractionNotAllowed
    }
}

private func fail(_ error: UnsafeMutablePointer<Unmanaged<CFError>?>?, _ domain: String, _ code: Int) {
    error?.pointee = .passRetained(NSError(domain: domain, code: code))
}

public func SecKeyCreateRandomKey(
    _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
    let result: Result<SecKey, KeychainFailure> = StandInKeychain.with { state in
        if let status = StandInKeychain.status(&state, writes: true) { return .failure(KeychainFailure(status: status)) }
        if let status = state.creationStatus { return .failure(KeychainFailure(status: status)) }
        guard let attributes = parameters as? [String: Any],
            let isEnclave = attributes["tkid"] as? String, isEnclave == "com.apple.setoken",
            let privateAttributes = attributes["private"] as? [String: Any],
            let tag = privateAttributes["atag"] as? Data, privateAttributes["perm"] as? Bool == true,
            privateAttributes["accc"] is SecAccessControl
        else { return .failure(KeychainFailure(status: errSecParam)) }
        let key = SecKey(.priv(.init()))
        state.keys[tag] = key
        return .success(key)
    }
    switch result {
    case .success(let key): return key
    case .failure(let failure):
        fail(error, NSOSStatusErrorDomain, Int(failure.status))
        return nil
    }
}

struct KeychainFailure: Error { let status: OSStatus }

public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? {
    if case .priv(let key) = key.backing { SecKey(.pub(key.publicKey)) } else { key }
}

public func SecKeyCopyExternalRepresentation(
    _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
    if let status = StandInKeychain.with({ $0.exportStatus }) {
        fail(error, NSOSStatusErrorDomain, Int(status))
        return nil
    }
    // A key of the Secure Enclave cannot be exported.
    guard case .pub(let key) = key.backing else {
        fail(error, NSOSStatusErrorDomain, Int(errSecAuthFailed))
        return nil
    }
    return NSData(data: key.x963Representation)
}

public func SecKeyCreateSignature(
    _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: CFData, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
    if let failure = StandInKeychain.with({ $0.signingFailure }) {
        fail(error, failure.domain, failure.code)
        return nil
    }
    guard case .priv(let key) = key.backing, let signature = try? key.signature(for: data as Data) else {
        fail(error, NSOSStatusErrorDomain, Int(errSecParam))
        return nil
    }
    return NSData(data: signature.derRepresentation)
}

public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    StandInKeychain.with { state in
        if let status = StandInKeychain.status(&state) { return status }
        guard let query = query as? [String: Any] else { return errSecParam }
        if let tag = query["atag"] as? Data {
            guard let key = state.keys[tag] else { return errSecItemNotFound }
            result?.pointee = key
            return errSecSuccess
        }
        guard let account = query["acct"] as? String else { return errSecParam }
        guard let data = state.items[account] else { return errSecItemNotFound }
        result?.pointee = NSData(data: data)
        return errSecSuccess
    }
}

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    StandInKeychain.with { state in
        if let status = StandInKeychain.status(&state, writes: true) { return status }
        guard let item = attributes as? [String: Any], let account = item["acct"] as? String,
            let data = item["v_Data"] as? Data, item["pdmn"] as? String == "cku"
        else { return errSecParam }
        guard state.items[account] == nil else { return errSecDuplicateItem }
        state.items[account] = data
        return errSecSuccess
    }
}

public func SecItemUpdate(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus {
    StandInKeychain.with { state in
        if let status = StandInKeychain.status(&state, writes: true) { return status }
        guard let query = query as? [String: Any], let account = query["acct"] as? String,
            let value = attributes as? [String: Any], let data = value["v_Data"] as? Data
        else { return errSecParam }
        guard state.items[account] != nil else { return errSecItemNotFound }
        state.items[account] = data
        return errSecSuccess
    }
}

public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    StandInKeychain.with { state in
        if let status = StandInKeychain.status(&state) { return status }
        guard let query = query as? [String: Any] else { return errSecParam }
        if let tag = query["atag"] as? Data {
            return state.keys.removeValue(forKey: tag) == nil ? errSecItemNotFound : errSecSuccess
        }
        guard let account = query["acct"] as? String else { return errSecParam }
        return state.items.removeValue(forKey: account) == nil ? errSecItemNotFound : errSecSuccess
    }
}

public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    NSString(string: "OSStatus \(status)")
}
