import ArgumentParser
import AuthContract
import StrictJSON

/// The conditions of `--where`. A device must meet all of them.
struct FleetQuery: Sendable {
    /// The property of a device that a condition compares. The raw value is its name in `--where`.
    enum Name: String, CaseIterable, Sendable {
        case status, platform
        case registeredFrom = "registered_from"
        case registeredBefore = "registered_before"
        case lastSeenBefore = "last_seen_before"
        case assuranceApp = "assurance.app"
        case assuranceKey = "assurance.key"
        case assuranceLabels = "assurance.labels"

        /// Whether the admin API's search supports this condition.
        fileprivate var isOfSearch: Bool {
            switch self {
            case .status, .platform, .registeredFrom, .registeredBefore: true
            case .lastSeenBefore, .assuranceApp, .assuranceKey, .assuranceLabels: false
            }
        }

        fileprivate var isTime: Bool {
            [.registeredFrom, .registeredBefore, .lastSeenBefore].contains(self)
        }
    }

    private let conditions: [(name: Name, value: String)]

    /// Parses conditions of the form `name=value`. A name may be repeated only if it is `assurance.labels`.
    init(_ texts: [String]) throws(ValidationError) {
        var conditions: [(name: Name, value: String)] = []
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, let name = Name(rawValue: parts[0]), !parts[1].isEmpty else {
                throw ValidationError(
                    "--where is name=value, and the names are "
                        + Name.allCases.map(\.rawValue).joined(separator: ", "))
            }
            guard name == .assuranceLabels || !conditions.contains(where: { $0.name == name }) else {
                throw ValidationError("--where \(name.rawValue) is given twice")
            }
            conditions.append((name, try name.isTime ? Self.time(parts[1], of: name) : parts[1]))
        }
        self.conditions = conditions
    }

    /// Converts a time to the format that the service writes. Comparing two such strings compares their times.
    private static func time(_ text: String, of name: Name) throws(ValidationError) -> String {
        if let seconds = Int64(text), 0...4_000_000_000 ~= seconds { return UnixTime(seconds).iso8601 }
        guard let time = try? UnixTime(iso8601: text) else {
            throw ValidationError("--where \(name.rawValue) is a time, such as 2026-11-22T12:00:00Z")
        }
        return time.iso8601
    }

    /// The conditions that the admin API's search supports.
    var search: [(String, String?)] {
        conditions.filter { $0.name.isOfSearch }.map { ($0.name.rawValue, $0.value) }
    }

    /// Whether a device, as the admin API shows it, meets every condition.
    func matches(_ device: JSONObject) -> Bool {
        conditions.allSatisfy { name, value in
            let assurance = device["assurance"]?.object
            let registered = device["registered_at"]?.string
            return switch name {
            case .status: device["status"]?.string == value
            case .platform: device["platform"]?.string == value
            case .registeredFrom: registered.map { $0 >= value } ?? false
            case .registeredBefore: registered.map { $0 < value } ?? false
            // For a device that was never seen, the registration time is used.
            case .lastSeenBefore: (device["last_seen"]?.string ?? registered).map { $0 < value } ?? false
            case .assuranceApp: assurance?["app"]?.string == value
            case .assuranceKey: assurance?["key"]?.string == value
            case .assuranceLabels: assurance?["labels"]?.array?.contains(.string(value)) ?? false
            }
        }
    }
}
