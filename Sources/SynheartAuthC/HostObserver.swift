internal import AuthContract
internal import Bytes
public import CSynheartAuth
internal import Dispatch
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// Receives the SDK's events for a host. The header documents each function.

/// The host's observer.
final class HostObserver: AuthLogger {
    private let host: HostTable<synheart_auth_observer>
    /// A single thread, so that a host that hangs does not block Swift's pool.
    private let thread = DispatchQueue(label: "ai.synheart.auth.observer")
    private let waiting = Locked(0)
    private static let limit = 1000

    init(_ table: synheart_auth_observer) { host = HostTable(table) }

    private func tell(
        _ text: String, _ call: @escaping @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Void
    ) {
        let isWanted = waiting.withLock { waiting in
            guard waiting < Self.limit else { return false }
            waiting += 1
            return true
        }
        guard isWanted else { return }
        thread.async {
            text.withCString { call(self.host.table.user, $0) }
            self.waiting.withLock { $0 -= 1 }
        }
    }

    deinit { host.table.release?(host.table.user) }

    func log(_ entry: LogEntry) {
        guard let log = host.table.log else { return }
        var json = JSONObject()
        json["level"] = .string(entry.level.rawValue)
        json["event"] = .string(entry.event.rawValue)
        json["app_id"] = .string(entry.appID.text)
        json["device"] = entry.device.map { .string($0.description) }
        json["code"] = entry.code.map { .string($0.text) }
        json["from"] = entry.transition.map { .string($0.from.rawValue) }
        json["to"] = entry.transition.map { .string($0.to.rawValue) }
        json["duration_ms"] = entry.duration.map { .integer($0.wholeMilliseconds) }
        tell(JSONValue.object(json).text(), log)
    }

    func changed(_ change: StateChange) {
        guard let changed = host.table.state_changed else { return }
        let json: JSONValue = [
            "app_id": .string(change.appID), "from": .string(change.transition.from.rawValue),
            "to": .string(change.transition.to.rawValue),
        ]
        tell(json.text(), changed)
    }
}

@_cdecl("synheart_auth_set_observer")
public func setObserver(
    _ handle: OpaquePointer?, _ observer: UnsafePointer<synheart_auth_observer>?, _ result: Result?
) -> Int32 {
    guard let table = observer.flatMap({ synheart_auth_observer.copy($0) }) else {
        return invalidArgument("observer: version or size", result)
    }
    // The observer calls the table's `release` when it is freed, also if this function fails below.
    let observer = HostObserver(table)
    guard let handle else { return invalidArgument("handle", result) }
    Instance.of(handle).observe(observer)
    return succeed([:], result)
}

@_cdecl("synheart_auth_cancel")
public func cancelCalls(_ handle: OpaquePointer?) {
    guard let handle else { return }
    Instance.of(handle).cancelCalls()
}

@_cdecl("synheart_auth_use_development_mode")
public func useDevelopmentMode(
    _ handle: OpaquePointer?, _ platform: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let platform = CText.string(platform).flatMap(Platform.init(rawValue:)) else {
        return invalidArgument("platform", result)
    }
    #if DEBUG
        Instance.of(handle).change { $0.attestation = DevelopmentAttestation(platform: platform) }
        return succeed([:], result)
    #else
        _ = (handle, platform)
        return fail(.fromCode("NOT_CONFIGURED", "a release build has no development mode"), result)
    #endif
}
