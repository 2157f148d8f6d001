import Crypto
// Stand-in for Security.framework: the functions that the SDK calls, with the same spelling, types and statuses.
@_exported import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFDictionary = NSDictionary
public typealias CFString = NSString
public typealias CFData = NSData
/// As on Apple's systems, the compiler does not treat this as an NSError. `CFErrorGetCode` and others return its parts.
public final class CFError {
    let domain: String
    let code: Int
    let userInfo: [String: Any]

    init(_ domain: String, _ code: Int, _ userInfo: [String: Any]) {
        self.domain = domain
        self.code = code
        self.userInfo = userInfo
    }
}
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
public var errSecIO: OSStatus { -36 }
public var errSecAllocate: OSStatus { -108 }
public typealias CFIndex = Int
public typealias CFTypeID = UInt
public func CFGetTypeID(_ object: CFTypeRef) -> CFTypeID { object is SecKey ? SecKeyGetTypeID() : 0 }
public func SecKeyGetTypeID() -> CFTypeID { 314 }
public func CFErrorGetCode(_ error: CFError!) -> CFIndex { error.code }
public func CFErrorGetDomain(_ error: CFError!) -> CFString! { NSString(string: error.domain) }
public func CFErrorCopyUserInfo(_ error: CFError!) -> CFDictionary! {
    let userInfo = NSMutableDictionary()
    for (name, value) in error.userInfo { userInfo[name] = value }
    return userInfo
}

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
nonisolated(unsafe) public let kSecReturnAttributes: CFString = "r_Attributes"
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
/// Not `Sendable`, as in Apple's SDK.
public final class SecAccessControl: NSObject {
    let flags: SecAccessControlCreateFlags; init(_ f: SecAccessControlCreateFlags) { flags = f }
}
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { .init(flags) }

@available(*, unavailable) extension SecAccessControl: Sendable {}

/// Not `Sendable`, as in Apple's SDK.
public final class SecKey: NSObject {
    enum Backing { case priv(P256.Signing.PrivateKey), pub(P256.Signing.PublicKey) }
    let backing: Backing
    /// The key's tag. It tells whether the key is a canary, with which the SDK tests signing. `failSigning` can spare canaries.
    let tag: String
    init(_ b: Backing, tag: String = "") { (backing, self.tag) = (b, tag) }
}
@available(*, unavailable) extension SecKey: Sendable {}

public struct SecKeyAlgorithm: RawRepresentable, Hashable, @unchecked Sendable {
    public let rawValue: CFString
    public init(rawValue: CFString) { self.rawValue = rawValue }
    public static let ecdsaSignatureMessageX962SHA256 = Self(rawValue: "algid:sign:ECDSA:message-X962:SHA256")
}

/// The behaviour of the Keychain that a test chooses.
public enum StandInKeychain {
    /// Several keys may have one tag, as in the Keychain.
    struct Key { let tag: Data, key: SecKey; var group: String }
    struct Item: Hashable { let service: String, account: String, group: String }

    struct State {
        var keys: [Key] = []
        var items: [Item: Data] = [:]
        var defaultGroup = appGroup
        var groups: Set<String> = [appGroup]
        var lies = 0
        var failures: [OSStatus] = []
        var signingFailure: SigningFailure?
        var movesKeys = true
        var garbles = false
        var hidesKeys = false
        var hidesPublicKeys = false
        var isUnlockedSinceBoot = true
        var isFull = false
        var creationStatus: OSStatus?
        var calls = 0
        var enclaveCalls = 0
        var exportStatus: OSStatus?
        var keychainDelay: TimeInterval = 0
        var enclaveDelay: TimeInterval = 0
    }

    struct SigningFailure {
        let domain: String
        let code: Int
        let userInfo: [String: Any]
        var times: Int
        let affectsCanaries: Bool
    }

    /// The Keychain access group that every app has: its app id.
    static let appGroup = "TEAM.com.example.app"

    private static let lock = NSLock()
    nonisolated(unsafe) private static var state = State()

    static func with<Value>(_ body: (inout State) -> Value) -> Value { lock.withLock { body(&state) } }

    public static func reset() { with { $0 = State() } }
    /// Returns the numbers of Keychain calls and Secure Enclave calls (key creation, signing) since the last call of this function,
    /// and resets them.
    public static func takeCalls() -> (keychain: Int, enclave: Int) {
        with { state in
            defer { (state.calls, state.enclaveCalls) = (0, 0) }
            return (state.calls, state.enclaveCalls)
        }
    }
    /// From now on each call of the Keychain, and each of the Secure Enclave, takes at least this many milliseconds.
    public static func slow(keychain: Double, enclave: Double) {
        with { ($0.keychainDelay, $0.enclaveDelay) = (keychain / 1000, enclave / 1000) }
    }
    static func takeTime(_ delay: (State) -> TimeInterval) {
        let seconds = with { delay($0) }
        if seconds > 0 { Thread.sleep(forTimeInterval: seconds) }
    }
    /// Makes the next calls that can fail return these statuses, one each.
    public static func fail(_ statuses: OSStatus...) { with { $0.failures = statuses } }
    /// Makes signatures fail with this error, `times` times or until the next call of this function. A nil `code` makes them
    /// succeed again. Signatures of canary keys fail only if `affectsCanaries` is true.
    ///
    /// - Parameters:
    ///   - enclaveStatus: The Secure Enclave's own status (`AKSError`).
    ///   - isBelow: Whether the underlying error has that status, instead of the error itself.
    public static func failSigning(
        domain: String, code: Int?, enclaveStatus: Int? = nil, isBelow: Bool = false, times: Int = .max,
        affectsCanaries: Bool = false
    ) {
        let own: [String: Any] = enclaveStatus.map { ["AKSError": NSNumber(value: $0)] } ?? [:]
        let userInfo = isBelow ? [NSUnderlyingErrorKey: NSError(domain: "AKS", code: 1, userInfo: own)] : own
        with {
            $0.signingFailure = code.map {
                SigningFailure(
                    domain: domain, code: $0, userInfo: userInfo, times: times, affectsCanaries: affectsCanaries)
            }
        }
    }
    /// Sets whether `SecItemUpdate` can change the group of Secure Enclave keys. Apple does not document whether it can.
    public static func setMovesKeys(_ moves: Bool) { with { $0.movesKeys = moves } }
    /// Sets whether look-ups find no keys, although keys exist. Items are still found.
    public static func hideKeys(_ hides: Bool) { with { $0.hidesKeys = hides } }
    /// Sets whether look-ups return empty data instead of the data that was written.
    public static func setGarbles(_ garbles: Bool) { with { $0.garbles = garbles } }
    /// Sets whether `SecKeyCopyPublicKey` returns nil.
    public static func hidePublicKeys(_ hides: Bool) { with { $0.hidesPublicKeys = hides } }
    /// Sets whether the device was unlocked since its start. Before that, nothing can be read or written.
    public static func setUnlockedSinceBoot(_ isUnlocked: Bool) { with { $0.isUnlockedSinceBoot = isUnlocked } }
    /// Makes the creation of keys fail with this status; nil: it succeeds again. `failExport` does the same for the export of
    /// public keys.
    public static func failCreation(_ status: OSStatus?) { with { $0.creationStatus = status } }
    public static func failExport(_ status: OSStatus?) { with { $0.exportStatus = status } }
    /// Sets whether the disk is full. While it is full, nothing can be added or changed.
    public static func setFull(_ isFull: Bool) { with { $0.isFull = isFull } }
    /// Removes every key, including the canary keys with which the SDK tests signing.
    public static func loseKeys() { with { $0.keys = [] } }
    /// The tags of the identities' keys. `canaryTags` has the tags of their canaries, by which the SDK checks the Keychain.
    public static var tags: Set<String> { tags { !$0.hasSuffix(" canary") } }
    /// Removes the records and keeps their canaries, the items by which the SDK checks that a record is really absent.
    public static func loseRecords() {
        with { state in for key in state.items.keys where key.service == "ai.synheart.auth" { state.items[key] = nil } }
    }
    public static var canaryTags: Set<String> { tags { $0.hasSuffix(" canary") } }
    private static func tags(_ isIncluded: (String) -> Bool) -> Set<String> {
        with { Set($0.keys.map { String(decoding: $0.tag, as: UTF8.self) }.filter(isIncluded)) }
    }
    /// Removes the identities' keys and keeps their canaries, the keys with which the SDK tests signing.
    public static func loseIdentityKeys() {
        with { $0.keys.removeAll { !String(decoding: $0.tag, as: UTF8.self).hasSuffix(" canary") } }
    }
    /// The number of records of identities. The items with which the SDK tests the Keychain have another service.
    public static var itemCount: Int { with { $0.items.keys.count { $0.service == "ai.synheart.auth" } } }
    /// The access groups that have keys or items.
    public static var usedGroups: Set<String> { with { Set($0.items.keys.map(\.group) + $0.keys.map(\.group)) } }
    /// Stores an item as other code of this app would.
    public static func put(_ data: Data, service: String, account: String) {
        with { $0.items[Item(service: service, account: account, group: appGroup)] = data }
    }
    public static func item(_ service: String, _ account: String) -> Data? {
        with { $0.items[Item(service: service, account: account, group: appGroup)] }
    }
    /// The accounts of a service's items, in all groups.
    public static func accounts(_ service: String) -> Set<String> {
        with { Set($0.items.keys.filter { $0.service == service }.map(\.account)) }
    }
    /// Entitles the app to this group too.
    public static func entitle(_ group: String) { with { _ = $0.groups.insert(group) } }
    /// Makes this the first group of *Keychain Sharing*. From now on, items that name no group are stored in this group.
    public static func share(_ group: String) {
        entitle(group)
        with { $0.defaultGroup = group }
    }
    /// Makes the next `times` look-ups and changes report "not found", as at some prewarmed launches.
    public static func lie(times: Int) { with { $0.lies = times } }

    /// The access groups that a query may use.
    static func groups(_ query: [String: Any], _ state: State) -> Set<String>? {
        guard let group = query["agrp"] as? String else { return state.groups }
        return state.groups.contains(group) ? [group] : nil
    }

    static func status(_ state: inout State, writes: Bool = false) -> OSStatus? {
        if !state.failures.isEmpty { return state.failures.removeFirst() }
        if writes, state.isFull { return errSecDiskFull }
        return state.isUnlockedSinceBoot ? nil : errSecInteractionNotAllowed
    }
}

private func fail(
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?, _ domain: String, _ code: Int, _ userInfo: [String: Any] = [:]
) {
    error?.pointee = .passRetained(CFError(domain, code, userInfo))
}

public func SecKeyCreateRandomKey(
    _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
    StandInKeychain.takeTime { $0.keychainDelay + $0.enclaveDelay }
    let result: Result<SecKey, KeychainFailure> = StandInKeychain.with { state in
        state.enclaveCalls += 1
        if let status = StandInKeychain.status(&state, writes: true) {
            return .failure(KeychainFailure(status: status))
        }
        if let status = state.creationStatus { return .failure(KeychainFailure(status: status)) }
        guard let attributes = parameters as? [String: Any],
            let isEnclave = attributes["tkid"] as? String, isEnclave == "com.apple.setoken",
            let privateAttributes = attributes["private"] as? [String: Any],
            let tag = privateAttributes["atag"] as? Data, privateAttributes["perm"] as? Bool == true,
            privateAttributes["accc"] is SecAccessControl, attributes["type"] as? String == "73",
            attributes["bsiz"] as? Int == 256, attributes["nleg"] as? Bool == true,
            // The access control already has the protection class, so the Keychain refuses an attribute with it.
            privateAttributes["pdmn"] == nil
        else { return .failure(KeychainFailure(status: errSecParam)) }
        let group = privateAttributes["agrp"] as? String ?? state.defaultGroup
        guard state.groups.contains(group) else { return .failure(KeychainFailure(status: errSecMissingEntitlement)) }
        let key = SecKey(.priv(.init()), tag: String(decoding: tag, as: UTF8.self))
        state.keys.append(StandInKeychain.Key(tag: tag, key: key, group: group))
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
    if StandInKeychain.with({ $0.hidesPublicKeys }) { return nil }
    return if case .priv(let key) = key.backing { SecKey(.pub(key.publicKey)) } else { key }
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
    StandInKeychain.takeTime(\.enclaveDelay)
    let failure = StandInKeychain.with { state -> StandInKeychain.SigningFailure? in
        state.enclaveCalls += 1
        guard let failure = state.signingFailure, failure.times > 0 else { return nil }
        if !failure.affectsCanaries, key.tag.hasSuffix(" canary") { return nil }
        state.signingFailure?.times -= 1
        return failure
    }
    if let failure {
        fail(error, failure.domain, failure.code, failure.userInfo)
        return nil
    }
    guard case .priv(let key) = key.backing, let signature = try? key.signature(for: data as Data) else {
        fail(error, NSOSStatusErrorDomain, Int(errSecParam))
        return nil
    }
    return NSData(data: signature.derRepresentation)
}

public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    StandInKeychain.takeTime(\.keychainDelay)
    return StandInKeychain.with { state in
        state.calls += 1
        if let status = StandInKeychain.status(&state) { return status }
        guard let query = query as? [String: Any], StandInKeychain.isWellFormed(query) else { return errSecParam }
        guard let groups = StandInKeychain.groups(query, state) else { return errSecMissingEntitlement }
        if StandInKeychain.lies(&state) { return errSecItemNotFound }
        if let tag = query["atag"] as? Data {
            guard !state.hidesKeys, let key = state.keys.first(where: { $0.tag == tag && groups.contains($0.group) })
            else { return errSecItemNotFound }
            if query["r_Ref"] as? Bool == true { result?.pointee = key.key }
            return errSecSuccess
        }
        guard let item = StandInKeychain.item(query, groups, state) else { return errSecItemNotFound }
        // The Keychain returns data only if the query asks for it. If the query asks for attributes, it returns a dictionary that
        // also has that data.
        let data = query["r_Data"] as? Bool == true ? state.items[item].map { state.garbles ? Data() : $0 } : nil
        if query["r_Attributes"] as? Bool == true {
            var attributes: [String: Any] = ["svce": item.service, "acct": item.account, "agrp": item.group]
            attributes["v_Data"] = data
            result?.pointee = NSDictionary(dictionary: attributes)
        } else {
            result?.pointee = data.map { NSData(data: $0) }
        }
        return errSecSuccess
    }
}

extension StandInKeychain {
    /// Whether the Keychain accepts the query. Apple's refuses a query without a class, one with an attribute of another class,
    /// and one for the legacy Keychain of macOS. This stand-in also refuses one without a tag, or without service and account.
    static func isWellFormed(_ query: [String: Any]) -> Bool {
        guard query["nleg"] as? Bool == true else { return false }
        switch query["class"] as? String {
        case "keys": return query["acct"] == nil && query["svce"] == nil && query["atag"] is Data
        case "genp": return query["atag"] == nil && query["acct"] is String && query["svce"] is String
        default: return false
        }
    }

    static func lies(_ state: inout State) -> Bool {
        guard state.lies > 0 else { return false }
        state.lies -= 1
        return true
    }

    static func item(_ query: [String: Any], _ groups: Set<String>, _ state: State) -> Item? {
        state.items.keys.first {
            $0.account == query["acct"] as? String && $0.service == query["svce"] as? String
                && groups.contains($0.group)
        }
    }
}

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    StandInKeychain.takeTime(\.keychainDelay)
    return StandInKeychain.with { state in
        state.calls += 1
        if let status = StandInKeychain.status(&state, writes: true) { return status }
        guard let item = attributes as? [String: Any], StandInKeychain.isWellFormed(item), item["m_Limit"] == nil,
            let account = item["acct"] as? String,
            let service = item["svce"] as? String, let data = item["v_Data"] as? Data, item["pdmn"] as? String == "cku"
        else { return errSecParam }
        let group = item["agrp"] as? String ?? state.defaultGroup
        guard state.groups.contains(group) else { return errSecMissingEntitlement }
        let key = StandInKeychain.Item(service: service, account: account, group: group)
        guard state.items[key] == nil else { return errSecDuplicateItem }
        state.items[key] = data
        if item["r_Attributes"] as? Bool == true {
            result?.pointee = NSDictionary(dictionary: ["svce": service, "acct": account, "agrp": group])
        }
        return errSecSuccess
    }
}

public func SecItemUpdate(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus {
    StandInKeychain.takeTime(\.keychainDelay)
    return StandInKeychain.with { state in
        state.calls += 1
        if let status = StandInKeychain.status(&state, writes: true) { return status }
        guard let query = query as? [String: Any], let value = attributes as? [String: Any],
            StandInKeychain.isWellFormed(query),
            !query.keys.contains(where: { $0.hasPrefix("r_") || $0.hasPrefix("m_") }),
            !value.isEmpty, value["class"] == nil
        else { return errSecParam }
        guard let groups = StandInKeychain.groups(query, state) else { return errSecMissingEntitlement }
        let newGroup = value["agrp"] as? String
        if let newGroup, !state.groups.contains(newGroup) { return errSecMissingEntitlement }
        if StandInKeychain.lies(&state) { return errSecItemNotFound }
        if let tag = query["atag"] as? Data {
            guard let newGroup, let old = state.keys.firstIndex(where: { $0.tag == tag && groups.contains($0.group) })
            else { return errSecItemNotFound }
            guard state.movesKeys else { return errSecParam }
            state.keys[old].group = newGroup
            return errSecSuccess
        }
        guard let item = StandInKeychain.item(query, groups, state) else { return errSecItemNotFound }
        let data = value["v_Data"] as? Data ?? state.items[item]
        state.items[item] = nil
        let moved = StandInKeychain.Item(service: item.service, account: item.account, group: newGroup ?? item.group)
        state.items[moved] = data
        return errSecSuccess
    }
}

public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    StandInKeychain.takeTime(\.keychainDelay)
    return StandInKeychain.with { state in
        state.calls += 1
        if let status = StandInKeychain.status(&state) { return status }
        guard let query = query as? [String: Any], StandInKeychain.isWellFormed(query) else { return errSecParam }
        guard let groups = StandInKeychain.groups(query, state) else { return errSecMissingEntitlement }
        if let tag = query["atag"] as? Data {
            let count = state.keys.count
            state.keys.removeAll { $0.tag == tag && groups.contains($0.group) }
            return state.keys.count == count ? errSecItemNotFound : errSecSuccess
        }
        guard let item = StandInKeychain.item(query, groups, state) else { return errSecItemNotFound }
        state.items[item] = nil
        return errSecSuccess
    }
}

/// The background running time that `performExpiringActivity` requests. Tests see when it is requested and released, and can end it.
public enum StandInActivity {
    private struct State {
        var running: [Int: @Sendable (Bool) -> Void] = [:]
        var begun = 0
        var isDenied = false
        var isHeld = false
        var held: [Int] = []
    }

    private static let lock = NSLock()
    nonisolated(unsafe) private static var state = State()

    public static var runningCount: Int { lock.withLock { state.running.count } }
    public static var begunCount: Int { lock.withLock { state.begun } }
    /// Sets whether the system denies running time. If it does, the block of an activity is called only with true (expired).
    public static func deny(_ isDenied: Bool) { lock.withLock { state.isDenied = isDenied } }
    /// With true, delays the grants of activities from now on. With false, grants the delayed ones.
    public static func hold(_ isHeld: Bool) {
        let released = lock.withLock {
            state.isHeld = isHeld
            defer { if !isHeld { state.held = [] } }
            return isHeld ? [] : state.held
        }
        for id in released { grant(id) }
    }
    /// Ends the time of all activities: calls their blocks again, with true, while the first calls still run.
    public static func expire() {
        for block in lock.withLock({ Array(state.running.values) }) { block(true) }
    }

    static func begin(_ block: @escaping @Sendable (Bool) -> Void) {
        let (id, isDenied, isHeld) = lock.withLock {
            state.begun += 1
            if !state.isDenied { state.running[state.begun] = block }
            if state.isHeld { state.held.append(state.begun) }
            return (state.begun, state.isDenied, state.isHeld)
        }
        if isDenied { Thread.detachNewThread { block(true) } } else if !isHeld { grant(id) }
    }

    private static func grant(_ id: Int) {
        guard let block = lock.withLock({ state.running[id] }) else { return }
        Thread.detachNewThread {
            block(false)
            lock.withLock { _ = state.running.removeValue(forKey: id) }
        }
    }
}

extension ProcessInfo {
    /// Queues the block and returns at once, as Apple documents it.
    public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {
        StandInActivity.begin(block)
    }
}

public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    NSString(string: "OSStatus \(status)")
}
