// The eight functions of Synheart Core's runtime, under the names that the runtime's Swift package calls.
//
// Texts are UTF-8 and end with a zero byte. Returned texts are malloc'd; the caller frees them with `free`. The
// functions block. Any thread may call them.
//
// The runtime looks up C functions by name at run time. A linker that removes dead code would remove such functions
// from a statically linked app, so their definitions in CSynheartAuth are marked as used. They call the functions
// below.

/// Loads or makes the P-256 key of this name. Returns the public key as `{"x":"<b64url>","y":"<b64url>"}`; nil on
/// failure.
///
/// Concurrent callers, in any process, get the same key.
@_cdecl("synheart_native_swift_generate_key")
public func synheart_native_generate_key(_ deviceID: UnsafePointer<CChar>?) -> UnsafeMutablePointer<CChar>? {
    RuntimeHostRegistry.host.generateKey(deviceID)
}

/// base64url(r || s) of the ECDSA signature over SHA-256 of these bytes; nil on failure.
@_cdecl("synheart_native_swift_sign_bytes")
public func synheart_native_sign_bytes(
    _ deviceID: UnsafePointer<CChar>?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> UnsafeMutablePointer<CChar>? {
    RuntimeHostRegistry.host.signBytes(deviceID, data, length)
}

/// An App Attest attestation for a hash of 32 bytes, as `{"format":"apple-app-attest","blob":"<b64>"}`. If there is
/// none, the result is `{"format":"none","blob":"","reason":"…"}`.
///
/// Each call makes a new App Attest key.
@_cdecl("synheart_native_swift_get_attestation")
public func synheart_native_get_attestation(
    _ deviceID: UnsafePointer<CChar>?, _ hash: UnsafePointer<UInt8>?, _ length: Int
) -> UnsafeMutablePointer<CChar>? {
    RuntimeHostRegistry.host.getAttestation(deviceID, hash, length)
}

/// 0 if the key certainly does not exist; 1 if it does, or if the store cannot be read now.
@_cdecl("synheart_native_swift_key_exists")
public func synheart_native_key_exists(_ deviceID: UnsafePointer<CChar>?) -> Int32 {
    RuntimeHostRegistry.host.keyExists(deviceID)
}

/// 0 if the key is deleted, or there was none; otherwise another value.
@_cdecl("synheart_native_swift_delete_key")
public func synheart_native_delete_key(_ deviceID: UnsafePointer<CChar>?) -> Int32 {
    RuntimeHostRegistry.host.deleteKey(deviceID)
}

/// 0 if the text is stored in the platform's secure storage; otherwise another value.
@_cdecl("synheart_native_swift_secure_store")
public func synheart_native_secure_store(
    _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> Int32 {
    RuntimeHostRegistry.host.secureStore(service, key, value)
}

/// The stored text; nil if there is none, or if it could not be read within two seconds, which is logged as an error.
@_cdecl("synheart_native_swift_secure_load")
public func synheart_native_secure_load(
    _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
) -> UnsafeMutablePointer<CChar>? {
    RuntimeHostRegistry.host.secureLoad(service, key)
}

/// 0 if the text is deleted, or there was none; otherwise another value.
@_cdecl("synheart_native_swift_secure_delete")
public func synheart_native_secure_delete(
    _ service: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
) -> Int32 {
    RuntimeHostRegistry.host.secureDelete(service, key)
}

/// Refers to the object file of the C definitions, so that a static link includes it.
@_silgen_name("synheart_native_callback_table") private func callbackTable() -> UnsafeRawPointer?

enum RuntimeInterface {
    /// Keeps the C definitions in the program.
    static func keep() { _ = callbackTable() }
}
