internal import Foundation
package import StrictJSON

/// The settings of the service and their origins. Flags override the environment, the environment overrides systemd's
/// credentials, these override the file, and the file overrides the defaults.
package struct ServiceConfiguration: Sendable {
    /// The origin of a value.
    package enum Origin: Sendable, Hashable, CustomStringConvertible {
        case standard
        case file(String)
        case environment(String)
        case flag(String)

        package var description: String {
            switch self {
            case .standard: "default"
            case .file(let path): "file \(path)"
            case .environment(let name): "environment \(name)"
            case .flag(let name): "flag \(name)"
            }
        }
    }

    /// A value in effect.
    package struct Setting: Sendable, Hashable {
        package let key: ConfigurationKey
        let value: JSONValue
        package let origin: Origin
        /// The path of the file that holds a secret; nil: the value is in `origin` itself.
        package var secretFile: String?

        /// The value for display. A secret shows only that it is set.
        package var shown: JSONValue { key.kind.isSecret && !value.isNull ? "(secret)" : value }
    }

    /// The purpose of reading the settings.
    package enum Scope: Sendable {
        /// The service: all settings must be complete and consistent.
        case service
        /// `doctor`: as the service, but secrets that systemd passes only to the unit may be absent (`isWithheld`).
        case inspection
        /// A command that only opens the store. It need not be able to read the service's other files, such as the TLS key.
        case store

        fileprivate var keys: [ConfigurationKey] {
            self == .store ? [.database, .postgresql, .redis, .serviceKey, .auditArchive] : ConfigurationKey.allCases
        }
    }

    private var settings: [ConfigurationKey: Setting] = [:]
    private var withheld: Set<ConfigurationKey> = []

    /// Every setting of the scope, in the order of the table.
    package var all: [Setting] { ConfigurationKey.allCases.compactMap { settings[$0] } }

    /// Merges the sources.
    ///
    /// - Parameters:
    ///   - file: the parsed file; nil: none.
    ///   - environment: all variables of the process. Unknown ones that begin with `ConfigurationKey.prefix` are refused.
    ///   - flags: the flags of the command line, as text.
    ///   - scope: the purpose. It decides which settings are read, and whether they must be complete.
    ///   - store: the folder of the credentials that systemd passes to the package's unit.
    /// - Throws: `ConfigurationError` for an unknown variable, a value of the wrong type, a file that cannot be read, or settings
    ///   that are incomplete or exclude each other.
    package init(
        file: ConfigurationFile? = nil, environment: [String: String] = [:],
        flags: [ConfigurationKey: [String]] = [:], for scope: Scope = .service,
        credentialStore store: String = "/etc/credstore"
    ) throws(ConfigurationError) {
        try Self.refuseUnknown(environment)
        for key in scope.keys {
            var setting = Setting(key: key, value: key.row.standard, origin: .standard)
            if let file, let written = try Self.setting(key, file: file) { setting = written }
            if let written = try Self.setting(key, credentials: environment["CREDENTIALS_DIRECTORY"]) {
                setting = written
            }
            if let written = try Self.setting(key, environment: environment) { setting = written }
            if let written = try Self.setting(key, flags: flags) { setting = written }
            settings[key] = setting
        }
        if scope == .inspection { withheld = Self.withheld(in: store, environment) }
        if scope != .store, !isGiven(.drainSeconds), value(.trustedProxies) != [] {
            settings[.drainSeconds] = Setting(key: .drainSeconds, value: 5, origin: .standard)
        }
        try checkStores()
        if scope != .store { try checkCombinations() }
    }

    /// The keys whose values differ from another configuration, in the order of the table.
    package func changes(from other: ServiceConfiguration) -> [ConfigurationKey] {
        ConfigurationKey.allCases.filter { value($0) != other.value($0) }
    }

    /// The value in effect; null if there is none.
    func value(_ key: ConfigurationKey) -> JSONValue { settings[key]?.value ?? .null }

    /// The text of a secret; nil if it is not set.
    package func secret(_ key: ConfigurationKey) -> String? { value(key).string }

    /// The texts of a secret that may be a list; nil if it is not set.
    package func secrets(_ key: ConfigurationKey) -> [String]? {
        switch value(key) {
        case .string(let text): text.split { $0 == "," || $0.isWhitespace }.map { String($0) }
        case .array(let values): values.compactMap(\.string)
        default: nil
        }
    }

    /// Whether a source sets this setting.
    package func isGiven(_ key: ConfigurationKey) -> Bool { settings[key].map { $0.origin != .standard } ?? false }

    /// Whether a secret is not set here, but systemd may pass it to the package's unit.
    package func isWithheld(_ key: ConfigurationKey) -> Bool { withheld.contains(key) && value(key).isNull }

    /// A text setting; nil if it is not set or is a secret.
    package func text(_ key: ConfigurationKey) -> String? { key.kind.isSecret ? nil : value(key).string }

    // MARK: Sources

    private static let others: Set<String> = ["CONFIG", "URL", "CREDENTIAL", "CREDENTIAL_FILE", "STRICT"]

    private static func refuseUnknown(_ environment: [String: String]) throws(ConfigurationError) {
        var known = Set(others.map { ConfigurationKey.prefix + $0 })
        for key in ConfigurationKey.allCases {
            known.insert(key.variable)
            if key.kind.isSecret { known.insert(key.variable + "_FILE") }
        }
        for name in environment.keys.sorted() where name.hasPrefix(ConfigurationKey.prefix) && !known.contains(name) {
            throw ConfigurationError(name, "is not known")
        }
    }

    private static func setting(
        _ key: ConfigurationKey, flags: [ConfigurationKey: [String]]
    ) throws(ConfigurationError) -> Setting? {
        guard let texts = flags[key], !texts.isEmpty, let flag = key.flag else { return nil }
        if key.kind == .texts {
            return Setting(key: key, value: .array(texts.map { .string($0) }), origin: .flag(flag))
        }
        guard let text = texts.last else { return nil }
        return Setting(key: key, value: try read(text, as: key, named: flag), origin: .flag(flag))
    }

    private static func setting(
        _ key: ConfigurationKey, environment: [String: String]
    ) throws(ConfigurationError) -> Setting? {
        let direct = environment[key.variable]
        let name = key.variable + "_FILE"
        if key.kind.isSecret, let path = environment[name] {
            guard direct == nil else { throw ConfigurationError(name, "excludes \(key.variable)") }
            return Setting(
                key: key, value: try contents(of: path, named: name), origin: .environment(name), secretFile: path)
        }
        guard let direct else { return nil }
        return Setting(
            key: key, value: try read(direct, as: key, named: key.variable), origin: .environment(key.variable))
    }

    /// A secret that systemd passes as a credential: a file with the key's name (systemd.exec(5), *Credentials*).
    private static func setting(
        _ key: ConfigurationKey, credentials: String?
    ) throws(ConfigurationError) -> Setting? {
        guard key.kind.isSecret, let credentials else { return nil }
        let path = "\(credentials)/\(key.rawValue)"
        var about = stat()
        guard stat(path, &about) == 0 || errno != ENOENT else { return nil }
        let value = try contents(of: path, named: key.rawValue, " (in CREDENTIALS_DIRECTORY)")
        return Setting(key: key, value: value, origin: .file(path), secretFile: path)
    }

    /// The secrets that systemd may pass to the package's unit: those whose files are in the credential store. If this process
    /// may not read the store and the unit is installed, the result has every secret, because its file may be in the store. If
    /// systemd started this process with credentials, the result is empty.
    private static func withheld(in store: String, _ environment: [String: String]) -> Set<ConfigurationKey> {
        guard environment["CREDENTIALS_DIRECTORY"] == nil else { return [] }
        var about = stat()
        let hasUnit = stat("/lib/systemd/system/synheart-auth.service", &about) == 0
        return Set(
            ConfigurationKey.allCases.filter { key in
                guard key.kind.isSecret else { return false }
                return stat("\(store)/synheart-auth.\(key.rawValue)", &about) == 0 || hasUnit && errno == EACCES
            })
    }

    private static func setting(_ key: ConfigurationKey, file: ConfigurationFile) throws(ConfigurationError) -> Setting?
    {
        let origin = Origin.file(file.path)
        let name = key.rawValue + "_file"
        if key.kind.isSecret, let path = file.values[name] {
            let place = file.place(of: name)
            guard file.values[key.rawValue] == nil else {
                throw ConfigurationError(name, "excludes \(key.rawValue)" + place)
            }
            guard let path = path.string else { throw ConfigurationError(name, "must be the path of a file" + place) }
            let value = try contents(of: path, named: name, place)
            return Setting(key: key, value: value, origin: origin, secretFile: path)
        }
        guard let value = file.values[key.rawValue] else { return nil }
        guard key.kind.allows(value) else {
            throw ConfigurationError(key.rawValue, key.kind.sentence + file.place(of: key.rawValue))
        }
        return Setting(key: key, value: value, origin: origin)
    }

    /// The text in a secret's file. Errors do not show the path: it may be the secret itself, given by mistake.
    private static func contents(
        of path: String, named name: String, _ place: String = ""
    ) throws(ConfigurationError) -> JSONValue {
        let bytes: [UInt8]
        do throws(FileContents.Failure) {
            bytes = try FileContents.read(path, maximum: 65_536)
        } catch {
            throw ConfigurationError(name, "names a file that cannot be read: \(error)" + place)
        }
        let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty else { throw ConfigurationError(name, "names a file that is empty" + place) }
        return .string(text)
    }

    private static func read(
        _ text: String, as key: ConfigurationKey, named name: String
    ) throws(ConfigurationError) -> JSONValue {
        let value: JSONValue? =
            switch key.kind {
            case .text, .secret, .secrets, .choice: .string(text)
            case .boolean: ["true": true, "1": true, "false": false, "0": false][text].map { .bool($0) }
            case .integer: Int64(text).map { .integer($0) }
            case .share: .string(text)
            case .texts: .array(text.split(separator: ",").map { .string($0.trimmingCharacters(in: .whitespaces)) })
            }
        guard let value, key.kind.allows(value) else { throw ConfigurationError(name, key.kind.sentence) }
        return value
    }
}

extension ConfigurationKey.Kind {
    /// Whether the value is never shown, and may be in a file of its own.
    package var isSecret: Bool { self == .secret || self == .secrets }

    /// Whether a value has this type and range.
    func allows(_ value: JSONValue) -> Bool {
        switch self {
        case .text, .secret: value.string.map { !$0.isEmpty } ?? false
        case .secrets: Self.text.allows(value) || (Self.texts.allows(value) && value.array?.isEmpty == false)
        case .boolean: value.bool != nil
        case .integer(let range): value.integer.map { range.contains($0) } ?? false
        case .share: Self.share(value) != nil
        case .texts: value.array.map { $0.allSatisfy { !($0.string ?? "").isEmpty } } ?? false
        case .choice(let words): value.string.map { words.contains($0) } ?? false
        }
    }

    /// The number of a `share`; nil if the value is not a decimal number from 0 to 1.
    static func share(_ value: JSONValue) -> Double? {
        let number: Double?
        switch value {
        case .number(let written): number = written.double
        case .string(let text):
            // Allow only digits and periods, because `Double` also reads other forms, such as `nan` and `0x1p-2`.
            number = text.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") } ? Double(text) : nil
        default: number = nil
        }
        return number.flatMap { (0...1).contains($0) ? $0 : nil }
    }

    /// The expected value, for error texts.
    var sentence: String {
        switch self {
        case .text, .secret: "must be text that is not empty"
        case .secrets: "must be text that is not empty, or a list of such texts"
        case .boolean: "must be true or false"
        case .integer(let range): "must be a number from \(range.lowerBound) to \(range.upperBound)"
        case .share: "must be a decimal number from 0 to 1"
        case .texts: "must be a list of texts that are not empty"
        case .choice(let words): "must be one of \(words.joined(separator: ", "))"
        }
    }
}
