internal import AuthContract
internal import Bytes
public import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// The complete SDK for hosts (programs that use the SDK through C). The C header documents each function. The
// functions are public, because an optimized build drops functions that are not public.

@_cdecl("synheart_auth_version")
public func libraryVersion() -> UnsafePointer<CChar> {
    UnsafeRawPointer(SDKVersion.text.utf8Start).assumingMemoryBound(to: CChar.self)
}

@_cdecl("synheart_auth_create")
public func createInstance(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?, _ host: UnsafePointer<synheart_auth_host>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?
) -> Int32 {
    handle?.pointee = nil
    let table = host.map { synheart_auth_host.copy($0) }
    if case .some(nil) = table { return invalidArgument("host: version or size", result) }
    let platform = table.flatMap { $0 }.map { HostPlatform(callbacks: $0) }
    guard platform?.storageCallbacks != .some(.partial) else {
        return invalidArgument("read_record, write_record, remove_record: all of them, or none", result)
    }
    // The locks of the host's records need a directory. Only the host knows one that all its processes share and that others
    // cannot access.
    guard platform?.storageCallbacks != .some(.complete) || directory != nil else {
        return invalidArgument("directory: storage callbacks need one for their locks", result)
    }
    return create(baseURL, directory, handle, result) { configuration, directory in
        if let directory { configuration.storage = FileStorage(directory: directory) }
        guard let platform else { return }
        configuration.keyStore = platform
        configuration.attestation = platform
        if let directory, platform.storageCallbacks == .complete {
            configuration.storage = HostStorage(host: platform, files: FileStorage(directory: directory))
        }
    }
}

@_cdecl("synheart_auth_create_with_software_keys")
public func createInstanceWithSoftwareKeys(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?
) -> Int32 {
    guard CText.string(directory) != nil else { return invalidArgument("directory", result) }
    return create(baseURL, directory, handle, result) { configuration, directory in
        guard let directory else { return }
        configuration.storage = FileStorage(directory: directory)
        configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
        #if DEBUG
            configuration.attestation = DevelopmentAttestation()
        #endif
    }
}

private func create(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?,
    _ change: (inout SynheartAuth.Configuration, String?) -> Void
) -> Int32 {
    handle?.pointee = nil
    // The first use of `isForkedProcess` also stores the id of this process. A process with another id is a fork.
    guard !isForkedProcess else { return fail(.forked, result) }
    guard let handle else { return invalidArgument("handle", result) }
    guard let baseURL = CText.string(baseURL) else { return invalidArgument("base_url", result) }
    // NULL means the platform's own directory. A malformed text is an error.
    let directoryText = CText.string(directory)
    guard directory == nil || directoryText != nil else { return invalidArgument("directory", result) }
    do throws(SynheartAuthError) {
        var configuration = try SynheartAuth.Configuration(baseUrl: baseURL)
        change(&configuration, directoryText)
        handle.pointee = OpaquePointer(Unmanaged.passRetained(Instance(configuration)).toOpaque())
        return succeed([:], result)
    } catch {
        return fail(error, result)
    }
}

/// Converts a host's milliseconds to a deadline: 0 is `usual`, the maximum is an hour. Returns nil if they are out of range.
func deadline(_ milliseconds: Int64, usual: Duration) -> Duration? {
    guard (0...3_600_000).contains(milliseconds) else { return nil }
    return milliseconds == 0 ? usual : .milliseconds(milliseconds)
}

@_cdecl("synheart_auth_set_deadline")
public func setDeadline(_ handle: OpaquePointer?, _ milliseconds: Int64, _ result: Result?) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let limit = deadline(milliseconds, usual: Instance.usualDeadline) else {
        return invalidArgument("deadline_ms", result)
    }
    Instance.of(handle).deadline.withLock { $0 = limit }
    return succeed([:], result)
}

@_cdecl("synheart_auth_free")
public func freeInstance(_ handle: OpaquePointer?) {
    guard let handle else { return }
    Unmanaged<Instance>.fromOpaque(UnsafeRawPointer(handle)).release()
}

@_cdecl("synheart_auth_string_free")
public func freeString(_ text: UnsafeMutablePointer<CChar>?) { free(text) }

@_cdecl("synheart_auth_register_device")
public func registerDevice(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        let registration = try await sdk.registerDevice(appID: appId)
        return ["status": .string(registration.status.rawValue), "device_id": .string(registration.deviceId)]
    }
}

@_cdecl("synheart_auth_is_registered")
public func isRegistered(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        ["registered": .bool(try await sdk.isRegistered(appID: appId))]
    }
}

@_cdecl("synheart_auth_get_device_id")
public func getDeviceID(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        let id = try await sdk.getDeviceId(appID: appId)
        return ["device_id": id.map { .string($0) } ?? .null]
    }
}

@_cdecl("synheart_auth_get_state")
public func getState(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        ["state": .string(try await sdk.state(appID: appId).rawValue)]
    }
}

@_cdecl("synheart_auth_sign_request")
public func signRequest(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ method: UnsafePointer<CChar>?,
    _ path: UnsafePointer<CChar>?, _ body: UnsafePointer<UInt8>?, _ bodyLength: Int64, _ result: Result?
) -> Int32 {
    guard let method = CText.string(method) else { return invalidArgument("method", result) }
    guard let path = CText.string(path) else { return invalidArgument("path", result) }
    guard let length = Int(exactly: bodyLength), let body = CText.bytes(body, length) else {
        return invalidArgument("body", result)
    }
    return run(handle, appID, result) { sdk, appId in
        let headers = try await sdk.signRequest(appID: appId, method: method, path: path, bodyBytes: body)
        return ["headers": .object(JSONObject(headers.fields.map { ($0.name, .string($0.value)) }))]
    }
}

@_cdecl("synheart_auth_rotate_key")
public func rotateKey(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ reason: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    guard let reason = CText.string(reason).flatMap(RotationReason.init(rawValue:)) else {
        return invalidArgument("reason", result)
    }
    return run(handle, appID, result) { sdk, appId in
        let rotation = try await sdk.rotateKey(appID: appId, reason: reason)
        return ["device_id": .string(rotation.deviceId), "effective_at": .integer(rotation.effectiveAt.seconds)]
    }
}

@_cdecl("synheart_auth_reset_device_identity")
public func resetDeviceIdentity(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ reason: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    guard let reason = CText.string(reason).flatMap(ResetReason.init(rawValue:)) else {
        return invalidArgument("reason", result)
    }
    return run(handle, appID, result) { sdk, appId in
        try await sdk.resetDeviceIdentity(appID: appId, reason: reason)
        return [:]
    }
}

@_cdecl("synheart_auth_device_token")
public func deviceToken(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ audience: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    let audienceText = CText.string(audience)
    guard audience == nil || audienceText != nil else { return invalidArgument("audience", result) }
    return run(handle, appID, result) { sdk, appId in
        let token = try await sdk.deviceToken(appID: appId, audience: audienceText)
        return [
            "token": .string(token.token), "remaining_seconds": .integer(max(token.remaining.components.seconds, 0)),
        ]
    }
}

@_cdecl("synheart_auth_maintain")
public func maintain(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        try await sdk.maintain(appID: appId)
        return [:]
    }
}

@_cdecl("synheart_auth_correct_clock_skew")
public func correctClockSkew(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ serverTimestamp: Double, _ result: Result?
) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        try await sdk.correctClockSkew(serverTimestamp: serverTimestamp, appID: appId)
        return [:]
    }
}

private func run(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?,
    _ body: @escaping @Sendable (SynheartAuth, String) async throws -> JSONValue
) -> Int32 {
    run(handle, appID, result, body) { $0 }
}
